"""What the machine does to a command: a place that cannot be written to, a database that is held, a clock set back."""

from __future__ import annotations

import errno
import os
import shutil
import sqlite3
import sys
from contextlib import closing, contextmanager
from datetime import datetime, timedelta
from pathlib import Path

import cli
import pytest
from cli import ablate, quiet, runs

from ablate import records, shelf, tracking
from ablate.errors import AblateError, unwritable


@pytest.fixture
def work(tmp_path, monkeypatch):
    cli.workshop(tmp_path, monkeypatch)
    return tmp_path


@pytest.fixture
def data(work):
    return f"dataset.dir={cli.small(work / 'данные')}"


def rankings():
    return {name: record.hashes for name, record in read().items()}


def read():
    return {name: records.read(Path(folder)) for name, folder in runs().items()}


@contextmanager
def held(path):
    """A database that another process is writing to."""
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("BEGIN EXCLUSIVE")
        yield
        connection.rollback()


# A clock that is set back


def test_a_clock_that_is_set_back_makes_no_run_negative_and_hides_none(work, data, monkeypatch):
    class Back(datetime):
        hours = 0

        @classmethod
        def now(cls, zone=None):
            cls.hours += 1
            return datetime(2026, 3, 1, tzinfo=zone) - timedelta(hours=cls.hours)

    monkeypatch.setattr(records, "datetime", Back)
    assert quiet("+variant=bm25", data).code == 0
    made = read()
    assert made["bm25"].started < made["baseline"].started
    assert all(record.seconds >= 0 for record in made.values())
    said = ablate("compare")
    assert said.code == 0
    assert "bm25" in said.out
    assert "already recorded" in quiet("+variant=bm25", data).err
    assert rankings().keys() == {"baseline", "bm25"}


# A place that cannot be written to


@pytest.mark.parametrize("started", [False, True], ids=["a fresh workspace", "one with runs"])
def test_a_read_only_workspace_is_one_sentence_and_what_was_there_stays(work, data, monkeypatch, started):
    if started:
        assert quiet(data).code == 0
    kept, mkdir = rankings() if started else {}, os.mkdir

    def refused(path, *rest, **more):
        if Path(path).is_relative_to(work):
            raise OSError(errno.EROFS, os.strerror(errno.EROFS), str(path))
        mkdir(path, *rest, **more)

    with monkeypatch.context() as patch:
        patch.setattr(os, "mkdir", refused)
        said = quiet("+variant=bm25", data)
    assert said.code == 2
    assert "found read-only file system, expected a place to write to" in said.err
    assert "Traceback" not in said.err
    assert [name for name in cli.everything(work) if "bm25" in name and not name.endswith(".making")] == []
    assert quiet("+variant=bm25", data).code == 0
    assert started is False or rankings()["baseline"] == kept["baseline"]


SEALED: list[Path] = []
"""Folders that a process may not write to while they stand here, whoever it is: root too."""


def sealed(event, args):
    """What the system says of a file system that is read-only."""
    if not SEALED or event not in ("open", "os.mkdir", "os.rename", "os.remove", "os.rmdir", "os.link", "os.symlink"):
        return
    reads = event == "open" and not (args[2] or 0) & (os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC)
    if (
        not reads
        and isinstance(args[0], str | Path)
        and any(Path(args[0]).absolute().is_relative_to(p) for p in SEALED)
    ):
        raise OSError(errno.EROFS, os.strerror(errno.EROFS), str(args[0]))


@pytest.fixture
def seal():
    """Makes folders read-only until the test ends: a hook of the interpreter cannot be taken off, only be idle."""
    if sealed not in HOOKED:
        sys.addaudithook(sealed)
        HOOKED.append(sealed)
    yield SEALED.append
    SEALED.clear()


HOOKED: list[object] = []


def contents(folder):
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file() and path.suffix != ".making"}


