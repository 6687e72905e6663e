"""Stored rankings on a new version of their ground truth: equal values for equal truths, and nothing runs again."""

import json
import shlex
import shutil
from pathlib import Path

import pytest
from cli import ENCODED, ablate, dataset, facts, means, put, quiet, runs, small, variant, workshop

from ablate import display, records, rescore
from ablate.workspace import Workspace

SCORED = ("queries.jsonl", "ranking.jsonl", "ranking.trec")
ANNA = {"principals": ["user:anna"]}
LEAVE = {"_id": "q-отпуск", "text": "сколько длится отпуск", **ANNA}
REMOTE = {"_id": "q-remote", "text": "remote work days", **ANNA}
QUOTES = {
    "q-отпуск": [[{"doc_id": "отпуск", "quote": "28 календарных дней в году"}]],
    "q-remote": [[{"doc_id": "remote", "quote": "allowed on two days a week"}]],
}


@pytest.fixture
def work(tmp_path, monkeypatch):
    ENCODED.clear()
    return workshop(tmp_path, monkeypatch)


@pytest.fixture
def data(work):
    """The first version, on which the baseline has run with k 1, and a variant that turns rankings round."""
    variant(work, "turned", "defaults:\n  - override /reranker: reverse")
    folder = small(work / "первая")
    said = quiet("+variant=turned", f"dataset.dir={folder}", "k=1", "embedder=counted")
    assert said.code == 0, said.err
    return folder


def rows(run, name):
    return {row["query_id"]: row for row in map(json.loads, (run / name).read_text(encoding="utf-8").splitlines())}


def version(work, data, name="вторая", queries=(LEAVE, REMOTE), quotes=QUOTES, **files):
    """Another version of the small data set: its queries and what they need, and the text of further files."""
    folder = work / name
    shutil.copytree(data, folder)
    truths = [{"query_id": query["_id"], "alternatives": quotes[query["_id"]]} for query in queries]
    corpus = [json.loads(line) for line in (data / "corpus.jsonl").read_text(encoding="utf-8").splitlines()]
    dataset(folder, corpus, queries, truths)
    put(folder, files)
    return folder


def again(folder, *names, flags=()):
    return ablate("rescore", "--dataset", str(folder), *flags, *names)


def ids():
    return [run.name for run in runs().values()]


def of(run):
    return facts(run).get("rescored_from")


@pytest.mark.parametrize(
    "overrides",
    [
        ("+variant=chunking_parent_child", "retriever=bm25"),
        ("+variant=context_packing", "retriever=bm25", "budget=60"),
        ("+variant=access_postfilter", "retriever=bm25", "+score.cost.context_tokens=0.1", "+score.cost.queries=1"),
        ("access=off", "retriever=bm25", "score.span_threshold=0.8"),
        ("+variant=ann_ivf", "depth=5", "k=3"),
    ],
)
def test_the_same_truths_give_every_value_again_to_the_bit(work, overrides):
    assert quiet(*overrides).code == 0
    before = runs()
    sample = Path(rescore.__file__).parent / "data/sample"
    shutil.copytree(sample, work / "образец")
    put(work / "образец", {"GUIDE.md": "Правила разметки стали подробнее.\n"})  # it is part of the fingerprint
    said = again("образец", *(run.name for run in before.values()))
    assert said.code == 0, said.err
    after = runs()
    assert after.keys() == before.keys()
    for name, old in before.items():
        new = after[name]
        assert of(new) == old.name
        for file in ("ranking.jsonl", "ranking.trec", "queries.jsonl", "overrides.yaml", "changes.json"):
            assert (new / file).read_bytes() == (old / file).read_bytes(), file
        was, now = (json.loads((run / "metrics.json").read_text(encoding="utf-8"))["measures"] for run in (old, new))
        assert now == {measure: row for measure, row in was.items() if measure not in rescore.LOST}
        assert facts(new)["fingerprints"]["ranking"] == facts(old)["fingerprints"]["ranking"]


