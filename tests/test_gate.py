"""May it ship: no gain pays for a hard rule, statistics are judged by bounds, and a decision is never lost."""

from __future__ import annotations

import itertools
import json
import shutil
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import pytest
import runs
import yaml
from cli import QUIET, ablate, means, variant, workshop

from ablate.dataset import Folder
from ablate.dataset.subset import PER_STRATUM, pr, strata
from ablate.errors import ConfigError
from ablate.gate import Decided, Decision, Outcome, State, decided, junit, kept, markdown, outcomes, policy
from ablate.gate.policy import KEYS
from ablate.gate.rules import FEWEST_TIMED, Case
from ablate.score.latency import order_bounds
from ablate.workspace import Workspace

DECLARED = {"verdict": {"_target_": "ablate.verdict.Declared", "primary": None, "margin": 0.1}}
INGESTED = {"ingestion/coverage": 1.0, "ingestion/units_verbatim": 1.0}
RIGHT = {
    "reproduced": (True, "вышло то же самое"),
    "moved": (False, "документ изменился"),
    "gone": (None, "данных нет"),
}


@pytest.fixture
def place(tmp_path):
    return Workspace(tmp_path)


def values(good, of=200, **more):
    return {f"вопрос-{n:03}": {**runs.evidence(n < good, float(n < good)), **more} for n in range(of)}


def case(place, before=None, after=None, rules="strict", again="reproduced", facts=None, latency=None, **labels):
    """A run beside its baseline; `rules` are of a shipped policy, or changes to the strict one."""
    before, after = (values(100) if side is None else side for side in (before, after))
    baseline = runs.build(place, values=before, config=DECLARED, labels=labels)
    variant = runs.build(
        place, "new", after, baseline=baseline, component="reranker", config=DECLARED, labels=labels, latency=latency
    )
    for record in (baseline, variant):
        record.facts.update(facts or {})
        for name, value in INGESTED.items():
            record.metrics["measures"][name] = {"mean": value, "n": 1, "not_applicable": 0}
    chosen = policy(rules) if isinstance(rules, str) else replace(policy("strict"), **rules)
    return Case(variant, baseline, chosen, lambda record: RIGHT[again])


def found(case, rule):
    return next(outcome for outcome in outcomes(case) if outcome.rule == rule)


# The truth table


@pytest.mark.parametrize(
    ("hard", "statistical", "doubt", "decision", "code"),
    [
        ("passed", "passed", "stop", "ship", 0),
        ("passed", "passed", "canary", "ship", 0),
        ("passed", "failed", "stop", "stop", 1),
        ("passed", "failed", "canary", "stop", 1),
        ("passed", "cannot judge", "stop", "stop", 2),
        ("passed", "cannot judge", "canary", "canary", 0),
        ("failed", "passed", "stop", "stop", 1),
        ("failed", "passed", "canary", "stop", 1),
        ("failed", "failed", "stop", "stop", 1),
        ("failed", "failed", "canary", "stop", 1),
        ("failed", "cannot judge", "stop", "stop", 1),
        ("failed", "cannot judge", "canary", "stop", 1),
        ("cannot judge", "passed", "stop", "stop", 2),
        ("cannot judge", "passed", "canary", "stop", 2),
        ("cannot judge", "failed", "stop", "stop", 1),
        ("cannot judge", "failed", "canary", "stop", 1),
        ("cannot judge", "cannot judge", "stop", "stop", 2),
        ("cannot judge", "cannot judge", "canary", "stop", 2),
    ],
)
def test_what_follows_from_hard_and_statistical_rules(hard, statistical, doubt, decision, code):
    passed = [Outcome("a", True, State.PASSED, ""), Outcome("b", False, State.PASSED, "")]
    told = [Outcome("c", True, State(hard), ""), Outcome("d", False, State(statistical), "")]
    for order in itertools.permutations([*passed, *told]):
        assert decided(order, Decision(doubt)) == Decided(Decision(decision), code)


def test_a_policy_without_a_rule_ships_nothing():
    assert decided([], Decision.CANARY) == Decided(Decision.STOP, 2)


# Hard rules


