"""A document's chunks: no letter is lost, none is too long, and each kind of chunker cuts where it says it does."""

import re
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ablate.chunker import Fixed, ParentChild, Sentence, Structure, Whole
from ablate.chunker.borders import packed, sentences
from ablate.chunker.markdown import markdown
from ablate.chunker.structure import even
from ablate.chunker.tags import Page
from ablate.errors import ConfigError
from ablate.tokens import Words
from ablate.types import Chunk, Document

WORDS = Words()
searched = settings(deadline=None)
TEXT = "Отпуск длится 28 дней. Больничный — отдельно."


def chunked(chunker, text):
    return chunker(Document("д", text), WORDS)


def spans(chunker, text):
    return [(chunk.start, chunk.end) for chunk in chunked(chunker, text)]


def texts(chunker, text):
    return [chunk.text for chunk in chunked(chunker, text)]


def lost(chunks, text):
    """The places of the letters and digits that are in none of the chunks."""
    held = {place for chunk in chunks for place in range(chunk.start, chunk.end)}
    return [place for place, character in enumerate(text) if character.isalnum() and place not in held]


PIECES = st.sampled_from(
    [
        "# Отпуск", "## Rules & rates", "### 三", "Title\n===", "Title\n---", "---", "- item", "  - вложено",
        "1. first", "10) ten", "| a | b |", "|---|---|", "| 1 | два |", "```", "~~~py", "    code", "> quote", "[x]: http://a.b",
        "Раз два. Три!", "see Fig. 3 and e.g. Mr. X", "文です。「何？」", "слово", "вот что:", "**Итог:**",
        "v2.1.3", "3,5", "<p>", "</p>", "<div class='a > b'>", "</div>", "<ul>", "<li>", "</li>", "</ul>",
        "<table>", "<tr>", "<td>",
        "</table>", "<h1>", "</h1>", "<h2 id=x>", "</h2>", "<br>", "<hr/>", "<b>", "<!-- c -->", "<!--", "<![CDATA[",
        "<!doctype html>", "<script>a<b</script>", "<style>", "<", "&nbsp;", "\ufeff", "\u200b", "\0", "a\u0301",
        "👩‍💻",
    ]
)  # fmt: skip
GAPS = st.sampled_from(["", " ", "\n", "\n\n", "\r\n", "\r", "\u2028", "\t"])
MARKUP = st.lists(st.tuples(PIECES | st.text(max_size=8), GAPS), max_size=40).map(
    lambda pairs: "".join(piece + gap for piece, gap in pairs)
)
TEXTS = MARKUP | st.text(max_size=200)
SIZES = st.integers(1, 30)
OVERLAPPED = SIZES.flatmap(lambda size: st.tuples(st.just(size), st.integers(0, size - 1)))
SIZED = (
    OVERLAPPED.map(lambda both: Fixed(*both))
    | OVERLAPPED.map(lambda both: Sentence(*both))
    | SIZES.map(Structure)
    | st.tuples(SIZES, OVERLAPPED).map(lambda parts: ParentChild(parts[0] + parts[1][0], *parts[1]))
)


@searched
@given(TEXTS, SIZED | st.just(Whole()))
def test_every_letter_and_digit_is_in_some_chunk_and_in_some_that_is_handed_over(text, chunker):
    chunks = chunked(chunker, text)
    assert lost(chunks, text) == []
    assert lost([chunk.handed for chunk in chunks], text) == []


def test_a_lost_letter_would_be_noticed():
    for chunks in ([], [Chunk(Document("д", TEXT), 0, 21), Chunk(Document("д", TEXT), 22, 45)]):
        assert lost(chunks, TEXT) == [place for place in range(len(TEXT)) if not chunks and TEXT[place].isalnum()]
    assert lost([Chunk(Document("д", TEXT), 0, 20), Chunk(Document("д", TEXT), 21, 45)], TEXT) == [20]


@searched
@given(TEXTS, SIZED)
def test_chunks_are_parts_of_the_text_in_its_order_and_none_is_within_its_neighbour(text, chunker):
    found = spans(chunker, text)
    assert all(0 <= start < end <= len(text) for start, end in found)
    assert all(one[0] < other[0] and one[1] < other[1] for one, other in pairwise(found))
    assert all(chunk.text == chunk.text.strip() for chunk in chunked(chunker, text))


