"""A study: what is recorded is shown, what is missing is run, and what a run says of access and evidence holds."""

import json
import math
import os
import re
import subprocess
import sys
from pathlib import Path

import cli
import pytest
from cli import ENCODED, ablate, dataset, facts, means, put, quiet, runs, small, variant, workshop

from ablate import identity, weights
from ablate.conf import options

SAMPLE = "dataset=sample"


@pytest.fixture
def work(tmp_path, monkeypatch):
    ENCODED.clear()
    return workshop(tmp_path, monkeypatch)


@pytest.fixture
def data(work):
    return f"dataset.dir={small(work / 'data')}"


def recorded():
    """Every run directory, oldest first."""
    return sorted(Path().glob("experiments/runs/*/*/run.json"), key=lambda path: facts(path.parent)["started"])


def rows(run, name):
    return [json.loads(line) for line in (run / name).read_text(encoding="utf-8").splitlines()]


def places(row):
    return {(hit["doc_id"], hit["start"], hit["end"]) for hit in row["hits"]}


def test_an_equal_run_is_shown_and_no_text_is_encoded_again(work, data):
    first = quiet("embedder=counted", data)
    assert len(ENCODED) == 3 + 2
    ENCODED.clear()
    second = quiet("embedder=counted", data)
    assert (second.code, second.out) == (0, first.out)
    assert ENCODED == []
    assert "baseline: already recorded as baseline-" in second.err
    assert len(recorded()) == 1


def test_a_variant_runs_its_baseline_only_if_that_is_missing(work, data):
    quiet(data)
    said = quiet("+variant=bm25", data)
    assert "baseline: already recorded" in said.err
    assert "bm25: running" in said.err
    assert [facts(path.parent)["variant"] for path in recorded()] == ["baseline", "bm25"]


def test_rerun_repeats_each_run_of_a_sweep_once(work, data):
    words = ["-m", "+variant=bm25,chunking_small", data]
    quiet(*words)
    said = quiet(*words, "rerun=true")
    assert said.code == 0
    names = [facts(path.parent)["variant"] for path in recorded()]
    assert sorted(names) == ["baseline", "baseline", "bm25", "bm25", "chunking_small", "chunking_small"]
    assert said.err.count("baseline: running") == 1
    newest = runs()
    assert newest["baseline"].name.endswith("-2")
    assert facts(newest["bm25"])["baseline"] == newest["baseline"].name
    ranked = [facts(path.parent)["fingerprints"]["ranking"] for path in recorded() if "bm25" in path.parent.name]
    assert len(ranked) == 2
    assert len(set(ranked)) == 1


def test_a_run_without_latency_does_not_stand_for_one_with_it(work, data):
    quiet("+variant=bm25", data)
    timed = [*cli.QUIET[:-1], "latency.queries=2", "latency.warmup=0", "+variant=bm25", data]
    said = ablate(*timed)
    assert (said.code, said.err.count(": running")) == (0, 2)
    assert means(runs()["bm25"])["latency/total_p50"] > 0
    assert "latency/total_p50" not in means(recorded()[0].parent)
    assert ablate(*timed).err.count(": running") == 0
    assert quiet("+variant=bm25", data).err.count(": running") == 0


def test_a_variant_is_shown_beside_its_baseline_even_when_that_alone_was_run_again(work, data):
    quiet("+variant=bm25", data)
    quiet(data, "rerun=true")
    said = quiet("+variant=bm25", data)
    assert "no run of its baseline" not in said.out
    assert "bm25: " in said.out


def test_another_setting_is_another_study_and_the_old_one_is_found_again(work, data):
    quiet(data)
    assert "baseline: running" in quiet(data, "chunker.size=64").err
    assert "baseline: already recorded" in quiet(data).err
    assert len(list(work.glob("experiments/runs/*"))) == 2


def test_another_data_set_is_another_study_and_the_old_one_is_found_again(work, data):
    quiet(data)
    corpus = work / "data/corpus.jsonl"
    text = corpus.read_text(encoding="utf-8")
    corpus.write_text(text.replace("two days a week", "two days a week, or three"), encoding="utf-8")
    assert "baseline: running" in quiet(data).err
    corpus.write_text(text, encoding="utf-8")
    assert "baseline: already recorded" in quiet(data).err
    assert len(list(work.glob("experiments/runs/*"))) == 2


