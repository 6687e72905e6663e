"""An MLflow server on PostgreSQL: many sweeps at once, a server that dies, and what is wrong with an address."""

import http.server
import importlib.util
import json
import os
import re
import shutil
import sqlite3
import sys
import threading
from contextlib import closing
from pathlib import Path

import pytest
from test_processes import OWN, ended, prepared, start, waited

ROOT = Path(__file__).parents[1]
NAMES = {"baseline", "words", "pairs"}

pytestmark = [pytest.mark.slow, pytest.mark.server]


def module(name="server"):
    spec = importlib.util.spec_from_file_location(name, ROOT / f"scripts/{name}.py")
    found = sys.modules[name] = importlib.util.module_from_spec(spec)  # where its dataclasses look for it
    spec.loader.exec_module(found)
    return found


@pytest.fixture(scope="module")
def server():
    """A server for all tests of this file; where it must be there, a missing one is no excuse."""
    found = module()
    try:
        with found.running() as one:
            yield one
    except (found.Missing, ModuleNotFoundError) as missing:
        if os.environ.get("ABLATE_SERVER_TESTS") == "required":
            raise
        pytest.skip(str(missing))


@pytest.fixture
def place(tmp_path, monkeypatch):
    for name in ("MLFLOW_TRACKING_URI", "ABLATE_WORKSPACE"):
        monkeypatch.delenv(name, raising=False)
    return lambda name: prepared(tmp_path / name)


def runs(server, study=None):
    """All runs of the server, or those of a study."""
    from mlflow import MlflowClient

    client = MlflowClient(tracking_uri=server.uri)
    experiments = [each for each in client.search_experiments() if study in (None, each.name)]
    return [run for each in experiments for run in client.search_runs([each.experiment_id])]


def study(folder):
    (path,) = {path.parent.parent for path in folder.glob("experiments/runs/*/*/run.json")}
    return path.name


def test_eight_sweeps_at_once_leave_one_whole_run_each(server, place):
    folders = [place(f"место {n}") for n in range(8)]
    sweep = (*OWN, "-m", "+variant=words,pairs")
    ended(*(start(folder, *sweep, MLFLOW_TRACKING_URI=server.uri) for folder in folders))
    (name,) = {study(folder) for folder in folders}
    found = runs(server, name)
    assert {run.info.status for run in found} == {"FINISHED"}
    made = [(run.data.tags["ablate.variant"], run.data.tags["ablate.started"]) for run in found]
    assert len(made) == len(set(made)) == 8 * len(NAMES)
    assert {variant for variant, _ in made} == NAMES
    process = start(folders[0], "compare", "--uri", server.uri, "--study", name, "--json")
    out, err = process.communicate(timeout=60)
    assert process.returncode == 0, err
    rows = json.loads(out)["runs"]
    assert len(rows) == 8 * len(NAMES)
    assert [row["variant"] for row in rows[:8]] == ["baseline"] * 8
    assert {row["word"] for row in rows[8:]} <= {"identical", "cannot tell"}


def told(folder, words):
    """The corpus with `words` at the end of its first document: a study of its own."""
    corpus = folder / "данные/corpus.jsonl"
    lines = [json.loads(line) for line in corpus.read_text(encoding="utf-8").splitlines()]
    lines[0]["text"] += f" {words}"
    corpus.write_text("".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines), encoding="utf-8")


def test_a_study_of_many_pages_is_told_whole(server, place):
    folder = place("много")
    told(folder, "Страниц здесь много")
    variables = {"MLFLOW_TRACKING_URI": server.uri}
    ended(start(folder, *OWN, "+variant=words", **variables))
    module("bench_compare").fill(server.database, study(folder), 230)
    for address in (server.uri, server.database):
        process = start(folder, "compare", "--uri", address, "--json")
        out, err = process.communicate(timeout=60)
        assert process.returncode == 0, err
        rows = json.loads(out)["runs"]
        assert len({row["run"] for row in rows}) == len(rows) == 230
        assert rows[0]["variant"] == "baseline"
        assert {row["variant"] for row in rows[1:]} == {"words"}


def test_a_database_that_holds_something_else_is_left_alone(server, place):
    import psycopg

    folder = place("чужая")
    address = server.database.replace("/mlflow", "/postgres")
    process = start(folder, "compare", "--uri", address)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 2
    assert "found a database without MLflow's tables" in err
    with psycopg.connect(address) as connection:
        assert connection.execute("SELECT 1 FROM pg_tables WHERE schemaname = 'public'").fetchone() is None


def test_a_server_gets_ids_and_offsets_and_no_text(server, place):
    folder = place("тайна")
    secret = "Никому не говори, что отпуск длится сорок дней"
    told(folder, secret)
    address = server.uri.replace("http://", "http://anna:parol@")
    ended(start(folder, *OWN, "+variant=words", f"tracking.uri={address}"))
    sent = [path for path in (server.folder / "artifacts").rglob("*") if path.is_file()]
    assert {"queries.jsonl", "ranking.jsonl", "config.yaml", "ledger.jsonl"} <= {path.name for path in sent}
    kept = [path for path in (folder / "experiments").rglob("*") if path.is_file()]
    for path in [*sent, *kept]:
        assert secret.encode() not in path.read_bytes(), path
        assert b"parol" not in path.read_bytes(), path
    for run in runs(server, study(folder)):
        shown = json.dumps([run.data.tags, run.data.params], ensure_ascii=False)
        assert secret not in shown
        assert "parol" not in shown


def asked(folder, *words, **variables):
    """How a command ended and what it said."""
    process = start(folder, *words, ABLATE_MODULES="counting", **variables)
    out, err = process.communicate(timeout=120)
    assert "Traceback" not in err
    return process.returncode, out, err