@searched
@given(TEXTS, SIZED)
def test_no_chunk_is_longer_than_its_size(text, chunker):
    for chunk in chunked(chunker, text):
        assert WORDS.count(chunk.text) <= chunker.size
        assert WORDS.count(chunk.handed.text) <= getattr(chunker, "parent_size", chunker.size)


@searched
@given(TEXTS, SIZED)
def test_the_same_document_gives_the_same_chunks(text, chunker):
    document = Document("д", text)
    assert chunker(document, WORDS) == chunker(document, WORDS)


@searched
@given(TEXTS, SIZES, SIZES)
def test_children_fill_their_parents_and_parents_share_nothing(text, size, more):
    chunks = chunked(ParentChild(size + more, size, size // 4), text)
    parents = list(dict.fromkeys(chunk.parent for chunk in chunks))
    assert all(one.end <= other.start for one, other in pairwise(parents))
    for parent in parents:
        inner = [chunk for chunk in chunks if chunk.parent == parent]
        assert (inner[0].start, inner[-1].end) == (parent.start, parent.end)
        assert all(parent.start <= chunk.start and chunk.end <= parent.end for chunk in inner)
    assert spans(Sentence(size + more, 0), text) == [(parent.start, parent.end) for parent in parents]


@pytest.mark.parametrize("chunker", [Whole(), Fixed(2, 1), Sentence(2, 1), Structure(2), ParentChild(3, 2, 1)])
@pytest.mark.parametrize("text", ["", " \n", "\u200b"])
def test_a_document_without_tokens_gives_no_chunk(chunker, text):
    assert spans(chunker, text) == []


@pytest.mark.parametrize("chunker", [Fixed(4, 1), Sentence(4, 1), Structure(4), ParentChild(6, 4, 1)])
def test_a_chunk_carries_its_document_and_the_documents_text(chunker):
    document = Document("д", TEXT, title="Кадры", metadata={"product": "hr"})
    for chunk in chunker(document, WORDS):
        assert chunk.document is chunk.handed.document is document
        assert chunk.text == TEXT[chunk.start : chunk.end]


@pytest.mark.parametrize(
    ("kind", "values", "key"),
    [
        (Fixed, (0, 0), "size"), (Fixed, (4, 4), "overlap"), (Fixed, (4, -1), "overlap"),
        (Sentence, (0, 0), "size"), (Sentence, (4, 4), "overlap"), (Sentence, (4, -1), "overlap"),
        (Structure, (0,), "size"), (ParentChild, (8, 0, 0), "size"), (ParentChild, (8, 4, 4), "overlap"),
        (ParentChild, (3, 4, 0), "parent_size"),
    ],
)  # fmt: skip
def test_sizes_that_cannot_be_met_are_refused(kind, values, key):
    with pytest.raises(ConfigError, match=f"^{key}: found .*, expected .*; set a"):
        kind(*values)


def test_whole_is_one_chunk_with_all_of_the_text():
    assert spans(Whole(), " да \n") == [(0, 5)]


def test_windows_repeat_the_overlap_and_the_last_ends_the_text():
    assert texts(Fixed(4, 1), TEXT) == ["Отпуск длится 28 дней", "дней. Больничный —", "— отдельно."]


def test_no_window_only_repeats_the_one_before():
    assert spans(Fixed(3, 2), "а б в") == [(0, 5)]
    assert spans(Fixed(3, 2), "а б в г") == [(0, 5), (2, 7)]


def test_space_around_a_chunk_belongs_to_none():
    assert spans(Fixed(1, 0), "  а \n б ") == [(2, 3), (6, 7)]


def test_a_short_text_is_one_chunk():
    assert spans(Fixed(128, 24), "да") == [(0, 2)]


@searched
@given(st.text(alphabet="aж中 .\n", max_size=60), OVERLAPPED)
def test_windows_hold_every_token_in_steps_and_none_is_part_of_another(text, both):
    size, overlap = both
    tokens = WORDS.spans(text).tolist()
    windows = spans(Fixed(size, overlap), text)
    held = [[token for token in tokens if start <= token[0] and token[1] <= end] for start, end in windows]
    assert [token for window in held for token in window[overlap if window is not held[0] else 0 :]] == tokens
    assert all(len(window) == size for window in held[:-1])
    assert all(len(window) > overlap or len(held) == 1 for window in held)
    assert [(window[0][0], window[-1][1]) for window in held] == windows


def split(text):
    """The sentences of a text."""
    found = WORDS.spans(text)
    return [text[found[first, 0] : found[last - 1, 1]] for first, last in pairwise(sentences(text, found))]


SENTENCES = [
    ["One two.", "Three!", "Four?!", "Five…", "Six"],
    ["Отпуск длится 28 дней.", "Больничный — отдельно."],
    ["Mr. J. Smith met Dr. Brown at 5 p.m. in Oulu, e.g. on Monday, vs. the U.S. team.", "Then he left."],
    ["Ответ в п. 3.2 и т. д. у А. С. Пушкина, см. рис. 4, 5 тыс. руб. в г. Нарва.", "Дальше."],
    ["Die Sitzung am 5. Mai z. B. bei Dr. Müller.", "Danach."],
    ["It costs $3.50 or 1,200.75 in v2.1.3, see a.b@c.example and www.d.example.", "Good."],
    ['"Really?" she asked.', "«Да!» — сказал он.", "«Нет!»", "“Never.”", "(Это всё.)", "Yes! 😊"],
    ["我来了。", "你好！", "「走吧。」", "他说３．５好？", "是"],
    ["यह है।", "वह है॥", "हाँ"],
    ["هل هذا؟", "نعم."],
    ["**Death.**", "An heir writes.", "*Never.*", "`make all`."],
    ["Yahoo! is a name and so it goes on... and on."],
    ["no capitals at all in p. 3 of 1.5 pages.", "so it ends.", "and this, too"],
    ["the results were small .", "the rest was not .", "end"],
]


@pytest.mark.parametrize("parts", SENTENCES, ids=lambda parts: parts[0])
def test_sentences_are_found_in_any_script(parts):
    assert split(" ".join(parts)) == parts


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("Раз два\n\nтри", ["Раз два", "три"]),
        ("a line that\ngoes on\r\nbelow", ["a line that\ngoes on\r\nbelow"]),
        ("Heading\nText that\ngoes on", ["Heading", "Text that\ngoes on"]),
        ("1. Write.\n2. Call\n- or not", ["1. Write.", "2. Call", "- or not"]),
        ("It ended.\nthe next, 3.\n4", ["It ended.", "the next, 3.", "4"]),
        ("Really?  \nyes", ["Really?", "yes"]),
        ("我来了。你好！「走吧。」", ["我来了。", "你好！", "「走吧。」"]),
        ("<p>One.</p><p>Two. Three</p>", ["<p>One.</p>", "<p>Two.", "Three</p>"]),
        ("a\u2029b", ["a\u2029b"]),
        ("a\u2029\u2029b", ["a", "b"]),
    ],
)
def test_lines_and_paragraphs_are_borders_of_sentences(text, parts):
    assert split(text) == parts