def test_the_folder_of_a_data_set_may_move(work, data):
    quiet(data)
    (work / "data").rename(work / "moved")
    (work / "elsewhere").mkdir()
    (work / "moved").rename(work / "elsewhere/data")
    assert "baseline: already recorded" in quiet("dataset.dir=elsewhere/data").err


def test_code_of_the_users_own_is_part_of_a_run(work, data, monkeypatch):
    source = "from dataclasses import dataclass\n\n\n@dataclass\nclass Mine:\n    def __call__(self, query, hits):\n"
    put(
        work,
        {"own_code.py": source + "        return list(hits)\n", "conf/reranker/mine.yaml": "_target_: own_code.Mine\n"},
    )
    monkeypatch.syspath_prepend(work)
    assert quiet(data, "reranker=mine").code == 0
    assert "already recorded" in quiet(data, "reranker=mine").err
    put(work, {"own_code.py": source + "        return hits[::-1]\n"})
    identity.source.cache_clear()
    assert "baseline: running" in quiet(data, "reranker=mine").err
    assert len(recorded()) == 2


@pytest.fixture
def without_onnxruntime(monkeypatch):
    """The variant `reranker` lacks the package that runs its model."""
    weights.find.cache_clear()
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    yield (
        "model 'cross-encoder/ms-marco-MiniLM-L-12-v2': found no package onnxruntime, expected it for running these "
        'weights; run `pip install "ablate-retrieval[models]"`'
    )
    weights.find.cache_clear()


def test_a_variant_that_lacks_a_package_is_left_out_of_a_sweep_and_said_last(work, data, without_onnxruntime):
    said = quiet("-m", "+variant=reranker,bm25", data)
    assert said.code == 0
    assert set(runs()) == {"baseline", "bm25"}
    assert said.out.endswith(f"\nreranker: skipped: {without_onnxruntime}\n")
    assert said.err.index("reranker: skipped: model") < said.err.index("bm25: running"), "it must be said at once"


def test_a_variant_that_lacks_a_package_is_refused_before_its_baseline_runs(work, data, without_onnxruntime):
    said = quiet("+variant=reranker", data)
    assert (said.code, said.out, said.err) == (2, "", f"ablate: {without_onnxruntime}\n")
    assert runs() == {}


def test_a_sweep_that_leaves_out_everything_is_no_success(work, data, without_onnxruntime):
    variant(work, "other", "defaults:\n  - override /reranker: onnx_cross_encoder\nreranker:\n  first: 2")
    said = quiet("-m", "+variant=reranker,other", data)
    assert said.code == 2
    assert said.out.count(": skipped: ") == 2
    assert set(runs()) == {"baseline"}


def test_what_fails_beside_a_variant_that_lacks_a_package_still_counts(work, data, without_onnxruntime):
    variant(work, "bad", "defaults:\n  - override /reranker: broken")
    assert quiet("-m", "+variant=reranker,bm25,bad", data).code == 1
    assert quiet("-m", "+variant=reranker,bad", data).code == 1


def test_a_baseline_that_lacks_a_package_is_no_study(work, data, without_onnxruntime):
    said = quiet("-m", "reranker=onnx_cross_encoder", "+variant=bm25,chunking_small", data)
    assert said.code == 2
    assert "skipped" not in said.out + said.err
    assert said.err.endswith(f"ablate: {without_onnxruntime}\n")


def test_a_model_whose_revision_breaks_is_recorded_when_it_runs(work, data):
    put(work, {"conf/reranker/unknown.yaml": "_target_: cli.Unknown\n"})
    variant(work, "unknown", "defaults:\n  - override /reranker: unknown")
    said = quiet("+variant=unknown", data)
    assert said.code == 1
    assert set(runs()) == {"baseline", "unknown"}
    assert facts(runs()["unknown"])["error"] == "ValueError: ревизия неизвестна"


