"""The run command, as it is typed: what it accepts, what it refuses before it touches the disk, and what it leaves."""

import logging
import os
import re
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path

import cli
import pytest
import yaml
from cli import ablate, everything, facts, quiet, runs, small, variant, workshop
from hydra.core.global_hydra import GlobalHydra
from hydra.core.override_parser.overrides_parser import OverridesParser
from hypothesis import given
from hypothesis import strategies as st

from ablate.commands import run
from ablate.commands.run import as_typed, quoted
from ablate.conf import options
from ablate.records import find
from ablate.workspace import Workspace


@pytest.fixture
def work(tmp_path, monkeypatch):
    return workshop(tmp_path, monkeypatch)


@pytest.fixture
def data(work):
    return f"dataset.dir={small(work / 'data')}"


def config(run):
    return yaml.safe_load((run / "config.yaml").read_text(encoding="utf-8"))


def refused(work, *argv):
    """The sentence with which a command is refused, having written nothing, anywhere, and nothing on stdout."""
    before = everything(work)
    said = ablate(*argv)
    assert (said.code, said.out) == (2, ""), said
    assert said.err.count("\n") == 1, said.err
    assert said.err.startswith("ablate: ")
    assert "Traceback" not in said.err
    assert everything(work) == before
    return said.err


REFUSED = {
    "+variant=rerankre": "Could not find 'variant/rerankre'.*did you mean variant/reranker",
    "+variant=": "Could not find 'variant/'",
    "++variant=reranker": "force-add of config groups is not supported",
    "~variant": "Could not delete 'variant'",
    "+variant=null": "must be a string or a list. Got NoneType",
    "-m +variant=bm25,null": "must be a string or a list. Got NoneType",
    "+variant=bm25 +variant=hybrid": "Multiple values for variant",
    "+variant=[bm25,hybrid]": "expected the name of one variant.*-m '.variant=a,b'",
    "+variant=bm25,hybrid": "To sweep over it, add --multirun",
    "+variant@chunker=bm25": "In 'variant/bm25': Could not override",
    "+variant=reranker reranker=keep": "variant reranker: found no difference from its baseline",
    "retriever=hybrid +variant=bm25": "variant bm25: found no difference from its baseline",
    "+variant=chunking_small +chunker.stride=3": "chunker.stride: found an unknown setting, expected one of size, over",
    "-m +variant=glob(zz*)": "found no match, expected at least one job; the variants are access_postfilter, ",
    "-m retriever=glob(zz*)": "found no match",
    "retriever=hybird": "Could not find 'retriever/hybird'.*did you mean retriever/hybrid",
    "retreiver=hybrid": "Could not override 'retreiver'.*did you mean retriever",
    "chunker.siez=60": "Could not override 'chunker.siez'.*did you mean chunker.size",
    "+retriever.kk=7": "retriever.kk: found an unknown setting, expected no settings here",
    "retriever=bm25 +retriever.k2=7": "retriever.k2: found an unknown setting.*did you mean k1",
    "retriever=hybrid +retriever.parts.bm25.k2=7": "retriever.parts.bm25.k2: found an unknown.*did you mean k1",
    "+новое=1": "LexerNoViableAltException: .новое=1$",
    "+neu=1": "neu: found an unknown setting",
    "reranker=null": "must be a string or a list. Got NoneType",
    "~reranker": "reranker: found nothing, expected a value",
    "k=five": "k: found 'five', expected int",
    "k=51": "k: found 51 with depth 50, expected 1 <= k <= depth",
    "chunker.overlap=128": "chunker.overlap: found 128 with size 128",
    "retriever._target_=no.Such": "retriever._target_: found 'no.Such'",
    "dataset.dir=нет/такой": "нет/такой: found no such folder",
    "dataset.dir=": "found no such folder",
    "dataset.split=dev filter": "Error parsing override 'filter'",
    "k=[": r"k: found '\[', expected int",
    "reranker=keep +chunker=whole": "Could not append to config|Multiple values",
    "hydra/launcher=joblib": "Could not find 'hydra/launcher/joblib'",
    "hydra.mode=MULTIRUN +variant=bm25,hybrid": "To sweep over it",
    "--frobnicate": "unrecognized arguments: --frobnicate",
    "--config-name=nowhere": "Cannot find primary config 'nowhere'",
    "--cfg=job --multirun": "Only one of",
    "--config-path=elsewhere": "would run what was not proved",
    "--experimental-rerun=job.pickle": "would run what was not proved",
}


