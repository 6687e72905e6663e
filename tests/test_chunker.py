import pytest
from hypothesis import given
from hypothesis import strategies as st

from ablate.chunker import Fixed, Whole
from ablate.errors import ConfigError
from ablate.tokens import Words
from ablate.types import Document

TEXT = "Отпуск длится 28 дней. Больничный — отдельно."


def spans(chunker, text):
    return [(chunk.start, chunk.end) for chunk in chunker(Document("д", text), Words())]


def test_windows_repeat_the_overlap_and_the_last_ends_the_text():
    chunks = Fixed(4, 1)(Document("д", TEXT), Words())
    assert [chunk.text for chunk in chunks] == ["Отпуск длится 28 дней", "дней. Больничный —", "— отдельно."]


def test_no_window_only_repeats_the_one_before():
    assert spans(Fixed(3, 2), "а б в") == [(0, 5)]
    assert spans(Fixed(3, 2), "а б в г") == [(0, 5), (2, 7)]


def test_space_around_a_chunk_belongs_to_none():
    assert spans(Fixed(1, 0), "  а \n б ") == [(2, 3), (6, 7)]


def test_a_short_text_is_one_chunk():
    assert spans(Fixed(128, 24), "да") == [(0, 2)]


def test_whole_is_one_chunk_with_all_of_the_text():
    assert spans(Whole(), " да \n") == [(0, 5)]


@pytest.mark.parametrize("chunker", [Whole(), Fixed(2, 1)])
@pytest.mark.parametrize("text", ["", " \n", "\u200b"])
def test_a_document_without_tokens_gives_no_chunk(chunker, text):
    assert spans(chunker, text) == []


def test_a_chunk_carries_its_document_and_the_documents_text():
    document = Document("д", TEXT, title="Кадры", metadata={"product": "hr"})
    for chunk in Fixed(4, 1)(document, Words()):
        assert chunk.document is document
        assert chunk.text == TEXT[chunk.start : chunk.end]


@given(st.text(alphabet="aж中 .\n", max_size=60), st.integers(1, 7), st.data())
def test_windows_hold_every_token_in_steps_and_none_is_part_of_another(text, size, data):
    overlap = data.draw(st.integers(0, size - 1))
    tokens = Words().spans(text).tolist()
    windows = spans(Fixed(size, overlap), text)
    held = [[token for token in tokens if start <= token[0] and token[1] <= end] for start, end in windows]
    assert [token for window in held for token in window[overlap if window is not held[0] else 0 :]] == tokens
    assert all(len(window) == size for window in held[:-1])
    assert all(len(window) > overlap or len(held) == 1 for window in held)
    assert [(window[0][0], window[-1][1]) for window in held] == windows


@pytest.mark.parametrize(("size", "overlap", "key"), [(0, 0, "size"), (4, 4, "overlap"), (4, -1, "overlap")])
def test_a_window_that_cannot_move_is_refused(size, overlap, key):
    with pytest.raises(ConfigError, match=f"^{key}: found"):
        Fixed(size, overlap)