def test_a_reviewed_version_gives_every_value_of_a_fresh_run(work, monkeypatch):
    argv = ("+variant=chunking_parent_child", "retriever=bm25", "latency=off")
    assert quiet(*argv).code == 0
    before = runs()
    names = [run.name for run in before.values()]
    assert ablate("review", "export", *names, "--out", "sheet.jsonl").code == 0
    sheet = [json.loads(line) for line in (work / "sheet.jsonl").read_text(encoding="utf-8").splitlines()]
    first = list({row["query_id"]: row for row in reversed(sheet)}.values())
    answers = [
        {"verdict": "не релевантно"},
        {"verdict": "partly"},
        {"verdict": "релевантно", "alternative": "новая"},
        {"verdict": "relevant"},
    ]
    for number, row in enumerate(first):
        row |= answers[number % 4]
        if row["known facts"].count("\n") == 1:
            row |= {"verdict": "relevant", "alternative": "1"}
        if not row["known facts"] or row["query_id"].startswith("filter"):  # evidence would break a rule there
            row |= {"verdict": "partly", "alternative": ""}
    put(work, {"sheet.jsonl": "".join(json.dumps(row) + "\n" for row in sheet)})
    sample = "pkg://ablate/data/sample"
    said = ablate("review", "apply", "sheet.jsonl", "--dataset", sample, "--to", "reviewed", "--who", "Вера")
    assert said.code == 0, said.err
    assert again("reviewed", *names).code == 0
    after = {name: {file: (run / file).read_bytes() for file in SCORED} for name, run in runs().items()}
    old = {name: {file: (run / file).read_bytes() for file in SCORED} for name, run in before.items()}
    assert all(after[name]["queries.jsonl"] != old[name]["queries.jsonl"] for name in before)
    put(work, {"elsewhere/experiments/.keep": ""})
    monkeypatch.setenv("ABLATE_WORKSPACE", str(work / "elsewhere"))
    assert quiet(*argv, f"dataset.dir={work / 'reviewed'}").code == 0
    fresh = runs("elsewhere")
    assert {name: {file: (run / file).read_bytes() for file in SCORED} for name, run in fresh.items()} == after
    for name, run in runs().items():
        assert facts(run)["study"] == facts(fresh[name])["study"]
        was, now = (json.loads((path / "metrics.json").read_text(encoding="utf-8")) for path in (fresh[name], run))
        assert now["measures"] == {
            measure: row for measure, row in was["measures"].items() if measure not in rescore.LOST
        }


def test_new_evidence_is_scored_and_nothing_is_encoded(work, data):
    shown = {query: row["context"][0]["doc_id"] for query, row in rows(runs()["baseline"], "ranking.jsonl").items()}
    other = {"отпуск": "remote", "remote": "отпуск"}
    evidence = {"отпуск": QUOTES["q-отпуск"], "remote": QUOTES["q-remote"]}
    right = {query: evidence[found] for query, found in shown.items()}
    wrong = {query: evidence[other[found]] for query, found in shown.items()}
    ENCODED.clear()
    for quotes, sufficient in ((right, 1.0), (wrong, 0.0)):
        folder = version(work, data, f"версия {sufficient}", quotes=quotes)
        said = again(folder, next(run.name for run in runs().values() if run.name.startswith("baseline")))
        assert said.code == 0, said.err
        assert means(runs()["baseline"])["context/sufficient"] == sufficient
        assert rows(runs()["baseline"], "queries.jsonl")["q-remote"]["values"]["context/coverage"] == sufficient
    assert ENCODED == []


def test_a_variant_brings_its_baseline_along_and_both_are_a_study_of_their_own(work, data):
    before = runs()
    said = again(version(work, data, quotes={**QUOTES, "q-remote": QUOTES["q-отпуск"]}), before["turned"].name)
    assert said.code == 0, said.err
    after = runs()
    assert {name: of(run) for name, run in after.items()} == {name: run.name for name, run in before.items()}
    assert facts(after["turned"])["baseline"] == after["baseline"].name
    assert after["turned"].parent == after["baseline"].parent != before["turned"].parent
    assert after["turned"].parent.name.startswith("вторая-")
    assert facts(after["turned"])["fingerprints"]["corpus"] == facts(before["turned"])["fingerprints"]["corpus"]
    assert said.out.index(before["turned"].parent.name) < said.out.index(after["turned"].parent.name)
    assert f"{after['turned'].name} from {before['turned'].name}" in said.out
    assert ablate("compare", "--study", after["turned"].parent.name).code == 0


def test_a_rescored_run_is_shown_and_not_made_twice(work, data):
    folder, first = version(work, data, **{"GUIDE.md": "x"}), ids()
    one = again(folder, *first)
    there = sorted(Path().glob("experiments/runs/*/*/run.json"))
    two = again(folder, *first)
    assert one.out == two.out
    assert sorted(Path().glob("experiments/runs/*/*/run.json")) == there
    assert len(there) == 4


