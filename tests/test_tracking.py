"""Runs in MLflow: sent once and whole, never left running, never a reason to lose a result."""

from __future__ import annotations

import contextlib
import io
import json
import os
import shutil
import sqlite3
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest
import runs
from hypothesis import given, settings
from hypothesis import strategies as st

from ablate import display, records, table, tracking
from ablate.commands import sync, ui
from ablate.errors import AblateError, ConfigError
from ablate.page import public
from ablate.records import RunNotFound
from ablate.tracking import Mlflow, Off, Store
from ablate.workspace import Workspace

pytestmark = pytest.mark.filterwarnings("ignore:The ``noload`` loader strategy:DeprecationWarning")  # MLflow's own

SOURCE = Path(__file__).parents[1] / "src"
TRACKER = Mlflow(uri=None, log_text=False)


@pytest.fixture(scope="session")
def made(tmp_path_factory):
    """An empty store, made once because that takes seconds, and what was said meanwhile."""
    place = Workspace(tmp_path_factory.mktemp("пустая база"))
    said = io.StringIO()
    with contextlib.redirect_stderr(said):
        Mlflow(None, False).store(place).create()
    return place, said.getvalue()


@pytest.fixture
def place(tmp_path, made, monkeypatch):
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    monkeypatch.setenv("ABLATE_WORKSPACE", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    found = Workspace(tmp_path)
    found.experiments.mkdir()
    shutil.copy(made[0].experiments / "mlflow.db", found.experiments / "mlflow.db")
    return found


def send(record, place, baseline=None, tracker=TRACKER):
    return tracker.log(record, table.compare([baseline, record] if baseline else [record]), place)


def sent(place, study="учёба-1a2b3c4d"):
    """Every run of a study, oldest first."""
    client = TRACKER.store(place).client()
    experiment = client.get_experiment_by_name(study)
    return sorted(client.search_runs([experiment.experiment_id]), key=lambda run: run.info.start_time)


def artifacts(place, run):
    return sorted(entry.path for entry in TRACKER.store(place).client().list_artifacts(run.info.run_id))


def test_making_the_store_is_announced_in_one_line_and_leaves_only_the_store(made):
    place, said = made
    assert said == "creating experiments/mlflow.db (takes a few seconds, once)\n"
    assert {path.name for path in place.root.iterdir()} == {"experiments"}
    assert {path.name for path in place.experiments.iterdir()} <= {"mlflow.db", ".mlflow.db.lock"}


def test_a_study_is_one_experiment_of_flat_runs_that_a_newcomer_can_tell_apart(place, capfd):
    baseline, reranker, broken = runs.study(place)
    for record in (baseline, reranker, broken):
        assert send(record, place, None if record is baseline else baseline) is None
    first, second, third = sent(place)
    assert [run.info.run_name for run in (first, second, third)] == [
        "baseline 0.350",
        "reranker +0.125",
        "hybrid FAILED",
    ]
    assert [run.info.status for run in (first, second, third)] == ["FINISHED", "FINISHED", "FAILED"]
    assert second.data.tags["mlflow.note.content"].startswith(
        table.compare([baseline, reranker]).sentence(reranker) + "\n\n**"
    )
    assert "| reranker | 0.475 +0.125 |" in second.data.tags["mlflow.note.content"].replace("  ", "")
    assert "mlflow.parentRunId" not in second.data.tags
    assert second.info.end_time - second.info.start_time == 3500
    assert capfd.readouterr() == ("", "")


def test_a_run_carries_its_identity_config_numbers_and_files(place):
    baseline, reranker, _ = runs.study(place)
    send(baseline, place)
    send(reranker, place, baseline)
    run = sent(place)[1]
    tags, metrics = run.data.tags, run.data.metrics
    assert tags["ablate.study"] == reranker.study
    assert tags["ablate.sweep"] == "7"
    assert tags["ablate.variant"] == "reranker"
    assert tags["ablate.component"] == "reranker"
    assert tags["ablate.baseline_run_id"] == baseline.id
    assert tags["ablate.change.reranker._target_"] == "ablate.reranker.Keep -> ablate.reranker.CrossEncoder"
    assert {tags[f"ablate.fingerprint.{name}"] for name in runs.FINGERPRINTS} == set(runs.FINGERPRINTS.values())
    assert run.data.params["dataset.dir"] == "отчёты и база"
    assert run.data.params["k"] == "5"
    assert metrics["context/sufficient"] == pytest.approx(0.475)
    assert metrics["delta/context/sufficient"] == pytest.approx(metrics["context/sufficient"] - 0.35)
    assert metrics["delta/context/coverage"] == pytest.approx(-0.05)
    assert metrics["latency/total_p50"] == 310
    assert [entry.dataset.digest for entry in run.inputs.dataset_inputs] == ["c0" * 16, "6e" * 16]
    names = ["changes.json", "config.yaml", "metrics.json", "overrides.yaml", "queries.jsonl", "run.json"]
    assert artifacts(place, run) == names
    note = json.loads((reranker.folder / "tracking.json").read_text())
    assert note == {
        "uri": f"sqlite:///{place.experiments / 'mlflow.db'}",
        "experiment_id": run.info.experiment_id,
        "run_id": run.info.run_id,
        "name": "reranker +0.125",
    }
    assert (place.experiments / "artifacts" / reranker.study / run.info.run_id / "artifacts" / "run.json").is_file()
    assert {path.name for path in place.root.iterdir()} == {"experiments"}


def test_folders_of_a_run_stay_folders(place):
    record = runs.build(place, values={"q": runs.evidence(1, 1)}, files={"plots/кривая.svg": "<svg/>"})
    send(record, place)
    client = TRACKER.store(place).client()
    assert [entry.path for entry in client.list_artifacts(sent(place)[0].info.run_id, "plots")] == ["plots/кривая.svg"]


def test_sending_twice_makes_one_run(place):
    record = runs.build(place, values={"q": runs.evidence(1, 1)})
    assert send(record, place) is None
    first = json.loads((record.folder / "tracking.json").read_text())
    assert send(record, place) is None
    (record.folder / "tracking.json").unlink()
    assert send(record, place) is None
    assert json.loads((record.folder / "tracking.json").read_text()) == first
    assert len(sent(place)) == 1


def test_a_run_that_is_noted_to_be_there_is_not_asked_for_again(place, monkeypatch):
    record = runs.build(place, values={"q": runs.evidence(1, 1)})
    send(record, place)
    with monkeypatch.context() as patch:
        patch.setitem(sys.modules, "mlflow", None)  # importing it now is an error
        assert send(record, place) is None
        (record.folder / "tracking.json").unlink()
        assert "could not be sent" in send(record, place)


def test_a_run_goes_to_another_store_when_the_address_changes(place, made):
    record = runs.build(place, values={"q": runs.evidence(1, 1)})
    send(record, place)
    shutil.copy(made[0].experiments / "mlflow.db", place.root / "другая.db")
    other = Mlflow(f"sqlite:///{place.root}/другая.db", False)
    assert send(record, place, tracker=other) is None
    assert record.tracking["uri"] == other.uri
    assert other.store(place).has(record)


def test_an_interrupted_sending_ends_killed_and_is_completed_by_the_next(place, monkeypatch):
    from mlflow import MlflowClient

    record = runs.build(place, values={"q": runs.evidence(1, 1)})
    with monkeypatch.context() as patch:
        patch.setattr(MlflowClient, "log_artifact", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            send(record, place)
    assert [run.info.status for run in sent(place)] == ["KILLED"]
    assert not (record.folder / "tracking.json").exists()
    assert send(record, place) is None
    run, *more = sent(place)
    assert (run.info.status, more) == ("FINISHED", [])
    assert "queries.jsonl" in artifacts(place, run)


def test_a_sending_that_was_killed_outright_is_completed_by_the_next(place, monkeypatch):
    from mlflow import MlflowClient

    record = runs.build(place, values={"q": runs.evidence(1, 1)})
    with monkeypatch.context() as patch:
        patch.setattr(MlflowClient, "set_terminated", lambda *_: None)
        send(record, place)
    (record.folder / "tracking.json").unlink()
    assert [run.info.status for run in sent(place)] == ["RUNNING"]
    assert send(record, place) is None
    assert [run.info.status for run in sent(place)] == ["FINISHED"]


def test_a_run_that_was_deleted_in_mlflow_is_not_sent_again(place):
    record = runs.build(place, values={"q": runs.evidence(1, 1)})
    send(record, place)
    client = TRACKER.store(place).client()
    client.delete_run(sent(place)[0].info.run_id)
    (record.folder / "tracking.json").unlink()
    assert send(record, place) is None
    assert sent(place) == []


def test_a_study_that_was_deleted_in_mlflow_comes_back_with_its_next_run(place):
    baseline, reranker, _ = runs.study(place)
    send(baseline, place)
    client = TRACKER.store(place).client()
    client.delete_experiment(sent(place)[0].info.experiment_id)
    assert send(reranker, place, baseline) is None
    assert len(sent(place)) == 2


def test_a_store_that_is_away_costs_a_warning_and_keeps_the_run(place, monkeypatch):
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "0")
    record = runs.build(place, "reranker", values={"q": runs.evidence(1, 1)})
    warning = send(record, place, tracker=Mlflow("http://anna:secret@127.0.0.1:9", False))
    assert warning.startswith("reranker: could not be sent to MLflow at http://127.0.0.1:9 (")
    assert warning.endswith(
        "), kept in experiments/runs/учёба-1a2b3c4d/reranker-0001; `python -m ablate sync` sends it"
    )
    assert "secret" not in warning
    assert not (record.folder / "tracking.json").exists()
    assert records.read(record.folder).finished


def test_a_broken_database_costs_a_warning_and_keeps_the_run(place):
    (place.experiments / "mlflow.db").write_bytes(b"not a database" * 99)
    record = runs.build(place, values={"q": runs.evidence(1, 1)})
    assert "could not be sent to MLflow at experiments/mlflow.db" in send(record, place)


def test_texts_leave_the_machine_only_when_asked(place, monkeypatch):
    record = runs.build(
        place,
        values={"q": runs.evidence(1, 1)},
        files={"report.html": "канарейка", "environment.json": {"git": {"commit": "abc", "diff": "канарейка"}}},
    )
    monkeypatch.setattr(Store, "file", None)  # what is no file is a server
    monkeypatch.chdir(place.root)
    store = TRACKER.store(place)
    assert send(record, place) is None
    held = [text for path in place.root.glob("mlruns/**/*") if path.is_file() for text in [path.read_text()]]
    assert held
    assert not [text for text in held if "канарейка" in text]
    client = store.client()
    run = client.search_runs(["1"])[0]
    assert run.data.tags["mlflow.source.git.commit"] == "abc"
    dump = "\n".join(sqlite3.connect(place.experiments / "mlflow.db").iterdump())
    assert "канарейка" not in dump
    (record.folder / "tracking.json").unlink()
    client.set_terminated(run.info.run_id, "KILLED")
    assert send(record, place, tracker=Mlflow(None, log_text=True)) is None
    assert [path.read_text() for path in place.root.glob("mlruns/**/report.html")] == ["канарейка"]


def test_at_most_80_metrics_are_sent_and_what_matters_most_comes_first(place):
    row = {f"context/measure_{n}": 1.0 for n in range(70)} | {f"chunking/measure_{n}": 1.0 for n in range(70)}
    baseline = runs.build(place, values={"q": runs.evidence(1, 1) | row})
    variant = runs.build(place, "reranker", {"q": runs.evidence(1, 1) | row}, baseline=baseline)
    found = display.figures(variant, baseline)
    assert len(found) == 80
    assert next(iter(found)) == "delta/context/sufficient"
    assert {"context/sufficient", "context/measure_69", "delta/retrieval/coverage_at_640_tokens"} <= found.keys()


def test_metrics_are_those_at_the_studys_own_cut_offs(place):
    names = [
        *("retrieval/recall_at_5", "retrieval/recall_at_10", "retrieval/coverage_at_50", "retrieval/completion_rr"),
        *("doc/ndcg_at_5", "doc/ndcg_at_10", "doc/ndcg_at_1", "doc/mrr", "cost/query", "acl/violations", "novelty/x"),
        *(f"retrieval/coverage_at_{tokens}_tokens" for tokens in (160, 640, 1280)),
        "retrieval/coverage_area_640_tokens",
    ]
    found = display.figures(runs.build(place, values={"q": dict.fromkeys(names, 1.0)}), None)
    assert set(found) == set(names) - {
        "retrieval/recall_at_10",
        "retrieval/coverage_at_50",
        "retrieval/coverage_at_160_tokens",
        "retrieval/coverage_at_1280_tokens",
        "doc/ndcg_at_1",
        "novelty/x",
    }


def test_what_does_not_apply_is_not_a_metric(place):
    assert display.figures(runs.build(place, values={"q": {"context/sufficient": None}}), None) == {}


def test_parameters_are_flat_and_visibly_cut():
    found = display.parameters(
        {"a": {"b": None, "c": [1, "д"], "пусто": {}}, "long": "x" * 501, "cost": {"отдел, 50%": 0.5}, "on": True}
    )
    assert found["a.b"] == "null"
    assert found["a.c"] == '[1, "д"]'
    assert found["a.пусто"] == "{}"
    assert found["on"] == "true"
    assert found["cost.отдел-x2c- 50-x25-"] == "0.5"
    assert len(found["long"]) == 500
    assert found["long"].endswith(" ... (cut)")
    assert display.cut("x" * 500) == "x" * 500


@settings(max_examples=300)
@given(st.text(min_size=1))
def test_every_name_is_legal(name):
    from mlflow.utils.validation import _validate_metric_name, _validate_param_name, _validate_tag_name

    made = display.legal(name)
    for check in (_validate_metric_name, _validate_param_name, _validate_tag_name):
        check(made)
    assert len(made) <= 250


def test_a_password_in_an_address_is_not_shown():
    assert public("x http://anna:s@127.0.0.1:9/a@b y") == "x http://127.0.0.1:9/a@b y"
    assert public("anna@example.org") == "anna@example.org"
    assert public("postgresql://u:p@ss@host/db and http://u:p/w@host:1/x") == "postgresql://host/db and http://host:1/x"
    assert public("postgresql://host:5/db?user=u&password=geheim&x=1") == (
        "postgresql://host:5/db?user=u&password=...&x=1"
    )
    assert public("http://host:5000/a@b ['http://host', 'a@b']") == "http://host:5000/a@b ['http://host', 'a@b']"
    assert display.parameters({"tracking": {"uri": "https://a:b@host"}}) == {"tracking.uri": "https://host"}


def test_a_legal_name_stays_as_it_is():
    for name in ("retrieval/recall_at_5", "reranker._target_", "отдел/中文"):
        assert display.legal(name) == name


@pytest.mark.parametrize("uri", ["./mlruns", "mlruns", "file:///tmp/mlruns", "file:mlruns"])
def test_a_folder_of_files_is_answered_with_the_way_out(uri, monkeypatch):
    words = rf"found '{uri}', a folder of files.*mlflow migrate-filestore --source"
    with pytest.raises(ConfigError, match=words):
        Mlflow(uri, False)
    monkeypatch.setenv("MLFLOW_TRACKING_URI", uri)
    with pytest.raises(ConfigError, match=words):
        Mlflow(None, False)


def test_the_store_is_named_by_config_before_environment_before_workspace(place, monkeypatch):
    assert TRACKER.store(place).uri == f"sqlite:///{place.experiments}/mlflow.db"
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "sqlite:///other.db")
    assert TRACKER.store(place).uri == f"sqlite:///{place.root}/other.db"
    assert Mlflow("http://x", False).store(place).uri == "http://x"


