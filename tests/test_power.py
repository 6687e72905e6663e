"""What a study can tell, before it runs; and a baseline beside itself, where whatever differs is noise."""

import json
import subprocess
import sys
from dataclasses import dataclass, replace
from pathlib import Path

import cli
import pytest
import runs
from cli import ENCODED, QUIET, ablate, put, small, variant, workshop

from ablate.errors import ConfigError
from ablate.page import Terminal
from ablate.repeat import NOTE, Repeat, answer, details
from ablate.sensitivity import cases, seen, told
from ablate.statistics import Differences, differences, placebo, spread, verdict
from ablate.statistics.power import chance, needed
from ablate.types import ranking
from ablate.workspace import Workspace

DECLARED = {"verdict": {"_target_": "ablate.verdict.Declared", "primary": None, "margin": 0.1}}
SUFFICIENT = "context/sufficient"
ASKED: list[str] = []
"""Every query that a stand-in below was asked, in order."""


@dataclass(frozen=True)
class Shaky:
    """A reranker that turns a ranking round whenever a query comes again."""

    def __call__(self, query, hits):
        ASKED.append(query.id)
        sign = -1.0 if ASKED.count(query.id) > 1 else 1.0
        return ranking([hit._replace(score=sign * len(hit.chunk.text)) for hit in hits])


@dataclass(frozen=True)
class Tired:
    """A reranker that works once a query."""

    def __call__(self, query, hits):
        if query.id in ASKED:
            raise ValueError("весы устали")
        ASKED.append(query.id)
        return hits


@pytest.fixture
def work(tmp_path, monkeypatch):
    ASKED.clear()
    put(
        tmp_path / "conf",
        {f"reranker/{name.lower()}.yaml": f"_target_: test_power.{name}\n" for name in ("Shaky", "Tired")},
    )
    return workshop(tmp_path, monkeypatch)


def alone(n):
    return {f"вопрос-{place}": f"вопрос-{place}" for place in range(n)}


def in_threes(n):
    return {f"вопрос-{place}": f"тема-{place // 3}" for place in range(n)}


def ahead(labels, margin=0.1, variants=0, pairs=(), before=()):
    return cases(labels, SUFFICIENT, margin, (variants, dict(pairs)), dict(before))


def test_the_first_sentence_is_the_answer():
    """Connor 1987 with the steps of the test: 175 queries, if a fifth change, by a tenth on balance."""
    found = ahead(alone(175))
    assert [case.how for case in found.expected] == ["20% of queries, each by itself"]
    assert found.expected[0].alone.needed == 175
    said = " ".join(told(found, Terminal(100)).split("\n\n")[0].split())
    assert said == (
        "175 queries in 175 clusters find a difference of 0.1 in sufficient with a chance of 80%; 80% takes about 175: "
        "if a variant moves 20% of queries, each by itself"
    )


def test_queries_that_share_a_source_tell_less_and_between_nothing_and_threefold():
    apart, together = (case.alone for case in ahead(in_threes(180)).expected)
    assert apart.needed < together.needed
    assert together.needed == pytest.approx(3 * ahead(alone(180)).expected[0].alone.needed, abs=3)
    assert apart.chance > together.chance
    said = " ".join(told(ahead(in_threes(180)), Terminal(100)).split())
    assert f"with a chance of {together.chance:.0%} to {apart.chance:.0%}; 80% takes about {apart.needed} to" in said


def test_three_queries_find_nothing():
    found = ahead(alone(3), margin=0.5)
    assert found.expected[0].alone.chance == 0
    assert "nothing" in told(found, Terminal(100))


def test_what_is_recorded_is_expected_the_middle_one():
    labels, pairs = alone(100), {}
    for name, moved in (("много", 40), ("мало", 4), ("средне", 16)):
        each = dict.fromkeys(labels, 0.0) | {query: (-1.0) ** place for place, query in enumerate(list(labels)[:moved])}
        pairs[name] = differences(dict.fromkeys(labels, 0.0), each, labels)
    found = ahead(labels, variants=3, pairs=pairs)
    (case,) = found.expected
    assert case.how == "as средне did"
    assert (case.alone.needed, case.among.needed) == tuple(
        needed(spread(pairs["средне"]), 0.1, level) for level in (0.05, 0.05 / 3)
    )
    assert case.smallest_p == 2 / 2**16
    assert case.among.chance == chance(spread(pairs["средне"]), 100, 0.1, 0.05 / 3)
    assert "as one of 3 variants" in told(found, Terminal(100))


