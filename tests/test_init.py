"""A newcomer's folder is a working dataset, and nothing that a person wrote is touched."""

import json
from importlib.resources import files

import pytest
import yaml
from cli import ablate, everything, put

from ablate.dataset import Folder, starter, write
from ablate.dataset.contract import contract
from ablate.dataset.queries import WHY
from ablate.errors import DatasetError

ALL = ["GUIDE.md", "contract.yaml", "corpus.jsonl", "ground_truth.jsonl", "queries.jsonl"]
LANGUAGES = pytest.mark.parametrize("language", ["en", "ru"])


def begin(folder, *flags):
    return ablate("dataset", "init", str(folder), *flags)


def read(folder):
    return Folder(str(folder), "test", "none", 1, "nobody", True, None).read()


@LANGUAGES
def test_a_new_folder_is_a_dataset_that_is_read_without_a_warning(tmp_path, language):
    folder = tmp_path / "новая" / "папка"
    said = begin(folder, "--lang", language)
    assert (said.code, said.err) == (0, "")
    assert everything(folder) == ALL
    assert said.out.count(": written\n") == len(ALL)
    found = read(folder)
    assert found.warnings == ()
    assert {query.why for query in found.queries if not query.answerable} == {"access", "absent"}
    assert any(len(truth.alternatives) > 1 for truth in found.truths.values())
    assert any(len(fact) > 1 for truth in found.truths.values() for group in truth.alternatives for fact in group)
    assert {grade.grade for truth in found.truths.values() for grade in truth.judged} == {0, 1, 2, 3}


@LANGUAGES
def test_the_example_can_be_frozen_as_reviewed(tmp_path, language):
    begin(tmp_path, "--lang", language)
    assert ablate("dataset", "freeze", str(tmp_path), "--require-review").code == 0


@LANGUAGES
def test_the_contract_has_every_key_there_is_and_names_what_the_example_uses(tmp_path, language):
    begin(tmp_path, "--lang", language)
    agreed = yaml.safe_load((tmp_path / "contract.yaml").read_text(encoding="utf-8"))
    every = ("use_case", "intents", "authority", "grades", "critical", "service_levels", "prices", "owners")
    assert tuple(agreed) == every
    assert contract((tmp_path / "contract.yaml").read_bytes()) == agreed
    with pytest.raises(Exception, match=f"expected one of {', '.join(every)};"):
        contract(b"unknown: 1")
    found = read(tmp_path)
    assert {query.intent for query in found.queries} == set(agreed["intents"])
    assert {document.metadata["authority"] for document in found.documents} == set(agreed["authority"]["order"])


@LANGUAGES
def test_the_guide_explains_every_word_that_the_files_use(language):
    guide = (files("ablate") / "data" / "templates" / language / "GUIDE.md").read_text(encoding="utf-8")
    words = ["alternatives", "quote", "start", "end", "spans", "fact", "relevant", "complete", "as_of", "principals"]
    for word in [*words, *WHY, "who", "when", "added", "confirmed", "rejected", "judged", "incident"]:
        assert word in guide


@LANGUAGES
def test_what_the_guide_shows_of_the_example_is_in_it(language):
    folder = files("ablate") / "data" / "templates" / language
    guide, truth = ((folder / name).read_text(encoding="utf-8") for name in ("GUIDE.md", "ground_truth.jsonl"))
    shown = [part.partition(" ...")[0] for part in guide.split('"quote": "')[1:]]
    assert len(shown) == 3
    assert all(f'"quote": "{words}' in truth for words in shown)
    question = json.loads((folder / "queries.jsonl").read_text(encoding="utf-8").splitlines()[0])["text"]
    assert f"*{question}*" in guide


def test_the_languages_have_the_same_example():
    def ids(language, name, key):
        text = (files("ablate") / "data" / "templates" / language / name).read_text(encoding="utf-8")
        return [json.loads(line)[key] for line in text.splitlines()]

    for name, key in (("corpus.jsonl", "_id"), ("queries.jsonl", "_id"), ("ground_truth.jsonl", "query_id")):
        assert ids("en", name, key) == ids("ru", name, key)


def test_a_file_that_exists_is_kept_and_said(tmp_path):
    put(tmp_path, {"GUIDE.md": "моё"})
    said = begin(tmp_path)
    assert f"{tmp_path / 'GUIDE.md'}: kept as it is\n" in said.out
    assert (tmp_path / "GUIDE.md").read_text(encoding="utf-8") == "моё"
    assert everything(tmp_path) == ALL
    before = {name: (tmp_path / name).read_bytes() for name in ALL}
    assert begin(tmp_path, "--lang", "ru").out.count("kept as it is") == len(ALL)
    assert {name: (tmp_path / name).read_bytes() for name in ALL} == before


@pytest.mark.parametrize("own", ["corpus.jsonl", "queries.jsonl", "ground_truth.jsonl", "qrels/test.tsv"])
def test_an_example_that_would_not_fit_the_data_that_is_there_is_not_written(tmp_path, own):
    put(tmp_path, {own: ""})
    said = begin(tmp_path)
    assert said.code == 0
    there = {path for path in everything(tmp_path) if path != "qrels"}
    assert there == {"GUIDE.md", "contract.yaml", own}
    assert f"would not fit the {own.partition('/')[0]} that is there" in said.out


def test_the_templates_fit_data_that_is_there(tmp_path):
    put(tmp_path, {"corpus.jsonl": '{"_id": "d", "text": "t"}\n', "queries.jsonl": '{"_id": "q", "text": "?"}\n'})
    put(tmp_path, {"ground_truth.jsonl": '{"query_id": "q", "alternatives": [[{"doc_id": "d"}]]}\n'})
    begin(tmp_path)
    assert read(tmp_path).contract["owners"]


def test_a_frozen_folder_is_not_added_to(tmp_path):
    put(tmp_path, {"manifest.json": "{}"})
    said = begin(tmp_path)
    assert said.code == 2
    assert "found a frozen dataset, expected" in said.err
    assert everything(tmp_path) == ["manifest.json"]


def test_a_folder_that_is_a_file_is_a_sentence(tmp_path):
    put(tmp_path, {"file": "x"})
    for folder in (tmp_path / "file", tmp_path / "file" / "inner"):
        said = begin(folder)
        assert said.code == 2
        assert "expected a place to write to" in said.err
    assert everything(tmp_path) == ["file"]


def test_what_cannot_be_written_whole_leaves_nothing_and_can_be_begun_again(tmp_path, monkeypatch):
    put(tmp_path / "new", {"contract.yaml": "owners: [Анна]\n"})

    def full(path, content):
        if path.name == "queries.jsonl":
            raise DatasetError(f"{path}: found No space left on device, expected a place to write to; check the folder")
        write.replace(path, content)

    monkeypatch.setattr(starter, "replace", full)
    said = begin(tmp_path / "new")
    assert (said.code, said.out) == (2, "")
    assert "queries.jsonl: found No space left on device" in said.err
    assert everything(tmp_path / "new") == ["contract.yaml"]
    monkeypatch.undo()
    assert begin(tmp_path / "new").code == 0
    assert everything(tmp_path / "new") == ALL
    assert (tmp_path / "new" / "contract.yaml").read_text(encoding="utf-8") == "owners: [Анна]\n"
