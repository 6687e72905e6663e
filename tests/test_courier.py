"""Runs are sent by a process beside the one that makes them, and nothing is lost when either of them ends."""

import io
import json
import logging
import os
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

import pytest
import runs
from cli import ablate, small, workshop

from ablate import courier, records, table
from ablate.courier import WAITING, Errand, early, main, waiting
from ablate.tracking import Mlflow, Off
from ablate.workspace import Workspace

ECHO = "import sys\nfor line in sys.stdin:\n    open('taken', 'a').write(line)\n"
ANSWERING = f"""{ECHO}    if '"run": ""' not in line:\n        print("null", flush=True)\n"""
ONCE = "import sys\nsys.stdin.readline(), sys.stdin.readline(), sys.stdin.readline()\n"


@pytest.fixture
def place(tmp_path, monkeypatch):
    folder = tmp_path / "отчёты и база"
    folder.mkdir()
    monkeypatch.chdir(folder)
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    return Workspace(folder)


def playing(monkeypatch, script):
    """Another program in the place of the one that sends."""
    monkeypatch.setattr(courier, "COMMAND", ("-c", script))


def handed():
    return [json.loads(line) for line in Path("taken").read_text(encoding="utf-8").splitlines()]


def test_a_run_is_handed_over_with_its_baseline_and_everything_is_sent_at_the_end(place, monkeypatch, caplog):
    playing(monkeypatch, ANSWERING)
    baseline, reranker, _ = runs.study(place)
    tracker = Mlflow("sqlite:///мой.db", log_text=True)
    with waiting(tracker.errand(place)):
        assert tracker.log(reranker, table.compare([baseline, reranker]), place) is None
        assert tracker.log(baseline, table.compare([baseline]), place) is None
    nothing = dict.fromkeys(("run", "baseline", "study"), "")
    first = {"uri": "sqlite:///мой.db", "log_text": True, "root": str(place.root), **nothing}
    assert handed() == [
        first,
        {**first, "run": str(reranker.folder), "baseline": str(baseline.folder)},
        {**first, "run": str(baseline.folder)},
    ]
    assert caplog.records == []
    assert WAITING.get() is None


def test_what_a_store_is_noted_to_have_is_not_handed_over(place, monkeypatch):
    playing(monkeypatch, ANSWERING)
    baseline, _, _ = runs.study(place)
    records.note(baseline.folder, "tracking.json", {"uri": "http://127.0.0.1:1"})
    tracker = Mlflow("http://127.0.0.1:1", log_text=False)
    with waiting(tracker.errand(place)):
        assert tracker.log(baseline, table.compare([baseline]), place) is None
        assert WAITING.get().taken == 0


def test_without_tracking_nobody_waits(place):
    with waiting(Off().errand(place)):
        assert WAITING.get() is None


def test_a_process_started_early_is_the_courier_or_ends(place, monkeypatch):
    playing(monkeypatch, ANSWERING)
    tracker = Mlflow(None, log_text=False)
    with early():
        (process,) = courier.EARLY
        with waiting(tracker.errand(place)):
            assert WAITING.get().process is process
        assert process.poll() is not None
    with early():
        (process,) = courier.EARLY
    assert process.returncode < 0
    assert courier.EARLY == []


def test_what_could_not_be_sent_is_said_as_soon_as_it_is_known(place, monkeypatch, caplog):
    playing(monkeypatch, "import sys\nfor line in sys.stdin:\n    print('\"нет связи\"', flush=True)\n")
    baseline, _, _ = runs.study(place)
    tracker = Mlflow(None, log_text=False)
    with caplog.at_level(logging.WARNING), waiting(tracker.errand(place)):
        tracker.log(baseline, table.compare([baseline]), place)
        give_up = time.monotonic() + 30
        while "нет связи" not in caplog.text:
            assert time.monotonic() < give_up
            time.sleep(0.01)


def test_a_process_that_ended_costs_a_warning(place, monkeypatch, caplog):
    playing(monkeypatch, ONCE)
    baseline, reranker, _ = runs.study(place)
    tracker = Mlflow(None, log_text=False)
    with waiting(tracker.errand(place)):
        for record in (baseline, reranker):
            assert tracker.log(record, table.compare([record]), place) is None
    assert "2 runs were not sent to MLflow: its process was ended; `python -m ablate sync` does it" in caplog.text