def test_sentences_are_packed_up_to_the_size_and_repeated_where_they_fit_the_overlap():
    text = "Он и она. Да нет. Это не все тут. Как же так. Вот."  # of 4, 3, 5, 4 and 2 tokens
    assert texts(Sentence(8, 0), text) == ["Он и она. Да нет.", "Это не все тут.", "Как же так. Вот."]
    assert texts(Sentence(8, 3), text) == ["Он и она. Да нет.", "Да нет. Это не все тут.", "Как же так. Вот."]
    assert texts(Sentence(8, 4), text)[1:] == ["Да нет. Это не все тут.", "Как же так. Вот."], (
        "there is no room for five"
    )
    assert texts(Sentence(9, 5), text)[2:] == ["Это не все тут. Как же так.", "Как же так. Вот."]
    assert texts(Sentence(99, 9), text) == [text]


def test_a_sentence_longer_than_the_size_is_cut_at_tokens():
    text = "Да. Раз два три четыре пять шесть семь."
    assert texts(Sentence(4, 1), text) == ["Да. Раз два", "два три четыре пять", "пять шесть семь."]
    assert texts(Sentence(4, 0), f"{text} Нет.") == ["Да. Раз два", "три четыре пять шесть", "семь. Нет."]


def test_parents_are_whole_sentences_and_children_repeat_only_what_is_in_their_parent():
    text = "Он и она. Да нет. Это не все тут. Как же так. Вот."
    found = chunked(ParentChild(12, 8, 3), text)
    assert [(chunk.parent.text, chunk.text) for chunk in found] == [
        ("Он и она. Да нет. Это не все тут.", "Он и она. Да нет."),
        ("Он и она. Да нет. Это не все тут.", "Да нет. Это не все тут."),
        ("Как же так. Вот.", "Как же так. Вот."),
    ]
    assert [chunk.handed for chunk in found] == [chunk.parent for chunk in found]


