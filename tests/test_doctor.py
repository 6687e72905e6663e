"""What a run needs: that doctor finds what is there, names the command for what is not, and imports nothing heavy."""

import importlib.metadata
import json
import shutil
import sqlite3
import subprocess
import sys
import tomllib
from collections import namedtuple
from pathlib import Path

import cli
import pytest
import runs
import yaml
from cli import ablate, put, workshop
from test_main import HEAVY, python

from ablate import clash, doctor
from ablate.conf import conf
from ablate.doctor import MISSING, OK, WRONG, examine, lines, package
from ablate.workspace import Workspace

ROOT = Path(__file__).parents[1]


@pytest.fixture
def work(tmp_path, monkeypatch):
    return workshop(tmp_path, monkeypatch)


def found(name):
    """The one finding of that name."""
    (finding,) = (each for each in examine() if each.name == name)
    return finding


def test_it_is_quick_and_imports_no_library_that_is_slow(work):
    code = (
        "import sys, time\nbegan = time.process_time()\n"
        "from ablate.__main__ import main\ncode = main(['doctor', '--json'])\n"
        f"heavy = [name for name in {HEAVY} if name in sys.modules and name not in ('numpy',)]\n"
        "sys.stderr.write(f'{code} {heavy} {time.process_time() - began}')"
    )
    done = python("-c", code, folder=work)
    code, heavy, seconds = done.stderr.decode().splitlines()[-1].replace("[]", "none").split()
    assert heavy == "none"
    assert float(seconds) < 2
    said = json.loads(done.stdout)
    assert said["ready"] is (code == "0")
    assert {"name", "state", "found", "advice", "needed"} == said["findings"][0].keys()
    assert not [name for name in cli.everything(work) if not name.startswith("conf")], "nothing is written"


def test_every_requirement_is_there_in_this_environment_and_every_model_option_is_looked_for():
    names = [finding.name for finding in examine()]
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    for line in project["dependencies"]:
        name = line.partition(">")[0].partition("=")[0]
        assert found(f"package {name}").state == OK, name
    for group in ("embedder", "reranker"):
        for file in (conf() / group).glob("*.yaml"):
            has = "model" in yaml.safe_load(file.read_text(encoding="utf-8"))
            assert (f"{group} {file.stem}" in names) == has


def test_whatever_is_not_right_is_followed_by_a_command_and_ends_in_1_if_it_is_needed(work, monkeypatch, capsys):
    lacking = [
        doctor.Finding("package x", MISSING, "expected >=1", 'pip install "x>=1"'),
        doctor.Finding("package y (z)", WRONG, "0.1, expected >=1", 'pip install "ablate-retrieval[z]"', needed=False),
        doctor.Finding("disk", OK, "3 GB free"),
    ]
    monkeypatch.setattr("ablate.commands.doctor.examine", lambda: lacking)
    said = ablate("doctor")
    assert said.code == 1
    assert said.out.splitlines() == [
        "missing  package x      expected >=1",
        '                        -> pip install "x>=1"',
        "wrong    package y (z)  0.1, expected >=1",
        '                        -> pip install "ablate-retrieval[z]"',
        "ok       disk           3 GB free",
        "not ready: package x; 1 optional things are missing or wrong",
    ]
    del lacking[0]
    said = ablate("doctor")
    assert said.code == 0
    assert said.out.endswith("all that is needed is there; 1 optional things are missing or wrong\n")


@pytest.mark.parametrize(
    ("line", "extra", "state", "advice"),
    [
        ("numpy>=1", "", OK, ""),
        ("numpy>=999", "", WRONG, 'pip install "numpy>=999"'),
        ("no-such-package==1.0", "", MISSING, 'pip install "no-such-package==1.0"'),
        ("no-such-package>=1", "models", MISSING, 'pip install "ablate-retrieval[models]"'),
        ("numpy<1", "documents", WRONG, 'pip install "ablate-retrieval[documents]"'),
        ('no-such-package>=1; extra == "models"', "models", MISSING, 'pip install "ablate-retrieval[models]"'),
    ],
)
def test_a_package_is_there_in_the_version_that_is_asked_for_or_it_is_said_how_to_get_it(line, extra, state, advice):
    (finding,) = package(line, extra)
    assert (finding.state, finding.advice, finding.needed) == (state, advice, not extra)