@pytest.mark.parametrize("command", REFUSED)
def test_a_wrong_question_is_one_sentence_on_stderr_and_nothing_on_disk(work, command):
    said = refused(work, *cli.QUIET, *command.split())
    assert re.search(REFUSED[command], said.strip()), said


@pytest.mark.parametrize("flags", [[], ["-m"], ["--multirun"]])
def test_a_variant_without_its_plus_is_answered_with_the_exact_command(work, flags):
    typed = [*flags, "variant=reranker", "--config-dir", "conf", "dataset.dir=мои данные", "k=3"]
    said = refused(work, *typed)
    command = said.partition("type: ")[2].strip()
    assert shlex.split(command) == ["python", "-m", "ablate", *flags, "+variant=reranker", *typed[len(flags) + 1 :]]


def test_a_config_folder_that_is_not_there_is_a_sentence(work):
    assert "--config-dir: no folder 'нигде'" in refused(work, "--config-dir", "нигде", "+variant=bm25")


BROKEN = {
    "reranker:\n  frist: 3": "variant mine: reranker.frist: found an unknown setting",
    "defaults:\n  - override /dataset: nowhere": r"\+variant=mine: In .*Could not find 'dataset/nowhere'",
    "defaults:\n  - override reranker: keep": r"\+variant=mine: In 'variant/mine': Could not override",
    "chunker: {size: 60": r"\+variant=mine: .*variant/mine.yaml",
    "chunker: 60": "variant mine: chunker: found 60, expected a component",
    "chunker:\n  size: five\n  overlap: 4": "variant mine: chunker.size: found 'five', expected int",
    "chunker:\n  size: ${nowhere}": "nowhere",
    "depth: 9": "variant mine: found changes in shared settings",
    "": "variant mine: found no difference",
}


@pytest.mark.parametrize("text", BROKEN)
def test_a_variant_file_that_is_wrong_is_named_before_any_job_of_the_sweep_runs(work, text):
    variant(work, "mine", text)
    said = refused(work, *cli.QUIET, "-m", "+variant=bm25,mine")
    assert re.search(BROKEN[text], said), said


def test_a_variant_of_two_changes_is_refused_with_every_key_and_both_values(work):
    variant(work, "two", "defaults:\n  - override /filter: declared\nchunker:\n  size: 9\n  overlap: 1")
    said = refused(work, *cli.QUIET, "+variant=two")
    for change in ("chunker.size: 128 -> 9", "chunker.overlap: 24 -> 1", "'ablate.filter.Open' -> 'ablate.filter.Decl"):
        assert change in said


def test_a_variant_runs_beside_its_baseline(work, data):
    said = quiet("+variant=bm25", data)
    assert said.code == 0
    assert said.err == "ablate: baseline: running\nablate: bm25: running\n"
    assert {name: facts(run)["component"] for name, run in runs().items()} == {"baseline": None, "bm25": "retriever"}
    assert facts(runs()["bm25"])["baseline"] == runs()["baseline"].name
    assert said.out.count("\nbaseline ") == 2  # its scores, and where it lost evidence
    assert said.out.count("\nbm25 ") >= 1


