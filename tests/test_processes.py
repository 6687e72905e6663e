"""Several processes in one folder, and processes that are killed: every run once, whole, and nothing computed twice."""

import os
import signal
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

import counting
import pytest
from cli import facts, put, small

ROOT = Path(__file__).parents[1]
OWN = ("--config-dir", "conf", "embedder=encoder", "latency=off", "dataset.dir=данные")
VARIANTS = {
    "words": "defaults:\n  - override /retriever: bm25",
    "both": "defaults:\n  - override /retriever: hybrid",
    "halves": "chunker:\n  size: 5\n  overlap: 1",
    "pairs": "defaults:\n  - override /reranker: scorer",
    "waits": "defaults:\n  - override /reranker: waiting",
}
EIGHT = ["words", "both", "halves", "pairs"] * 2


@pytest.fixture
def place(tmp_path, monkeypatch):
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    monkeypatch.delenv("ABLATE_WORKSPACE", raising=False)
    return lambda name: prepared(tmp_path / name)


def prepared(folder):
    put(folder / "conf", counting.CONF)
    for name, text in VARIANTS.items():
        put(folder / "conf/variant", {f"{name}.yaml": f"# @package _global_\n# ?\n{text}\n"})
    small(folder / "данные")
    return folder


def start(folder, *words, **variables):
    path = os.pathsep.join(str(ROOT / part) for part in ("src", "tests"))
    environment = {**os.environ, "PYTHONPATH": path, "PYTHONUTF8": "1", "JOURNAL": str(folder / "journal"), **variables}
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    return subprocess.Popen([sys.executable, "-m", "ablate", *words], cwd=folder, env=environment, **pipes)


def ended(*processes):
    """What each process said on stderr, once all have ended well."""
    said = [process.communicate(timeout=300)[1] for process in processes]
    assert [process.returncode for process in processes] == [0] * len(processes), said
    return said


def computed(folder, monkeypatch):
    monkeypatch.setenv("JOURNAL", str(folder / "journal"))
    return counting.noted()


def rankings(folder):
    """The hash of what each recorded run found, by variant; each variant is recorded once, and finished."""
    records = [facts(path.parent) for path in sorted(folder.glob("experiments/runs/*/*/run.json"))]
    found = {record["variant"]: record["fingerprints"]["ranking"] for record in records}
    assert len(found) == len(records)
    assert {record["status"] for record in records} == {"finished"}
    return found


def waited(condition, process):
    """Waits until a condition holds while a process runs."""
    give_up = time.monotonic() + 120
    while not condition():
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < give_up
        time.sleep(0.02)


@pytest.mark.slow
def test_eight_processes_in_an_empty_folder_do_what_one_does(place, monkeypatch):
    alone, together = place("один"), place("восемь сразу")
    words = (*OWN, "tracking=off")
    ended(start(alone, *words, "-m", "+variant=words,both,halves,pairs"))
    ended(*(start(together, *words, f"+variant={name}", SLICE="2") for name in EIGHT))
    assert rankings(together) == rankings(alone)
    assert set(rankings(alone)) == {"baseline", *EIGHT}
    done = computed(together, monkeypatch)
    assert len(done) == len(set(done)), "each text and pair once over all processes"
    assert sorted(map(str, done)) == sorted(map(str, computed(alone, monkeypatch)))


@pytest.mark.slow
def test_eight_processes_in_an_empty_folder_leave_a_whole_store_of_runs(place, monkeypatch):
    together = place("восемь сразу")
    ended(*(start(together, *OWN, f"+variant={name}") for name in EIGHT))
    assert set(rankings(together)) == {"baseline", *EIGHT}
    assert statuses(together) == dict.fromkeys(("baseline", *EIGHT), "FINISHED")
    done = computed(together, monkeypatch)
    assert len(done) == len(set(done))


def statuses(folder):
    """How each run ended, as MLflow has it, by variant; each is there once."""
    query = (
        "SELECT tags.value, runs.status FROM runs JOIN tags ON tags.run_uuid = runs.run_uuid "
        "WHERE tags.key = 'ablate.variant'"
    )
    with closing(sqlite3.connect(folder / "experiments/mlflow.db")) as connection:
        rows = connection.execute(query).fetchall()
    assert len(dict(rows)) == len(rows)
    return dict(rows)


@pytest.mark.slow
def test_eight_processes_of_the_default_models_do_what_one_does(place):
    alone, together = place("один"), place("восемь сразу")
    words = ("dataset=sample", "latency=off")
    names = ["bm25", "hybrid", "chunking_small", "reranker"]
    ended(start(alone, *words, "tracking=off", "-m", f"+variant={','.join(names)}"))
    ended(*(start(together, *words, f"+variant={name}") for name in names * 2))
    assert rankings(together) == rankings(alone)
    assert statuses(together) == dict.fromkeys(("baseline", *names), "FINISHED")
    assert contents(together) == contents(alone)


def contents(folder):
    """Every row of every file under `indexes/`."""
    found = {}
    for path in folder.glob("indexes/*/*.sqlite"):
        with closing(sqlite3.connect(path)) as connection:
            found[path.name] = sorted(connection.execute("SELECT * FROM rows").fetchall())
    assert len(found) == 2
    return found


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL], ids=lambda number: number.name)
def test_a_sweep_that_was_stopped_goes_on_with_what_is_missing(place, monkeypatch, number):
    folder = place("прервано")
    words = (*OWN, "tracking=off", "-m", "+variant=words,pairs,waits,halves")
    process = start(folder, *words)
    waited((folder / "begun").exists, process)
    process.send_signal(number)
    out, err = process.communicate(timeout=60)
    assert process.returncode == {signal.SIGKILL: -signal.SIGKILL}.get(number, 130)
    assert (out, "Traceback" in err) == ("", False)
    assert set(rankings(folder)) == {"baseline", "words", "pairs"}
    done = computed(folder, monkeypatch)

    (folder / "go").touch()
    (said,) = ended(start(folder, *words))
    names = [line.removeprefix("ablate: ") for line in said.splitlines()]
    assert [name for name in names if name.endswith(": running")] == ["waits: running", "halves: running"]
    assert {name.partition(":")[0] for name in names if "already recorded" in name} == {"baseline", "words", "pairs"}
    assert set(rankings(folder)) == {"baseline", "words", "pairs", "waits", "halves"}
    again = computed(folder, monkeypatch)[len(done) :]
    assert again
    assert not set(again) & set(done)


def test_what_was_encoded_before_a_process_was_killed_is_not_encoded_again(place, monkeypatch):
    folder = place("убито")
    words = (*OWN, "tracking=off", "chunker.size=5", "chunker.overlap=1")
    process = start(folder, *words, "embedder.pause=0.2", SLICE="1")
    waited(lambda: len(computed(folder, monkeypatch)) >= 4, process)
    process.kill()
    process.communicate()
    done = computed(folder, monkeypatch)
    assert 4 <= len(done) < 9
    ended(start(folder, *words))
    again = computed(folder, monkeypatch)[len(done) :]
    assert len({*done, *again}) == 7 + 2, "five windows and two whole documents' ends, and two questions"
    assert set(again) & set(done) <= {done[-1]}, "only what was being encoded is lost"