def test_a_locked_database_is_tried_again(monkeypatch):
    monkeypatch.setattr(time, "sleep", lambda _: None)
    answers = iter([OSError("(sqlite3.OperationalError) database is locked")] * 5)

    def call():
        for error in answers:
            raise error
        return "done"

    assert tracking.patient(call) == "done"
    with pytest.raises(OSError, match="disk full"):
        tracking.patient(lambda: (_ for _ in ()).throw(OSError("disk full")))
    monkeypatch.setattr(tracking, "PATIENCE", 0)
    with pytest.raises(OSError, match="locked"):
        tracking.patient(lambda: (_ for _ in ()).throw(OSError("database is locked")))


def test_without_tracking_nothing_is_sent_or_made(tmp_path):
    place = Workspace(tmp_path)
    record = runs.build(place, values={"q": runs.evidence(1, 1)})
    assert send(record, place, tracker=Off()) is None
    assert {path.name for path in place.experiments.iterdir()} == {"runs"}


def test_importing_the_tracker_does_not_import_mlflow_and_using_it_sends_no_telemetry():
    code = (
        "import sys; import ablate.tracking, ablate.commands.compare, ablate.commands.sync, ablate.commands.ui; "
        "assert not {'mlflow', 'tabulate', 'torch', 'omegaconf'} & sys.modules.keys(), 'imported too early'; "
        "ablate.tracking.quiet(); import mlflow.telemetry.utils as usage; assert usage.is_telemetry_disabled()"
    )
    known = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
    subprocess.run([sys.executable, "-c", code], check=True, env={**known, "PYTHONPATH": str(SOURCE)})


