"""The program's scores against the slow reference, and the reference against values worked out by hand."""

import json
import math
import re
from pathlib import Path

import pytest
import reference
from hypothesis import given, settings
from hypothesis import strategies as st
from reference import Case

from ablate.score import Scoring
from ablate.score.context import context
from ablate.score.doc import doc
from ablate.score.retrieval import retrieval
from ablate.types import Chunk, Context, Document, Judgment, Span, Truth, Unit

CASES = Path(__file__).parents[2] / "shared" / "cases" / "scores"
CUTOFFS = [1, 2, 3, 5, 10]
EXACT = re.compile("retrieval/(coverage|sufficient)_at_|retrieval/completion_rank|context/(coverage|sufficient)")
ALPHABET = "abZ7жЁ日本²_ .\n\u0301\u0306"
"""Letters of three scripts, digits, and what is neither: an underscore, punctuation, white space, combining marks."""


# The program's records, made of the reference's plain tuples.


def documents_of(case):
    return {name: Document(id=name, text=text) for name, text in case.texts.items()}


def unit_of(unit):
    return Unit(unit[0], tuple(Span(*span) for span in unit[1]))


def truth_of(case):
    return Truth(
        query="q",
        alternatives=tuple(tuple(tuple(map(unit_of, fact)) for fact in facts) for facts in case.alternatives),
        judged=tuple(Judgment(unit_of(unit), grade) for unit, grade in case.judged),
        documents=case.grades,
    )


def chunks_of(documents, chunks):
    return [Chunk(documents[name], start, end) for name, start, end in chunks]


def scoring_of(case):
    return Scoring(cutoffs=CUTOFFS, span_threshold=case.threshold, cost={}, false_answer_cost=1.0)


def retrieved(case, ranking):
    documents = documents_of(case)
    return retrieval(truth_of(case), chunks_of(documents, ranking), documents, case.denied, scoring_of(case))


def handed(case, passages, tokens=7):
    documents = documents_of(case)
    given = Context(chunks_of(documents, passages), tokens)
    return context(truth_of(case), given, documents, case.denied, scoring_of(case))


def close(value, right, tolerance):
    if value is None or right is None or value == right:
        return value == right
    return abs(value - right) <= tolerance


def assert_equal(values, expected):
    assert values.keys() == expected.keys()
    different = {
        name: f"{values[name]}, by the reference {right}"
        for name, right in expected.items()
        if not close(values[name], right, 0 if EXACT.match(name) else 1e-12)
    }
    assert not different


# Small data sets.


@st.composite
def intervals(draw, text):
    start = draw(st.integers(0, len(text) - 1))
    return start, draw(st.integers(start + 1, len(text)))


@st.composite
def spans(draw, text):
    """An interval that holds at least one letter or digit: a unit without any is refused when it is read."""
    letter = draw(st.sampled_from([i for i, character in enumerate(text) if character.isalnum()]))
    return draw(st.integers(max(0, letter - 2), letter)), draw(st.integers(letter + 1, min(len(text), letter + 3)))


@st.composite
def units(draw, texts, whole=True):
    lettered = [name for name, text in texts.items() if any(map(str.isalnum, text))]
    if not lettered or (whole and draw(st.integers(0, 4)) == 0):
        return draw(st.sampled_from(sorted(texts))), ()
    name = draw(st.sampled_from(lettered))
    return name, tuple(draw(st.lists(spans(texts[name]), min_size=1, max_size=2, unique=True)))


@st.composite
def cases(draw):
    some = st.text(ALPHABET, min_size=3, max_size=9)
    texts = dict(zip(("d", "ж", "0"), draw(st.lists(some, min_size=1, max_size=3)), strict=False))
    facts = st.lists(units(texts), min_size=1, max_size=2, unique=True).map(tuple)
    alternatives = st.lists(st.lists(facts, min_size=1, max_size=3, unique=True).map(tuple), max_size=3)
    judged = st.lists(units(texts, whole=False).filter(lambda unit: unit[1]), max_size=4, unique=True)
    if not any(character.isalnum() for text in texts.values() for character in text):
        judged = st.just([])
    return Case(
        texts,
        tuple(draw(alternatives)),
        tuple((unit, draw(st.integers(0, 3))) for unit in draw(st.one_of(st.just([]), judged))),
        denied=draw(st.frozensets(st.sampled_from(sorted(texts)), max_size=1)),
        threshold=draw(st.sampled_from((1.0, 1.0, 0.8, 0.75, 1 / 3))),
    )


