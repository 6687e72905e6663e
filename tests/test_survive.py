"""Whatever happens while a sweep runs, what was finished is kept, and the same command again ends as if nothing had."""

import logging
import os
import random
import signal
import sqlite3
import time
from collections import Counter
from contextlib import closing, suppress
from pathlib import Path

import counting
import pytest
from cli import dataset
from test_processes import OWN, ended, prepared, rankings, start, statuses

log = logging.getLogger(__name__)

KILLS = int(os.environ.get("ABLATE_KILLS", "5"))
"""How often a sweep is killed; 40 before a release."""

SWEEP = (*OWN, "-m", "+variant=words,both,halves,pairs", "embedder.pause=0.01")
NAMES = {"baseline", "words", "both", "halves", "pairs"}
IN_FLIGHT = 4
"""Texts or pairs that are computed and not yet kept when a process is killed."""

pytestmark = pytest.mark.slow


@pytest.fixture
def place(tmp_path, monkeypatch):
    for name in ("MLFLOW_TRACKING_URI", "ABLATE_WORKSPACE"):
        monkeypatch.delenv(name, raising=False)
    return lambda name: larger(prepared(tmp_path / name))


def larger(folder):
    """Enough documents for a sweep to be killed in the middle of any of its stages."""
    documents = [
        {"_id": f"д{n}", "text": f"Правило {n}. " + f"Отпуск номер {n} длится {n} дней. " * 6} for n in range(30)
    ]
    queries = [{"_id": f"в{n}", "text": f"Сколько дней длится отпуск номер {n}?"} for n in range(8)]
    quote = [{"query_id": f"в{n}", "alternatives": [[{"doc_id": f"д{n}", "quote": f"Правило {n}."}]]} for n in range(8)]
    dataset(folder / "данные", documents, queries, quote)
    return folder


def encoded(folder, monkeypatch):
    """How often each text was encoded."""
    monkeypatch.setenv("JOURNAL", str(folder / "journal"))
    return Counter([*counting.noted("document"), *counting.noted("query")])


def stop(mark, number=signal.SIGKILL):
    """Kill every process of a command, the one that sends too: what a power failure does."""
    for path in Path("/proc").glob("[0-9]*/environ"):
        with suppress(OSError):
            if f"SURVIVE={mark}\0".encode() in path.read_bytes():
                os.kill(int(path.parent.name), number)


def begun(folder, mark, *words):
    return start(folder, *words, SLICE=str(IN_FLIGHT), SURVIVE=mark)


def left(folder):
    """Files and folders that were being written, lock files aside."""
    hidden = [path for path in folder.rglob(".*") if not path.name.endswith((".lock", ".making", ".sending"))]
    return [str(path.relative_to(folder)) for path in hidden]


def test_a_sweep_that_is_killed_again_and_again_ends_as_one_that_was_not(place, monkeypatch):
    whole = place("целиком")
    began = time.monotonic()
    ended(begun(whole, "whole", *SWEEP))
    length = time.monotonic() - began
    wanted, done = rankings(whole), encoded(whole, monkeypatch)
    assert set(wanted) == NAMES
    assert set(done.values()) == {1}
    moments, kills, rounds = random.Random(20), 0, 0
    while kills < KILLS:
        rounds += 1
        folder, killed = place(f"убито {rounds}"), 0
        while kills < KILLS:
            process = begun(folder, f"r{rounds}", *SWEEP)
            time.sleep(moments.uniform(0.1, 0.9) * length)
            if process.poll() is not None:
                process.communicate()
                break
            stop(f"r{rounds}")
            process.communicate()
            kills, killed = kills + 1, killed + 1
        ended(begun(folder, f"r{rounds}", *SWEEP))
        assert rankings(folder) == wanted
        assert statuses(folder) == dict.fromkeys(NAMES, "FINISHED")
        found = encoded(folder, monkeypatch)
        assert found.keys() == done.keys()
        assert found.total() - done.total() <= killed * IN_FLIGHT, f"{killed} kills"
        assert left(folder) == []
        ended(start(folder, "index", "verify"))
        log.info("%d kills, %d of %d texts encoded twice", killed, found.total() - done.total(), done.total())


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_command_that_ends_while_its_store_is_made_leaves_no_half_of_it(place, number):
    folder = place("начато")
    process = begun(folder, "half", *SWEEP)
    while not any((folder / "experiments").glob(f".mlflow.db.{'[0-9a-f]' * 32}")):
        assert process.poll() is None
        time.sleep(0.001)
    process.send_signal(number)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130, err
    assert left(folder) == []


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_command_that_is_told_to_end_leaves_nothing_running(place, monkeypatch, number):
    folder = place("прервано")
    moments = random.Random(int(number))
    for _ in range(3):
        process = begun(folder, "told", *SWEEP)
        time.sleep(moments.uniform(0.5, 4.0))
        if process.poll() is None:
            process.send_signal(number)
        _, err = process.communicate(timeout=60)
        early = -signal.SIGTERM  # while Python itself is starting nothing is there to be ended well
        assert process.returncode in (0, 130, early), err
        assert "Traceback" not in err
        if (folder / "experiments/mlflow.db").exists():
            assert "RUNNING" not in states(folder)
        assert left(folder) == []
    ended(begun(folder, "told", *SWEEP))
    assert set(rankings(folder)) == NAMES
    assert statuses(folder) == dict.fromkeys(NAMES, "FINISHED")


def states(folder):
    """The states of all runs that MLflow has."""
    with closing(sqlite3.connect(folder / "experiments/mlflow.db")) as connection:
        return {state for (state,) in connection.execute("SELECT status FROM runs")}