def test_a_forbidden_document_stops_whatever_was_gained(place):
    shown = {**values(200), "вопрос-000": {**runs.evidence(1, 1), "acl/violations": 1.0}}
    judged = outcomes(case(place, values(0), shown))
    assert decided(judged, Decision.CANARY) == Decided(Decision.STOP, 1)
    assert [each.rule for each in judged if each.state is State.FAILED] == ["access violations"]


@pytest.mark.parametrize(("asked", "state"), [(True, State.CANNOT_JUDGE), (False, State.PASSED)])
def test_without_exposure_nothing_was_tested_unless_the_policy_says_so(place, asked, state):
    hidden = values(100, **{"acl/exposure": 0.0})
    assert found(case(place, hidden, hidden, {"access_exposed": asked}), "access violations").state is state


def test_documents_that_were_not_indexed_stop(place):
    one = case(place)
    one.run.metrics["measures"]["ingestion/coverage"]["mean"] = 0.99
    assert found(one, "documents indexed").state is State.FAILED
    assert found(one, "evidence ingested").state is State.PASSED
    del one.run.metrics["measures"]["ingestion/units_verbatim"]
    assert found(one, "evidence ingested").state is State.CANNOT_JUDGE


@pytest.mark.parametrize(
    ("key", "rule", "mark"), [("critical", "critical queries", True), ("case", "closed incidents", "ИНЦ-1")]
)
def test_a_guarded_query_that_is_lost_stops_and_one_that_was_never_answered_does_not(place, key, rule, mark):
    guarded = {"вопрос-005": mark, "вопрос-150": mark}
    after = {**values(180), "вопрос-005": runs.evidence(0, 0)}
    lost = found(case(place, values(100), after, **{key: guarded}), rule)
    assert lost.state is State.FAILED
    assert lost.why.endswith("are lost: вопрос-005")
    assert lost.hard
    other = Workspace(place.root / "б")
    assert found(case(other, values(100), values(100), **{key: guarded}), rule).state is State.PASSED


def test_what_cannot_be_run_again_stops(place):
    assert found(case(place, again="moved"), "reproducible") == Outcome(
        "reproducible", True, State.FAILED, "документ изменился"
    )


def test_what_cannot_be_run_again_is_not_called_another_result(place):
    assert found(case(place, again="gone"), "reproducible") == Outcome(
        "reproducible", True, State.CANNOT_JUDGE, "данных нет"
    )


def test_critical_queries_of_which_no_evidence_is_known_are_not_said_to_hold(place):
    documents = {query: {"doc/ndcg_at_10": 1.0} for query in values(1)}
    told = found(case(place, documents, documents, critical={"вопрос-001": True}), "critical queries")
    assert (told.state, told.hard) == (State.CANNOT_JUDGE, True)
    assert told.why.startswith("1 critical queries, and of none is it known")


def test_a_corpus_without_access_lists_is_not_said_to_be_tested(place):
    public = {query: {"context/sufficient": 1.0} for query in values(1)}
    told = found(case(place, public, public, "lenient"), "access violations")
    assert told.why == "access was not checked: no document carries an ACL"


# Statistical rules


def test_a_loss_beyond_the_margin_fails_and_names_the_queries(place):
    told = found(case(place, values(100), values(40)), "sufficient not worse")
    assert told.state is State.FAILED
    assert "worse on 60: вопрос-040, вопрос-041" in told.why


def test_equal_runs_pass_once_there_are_queries_enough(place):
    assert (
        found(
            case(place, values(100), values(100), {"not_worse": {"context/sufficient": 0.05}}), "sufficient not worse"
        ).state
        is State.PASSED
    )
    few = case(Workspace(place.root / "б"), values(1, 3), values(2, 3))
    told = found(few, "sufficient not worse")
    assert told.state is State.CANNOT_JUDGE
    assert "queries are needed" in told.why


def test_every_gated_measure_lists_what_got_worse(place):
    after = values(100)
    for query in list(after)[:30]:
        after[query] = {**runs.evidence(1, 1), "retrieval/completion_rr": 0.25}
    rules = {"not_worse": {"context/sufficient": 0.1, "retrieval/completion_rr": 0.01}}
    one = case(place, values(100), after, rules)
    assert found(one, "sufficient not worse").state is State.PASSED
    told = found(one, "completion_rr not worse")
    assert told.state is State.FAILED
    assert "worse on 30: вопрос-000" in told.why


