"""Whatever is wrong with a dataset is told by `dataset validate`: all of it, with its place, and nothing is changed."""

import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from cli import ablate
from hypothesis import given
from hypothesis import strategies as st

from ablate.dataset import Folder, manifest
from ablate.errors import DatasetError, Problem, sentence

TEXT = "Возврат оформляют за 14 дней. Исключение: билеты на концерт."
RULE = {"doc_id": "правила", "start": 0, "end": 29}
CORPUS = [{"_id": "правила", "title": "Возврат", "text": TEXT}, {"_id": "d2", "text": "другой текст о доставке"}]
QUERIES = [{"_id": "q1", "text": "Когда вернуть?"}]
TRUTH = [{"query_id": "q1", "alternatives": [[RULE]]}]


def jsonl(*rows):
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)


def folder(path, files=()):
    """A valid folder of three files, of which some are replaced: by rows, by text or bytes; None removes one."""
    base = {"corpus.jsonl": CORPUS, "queries.jsonl": QUERIES, "ground_truth.jsonl": TRUTH}
    path.mkdir(exist_ok=True)
    for name, content in {**base, **dict(files)}.items():
        if content is not None:
            (path / name).parent.mkdir(exist_ok=True)
            text = jsonl(*content) if isinstance(content, list) else content
            (path / name).write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def validated(path, *flags):
    """What the command says as JSON. It ends with 2 where there are problems, and changes nothing."""
    before = tree(path)
    said = ablate("dataset", "validate", str(path), "--json", *flags)
    found = json.loads(said.out)
    assert said.code == (0 if found["valid"] else 2)
    assert found["valid"] == (not found["problems"])
    assert tree(path) == before
    return found


def tree(path):
    files = {file: file.read_bytes() for file in path.rglob("*") if file.is_file() and os.access(file, os.R_OK)}
    return files, sorted(path.rglob("*"))


def places(found):
    return [(problem["file"], problem["line"], problem["key"]) for problem in found["problems"]]


def corpus(*rows):
    return {"corpus.jsonl": jsonl(*CORPUS) + "".join(row if isinstance(row, str) else jsonl(row) for row in rows)}


def query(**keys):
    return {"queries.jsonl": [QUERIES[0] | keys], "ground_truth.jsonl": [{"query_id": "q1"}]}


def second(**keys):
    return {"queries.jsonl": [*QUERIES, keys]}


def truth(**keys):
    return {"ground_truth.jsonl": [{"query_id": "q1"} | keys]}


def units(*groups, **files):
    return truth(alternatives=list(groups)) | files


def unit(**keys):
    return units([keys])


def dated(*intervals):
    rows = [
        {"_id": f"d{n}", "text": "текст", "metadata": {"valid_from": begin, "valid_to": end, "продукт": f"п{n}"}}
        for n, (begin, end) in enumerate(intervals)
    ]
    return {"corpus.jsonl": rows}


def reviewed(**entry):
    return truth(
        alternatives=[[RULE]], reviewed=[{"who": "user:анна", "when": "2025-06-01", "action": "added"} | entry]
    )


C, Q, G, T, M = "corpus.jsonl", "queries.jsonl", "groups.jsonl", "ground_truth.jsonl", "manifest.json"
SECRET = [{"_id": "правила", "text": TEXT, "acl": {"allow": ["user:босс"]}}]
UNIT = "alternatives[0][0]"