def test_sync_sends_what_is_missing_and_says_what_it_did(place, capsys):
    baseline, *_ = runs.study(place)
    send(baseline, place)
    assert sync.main([]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "reranker: sent (учёба-1a2b3c4d)",
        "hybrid: sent (учёба-1a2b3c4d)",
        "2 sent, 1 already there, 0 could not be sent",
    ]
    assert [run.info.run_name for run in sent(place)] == ["baseline 0.350", "reranker +0.125", "hybrid FAILED"]
    assert sync.main([]) == 0
    assert capsys.readouterr().out == "0 sent, 3 already there, 0 could not be sent\n"


def test_sync_of_a_study_that_is_not_there_names_the_nearest(place):
    runs.study(place)
    with pytest.raises(RunNotFound, match=r"^study 'учоба-1a2b3c4d': found none, .* the nearest: учёба-1a2b3c4d"):
        sync.main(["--study", "учоба-1a2b3c4d"])


def test_sync_says_no_when_something_could_not_be_sent(place, capsys, monkeypatch):
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "0")
    config = {"tracking": {"_target_": "ablate.tracking.Mlflow", "uri": "http://127.0.0.1:9", "log_text": False}}
    runs.build(place, values={"q": runs.evidence(1, 1)}, config=config)
    assert sync.main([]) == 1
    assert capsys.readouterr().out.endswith("0 sent, 0 already there, 1 could not be sent\n")
    assert sync.main(["--uri", TRACKER.store(place).uri]) == 0


