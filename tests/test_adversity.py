"""What the machine does to a command: a place that cannot be written to, a database that is held, a clock set back."""

from __future__ import annotations

import errno
import os
import sqlite3
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