def test_a_critical_cohort_is_judged_by_itself(place):
    kinds = {f"вопрос-{n:03}": {"kind": "access" if n < 60 else "rest"} for n in range(200)}
    after = {**values(200), **{f"вопрос-{n:03}": runs.evidence(0, 0) for n in range(40)}}
    one = case(place, values(100), after, facts={"critical_cohorts": ["kind=access"]}, cohorts=kinds)
    assert found(one, "sufficient not worse").state is State.PASSED
    assert found(one, "kind=access not worse").state is State.FAILED


def test_a_loss_that_few_labels_could_turn_asks_for_the_ground_truth_first(place):
    after = values(97)
    unjudged = {query: [["д", 0, 9]] for query in list(after)[97:100]}
    one = case(place, values(100), after, {"not_worse": {"context/sufficient": 0.03}}, unjudged={q: [] for q in after})
    assert "check the ground truth" not in found(one, "sufficient not worse").why
    for query, places in unjudged.items():
        one.run.queries[query]["unjudged"] = places
    told = found(one, "sufficient not worse").why
    assert "1 label could turn this: check the ground truth before rolling back" in told


def test_sides_that_are_judged_unequally_are_provisional(place):
    before, after = (values(100, **{"retrieval/judged_at_5": share}) for share in (0.9, 0.5))
    told = found(case(place, before, after), "judged")
    assert (told.state, told.hard) == (State.CANNOT_JUDGE, False)
    assert "review export" in told.why


def test_whole_documents_judge_no_chunker(place):
    half = {f"вопрос-{n:03}": {"granularity": "document" if n < 100 else "span"} for n in range(200)}
    rules = {"not_worse": {"context/sufficient": 0.3}}
    one = case(place, values(150), values(150), rules, cohorts=half)
    assert "on 200 queries" in found(one, "sufficient not worse").why
    one.run.facts["component"] = "chunker"
    assert "on 100 queries" in found(one, "sufficient not worse").why
    for record in (one.base, one.run):
        for row in record.queries.values():
            row["cohorts"] = {"granularity": "document"}
        record.__dict__.pop("groups", None)
    told = found(one, "sufficient not worse")
    assert told.state is State.CANNOT_JUDGE
    assert told.why == "in all queries any chunk of a document counts, which tells nothing about a chunker"


def test_tokens_beyond_the_budget_fail(place):
    assert found(case(place, rules={"tokens": 599.0}), "tokens").state is State.FAILED
    assert found(case(Workspace(place.root / "б"), rules={"tokens": 600.0}), "tokens").state is State.PASSED


@pytest.mark.parametrize(
    ("n", "interval", "most", "state"),
    [
        (200, [80.0, 99.0], 100.0, State.PASSED),
        (200, [101.0, 150.0], 100.0, State.FAILED),
        (200, [90.0, 110.0], 100.0, State.CANNOT_JUDGE),
        (20, [10.0, None], 100.0, State.CANNOT_JUDGE),
        (0, None, 100.0, State.CANNOT_JUDGE),
    ],
)
def test_p95_is_judged_by_its_interval_and_only_with_queries_enough(place, n, interval, most, state):
    one = case(place, rules={"latency_p95_ms": most})
    if interval:
        one.run.metrics["measures"]["latency/total_p95"] = {"mean": 95.0, "n": n, "interval": interval}
    told = found(one, "latency p95")
    assert told.state is state
    assert (f"time at least {FEWEST_TIMED}" in told.why) == (n < FEWEST_TIMED)


def test_the_fewest_timed_queries_are_those_from_which_p95_has_an_upper_end():
    assert order_bounds(FEWEST_TIMED, 95)[1] == FEWEST_TIMED
    assert order_bounds(FEWEST_TIMED - 1, 95)[1] > FEWEST_TIMED - 1


