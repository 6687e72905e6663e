"""Runs from before a setting existed: every command reads them and says what it takes; who they are does not change."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from cli import ablate, facts, quiet, runs, small, variant, workshop

from ablate import config, earlier, identity, records, study
from ablate.conf import options
from ablate.errors import ConfigError
from ablate.identity import moving

KEYS = {
    "verdict": None,
    "verdict.margin": "0.05",
    "dataset.subset": "null",
    "score.false_answer_cost": "1.0",
    "access.statistics": '"global"',
    "retriever.k1": "1.5",
    "budget": "640",
    "cache": None,
}
"""What has come to settings since some runs, or could have, and how its shipped value is told."""

AGES = {**{key: (key,) for key in KEYS}, "all": tuple(KEYS)}


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A folder with a baseline and a variant that were recorded once, to be copied."""
    with pytest.MonkeyPatch.context() as patch:
        folder = workshop(tmp_path_factory.mktemp("давно"), patch)
        variant(folder, "turned", "defaults:\n  - override /reranker: reverse")
        small(folder / "data")
        said = quiet("dataset.dir=data", "retriever=bm25", "+variant=turned")
        assert said.code == 0, said.err
    return folder


@pytest.fixture
def work(made, tmp_path, monkeypatch):
    folder = tmp_path / "тут"
    shutil.copytree(made, folder)
    workshop(folder, monkeypatch)
    monkeypatch.setenv("ABLATE_MODULES", "cli, fakes")
    study.LINES.clear()
    yield folder
    study.LINES.clear()


def read(path):
    return yaml.safe_load(path.read_text(encoding="utf-8")) if path.suffix == ".yaml" else json.loads(path.read_text())


def write(path, node):
    text = yaml.safe_dump(node, allow_unicode=True, sort_keys=False) if path.suffix == ".yaml" else json.dumps(node)
    path.write_text(text, encoding="utf-8")


def without(node, key):
    group, _, name = key.partition(".")
    if name:
        node.get(group, {}).pop(name, None)
    else:
        node.pop(group, None)


def aged(*keys):
    """Make the recorded runs those of a program that had no such settings: config, digests, fingerprints, names."""
    named, base = {None: None}, {}
    for side, run in runs().items():  # the baseline comes first
        node, kept, known = read(run / "config.yaml"), read(run / "inputs.json"), facts(run)
        for key in keys:
            without(node, key)
            kept["config"] = {
                each: value for each, value in kept["config"].items() if not f"{each}.".startswith(f"{key}.")
            }
        prints = known["fingerprints"]
        if "verdict" not in node:
            del prints["verdict"]
        base = base or node
        for name, part in {"scoring": node["score"], "config": moving(node), "baseline": moving(base)}.items():
            prints[name] = identity.digest(part)
        shared = [
            prints[each] for each in ("corpus", "ground_truth", "scoring", "verdict", "baseline") if each in prints
        ]
        known["study"] = f"{known['dataset']}-{identity.digest(shared)[:8]}"
        named[known["run"]] = known["run"] = identity.run_name(side, known["study"], prints)
        known["baseline"] = named[known["baseline"]]
        write(run / "config.yaml", node)
        write(run / "inputs.json", kept)
        write(run / "run.json", known)
        run.rename(run.parent / known["run"])
    run.parent.rename(run.parent.parent / known["study"])
    return runs()


def said(caplog, *argv):
    """What a command said and, with it, what it took of settings that there were not."""
    earlier.told.cache_clear()
    caplog.clear()
    found = ablate(*argv)
    lines = [*found.err.splitlines(), *(record.getMessage() for record in caplog.records)]
    taken = [line.removeprefix("ablate: ") for line in lines if "recorded before" in line]
    assert "Traceback" not in found.err
    assert len(taken) == len(set(taken)), "each once a command"
    return found, taken


def lines(*keys):
    return {
        f"recorded before `{key}` existed; taken as {KEYS[key]}, the shipped value" for key in keys if KEYS.get(key)
    }