def test_a_variant_that_breaks_is_recorded_and_shown_and_the_others_go_on(work, data):
    variant(work, "bad", "defaults:\n  - override /reranker: broken")
    said = quiet("-m", "+variant=bm25,bad,chunking_small", data)
    assert said.code == 1
    assert set(runs()) == {"baseline", "bm25", "bad", "chunking_small"}
    assert facts(runs()["bad"])["status"] == "failed"
    assert facts(runs()["bad"])["error"] == "ValueError: весы сломаны"
    assert facts(runs()["bad"])["baseline"] == runs()["baseline"].name
    assert "FAILED: ValueError: весы сломаны" in said.out
    assert "\nchunking_small " in said.out
    assert said.err.index("весы сломаны") < said.err.index("chunking_small: running"), "it must be said at once"
    assert said.err.endswith("ablate: bad failed: ValueError: весы сломаны\n")


def test_a_component_that_exits_ends_its_own_run_alone(work, data):
    variant(work, "bad", "defaults:\n  - override /reranker: leave")
    said = quiet("-m", "+variant=bad,bm25", data)
    assert said.code == 1
    assert facts(runs()["bad"])["error"] == "SystemExit: 3"
    assert facts(runs()["bm25"])["status"] == "finished"


def test_what_failed_is_tried_again_by_the_next_command_and_kept(work, data):
    quiet("reranker=broken", data)
    said = quiet("reranker=broken", data)
    assert said.code == 1
    assert "baseline: running" in said.err
    assert [facts(path.parent)["status"] for path in recorded()] == ["failed", "failed"]


def test_a_baseline_that_breaks_is_not_tried_by_every_job_of_a_sweep(work, data):
    said = quiet("-m", "reranker=broken", "+variant=bm25,chunking_small", data)
    assert said.code == 1
    assert said.err.count("baseline: running") == 1
    assert said.err.count("ablate: baseline failed: ValueError: весы сломаны\n") == 1
    assert list(runs()) == ["baseline"]


def test_an_interrupted_sweep_keeps_what_had_finished_and_goes_on_from_there(work, data):
    variant(work, "halt", "defaults:\n  - override /reranker: stop")
    words = ["-m", "+variant=bm25,halt,hybrid", data]
    said = quiet(*words)
    assert (said.code, said.out) == (130, "")
    assert "interrupted" in said.err
    assert set(runs()) == {"baseline", "bm25"}
    variant(work, "halt", "defaults:\n  - override /reranker: reverse")
    again = quiet(*words)
    assert again.code == 0
    running = [line for line in again.err.splitlines() if line.endswith("running")]
    assert running == ["ablate: halt: running", "ablate: hybrid: running"]
    assert len(recorded()) == 4


def test_the_same_command_at_the_same_time_makes_each_run_once(work, data):
    path = os.pathsep.join(str(Path(__file__).parents[1] / part) for part in ("src", "tests"))
    words = [sys.executable, "-m", "ablate", *cli.QUIET, data]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    both = [subprocess.Popen(words, env={**os.environ, "PYTHONPATH": path}, **pipes) for _ in range(2)]
    assert [process.communicate(timeout=60)[1].count(b"Traceback") for process in both] == [0, 0]
    assert [process.returncode for process in both] == [0, 0]
    assert len(recorded()) == 1


def test_numbers_and_rankings_are_equal_in_every_process(work):
    path = os.pathsep.join(str(Path(__file__).parents[1] / part) for part in ("src", "tests"))
    started = []
    for seed in ("1", "2"):
        (work / seed).mkdir()
        environment = {**os.environ, "PYTHONPATH": path, "PYTHONHASHSEED": seed, "ABLATE_WORKSPACE": str(work / seed)}
        words = [sys.executable, "-m", "ablate", *cli.QUIET, "retriever=hybrid", "access.statistics=readable"]
        started.append(subprocess.Popen(words, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE))
    assert [process.communicate(timeout=60) and process.returncode for process in started] == [0, 0]
    one, two = (runs(work / seed)["baseline"] for seed in ("1", "2"))
    assert facts(one)["fingerprints"] == facts(two)["fingerprints"]
    for name in ("metrics.json", "queries.jsonl", "ranking.jsonl", "ranking.trec"):
        assert (one / name).read_bytes() == (two / name).read_bytes(), name