WORDED = st.lists(st.sampled_from(["ну", "вот", "aa", "中中"]), min_size=1, max_size=9).map(
    lambda words: " ".join(words)
)


@searched
@given(WORDED, OVERLAPPED)
def test_a_text_of_one_sentence_is_cut_as_by_fixed(text, both):
    size, overlap = both
    if WORDS.count(text) > size:
        assert spans(Sentence(size, overlap), text) == spans(Fixed(size, overlap), text)


@searched
@given(st.lists(WORDED, min_size=1, max_size=12), st.integers(19, 40), st.data())
def test_sentences_that_fit_are_whole_in_some_chunk(lines, size, data):
    text = " ".join(f"{line.capitalize()}." for line in lines)
    overlap = data.draw(st.integers(0, size - 1))
    for chunker in (Sentence(size, overlap), ParentChild(size + 5, size, overlap), Structure(size)):
        chunks = chunked(chunker, text)
        for match in re.finditer(r"[^.]+\.", text):
            start = match.start() + (match[0][0] == " ")
            assert any(chunk.start <= start and match.end() <= chunk.end for chunk in chunks), match[0]


@searched
@given(st.lists(st.integers(1, 12), max_size=20), SIZES, st.data())
def test_runs_are_as_long_as_they_can_be_and_overlap_by_whole_pieces(lengths, size, data):
    overlap = data.draw(st.integers(0, size - 1))
    edges = [sum(lengths[:count]) for count in range(len(lengths) + 1)]
    runs = list(packed(edges, size, overlap))
    atoms = {at for first, last in pairwise(edges) for at in (range(first, last) if last - first > size else [first])}
    following = {at: min(later for later in [*atoms, edges[-1]] if later > at) for at in atoms}
    assert all(start in atoms and end in {*atoms, edges[-1]} and start < end <= start + size for start, end in runs)
    assert all(following[end] - start > size for start, end in runs if end < edges[-1])
    for (_, end), (start, further) in pairwise(runs):
        assert end - overlap <= start <= end < further
    assert [runs[0][0], runs[-1][1]] == [0, edges[-1]] if lengths else runs == []


@searched
@given(st.lists(st.integers(1, 12), min_size=1, max_size=12), st.integers(12, 30))
def test_even_runs_are_no_more_than_needed_and_none_could_be_shorter(lengths, size):
    edges = [sum(lengths[:count]) for count in range(len(lengths) + 1)]
    runs = list(even(edges, size))
    assert [edge for edge, _ in runs] == [0, *(end for _, end in runs[:-1])]
    assert runs[-1][1] == edges[-1]
    assert len(runs) == len(list(packed(edges, size, 0)))
    longest = max(end - start for start, end in runs)
    assert longest <= size
    assert longest == max(lengths) or len(list(packed(edges, longest - 1, 0))) > len(runs)


GUIDE = """\
Вступление.

# Guide

Short words first.

## Prices

Here they are:

| Part | Price |
|---|---|
| Filter | 9 |
| Датчик | 64 |
| Motor | 189 |

### Notes

- One note of some length.
- Two notes.
  - And one within.
- Three.

## Steps

1. Open the door.
2. Close it.

```
# no heading
make && make install
```
"""


def outlined(size, text=GUIDE):
    return [(chunk.headings, chunk.text) for chunk in chunked(Structure(size), text)]


def test_sections_stay_whole_where_they_fit_and_small_ones_are_put_together():
    assert outlined(999) == [((), GUIDE.strip())]
    found = outlined(70)
    assert [headings for headings, _ in found] == [(), (), ("Guide",)]
    assert [text.splitlines()[0] for _, text in found] == ["Вступление.", "# Guide", "## Steps"]
    assert [text.splitlines()[0] for _, text in outlined(50)[1:]] == ["# Guide", "## Prices", "### Notes", "## Steps"]


