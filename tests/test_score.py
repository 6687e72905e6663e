"""What the scores promise: the reference table of the contract, its formulas by hand, and the laws they obey."""

import itertools
import math
import random
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
import pytrec_eval
from fakes import reader
from hypothesis import given
from hypothesis import strategies as st

from ablate.errors import ConfigError
from ablate.measures import describe
from ablate.score import Exposure, Scoring, of_ranking, of_trace, summarise, to_json
from ablate.score.acl import acl
from ablate.score.chunking import chunking
from ablate.score.context import context
from ablate.score.cost import cost
from ablate.score.doc import doc
from ablate.score.evidence import lay_out
from ablate.score.ingestion import ingestion
from ablate.score.latency import latency, order_bounds, paired
from ablate.score.retrieval import retrieval
from ablate.types import Candidates, Chunk, Context, Document, Hit, Judgment, Query, Span, Trace, Truth, Unit

SCORING = Scoring(cutoffs=[1, 2, 3, 5], span_threshold=1.0, cost={}, false_answer_cost=1.0)
NOBODY_DENIED = frozenset()


def document(name, text="слово"):
    return Document(name, text)


def by_id(*documents):
    return {each.id: each for each in documents}


def whole(each):
    return Chunk(each, 0, len(each.text))


def unit(each, quote=None):
    if quote is None:
        return Unit(each.id)
    start = each.text.index(quote)
    return Unit(each.id, (Span(start, start + len(quote)),))


def part(each, quote):
    span = unit(each, quote).spans[0]
    return Chunk(each, span.start, span.end)


def one_of(*alternatives):
    """A truth whose alternatives are lists of units, each a fact of its own."""
    return Truth("q", tuple(tuple((each,) for each in units) for units in alternatives))


def scored(truth, ranking, documents, scoring=SCORING, denied=NOBODY_DENIED):
    found = retrieval(truth, ranking, documents, denied, scoring)
    return {name.removeprefix("retrieval/"): value for name, value in found.items()}


GUIDE, RULE, EXCEPTION, OTHER = (document(name) for name in ("full-guide", "rule", "exception", "unrelated"))
LIBRARY = by_id(GUIDE, RULE, EXCEPTION, OTHER)


@pytest.mark.parametrize("spanned", [True, False], ids=["spans", "whole documents"])
@pytest.mark.parametrize(
    ("retrieved", "coverage", "sufficient"),
    [
        ([GUIDE], 1.0, 1.0),
        ([RULE, EXCEPTION], 1.0, 1.0),
        ([RULE, OTHER], 0.5, 0.0),
        ([GUIDE, GUIDE], 1.0, 1.0),
        ([OTHER], 0.0, 0.0),
        ([], 0.0, 0.0),
    ],
)
def test_the_reference_table_of_the_contract_holds(retrieved, coverage, sufficient, spanned):
    guide, rule, exception = (unit(each, each.text if spanned else None) for each in (GUIDE, RULE, EXCEPTION))
    truth, chunks = one_of([guide], [rule, exception]), [whole(each) for each in retrieved]
    values = scored(truth, chunks, LIBRARY)
    assert (values["coverage_at_2"], values["sufficient_at_2"]) == (coverage, sufficient)
    handed = context(truth, Context(chunks, 0), LIBRARY, NOBODY_DENIED, SCORING)
    assert (handed["context/coverage"], handed["context/sufficient"]) == (coverage, sufficient)


def test_facts_are_never_put_together_from_different_alternatives():
    a, b, c, d = (document(name) for name in "abcd")
    truth = one_of([unit(a), unit(b)], [unit(c), unit(d)])
    assert scored(truth, [whole(a), whole(d)], by_id(a, b, c, d))["coverage_at_2"] == 0.5


def test_a_fact_split_over_two_chunks_is_found_when_both_are():
    text = document("d", "Возврат возможен. Но не позже 14 дней!")
    truth = one_of([unit(text, "возможен. Но не позже 14 дней")])
    first, second = part(text, "Возврат возможен."), part(text, "Но не позже 14 дней!")
    values = scored(truth, [second, first], by_id(text))
    assert values["coverage_at_1"] == 0.0
    assert values["completion_rank"] == 2.0
    assert values["precision_at_2"] == 1.0


