"""Words for variants, from what was declared and recorded: one family, hard facts beside the mean, in one sentence."""

from __future__ import annotations

import itertools

import pytest
import runs
from hypothesis import given
from hypothesis import strategies as st

from ablate import table
from ablate.comparison import SUFFICIENT, word
from ablate.errors import ConfigError
from ablate.frontier import Cost, Point, cheapest, efficient, sentences
from ablate.label_risk import label_risk
from ablate.statistics import Word, differences, verdict
from ablate.verdict import Declared, Finding, judged, primary
from ablate.workspace import Workspace

DECLARED = {"verdict": {"_target_": "ablate.verdict.Declared", "primary": None, "margin": 0.1}}
AT_640 = "retrieval/coverage_at_640_tokens"


@pytest.fixture
def place(tmp_path):
    return Workspace(tmp_path)


def values(good, of, **more):
    """Of `of` questions the first `good` have all their evidence."""
    return {f"вопрос-{n:03}": {**runs.evidence(n < good, float(n < good)), **more} for n in range(of)}


def pair(place, before, after, component="reranker", facts=None, cohorts=None, **labels):
    """A baseline and a variant; `labels` is what else their queries are known to be, by query."""
    both = {"config": DECLARED, "cohorts": cohorts, "labels": labels}
    baseline = runs.build(place, values=before, **both)
    variant = runs.build(place, "new", after, baseline=baseline, component=component, **both)
    for record in (baseline, variant):
        record.facts.update(facts or {})
    return baseline, variant


@pytest.mark.parametrize("margin", [0.0, -0.1, float("nan"), float("inf")])
def test_a_margin_that_says_nothing_is_refused(margin):
    with pytest.raises(ConfigError, match="margin: found"):
        Declared(None, margin)


@pytest.mark.parametrize("name", ["context/suficient", "retrieval/rank", "sufficient"])
def test_a_primary_measure_that_is_none_is_refused(name):
    with pytest.raises(ConfigError, match="primary: found"):
        Declared(name, 0.1)


@pytest.mark.parametrize(
    "name",
    ["latency/total_p95", "ingestion/coverage", "abstention/auroc", "cohort/kind/a/context/sufficient"],
)
def test_a_primary_measure_is_one_of_which_every_query_has_a_value(name):
    with pytest.raises(ConfigError, match="of which every query has a value on both sides"):
        Declared(name, 0.1)


def test_a_rank_that_may_be_never_is_no_primary_measure_for_what_is_lost_would_leave_the_mean(place):
    with pytest.raises(ConfigError, match="of which every query has a value on both sides"):
        Declared("retrieval/completion_rank", 1)
    old = {"verdict": {**DECLARED["verdict"], "primary": "retrieval/completion_rank"}}
    baseline = runs.build(place, values=values(4, 9), config=old)
    assert judged([baseline, runs.build(place, "new", values(5, 9), baseline=baseline, config=old)]) == {}


def test_a_cohort_that_gains_where_less_is_better_costs_nothing(place):
    tokens = {"verdict": {**DECLARED["verdict"], "primary": "context/tokens", "margin": 10}}
    names = {query: {"kind": "a" if n % 2 else "б"} for n, query in enumerate(values(40, 80))}
    less, more = ({query: {"context/tokens": 500.0 + n % 2 * by} for n, query in enumerate(names)} for by in (0, 90))
    for before, after, costs in ((more, less, []), (less, more, ["kind=a"])):
        folder = Workspace(place.root / str(bool(costs)))
        baseline = runs.build(folder, values=before, config=tokens, cohorts=names)
        baseline.facts["critical_cohorts"] = ["kind=a", "kind=б"]
        variant = runs.build(folder, "new", after, baseline=baseline, config=tokens, cohorts=names)
        assert judged([baseline, variant])[variant.id].costs == costs


def test_the_primary_measure_is_what_was_declared_and_else_fits_what_changes(place):
    before = values(4, 9, **{AT_640: 0.5})
    for component, measure in (("reranker", "context/sufficient"), ("chunker", AT_640), ("packer", AT_640)):
        baseline, variant = pair(Workspace(place.root / component), before, before, component)
        assert primary(baseline, variant) == measure
        wanted = {"verdict": {**DECLARED["verdict"], "primary": "context/coverage"}}
        chosen = runs.build(place, run=f"base-{component}", values=before, config=wanted)
        assert primary(chosen, variant) == "context/coverage"