@st.composite
def cases_and_rankings(draw):
    case = draw(cases())
    whole = [(name, 0, len(text)) for name, text in case.texts.items()]
    pieces = st.sampled_from(sorted(case.texts)).flatmap(
        lambda name: intervals(case.texts[name]).map(lambda span: (name, *span))
    )
    return case, draw(st.lists(st.one_of(pieces, pieces, pieces, st.sampled_from(whole)), max_size=8))


searched = settings(max_examples=200, deadline=None)


@searched
@given(cases_and_rankings())
def test_retrieval_equals_the_reference(drawn):
    case, ranking = drawn
    expected = reference.retrieval(case, ranking, CUTOFFS)
    values = retrieved(case, ranking)
    for k in CUTOFFS:
        # Where several units of a fact are completed together, any of them may be the first.
        name = f"retrieval/precision_at_{k}"
        allowed = reference.precisions(case, list(dict.fromkeys(ranking)), k)
        expected[name] = values[name] if values[name] in map(float, allowed) else expected[name]
    assert_equal(values, expected)


@settings(max_examples=80, deadline=None)
@given(cases_and_rankings(), st.randoms(use_true_random=False))
def test_values_do_not_depend_on_the_order_in_which_the_ground_truth_is_written(drawn, random):
    def shuffled(items):
        return tuple(random.sample(items, len(items)))

    case, ranking = drawn
    alternatives = (shuffled([shuffled(fact) for fact in facts]) for facts in case.alternatives)
    rewritten = case._replace(alternatives=shuffled(list(alternatives)), judged=shuffled(case.judged))
    assert retrieved(rewritten, ranking) == retrieved(case, ranking)
    assert handed(rewritten, ranking) == handed(case, ranking)


IDS = st.sampled_from(("d", "ж", "0", "00", "d 1"))


@searched
@given(st.dictionaries(IDS, st.integers(-1, 3)), st.lists(IDS, max_size=8))
def test_doc_equals_the_reference(grades, ranking):
    chunks = [(document, i, i + 1) for i, document in enumerate(ranking)]
    assert_equal(doc(grades, ranking, CUTOFFS), reference.doc(Case({}, grades=grades), chunks, CUTOFFS))


@searched
@given(cases_and_rankings())
def test_context_equals_the_reference(drawn):
    case, passages = drawn
    assert_equal(handed(case, passages), reference.context(case, passages, tokens=7))


@settings(max_examples=50, deadline=None)
@given(cases_and_rankings())
def test_recall_is_coverage_where_no_span_is_judged_relevant(drawn):
    case, ranking = drawn
    values = retrieved(case._replace(judged=()), ranking)
    for k in CUTOFFS:
        assert values[f"retrieval/recall_at_{k}"] == values[f"retrieval/coverage_at_{k}"]


# Worked out by hand.

GUIDE = {"full-guide": "полный", "rule": "rule", "exception": "кроме", "unrelated": "other"}
RULE_AND_EXCEPTION = Case(
    GUIDE,
    (
        ((("full-guide", ((0, 6),)),),),
        ((("rule", ((0, 4),)),), (("exception", ((0, 5),)),)),
    ),
)
ALPHA = {"a": "abcdefgh", "б": "абвгдежз"}


def span(document, start, end):
    return (document, ((start, end),))


def both(case, ranking):
    """The program's values, after the reference's were found equal."""
    values = retrieved(case, ranking)
    assert_equal(values, reference.retrieval(case, ranking, CUTOFFS))
    return {name.removeprefix("retrieval/"): value for name, value in values.items()}


@pytest.mark.parametrize(
    ("retrieved", "covered", "enough"),
    [
        (["full-guide"], 1.0, 1),
        (["rule", "exception"], 1.0, 1),
        (["rule", "unrelated"], 0.5, 0),
        (["full-guide", "full-guide"], 1.0, 1),
        (["unrelated"], 0.0, 0),
        ([], 0.0, 0),
    ],
)
def test_full_guide_or_rule_and_exception(retrieved, covered, enough):
    ranking = [(name, 0, len(GUIDE[name])) for name in retrieved]
    values = both(RULE_AND_EXCEPTION, ranking)
    assert (values["coverage_at_10"], values["sufficient_at_10"]) == (covered, enough)
    packed = handed(RULE_AND_EXCEPTION, ranking)
    assert (packed["context/coverage"], packed["context/sufficient"]) == (covered, enough)


