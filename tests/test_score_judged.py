"""How much of a ranking the ground truth speaks of, by hand and against Judged@k as ir_measures computes it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ablate.score.judged import judged, judged_at
from ablate.types import Chunk, Document, Judgment, Span, Truth, Unit

RULE, OTHER = Document("правило", "Возврат возможен 14 дней."), Document("other", "Something else altogether.")
EVIDENCE = Unit("правило", (Span(17, 19),))
NEEDED = Truth("q", (((EVIDENCE,),),), documents={"правило": 1})


def at(truth, *chunks, k=3):
    return judged_at(truth, chunks, [k])[f"retrieval/judged_at_{k}"]


def test_a_chunk_is_judged_that_overlaps_evidence_by_one_character():
    assert judged(NEEDED)(Chunk(RULE, 18, 25))
    assert not judged(NEEDED)(Chunk(RULE, 19, 25))
    assert not judged(NEEDED)(Chunk(RULE, 0, 17))
    assert not judged(NEEDED)(Chunk(OTHER, 17, 19))


def test_not_relevant_is_judged_too():
    known = Truth("q", judged=(Judgment(Unit("other", (Span(0, 9),)), 0),))
    assert at(known, Chunk(OTHER, 8, 12), Chunk(OTHER, 9, 12), Chunk(RULE, 0, 5), k=3) == pytest.approx(1 / 3)
    assert at(Truth("q", documents={"other": 0}), Chunk(OTHER, 0, 5), Chunk(RULE, 0, 5), k=2) == 0.5


def test_a_whole_document_speaks_of_all_its_chunks():
    assert at(Truth("q", (((Unit("other"),),),)), Chunk(OTHER, 20, 25), k=1) == 1


def test_a_complete_list_says_that_everything_else_is_not_relevant():
    assert at(Truth("q", judged=(Judgment(EVIDENCE, 1),), complete=True), Chunk(OTHER, 0, 5)) == 1


def test_it_is_a_share_of_what_was_found_up_to_k_duplicates_aside():
    held, unknown = Chunk(RULE, 0, 25), Chunk(OTHER, 0, 9)
    assert at(NEEDED, held, held, unknown, Chunk(OTHER, 9, 20), k=2) == 0.5
    assert at(NEEDED, held, unknown, k=10) == 0.5
    assert at(NEEDED, unknown, held, k=1) == 0


def test_where_nothing_was_found_nothing_is_left_to_review():
    assert at(NEEDED) == 1


def test_it_does_not_apply_where_the_ground_truth_judges_nothing():
    assert at(Truth("q"), Chunk(OTHER, 0, 9)) is None
    assert at(Truth("q")) is None


@given(
    st.dictionaries(st.sampled_from("abcdж"), st.integers(0, 3), min_size=1),
    st.lists(st.sampled_from("abcdжя"), min_size=1, unique=True),
    st.integers(1, 8),
)
def test_on_documents_it_is_judged_at_k_of_ir_measures(grades, ranking, k):
    first = ranking[:k]
    expected = sum(name in grades for name in first) / min(k, len(ranking))
    assert at(Truth("q", documents=grades), *(Chunk(Document(name, "x"), 0, 1) for name in ranking), k=k) == expected