def test_the_headings_of_a_chunk_are_those_above_it_but_not_those_in_it():
    found = {text.splitlines()[0]: headings for headings, text in outlined(30)}
    assert found == {
        "Вступление.": (),
        "# Guide": (),
        "## Prices": ("Guide",),
        "| Part | Price |": ("Guide", "Prices"),
        "### Notes": ("Guide", "Prices"),
        "## Steps": ("Guide",),
    }
    twins = (
        "# A\n\n## Same\n\nraz dva tri.\n\nraz dva tri.\n\n## Same\n\nraz dva tri.\n\nraz dva tri.\n\n# B\n\nraz dva"
    )
    assert [headings for headings, _ in outlined(9, twins)] == [(), ("A", "Same"), ("A",), ("A", "Same"), ()]


def test_lists_tables_and_code_stay_whole_where_they_fit():
    for whole in (
        re.search(r"(?s)\| Part.*?189 \|", GUIDE)[0],
        "- One note",
        "1. Open the door.\n2. Close it.",
        "```\n# no",
    ):
        assert any(whole in text for _, text in outlined(30))


def test_what_is_longer_is_cut_between_rows_and_items_and_the_head_of_a_table_stays_with_its_first_row():
    table = "| Part | Price |\n|---|---|\n" + "\n".join(f"| деталь. Новая {n} | {n} |" for n in range(9))
    found = [text for _, text in outlined(30, table)]
    assert found[0].startswith("| Part | Price |\n|---|---|\n| деталь. Новая 0 | 0 |")
    assert all(row.startswith("|") and row.endswith("|") for text in found for row in text.splitlines())
    items = "\n".join(f"- Item {n} of the list.\n  - It has a part." for n in range(5))
    assert [text.count("\n") for _, text in outlined(26, items)] == [3, 3, 1]
    assert all(text.startswith("- Item") for _, text in outlined(26, items))


def test_code_that_is_longer_is_cut_between_its_lines():
    code = "\n".join(["```py", *[f"print('Yes. No {n}')" for n in range(6)], "```"])
    found = [text for _, text in outlined(24, code)]
    assert [text.count("\n") for text in found] == [2, 1, 2]
    assert found[0].startswith("```py\nprint")
    assert found[-1].endswith(")\n```")


def test_no_last_row_is_left_by_itself():
    table = "\n".join(["| a | b |", "|---|---|", *["| раз | два |"] * 6])  # 14 tokens, and 5 a row
    assert [WORDS.count(text) for _, text in outlined(40, table)] == [24, 20]


def test_a_heading_stays_with_what_it_stands_above_and_an_introduction_with_what_it_introduces():
    text = "# Top\n\n## Rules\n\nThese are **ours:**\n\n" + "- one two three\n" * 5
    above, item = text[: text.index("\n\n- ")], "- one two three"
    assert [part for _, part in outlined(17, text)] == [f"{above}\n\n{item}", "\n".join([item] * 4)]
    assert [part for _, part in outlined(20, text)] == [above, "\n".join([item] * 5)], "a list that fits stays whole"
    text = "# Top\n\n## Rules\n\n- one two three\n- one two three\n\nThe last."
    assert [part for _, part in outlined(12, text)] == ["# Top\n\n## Rules", text[text.index("- one") :]]


def test_a_section_that_fits_stays_whole_though_its_title_is_then_alone():
    text = "# Top\n\n## Rules\n\nraz dva.\n\nraz dva."
    assert [part for _, part in outlined(11, text)] == [text]
    assert [part for _, part in outlined(10, text)] == ["# Top", text[7:]]
    assert outlined(8, text)[0][1] == "# Top\n\n## Rules\n\nraz dva."


def test_a_section_without_text_does_not_stay_with_the_next_one():
    text = "## One\n\n## Two\n\nraz dva.\n\nraz dva.\n\nraz dva."
    assert [part for _, part in outlined(9, text)][:2] == ["## One", "## Two\n\nraz dva."]