def test_tuning_belongs_to_the_variant_and_everything_else_to_both(work, data):
    said = quiet("retriever=hybrid", "+variant=chunking_small", "chunker.size=40", "k=2", data)
    assert said.code == 0
    base, tuned = (config(runs()[name]) for name in ("baseline", "chunking_small"))
    assert base["retriever"] == tuned["retriever"]
    assert base["retriever"]["_target_"] == "ablate.retriever.Hybrid"
    assert (base["chunker"]["size"], tuned["chunker"]["size"]) == (128, 40)
    written = {name: yaml.safe_load((run / "overrides.yaml").read_text()) for name, run in runs().items()}
    assert "+variant=chunking_small" in written["chunking_small"]
    assert {"+variant=chunking_small", "chunker.size=40"}.isdisjoint(written["baseline"])
    assert "chunking_small size=40" in said.out


@pytest.mark.parametrize("words", ["{flags} k=2 {variant}", "k=2 {variant} {flags}", "k=2 {flags} {variant}"])
def test_flags_may_stand_anywhere(work, data, words):
    typed = words.format(flags="-m --config-dir conf", variant="+variant=bm25")
    assert ablate(*typed.split(), "embedder=hash", "tracking=off", "latency=off", data).code == 0
    assert set(runs()) == {"baseline", "bm25"}


def test_a_sweep_runs_its_baseline_once_and_prints_one_table(work, data):
    variant(work, "reranker", "defaults:\n  - override /reranker: reverse")  # in place of the one that needs a model
    said = quiet("-m", "+variant=glob(*,exclude=[embedder_*,late_*])", data)  # those need models
    chosen = [name for name in options()["variant"] if not name.startswith(("embedder_", "late_"))]
    assert said.code == 0
    assert set(runs()) == {"baseline", *chosen}
    assert len(list(work.glob("experiments/runs/*/*/run.json"))) == 1 + len(chosen)
    assert said.err.count("baseline: running") == 1
    assert said.out.count("sufficient  found") == 1
    assert len({facts(run)["sweep"] for run in runs().values()}) == 1
    assert [path.name for path in Path("experiments").iterdir()] == ["runs"]


def test_a_glob_chooses_among_the_variants_shipped_and_own(work, data):
    variant(work, "better", "chunker:\n  size: 30\n  overlap: 3")
    assert quiet("-m", "+variant=glob([be*,bm*])", data).code == 0
    assert set(runs()) == {"baseline", "better", "bm25"}


def test_a_sweep_over_a_setting_makes_a_study_of_each_value(work, data):
    said = quiet("-m", "k=1,2", data)
    assert said.code == 0
    assert said.out.count("queries of data") == 2
    assert len(list(work.glob("experiments/runs/*"))) == 2


@pytest.mark.parametrize("name", ["отчёты и база", "it's", 'a "b"', "a,b", "[x]", "k=v", "2024", "off", " x", "x\\"])
def test_the_path_of_a_data_set_works_as_typed(work, name):
    (work / name).mkdir()
    said = quiet("--cfg", "job", f"dataset.dir={name}")
    assert said.code == 0, said
    assert str(yaml.safe_load(said.out)["dataset"]["dir"]) == name


def test_a_path_under_the_home_folder_works_as_typed_in_a_sweep_too(work, monkeypatch):
    monkeypatch.setenv("HOME", str(work))
    small(work / "мои 'данные'")
    assert quiet("-m", "dataset.dir=~/мои 'данные'", "+variant=bm25").code == 0
    assert set(runs()) == {"baseline", "bm25"}


@given(st.text(alphabet=st.characters(exclude_categories=["Cs", "Cc"]), min_size=1))
def test_quoting_for_hydra_changes_no_text(value):
    read = OverridesParser.create().parse_override(f"dataset.dir={quoted(value)}")
    assert read.value() == value