# What is wrong -> the files that are replaced; where it is found; words of what was found and of what was expected.
BROKEN = {
    "truncated JSON": (corpus('{"_id": "d3", "text": "обры'), C, 3, None, "no JSON from column 23", "one object"),
    "two objects on a line": (corpus('{"_id": "a", "text": ""} {}\n'), C, 3, None, "Extra data", "one object"),
    "a list": (corpus("[]\n"), C, 3, None, "a list", "one JSON object a line"),
    "a number": (corpus("5\n"), C, 3, None, "a number (5)", "one JSON object a line"),
    "BOM in the middle": (corpus('\ufeff{"_id": "d3", "text": "a"}\n'), C, 3, None, "a byte order mark", "the start"),
    "not UTF-8": (
        {C: jsonl(*CORPUS).encode() + '{"_id": "d3", "text": "день"}\n'.encode("cp1251")},
        C, 3, None, "the byte 0xe4 that is not UTF-8", "UTF-8 text",
    ),
    "UTF-16": ({C: jsonl(CORPUS[0]).encode("utf-16")}, C, None, None, "UTF-16", "UTF-8 text"),
    "NaN": (corpus('{"_id": "d3", "text": "a", "metadata": {"n": NaN}}\n'), C, 3, None, "NaN", "plain JSON"),
    "infinite": (corpus('{"_id": "d3", "text": "a", "metadata": {"n": [1e999]}}\n'), C, 3, None, "1e999", "plain JSON"),
    "a key twice": (corpus('{"_id": "d3", "text": "a", "text": "b"}\n'), C, 3, None, 'the key "text" twice', "plain"),
    "a key of metadata twice": (
        corpus('{"_id": "d3", "text": "a", "metadata": {"n": {"m": 1, "m": 1}}}\n'), C, 3, None, 'the key "m"', "plain",
    ),
    "half a surrogate pair": (corpus(r'{"_id": "d3", "text": "\ud83d"}'), C, 3, None, r"(\ud83d)", "a character"),
    "half a pair in metadata": (
        corpus(r'{"_id": "d3", "text": "", "metadata": {"\udc00": 1}}'), C, 3, None, r"(\udc00)", "a character",
    ),
    "lists too deep for the parser": (corpus("[" * 100_000), C, 3, None, "too deep in each", "at most 100 levels"),
    "metadata too deep to be written": (
        corpus('{"_id": "d3", "text": "a", "metadata": ' + '{"a": ' * 600 + "1" + "}" * 601 + "\n"),
        C, 3, None, "too deep in each other", "at most 100 levels",
    ),
    "a number of many digits": (
        corpus('{"_id": "d3", "text": "a", "metadata": {"n": ' + "9" * 5000 + "}}\n"), C, 3, None, "limit", "plain",
    ),
    "no id": (corpus({"text": "a"}), C, 3, "_id", "nothing", "a string"),
    "a number as id": (corpus({"_id": 5, "text": "a"}), C, 3, "_id", "a number (5)", "a string"),
    "an empty id": (corpus({"_id": "", "text": "a"}), C, 3, "_id", "an empty string", "a name"),
    "an id twice": (corpus({"_id": "d2", "text": "a"}), C, 3, "_id", '"d2" a second time (first in corpus.jsonl:2)',
                    "ids that differ"),
    "no text": (corpus({"_id": "d3"}), C, 3, "text", "nothing", "a string"),
    "text that is null": (corpus({"_id": "d3", "text": None}), C, 3, "text", "null", "a string"),
    "a title that is a list": (corpus({"_id": "d3", "text": "", "title": []}), C, 3, "title", "a list", "a string"),
    "an unknown key": (corpus({"_id": "d3", "text": "a", "titel": ""}), C, 3, "titel", "an unknown key", "one of _id"),
    "metadata that are a list": (corpus({"_id": "d3", "text": "", "metadata": []}), C, 3, "metadata", "a list", "an o"),
    "no date": (
        corpus({"_id": "d3", "text": "", "metadata": {"valid_from": "1.6.2025"}}),
        C, 3, "metadata.valid_from", "'1.6.2025'", "an ISO date",
    ),
    "a day that is not in the calendar": (
        corpus({"_id": "d3", "text": "", "metadata": {"valid_to": "2025-02-30"}}),
        C, 3, "metadata.valid_to", "'2025-02-30'", "an ISO date",
    ),
    "an end before the start": (
        corpus({"_id": "d3", "text": "", "metadata": {"valid_from": "2025-06-01", "valid_to": "2025-01-01"}}),
        C, 3, "metadata.valid_to", '"2025-01-01"', "a moment after",
    ),
    "an ACL that is a list": (corpus({"_id": "d3", "text": "", "acl": ["public"]}), C, 3, "acl", "a list", "an object"),
    "allow that is a string": (
        corpus({"_id": "d3", "text": "", "acl": {"allow": "public"}}), C, 3, "acl.allow", '("public")', "a list",
    ),
    "a number in an ACL": (
        corpus({"_id": "d3", "text": "", "acl": {"deny": ["a", 7]}}), C, 3, "acl.deny[1]", "a number (7)", "a string",
    ),
    "an unknown key of an ACL": (
        corpus({"_id": "d3", "text": "", "acl": {"allowed": []}}), C, 3, "acl.allowed", "an unknown key", "allow, deny",
    ),
    "no corpus": ({C: None}, C, None, None, "no corpus.jsonl", "one"),
    "an empty corpus": ({C: ""}, C, None, None, "no document", "at least one"),
    "no file of queries": ({Q: None}, Q, None, None, "no queries.jsonl", "one"),
    "no queries": ({Q: "\n \n"}, Q, None, None, "no query", "at least one"),
    "a query twice": (second(_id="q1", text="Кто?"), Q, 2, "_id", '"q1" a second time', "ids that differ"),
    "a query without words": (second(_id="q2", text=" "), Q, 2, "text", "no words", "a question"),
    "a misspelt key of a query": (second(_id="q2", text="?", principal=[]), Q, 2, "principal", "an unknown", "_id,"),
    "principals that are a string": (query(principals="user:a"), Q, 1, "principals", '("user:a")', "a list"),
    "a filter that is a list": (query(filter=[1]), Q, 1, "filter", "a list", "an object"),
    "a cohort that is a number": (query(cohorts={"год": 2025}), Q, 1, "cohorts.год", "a number (2025)", "a string"),
    "answerable as a string": (query(answerable="no"), Q, 1, "answerable", '("no")', "true or false"),
    "no reason": (query(answerable=False), Q, 1, "why", "null", "one of absent, access"),
    "another reason": (query(answerable=False, why="не знаю"), Q, 1, "why", '("не знаю")', "one of absent, access"),
    "a reason too many": (query(why="absent"), Q, 1, "why", '"absent" on an answerable query', "no reason"),
    "as_of that is no date": (query(as_of="вчера"), Q, 1, "as_of", '("вчера")', "an ISO date"),
    "a subject that no document has": (
        query(subject={"продукт": "облако"}), Q, 1, "subject", 'the subject field "продукт"', "a key of their metadata",
    ),
    "groups that contain each other": (
        {G: [{"_id": "group:a", "members": ["group:b"]}, {"_id": "group:b", "members": ["group:a"]}]},
        G, 1, "members", "groups that contain each other", "none",
    ),
    "a group twice": (
        {G: [{"_id": "group:a", "members": []}, {"_id": "group:a", "members": []}]},
        G, 2, "_id", '"group:a" a second time', "ids that differ",
    ),
    "a member that is a number": ({G: [{"_id": "g", "members": [1]}]}, G, 1, "members[0]", "a number (1)", "a string"),
    "a contract that is a list": ({"contract.yaml": "- a"}, "contract.yaml", None, None, "a list", "a mapping"),
    "a contract that is no YAML": ({"contract.yaml": "a: 1\nb: [\n"}, "contract.yaml", 3, None, "parsing", "a YAML"),
    "an unknown key of the contract": ({"contract.yaml": "usecase: x"}, "contract.yaml", None, "usecase", "an unknown",
                                       "use_case"),
    "a critical query that is not there": (
        {"contract.yaml": "critical: {queries: [q7]}"},
        "contract.yaml", None, "critical.queries", '"q7"', "ids of judged queries",
    ),
    "no truth": ({T: None}, "qrels/test.tsv", None, None, "neither qrels nor ground_truth.jsonl", "dataset.split"),
    "an unknown query": ({T: [*TRUTH, {"query_id": "q7"}]}, T, 2, "query_id", '("q7")', "an id of queries.jsonl"),
    "two lines of one query": ({T: TRUTH * 2}, T, 2, "query_id", '"q1" a second time', "one line a query"),
    "a line without a query": ({T: [{"alternatives": [[RULE]]}]}, T, 1, "query_id", "nothing", "a string"),
    "a misspelt key of ground truth": (truth(alternative=[[RULE]]), T, 1, "alternative", "an unknown key", "one of"),
    "an empty list of alternatives": (units(), T, 1, "alternatives", "an empty list", "at least one alternative"),
    "an empty group": (units([]), T, 1, "alternatives[0]", "an empty group", "at least one unit"),
    "a group that is a unit": (units(RULE), T, 1, "alternatives[0]", "an object", "a list of at least one unit"),
    "a unit that is a string": (units(["правила"]), T, 1, UNIT, '("правила")', "an object"),
    "evidence for what has no answer": (
        units([RULE], **{Q: [QUERIES[0] | {"answerable": False, "why": "absent"}]}),
        T, 1, "alternatives", "evidence for an unanswerable query", "none",
    ),
    "an unknown document": (unit(doc_id="правило"), T, 1, f"{UNIT}.doc_id", '("правило")', "an id of corpus.jsonl"),
    "an end past the text": (unit(doc_id="правила", start=0, end=61), T, 1, f"{UNIT}.end", "[0:61]", "end <= 60"),
    "offsets in bytes": (
        unit(doc_id="правила", start=0, end=len(TEXT.encode()), quote=TEXT), T, 1, f"{UNIT}.end", "[0:", "<= 60",
    ),
    "offsets in bytes that fit": (
        unit(doc_id="правила", start=0, end=14, quote="Возврат"), T, 1, f"{UNIT}.quote", '"Возврат" where', "the same",
    ),
    "an end before a start": (unit(doc_id="правила", start=7, end=7), T, 1, f"{UNIT}.end", "[7:7]", "0 <= start < end"),
    "a start alone": (unit(doc_id="правила", start=0), T, 1, f"{UNIT}.end", "nothing", "a whole number"),
    "an offset with a point": (unit(doc_id="d2", start=0.0, end=3), T, 1, f"{UNIT}.start", "(0.0)", "a whole number"),
    "a quote that differs": (
        unit(doc_id="правила", start=0, end=7, quote="возврат"), T, 1, f"{UNIT}.quote", 'where text[0:7] is "Возврат"',
        "the same characters",
    ),
    "a quote that is nowhere": (unit(doc_id="d2", quote="обмен"), T, 1, f"{UNIT}.quote", '("обмен")', "a part of the"),
    "an ambiguous quote": (unit(doc_id="правила", quote="о"), T, 1, f"{UNIT}.quote", "at 1 and at 8", "occurs once"),
    "a span without a letter": (unit(doc_id="правила", start=28, end=30), T, 1, f"{UNIT}.doc_id", "without any letter",
                                "evidence to read"),
    "spans and offsets": (
        unit(doc_id="правила", spans=[[0, 7]], start=0, end=7), T, 1, f"{UNIT}.start", 'beside "spans"', "one of",
    ),
    "a span of three": (unit(doc_id="d2", spans=[[0, 7, 9]]), T, 1, f"{UNIT}.spans[0]", "[0, 7, 9]", "[start, end]"),
    "an unresolved unit": (
        unit(doc_id="d2", start=0, end=6, unresolved="changed: другой"),
        T, 1, f"{UNIT}.unresolved", "changed: другой", "a unit whose place was found",
    ),
    "a contained alternative": (
        units([{"doc_id": "d2"}, RULE], [RULE]), T, 1, "alternatives[0]", "all units of alternatives[1]", "none",
    ),
    "two grades of one unit": (
        truth(relevant=[{"doc_id": "d2", "grade": 1}, {"doc_id": "d2", "grade": 2}]),
        T, 1, "relevant[1].grade", "a number (2)", "1 as before",
    ),
    "a grade below zero": (truth(relevant=[{"doc_id": "d2", "grade": -1}]), T, 1, "relevant[0].grade", "(-1)", "0 or"),
    "complete as a string": (truth(complete="да"), T, 1, "complete", '("да")', "true or false"),
    "a review that is a string": (truth(reviewed=["анна"]), T, 1, "reviewed[0]", '("анна")', "an object"),
    "a review without a name": (reviewed(who=""), T, 1, "reviewed[0].who", "an empty string", "a name"),
    "a review at no time": (reviewed(when="вчера"), T, 1, "reviewed[0].when", '("вчера")', "an ISO date"),
    "an action of no reviewer": (reviewed(action="confirm"), T, 1, "reviewed[0].action", '("confirm")', "one of added"),
    "a confirmed alternative that is not there": (
        reviewed(alternative=1), T, 1, "reviewed[0].alternative", "a number (1)", "one of the line's 1 alternatives",
    ),
    "evidence nobody may read": (
        {C: SECRET, Q: [QUERIES[0] | {"principals": ["user:анна"]}]},
        T, 1, "alternatives", "no alternative without a document that user:анна may not read", "one that can be read",
    ),
    "evidence of two times": (
        dated(("2025-01-01", "2025-02-01"), ("2025-02-01", None)) | units([{"doc_id": "d0"}, {"doc_id": "d1"}]),
        T, 1, "alternatives", '"d0" valid in [2025-01-01, 2025-02-01)', "shares one moment",
    ),
    "evidence of another time": (
        dated(("2025-01-01", None)) | query(as_of="2024-06-01") | units([{"doc_id": "d0"}]),
        T, 1, "alternatives", '"d0" valid in [2025-01-01', "evidence valid on 2024-06-01",
    ),
    "evidence of another subject": (
        dated((None, None), (None, None)) | query(subject={"продукт": "п0"}) | units([{"doc_id": "d1"}]),
        T, 1, "alternatives", '"d1" with продукт a string ("п1")', "the query's subject",
    ),
    "two columns of qrels": ({"qrels/test.tsv": "q1\td2\n"}, "qrels/test.tsv", 1, None, "2 columns", "3 (query,"),
    "a grade with a point": ({"qrels/test.tsv": "q1\td2\t1.0\n"}, "qrels/test.tsv", 1, None, '"1.0"', "a whole number"),
    "a document that qrels alone know": (
        {"qrels/test.tsv": "query-id\tcorpus-id\tscore\nq1\td9\t1\n"},
        "qrels/test.tsv", 2, None, 'the document "d9"', "an id of corpus.jsonl",
    ),
    "no judgment": ({"qrels/test.tsv": "\n", T: None}, "qrels/test.tsv", None, None, "no judgment", "at least one"),
    "another split": ({"qrels/dev.tsv": "q1\td2\t1\n"}, "qrels/test.tsv", None, None, "no such file but dev", "the"),
    "a manifest that is none": ({M: "[]"}, M, None, None, "a list", "one JSON object"),
    "a manifest of other files": (
        {M: json.dumps({"version": "7", "files": {C: "0" * 64, "GUIDE.md": "1"}, "created": "2025-06-01"})},
        M, None, None, f"changed: {C}; missing: GUIDE.md; added: {T}, {Q}", "the frozen ones",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", BROKEN)
def test_what_is_wrong_is_told_with_its_place(tmp_path, name):
    files, file, line, key, words, expected = BROKEN[name]
    found = validated(folder(tmp_path / "данные", files))
    assert places(found) == [(file, line, key)], "one mistake is one problem"
    (problem,) = found["problems"]
    assert words in problem["found"]
    assert expected in problem["expected"]
    assert problem["advice"]
    assert found["fingerprints"] == found["counts"] == {}


@pytest.mark.parametrize("name", BROKEN)
def test_reading_refuses_it_with_the_same_sentence(tmp_path, name):
    path = folder(tmp_path / "данные", BROKEN[name][0])
    (problem,) = validated(path)["problems"]
    with pytest.raises(DatasetError) as error:
        Folder(str(path), "test", "none", 1, "nobody", True, None).read()
    assert str(error.value) == problem["sentence"]
    assert [str(found) for found in error.value.problems] == [problem["sentence"]]


# Files that are no files


def test_a_folder_in_the_place_of_a_file_is_told(tmp_path):
    for name in (C, Q, T, "GUIDE.md", "qrels/test.tsv"):
        path = folder(tmp_path / name.replace("/", "-"), {name: None})
        (path / name).mkdir(parents=True)
        assert places(validated(path)) == [(name, None, None)], name
        assert validated(path)["problems"][0]["found"] == "a folder"


def test_a_link_that_leads_nowhere_is_told(tmp_path):
    for name in (C, Q, T, G, M):
        path = folder(tmp_path / name, {name: None})
        (path / name).symlink_to("нет такого")
        found = validated(path)
        assert places(found) == [(name, None, None)], name
        assert found["problems"][0]["found"] == "a link to нет такого that leads nowhere"


def test_a_link_to_a_file_is_read(tmp_path):
    path = folder(tmp_path / "данные", {C: None})
    (tmp_path / "другой").write_text(jsonl(*CORPUS), encoding="utf-8")
    (path / C).symlink_to(tmp_path / "другой")
    assert validated(path)["valid"]


@pytest.mark.parametrize("name", [C, Q, T, "qrels/test.tsv"])
def test_a_file_that_may_not_be_read_is_told(tmp_path, monkeypatch, name):
    path = folder(tmp_path / "данные", {"qrels/test.tsv": "q1\td2\t1\n"})
    opened = Path.open

    def refused(self, *args, **rest):
        if self == path / name:
            raise PermissionError(13, "Permission denied", str(self))
        return opened(self, *args, **rest)

    monkeypatch.setattr(Path, "open", refused)  # root may read whatever its mode says
    said = ablate("dataset", "validate", str(path), "--json")
    assert said.code == 2
    assert places(json.loads(said.out)) == [(name, None, None)]
    assert json.loads(said.out)["problems"][0]["found"] == "Permission denied"


def test_a_folder_that_may_not_be_looked_into_is_told(tmp_path, monkeypatch):
    path = folder(tmp_path / "данные")

    def refused(self, *args, **rest):
        raise PermissionError(13, "Permission denied", str(self))

    monkeypatch.setattr(Path, "iterdir", refused)
    said = ablate("dataset", "validate", str(path), "--json")
    assert said.code == 2
    assert places(json.loads(said.out)) == [(str(path), None, None)]


def test_a_pipe_is_told_and_not_waited_for(tmp_path):
    path = folder(tmp_path / "данные", {G: None})
    os.mkfifo(path / G)
    assert places(validated(path)) == [(G, None, None)]


def test_qrels_that_are_a_file_are_told(tmp_path):
    assert places(validated(folder(tmp_path / "данные", {"qrels": "q1\td2\t1\n"}))) == [("qrels", None, None)]


def test_a_folder_that_is_not_there_is_told(tmp_path):
    said = ablate("dataset", "validate", str(tmp_path / "нет"), "--json")
    assert said.code == 2
    assert json.loads(said.out)["problems"][0]["found"] == "no such folder"


# What is fine


@pytest.mark.parametrize(
    "files",
    [
        {C: jsonl(*CORPUS).replace("\n", "\r\n"), Q: jsonl(*QUERIES).replace("\n", "\r\n")},
        {C: b"\xef\xbb\xbf" + jsonl(*CORPUS).encode()},
        {C: jsonl(*CORPUS).removesuffix("\n")},
        corpus({"_id": "d3", "text": "a\ufeffb\u2028"}),
        corpus({"_id": "d3", "text": ""}),
        corpus(json.dumps({"_id": "d3", "text": "😀"})),
        corpus('{"_id": "d3", "text": "a", "metadata": ' + '{"a": ' * 98 + "1" + "}" * 99 + "\n"),
        corpus({"_id": "d3", "text": "a", "metadata": {"n": [0.5, None, {"m": "х"}], "valid_to": None}}),
        reviewed(alternative=0) | {G: ""},
        reviewed(action="rejected", alternative=9, unit={"doc_id": "ушёл", "start": 0, "end": 3}, note="нет", fact="f"),
        {"contract.yaml": "critical: {queries: [q1]}"},
    ],
    ids=range(11),
)
def test_what_is_allowed_is_valid(tmp_path, files):
    path = folder(tmp_path / "данные", files)
    assert validated(path)["problems"] == []
    Folder(str(path), "test", "none", 1, "nobody", True, None).read()


def test_a_line_of_20_megabytes_is_read(tmp_path):
    path = folder(tmp_path / "данные", corpus({"_id": "d3", "text": "слово " * 2_000_000, "metadata": {"n": 1}}))
    assert validated(path)["counts"]["documents"] == 3


# Several at once


def test_several_faults_are_all_listed_by_file_and_line(tmp_path):
    bad = [{"doc_id": "нет"}, RULE | {"end": 99}, {"doc_id": "d2", "unt": 1}, RULE]
    files = {
        C: jsonl({"_id": 1, "text": 2, "title": 3}) + "{\n" + jsonl(*CORPUS),
        Q: [
            {"_id": "q0", "text": "", "principals": [1, "a", None]},
            *QUERIES,
            {"_id": "q2", "text": "?", "as_of": "-"},
        ],
        G: [{"_id": "g"}, {"members": 5}],
        "contract.yaml": "use: x\npric: y",
        "qrels/test.tsv": "q1\td2\nq8\td9\t1\nq1\td2\t0.5\n",
        T: [{"query_id": "q1", "alternatives": [bad], "relevant": [{"doc_id": "d2"}], "reviewed": [1], "facts": []}],
    }
    found = validated(folder(tmp_path / "данные", files))
    assert places(found) == [
        (C, 1, "_id"), (C, 1, "text"), (C, 1, "title"), (C, 2, None),
        (Q, 1, "text"), (Q, 1, "principals[0]"), (Q, 1, "principals[2]"), (Q, 3, "as_of"),
        (G, 2, "_id"), (G, 2, "members"),
        ("contract.yaml", None, "use"), ("contract.yaml", None, "pric"),
        *[("qrels/test.tsv", line, None) for line in (1, 2, 2, 3)],
        (T, 1, "facts"), (T, 1, "alternatives[0][0].doc_id"), (T, 1, "alternatives[0][1].end"),
        (T, 1, "alternatives[0][2].unt"), (T, 1, "relevant[0].grade"), (T, 1, "reviewed[0]"),
    ]  # fmt: skip


def test_rules_between_files_are_all_listed_too(tmp_path):
    files = dated(("2025-01-01", None), (None, "2024-01-01"))
    files[C] += SECRET
    files[Q] = [
        {"_id": "q1", "text": "?", "as_of": "2025-06-01", "subject": {"продукт": "п0", "цвет": "красный"}},
        {"_id": "q2", "text": "?"},
    ]
    files[T] = [
        {"query_id": "q1", "alternatives": [[{"doc_id": "d1"}]]},
        {"query_id": "q2", "alternatives": [[{"doc_id": "правила"}]]},
    ]
    found = validated(folder(tmp_path / "данные", files), "--acl-default", "public")
    assert [(problem["file"], problem["query"]) for problem in found["problems"]] == [
        (Q, "q1"), (T, "q1"), (T, "q1"), (T, "q2"),
    ]  # fmt: skip
    assert "цвет" in found["problems"][0]["found"]
    assert "valid" in found["problems"][1]["found"]
    assert "with продукт" in found["problems"][2]["found"]
    assert "may not read" in found["problems"][3]["found"]


@pytest.mark.parametrize(
    "line",
    [
        '{"_id": "d3", "text": "оборван',
        '{"_id": "d3", "txt": "a"}',
        '{"id": "d3", "text": "a"}',
        '{"identifier": "d3", "text": "a"}',
        '{"_id": "d3", "text": 5, "metadata": {"продукт": "облако"}}',
        '{"_id": "d3", "text": "' + "длинно " * 5000 + '", "metadata": {"продукт": "облако"}',
    ],
    ids=range(6),
)
def test_who_refers_to_a_broken_line_is_not_to_blame(tmp_path, line):
    subject = {"subject": {"продукт": "облако"}} if "продукт" in line else {}
    files = corpus(line) | {Q: [QUERIES[0] | subject], "qrels/test.tsv": "q1\td3\t1\n"}
    files |= truth(alternatives=[[{"doc_id": "d3", "start": 0, "end": 999}]], relevant=[{"doc_id": "d3", "grade": 1}])
    found = validated(folder(tmp_path / "данные", files))
    assert {(problem["file"], problem["line"]) for problem in found["problems"]} == {(C, 3)}


def test_a_broken_corpus_does_not_hide_an_unknown_document(tmp_path):
    files = corpus("не JSON\n") | unit(doc_id="d9")
    assert places(validated(folder(tmp_path / "данные", files))) == [(C, 3, None), (T, 1, f"{UNIT}.doc_id")]


@pytest.mark.parametrize("text", [None, "", "не JSON\n", '{"_id": "q1", "text": '])
def test_queries_that_cannot_be_read_make_no_other_file_wrong(tmp_path, text):
    files = {Q: text, "qrels/test.tsv": "q1\td2\t1\n", "contract.yaml": "critical: {queries: [q1]}"}
    assert {file for file, _, _ in places(validated(folder(tmp_path / "данные", files)))} == {Q}


def test_of_an_id_that_stands_twice_no_text_is_compared(tmp_path):
    files = corpus({"_id": "правила", "text": "другая редакция"}) | unit(doc_id="правила", quote="другая редакция")
    assert places(validated(folder(tmp_path / "данные", files))) == [(C, 3, "_id")]


def test_where_a_line_of_ground_truth_is_broken_the_qrels_do_not_stand_in(tmp_path):
    acl = {"allow": ["user:босс"]}
    files = {C: [*CORPUS, {"_id": "d3", "text": "", "acl": acl}], "qrels/test.tsv": "q1\td3\t1\n"}
    for line in ('{"query_id": "q1", "alternatives": [', '{"query_id": "q1", "complete": 1}'):
        path = folder(tmp_path / "данные", files | {T: line})
        assert [file for file, _, _ in places(validated(path, "--evidence", "any"))] == [T]
    folder(path, files | {T: jsonl({"query_id": "q1"})})
    assert places(validated(path, "--evidence", "any")) == [(T, 1, "alternatives")]


def test_broken_groups_make_no_evidence_unreadable(tmp_path):
    files = {C: [CORPUS[0] | {"acl": {"allow": ["group:a"]}}], Q: [QUERIES[0] | {"principals": ["user:анна"]}]}
    groups = [{"_id": "group:a", "members": ["user:анна", 5]}]
    assert places(validated(folder(tmp_path / "данные", files | {G: groups}))) == [(G, 1, "members[1]")]


def test_a_misspelt_key_is_one_problem_and_not_a_missing_key_too(tmp_path):
    found = validated(folder(tmp_path / "данные", unit(docid="правила", strat=0, end=7)))
    assert places(found) == [(T, 1, f"{UNIT}.docid"), (T, 1, f"{UNIT}.strat")]
    assert [problem["advice"] for problem in found["problems"]] == [
        'did you mean "doc_id"?',
        'did you mean "start"?',
    ]


def test_the_message_of_reading_says_where_the_others_are_listed(tmp_path):
    path = folder(tmp_path / "мои данные", {C: '{"_id": 1, "text": ""}\n{"_id": 2, "text": ""}\n'})
    with pytest.raises(DatasetError) as error:
        Folder(str(path), "test", "none", 1, "nobody", True, None).read()
    assert str(error.value) == (
        'corpus.jsonl:1: key "_id": found a number (1), expected a string; write it in quotes '
        f"(and 1 more; `python -m ablate dataset validate '{path}'` lists them)"
    )


def test_twenty_problems_are_printed_and_the_rest_counted(tmp_path):
    path = folder(tmp_path / "данные", {C: jsonl(*CORPUS) + jsonl({"_id": 1}) * 15})
    said = ablate("dataset", "validate", str(path))
    assert said.code == 2
    lines = said.out.splitlines()
    assert len(lines) == 21
    assert lines[0] == 'corpus.jsonl:3: key "_id": found a number (1), expected a string; write it in quotes'
    assert lines[-1] == "and 10 problems more"
    assert said.err == (
        f"ablate: {path}: found 30 problems, expected none; correct them and validate again; --json lists all of them\n"
    )


def test_a_problem_is_one_line_whatever_a_key_holds(tmp_path):
    path = folder(tmp_path / "данные", {C: jsonl(*CORPUS, {"_id": "d3", "text": "", "a\nb\x1b[2J": 1})})
    assert ablate("dataset", "validate", str(path)).out.startswith(
        'corpus.jsonl:3: key "a b [2J": found an unknown key'
    )


# A valid folder


def test_a_valid_folder_is_one_line_and_what_to_do_next(tmp_path):
    path = folder(tmp_path / "данные")
    dataset = Folder(str(path), "test", "none", 1, "nobody", True, None).read()
    said = ablate("dataset", "validate", str(path))
    assert (said.code, said.err) == (0, "")
    assert said.out == (
        f"{path}: valid: 2 documents, 1 queries, 1 queries with alternatives; "
        f"corpus {dataset.fingerprints['corpus'][:12]}, ground truth {dataset.fingerprints['ground_truth'][:12]}; "
        "not frozen\n"
        f"next: `python -m ablate 'dataset.dir={path}'` runs a search on it, `dataset freeze` keeps a version\n"
    )
    found = validated(path)
    assert found["counts"] == dataset.counts
    assert found["fingerprints"] == dataset.fingerprints


def frozen(path, **rest):
    digests = {name: hashlib.sha256(file.read_bytes()).hexdigest() for name, file in manifest.paths(path).items()}
    row = {
        "version": "3",
        "files": digests,
        "counts": {},
        "created": "2025-06-01T10:00:00+00:00",
        "parent": None,
    } | rest
    (path / M).write_text(json.dumps(row), encoding="utf-8")
    return path


def test_a_frozen_folder_says_so_and_names_every_file_that_changed(tmp_path):
    path = frozen(folder(tmp_path / "данные", {"GUIDE.md": "Как размечать"}))
    assert ablate("dataset", "validate", str(path)).out.endswith("; frozen as version 3 on 2025-06-01\n")
    assert validated(path)["frozen"] == {"version": "3", "created": "2025-06-01T10:00:00+00:00"}
    folder(path, corpus({"_id": "d3", "text": "новый"}) | {G: [{"_id": "g", "members": []}], "GUIDE.md": "Иначе"})
    (path / T).unlink()
    (problem, *_) = validated(path)["problems"]
    assert problem["file"] == M
    assert "(changed: GUIDE.md, corpus.jsonl; missing: ground_truth.jsonl; added: groups.jsonl)" in problem["found"]


def test_excluded_queries_are_left_out_unread(tmp_path):
    queries = [*QUERIES, {"_id": "q2", "text": "?"}, {"_id": "q3"}]
    bad = [{"query_id": "q2", "alternatives": [[{"doc_id": "d2", "unresolved": "gone"}]]}, {"query_id": "q3", "x": 1}]
    files = {Q: queries, T: jsonl(*TRUTH, *bad), "qrels/test.tsv": "q1\td2\t1\nq2\td9\tх\nq3\td2\t1\n"}
    path = folder(tmp_path / "данные", files)
    assert len(validated(path)["problems"]) == 5
    frozen(path, excluded={"q2": "its evidence changed", "q3": "no text"})
    found = validated(path)
    assert found["problems"] == []
    assert (found["counts"]["queries"], found["counts"]["queries_excluded"]) == (1, 2)
    alone = folder(tmp_path / "без них", {"qrels/test.tsv": "q1\td2\t1\n"})
    assert validated(alone)["fingerprints"] == found["fingerprints"]
    assert validated(alone)["counts"]["queries_excluded"] == 0


def test_excluded_lines_may_be_no_json(tmp_path):
    path = folder(
        tmp_path / "данные", {T: jsonl(*TRUTH) + '{"query_id": "q2", "alternatives": [[', Q: [*QUERIES, {"_id": "q2"}]}
    )
    frozen(path, excluded={"q2": "?"})
    assert validated(path)["problems"] == []


def test_a_critical_query_that_is_excluded_is_a_warning(tmp_path):
    files = {Q: [*QUERIES, {"_id": "q2", "text": "?"}], "contract.yaml": "critical: {queries: [q2]}"}
    path = frozen(folder(tmp_path / "данные", files), excluded={"q2": "its evidence moved"})
    assert validated(path)["warnings"] == ['critical queries that are excluded, and guard nothing: 1 (first "q2")']


def test_groups_that_are_not_defined_are_a_warning_where_others_are(tmp_path):
    rows = [CORPUS[0] | {"acl": {"allow": ["public", "group:b"], "deny": ["group:a"]}}, CORPUS[1] | {"acl": {}}]
    files = {C: rows, Q: [QUERIES[0] | {"principals": ["group:c", "role:x"]}]}
    path = folder(tmp_path / "данные", files)
    assert validated(path)["warnings"] == []
    folder(path, files | {G: [{"_id": "group:a", "members": ["group:d", "user:анна"]}]})
    assert validated(path)["warnings"] == [
        'groups that groups.jsonl does not define: 3 (first "group:b", corpus.jsonl:1)'
    ]


def test_a_corpus_is_named_by_all_of_its_documents(tmp_path):
    rows = [
        {"_id": "d", "title": "Т", "text": "слово😀" * 400_000, "metadata": {"б": [1, 0.5], "а": None}},
        {"_id": "e", "text": "e", "acl": {"allow": ["y", "x"], "deny": ["z"]}},
    ]
    heads = [
        ["d", "Т", {"а": None, "б": [1, 0.5]}, None],
        ["e", "", {}, {"allow": ["x", "y"], "deny": ["z"]}],
    ]
    lines = [json.dumps(head, ensure_ascii=False, separators=(",", ":")) for head in heads]
    texts = [f"{line}\n{row['text']}".encode() for line, row in zip(lines, rows, strict=True)]
    digests = sorted(hashlib.sha256(text).digest() for text in texts)
    path = folder(tmp_path / "данные", {C: rows, T: [{"query_id": "q1"}]})
    assert validated(path)["fingerprints"]["corpus"] == hashlib.sha256(b"".join(digests)).hexdigest()


# Sparing memory does not change what is found


def test_validating_finds_what_reading_finds(tmp_path):
    rows = [
        {
            "_id": f"d{n}",
            "text": f"текст {n}",
            "metadata": {"n": n, "valid_from": "2025-01-01"},
            "acl": {"allow": ["public"]},
        }
        for n in range(50)
    ]
    files = {
        C: rows, Q: [QUERIES[0] | {"as_of": "2025-02-01"}, {"_id": "q2", "text": "?"}],
        T: [{"query_id": "q1", "alternatives": [[{"doc_id": "d7", "start": 0, "end": 5}]]}],
        "qrels/test.tsv": "q2\td9\t2\nq1\td8\t1\n",
    }  # fmt: skip
    path = folder(tmp_path / "данные", files)
    for mode in ("none", "any", "all"):
        source = Folder(str(path), "test", mode, 1, "nobody", True, None)
        whole, spared = source.read(), source.checked(sparing=True).dataset
        assert whole.fingerprints == spared.fingerprints
        assert whole.counts == spared.counts
        assert whole.truths == spared.truths
        assert len(whole.documents) == 50
        assert {document.id for document in spared.documents} == {"d7"} | ({"d8", "d9"} if mode != "none" else set())
        assert [document.text for document in spared.documents if document.text] == ["текст 7"]


VALUES = st.one_of(st.none(), st.booleans(), st.integers(-5, 5), st.floats(allow_nan=False), st.text(max_size=5))
NESTED = st.recursive(
    VALUES, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner), max_leaves=6
)
LINES = st.fixed_dictionaries(
    {"_id": st.sampled_from(["d3", "", "d2"]) | VALUES, "text": st.text(max_size=9) | VALUES},
    optional={
        "title": st.text(max_size=5) | NESTED,
        "metadata": st.dictionaries(
            st.sampled_from(["n", "valid_from", "valid_to"]), st.sampled_from(["2025-01-01", "2026-01-01"]) | NESTED
        )
        | NESTED,
        "acl": st.dictionaries(
            st.sampled_from(["allow", "deny", "x"]), st.lists(st.sampled_from(["a", "", 1, "group:b"]))
        )
        | NESTED,
        "extra": NESTED,
    },
)


@given(LINES)
def test_the_quick_look_at_a_line_takes_none_that_breaks_a_rule_and_none_otherwise_than_rule_by_rule(line):
    from ablate.dataset import corpus as module
    from ablate.dataset.problems import Problems

    text = json.dumps(line, ensure_ascii=False, allow_nan=True)
    quick, slow = (module.Corpus(True, lambda found: found, Problems()) for _ in range(2))
    for taken in (quick, slow):
        taken.checked(1, '{"_id": "d2", "text": "второй"}')
    slow.checked(2, text)
    if quick.plain(2, text):
        assert not slow.problems.found
        assert quick.digests == slow.digests
        assert (quick.fields, quick.counts, quick.groups, quick.known.lines) == (
            slow.fields, slow.counts, slow.groups, slow.known.lines,
        )  # fmt: skip
        first, second = (list(taken.documents.values())[-1] for taken in (quick, slow))
        assert (first.id, first.text, first.title, first.metadata, first.acl) == (
            second.id, second.text, second.title, second.metadata, second.acl,
        )  # fmt: skip
    else:
        assert not quick.known.lines.get("d3")


def test_a_usual_line_is_taken_at_a_quick_look():
    from ablate.dataset import corpus as module
    from ablate.dataset.problems import Problems

    taken = module.Corpus(True, lambda found: found, Problems())
    metadata = {"valid_from": "2025-01-01", "tags": ["а", "б"], "n": 0.5}
    for line in ({}, {"title": "т"}, {"metadata": metadata}, {"acl": {"allow": ["public"], "deny": []}}, {"acl": None}):
        assert taken.plain(1, json.dumps({"_id": json.dumps(line), "text": "текст"} | line)), line


# Problems are records


def test_a_sentence_of_old_is_a_problem_too():
    error = DatasetError('corpus.jsonl:17: key "text": found null, expected a string; write it in quotes; please')
    expected = Problem("corpus.jsonl", 17, "text", "null", "a string", "write it in quotes; please")
    assert error.problems == (expected,)
    assert sentence(str(expected)) == expected
    assert DatasetError("что-то иное").problems == (Problem("", None, None, "что-то иное", "", ""),)
    assert str(DatasetError("что-то иное")) == "что-то иное"


# A relative folder


def test_a_relative_folder_is_read_again_where_it_is_another_one(tmp_path, monkeypatch):
    from ablate.dataset.once import read_once

    for name in "ab":
        (tmp_path / name).mkdir()
        folder(tmp_path / name / "данные", corpus({"_id": name, "text": name}))
    source = Folder("данные", "test", "none", 1, "nobody", True, None)
    read = []
    for name in "aab":
        monkeypatch.chdir(tmp_path / name)
        read.append(read_once(source))
    assert [dataset.documents[-1].id for dataset in read] == ["a", "a", "b"]
    assert read[0] is read[1]


def test_validating_loads_no_model_library(tmp_path):
    path = folder(tmp_path / "данные")
    code = (
        "import sys; from ablate.__main__ import main; "
        f"code = main(['dataset', 'validate', {str(path)!r}]); "
        "sys.exit(code or ' '.join(sys.modules.keys() & {'torch', 'mlflow', 'faiss', 'scipy', 'hydra'}) or 0)"
    )
    environment = {"PYTHONPATH": os.pathsep.join(sys.path), "PYTHONUTF8": "1"}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment, check=False)
    assert done.returncode == 0, done.stderr