def test_a_requirement_of_other_platforms_is_not_one_here():
    assert [*package("no-such-package; sys_platform == 'nowhere'", "models")] == []


def test_an_installed_distribution_states_its_requirements_itself(monkeypatch, tmp_path):
    put(
        tmp_path / f"{clash.OURS.replace('-', '_')}-9.0.dist-info",
        {
            "METADATA": "Metadata-Version: 2.4\nName: ablate-retrieval\nVersion: 9.0\nRequires-Python: >=3.11\n"
            "Requires-Dist: numpy>=2.2\nRequires-Dist: onnx>=1.20; extra == 'models'\n"
            "Requires-Dist: mammoth>=1.11 ; extra == 'documents'\nRequires-Dist: ruff; extra == 'dev'\n"
        },
    )
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    monkeypatch.setattr(doctor, "__file__", str(tmp_path / "a/b/doctor.py"))
    wanted, groups = doctor.declared()
    assert wanted == ">=3.11"
    assert groups[""] == ["numpy>=2.2"]
    assert [package(line, extra) and line[:4] for extra in doctor.EXTRAS for line in groups[extra]] == ["onnx", "mamm"]


def other(folder, name="ablate", version="0.4.1"):
    """Another distribution, as an installer leaves it, that has a package `ablate`."""
    put(
        folder / f"{name}-{version}.dist-info",
        {
            "METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n",
            "RECORD": "ablate/__init__.py,sha256=x,1\n",
        },
    )


def test_start_up_names_the_clash_in_one_sentence_and_goes_on(work, monkeypatch):
    monkeypatch.setattr(sys, "path", [*sys.path, str(work / "site")])
    assert ablate("--version").err == ""
    other(work / "site")
    said = ablate("--version")
    assert said.code == 0
    assert said.err.count("\n") == 1
    assert said.err.startswith(
        "ablate: package ablate: found the distribution ablate 0.4.1, which installs a package of"
    )
    assert "pip uninstall ablate" in said.err


def test_doctor_finds_whatever_else_installs_such_a_package(work, monkeypatch):
    monkeypatch.setattr(sys, "path", [*sys.path, str(work / "site")])
    other(work / "site", "ablation_tools", "2.0")
    finding = found("package ablate")
    assert (finding.state, finding.found) == (WRONG, "ablation_tools 2.0 installs a package of the same name")
    assert ablate("doctor").code == 1


def test_a_model_that_is_nowhere_is_missing_with_the_command_that_brings_it(work, monkeypatch):
    monkeypatch.setattr("socket.socket.connect", refuse)
    node = {"_target_": "ablate.embedder.SentenceTransformer", "model": "нет/такой", "max_tokens": None}
    node |= {"query_prompt": "", "document_prompt": "", "dtype": "float32"}
    with doctor.offline():
        finding = doctor.model("embedder mine", node, needed=True)
    assert (finding.state, finding.fatal) == (MISSING, True)
    assert 'pip install "ablate-retrieval[models]"' in finding.advice


def refuse(*address):
    raise AssertionError(f"asked {address}")


def test_being_offline_ends_with_the_look(monkeypatch):
    import os

    for before in (None, "0"):
        if before is None:
            monkeypatch.delenv("HF_HUB_OFFLINE", raising=False)
        else:
            monkeypatch.setenv("HF_HUB_OFFLINE", before)
        with doctor.offline():
            assert os.environ["HF_HUB_OFFLINE"] == "1"
        assert os.environ.get("HF_HUB_OFFLINE") == before


def test_records_that_cannot_be_read_and_indexes_that_are_no_databases_are_named(work):
    runs.build(Workspace(work))
    broken = runs.build(Workspace(work), "reranker", values={"q": {}}).folder
    (broken / "metrics.json").unlink()
    put(work / "indexes/vectors", {"00.sqlite": "мусор"})
    assert found("runs").found == "1 in experiments/runs"
    named = found("run reranker-0001")
    assert (named.state, named.needed) == (WRONG, False)
    assert named.found == "metrics.json: no file"
    assert named.advice == f"rm -r {broken.relative_to(work)}"
    assert found("index 00.sqlite").state == WRONG
    assert found("indexes").found == "1 files, 0.0 MB in indexes"