def test_a_difference_in_time_needs_one_session(place):
    one = case(place, rules={"latency_times": 2.0})
    assert found(one, "latency against baseline").state is State.CANNOT_JUDGE
    timed = {"total_p50": 30.0, "baseline_p50": 10.0}
    for end, state in ((0.5, State.PASSED), (0.8, State.CANNOT_JUDGE), (1.5, State.FAILED)):
        one = case(Workspace(place.root / f"{end}"), rules={"latency_times": 2.0}, latency=timed)
        one.run.metrics["measures"]["latency/log_ratio"] = {"mean": end, "n": 100, "interval": [end - 0.2, end + 0.1]}
        assert found(one, "latency against baseline").state is state
        elsewhere = replace(one, base=runs.build(place, run=f"released-{end}", values=values(100), config=DECLARED))
        assert found(elsewhere, "latency against baseline").state is State.CANNOT_JUDGE


# Policies


def test_the_shipped_policies_are_whole_and_the_strict_one_asks_for_more():
    strict, lenient = policy("strict"), policy("lenient")
    assert (strict.doubt, lenient.doubt) == (Decision.STOP, Decision.CANARY)
    for measure, margin in lenient.not_worse.items():
        assert strict.not_worse[measure] <= margin
    assert strict.ingestion >= lenient.ingestion


def written(path, **changes):
    node = {key: getattr(policy("strict"), key) for key in KEYS}
    node = {key: str(value) if key == "doubt" else value for key, value in node.items()} | changes
    path.write_text(yaml.safe_dump({key: value for key, value in node.items() if value is not ...}), encoding="utf-8")
    return str(path)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"criticl_queries": True}, "criticl_queries: found an unknown rule"),
        ({"judged": ...}, "judged: found nothing, expected a value"),
        ({"access_exposed": None}, "access_exposed: found null, expected true or false"),
        ({"ingestion": 1.5}, "ingestion: found 1.5, expected a share above 0"),
        ({"ingestion": True}, "ingestion: found True, expected a share"),
        ({"tokens": float("nan")}, "tokens: found nan, expected a number above 0"),
        ({"incidents": "да"}, "incidents: found 'да', expected true or false"),
        ({"not_worse": ["context/sufficient"]}, "not_worse: found ['context/sufficient'], expected `measure: margin`"),
        ({"not_worse": {"context/suficient": 0.1}}, "not_worse: found 'context/suficient', expected a measure that is"),
        ({"not_worse": {"latency/total_p95": 5}}, "found 'latency/total_p95', expected a measure of which every query"),
        ({"not_worse": {"retrieval/completion_rank": 1}}, "expected a measure of which every query has a value"),
        ({"not_worse": {"context/sufficient": 0}}, "found 0, expected a margin above 0"),
        ({"tokens": 10**400}, "expected a number above 0"),
        ({"doubt": "maybe"}, "doubt: found 'maybe', expected stop or canary"),
    ],
)
def test_a_wrong_policy_is_one_sentence_with_file_and_key(tmp_path, changes, said):
    with pytest.raises(ConfigError) as refused:
        policy(written(tmp_path / "политика.yaml", **changes))
    assert str(refused.value).startswith(str(tmp_path / "политика.yaml"))
    assert said in str(refused.value)


def test_a_policy_of_ones_own_is_read(tmp_path):
    assert policy(written(tmp_path / "наша.yaml", tokens=700)).tokens == 700


@pytest.mark.parametrize("text", ["- a\n", "{", "!!python/object/apply:os.system [true]\n", "tokens: 2025-13-45\n"])
def test_what_is_no_mapping_of_yaml_is_refused(tmp_path, text):
    (tmp_path / "p.yaml").write_text(text)
    with pytest.raises(ConfigError, match="expected"):
        policy(str(tmp_path / "p.yaml"))


@pytest.mark.parametrize("more", ["doubt: canary\n", "not_worse: {context/coverage: 0.1, context/coverage: 0.9}\n"])
def test_a_rule_that_stands_twice_is_refused_for_nobody_could_say_which_decides(tmp_path, more):
    path = Path(written(tmp_path / "p.yaml", not_worse={} if "doubt" in more else ...))
    path.write_text(path.read_text() + more)
    with pytest.raises(ConfigError, match=r"p\.yaml: found the key (doubt|context/coverage) twice"):
        policy(str(path))


# What is kept and told