def test_a_variant_that_helps_often_enough_is_better_and_says_by_how_much(place):
    baseline, variant = pair(place, values(10, 40), values(30, 40))
    found = judged([baseline, variant])[variant.id]
    assert found.verdict.word == Word.BETTER
    assert found.verdict.difference == 0.5
    assert found.verdict.low > 0
    assert found.verdict.p == 2 * 0.5**20
    comparison = table.compare([baseline, variant], [baseline, variant])
    assert comparison.answer == "better: new +0.500"
    assert comparison.sentence(variant).startswith("new: better in sufficient: +0.500 (")
    assert comparison.text().splitlines()[0] == "better: new +0.500"


def test_questions_of_one_cluster_count_once(place):
    one = {f"вопрос-{n:03}": "отпуск" for n in range(40)}
    baseline, variant = pair(place, values(10, 40), values(30, 40), cluster=one)
    found = judged([baseline, variant])[variant.id].verdict
    assert (found.word, found.clusters, found.n) == (Word.CANNOT_TELL, 1, 40)
    assert set(baseline.clusters.values()) == {"отпуск"}


def test_three_questions_are_never_a_verdict_and_a_no_op_is_identical(place):
    baseline, variant = pair(place, values(0, 3), values(3, 3))
    assert judged([baseline, variant])[variant.id].verdict.word == Word.CANNOT_TELL
    baseline, variant = pair(Workspace(place.root / "б"), values(2, 3), values(2, 3))
    found = judged([baseline, variant])[variant.id].verdict
    assert (found.word, found.p) == (Word.IDENTICAL, 1.0)


def test_every_variant_ever_recorded_is_in_the_family_and_one_more_renews_all_words(place):
    baseline, variant = pair(place, values(10, 40), values(17, 40))
    alone = judged([baseline, variant])[variant.id].verdict
    assert (alone.family, alone.word) == (1, Word.BETTER)
    others = [
        runs.build(place, f"other{n}", values(10 + n % 2, 40), baseline=baseline, config=DECLARED) for n in range(9)
    ]
    found = judged([baseline, variant, *others])
    assert found[variant.id].verdict.family == 10
    assert found[variant.id].verdict.word == Word.CANNOT_TELL
    assert found[variant.id].verdict.p == alone.p


def test_of_equal_configs_the_newest_run_counts_and_failed_runs_do_not(place):
    baseline, variant = pair(place, values(10, 40), values(17, 40))
    same = {"config": variant.fingerprints["config"]}
    later = {"started": "2025-06-09T12:00:00+00:00", "fingerprints": same, "config": DECLARED}
    again = runs.build(place, "new", values(18, 40), baseline=baseline, run="new-2", **later)
    broken = runs.build(place, "bm25", baseline=baseline, error="пусто", config=DECLARED)
    found = judged([baseline, variant, again, broken])
    assert found.keys() == {again.id}
    assert found[again.id].verdict.family == 1


def test_runs_that_were_recorded_before_anything_was_declared_have_no_word(place):
    baseline = runs.build(place, values=values(10, 40))
    variant = runs.build(place, "new", values(30, 40), baseline=baseline)
    assert judged([baseline, variant]) == {}
    assert "new: sufficient 0.250 -> 0.750 (+0.500)" in table.compare([baseline, variant], [baseline, variant]).text()


def test_better_at_equal_tokens_but_less_sufficient_is_mixed_and_said_so(place):
    before = {q: {**row, AT_640: 0.25} for q, row in values(30, 40).items()}
    after = {q: {**row, AT_640: 1.0} for q, row in values(20, 40).items()}
    baseline, variant = pair(place, before, after, "chunker")
    assert judged([baseline, variant])[variant.id].verdict.word == Word.MIXED
    said = table.compare([baseline, variant], [baseline, variant]).answer
    assert said == "mixed: new +0.750 in coverage_at_640_tokens (but falls on sufficient)"


def test_whole_documents_give_no_word_on_how_text_is_cut(place):
    before = {q: {**row, AT_640: 0.25} for q, row in values(30, 40).items()}
    cohorts = {q: {"granularity": "document"} for q in before}
    after = {q: {**row, AT_640: 1.0} for q, row in before.items()}
    baseline, variant = pair(place, before, after, "chunker", cohorts=cohorts)
    assert judged([baseline, variant]) == {}