def test_a_whole_guide_never_lends_a_fact_to_another_alternative():
    case = Case(
        ALPHA,
        (
            ((span("a", 0, 2),), (span("a", 2, 4),)),
            ((span("a", 4, 6),), (span("a", 6, 8),)),
        ),
    )
    values = both(case, [("a", 0, 2), ("a", 4, 6)])
    assert (values["coverage_at_2"], values["sufficient_at_2"], values["completion_rank"]) == (0.5, 0, math.inf)


def test_ndcg_writes_down_units_best_grade_first_and_an_empty_place_for_a_chunk_that_completes_none():
    # Grades 3, 1, 2. The first chunk completes nothing, the second all three: the places are 0 3 2 1.
    #   DCG@3 = 3/log2(3) + 2/log2(4)        = 1.892789 + 1              = 2.892789
    #   IDCG@3 = 3 + 2/log2(3) + 1/log2(4)   = 3 + 1.261860 + 0.5        = 4.761860
    #   DCG@5 = DCG@3 + 1/log2(5)            = 2.892789 + 0.430677       = 3.323466
    case = Case(ALPHA, judged=((span("a", 0, 2), 3), (span("a", 2, 4), 1), (span("a", 4, 6), 2)))
    values = both(case, [("a", 0, 1), ("a", 1, 6)])
    assert values["ndcg_at_1"] == 0
    assert values["ndcg_at_3"] == pytest.approx(2.892789 / 4.761860, abs=1e-6)
    assert values["ndcg_at_5"] == pytest.approx(3.323466 / 4.761860, abs=1e-6)
    assert (values["recall_at_1"], values["recall_at_2"], values["mrr"]) == (0, 1, 0.5)
    assert values["coverage_at_1"] is None


def test_every_measure_takes_its_own_maximum_over_the_alternatives():
    # One alternative has its first fact at 2 and its second never: nDCG (1/log2(3)) / (1 + 1/log2(3)) = 0.386853.
    # The other has its only fact at 3: nDCG 1/log2(4) = 0.5 and all of it, but its reciprocal rank is only 1/3.
    case = Case(ALPHA, (((span("a", 0, 2),), (span("a", 4, 6),)), ((span("б", 0, 2),),)))
    values = both(case, [("a", 7, 8), ("a", 0, 2), ("б", 0, 2)])
    assert values["ndcg_at_2"] == pytest.approx(0.386853, abs=1e-6)
    assert values["ndcg_at_3"] == pytest.approx(0.5, abs=1e-12)
    assert (values["mrr"], values["recall_at_2"], values["recall_at_3"], values["completion_rank"]) == (0.5, 0.5, 1, 3)


def test_precision_counts_chunks_that_bring_new_letters_of_what_is_complete_by_k_over_k():
    # "абвг" is complete with the third chunk. Chunks 1 and 3 bring its letters, chunk 2 only repeats, chunk 4 is late.
    #   at 1 and 2: nothing is complete = 0;   at 3: 2/3;   at 5: 2/5, though only four chunks were returned
    case = Case(ALPHA, (((span("б", 0, 4),),),))
    values = both(case, [("б", 0, 2), ("б", 0, 1), ("б", 2, 6), ("б", 0, 8)])
    at = [values[f"precision_at_{k}"] for k in CUTOFFS]
    assert at == pytest.approx([0, 0, 2 / 3, 2 / 5, 2 / 10], abs=1e-12)


def test_precision_of_a_fact_counts_the_letters_of_its_first_completed_unit_only():
    case = Case(ALPHA, (((span("a", 0, 4), span("б", 0, 4)),),))
    values = both(case, [("a", 0, 2), ("б", 0, 4), ("a", 2, 4)])
    assert values["precision_at_3"] == pytest.approx(1 / 3, abs=1e-12)