def test_junit_is_xml_whatever_names_and_reasons_hold(place):
    one = case(place)
    told = [
        Outcome('ki"nd=<доступ>\x00', True, State.FAILED, "потеряно & \x1b[31m"),
        Outcome("b", False, State.CANNOT_JUDGE, ""),
    ]
    suite = ElementTree.fromstring(junit(one.run, decided(told, Decision.STOP), told))
    assert (suite.get("tests"), suite.get("failures"), suite.get("errors")) == ("2", "1", "1")
    assert [child.tag for test in suite for child in test] == ["failure", "error"]


@pytest.mark.parametrize(("doubt", "kind"), [(Decision.CANARY, "skipped"), (Decision.STOP, "error")])
def test_junit_is_green_just_when_the_exit_code_is_0(place, doubt, kind):
    told = [Outcome("a", True, State.PASSED, ""), Outcome("b", False, State.CANNOT_JUDGE, "мало")]
    suite = ElementTree.fromstring(junit(case(place).run, decided(told, doubt), told))
    assert [child.tag for test in suite for child in test] == [kind]
    assert (suite.get("errors") == "0") == (decided(told, doubt).code == 0)


def test_markdown_begins_with_the_decision(place):
    one = case(place)
    told = [Outcome("a|b", True, State.FAILED, "нет"), Outcome("c", False, State.PASSED, "да")]
    page = markdown(one.run, decided(told, Decision.STOP), told)
    assert page.startswith("**stop: new (new-0001): a\\|b failed**")


def test_no_decision_is_lost_or_overwritten_however_many_are_made_at_once(place):
    one = case(place)
    told = outcomes(one)
    made = decided(told, Decision.STOP)
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda _: kept(one.run, one.base, one.policy, made, told, place), range(24)))
    lines = [
        json.loads(line) for line in (place.experiments / "decisions.jsonl").read_text(encoding="utf-8").splitlines()
    ]
    assert len(lines) == 24
    assert len(list(one.run.folder.glob("decision*.json"))) == len(list(one.run.folder.glob("decision*.md"))) == 24
    assert lines[0]["fingerprints"] == dict(one.run.fingerprints)
    assert lines[0]["policy"]["digest"] == policy("strict").digest


def test_a_line_that_was_cut_off_swallows_no_decision(place):
    one = case(place)
    place.experiments.mkdir(exist_ok=True)
    (place.experiments / "decisions.jsonl").write_text('{"half": ')
    for _ in range(2):
        kept(one.run, one.base, one.policy, Decided(Decision.STOP, 2), [], place)
    half, *whole = (place.experiments / "decisions.jsonl").read_text(encoding="utf-8").splitlines()
    assert half == '{"half": '
    assert [json.loads(line)["run"] for line in whole] == [one.run.id, one.run.id]


def test_forbidden_documents_stop_a_run_under_a_policy_of_nothing_else(place):
    nothing = dict.fromkeys(KEYS, None) | {"access_exposed": False, "not_worse": {}, "doubt": Decision.CANARY}
    shown = {"acl/violations": 1.0, "acl/exposure": 1.0}
    for after, decision in ((values(100, **shown), Decision.STOP), (values(100), Decision.SHIP)):
        told = outcomes(case(Workspace(place.root / decision), after=after, rules=nothing))
        assert [outcome.rule for outcome in told] == ["access violations"]
        assert decided(told, Decision.CANARY).decision is decision


# The command


@pytest.fixture
def work(tmp_path, monkeypatch):
    return workshop(tmp_path, monkeypatch)


def names(work):
    found = [json.loads(path.read_text()) for path in work.glob("experiments/runs/*/*/run.json")]
    return {row["variant"]: row["run"] for row in found}