@pytest.mark.parametrize("age", AGES)
def test_every_command_reads_a_run_from_before_a_setting_existed(work, age, caplog):
    keys = AGES[age]
    found = aged(*keys)
    old, base, before = found["turned"], found["baseline"], {run: facts(run) for run in found.values()}
    whole = {key for key in keys if "." not in key}
    inner = [key for key in keys if key.partition(".")[0] not in whole]

    answer, taken = said(caplog, "reproduce", old.name)
    assert (answer.code, ": reproduced (" in answer.out) == (0, True), answer
    assert lines(*inner, *whole) <= set(taken)
    assert len(taken) == len({*inner, *whole})

    answer, taken = said(caplog, "reproduce", "--study", facts(base)["study"])
    assert (answer.code, answer.out.count(": reproduced (")) == (0, 2), answer
    assert len(taken) == len({*inner, *whole})

    answer, _ = said(caplog, "lineage", old.name)
    assert answer.code == 0, answer.err
    answer, _ = said(caplog, "lineage", base.name, old.name)
    assert (answer.code, "reranker" in answer.out) == (0, True), answer

    answer, taken = said(caplog, "compare", base.name, old.name, "--json")
    assert answer.code == 0, answer.err
    assert set(taken) == lines(*{"verdict.margin", "dataset.subset"}.intersection(inner))
    (row,) = [row for row in json.loads(answer.out)["runs"] if row["variant"] == "turned"]
    assert (row["verdict"] is None) == ("verdict" in keys), "where nothing was declared there is no word"
    assert row["verdict"] is None or row["verdict"]["margin"] == 0.05

    answer, taken = said(caplog, "gate", old.name, "--json")
    outcomes = {each["rule"]: each["state"] for each in json.loads(answer.out)["outcomes"]}
    assert outcomes["reproducible"] == "passed", answer.out
    assert lines(*inner) <= set(taken)

    answer, taken = said(caplog, "rescore", "--dataset", "data", base.name, old.name)
    assert answer.code == 0, answer.err
    assert "is scored on this ground truth already" in answer.out
    assert set(taken) == lines(*{"verdict.margin", "dataset.subset"}.intersection(inner))
    assert {run: facts(run) for run in runs().values()} == before, "who a run is does not change"


@pytest.mark.parametrize("age", AGES)
def test_it_is_scored_again_with_what_is_shipped_and_keeps_its_fingerprints(work, age, caplog):
    whole = runs()
    first = {name: read(run / "metrics.json")["measures"] for name, run in whole.items()}
    found = aged(*AGES[age])
    shutil.copytree("data", "вторая")
    Path("вторая/GUIDE.md").write_text("Как размечать", encoding="utf-8")
    names = [run.name for run in found.values()]
    answer, taken = said(caplog, "rescore", "--dataset", "вторая", *names)
    assert answer.code == 0, answer.err
    used = {"verdict.margin", "dataset.subset", "score.false_answer_cost", "budget"}.intersection(AGES[age])
    assert lines(*(used - ({"verdict.margin"} if "verdict" in AGES[age] else set()))) == set(taken)
    for name, run in runs().items():
        assert facts(run)["rescored_from"] == found[name].name
        prints, was = facts(run)["fingerprints"], facts(found[name])["fingerprints"]
        assert {key for key in prints if prints[key] != was[key]} == {"ground_truth"}
        now = read(run / "metrics.json")["measures"]
        assert now == {measure: row for measure, row in first[name].items() if measure in now}


@pytest.mark.parametrize("kept", [True, False])
@pytest.mark.parametrize("age", AGES)
def test_a_config_that_lost_a_setting_is_judged_by_the_value_that_ran(work, age, kept, caplog):
    run = runs()["turned"]
    node = read(run / "config.yaml")
    for key in AGES[age]:
        without(node, key)
    write(run / "config.yaml", node)
    if not kept:
        (run / "inputs.json").unlink()
    answer, taken = said(caplog, "reproduce", run.name)
    assert (answer.code, bool(taken)) == (0, True), answer


@pytest.mark.parametrize("age", AGES)
def test_a_run_from_before_inputs_were_kept_too_is_judged_by_its_fingerprints(work, age, caplog):
    run = aged(*AGES[age])["turned"]
    (run / "inputs.json").unlink()
    answer, taken = said(caplog, "reproduce", run.name)
    assert (answer.code, ": reproduced (" in answer.out, bool(taken)) == (0, True, True), answer


@pytest.mark.parametrize("kept", [True, False])
def test_a_shipped_value_that_is_not_the_one_that_ran_is_the_difference(work, kept, caplog):
    said_so = quiet("dataset.dir=data", "retriever=bm25", "score.false_answer_cost=3", "retriever.k1=0.9")
    assert said_so.code == 0, said_so.err
    run = runs()["baseline"]
    whole = (run / "config.yaml").read_text(encoding="utf-8")
    for key, name in (("score.false_answer_cost", "scoring setting"), ("retriever.k1", "setting")):
        node = yaml.safe_load(whole)
        without(node, key)
        write(run / "config.yaml", node)
        if not kept:
            (run / "inputs.json").unlink(missing_ok=True)
        answer, taken = said(caplog, "reproduce", run.name, "--json")
        assert (answer.code, taken) == (1, [*lines(key)])
        (each,) = json.loads(answer.out)["differences"]
        assert (each["what"], each["name"]) == (name, key if kept else "config.yaml")


def test_a_new_setting_of_a_component_that_was_not_what_it_did_is_found_by_its_numbers(work, caplog, monkeypatch):
    aged("retriever.k1")
    monkeypatch.setattr(earlier, "shipped", lambda group, target: {"k1": 0.2} if group == "retriever" else {})
    answer, _ = said(caplog, "reproduce", runs()["baseline"].name)
    assert (answer.code, "not reproduced: no recorded input differs" in answer.out) == (1, True), answer