def test_a_chunk_that_comes_again_has_no_second_rank():
    values = both(Case(ALPHA, (((span("б", 0, 2),),),)), [("a", 0, 8), ("a", 0, 8), ("a", 0, 8), ("б", 0, 8)])
    assert (values["completion_rank"], values["mrr"], values["precision_at_2"]) == (2, 0.5, 0.5)


def test_a_unit_cut_between_two_chunks_is_found_when_both_are():
    values = both(Case(ALPHA, (((span("б", 0, 8),),),)), [("б", 0, 5), ("a", 0, 8), ("б", 4, 8)])
    assert values["completion_rank"] == 3


def test_spans_of_a_unit_share_one_threshold():
    # Nothing of the second span is there, yet 6 of 8 letters are: 0.75 of the unit.
    case = Case(ALPHA, ((((("a", ((0, 6), (6, 8)))),),),), threshold=0.75)
    assert both(case, [("a", 0, 6)])["sufficient_at_1"] == 1
    assert both(case, [("a", 0, 5)])["sufficient_at_1"] == 0


def test_a_threshold_is_the_decimal_that_was_written():
    # In binary 0.55 * 20 is above 11, so a product of floats would miss that 11 of 20 letters are 0.55.
    case = Case({"а": "ё" * 20}, (((span("а", 0, 20),),),), threshold=0.55)
    assert both(case, [("а", 0, 11)])["sufficient_at_1"] == 1
    assert both(case, [("а", 0, 10)])["sufficient_at_1"] == 0


def test_white_space_punctuation_and_combining_marks_are_not_needed():
    case = Case({"й": "и\u0306, 日!"}, (((span("й", 0, 6),),),))
    assert both(case, [("й", 0, 1), ("й", 4, 5)])["completion_rank"] == 2


def test_an_unreadable_chunk_keeps_its_rank_and_supports_nothing():
    case = Case(ALPHA, (((span("a", 0, 8), span("б", 0, 8)),),), denied=frozenset("a"))
    values = both(case, [("a", 0, 8), ("б", 0, 8)])
    assert (values["completion_rank"], values["precision_at_2"], values["coverage_at_1"]) == (2, 0.5, 0)
    assert values["ndcg_at_2"] == pytest.approx(1 / math.log2(3), abs=1e-12)


def test_any_chunk_of_a_document_meets_a_unit_without_spans():
    values = both(Case({"а": " Б."}, (((("а", ()),),),)), [("а", 0, 1)])
    assert values["completion_rank"] == 1


def test_spans_judged_not_relevant_leave_the_measures_to_the_alternatives():
    case = Case(ALPHA, (((span("a", 0, 2),),),), judged=((span("б", 0, 2), 0),))
    assert both(case, [("a", 0, 2)])["recall_at_1"] == 1
    assert both(case._replace(alternatives=()), [("б", 0, 2)])["recall_at_1"] is None


def read(name):
    return [json.loads(line) for line in (CASES / name).read_text(encoding="utf-8").splitlines()]


def plain(unit):
    spans = unit.get("spans", [[unit["start"], unit["end"]]] if "start" in unit else [])
    return unit["doc_id"], tuple(map(tuple, spans))


def plain_alternative(units):
    facts = {}
    for i, unit in enumerate(units):
        facts.setdefault(unit.get("fact", i), []).append(plain(unit))
    return tuple(map(tuple, facts.values()))


@pytest.mark.slow
@pytest.mark.skipif(not CASES.is_dir(), reason="the shared cases are not here")
def test_the_reference_agrees_with_the_shared_cases():
    expected = json.loads((CASES / "spans.expected.json").read_text(encoding="utf-8"))
    texts = {document["_id"]: document["text"] for document in read("corpus.jsonl")}
    rankings = {
        line["query_id"]: [(hit["doc_id"], hit["start"], hit["end"]) for hit in line["hits"]]
        for line in read("spans.run.jsonl")
    }
    for line in read("ground_truth.jsonl"):
        query = line["query_id"]
        case = Case(
            texts,
            tuple(map(plain_alternative, line["alternatives"])),
            tuple((plain(unit), unit["grade"]) for unit in line.get("relevant", ())),
        )
        right = {
            name: math.inf if value is None and name == "retrieval/completion_rank" else value
            for name, value in expected["per_query"][query].items()
        }
        values = reference.retrieval(case, rankings[query], expected["k"])
        assert_equal({name: values[name] for name in right}, right)