@given(st.text(alphabet=st.sampled_from("\\'\" ~,[]{}()=:$@?|й;#&%/.0a"), min_size=1))
def test_what_hydra_cannot_read_is_taken_as_typed(value):
    read = OverridesParser.create().parse_override(as_typed(f"dataset.dir={value}")).value()
    try:
        plain = OverridesParser.create().parse_override(f"dataset.dir={value}").value()
    except Exception:
        plain = value
    assert read == plain


@pytest.mark.parametrize("word", ["+variant=glob(*)", "k=5", "a.b=[1,2]", "-m", "--cfg", "+x={a: 1}", "~retriever"])
def test_what_hydra_can_read_is_left_to_it(work, word):
    assert as_typed(word) == word


def test_a_folder_that_is_called_like_a_value_is_the_folder(work):
    (work / "a,b").mkdir()
    (work / "5").mkdir()
    assert as_typed("dataset.dir=a,b") == "dataset.dir='a,b'"
    assert as_typed("k=5") == "k=5", "a number is a number"


def test_the_composed_config_can_be_looked_at_without_a_trace(work):
    before = everything(work)
    said = quiet("--cfg", "job", "+variant=chunking_small")
    assert (said.code, said.err) == (0, "")
    assert yaml.safe_load(said.out)["chunker"]["size"] == 60
    assert everything(work) == before


def test_a_users_own_config_with_its_own_option_and_variant_works_from_its_folder(work, data):
    cli.put(work / "conf", {"mine.yaml": "defaults:\n  - config\n  - override retriever: hybrid\n  - _self_\nk: 2\n"})
    variant(work, "наоборот", "defaults:\n  - override /reranker: reverse")
    said = quiet("--config-name", "mine", "+variant=наоборот", "reranker.first=3", data)
    assert said.code == 0, said
    assert config(runs()["наоборот"])["reranker"] == {
        "_target_": "cli.Reverse",
        "first": 3,
    }
    assert config(runs()["baseline"])["k"] == 2


def test_configs_may_come_from_several_folders(work, data):
    cli.put(work / "more/chunker", {"tiny.yaml": "_target_: ablate.chunker.Fixed\nsize: 3\noverlap: 1\n"})
    said = quiet(f"hydra.searchpath=[file://{work}/more]", "chunker=tiny", "+variant=bm25", data)
    assert said.code == 0, said
    assert config(runs()["bm25"])["chunker"]["size"] == 3


def test_a_variant_in_a_folder_of_its_own_is_found_again(work, data):
    variant(work, "mine/small", "chunker:\n  size: 30\n  overlap: 3")
    assert quiet("+variant=mine/small", data).code == 0
    said = quiet("+variant=mine/small", data)
    assert "mine/small: already recorded as mine-small-" in said.err


def test_the_workspace_is_the_nearest_folder_with_experiments_and_may_be_named(work, data, monkeypatch):
    (work / "experiments").mkdir()
    (work / "deep/er").mkdir(parents=True)
    monkeypatch.chdir(work / "deep/er")
    assert ablate("--config-dir", str(work / "conf"), *cli.QUIET[2:], data).code == 0
    assert list(work.glob("experiments/runs/*/baseline-*"))
    assert everything(work / "deep") == ["er"]
    (work / "other").mkdir()
    monkeypatch.setenv("ABLATE_WORKSPACE", str(work / "other"))
    assert ablate("--config-dir", str(work / "conf"), *cli.QUIET[2:], data).code == 0
    assert list(work.glob("other/experiments/runs/*/baseline-*"))


def test_the_workspace_may_have_any_name(tmp_path, monkeypatch):
    work = tmp_path / "it's моё, [всё]"
    work.mkdir()
    workshop(work, monkeypatch)
    assert quiet("-m", "k=1", f"dataset.dir={small(work / 'data')}").code == 0
    assert set(runs()) == {"baseline"}


@pytest.mark.slow
def test_the_tables_of_a_sweep_stand_in_the_order_of_its_jobs(work, data):
    said = quiet("-m", "k=range(1,13)", data)
    assert re.findall(r"found in (\d+): retrieval", said.out) == [str(k) for each in range(1, 13) for k in (50, each)]