def test_an_old_and_a_new_run_stand_side_by_side_only_where_they_are_scored_alike(work, caplog):
    old = aged("verdict", "score.false_answer_cost")["turned"]
    answer = quiet("dataset.dir=data", "retriever=bm25", "+variant=turned")
    assert answer.code == 0, answer.err
    new = runs()["turned"]
    assert facts(new)["study"] != facts(old)["study"]
    answer, _ = said(caplog, "compare", old.name, new.name)
    assert (answer.code, answer.out) == (2, "")
    assert "scoring: found " in answer.err
    assert f"python -m ablate rescore --dataset data --score-as {new.name} " in answer.err
    answer, _ = said(caplog, "rescore", "--dataset", "data", "--score-as", new.name, old.name)
    assert answer.code == 0, answer.err
    again = runs()["turned"]
    assert facts(again)["rescored_from"] == old.name
    answer, _ = said(caplog, "compare", again.name, new.name, "--json")
    assert answer.code == 0, answer.err


def test_beside_a_run_of_a_declared_study_one_from_before_has_no_word(work, caplog):
    old = aged("verdict")["turned"]
    answer = quiet("dataset.dir=data", "retriever=bm25", "+variant=turned")
    assert answer.code == 0, answer.err
    new = runs()["turned"]
    words = {old.name: None, new.name: "identical"}
    for wanted in ([old.name, new.name], ["--study", facts(new)["study"]], ["--study", facts(old)["study"]]):
        answer, taken = said(caplog, "compare", *wanted, "--json")
        assert (answer.code, taken) == (0, []), answer.err
        seen = {row["run"]: row["verdict"] and row["verdict"]["word"] for row in json.loads(answer.out)["runs"]}
        assert seen.get(old.name) is None
        if "--study" in wanted:
            assert all(seen[name] == words[name] for name in seen.keys() & words)


def test_it_is_said_in_a_process_of_its_own_too(work):
    old = aged("dataset.subset")
    argv = [sys.executable, "-m", "ablate", "compare", *(run.name for run in old.values())]
    path = os.pathsep.join([str(Path(earlier.__file__).parents[1]), str(Path(__file__).parent)])
    done = subprocess.run(argv, capture_output=True, text=True, env={**os.environ, "PYTHONPATH": path}, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("recorded before `dataset.subset` existed; taken as null, the shipped value\n") == 1


@pytest.mark.parametrize("key", ["dataset", "chunker", "reranker", "k", "depth", "tokens", "dataset.dir"])
def test_what_every_run_has_had_is_not_made_up(work, key, caplog):
    run = runs()["baseline"]
    node = read(run / "config.yaml")
    without(node, key)
    write(run / "config.yaml", node)
    answer, taken = said(caplog, "reproduce", run.name)
    assert (answer.code, answer.out, taken) == (2, "", [])
    assert key.partition(".")[2] in answer.err


def test_a_component_of_the_user_has_no_shipped_settings(work, caplog):
    run = runs()["baseline"]
    node = read(run / "config.yaml")
    without(node, "embedder.dimension")
    node["embedder"]["_target_"] = "cli.Reverse"
    write(run / "config.yaml", node)
    answer, taken = said(caplog, "reproduce", run.name)
    assert (answer.code, taken) == (2, [])


def test_parts_of_a_component_are_filled_too_and_nothing_shipped_is_changed_by_it():
    earlier.told.cache_clear()
    parts = {"bm25": {"_target_": "ablate.retriever.Bm25", "k1": 0.5}, "dense": {"_target_": "ablate.retriever.Dense"}}
    node = {"retriever": {"_target_": "ablate.retriever.Hybrid", "parts": parts}}
    found = earlier.filled(node, "retriever")["retriever"]
    assert found["rrf_k"] == 60
    assert found["parts"]["bm25"] == {"_target_": "ablate.retriever.Bm25", "k1": 0.5, "b": 0.75, "languages": []}
    assert "b" not in parts["bm25"]
    found["parts"]["bm25"]["languages"].append("english")
    assert earlier.filled(node, "retriever")["retriever"]["parts"]["bm25"]["languages"] == []


@pytest.mark.parametrize("group", sorted(set(options()) - {"variant"}))
def test_a_whole_config_is_taken_as_it_is(group, caplog):
    for node in earlier.nodes(group).values():
        whole = {key: value for key, value in node.items() if key != "defaults"}
        earlier.told.cache_clear()
        assert earlier.filled({group: whole}, group) == {group: whole}
    assert caplog.records == []


def test_where_options_of_a_class_do_not_agree_nothing_is_taken():
    found = earlier.shipped("dataset", "ablate.dataset.Folder")
    assert "subset" in found
    assert "dir" not in found


def test_a_value_that_is_nowhere_is_a_sentence():
    with pytest.raises(ConfigError, match=r"^k: found nothing in the recorded config"):
        config.recorded({}, "k")


def test_the_record_in_memory_stays_as_it_is(work):
    run = aged("score.false_answer_cost")["baseline"]
    record = records.read(run)
    earlier.filled(record.config)
    assert "false_answer_cost" not in record.config["score"]