@pytest.mark.parametrize("under", ["Raz dva tri. Raz dva tri. Raz dva tri.", "raz dva tri " * 4])
def test_no_heading_that_fits_is_cut(under):
    heading = "## Aa bb? Cc dd ee ff"  # two sentences, 9 tokens
    assert outlined(9, f"{heading}\n\n{under}")[0][1] == heading


def test_a_plain_text_is_cut_between_paragraphs_then_sentences_then_tokens():
    text = "Раз два три. Раз два.\n\nЧетыре пять.\n\nШесть семь восемь девять. Десять.\n\nДа " + "нет " * 9
    assert [part for _, part in outlined(6, text)] == [
        "Раз два три.", "Раз два.", "Четыре пять.", "Шесть семь восемь девять.", "Десять.", "Да нет нет нет нет",
        "нет нет нет нет нет",
    ]  # fmt: skip


PAGE = """\
<!DOCTYPE html>
<html><head><title>Guide &amp; help</title><script>if (a < b) { "<h1>no</h1>" }</script></head>
<body><main>
<section class="a > b"><h1>Install
  <em>fast &amp; well</em></h1>
<p>First words. Then more.

    <p>Second paragraph, never closed.
</section><div><!-- steps --><h2>Steps</h2>
<ol><li>Open the door.</li><li>Go<ul><li>in</li><li>or out</li></ul></li></ol></div>
<h2>Цены</h2><table><thead><tr><th>Part<th>Price<tbody><tr><td>Датчик<td>64<tr><td>Motor<td>189</table>
</main></body></html>
"""


def test_html_is_cut_at_its_own_headings_lists_and_tables():
    install, steps, prices = "Install fast & well", "Steps", "Цены"
    found = outlined(75, PAGE)
    assert [(headings, text.splitlines()[0]) for headings, text in found] == [
        ((), "<!DOCTYPE html>"),
        ((), "<body><main>"),
        ((install,), "<div><!-- steps --><h2>Steps</h2>"),
        ((install,), PAGE.splitlines()[-2]),
    ]
    assert found[1][1].endswith("closed.\n</section>")
    assert found[2][1].endswith("</ol></div>")
    assert outlined(24, PAGE)[-4:-2] == [
        ((install, prices), "<tr><th>Part<th>Price<tbody>"),
        ((install, prices), "<tr><td>Датчик<td>64"),
    ]
    assert ((install, steps), "<ol><li>Open the door.</li>") in outlined(24, PAGE)


@pytest.mark.parametrize(
    ("size", "parts"),
    [
        (10, ["<p>one two<p>one two", "<p>one two"]),
        (10, ["<p>one two<hr>one two", "<p>one two"]),
        (24, ["<p>one two</p>", "<!-- about\nsteps --><ul><li>one</li></ul>"]),
        (11, ["<div><p>one</p>", "two three</div>"]),
        (12, ["<ul><li>one</li>", "<li>two</li></ul>"]),
        (8, ["<p>one two<br>", "three four</p>"]),
    ],
)
def test_every_block_of_html_begins_with_the_tags_that_open_it_and_ends_with_those_that_close_it(size, parts):
    assert [text for _, text in outlined(size, "".join(parts))] == parts


def test_the_headings_of_html_are_its_own_words_and_no_script_is_html():
    assert [heading.text for heading in Page(PAGE, 0, len(PAGE)).headings] == ["Install fast & well", "Steps", "Цены"]


def test_a_document_is_html_if_it_begins_with_a_tag_and_most_of_it_is_in_blocks():
    readme = "<p align=center>A logo</p>\n\n# Title\n\nWords that are in no block of HTML.\n"
    assert outlined(9, readme)[-1] == (("Title",), "Words that are in no block of HTML.")
    assert outlined(5, "a < b\n\n<https://a.example>")[0] == ((), "a < b")
    page = "<div>\n\n# one two three.\n\nFour five six.\n\n</div>"
    assert outlined(8, page)[-1] == ((), "Four five six.\n\n</div>"), "in HTML this is no heading"
    nested = "# Title\n\n<table>\n<tr><td>one</td></tr>\n<tr><td>two</td></tr>\n</table>\n\n<h2>More</h2>\n\nwords"
    assert outlined(20, f"{nested} and more\n\n> # Quoted\n\n{'words ' * 18}") == [
        ((), "# Title\n\n<table>\n<tr><td>one</td></tr>"),
        (("Title",), "<tr><td>two</td></tr>\n</table>"),
        (("Title",), "<h2>More</h2>\n\nwords and more\n\n> # Quoted"),
        (("Title", "More"), ("words " * 18).strip()),
    ]