def test_a_run_on_this_very_ground_truth_stands_for_itself(work, data):
    said = again(data, *ids())
    assert said.code == 0, said.err
    assert f"baseline: {runs()['baseline'].name} is scored on this ground truth already" in said.out
    assert len(list(Path().glob("experiments/runs/*/*/run.json"))) == 2


def test_a_rescored_run_stands_for_no_run(work, data):
    folder = version(work, data, **{"GUIDE.md": "x"})
    again(folder, *ids())
    said = quiet("+variant=turned", f"dataset.dir={folder}", "k=1", "embedder=counted")
    assert "baseline: running" in said.err
    assert of(runs()["baseline"]) is None


def test_other_texts_are_refused_with_both_fingerprints(work, data):
    folder, was = version(work, data), facts(runs()["baseline"])["fingerprints"]["corpus"]
    with (folder / "corpus.jsonl").open("a", encoding="utf-8") as corpus:
        corpus.write('{"_id": "новый", "text": "Новый документ.", "acl": {"allow": ["public"]}}\n')
    said = again(folder, *ids())
    assert said.code == 2
    assert f"expected {was} of run baseline-" in said.err
    assert "the runs must be run again: python -m ablate" in said.err


def test_the_texts_of_every_run_are_compared_not_of_the_first_alone(work, data):
    first, folder = ids(), version(work, data)
    with (folder / "corpus.jsonl").open("a", encoding="utf-8") as corpus:
        corpus.write('{"_id": "новый", "text": "Новый документ.", "acl": {"allow": ["public"]}}\n')
    quiet(f"dataset.dir={folder}", "k=1", "embedder=counted")
    for names in ([runs()["baseline"].name, *first], [*first, runs()["baseline"].name]):
        said = again(version(work, data, f"третья {len(names[0])}{names[0][-2:]}", **{"GUIDE.md": "x"}), *names)
        assert said.code == 2
        assert f"of run {runs()['baseline'].name}, for its ranking is of other texts" in said.err


@pytest.mark.parametrize(
    ("query", "files"),
    [
        ({"_id": "q-новый", "text": "сколько длится отпуск", **ANNA}, {}),
        ({**REMOTE, "text": "remote work days?"}, {}),
        ({**REMOTE, "principals": ["user:anna", "user:boss"]}, {}),
        ({**REMOTE, "filter": {}, "as_of": "2025-01-01"}, {}),
        (REMOTE, {"groups.jsonl": '{"_id": "group:staff", "members": ["user:anna"]}\n'}),
    ],
)
def test_a_query_that_was_not_asked_so_is_refused_or_left_out(work, data, query, files):
    quotes = {**QUOTES, "q-новый": QUOTES["q-отпуск"]}
    folder = version(work, data, queries=[LEAVE, query], quotes=quotes, **files)
    said = again(folder, *ids())
    assert said.code == 2
    missing = 2 if files else 1  # a new group is another reader of both
    assert f"found no ranking of {missing} queries of " in said.err
    assert query["_id"] in said.err
    assert ("or score the other 1 alone with --common" in said.err) == (not files)
    common = again(folder, *ids(), flags=["--common"])
    assert common.code == (2 if files else 0), common.err
    if not files:
        counts = json.loads((runs()["turned"] / "metrics.json").read_text(encoding="utf-8"))["counts"]
        assert (counts["queries"], counts["queries_without_ranking"]) == (1, 1)
        assert rows(runs()["turned"], "queries.jsonl").keys() == {"q-отпуск"}
        assert "turned: 1 queries of this version were not asked and are not scored" in common.out


def test_on_some_of_the_queries_a_run_is_not_compared_with_one_on_all(work, data):
    folder = version(work, data, queries=[LEAVE, {**REMOTE, "text": "remote"}])
    again(folder, *ids(), flags=["--common"])
    some = facts(runs()["baseline"])["fingerprints"]["ground_truth"]
    quiet(f"dataset.dir={folder}", "k=1", "embedder=counted")
    assert facts(runs()["baseline"])["fingerprints"]["ground_truth"] != some