def test_a_workspace_that_cannot_be_written_to_is_wrong(work, monkeypatch):
    monkeypatch.setattr("tempfile.TemporaryFile", unwritable)
    finding = found("workspace")
    assert (finding.state, finding.fatal) == (WRONG, True)
    assert finding.found == f"{work}: Read-only file system"


def unwritable(**given):
    raise OSError(30, "Read-only file system")


def test_a_workspace_that_is_named_and_not_there_is_wrong(work, monkeypatch):
    monkeypatch.setenv("ABLATE_WORKSPACE", "нигде")
    said = ablate("doctor")
    assert said.code == 1
    assert "wrong    workspace" in said.out
    assert "create it or unset it" in said.out


def test_little_room_is_wrong(work, monkeypatch):
    usage = namedtuple("Usage", "total used free")
    monkeypatch.setattr(shutil, "disk_usage", lambda folder: usage(10**12, 10**12, 10**8))
    assert (found("disk").state, found("disk").found) == (WRONG, "0.1 GB free")


def database(work, schema, runs=2):
    file = work / "experiments/mlflow.db"
    file.parent.mkdir(exist_ok=True)
    file.unlink(missing_ok=True)
    with sqlite3.connect(file) as connection:
        connection.execute("CREATE TABLE alembic_version (version_num)")
        connection.execute("INSERT INTO alembic_version VALUES (?)", (schema,))
        connection.execute("CREATE TABLE runs (run)")
        connection.executemany("INSERT INTO runs VALUES (?)", [(number,) for number in range(runs)])
    connection.close()
    return file


def test_the_store_is_opened_and_its_schema_compared_with_the_installed_mlflow(work):
    assert "not there yet" in found("MLflow store").found
    steps = doctor.migrations()
    (newest,) = set(steps) - set(steps.values())
    assert len(steps) > 20
    database(work, newest)
    assert found("MLflow store").found == f"experiments/mlflow.db: 2 runs, schema {newest}"
    file = database(work, steps[newest])
    finding = found("MLflow store")
    assert (finding.state, finding.advice) == (WRONG, f"mlflow db upgrade sqlite:///{file}")
    database(work, "f00d")
    assert found("MLflow store").advice == "pip install --upgrade mlflow"
    file.write_text("мусор" * 100)
    finding = found("MLflow store")
    assert (finding.state, finding.fatal) == (WRONG, True)
    assert finding.found == "experiments/mlflow.db: file is not a database"


@pytest.mark.slow
def test_the_schema_that_mlflow_makes_is_the_newest_that_doctor_reads_from_its_files(work):
    cli.small(work / "data")
    words = [word for word in cli.QUIET if word != "tracking=off"]
    assert ablate(*words, "tracking=mlflow", "dataset.dir=data").code == 0
    assert found("MLflow store").state == OK
    assert "1 runs" in found("MLflow store").found


def test_a_server_that_is_away_is_wrong_but_not_needed(work, monkeypatch):
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "http://user:geheim@127.0.0.1:9")
    finding = found("MLflow store")
    assert (finding.state, finding.needed) == (WRONG, False)
    assert "geheim" not in finding.found
    assert "python -m ablate sync" in finding.advice
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "mlruns")
    assert found("MLflow store").fatal


def test_a_machine_without_git_runs_all_the_same(work, monkeypatch):
    assert found("git").found == f"{work} is in no checkout"
    subprocess.run(["git", "init", "-q"], check=True)
    monkeypatch.setattr(shutil, "which", lambda name: None)
    assert (found("git").state, found("git").fatal) == (MISSING, False)


def test_where_a_package_is_not_there_the_rest_is_told_all_the_same(work, monkeypatch):
    monkeypatch.setitem(sys.modules, "ablate.shelf", None)
    findings = examine()
    (lost,) = (each for each in findings if each.name == "indexes")
    assert lost.state == WRONG
    assert "without the package ablate.shelf" in lost.found
    assert findings[-1].name == "git"
    assert [*lines(findings)][-1].startswith("not ready: ")


def test_an_older_python_is_wrong(work, monkeypatch):
    monkeypatch.setattr("platform.python_version", lambda: "3.10.4")
    finding = found("Python")
    assert (finding.state, finding.advice) == (WRONG, "install Python >=3.11 and make an environment with it")


def test_no_other_distribution_here_has_such_a_package():
    assert [*doctor.sharing()] == []
    assert importlib.metadata.version(clash.OURS)