def test_sync_fills_a_store_that_was_deleted(place, made):
    record = runs.build(place, values={"q": runs.evidence(1, 1)})
    send(record, place)
    from mlflow.store.tracking.sqlalchemy_store import SqlAlchemyStore

    SqlAlchemyStore(TRACKER.store(place).uri, "x").engine.dispose()
    shutil.copy(made[0].experiments / "mlflow.db", place.experiments / "mlflow.db")
    assert sync.main([]) == 0
    assert len(sent(place)) == 1


def test_the_page_of_runs_is_the_address(place):
    send(runs.build(place, values={"q": runs.evidence(1, 1)}), place)
    store = TRACKER.store(place)
    assert store.page("учёба-1a2b3c4d") == "#/experiments/1/runs?workflowType=machine_learning"
    assert store.page("no such") == "#/experiments"


def test_of_a_server_ui_prints_the_address(place, capsys, monkeypatch):
    monkeypatch.setattr(Store, "page", lambda *_: "#/experiments/3")
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "https://mlflow.example/")
    assert ui.main([]) == 0
    assert capsys.readouterr().out == "https://mlflow.example/#/experiments/3\n"


def test_a_taken_port_is_replaced_by_a_free_one(capsys):
    import socket

    with socket.socket() as door:
        door.bind(("127.0.0.1", 0))
        door.listen()
        taken = door.getsockname()[1]
        assert ui.free(taken) != taken
    assert capsys.readouterr().out.startswith(f"port {taken} is taken, using ")