def test_a_baseline_alone_says_what_a_variant_unlike_it_would_ask_for():
    labels = alone(60)
    before = {query: float(place % 2) for place, query in enumerate(labels)}
    far = next(case for case in ahead(labels, before=before).cases if "unrelated" in case.how)
    assert far.alone.needed == needed(
        replace(spread(differences(dict.fromkeys(labels, 0), before)), variance=0.5 * 60 / 59), 0.1
    )


def test_a_baseline_that_is_the_same_everywhere_tells_nothing_of_how_a_variant_spreads():
    labels = alone(60)
    assert not any("unrelated" in case.how for case in ahead(labels, before=dict.fromkeys(labels, 1.0)).cases)


def test_shares_of_queries_are_assumed_of_shares_alone():
    labels, known = alone(60), (0, {})
    with pytest.raises(ConfigError, match=r"found 0\.5 in tokens, expected runs that show how far that spreads"):
        cases(labels, "context/tokens", 0.5, known, {})
    tokens = {query: 100.0 * (place % 7) for place, query in enumerate(labels)}
    found = cases(labels, "context/tokens", 0.5, known, tokens)
    assert [case.how for case in found.cases] == ["as if unrelated to the baseline"]
    assert f"{found.cases[0].alone.detectable:.3f}" in told(found, Terminal(100))


def test_a_margin_beyond_any_share_needs_runs_that_show_the_spread():
    labels = alone(60)
    with pytest.raises(ConfigError, match="found 50 in sufficient, expected runs that show how far that spreads"):
        ahead(labels, margin=50)
    tokens = {query: 100.0 * (place % 7) for place, query in enumerate(labels)}
    assert [case.how for case in ahead(labels, margin=50, before=tokens).cases] == ["as if unrelated to the baseline"]


def test_variants_of_the_study_count_and_only_what_moved_is_shown(tmp_path):
    place = Workspace(tmp_path)
    baseline = runs.build(
        place, values={f"вопрос-{n}": runs.evidence(n % 2, n % 2) for n in range(40)}, config=DECLARED
    )
    still = {query: row["values"] for query, row in baseline.queries.items()}
    moved = still | {f"вопрос-{n}": runs.evidence(1.0, 1.0) for n in range(0, 40, 4)}
    made = [baseline] + [
        runs.build(place, name, values, baseline=baseline, config=DECLARED, component=component)
        for name, values, component in (
            ("same", still, "reranker"), ("moved", moved, "retriever"), ("packing", moved, "packer"),
        )
    ]  # fmt: skip
    variants, pairs = seen(made, SUFFICIENT)
    assert (variants, list(pairs)) == (3, ["moved"])
    assert list(seen(made, "retrieval/coverage_at_640_tokens")[1]) == ["packing"]
    assert sum(pairs["moved"].each) == 10


def test_the_command_asks_no_model_and_leaves_nothing_behind(work):
    ENCODED.clear()
    said = ablate("power", *QUIET, "embedder=counted", "--json")
    assert said.code == 0, said.err
    found = json.loads(said.out)
    assert (found["measure"], found["n"], found["family"]) == (SUFFICIENT, 35, 0)
    assert found["clusters"] < found["n"]
    assert ENCODED == []
    assert not (work / "experiments").exists()


def test_what_cuts_or_packs_text_is_told_in_coverage_at_the_budget(work):
    assert "in coverage_at_640_tokens" in " ".join(ablate("power", *QUIET, "+variant=mmr").out.split())


WRONG = {
    "reranker": "power: found reranker, expected KEY=VALUE",
    "+variant=rerankr": "did you mean variant/reranker?",
    "-m +variant=bm25,hybrid": "found a sweep, expected one baseline",
    "--again +variant=bm25": "expected a baseline alone",
    "verdict.margin=0": "margin: found 0.0, expected a number above 0",
    "verdict.primary=нет": "expected a measure that is better when higher or lower",
}


@pytest.mark.parametrize("words", WRONG)
def test_a_wrong_question_is_one_sentence_and_runs_nothing(work, words):
    said = ablate("power", *QUIET, *words.split())
    assert (said.code, said.out) == (2, "")
    assert WRONG[words] in said.err
    assert said.err.count("\n") == 1
    assert not (work / "experiments").exists()


@pytest.mark.slow
def test_it_answers_without_what_models_need():
    heavy = ["torch", "transformers", "sentence_transformers", "mlflow", "faiss", "onnxruntime", "scipy"]
    code = (
        f"import sys; from ablate.__main__ import main; main(['power']); sys.exit(bool({heavy!r} & sys.modules.keys()))"
    )
    code = code.replace(f"{heavy!r} &", f"set({heavy!r}) &")
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, check=False).returncode == 0