def test_letters_and_digits_count_and_nothing_else_does():
    text = document("d", "«Срок: 14 дней», — сказал он.")
    assert scored(one_of([unit(text, "«Срок: 14 дней», — ")]), [part(text, "Срок: 14 дней")], by_id(text))["mrr"] == 1.0


def test_a_unit_of_several_spans_needs_them_all():
    text = document("d", "первое условие и ещё второе условие")
    spans = unit(text, "первое").spans + unit(text, "второе").spans
    chunks = [part(text, "второе условие"), part(text, "первое")]
    assert scored(one_of([Unit("d", spans)]), chunks, by_id(text))["completion_rank"] == 2.0


def test_any_source_of_a_fact_is_enough_and_a_second_one_adds_nothing():
    a, b, c = (document(name) for name in "abc")
    truth = Truth("q", (((unit(a), unit(b)), (unit(c),)),))
    values = scored(truth, [whole(a), whole(b)], by_id(a, b, c))
    assert values["coverage_at_2"] == 0.5
    assert scored(truth, [whole(b), whole(c)], by_id(a, b, c))["sufficient_at_2"] == 1.0


def test_the_threshold_is_read_as_it_was_written():
    """0.7 of 10 letters is 7, though 0.7 is no binary fraction; checked for every percentage and size to 60."""
    for size, percent in itertools.product(range(1, 61), range(1, 101)):
        text = document("d", "я" * size)
        need = lay_out(text, Unit("d", (Span(0, size),)), percent / 100).need
        assert need == -(-size * percent // 100)


def test_a_part_above_the_threshold_supports_a_unit_and_one_below_does_not():
    text = document("d", "десятьбукв")
    truth = one_of([unit(text, text.text)])
    most = replace(SCORING, span_threshold=0.7)
    assert scored(truth, [Chunk(text, 0, 7)], by_id(text), most)["hit_at_1"] == 1.0
    assert scored(truth, [Chunk(text, 0, 6)], by_id(text), most)["hit_at_1"] == 0.0


def test_a_forbidden_chunk_keeps_its_rank_and_supports_nothing():
    a, b = document("a"), document("b")
    values = scored(one_of([unit(a)], [unit(b)]), [whole(a), whole(b)], by_id(a, b), denied={"a"})
    assert values["completion_rank"] == 2.0
    assert values["precision_at_2"] == 0.5


def test_duplicates_keep_their_best_place_and_take_no_other():
    a, b = document("a"), document("b")
    values = scored(one_of([unit(b)]), [whole(a), whole(a), whole(b), whole(a)], by_id(a, b))
    assert values["completion_rank"] == 2.0


def test_judged_spans_decide_recall_and_alternatives_decide_coverage():
    a, b, c = (document(name) for name in "abc")
    judged = (Judgment(unit(b, "слово"), 3), Judgment(unit(c, "слово"), 1), Judgment(unit(a, "слово"), 0))
    values = scored(replace(one_of([unit(a)]), judged=judged), [whole(a), whole(b)], by_id(a, b, c))
    assert values["coverage_at_1"] == 1.0
    assert (values["recall_at_1"], values["recall_at_2"], values["mrr"]) == (0.0, 0.5, 0.5)


def test_judgments_of_grade_0_alone_leave_recall_to_the_facts():
    a, b = document("a"), document("b")
    truth = replace(one_of([unit(a)]), judged=(Judgment(unit(b, "слово"), 0),))
    assert scored(truth, [whole(a)], by_id(a, b))["recall_at_1"] == 1.0


def test_mrr_looks_at_the_first_unit_and_completion_rank_at_the_last():
    """Evidence in two groups, the first found at rank 2: 0.5, not the mean over groups."""
    a, b, c = (document(name) for name in "abc")
    values = scored(one_of([unit(b), unit(c)]), [whole(a), whole(b), whole(c)], by_id(a, b, c))
    assert (values["mrr"], values["completion_rank"], values["completion_rr"]) == (0.5, 3.0, 1 / 3)


def test_ndcg_has_linear_gain_and_cuts_places_not_chunks():
    text = document("d", "один два три")
    judged = (Judgment(unit(text, "один"), 3), Judgment(unit(text, "два"), 1), Judgment(unit(text, "три"), 1))
    truth = Truth("q", judged=judged)
    order = scored(truth, [part(text, "два"), part(text, "один")], by_id(text))
    assert order["ndcg_at_2"] == pytest.approx((1 + 3 / math.log2(3)) / (3 + 1 / math.log2(3)), abs=1e-15)
    together = scored(truth, [part(text, "два три"), part(text, "один")], by_id(text))
    assert together["ndcg_at_2"] == pytest.approx((1 + 1 / math.log2(3)) / (3 + 1 / math.log2(3)), abs=1e-15)
    assert scored(truth, [whole(text)], by_id(text))["ndcg_at_5"] == 1.0


def test_a_chunk_that_completes_nothing_takes_an_empty_place():
    a, b = document("a"), document("b")
    values = scored(one_of([unit(b)]), [whole(a), whole(b)], by_id(a, b))
    assert (values["ndcg_at_1"], values["ndcg_at_2"]) == (0.0, 1 / math.log2(3))


def test_every_measure_takes_its_own_maximum_over_the_alternatives():
    a, b, c = (document(name) for name in "abc")
    values = scored(one_of([unit(a)], [unit(b), unit(c)]), [whole(b), whole(a), whole(c)], by_id(a, b, c))
    assert (values["recall_at_2"], values["precision_at_1"], values["mrr"]) == (1.0, 1.0, 1.0)
    assert (values["precision_at_2"], values["precision_at_3"]) == (0.5, 2 / 3)


def test_precision_counts_chunks_that_add_letters_of_what_is_complete_by_then():
    text = document("d", "аааа бббб вввв")
    truth = one_of([unit(text, "аааа бббб")])
    chunks = [part(text, "аааа"), part(text, "вввв"), part(text, "аа"), part(text, "бббб вввв")]
    values = scored(truth, chunks, by_id(text), replace(SCORING, cutoffs=[1, 2, 4, 8]))
    assert [values[f"precision_at_{k}"] for k in (1, 2, 4, 8)] == [0.0, 0.0, 2 / 4, 2 / 8]


def test_one_of_twenty_is_a_recall_of_a_twentieth():
    documents = [document(f"d{number}") for number in range(20)]
    truth = Truth("q", judged=tuple(Judgment(unit(each, "слово"), 1) for each in documents))
    values = scored(truth, [whole(documents[7])], by_id(*documents))
    assert values["recall_at_5"] == 0.05
    assert values["ndcg_at_5"] < 1


def test_an_empty_ranking_scores_0_and_a_query_without_evidence_is_not_applicable():
    a = document("a")
    values = scored(one_of([unit(a)]), [], by_id(a))
    assert values.pop("completion_rank") == math.inf
    assert set(values.values()) == {0.0}
    assert set(scored(Truth("q"), [whole(a)], by_id(a)).values()) == {None}


TEXTS = ("Срок — 14 дней, после оплаты.", "Refund rule: keep the  receipt!", "日本 договор № 7 Café")
CORPUS = tuple(Document(name, text) for name, text in zip(("0", "б", "c c"), TEXTS, strict=True))
DOCUMENTS = by_id(*CORPUS)


@st.composite
def chunks(draw):
    each = draw(st.sampled_from(CORPUS))
    start = draw(st.integers(0, len(each.text) - 1))
    return Chunk(each, start, draw(st.integers(start + 1, len(each.text))))


@st.composite
def units(draw, spanned=False):
    each = draw(st.sampled_from(CORPUS))
    if not spanned and draw(st.integers(0, 9)) == 0:
        return Unit(each.id)
    letters = [place for place, character in enumerate(each.text) if character.isalnum()]
    spans = []
    for place in draw(st.lists(st.sampled_from(letters), min_size=1, max_size=2, unique=True)):
        end = min(len(each.text), place + draw(st.integers(1, 12)))
        spans.append(Span(max(0, place - draw(st.integers(0, 3))), end))
    return Unit(each.id, tuple(sorted(spans)))


FACTS = st.lists(units(), min_size=1, max_size=2).map(tuple)
ALTERNATIVES = st.lists(FACTS, min_size=1, max_size=3).map(tuple)
JUDGMENTS = st.builds(Judgment, units(spanned=True), st.integers(0, 3))
TRUTHS = st.builds(
    Truth,
    st.just("q"),
    st.lists(ALTERNATIVES, max_size=3).map(tuple),
    st.lists(JUDGMENTS, max_size=3).map(tuple),
)
RANKINGS = st.lists(chunks(), max_size=8)
THRESHOLDS = st.sampled_from([1.0, 0.9, 0.7, 0.5, 0.1])


@given(TRUTHS, RANKINGS, THRESHOLDS, st.sets(st.sampled_from(list(DOCUMENTS))))
def test_every_share_stays_between_0_and_1(truth, ranking, threshold, denied):
    scoring = replace(SCORING, span_threshold=threshold)
    handed = Context(ranking[:3], 7)
    found = of_ranking(truth, ranking, DOCUMENTS, denied, scoring) | context(truth, handed, DOCUMENTS, denied, scoring)
    shares = [value for name, value in found.items() if value is not None and describe(name).unit == "share"]
    assert all(0 <= value <= 1 for value in shares)
    assert not any(value is not None and math.isnan(value) for value in found.values())


@given(TRUTHS, RANKINGS)
def test_reading_further_loses_nothing(truth, ranking):
    values = scored(truth, ranking, DOCUMENTS)
    for name in ("coverage", "sufficient", "recall", "hit"):
        at = [values[f"{name}_at_{k}"] for k in SCORING.cutoffs]
        assert at == sorted(at, key=lambda value: value or 0.0)


@given(TRUTHS, RANKINGS)
def test_measures_agree_with_one_another(truth, ranking):
    values = scored(truth, ranking, DOCUMENTS)
    assert (values["mrr"] == 1) == (values["hit_at_1"] == 1)
    for k in SCORING.cutoffs:
        assert (values[f"sufficient_at_{k}"] == 1) == (values[f"coverage_at_{k}"] == 1)
        if truth.alternatives:
            assert values[f"sufficient_at_{k}"] == (values["completion_rank"] <= k)
        if not any(judgment.grade for judgment in truth.judged):
            assert values[f"recall_at_{k}"] == values[f"coverage_at_{k}"]


@given(TRUTHS, RANKINGS, THRESHOLDS, st.randoms(use_true_random=False))
def test_the_order_of_a_ground_truth_file_decides_nothing(truth, ranking, threshold, random):
    def mixed(items):
        return tuple(random.sample(items, len(items)))

    alternatives = tuple(mixed(tuple(mixed(fact) for fact in facts)) for facts in truth.alternatives)
    other = replace(truth, alternatives=mixed(alternatives), judged=mixed(truth.judged))
    scoring = replace(SCORING, span_threshold=threshold)
    assert scored(other, ranking, DOCUMENTS, scoring) == scored(truth, ranking, DOCUMENTS, scoring)


@given(TRUTHS, RANKINGS, st.data())
def test_a_duplicate_further_down_changes_nothing(truth, ranking, data):
    if ranking:
        repeated = data.draw(st.sampled_from(ranking))
        place = data.draw(st.integers(ranking.index(repeated) + 1, len(ranking)))
        again = [*ranking[:place], repeated, *ranking[place:]]
        assert scored(truth, again, DOCUMENTS) == scored(truth, ranking, DOCUMENTS)


@given(TRUTHS, RANKINGS, RANKINGS)
def test_the_truth_alone_decides_what_applies(truth, one, other):
    left, right = (of_ranking(truth, ranking, DOCUMENTS, NOBODY_DENIED, SCORING) for ranking in (one, other))
    assert [name for name in left if left[name] is None] == [name for name in right if right[name] is None]


@given(TRUTHS, RANKINGS, st.sampled_from(list(DOCUMENTS)))
def test_a_forbidden_chunk_counts_like_any_other_that_is_useless(truth, ranking, denied):
    useless = Document("useless", "x" * 100)
    other = [chunk if chunk.document.id != denied else Chunk(useless, chunk.start, chunk.end) for chunk in ranking]
    values = scored(truth, ranking, DOCUMENTS, denied={denied})
    assert values == scored(truth, other, DOCUMENTS | {"useless": useless})


@given(TRUTHS, RANKINGS, st.data())
def test_how_a_chunk_is_cut_decides_nothing_once_all_of_it_is_read(truth, ranking, data):
    pieces = []
    for chunk in ranking:
        cut = data.draw(st.integers(chunk.start, chunk.end))
        pieces += [
            Chunk(chunk.document, *edges) for edges in ((chunk.start, cut), (cut, chunk.end)) if edges[0] < edges[1]
        ]
    pieces = data.draw(st.permutations(pieces))
    deep = replace(SCORING, cutoffs=[100])
    left, right = scored(truth, ranking, DOCUMENTS, deep), scored(truth, pieces, DOCUMENTS, deep)
    for name in ("coverage_at_100", "sufficient_at_100", "recall_at_100", "hit_at_100"):
        assert left[name] == right[name]


def judgments(names):
    return st.dictionaries(st.sampled_from(names), st.integers(0, 4), min_size=1)


NAMES = [f"d{number}" for number in range(15)]


@given(judgments(NAMES).filter(lambda grades: any(grades.values())), st.permutations(NAMES), st.integers(0, 15))
def test_documents_score_as_trec_eval_has_them(grades, order, length):
    ranking = order[:length]
    names = {f"{name}.1,3,5,10": name for name in ("recall", "P", "ndcg_cut")}
    evaluator = pytrec_eval.RelevanceEvaluator({"q": grades}, {*names, "recip_rank", "map"})
    scores = {name: float(-place) for place, name in enumerate(ranking)}
    theirs = evaluator.evaluate({"q": scores})["q"] if ranking else None
    ours = doc(grades, ranking, [1, 3, 5, 10])
    ours = {
        name.removeprefix("doc/").replace("precision", "P").replace("ndcg", "ndcg_cut").replace("_at", ""): value
        for name, value in ours.items()
    }
    ours["recip_rank"] = ours.pop("mrr")
    assert ours == (pytest.approx(theirs, abs=1e-12) if ranking else dict.fromkeys(ours, 0.0))


def test_a_document_counts_where_it_stands_first_and_unjudged_queries_do_not_count():
    assert doc({"d": 1}, ["a", "a", "a", "d", "d"], [2])["doc/recall_at_2"] == 1.0
    assert set(doc({"d": 0}, ["d"], [1]).values()) == {None}


def test_query_and_document_ids_are_separate_namespaces():
    names = [str(number) for number in range(10)]
    values = doc(dict.fromkeys(names, 1), names, [10])
    assert (values["doc/recall_at_10"], values["doc/precision_at_10"], values["doc/ndcg_at_10"]) == (1.0, 1.0, 1.0)


def handed(truth, passages, documents, tokens=10, denied=NOBODY_DENIED):
    found = context(truth, Context(passages, tokens), documents, denied, SCORING)
    return {name.removeprefix("context/"): value for name, value in found.items()}


def test_density_is_evidence_over_all_that_was_handed_over():
    text, other = document("d", "аааа, бббб"), document("o", "вввв")
    truth = one_of([unit(text, "аааа")])
    assert handed(truth, [whole(text)], by_id(text, other))["density"] == 0.5
    assert handed(truth, [whole(text), whole(text)], by_id(text, other))["density"] == 0.25
    assert handed(truth, [part(text, "аааа"), whole(other)], by_id(text, other))["density"] == 0.5
    assert handed(truth, [part(text, "аааа")], by_id(text, other), denied={"d"})["density"] == 0.0
    assert handed(truth, [], by_id(text, other))["density"] == 0.0


def test_the_three_classes_of_a_context_sum_to_1():
    a, b, c = (document(name) for name in "abc")
    truth = one_of([unit(a), unit(b), unit(c)])
    found = [handed(truth, [whole(each) for each in some], by_id(a, b, c)) for some in ((), (a,), (a, b), (a, b, c))]
    classes = [
        tuple(values[name] for name in ("nothing", "part", "part_one_fact_missing", "sufficient")) for values in found
    ]
    assert classes == [(1, 0, 0, 0), (0, 1, 0, 0), (0, 1, 1, 0), (0, 0, 0, 1)]
    assert [values["facts"] for values in found] == [0, 1, 2, 3]


def test_the_supported_facts_are_those_of_the_shortest_alternative_that_is_best():
    truth = one_of([unit(RULE), unit(EXCEPTION)], [unit(GUIDE)], [unit(RULE), unit(GUIDE), unit(OTHER)])
    assert handed(truth, [whole(GUIDE), whole(RULE), whole(EXCEPTION)], LIBRARY)["facts"] == 1


def test_a_cut_passage_gives_only_the_text_that_it_still_holds():
    text = document("d", "Срок возврата 14 дней")
    truth = one_of([unit(text, "14 дней")])
    assert handed(truth, [part(text, "Срок возврата 14")], by_id(text))["sufficient"] == 0.0


def test_tokens_count_even_where_nothing_is_known_about_evidence():
    values = handed(Truth("q"), [], {}, tokens=7)
    assert values.pop("tokens") == 7.0
    assert set(values.values()) == {None}


A, B = document("a"), document("b")


def test_violations_are_pairs_of_query_and_document_at_every_stage():
    hits = [Hit(Chunk(A, 0, 2), 2.0), Hit(Chunk(A, 2, 5), 1.0), Hit(whole(B), 0.0)]
    found = acl({"a"}, [whole(B)], [hits, hits[:1]], hits, hits=3, readable=3)
    assert found == {"acl/violations": 0, "acl/candidate_violations": 1, "acl/exposure": 1, "acl/starved": 0}
    assert acl({"a"}, [Chunk(A, 0, 2), Chunk(A, 2, 5)], [], [], 1, 2) == {
        "acl/violations": 1,
        "acl/candidate_violations": 1,
        "acl/exposure": 0,
        "acl/starved": 1,
    }


def test_ingestion_says_what_was_lost_before_any_search():
    kept, lost, empty = document("k", "Срок 14 дней"), document("l"), document("e", " ")
    documents = by_id(kept, lost, empty)
    truths = [one_of([unit(kept, "14 дней")], [unit(lost)]), one_of([unit(kept, "Срок")])]
    written = {"k": "Срок 15 дней", "l": "слово", "e": " "}
    found = ingestion(4, written, documents, {"k"}, truths)
    assert found == {
        "ingestion/documents_expected": 4,
        "ingestion/documents_indexed": 1,
        "ingestion/coverage": 0.25,
        "ingestion/empty_documents": 1,
        "ingestion/units_verbatim": 1 / 3,
    }


def test_chunking_says_what_it_cut_apart():
    text = document("d", "один два три четыре")
    alternatives = [["один", "два"], ["два три"], ["один", "четыре"]]
    truths = [one_of(*([unit(text, quote) for quote in quotes] for quotes in alternatives))]
    cut = [part(text, "один два"), part(text, "три четыре")]
    found = chunking(cut, np.array([True, False]), by_id(text), truths, 1.0)
    assert found == {
        "chunking/chunks": 2,
        "chunking/units_whole": 3 / 4,
        "chunking/alternatives_whole": 1 / 3,
        "chunking/truncated": 1,
        "chunking/truncated_share": 0.5,
    }


def test_percentiles_are_samples_and_a_bound_the_sample_cannot_give_is_missing():
    found = latency({"total": [float(number) for number in range(100, 0, -1)], "search": [3.0]})
    assert found["latency/total_p50"] == {"mean": 50.0, "n": 100, "interval": [40.0, 61.0]}
    assert found["latency/total_p99"]["interval"][1] is None
    assert found["latency/search_p50"] == {"mean": 3.0, "n": 1, "interval": [None, None]}


@pytest.mark.parametrize("percent", [50, 95, 99])
@pytest.mark.parametrize("n", [1, 5, 6, 19, 60, 400])
def test_order_statistics_hold_the_percentile_95_times_in_100_and_are_as_close_as_that_allows(n, percent):
    share, tail = Fraction(percent, 100), Fraction(25, 1000)
    chance = [math.comb(n, below) * share**below * (1 - share) ** (n - below) for below in range(n + 1)]
    low, high = order_bounds(n, percent)
    assert sum(chance[:low]) <= tail < sum(chance[: low + 1])
    assert sum(chance[high:]) <= tail < sum(chance[high - 1 :])


def test_the_effect_on_latency_is_the_median_log_ratio_of_pairs():
    found = paired([10.0, 20.0, 0.0], [20.0, 40.0, 0.0])
    assert found["mean"] == pytest.approx(math.log(2))
    assert paired([], []) == {"mean": None, "n": 0, "interval": [None, None]}


def test_cost_is_what_is_spent_times_its_price_and_nothing_without_prices():
    assert cost({"context_tokens": 500, "rerank_pairs": 20}, {"context_tokens": 0.002}) == 1.0
    assert cost({"context_tokens": 500}, {}) is None


@pytest.mark.parametrize(
    "wrong",
    [
        {"cutoffs": []},
        {"cutoffs": [0]},
        {"cutoffs": [5, 5]},
        {"cutoffs": [True]},
        {"span_threshold": 0.0},
        {"span_threshold": 1.1},
        {"span_threshold": math.nan},
        {"cost": {"calls": -1}},
        {"cost": {"calls": "много"}},
    ],
)
def test_a_setting_outside_its_range_is_refused_by_name(wrong):
    with pytest.raises(ConfigError, match=next(iter(wrong))):
        replace(SCORING, **wrong)


def trace(query="q", passages=(), hits=()):
    ranked = [Hit(chunk, -float(place)) for place, chunk in enumerate(hits)]
    return Trace(Query(query, "?"), Candidates({}, ranked), ranked, ranked, Context(passages, 4), 3, 2, {})


def test_a_trace_gets_every_value_and_an_unchecked_corpus_no_value_of_access():
    truth = replace(one_of([unit(A)]), documents={"a": 1})
    scoring = replace(SCORING, cost={"context_tokens": 0.5})
    values = of_trace(
        truth,
        trace(passages=[whole(A)], hits=[whole(A), whole(B)]),
        by_id(A, B),
        Exposure(False, ()),
        scoring,
        {},
        reader(),
    )
    assert (values["context/sufficient"], values["doc/mrr"], values["cost/query"]) == (1.0, 1.0, 2.0)
    assert {values[name] for name in values if name.startswith("acl/")} == {None}


def test_a_trace_with_a_forbidden_document_shows_it_and_gains_nothing_from_it():
    exposure = Exposure(True, {"a"}, [[Hit(whole(A), 1.0)]], [Hit(whole(A), 1.0)], readable=2)
    forbidden = trace(passages=[whole(A)], hits=[whole(A)])
    values = of_trace(one_of([unit(A)]), forbidden, by_id(A), exposure, SCORING, {}, reader())
    assert (values["context/sufficient"], values["retrieval/coverage_at_1"], values["context/tokens"]) == (
        0.0,
        0.0,
        4.0,
    )
    assert [values[f"acl/{name}"] for name in ("violations", "candidate_violations", "exposure", "starved")] == [
        1,
        1,
        1,
        1,
    ]


def queries(cohorts):
    return [Query(f"q{number}", "?", cohorts=each, intent=each.get("intent")) for number, each in enumerate(cohorts)]


def summary(values, cohorts=None, name="context/sufficient"):
    asked = queries(cohorts or [{}] * len(values))
    return summarise(asked, {query.id: {name: value} for query, value in zip(asked, values, strict=True)})[name]


def test_what_does_not_apply_is_counted_and_in_no_mean():
    found = summary([1.0, None, 0.0])
    assert (found["mean"], found["sum"], found["n"], found["not_applicable"]) == (0.5, 1.0, 2, 1)
    assert summary([None])["mean"] is None


@given(st.lists(st.floats(0, 1), min_size=1, max_size=30), st.randoms(use_true_random=False))
def test_a_mean_does_not_depend_on_the_order_of_the_queries(values, random):
    assert summary(random.sample(values, len(values)))["mean"] == summary(values)["mean"]


def test_a_distribution_is_made_of_values_that_occur():
    found = summary([float(number) for number in range(10, 0, -1)])["distribution"]
    assert found == {"min": 1, "p10": 1, "p25": 3, "p50": 5, "p75": 8, "p90": 9, "max": 10}


def test_a_key_with_few_queries_per_value_is_a_label_and_not_averaged():
    many = [{"язык": "ru"}] * 5 + [{"язык": "en", "author": f"{number}"} for number in range(5)]
    found = summary([1.0] * 5 + [0.0] * 5, many)["cohorts"]
    assert {name: (each["mean"], each["n"]) for name, each in found.items()} == {
        "язык=en": (0.0, 5),
        "язык=ru": (1.0, 5),
    }
    assert summary([1.0] * 9, many[:9])["cohorts"] == {}


def test_the_worst_cohort_is_named_only_where_it_is_large():
    large, small = [{"kind": "a"}] * 20 + [{"kind": "b"}] * 20, [{"kind": "a"}] * 20 + [{"kind": "b"}] * 19
    values = [1.0] * 20 + [0.0] * 20
    assert summary(values, large)["worst_cohort"] == "kind=b"
    assert summary(values, large, "context/tokens")["worst_cohort"] == "kind=a"
    assert summary(values, large, "acl/exposure")["worst_cohort"] is None
    assert summary(values[:39], small)["worst_cohort"] == "kind=a"


def test_intents_have_means_of_their_own():
    found = summary([1.0, 0.0, 0.5], [{"intent": "how"}, {"intent": "how"}, {}])["intents"]
    assert {name: (each["mean"], each["n"]) for name, each in found.items()} == {"how": (0.5, 2)}


def test_completion_rank_is_a_histogram_whose_last_class_is_never():
    found = summary([12.0, math.inf, 2.0, None, 12.0], name="retrieval/completion_rank")
    assert list(found["distribution"].items()) == [("2", 1), ("12", 2), ("never", 1)]
    assert (found["mean"], found["n"], found["not_applicable"]) == (None, 4, 1)


def test_ratios_are_of_totals_and_not_means_of_ratios():
    rows = [{"context/facts": 1.0, "context/tokens": 100.0}, {"context/facts": 0.0, "context/tokens": 900.0}]
    rows.append({"context/facts": None, "context/tokens": 5000.0})
    asked = queries([{}] * 3)
    found = summarise(asked, {query.id: row for query, row in zip(asked, rows, strict=True)})
    assert found["context/evidence_per_1k_tokens"]["mean"] == 1.0
    assert found["context/evidence_per_1k_tokens"]["n"] == 2


def test_cost_per_sufficient_query_is_missing_where_no_query_is_sufficient():
    rows = [{"cost/query": 3.0, "context/sufficient": sufficient} for sufficient in (1.0, 0.0)]
    asked = queries([{}])
    assert summarise(asked, {"q0": rows[1]})["cost/per_sufficient_query"]["mean"] is None
    both = summarise(queries([{}] * 2), dict(zip(("q0", "q1"), rows, strict=True)))
    assert both["cost/per_sufficient_query"]["mean"] == 6.0


@pytest.mark.parametrize(("rank", "stored"), [(math.inf, {"rank": None}), (3.0, {"rank": 3.0}), (None, {})])
def test_never_and_not_applicable_differ_in_json(rank, stored):
    kept = {f"retrieval/completion_{name}": value for name, value in stored.items()}
    values = {"retrieval/completion_rank": rank, "retrieval/mrr": None}
    assert to_json(values) == {**kept, "retrieval/mrr": None}


def test_the_order_of_the_corpus_decides_nothing():
    truth = one_of([unit(each) for each in CORPUS])
    ranking = [whole(each) for each in CORPUS]
    shuffled = random.Random(0).sample(CORPUS, len(CORPUS))
    assert scored(truth, ranking, by_id(*shuffled)) == scored(truth, ranking, DOCUMENTS)


def test_a_price_for_what_nothing_counts_is_refused_before_any_work():
    with pytest.raises(ConfigError, match=r"cost\.context_token: .* context_tokens"):
        Scoring([1], 1.0, {"context_token": 0.1}, 1.0)