@pytest.mark.slow
def test_a_server_that_ends_by_itself_is_told_with_its_last_words(place):
    store = replace(TRACKER.store(place), uri="nonsense://x")
    with pytest.raises(AblateError, match=r"MLflow ended by itself.*nonsense"), ui.serving(store, ui.free(0)):
        pytest.fail("it cannot serve this")


@pytest.mark.slow
def test_ui_serves_the_page_on_this_machine_alone_and_ends_with_all_its_workers(place):
    import signal
    import urllib.request

    send(runs.build(place, values={"q": runs.evidence(1, 1)}), place)
    port = str(ui.free(0) or 5000)
    command = [sys.executable, "-m", "ablate", "ui", "--no-browser", "--port", port]
    environment = {**os.environ, "PYTHONPATH": str(SOURCE)}
    for number in (signal.SIGINT, signal.SIGTERM):
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as process:
            address = process.stdout.readline().strip()
            assert address.endswith("/#/experiments/1/runs?workflowType=machine_learning")
            opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
            assert b"<html" in opener.open(address.partition("#")[0]).read()
            process.send_signal(number)
            assert process.wait(30) == 0
        with pytest.raises(OSError, match="refused"):
            opener.open(address.partition("#")[0], timeout=5)


@pytest.mark.slow
def test_eight_processes_on_an_empty_folder_all_succeed(tmp_path):
    code = (
        "import sys; sys.path[:0] = sys.argv[1:3]; import runs; from pathlib import Path; "
        "from ablate import table; from ablate.tracking import Mlflow; from ablate.workspace import Workspace; "
        "place = Workspace(Path(sys.argv[3])); "
        "record = runs.build(place, 'v' + sys.argv[4], {'q': runs.evidence(1, 1)}); "
        "warning = Mlflow(None, False).log(record, table.compare([record]), place); assert warning is None, warning"
    )
    environment = {key: value for key, value in os.environ.items() if key != "MLFLOW_TRACKING_URI"}
    arguments = [sys.executable, "-c", code, str(SOURCE), str(Path(__file__).parent), str(tmp_path)]
    processes = [
        subprocess.Popen([*arguments, str(number)], stderr=subprocess.PIPE, text=True, env=environment)
        for number in range(8)
    ]
    said = [process.communicate()[1] for process in processes]
    assert [process.returncode for process in processes] == [0] * 8, said
    assert "".join(said) == "creating experiments/mlflow.db (takes a few seconds, once)\n"
    assert [run.info.status for run in sent(Workspace(tmp_path))] == ["FINISHED"] * 8


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        (
            "API request to http://u:p@h:9/api failed with exception HTTPConnectionPool(host='h', port=9): Max retries "
            "exceeded with url: /api (Caused by NewConnectionError(\"HTTPConnection(host='h', port=9): Failed to "
            'establish a new connection: [Errno 111] Connection refused"))',
            "Failed to establish a new connection: [Errno 111] Connection refused",
        ),
        ("no store at http://u:geheim@h:9/x.\nmore", "no store at http://h:9/x"),
        (
            "out-of-date (found 1). Run 'mlflow db upgrade'. NOTE: it takes long",
            "out-of-date (found 1). Run 'mlflow db upgrade'",
        ),
        ("", "Exception()"),
    ],
    ids=["why a connection failed", "password", "advice", "nothing"],
)
def test_the_reason_of_an_error_is_short_and_says_why(said, expected):
    assert tracking.reason(Exception(said) if said else Exception()) == expected


def test_the_measure_that_a_study_declared_is_sent_with_its_difference(place):
    for primary, sent in (("retrieval/ndcg_at_50", True), (None, False)):
        config = {"verdict": {"primary": primary, "margin": 0.05}}
        values = [{"q": runs.evidence(1, 1) | {"retrieval/ndcg_at_50": x}} for x in (0.25, 1.0)]
        baseline = runs.build(place, values=values[0], config=config, study=f"{primary}")
        variant = runs.build(place, "reranker", values[1], baseline=baseline, config=config, study=f"{primary}")
        found = display.figures(variant, baseline)
        assert (found.get("retrieval/ndcg_at_50"), found.get("delta/retrieval/ndcg_at_50")) == (
            (1.0, 0.75) if sent else (None, None)
        )
        assert ("retrieval/ndcg_at_50" in display.figures(baseline, None)) is sent
