"""Run directories: written whole or not at all, read back as they were, found by any of their names."""

from __future__ import annotations

import json
import math
import os
from pathlib import Path

import numpy as np
import pytest
import runs
from hypothesis import given
from hypothesis import strategies as st

from ablate import records
from ablate.errors import AblateError
from ablate.files import BrokenRecord
from ablate.records import RunNotFound
from ablate.workspace import Workspace


@pytest.fixture
def place(tmp_path):
    return Workspace(tmp_path)


def facts(**changes):
    return {
        "run": "r1",
        "study": "s",
        "variant": "baseline",
        "status": "failed",
        "started": "2025-06-01T12:00:00",
        "fingerprints": {},
        **changes,
    }


def test_what_is_written_is_read_back(place):
    values = {"вопрос 1": {"context/sufficient": 1.0, "context/coverage": None}, "q2": {"context/sufficient": 0.0}}
    run = runs.build(place, values=values, overrides=("dataset.dir=отчёты и база",))
    again = records.read(run.folder)
    assert again.values("context/sufficient") == {"вопрос 1": 1.0, "q2": 0.0}
    assert again.values("context/coverage") == {}
    assert again.mean("context/sufficient") == 0.5
    assert again.mean("context/coverage") is None
    assert again.mean("no/such") is None
    assert again.config["dataset"]["dir"] == "отчёты и база"
    assert again.overrides == ("dataset.dir=отчёты и база",)
    assert again.finished
    assert again.is_baseline


def test_never_becomes_null_and_numpy_numbers_become_numbers(place):
    folder = place.runs / "s" / "r1"
    rows = [{"query_id": "q\u2028", "values": {"rank": math.inf, "x": np.float32(0.5), "n": np.int64(3)}}]
    records.write(
        folder, {"run.json": facts(), "queries.jsonl": rows, "a/b/tags.json": {"names": frozenset({"б", "а"})}}
    )
    assert json.loads((folder / "queries.jsonl").read_text()) == {
        "query_id": "q\u2028",
        "values": {"rank": None, "x": 0.5, "n": 3},
    }
    assert list(records.read(folder).queries) == ["q\u2028"]
    assert json.loads((folder / "a" / "b" / "tags.json").read_text()) == {"names": ["а", "б"]}


def test_nan_is_refused_and_leaves_nothing_behind(place):
    with pytest.raises(ValueError, match="not JSON compliant"):
        records.write(place.runs / "s" / "r1", {"run.json": facts(seconds=math.nan)})
    assert list((place.runs / "s").iterdir()) == []