@pytest.mark.slow
def test_after_a_study_its_variants_are_expected(work):
    variant(work, "turned", "defaults:\n  - override /reranker: reverse")
    assert cli.quiet("-m", "+variant=turned,bm25").code == 0
    found = json.loads(ablate("power", *QUIET, "--json").out)
    assert found["family"] == 2
    assert found["expected"][0]["how"] in ("as turned did", "as bm25 did")


# A baseline and itself


def pair(*each):
    return Differences(each, tuple(range(len(each))), 1, binary=True)


def timings(*ratios):
    return [
        {"query_id": str(n), "baseline": {"a": 10.0}, "variant": {"a": 10.0 * ratio}} for n, ratio in enumerate(ratios)
    ]


def again(place, differing=(), values=(0,) * 20, ratios=(), dealt=None):
    baseline = runs.build(place, values={"а": runs.evidence(1.0, 1.0), "б": runs.evidence(0.0, 0.5)}, config=DECLARED)
    return Repeat(baseline, SUFFICIENT, differing, verdict(pair(*values), 0.1), dealt or {}, timings(*ratios))


def test_only_what_is_identical_in_rankings_and_values_holds(tmp_path):
    assert again(Workspace(tmp_path / "1")).holds
    assert answer(again(Workspace(tmp_path / "2"))).startswith(
        "the baseline and itself: identical on each of 2 queries"
    )
    other = again(Workspace(tmp_path / "3"), differing=["б"])
    assert not other.holds
    assert "DIFFER on 1 of 2 queries (б); sufficient is identical" in answer(other)
    assert not again(Workspace(tmp_path / "4"), values=(1, -1, *[0] * 18)).holds


def test_false_words_are_counted_over_all_variants_and_have_an_error(tmp_path):
    deals = {name: placebo(pair(*[1, -1] * 12, *[0] * 30), 0.1, splits=50, seed=seed) for seed, name in enumerate("аб")}
    found = again(Workspace(tmp_path), dealt=deals)
    assert (found.deals, found.error) == (100, pytest.approx((0.05 * 0.95 / 100) ** 0.5))
    assert found.false == pytest.approx(sum(each.false for each in deals.values()) / 2)
    assert found.holds
    worse = {name: replace(each, false=0.1) for name, each in deals.items()}
    assert not replace(found, dealt=worse).holds
    assert "0.100 of 100 deals, promised at most 0.05 (standard error 0.022)" in " ".join(
        details(replace(found, dealt=worse))
    )


def test_the_noise_of_latency_is_the_median_ratio_of_queries(tmp_path):
    found = again(Workspace(tmp_path), ratios=(1.1,) * 30)
    assert found.latency()["first_p50"]["mean"] == 10
    assert found.latency()["second_p95"]["mean"] == 11
    assert "+10.0% (+10.0% to +10.0%)" in list(details(found))[-1]
    assert "not measured" in list(details(again(Workspace(tmp_path / "off"))))[-1]


@pytest.mark.slow
def test_a_baseline_runs_again_computed_anew_and_is_no_run_of_the_study(work):
    variant(work, "turned", "defaults:\n  - override /reranker: reverse")
    words = [*QUIET, "embedder=counted", "latency=sample", "latency.queries=8"]
    assert ablate(*words, "+variant=turned").code == 0
    ENCODED.clear()
    assert ablate(*words).code == 0
    timed = len(ENCODED)
    said = ablate("power", "--again", *words, "--json")
    assert said.code == 0, said.err
    found = json.loads(said.out)
    assert (found["differing"], found["verdict"]["word"], found["verdict"]["p"]) == ([], "identical", 1)
    assert list(found["placebo"]["variants"]) == ["turned"]
    assert found["latency"]["log_ratio"]["n"] == 8
    assert len(set(ENCODED)) > 35 > timed  # chunks and queries, which the first run had kept
    made = list(work.glob("experiments/runs/*/*/run.json"))
    assert len(made) == 2
    notes = list(work.glob(f"experiments/runs/*/*/{NOTE}"))
    assert [note.parent.name for note in notes] == [found["baseline"]]
    assert json.loads(notes[0].read_text(encoding="utf-8"))["latency"] == found["latency"]
    assert ablate("compare", *[path.parent.name for path in made]).code == 0


@pytest.mark.slow
@pytest.mark.parametrize(
    ("reranker", "said"), [("shaky", "the baseline and itself DIFFER on"), ("tired", "ran once and failed again")]
)
def test_a_line_that_gives_something_else_or_breaks_the_second_time_is_told(work, reranker, said):
    found = ablate("power", "--again", *QUIET, f"dataset.dir={small(work / 'data')}", f"reranker={reranker}")
    assert found.code == 1
    assert said in found.out + found.err
    assert "Traceback" not in found.err
    assert len(list(Path(work).glob("experiments/runs/*/*/run.json"))) == 1