def test_a_gain_that_costs_a_critical_cohort_or_query_is_said_in_the_first_line(place):
    before, after = values(20, 60), values(50, 60)
    old = {q: {"kind": "access"} if n < 6 else {} for n, q in enumerate(before)}
    for query in list(after)[:6]:
        after[query] = runs.evidence(0, 0)
    guarded = {q: n == 2 for n, q in enumerate(before)}
    facts = {"critical_cohorts": ["kind=access", "kind=nobody"]}
    baseline, variant = pair(place, before, after, facts=facts, cohorts=old, critical=guarded)
    found = judged([baseline, variant])[variant.id]
    assert found.lost == ("вопрос-002",)
    assert found.cohorts.keys() == {"kind=access"}
    assert found.costs == ["kind=access"]
    first = table.compare([baseline, variant], [baseline, variant]).text(400).splitlines()[0]
    assert first.startswith("better: new +0.400 (but loses 1 critical query (вопрос-002) and costs kind=access -1.000)")


def test_a_variant_that_failed_is_said_in_the_first_line_beside_the_words(place):
    before, after = values(50, 60), values(20, 60)
    baseline, variant = pair(place, before, after, critical={"вопрос-030": True})
    broken = runs.build(place, "bm25", baseline=baseline, component="retriever", error="пусто", config=DECLARED)
    told = [baseline, variant, broken]
    first = table.compare(told, told).answer
    assert first == "worse: new -0.500 (and loses 1 critical query (вопрос-030)); failed: bm25"


def test_queries_enough_for_the_margin_are_not_said_to_be_needed():
    few = differences(dict.fromkeys(map(str, range(40)), 0.0), {str(n): float(n < 4) for n in range(40)})
    for margin, said in ((0.15, True), (0.2, False)):
        unsure = verdict(few, margin)
        assert (unsure.word, unsure.needed > unsure.n) == (Word.CANNOT_TELL, said)
        assert any("needs about" in text for text in word(Finding(SUFFICIENT, unsure))) == said


def test_what_is_forbidden_comes_before_every_gain(place):
    shown = {q: {**row, "acl/violations": 1.0} for q, row in values(30, 40).items()}
    baseline, variant = pair(place, values(10, 40), shown)
    assert table.compare([baseline, variant], [baseline, variant]).answer.startswith(
        "FORBIDDEN documents in new; better: new +0.500"
    )


# Label risk


def unjudged(*queries):
    return {f"вопрос-{n:03}": [["д", 0, 10]] if n in queries else [] for n in range(40)}


def risk(place, before, after, left, right):
    """The risk where the two contexts hold an unjudged passage in the questions `left` and `right`."""
    baseline, variant = pair(place, before, after)
    for record, held in ((baseline, left), (variant, right)):
        for query, row in record.queries.items():
            row["unjudged"] = held[query]
    queries = list(before)
    measure = "context/sufficient"
    found = differences(baseline.values(measure), variant.values(measure), {q: q for q in queries})
    return label_risk(baseline, variant, queries, measure, verdict(found, 0.1))


def test_a_gain_is_turned_by_the_fewest_labels_that_the_baseline_alone_could_have(place):
    # seven gains of seven: p = 2/128; one label less is 6 of 6 with p = 2/64, two are 5 of 5 with p = 2/32 > 0.05
    found = risk(place, values(10, 40), values(17, 40), unjudged(*range(10, 17)), unjudged())
    assert (found.overturned_by, found.possible) == (2, 7)


def test_a_passage_that_both_contexts_hold_turns_nothing(place):
    found = risk(place, values(10, 40), values(17, 40), unjudged(*range(40)), unjudged(*range(40)))
    assert (found.overturned_by, found.possible) == (None, 0)


def test_a_loss_is_turned_by_what_the_variant_alone_holds(place):
    found = risk(place, values(17, 40), values(10, 40), unjudged(), unjudged(10, 11, 30))
    assert (found.overturned_by, found.possible) == (2, 3)


def test_words_that_claim_nothing_have_no_risk(place):
    assert risk(place, values(10, 40), values(11, 40), unjudged(1), unjudged(2)) is None