def test_a_run_and_a_study_are_reproduced_from_a_server_alone(server, place, tmp_path):
    folder = place("записано")
    told(folder, "Только на сервере")
    ended(start(folder, *OWN, "-m", "+variant=words,pairs", MLFLOW_TRACKING_URI=server.uri))
    name, data = study(folder), str(folder / "данные")
    found = {run.data.tags["ablate.variant"]: run.info.run_id for run in runs(server, name)}
    here = asked(folder, "lineage", found["pairs"])
    shutil.rmtree(folder / "experiments")
    elsewhere = tmp_path / "другая машина"
    elsewhere.mkdir()
    remote = ("--uri", server.uri)
    for words in (["--dataset", data], ["--dataset", data, "--fresh"]):
        code, out, err = asked(elsewhere, "reproduce", found["pairs"], *remote, *words)
        assert (code, ": reproduced (2 rankings" in out) == (0, True), out + err
    code, out, err = asked(elsewhere, "reproduce", "--study", name, *remote, "--dataset", data)
    assert code == 0, out + err
    assert out.count(": reproduced (2 rankings") == len(out.splitlines()) == len(NAMES)
    assert out.startswith("baseline ")
    named = asked(elsewhere, "reproduce", "--study", name, "--dataset", data, MLFLOW_TRACKING_URI=server.uri)
    assert named[:2] == (code, out), "a server that the environment names is asked for what is not recorded here"
    assert asked(elsewhere, "lineage", found["pairs"], *remote) == here
    code, out, err = asked(elsewhere, "lineage", found["baseline"], found["pairs"], *remote, "--json")
    assert (code, "reranker" in json.loads(out)) == (0, True), err
    assert asked(elsewhere, "reproduce", "--study", "нет", *remote)[0] == 2
    told(folder, "Одно слово")
    code, out, err = asked(elsewhere, "reproduce", found["pairs"], *remote, "--dataset", data)
    assert (code, ": not reproduced: document " in out) == (1, True), out + err
    code, out, err = asked(elsewhere, "reproduce", "--study", name, *remote, "--dataset", data, "--json")
    assert [row["verdict"] for row in json.loads(out)] == ["not reproduced"] * len(NAMES), err
    assert [path.name for path in elsewhere.iterdir()] == ["journal"], "of the components; nothing else is made"


def test_what_a_server_could_not_take_is_kept_and_sent_once(server, place):
    folder = place("авария")
    variables = {"MLFLOW_TRACKING_URI": server.uri}
    process = start(folder, *OWN, "+variant=waits", **variables)
    waited((folder / "begun").exists, process)
    server.stop("mlflow", hard=True)
    (folder / "go").touch()
    _, err = process.communicate(timeout=120)
    assert process.returncode == 0, err
    assert "waits: could not be sent to MLflow" in err
    assert "Traceback" not in err
    assert "python -m ablate sync" in err
    assert len(list(folder.glob("experiments/runs/*/*/run.json"))) == 2
    server.start_mlflow()
    for _ in range(2):
        ended(start(folder, "sync", **variables))
    begun = {json.loads(path.read_text())["started"] for path in folder.glob("experiments/runs/*/*/run.json")}
    found = [run for run in runs(server, study(folder)) if run.data.tags["ablate.started"] in begun]
    assert sorted(run.data.tags["ablate.variant"] for run in found) == ["baseline", "waits"]
    assert {run.info.status for run in found} == {"FINISHED"}


@pytest.fixture(scope="module")
def stranger():
    """A web server that is no MLflow."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_error(404)

        def do_POST(self):
            self.send_error(404)

        def log_message(self, *words):
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as found:
        threading.Thread(target=found.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{found.server_port}"
        found.shutdown()


@pytest.fixture(scope="module")
def outdated(tmp_path_factory):
    """A store whose schema is an older one."""
    from mlflow.store.tracking.sqlalchemy_store import SqlAlchemyStore

    path = tmp_path_factory.mktemp("old") / "mlflow.db"
    SqlAlchemyStore(f"sqlite:///{path}", path.parent.as_uri()).engine.dispose()
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("UPDATE alembic_version SET version_num = '451aebb31d03'")
        connection.commit()
    return f"sqlite:///{path}"


@pytest.mark.parametrize(
    ("address", "said"),
    [
        (
            lambda server, stranger, old: server.database.replace("a-local-secret", "wrong"),
            "password authentication failed",
        ),
        (lambda server, stranger, old: re.sub(r":\d+/", ":9/", server.database), "refused"),
        (lambda server, stranger, old: "http://127.0.0.1:9", "http://127.0.0.1:9"),
        (lambda server, stranger, old: stranger, "404"),
        (lambda server, stranger, old: "foo://x", "expected an address that begins with one of http"),
        (lambda server, stranger, old: old, "schema"),
    ],
    ids=["password", "port", "nobody", "stranger", "scheme", "schema"],
)
def test_what_is_wrong_with_an_address_is_one_sentence(server, stranger, outdated, place, address, said):
    folder, uri = place("адрес"), address(server, stranger, outdated)
    for words in (("compare", "--uri", uri), (*OWN, f"tracking.uri={uri}")):
        process = start(folder, *words)
        out, err = process.communicate(timeout=60)
        assert "Traceback" not in err
        assert "a-local-secret" not in err + out
        assert "wrong@" not in err
        if words[0] == "compare" or uri.startswith("foo"):
            assert process.returncode == 2, err
            assert err.count("\n") == 1
            assert said in err
        else:
            assert process.returncode == 0, err
            (line,) = [line for line in err.splitlines() if "could not be sent" in line]
            assert said in line
            assert (folder / "experiments/runs").is_dir()