def test_where_nothing_can_be_written_what_only_reads_answers_and_what_writes_says_so(work, data, seal):
    assert quiet("+variant=bm25", data).code == 0
    run, base = (runs()[name].name for name in ("bm25", "baseline"))
    shutil.copytree("данные", "новее")
    truth = Path("новее/ground_truth.jsonl")
    truth.write_text(
        truth.read_text(encoding="utf-8").replace("28 календарных дней в", "длится 28 календарных дней в"), "utf-8"
    )
    before = contents(work)
    seal(work)
    reading = [["compare"], ["compare", "--json"], ["lineage", run, base], ["index", "list"], ["index", "verify"]]
    reading += [["dataset", "validate", "данные"], ["dataset", "stats", "данные"]]
    for words in reading:
        said = ablate(*words)
        assert (said.code, said.err) == (0, ""), (words, said)
    writing = [[*cli.QUIET, "+variant=hybrid", data], ["gate", run], ["rescore", "--dataset", "новее", run]]
    writing += [["review", "export", run, base, "--out", "лист.csv"], ["dataset", "freeze", "данные", "--version", "2"]]
    writing += [["dataset", "init", "новое"]]
    for words in writing:
        said = ablate(*words)
        assert said.code == 2, (words, said)
        assert "read-only file system" in said.err.lower(), (words, said)
        assert "Traceback" not in said.err, (words, said)
    SEALED.clear()
    assert contents(work) == before
    assert quiet("+variant=hybrid", data).code == 0
    assert rankings().keys() == {"baseline", "bm25", "hybrid"}


def test_only_the_indexes_are_read_only(work, data, seal):
    assert quiet("embedder=counted", data).code == 0
    kept = rankings()["baseline"]
    seal(work / "indexes")
    said = quiet("embedder=counted", "rerun=true", data)
    assert "Traceback" not in said.err
    assert said.code in (0, 2)
    SEALED.clear()
    assert quiet("embedder=counted", "rerun=true", data).code == 0
    assert rankings()["baseline"] == kept


# A file of kept work that is broken


DAMAGE = {
    "cut": lambda whole: whole[:1000],
    "half": lambda whole: whole[: len(whole) // 2],
    "text": lambda whole: b"hello " * 999,
    "nothing": lambda whole: b"",
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_a_broken_file_of_kept_work_costs_one_line_and_changes_no_result(work, data, damage):
    assert quiet("embedder=counted", data).code == 0
    before = rankings()["baseline"]
    (path,) = Path("indexes").glob("*/*.sqlite")
    whole = path.read_bytes()
    path.write_bytes(
        {"cut": whole[:1000], "text": b"hello " * 999, "nothing": b"", "half": whole[: len(whole) // 2]}[damage]
    )
    said = quiet("embedder=counted", "rerun=true", data)
    assert said.code == 0, said
    told = [line for line in said.err.splitlines() if "set aside as" in line]
    assert len(told) == (damage != "nothing"), said.err  # no byte is no database yet
    assert rankings()["baseline"] == before
    assert ablate("index", "verify").code == 0


def test_what_stood_in_the_way_is_named():
    error = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "отчёты/run.json")
    assert unwritable(error).startswith("отчёты/run.json: found no space left on device, expected a place to write to;")
    assert unwritable(OSError("странно")).startswith("the workspace: found странно, expected")


# A database that is held


def test_kept_work_that_another_process_holds_is_waited_for_and_then_told(tmp_path, monkeypatch):
    kept = shelf.Shelf(tmp_path / "vectors/слова.sqlite", "revision")
    kept.write({b"k" * 16: b"value"})
    monkeypatch.setattr(shelf, "WAIT_SECONDS", 0.1)
    with held(kept.path), pytest.raises(AblateError, match=r"found 'database is locked', expected a file that can be"):
        kept.read([b"k" * 16])
    assert kept.read([b"k" * 16]) == {b"k" * 16: b"value"}
    assert [path.name for path in kept.path.parent.glob("*.broken")] == []


@pytest.mark.slow
def test_a_store_that_another_process_holds_gets_its_runs_later_and_once(work, data, monkeypatch):
    import mlflow
    from mlflow.store.db.utils import sql

    text = sql.text  # MLflow waits 20 seconds for the database each time
    monkeypatch.setattr(sql, "text", lambda said: text(said.replace("busy_timeout = 20000", "busy_timeout = 100")))
    assert quiet(data).code == 0
    assert ablate("sync").code == 0
    assert quiet("+variant=bm25", data).code == 0
    monkeypatch.setattr(tracking, "PATIENCE", 0.2)
    with held("experiments/mlflow.db"):
        said = ablate("sync")
    assert said.code == 1
    assert "database is locked" in said.out
    assert "kept in experiments/runs/" in said.out
    assert said.err == ""
    for _ in range(2):
        assert ablate("sync").code == 0
    client = mlflow.MlflowClient(f"sqlite:///{work}/experiments/mlflow.db")
    (study,) = {record.study for record in read().values()}
    found = client.search_runs([client.get_experiment_by_name(study).experiment_id])
    assert sorted(run.data.tags["ablate.variant"] for run in found) == ["baseline", "bm25"]
    assert {run.info.status for run in found} == {"FINISHED"}