def test_a_data_set_of_which_nobody_can_read_anything_stops_before_any_work(work):
    folder = small(work / "data")
    text = (folder / "corpus.jsonl").read_text(encoding="utf-8")
    (folder / "corpus.jsonl").write_text(text.replace("public", "group:x").replace("user:anna", "group:x"))
    (folder / "ground_truth.jsonl").unlink()
    (folder / "queries.jsonl").write_text('{"_id": "q", "text": "отпуск", "principals": ["user:anna"]}\n')
    put(folder, {"qrels/test.tsv": "query-id\tcorpus-id\tscore\nq\tотпуск\t1\n"})
    said = quiet(f"dataset.dir={folder}")
    assert (said.code, said.out) == (2, "")
    assert "no query can read any document" in said.err
    assert not (work / "experiments").exists()


CANARY = "KANARIENVOGEL"


@pytest.mark.parametrize("words", [["access=prefilter"], ["access=postfilter"], ["access=off"], ["reranker=broken"]])
def test_the_text_of_no_document_is_in_what_a_run_leaves(work, data, words):
    said = quiet(*words, data)
    assert CANARY not in said.out + said.err
    written = [path for path in work.rglob("*") if path.is_file() and "data" not in path.relative_to(work).parts[0]]
    assert len(written) > 3
    for path in written:
        assert CANARY.encode() not in path.read_bytes(), path


@pytest.mark.slow
def test_the_text_of_no_document_is_in_what_mlflow_holds(work, data):
    assert quiet("+variant=access_postfilter", "tracking=mlflow", data).code == 0
    written = [path for path in (work / "experiments").rglob("*") if path.is_file()]
    assert any("artifacts" in path.parts for path in written)
    assert [path for path in written if CANARY.encode() in path.read_bytes()] == []


def test_an_uncommitted_change_of_a_forbidden_document_is_not_in_the_environment(work, data):
    for words in (["init", "-q"], ["add", "data"], ["-c", "user.name=a", "-c", "user.email=b", "commit", "-qm", "c"]):
        subprocess.run(["git", *words], check=True, capture_output=True)
    (work / "own.py").write_text("x = 1\n")
    subprocess.run(["git", "add", "own.py"], check=True, capture_output=True)
    corpus = work / "data/corpus.jsonl"
    corpus.write_text(corpus.read_text(encoding="utf-8").replace("of the board", "of the whole board"))
    assert quiet(data).code == 0
    environment = json.loads((runs()["baseline"] / "environment.json").read_text(encoding="utf-8"))
    assert "+x = 1" in environment["git"]["diff"]
    assert CANARY not in environment["git"]["diff"]


def test_access_off_shows_violations_and_access_on_shows_none(work):
    assert quiet(SAMPLE, "access=off").code == 0
    off = means(runs()["baseline"])
    assert off["acl/violations"] > 0
    assert off["acl/exposure"] > 0
    assert quiet(SAMPLE).code == 0
    on = means(runs()["baseline"])
    assert on["acl/violations"] == on["acl/candidate_violations"] == 0
    assert on["acl/exposure"] > 0


def test_postfilter_starves_whom_prefilter_serves(work):
    forbidden = [
        {"_id": f"секрет-{n}", "text": f"годовая премия отдела {n}", "acl": {"allow": ["user:boss"]}} for n in range(4)
    ]
    allowed = [{"_id": "правила", "text": "премия: общие правила для всех сотрудников", "acl": {"allow": ["public"]}}]
    folder = dataset(
        work / "data",
        [*forbidden, *allowed],
        [{"_id": "q", "text": "годовая премия", "principals": ["user:anna"]}],
        [{"query_id": "q", "alternatives": [[{"doc_id": "правила", "quote": "общие правила для всех"}]]}],
    )
    said = quiet("retriever=bm25", "k=2", "depth=2", "+variant=access_postfilter", f"dataset.dir={folder}")
    assert said.code == 0, said
    before, after = means(runs()["baseline"]), means(runs()["access_postfilter"])
    assert (before["context/sufficient"], before["acl/starved"]) == (1, 0)
    assert (after["context/sufficient"], after["acl/starved"]) == (0, 1)
    assert before["acl/exposure"] == after["acl/exposure"] == 1


