"""Files of a run directory: what is written is read back, and what is something else is refused."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ablate.files import BrokenRecord, encoded, read_lines

NAMES = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
VALUES = st.none() | st.floats(allow_nan=False, allow_infinity=False) | NAMES | st.lists(st.integers(), max_size=3)


@given(st.dictionaries(NAMES, VALUES, max_size=5))
def test_named_lines_are_read_back_as_they_were_written(tmp_path_factory, content):
    path = tmp_path_factory.mktemp("run") / "строки.jsonl"
    path.write_bytes(encoded(path.name, [list(content), *content.values()]))
    assert dict(read_lines(path)) == content


def test_a_line_that_runs_have_in_common_is_in_memory_once(tmp_path):
    for name in "ab":
        (tmp_path / name).write_bytes(encoded("x.jsonl", [["queries", "own"], ["вопрос 1", "вопрос 2"], name]))
    one, other = (read_lines(tmp_path / name) for name in "ab")
    assert one["queries"] is other["queries"]
    assert (one["own"], other["own"]) == ("a", "b")


@pytest.mark.parametrize("text", ["", '["a"]\n', '["a"]\n1\n2\n', '["a", "b"]\n1', "7", '[["a"]]\n1\n'])
def test_lines_without_a_name_and_names_without_a_line_are_refused(tmp_path, text):
    (tmp_path / "x.jsonl").write_text(text)
    with pytest.raises(BrokenRecord, match=r"x\.jsonl: found .+, expected names and a line each; delete the file"):
        read_lines(tmp_path / "x.jsonl")


def test_a_broken_line_is_told_when_it_is_asked_for(tmp_path):
    (tmp_path / "x.jsonl").write_text('["a", "b"]\n1\n[1.0, nul\n')
    found = read_lines(tmp_path / "x.jsonl")
    assert (found["a"], list(found), len(found), "c" in found) == (1, ["a", "b"], 2, False)
    with pytest.raises(BrokenRecord, match=r"x\.jsonl: found .+, expected JSON a line; delete the file"):
        found["b"]