def test_front_matter_is_no_heading():
    text = "---\ntitle: Отпуск\n---\n\n# Rules\n\nraz dva tri\n\nraz dva tri\n"
    assert outlined(7, text)[-1] == (("Rules",), "raz dva tri")
    for line in ("\n", "\r\n", "\r"):
        assert [heading.text for heading in markdown(text.replace("\n", line)).headings] == ["Rules"]
    assert [heading.text for heading in markdown("---\n\nno title: here\n\n# Rules\n").headings] == ["Rules"]


BLOCKS = st.one_of(
    st.tuples(st.just("#"), st.integers(1, 4), WORDED),
    st.tuples(st.just("p"), st.lists(WORDED, min_size=1, max_size=4), st.sampled_from([".", ":"])),
    st.tuples(st.just("ul"), st.lists(WORDED, min_size=1, max_size=5), st.just("")),
    st.tuples(st.just("table"), st.lists(WORDED, min_size=1, max_size=5), st.just("")),
    st.tuples(st.just("```"), st.lists(WORDED, min_size=1, max_size=5), st.just("")),
)


# Of two lists one after the other Markdown would make one.
DOCUMENTS = st.lists(BLOCKS, max_size=9).map(
    lambda blocks: [block for before, block in pairwise([("",), *blocks]) if not before[0] == block[0] == "ul"]
)


def titled(words):
    """A heading that is more than one sentence, and one all the same."""
    return f"{words}? {words.capitalize()}"


def in_markdown(kind, one, other):
    if kind == "#":
        return f"{'#' * one} {titled(other)}"
    if kind == "p":
        return " ".join(f"{words.capitalize()}." for words in one)[:-1] + other
    if kind == "ul":
        return "\n".join(f"- {words}" for words in one)
    if kind == "table":
        return "\n".join(["| a | b |", "|---|---|", *[f"| {words} | 1 |" for words in one]])
    return "\n".join(["```", *one, "```"])


def in_html(kind, one, other):
    if kind == "#":
        return f"<h{one}>{titled(other)}</h{one}>"
    if kind == "p":
        return f"<p>{in_markdown(kind, one, other)}</p>"
    if kind == "ul":
        return f"<ul>{''.join(f'<li>{words}</li>' for words in one)}</ul>"
    if kind == "table":
        return f"<table><tr><th>a</th></tr>{''.join(f'<tr><td>{words}</td></tr>' for words in one)}</table>"
    return f"<pre>{' '.join(one)}</pre>"


@searched
@given(DOCUMENTS, st.integers(1, 50), st.sampled_from([in_markdown, in_html]))
def test_headings_lists_tables_and_code_that_fit_are_whole_in_one_chunk(blocks, size, written):
    parts = [written(*block) for block in blocks]
    text = "\n\n".join(parts)
    chunks, at = chunked(Structure(size), text), 0
    for block, part in zip(blocks, parts, strict=True):
        if block[0] != "p" and WORDS.count(part) <= size:
            assert any(chunk.start <= at and at + len(part) <= chunk.end for chunk in chunks), part
        at += len(part) + 2


@searched
@given(DOCUMENTS, st.integers(1, 50), st.sampled_from([in_markdown, in_html]))
def test_headings_are_those_of_every_section_that_holds_a_chunk(blocks, size, written):
    parts = [written(*block) for block in blocks]
    text, at, headings = "\n\n".join(parts), 0, []
    for (kind, level, words), part in zip(blocks, parts, strict=True):
        headings += [(at, level, titled(words))] if kind == "#" else []
        at += len(part) + 2
    for chunk in chunked(Structure(size), text):
        above = []
        for number, (start, level, words) in enumerate(headings):
            end = next((later for later, other, _ in headings[number + 1 :] if other <= level), len(text))
            assert not start < chunk.start < end or chunk.end <= end, "no chunk begins in a section and leaves it"
            above += [words] if start < chunk.start < end else []
        assert list(chunk.headings) == above