def test_an_interrupted_write_is_invisible(place, monkeypatch):
    monkeypatch.setattr(os, "rename", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
    with pytest.raises(KeyboardInterrupt):
        records.write(place.runs / "s" / "r1", {"run.json": facts()})
    assert records.find(place) == []


def test_a_recorded_run_is_never_overwritten(place):
    first = runs.build(place, run="r1", error="first")
    with pytest.raises(OSError, match="r1"):
        runs.build(place, run="r1", error="second")
    assert records.read(first.folder).error == "first"
    assert [path.name for path in first.folder.parent.iterdir()] == ["r1"]


def test_files_that_are_no_run_are_never_published(place):
    with pytest.raises(BrokenRecord, match=r"metrics.json: found no file, expected the results"):
        records.write(place.runs / "s" / "r1", {"run.json": facts(status="finished")})
    assert list((place.runs / "s").iterdir()) == []


def test_half_directories_are_ignored_with_one_warning(place, caplog):
    good = runs.build(place)
    study = good.folder.parent
    (study / "empty").mkdir()
    (study / "torn").mkdir()
    (study / "torn" / "run.json").write_text('{"run": "torn", ')
    (study / "list").mkdir()
    (study / "list" / "run.json").write_text("[]")
    (study / ".being-written").mkdir()
    (study / "hopeful").mkdir()
    (study / "hopeful" / "run.json").write_text(json.dumps(facts(status="finished")))
    (study / "timeless").mkdir()
    (study / "timeless" / "run.json").write_text(json.dumps(facts(started="yesterday")))
    assert [record.id for record in records.find(place)] == [good.id]
    assert len(caplog.records) == 1
    assert "ignored 5 run directories" in caplog.text


def test_runs_are_found_by_study_oldest_first(place):
    late = runs.build(place, run="b", started="2025-06-01T12:00:00+03:00")
    early = runs.build(place, run="c", started="2025-06-01T08:59:00")
    other = runs.build(place, run="a", study="другое-00000000")
    assert [record.id for record in records.find(place, late.study)] == [early.id, late.id]
    assert [record.id for record in records.find(place)] == [early.id, late.id, other.id]
    assert records.find(Workspace(place.root / "nowhere")) == []


def test_a_run_is_found_by_its_id_its_beginning_or_its_mlflow_id(place):
    run = runs.build(place, run="ранжирование-1a2b3c")
    records.note(run.folder, "tracking.json", {"uri": "sqlite:///x", "experiment_id": "1", "run_id": "f" * 32})
    assert records.named(records.find(place), "ранжирование-1a2b3c").id == run.id
    assert records.named(records.find(place), "ранж").id == run.id
    assert records.named(records.find(place), "f" * 32).id == run.id
    assert "tracking.json" not in [path.name for path in run.files]


def test_a_whole_id_wins_over_a_longer_one_that_begins_with_it(place):
    runs.build(place, run="r-1")
    runs.build(place, run="r-1-2")
    assert records.named(records.find(place), "r-1").id == "r-1"


@pytest.mark.parametrize(
    ("wanted", "words"),
    [
        ("rerank-1", r"run 'rerank-1': found none, expected one such as reranker-0001.*ablate compare"),
        ("", r"run '': found none"),
        ("b", r"run 'b': found 2 runs \(.*baseline-0001.*bm25-0001\), expected one"),
    ],
)
def test_an_id_that_names_no_run_or_several_is_refused_with_what_is_near(place, wanted, words):
    for variant in ("baseline", "reranker", "bm25"):
        runs.build(place, variant)
    with pytest.raises(RunNotFound, match=words):
        records.named(records.find(place), wanted)


def test_an_unknown_study_is_refused_with_what_is_near(place):
    with pytest.raises(RunNotFound, match=r"found no run, expected one or more; `python -m ablate` makes the first"):
        records.of_study(place)
    runs.build(place, study="учёба-1a2b3c4d")
    with pytest.raises(RunNotFound, match=r"study 'учеба': found none, .* the nearest: учёба-1a2b3c4d"):
        records.of_study(place, "учеба")


def test_a_failed_run_without_results_has_no_numbers(place):
    run = runs.build(place, "reranker", error="ValueError: x")
    assert run.measures == {}
    assert run.queries == {}


def test_a_variant_is_labelled_with_its_own_tuning_alone(place):
    run = runs.build(
        place, "reranker", overrides=("+variant=reranker", "k=3", "reranker.first=40", "++reranker.batch=2")
    )
    assert run.label == "reranker first=40 batch=2"
    assert runs.build(place, overrides=("k=3",)).label == "baseline"


def test_the_newest_run_of_a_config_stands_for_it_and_used_baselines_stay(place):
    old = runs.build(place, run="base-old", started="2025-01-01T00:00:00")
    runs.build(place, "reranker", run="r-old", baseline=old, started="2025-01-02T00:00:00")
    variant = runs.build(place, "reranker", run="r-new", baseline=old, started="2025-01-03T00:00:00")
    runs.build(place, "reranker", run="r-failed", baseline=old, started="2025-01-04T00:00:00", error="x")
    unused = runs.build(place, run="base-middle", started="2025-01-05T00:00:00")
    new = runs.build(place, run="base-new", started="2025-01-06T00:00:00")
    orphan = runs.build(place, "bm25", run="orphan", baseline="gone", started="2025-01-07T00:00:00")
    kept = [record.id for record in records.current(records.find(place))]
    assert kept == [old.id, variant.id, new.id, orphan.id]
    assert unused.id not in kept


def test_an_unreadable_note_of_where_a_run_was_sent_does_not_hide_the_run(place):
    run = runs.build(place)
    (run.folder / "tracking.json").write_text("{")
    assert run.tracking == {}
    assert records.named(records.find(place), run.id).id == run.id


@pytest.mark.parametrize("name", ["metrics.json", "queries.jsonl", "config.yaml"])
def test_a_file_that_broke_after_writing_is_named_when_it_is_read(place, name):
    run = runs.build(place, values={"q": {"context/sufficient": 1.0}})
    (run.folder / name).write_text("{[")
    again = records.read(run.folder)
    with pytest.raises(AblateError, match=name):
        _ = (again.metrics, again.queries, again.config)


@given(st.text(), st.recursive(st.none() | st.booleans() | st.integers() | st.text(), st.lists))
def test_any_id_and_plain_value_survives_the_disk(tmp_path_factory, query, value):
    folder = Path(tmp_path_factory.mktemp("r")) / "run"
    query = query.encode("utf-8", "replace").decode()
    row = {"query_id": query, "values": {}, "ranking_hash": json.loads(json.dumps(value))}
    records.write(folder, {"run.json": facts(), "queries.jsonl": [row]})
    assert records.read(folder).queries[query] == row
