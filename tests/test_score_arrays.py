"""Many rankings at once: every bit as one by one, and a TREC file read at once as it is line by line."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ablate.dataset.qrels import at_once
from ablate.errors import DatasetError
from ablate.score import trec
from ablate.score.doc import doc
from ablate.score.documents import Ragged, graded, mean, measured, of_rankings, total

NAMES = [f"d{number}" for number in range(9)] + ["д", "я ё"]
GRADES = st.dictionaries(st.sampled_from(NAMES), st.integers(-1, 4))
RANKING = st.lists(st.sampled_from(NAMES), max_size=14)
CUTOFFS = [1, 3, 5, 10]


@given(st.lists(st.tuples(GRADES, RANKING), max_size=6))
def test_in_one_pass_or_one_by_one_is_the_same_to_the_bit(queries):
    grades, rankings = [known for known, _ in queries], [ranking for _, ranking in queries]
    assert of_rankings(grades, rankings, CUTOFFS) == [doc(*pair, CUTOFFS) for pair in queries]


@given(st.lists(st.tuples(GRADES, RANKING), min_size=1, max_size=6))
def test_numbers_for_documents_give_the_same_too(queries):
    numbers = {name: number for number, name in enumerate(NAMES)}
    ranked = Ragged.of([[numbers[name] for name in ranking] for _, ranking in queries]).once
    judged = Ragged.of([[numbers[name] for name in known] for known, _ in queries])
    grades = np.array([grade for known, _ in queries for grade in known.values()], np.int64)
    found = measured(*graded(ranked, judged, grades), CUTOFFS)
    for number, pair in enumerate(queries):
        expected = doc(*pair, CUTOFFS)
        assert {
            name: None if math.isnan(column[number]) else column[number] for name, column in found.items()
        } == expected
    for name, column in found.items():
        values = [value for pair in queries if (value := doc(*pair, CUTOFFS)[name]) is not None]
        assert mean(column) == (math.fsum(values) / len(values) if values else None)


@given(st.lists(st.tuples(st.integers(0, 3), st.floats(1 / 64, 64)), max_size=60))
def test_sums_are_rounded_once(pairs):
    rows, terms = (np.array([pair[part] for pair in pairs], kind) for part, kind in ((0, np.int64), (1, np.float64)))
    expected = [math.fsum(term for row, term in pairs if row == query) for query in range(4)]
    assert total(rows, terms, 4).tolist() == expected


def test_a_long_sum_of_unlike_terms_is_rounded_once():
    terms = np.array([1 / math.log2(place + 1) for place in range(1, 20_000)] * 2)
    rows = np.repeat([0, 1], len(terms) // 2)
    assert total(rows, terms, 2).tolist() == [math.fsum(terms[: len(terms) // 2].tolist())] * 2


WORD = st.sampled_from(["q1", "q2", "в1", "я", "a%20b", "d\u00a07", "d8", "a b"])
SCORE = st.sampled_from(["1", "2.5", "-0.0", "0", "1e3", "0.1000000000000000055", ".5", "1_0", "3.0000001"])
BLANK = st.sampled_from([" ", " ", " ", " ", " ", "\t", "  "])


@st.composite
def files(draw):
    """TREC files, most of them tidy: now and then a tab, two blanks, a blank line, another ending or tag."""
    odd = draw(st.booleans())
    tag = draw(st.sampled_from(["run", "ablate-pct"]))
    lines = []
    for query, document, score in draw(st.lists(st.tuples(WORD, WORD, SCORE), min_size=1, max_size=8)):
        words = [query.replace(" ", "_"), "Q0", document.replace(" ", "_"), "1", score, tag]
        if odd and draw(st.integers(0, 5)) == 0:
            words[5] = "other"
        blank = draw(BLANK) if odd else " "
        lines.append(blank.join(words) + (draw(st.sampled_from(["\n", "\r\n", "\n\n"])) if odd else "\n"))
    text = "".join(lines)
    return (text.removesuffix("\n") if draw(st.booleans()) else text).encode()


@settings(max_examples=200, deadline=None)
@given(files())
def test_a_file_read_at_once_is_what_it_is_line_by_line(data):
    slow, quick = trec.line_by_line("run", data), trec.at_once(data)
    if quick is None:  # something needs a closer look
        return
    assert quick.lines.tolist() == slow.lines.tolist()
    assert quick.scores.tolist() == slow.scores.tolist()
    for one, other in ((quick.queries, slow.queries), (quick.documents, slow.documents)):
        assert [one.ids[code] for code in one.codes] == [other.ids[code] for code in other.codes]


def test_tidy_files_are_read_at_once():
    assert trec.at_once("q1 Q0 д1 1 0.5 run\nq1 Q0 d2 2 0.25 run".encode()) is not None
    for text in (
        "q Q0  1 0.5 run\n",
        " q Q0 d 1 5\n",
        "q Q0 d 1 5 \n",
        "q\tQ0 d 1 5 t\n",
        "q Q0 d 1 nan t\n",
        "q Q0 d 1  t\n",
    ):
        assert trec.at_once(text.encode()) is None, text


@pytest.mark.parametrize("large", [0, 1 << 30])
def test_order_ties_duplicates_and_mistakes_do_not_depend_on_how_a_file_is_read(monkeypatch, large):
    monkeypatch.setattr(trec, "LARGE", large)
    numbers = {"d1": 0, "d2": 1, "д3": 2}
    text = "q2 Q0 d1 1 1.0 t\nq1 Q0 d1 1 2.0 t\nq2 Q0 д3 2 1.0 t\nq1 Q0 d2 2 3.0 t\nq2 Q0 d1 3 9 t\n"
    found = trec.hits("run", text.encode(), numbers)
    assert (found.queries, found.where) == (["q2", "q1"], [1, 2])
    assert (found.documents.values.tolist(), found.documents.bounds.tolist()) == ([0, 2, 0, 1, 0], [0, 3, 5])
    assert found.documents.once.values.tolist() == [0, 2, 1, 0]
    with pytest.raises(DatasetError, match="run:2: found the document 'd9'"):
        trec.hits("run", b"q Q0 d1 1 1 t\nq Q0 d9 1 1 t\n", numbers)
    with pytest.raises(DatasetError, match="run:2: found the score inf"):
        trec.hits("run", b"q Q0 d1 1 1 t\nq Q0 d2 1 inf t\n", numbers)


LINES = st.lists(
    st.sampled_from(["q\td\t1", "q\te\t0", "я\td\t2", "q\td\t-1", "q d 1", "q\t0\td\t1", "x\td\t1", "q\td\t1 "])
)


@given(st.booleans(), LINES)
def test_a_tidy_qrels_file_is_read_at_once_as_line_by_line(header, rows):
    data = "".join(f"{row}\n" for row in [*(["query-id\tcorpus-id\tscore"] if header else []), *rows]).encode()
    quick = at_once(data, {"q", "я"}, {"d", "e"})
    if quick is None:
        return
    found = {}
    for row in rows:
        query, document, grade = row.split("\t")
        found.setdefault(query, {})[document] = int(grade)
    assert quick == found
