"""The command line as a whole: which word runs what, what help says and costs, and how it ends."""

import os
import re
import subprocess
import sys
from pathlib import Path

import cli
import pytest
from cli import ablate, everything, workshop

from ablate import __main__, __version__
from ablate.__main__ import chosen, commands, help_text
from ablate.conf import comment, conf, options
from ablate.errors import ConfigError

ROOT = Path(__file__).parents[1]
HEAVY = ("torch", "mlflow", "hydra", "omegaconf", "numpy", "sentence_transformers", "faiss", "onnxruntime", "bm25s")


@pytest.fixture
def work(tmp_path, monkeypatch):
    return workshop(tmp_path, monkeypatch)


def python(*words, folder=None, **variables):
    path = os.pathsep.join(str(ROOT / part) for part in ("src", "tests"))
    environment = {**os.environ, "PYTHONPATH": path, **variables}
    return subprocess.run([sys.executable, *words], env=environment, cwd=folder, capture_output=True, timeout=60)


def test_help_needs_no_library(tmp_path):
    code = (
        "import sys, runpy\nsys.argv = ['ablate', '--help']\n"
        "try:\n    runpy.run_module('ablate', run_name='__main__')\n"
        f"except SystemExit as end:\n    print(end.code, [name for name in {HEAVY} if name in sys.modules])\n"
    )
    done = python("-c", code, folder=tmp_path)
    assert done.stdout.decode().splitlines()[-1] == "0 []", done.stderr.decode()
    assert everything(tmp_path) == []


def test_help_lists_every_command_group_option_and_variant_that_is_on_disk():
    text = help_text()
    for path in (ROOT / "src/ablate/commands").glob("*.py"):
        if path.stem not in ("__init__", "run"):
            assert re.search(rf"^  {path.stem} +\w", text, re.M), path.stem
    for path in (conf() / "variant").glob("*.yaml"):
        assert re.search(rf"^  {path.stem} +{re.escape(comment(path))}$", text, re.M), path.stem
    for group, found in options().items():
        assert group == "variant" or re.search(rf"^  {group} +{', '.join(found)}$", text, re.M), group


def test_every_command_says_in_one_line_what_it_does():
    assert {"run", "compare", "score", "sync", "ui"} <= set(commands())
    for name, line in commands().items():
        assert 10 < len(line) < 100, name
        assert not line.endswith("."), name


@pytest.mark.parametrize("words", [["--help"], ["-h"], ["help"], ["run", "--help"], ["k=3", "--help"], ["-m", "-h"]])
def test_help_is_the_programs_own_wherever_it_is_asked_for(work, words):
    before = everything(work)
    said = ablate(*words)
    assert (said.code, said.out, said.err) == (0, help_text() + "\n", "")
    assert everything(work) == before


def test_the_version_is_the_programs_own(work):
    assert ablate("--version") == cli.Said(0, f"ablate {__version__}\n", "")


@pytest.mark.parametrize(
    ("argv", "command", "rest"),
    [
        ([], "run", []),
        (["+variant=bm25"], "run", ["+variant=bm25"]),
        (["++variant=bm25"], "run", ["++variant=bm25"]),
        (["~reranker"], "run", ["~reranker"]),
        (["-m", "k=1,2"], "run", ["-m", "k=1,2"]),
        (["score=scoring"], "run", ["score=scoring"]),
        (["dataset.dir=путь"], "run", ["dataset.dir=путь"]),
        (["run", "k=3"], "run", ["k=3"]),
        (["score", "--json"], "score", ["--json"]),
        (["compare", "a=b"], "compare", ["a=b"]),
    ],
)
def test_the_first_word_decides(argv, command, rest):
    assert chosen(argv) == (command, rest)


@pytest.mark.parametrize(
    ("word", "hint"),
    [
        ("comapre", "did you mean compare?"),
        ("socre", "did you mean score?"),
        ("runn", "did you mean run?"),
        ("сравни", "python -m ablate --help lists them"),
    ],
)
def test_an_unknown_first_word_suggests_a_command(work, word, hint):
    with pytest.raises(ConfigError, match=re.escape(hint)):
        chosen([word])
    before = everything(work)
    said = ablate(word)
    assert (said.code, said.out) == (2, "")
    assert said.err == f"ablate: {word}: found neither a command nor KEY=VALUE, expected one of them; {hint}\n"
    assert everything(work) == before


class Command:
    """A command that ends in a given way."""

    def __init__(self, end):
        self.end = end

    def main(self, argv):
        if isinstance(self.end, BaseException):
            raise self.end
        return self.end


@pytest.mark.parametrize(
    ("end", "code", "message"),
    [
        (0, 0, ""),
        (1, 1, ""),
        (2, 2, ""),
        (ConfigError("место: нашлось одно, ожидалось другое"), 2, "ablate: место: нашлось одно, ожидалось другое\n"),
        (
            KeyboardInterrupt(),
            130,
            "ablate: interrupted; what had finished is kept, the same command goes on from there\n",
        ),
    ],
)
def test_a_command_ends_with_its_code_and_one_sentence(monkeypatch, end, code, message):
    monkeypatch.setattr(__main__.importlib, "import_module", lambda name: Command(end))
    assert ablate("compare") == cli.Said(code, "", message)


def test_a_defect_of_the_program_is_not_hidden(monkeypatch):
    monkeypatch.setattr(__main__.importlib, "import_module", lambda name: Command(ZeroDivisionError()))
    with pytest.raises(ZeroDivisionError):
        ablate("compare")


def test_a_reader_that_stops_reading_is_no_mistake(tmp_path):
    words = [sys.executable, "-m", "ablate", "--help"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen(words, env=environment, cwd=tmp_path, **pipes) as process:
        process.stdout.close()
        err = process.stderr.read()
        process.wait(timeout=30)
    assert err == b""
    assert process.returncode == 0


def test_an_answer_that_nobody_reads_keeps_its_exit_code(tmp_path):
    words = [sys.executable, "-c", "from ablate.page import say; say('нет' * 99_999); raise SystemExit(1)"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src"), "PYTHONUTF8": "1"}
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen(words, env=environment, cwd=tmp_path, **pipes) as process:
        process.stdout.close()
        err = process.stderr.read()
        process.wait(timeout=30)
    assert (process.returncode, err) == (1, b"")


def test_the_process_ends_with_the_code_and_nothing_but_the_sentence(work):
    done = python("-m", "ablate", "+variant=rerankre", folder=work)
    assert (done.returncode, done.stdout) == (2, b"")
    assert done.stderr.count(b"\n") == 1
    assert done.stderr.startswith(b"ablate: +variant=rerankre: ")


def test_a_terminal_that_knows_ascii_alone_gets_the_table_too(work):
    cli.variant(work, "мельче", "chunker: {size: 3, overlap: 1}")
    data = f"dataset.dir={cli.small(work / 'data')}"
    done = python("-m", "ablate", *cli.QUIET, "+variant=мельче", data, folder=work, PYTHONIOENCODING="ascii")
    assert done.returncode == 0, done.stderr.decode()
    assert "мельче".encode("ascii", "backslashreplace") in done.stdout


def test_the_package_runs_from_any_folder_with_its_own_configs(work):
    (work / "far/away").mkdir(parents=True)
    done = python("-m", "ablate", "--cfg", "job", folder=work / "far/away")
    assert done.returncode == 0, done.stderr.decode()
    assert b"ablate.retriever.Dense" in done.stdout
    assert everything(work / "far/away") == []