@given(st.integers(6, 12), st.sets(st.integers(0, 39)))
def test_the_fewest_labels_are_the_fewest(tmp_path_factory, gains, held):
    """Against trying every number of labels in turn, those that move most first."""
    place = Workspace(tmp_path_factory.mktemp("risk"))
    before, after = values(10, 40), values(10 + gains, 40)
    found = risk(place, before, after, unjudged(*held), unjudged())
    each = [int(10 <= n < 10 + gains) for n in range(40)]
    open_questions = [n for n in sorted(held) if not n < 10]  # a baseline that is sufficient stays so
    for labels in itertools.count():
        if labels > len(open_questions):
            assert found.overturned_by is None
            break
        # labelling a gain makes it equal; labelling what neither side had makes it a loss
        turned = {n: each[n] - 1 for n in open_questions[:labels]}
        now = [turned.get(n, value) for n, value in enumerate(each)]
        left, right = ({str(n): float(v) for n, v in enumerate(side)} for side in ([0] * 40, now))
        if verdict(differences(left, right), 0.1).word != Word.BETTER:
            assert found.overturned_by == labels
            break


# The frontier


def point(label, value, tokens, times=1.0):
    return Point(label, value, tokens, times)


def safe(label):
    return True


def test_the_frontier_holds_what_nothing_beats_at_its_price():
    found = [
        point("base", 0.5, 500),
        point("a", 0.4, 200),
        point("б", 0.5, 300),
        point("c", 0.45, 400),
        point("d", 0.7, 900),
    ]
    assert [each.label for each in efficient(found, Cost.TOKENS)] == ["a", "б", "d"]
    assert cheapest(found, Cost.TOKENS, safe).label == "a"
    assert cheapest(found, Cost.TOKENS, lambda label: label != "a").label == "б"
    assert cheapest([found[0], found[4]], Cost.TOKENS, safe) is None
    assert cheapest([found[0], point("as dear", 0.5, 499.9)], Cost.TOKENS, safe) is None


@pytest.mark.parametrize(("interval", "named"), [([-0.4, -0.1], True), ([-0.4, 0.1], False), ([None, None], False)])
def test_a_variant_is_called_cheaper_by_time_only_where_it_is_shown_to_be(place, interval, named):
    before = values(200, 400)
    latency = {"total_p50": 8.0, "baseline_p50": 10.0, "log_ratio": -0.2}
    baseline = runs.build(place, values=before, config=DECLARED)
    variant = runs.build(place, "new", before, baseline=baseline, config=DECLARED, latency=latency)
    variant.measures["latency/log_ratio"]["interval"] = interval
    found = table.compare([baseline, variant], [baseline, variant])
    assert (Cost.LATENCY in found.frontier.cheap) == named
    assert any("none of the 1 that are cheaper is shown to be" in said for said in found.frontier.sentences()) != named


def test_that_nothing_cheaper_is_proved_is_not_told_as_if_nothing_were_cheaper():
    def last(*found):
        *_, said = sentences([point("base", 0.5, 500), *found], "context/sufficient", 0.1, {})
        return said.partition(": ")[2]

    nan = float("nan")
    assert last(point("a", 0.4, 200, nan), point("b", 0.4, 900, nan)) == "none of the 1 that are cheaper is shown to be"
    assert last(point("b", 0.4, 900, nan)) == "none is cheaper"


def test_what_was_not_timed_is_on_no_frontier_of_time():
    found = [point("base", 0.5, 500), point("a", 0.6, 500, float("nan")), point("b", 0.4, 500, 0.5)]
    assert [each.label for each in efficient(found, Cost.LATENCY)] == ["b", "base"]
    assert "by median latency the cheapest variant that is not worse by more than 0.1: b, x0.5 against x1" in list(
        sentences(found, "context/sufficient", 0.1, {Cost.LATENCY: cheapest(found, Cost.LATENCY, safe)})
    )


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), min_size=1))
def test_a_point_is_on_the_frontier_just_when_no_other_is_as_good_and_as_cheap(raw):
    found = [point(str(n), value, tokens) for n, (value, tokens) in enumerate(raw)]
    worth = {(each.value, each.tokens) for each in found}
    beaten = {one for one in worth for two in worth if two != one and two[0] >= one[0] and two[1] <= one[1]}
    assert {(each.value, each.tokens) for each in efficient(found, Cost.TOKENS)} == worth - beaten