def test_queries_that_are_gone_are_left_out_and_said(work, data):
    said = again(version(work, data, queries=[LEAVE]), *ids())
    assert said.code == 0, said.err
    assert ": 1 queries that were asked are not in this version of the ground truth" in said.out
    run = runs()["baseline"]
    assert rows(run, "ranking.jsonl").keys() == rows(run, "queries.jsonl").keys() == {"q-отпуск"}
    assert {line.split()[0] for line in (run / "ranking.trec").read_text(encoding="utf-8").splitlines()} == {"q-отпуск"}


def test_the_command_of_a_refused_comparison_makes_the_runs_agree(work, data):
    old = runs()["baseline"].name
    second = version(work, data, **{"GUIDE.md": "x"})
    quiet(f"dataset.dir={second}", "k=1", "embedder=counted", "score.cutoffs=[1,2]")
    said = ablate("compare", old, runs()["baseline"].name)
    assert said.code == 2
    words = said.err.partition("python -m ablate ")[2]
    words = shlex.split(words)
    assert words[0] == "rescore"
    assert "--score-as" in words
    new = runs()["baseline"].name
    assert ablate(*words).code == 0
    fresh = next(run.name for run in map(Path, Path().glob("experiments/runs/*/*")) if run.is_dir() and of(run) == old)
    assert ablate("compare", fresh, new).code == 0


def test_a_ranking_that_is_not_the_scored_one_is_refused(work, data):
    run = runs()["baseline"]
    lines = (run / "ranking.jsonl").read_text(encoding="utf-8").replace('"end": 42', '"end": 41')
    (run / "ranking.jsonl").write_text(lines, encoding="utf-8")
    said = again(version(work, data, **{"GUIDE.md": "x"}), run.name)
    assert said.code == 2
    assert "ranking.jsonl: found another ranking of the query" in said.err


def test_a_place_in_a_document_that_there_is_not_is_told(work, data):
    run = runs()["baseline"]
    text = (run / "ranking.jsonl").read_text(encoding="utf-8").replace('"doc_id": "отпуск"', '"doc_id": "ушло"')
    (run / "ranking.jsonl").write_text(text, encoding="utf-8")
    said = again(version(work, data, **{"GUIDE.md": "x"}), run.name)
    assert said.code == 2
    assert "ranking.jsonl: found no 'ушло', expected places in documents of the dataset; run it again" in said.err


def test_a_failed_run_has_nothing_to_score(work, data):
    variant(work, "broken", "defaults:\n  - override /reranker: broken")
    quiet("+variant=broken", f"dataset.dir={data}", "k=1", "embedder=counted")
    folder, broken = version(work, data, **{"GUIDE.md": "x"}), runs()["broken"]
    said = again(folder, broken.name)
    assert said.code == 2
    assert f"run {broken.name}: found a run that failed, expected one with rankings" in said.err
    assert again(folder, flags=["--study", broken.parent.name]).code == 0
    assert of(runs()["turned"])


def test_the_change_is_given_to_programs_too(work, data):
    found = json.loads(again(version(work, data, queries=[LEAVE]), *ids(), flags=["--json"]).out)
    assert [len(found[side]) for side in ("before", "after")] == [1, 1]
    turned = next(row for row in found["rescored"] if row["label"] == "turned")
    assert turned["before"]["n"] == 2
    assert turned["after"]["n"] == 1
    assert turned["queries_removed"] == 1
    assert turned["after"]["measure"] == "context/sufficient"


def test_what_mlflow_gets_says_where_a_run_came_from(work, data):
    old = runs()["baseline"].name
    again(version(work, data, **{"GUIDE.md": "x"}), old)
    record = records.read(runs()["baseline"])
    assert display.tags(record)["ablate.rescored_from"] == old
    assert "ablate.rescored_from" not in display.tags(records.read(next(Path().glob(f"experiments/runs/*/{old}"))))
    assert record.config["dataset"]["dir"].endswith("вторая")
    assert Workspace(work).runs in record.folder.absolute().parents


def test_a_recorded_config_makes_nothing_but_components(work, data, monkeypatch):
    folder = version(work, data, **{"GUIDE.md": "Правила стали подробнее.\n"})
    run = runs()["baseline"]
    config = run / "config.yaml"
    config.write_text(config.read_text(encoding="utf-8").replace("ablate.tokens.Words", "os.getcwd"), encoding="utf-8")
    said = again(folder, run.name)
    assert said.code == 2
    assert "tokens._target_: found 'os.getcwd', expected a dataclass" in said.err
    assert runs().keys() == {"baseline", "turned"}