@pytest.mark.parametrize("retriever", ["bm25", "hybrid"])
def test_with_readable_statistics_deleting_what_one_may_not_read_changes_no_result(work, retriever):
    folder = small(work / "whole")
    lines = (folder / "corpus.jsonl").read_text(encoding="utf-8").splitlines(keepends=True)
    more = json.loads(lines[2]) | {"_id": "ещё", "text": "отпуск отпуск days two календарных remote remote"}
    put(folder, {"corpus.jsonl": "".join([json.dumps(more) + "\n", *lines])})
    other = small(work / "pruned")
    put(other, {"corpus.jsonl": "".join(lines[:2])})
    found = []
    for path in (folder, other):
        words = [f"retriever={retriever}", "access.statistics=readable", f"dataset.dir={path}"]
        assert quiet(*words).code == 0
        found.append(rows(runs()["baseline"], "ranking.jsonl"))
    assert found[0] == found[1]
    assert found[0][0]["hits"]
    assert quiet("retriever=bm25", f"dataset.dir={folder}").code == 0
    assert rows(runs()["baseline"], "ranking.jsonl") != found[0], "with statistics of all documents it must show"


def test_a_variant_that_moves_nothing_is_said_to_be_inert(work, data):
    said = quiet("+variant=metadata_filters", data)
    assert said.code == 0
    assert said.out.startswith("identical: metadata_filters +0.000")
    assert re.search(r"metadata_filters .* inert\n", said.out)
    hashes = [[row["ranking_hash"] for row in rows(run, "queries.jsonl")] for run in runs().values()]
    assert hashes[0] == hashes[1]


def test_a_reranker_changes_the_order_and_never_what_is_found_at_depth(work):
    variant(work, "turned", "defaults:\n  - override /reranker: reverse")
    assert quiet(SAMPLE, "+variant=turned").code == 0
    before, after = means(runs()["baseline"]), means(runs()["turned"])
    for measure in ("retrieval/recall_at_50", "retrieval/coverage_at_50", "retrieval/hit_at_50", "doc/recall_at_50"):
        assert before[measure] == after[measure], measure
    assert before["retrieval/ndcg_at_5"] != after["retrieval/ndcg_at_5"]
    one, two = (rows(runs()[name], "ranking.jsonl") for name in ("baseline", "turned"))
    assert [places(row) for row in one] == [places(row) for row in two]


def test_the_stages_that_moved_are_told_by_their_fingerprints(work, data):
    quiet("+variant=bm25", data)
    stages = {name: facts(run)["stages"] for name, run in runs().items()}
    assert list(stages["baseline"]) == ["chunker", "retriever", "access", "reranker", "packer"]
    assert stages["bm25"]["chunker"] == stages["baseline"]["chunker"]
    assert stages["bm25"]["retriever"] != stages["baseline"]["retriever"]


def test_a_folder_of_runs_that_cannot_be_read_costs_a_warning_and_nothing_else(work, data):
    quiet(data)
    (recorded()[0].parent / "metrics.json").unlink()
    said = quiet(data)
    assert said.code == 0
    assert "ignored 1 run directories" in said.err
    assert "baseline: running" in said.err


@pytest.mark.slow
@pytest.mark.parametrize("retriever", ["dense", "bm25", "hybrid"])
def test_every_combination_of_chunker_retriever_access_and_filter_runs(work, data, retriever):
    said = quiet("-m", f"retriever={retriever}", "chunker=glob(*)", "access=glob(*)", "filter=glob(*)", data)
    assert said.code == 0, said.err
    assert len(recorded()) == math.prod(len(options()[group]) for group in ("chunker", "access", "filter"))


def test_a_place_that_cannot_be_written_to_is_one_sentence(work, data, monkeypatch):
    (work / "experiments").write_text("не папка")
    said = quiet(data)
    assert said.code == 2
    assert "Traceback" not in said.err
    assert "not a directory, expected a place to write to" in said.err


def test_a_full_disk_is_one_sentence_and_leaves_no_half_run(work, data, monkeypatch):
    whole = Path.write_bytes

    def full(path, content):
        if path.name == "metrics.json":
            raise OSError(28, "No space left on device", str(path))
        return whole(path, content)

    monkeypatch.setattr(Path, "write_bytes", full)
    said = quiet(data)
    assert said.code == 2
    assert "Traceback" not in said.err
    assert "found no space left on device, expected a place to write to" in said.err
    assert not [path for path in work.glob("experiments/runs/*/*") if path.is_dir()]
    monkeypatch.setattr(Path, "write_bytes", whole)
    assert quiet(data).code == 0