def test_where_nobody_is_there_any_more_a_run_is_sent_at_once(place, monkeypatch):
    playing(monkeypatch, "")
    sent = []
    monkeypatch.setattr(Mlflow, "send", lambda tracker, record, comparison, place: sent.append(record.id))
    baseline, _, _ = runs.study(place)
    tracker = Mlflow(None, log_text=False)
    with waiting(tracker.errand(place)):
        WAITING.get().process.wait()
        tracker.log(baseline, table.compare([baseline]), place)
    assert sent == [baseline.id]


def test_a_process_that_got_nothing_to_do_is_ended_at_once(place, monkeypatch):
    playing(monkeypatch, "import time\ntime.sleep(60)")
    begun = time.monotonic()
    with waiting(Mlflow(None, log_text=False).errand(place)):
        process = WAITING.get().process
    assert process.poll() is not None
    assert time.monotonic() - begun < 30


@pytest.mark.parametrize("pause", [0, 60])
def test_when_a_command_is_interrupted_what_was_handed_over_is_sent_and_waited_for_a_little(place, monkeypatch, pause):
    monkeypatch.setattr(courier, "GRACE", 1.0 if pause else 30.0)
    playing(monkeypatch, f"import time\n{ANSWERING}    time.sleep({pause})\n")
    baseline, _, _ = runs.study(place)
    tracker = Mlflow(None, log_text=False)
    begun = time.monotonic()
    processes = []

    def work():
        with waiting(tracker.errand(place)):
            processes.append(WAITING.get().process)
            tracker.log(baseline, table.compare([baseline]), place)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        work()
    (process,) = processes
    assert time.monotonic() - begun < 30
    if pause:
        assert process.poll() is None, "it goes on by itself"
        process.kill()
        process.wait()
        process.stdout.close()
    assert len(handed()) == (1 if pause else 2)


def test_the_address_of_a_store_is_not_in_the_list_of_processes(place, monkeypatch):
    seen = []
    real = subprocess.Popen
    monkeypatch.setattr(subprocess, "Popen", lambda words, **more: seen.append(words) or real(words, **more))
    playing(monkeypatch, ANSWERING)
    with waiting(Mlflow("http://me:secret@server:1", log_text=False).errand(place)):
        pass
    assert "secret" not in str(seen)


def test_errands_are_done_in_turn_and_each_is_answered(place, monkeypatch):
    done = []
    monkeypatch.setattr(Mlflow, "send", lambda tracker, record, comparison, place: done.append((record.id, comparison)))
    monkeypatch.setattr(courier, "prepare", lambda errand: done.append("ready"))
    baseline, reranker, _ = runs.study(place)
    errand = Errand(None, False, str(place.root))
    lines = [
        errand,
        Errand(None, False, str(place.root), str(reranker.folder), str(baseline.folder)),
        Errand(None, False, str(place.root), str(place.root / "нет")),
    ]
    answers = io.StringIO()
    main([json.dumps(vars(line)) for line in lines], answers)
    first, second = map(json.loads, answers.getvalue().splitlines())
    assert first is None
    assert second.startswith(f"{place.root / 'нет'}: could not be sent to MLflow (")
    assert done[0] == "ready"
    assert done[1][0] == reranker.id
    assert done[1][1].baseline(reranker).id == baseline.id


def test_a_store_that_cannot_be_made_ready_is_left_to_the_sending(place):
    answers = io.StringIO()
    (place.root / "experiments").write_text("no folder")
    main([json.dumps(vars(Errand(None, False, str(place.root))))], answers)
    assert answers.getvalue() == ""


@pytest.mark.slow
def test_a_command_sends_its_runs_without_importing_mlflow_itself(tmp_path, monkeypatch):
    workshop(tmp_path, monkeypatch)
    small(tmp_path / "data")
    code = (
        "import sys\nfrom ablate.__main__ import main\n"
        "code = main(['--config-dir', 'conf', 'embedder=hash', 'latency=off', 'dataset.dir=data', '+variant=bm25'])\n"
        "print(code, 'mlflow' in sys.modules, file=sys.stderr)"
    )
    path = os.pathsep.join(str(Path(__file__).parents[1] / part) for part in ("src", "tests"))
    environment = {**os.environ, "PYTHONPATH": path, "PYTHONUTF8": "1"}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True)
    assert done.stderr.splitlines()[-1] == "0 False", done.stderr
    with closing(sqlite3.connect(tmp_path / "experiments/mlflow.db")) as connection:
        assert sorted(connection.execute("SELECT status FROM runs").fetchall()) == [("FINISHED",)] * 2
    assert len(list(tmp_path.glob("experiments/runs/*/*/tracking.json"))) == 2
    assert ablate("sync").out.startswith("0 sent, 2 already there")