@pytest.mark.slow
def test_a_run_that_shows_what_is_forbidden_is_stopped_and_a_harmless_one_is_not(work):
    variant(work, "open", 'defaults:\n  - override /access: "off"')
    assert ablate(*QUIET, "retriever=bm25", "+variant=open").code == 0
    stopped = ablate("gate", names(work)["open"], "--json")
    record = json.loads(stopped.out)
    assert stopped.code == 1, stopped.err
    assert record["decision"] == "stop"
    assert {row["rule"]: row["state"] for row in record["outcomes"]}["access violations"] == "failed"
    assert ablate(*QUIET, "retriever=bm25", "+variant=mmr").code == 0
    mmr = names(work)["mmr"]
    told = ablate("gate", mmr, "--policy", "lenient", "--junit", "reports/ci/gate.xml", "--markdown", "gate.md")
    assert told.out.startswith(("ship: mmr", "canary: mmr", "stop: mmr"))
    assert ElementTree.parse(work / "reports/ci/gate.xml").getroot().get("failures") is not None
    assert (work / "gate.md").read_text(encoding="utf-8").startswith("**")
    assert len((work / "experiments/decisions.jsonl").read_text().splitlines()) == 2
    told = ablate("gate", mmr, "--policy", "lenient", "--markdown", str(work))
    assert (told.code, told.out[:4] in ("ship", "cana", "stop")) == (2, True)
    assert "expected a place to write to" in told.err
    refused = ablate("gate", mmr, "--against", mmr)
    assert refused.code == 2
    assert (
        refused.err == f"ablate: --against: found {mmr} itself, expected the run that it would replace; name that one\n"
    )
    refused = ablate("gate", names(work)["baseline"])
    assert refused.code == 2
    assert "expected a variant; name the released run with --against" in refused.err
    moved = work / "experiments/runs"
    shutil.copytree(next(moved.glob("*/mmr-*")), moved / "other" / "released-1")
    facts = json.loads((moved / "other/released-1/run.json").read_text())
    facts |= {"run": "released-1", "study": "other", "fingerprints": {**facts["fingerprints"], "ground_truth": "f"}}
    (moved / "other/released-1/run.json").write_text(json.dumps(facts))
    refused = ablate("gate", mmr, "--against", "released-1")
    assert refused.code == 2
    assert refused.err.startswith("ablate: ground_truth: found ")


@pytest.mark.slow
def test_a_baseline_of_another_retriever_is_held_against_the_one_that_is_released(work):
    for retriever in ("bm25", "dense"):
        assert ablate(*QUIET, f"retriever={retriever}").code == 0
    found = [(read_config(path), path.name) for path in work.glob("experiments/runs/*/baseline-*")]
    new, old = (next(name for retriever, name in found if retriever.endswith(kind)) for kind in ("Dense", "Bm25"))
    told = ablate("gate", new, "--against", old, "--policy", "lenient", "--json")
    record = json.loads(told.out)
    assert (record["run"], record["against"]) == (new, old)
    rules = {row["rule"]: row["why"] for row in record["outcomes"]}
    before, after = (means(next(work.glob(f"experiments/runs/*/{name}")))["context/sufficient"] for name in (old, new))
    assert f"{after - before:+.3f}" in rules["sufficient not worse"]


def read_config(run):
    return yaml.safe_load((run / "config.yaml").read_text(encoding="utf-8"))["retriever"]["_target_"]


# The subset of a pull request


def demo(subset):
    return Folder("pkg://ablate/data/demo", "test", "none", 1, "nobody", True, subset).read()


def test_a_pull_request_is_asked_what_is_critical_and_a_few_of_every_kind():
    everything, few = demo(None), demo("pr")
    assert 0 < len(few.queries) < len(everything.queries) / 2
    assert {query.id for query in everything.queries if query.critical} <= {query.id for query in few.queries}
    counts = {}
    for dataset in (everything, few):
        for query in dataset.queries:
            for stratum in strata(query):
                counts.setdefault(stratum, {}).setdefault(dataset is few, []).append(query.id)
    for stratum, sides in counts.items():
        assert len(sides.get(True, ())) >= min(PER_STRATUM, len(sides[False])), stratum
    assert few.fingerprints["corpus"] == everything.fingerprints["corpus"]
    assert few.fingerprints["ground_truth"] != everything.fingerprints["ground_truth"]
    assert few.truths.keys() == {query.id for query in few.queries}
    assert demo("pr").fingerprints == few.fingerprints


def test_one_more_query_moves_at_most_one_out_of_a_stratum():
    everything = demo(None)
    before = pr(everything)
    less = replace(everything, queries=everything.queries[1:])
    gone = everything.queries[0]
    assert len(before - pr(less) - {gone.id}) == 0
    assert len(pr(less) - before) <= len(list(strata(gone)))


def test_another_subset_is_refused_by_name():
    with pytest.raises(ConfigError, match='subset: found "nightly", expected one of pr'):
        demo("nightly")