def test_a_relative_data_set_is_found_from_where_the_command_was_typed(work, monkeypatch):
    (work / "experiments").mkdir()
    small(work / "sub/data")
    monkeypatch.chdir(work / "sub")
    conf = str(work / "conf")
    words = ["-m", "--config-dir", conf, *cli.QUIET[2:], "dataset.dir=data", "+variant=bm25", "hydra.job.chdir=false"]
    assert ablate(*words).code == 0


@pytest.mark.slow
@pytest.mark.parametrize(
    "word", ["+hydra.job.env_set.ONE=one", "+hydra.callbacks.none._target_=hydra.experimental.callback.Callback"]
)
def test_jobs_that_hydra_launches_make_the_runs_that_are_made_without_it(work, data, monkeypatch, word):
    launches = []
    monkeypatch.setattr(run, "launch", lambda argv, before=run.launch: (launches.append(argv), before(argv)))
    words = ["-m", data, "+variant=bm25,hybrid"]
    direct = quiet(*words)
    assert not launches
    launched = quiet(*words, "rerun=true", word)
    assert len(launches) == 1
    assert direct.code == launched.code == 0
    first, again = (
        [record for record in find(Workspace(work)) if record.facts["sweep"] == sweep] for sweep in sweeps(work)
    )
    assert [record.hashes for record in first] == [record.hashes for record in again]
    assert [record.variant for record in again] == ["baseline", "bm25", "hybrid"]


def sweeps(work):
    """The commands that left records, oldest first."""
    return list(dict.fromkeys(record.facts["sweep"] for record in find(Workspace(work))))


def test_a_command_leaves_the_process_as_it_found_it(work, data, monkeypatch):
    monkeypatch.setenv("HYDRA_FULL_ERROR", "0")
    before = list(sys.argv), dict(os.environ), os.getcwd(), signal.getsignal(signal.SIGTERM)
    logger = logging.getLogger("ablate")
    handlers = list(logger.handlers), logger.propagate, logger.level
    for words in ([data], ["+variant=nowhere"], ["--cfg", "job"], [data, "reranker=broken"]):
        quiet(*words)
        assert (list(sys.argv), dict(os.environ), os.getcwd(), signal.getsignal(signal.SIGTERM)) == before
        assert (list(logger.handlers), logger.propagate, logger.level) == handlers
        assert not GlobalHydra.instance().is_initialized()
    assert not list(work.glob("experiments/.hydra-*"))


WAITS = """
import pathlib, time
from dataclasses import dataclass

@dataclass
class Waits:
    def __call__(self, query, hits):
        pathlib.Path("begun").touch()
        time.sleep(60)
"""


def test_what_a_command_had_begun_is_removed_when_it_is_terminated(work, data):
    cli.put(work, {"waits.py": WAITS, "conf/reranker/waits.yaml": "_target_: waits.Waits\n"})
    path = os.pathsep.join(str(Path(__file__).parents[1] / part) for part in ("src", "tests"))
    words = [sys.executable, "-m", "ablate", *cli.QUIET, "reranker=waits", data]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen(words, env={**os.environ, "PYTHONPATH": path}, **pipes) as process:
        while not (work / "begun").exists() and process.poll() is None:
            time.sleep(0.05)
        process.send_signal(signal.SIGTERM)
        out, err = process.communicate(timeout=30)
    assert (process.returncode, out) == (130, b""), err
    assert b"interrupted" in err
    assert b"Traceback" not in err
    assert not list(work.glob("experiments/.hydra-*"))
    assert not list(work.glob("experiments/runs/*/*/run.json"))


def test_a_number_written_as_text_is_no_change(work):
    variant(work, "text", 'chunker:\n  size: "128"')
    said = quiet("+variant=text")
    assert said.code == 2
    assert "found no difference from its baseline" in said.err
