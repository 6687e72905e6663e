"""A sentence of a document that nobody who asks may read is in nothing that a command says or leaves behind."""

import json
import subprocess
from dataclasses import dataclass

import cli
import pytest
from cli import QUIET, ablate, put, runs, workshop
from hypothesis import given
from hypothesis import strategies as st

from ablate.__main__ import commands
from ablate.dataset import Folder
from ablate.quotation import LEFT_OUT, plain, quotes, told

CANARY = "канарейка поёт в закрытой шахте номер семь"
"""The words of the forbidden document's text."""

NAME, NOTE = "Шахта под зданием совета", "подпись председателя совета под планом"
"""Its title and a text of its metadata."""

OWN = "смету на ремонт знает только отдел закупок"
"""Words that some of those who ask may read, and others may not."""

OPEN = "отпуск длится 28 календарных дней"
"""Words that everybody may read."""

SECRETS = (CANARY, NAME, NOTE, OWN)


@dataclass(frozen=True)
class Telling:
    """Any component: it fails, and its error quotes all that it was given."""

    def __call__(self, *given):
        raise ValueError(f"не могу: {given}")

    def index(self, chunks, embedder):
        raise ValueError(f"не могу: {[chunk.reading for chunk in chunks]}")

    def documents(self, texts):
        raise ValueError("не могу: " + " / ".join(texts))

    queries = documents


@dataclass(frozen=True)
class Late(Telling):
    """It fails when it is asked, and not when it is built."""

    def index(self, chunks, embedder):
        def search(query, allowed, depth):
            try:
                raise KeyError(*(chunk.text for chunk in chunks))
            except KeyError as error:
                raise RuntimeError("не нашёл") from error

        return search


CONF = {
    f"{group}/{name}.yaml": f"_target_: test_canary.{name.title()}\n"
    for group in ("chunker", "embedder", "retriever", "reranker", "packer")
    for name in ("telling", "late")
}


@pytest.fixture
def work(tmp_path, monkeypatch):
    """A corpus in which one document is for the boss alone, whom no question is of, and one for purchasing."""
    workshop(tmp_path, monkeypatch)
    monkeypatch.setenv("ABLATE_MODULES", "fakes")
    put(tmp_path / "conf", CONF)
    secret = {"title": NAME, "metadata": {"note": NOTE, "год": 2025}, "acl": {"allow": ["user:boss"]}}
    cli.dataset(
        tmp_path / "data",
        [
            {"_id": "секрет", "text": f"отпуск и ремонт, remote work: {CANARY}.", **secret},
            {"_id": "смета", "text": f"{OWN}, и никто больше.", "acl": {"allow": ["group:закупки"]}},
            {"_id": "отпуск", "title": "Правила", "text": f"{OPEN} в году.", "acl": {"allow": ["public"]}},
            {"_id": "ремонт", "text": "ремонт бывает летом, отпуск тоже.", "acl": {"allow": ["public"]}},
        ],
        [
            {"_id": "q-ремонт", "text": "ремонт и смета", "principals": ["user:boris"], "filter": {}},
            {"_id": "q-отпуск", "text": "сколько длится отпуск", "principals": ["user:anna"]},
            {"_id": "q-шахта", "text": "канарейка", "principals": ["user:anna"]},
        ],
        [
            {
                "query_id": "q-отпуск",
                "alternatives": [[{"doc_id": "отпуск", "quote": OPEN}], [{"doc_id": "секрет", "quote": CANARY}]],
            },
            {"query_id": "q-ремонт", "alternatives": [[{"doc_id": "смета", "quote": OWN}]]},
            {"query_id": "q-шахта", "alternatives": [[{"doc_id": "ремонт"}]]},
        ],
    )
    put(tmp_path, {"data/groups.jsonl": json.dumps({"_id": "group:закупки", "members": ["user:boris"]}) + "\n"})
    return tmp_path


def leaks(work, *said):
    """Where a secret stands, in what was said or in a file outside the dataset itself."""
    files = [path for path in work.rglob("*") if path.is_file() and path.relative_to(work).parts[0] != "data"]
    assert len(files) > 3
    texts = {"said": "\n".join(f"{each.out}\n{each.err}" for each in said).encode()}
    texts |= {path.relative_to(work).as_posix(): path.read_bytes() for path in files}
    forms = {word: written(word) for word in SECRETS}
    return [
        (name, word) for name, text in texts.items() for word in SECRETS if any(form in text for form in forms[word])
    ]


def written(words):
    """The ways in which words can stand in a file: plainly, as JSON that is all ASCII, as Python shows bytes."""
    return {words.encode(), json.dumps(words)[1:-1].encode(), words.encode("utf-16-le"), repr(words.encode()).encode()}


def ran(*words):
    said = ablate(*QUIET, "dataset.dir=data", *words)
    assert said.code == 0, said
    return said


def test_runs_and_what_is_said_about_them_hold_no_text_that_not_everybody_may_read(work):
    said = [ran("+variant=hybrid"), ran("+variant=metadata_filters"), ran("+variant=context_packing")]
    said += [ran("access=postfilter", "+variant=chunking_parent_child"), ran("retriever=bm25", "latency=sample")]
    found = runs()
    said += [ablate("compare"), ablate("compare", "--json"), ablate("compare", "--markdown")]
    said += [ablate("index", "list", "--json")]
    study = found["hybrid"].parent.name
    said += [ablate("compare", "--study", study, "--json")]
    pair = [found["hybrid"].name, cli.facts(found["hybrid"])["baseline"]]
    said += [ablate("compare", *pair)]
    for kind in (["--out", "s.csv"], ["--out", "s.jsonl"], ["--out", "c.jsonl", "--expert"]):
        said += [ablate("review", "export", *pair, *kind, "--principals", "user:anna")]
    if "lineage" in commands():
        said += [ablate("lineage", pair[0]), ablate("lineage", *pair, "--json")]
    if "reproduce" in commands():
        said += [ablate("reproduce", pair[1])]
    said += [
        ablate("power", *QUIET, "dataset.dir=data"),
        ablate("interact", "hybrid", "mmr", *QUIET, "dataset.dir=data"),
    ]
    assert {each.code for each in said} == {0}, [each for each in said if each.code]
    reports = [word for kind in ("junit", "markdown") for word in (f"--{kind}", f"gate.{kind}")]
    said += [ablate("gate", pair[0], *words) for words in (reports, ["--policy", "lenient"], ["--json"])]
    said += [ablate("power", "--again", *QUIET, "dataset.dir=data")]
    assert len(list(work.glob("experiments/runs/*/*/decision*.json"))) == 3
    assert (work / "experiments/decisions.jsonl").stat().st_size > 100
    assert (work / "s.csv").stat().st_size > 100
    there = {path.name for path in work.rglob("*") if path.is_file() and path.stat().st_size}
    assert there >= {*KEPT, "gate.junit", "gate.markdown"}
    assert leaks(work, *said) == []


KEPT = (
    "ledger.jsonl",
    "compact.jsonl",
    "comparison.md",
    "queries.jsonl",
    "ranking.jsonl",
    "inputs.json",
    "decision.md",
)

FAILS = [f"{group}=telling" for group in ("chunker", "embedder", "retriever", "reranker", "packer")]


@pytest.mark.parametrize("word", [*FAILS, "retriever=late", "packer=late"])
def test_a_component_that_fails_quotes_nothing_that_not_everybody_may_read(work, word):
    said = ablate("--config-dir", "conf", "embedder=hash", "latency=off", "tracking=off", "dataset.dir=data", word)
    assert said.code == 1, said
    more = [ablate("compare"), ablate("compare", "--json"), ablate("gate", "baseline"), ablate("reproduce", "baseline")]
    overrides = ("--config-dir", "conf", "embedder=hash", "latency=off", "tracking=off", "dataset.dir=data", word)
    more += [ablate("power", *overrides), ablate("interact", "metadata_filters", "mmr", *overrides)]
    assert [each.code for each in more[2:5]] == [2, 2, 0], more  # how many queries it takes is told without a run
    assert more[5].code in (1, 2)
    assert "ValueError" in said.err or "RuntimeError" in said.err
    assert leaks(work, said, *more) == []


def test_without_access_its_texts_are_nowhere_either_and_reviewers_get_none_of_them(work):
    said = [ran("access=off"), ran("retriever=bm25")]
    pair = sorted(path.parent.name for path in work.glob("experiments/runs/*/*/run.json"))
    said += [ablate("review", "export", *pair, "--out", "s.csv", "--principals", "user:anna")]
    said += [ablate("review", "export", *pair, "--out", "c.jsonl", "--expert", "--principals", "user:anna")]
    assert [each.code for each in said] == [0, 0, 0, 0], said
    said += [
        ran("access=prefilter", "+variant=metadata_filters"),
        ablate("power", *QUIET, "dataset.dir=data", "access=off"),
    ]
    leaking = next(path for path in map(cli.facts, work.glob("experiments/runs/*/*/")) if not path["component"])
    for name in (leaking["run"], runs()["metadata_filters"].name):
        said += [ablate("gate", name, "--against", pair[0], "--junit", "g.xml", "--markdown", "g.md")]
        said += [ablate("lineage", name, pair[0])]
    assert "FORBIDDEN" in said[0].out
    assert leaks(work, *said) == []


@pytest.mark.parametrize("word", ["chunker=telling", "embedder=telling"])
def test_a_study_that_is_only_estimated_quotes_nothing_either(work, word):
    ran()
    said = ablate(*QUIET, "dataset.dir=data", "dry_run=true", word)
    assert said.code == 0, said
    assert leaks(work, said) == []


def test_uncommitted_changes_of_documents_are_not_kept(work):
    put(work, {"docs/план.md": "черновик", "own.py": "x = 1", "sheet.csv": "a"})
    for words in (["init", "-q"], ["add", "docs", "own.py", "sheet.csv"]):
        subprocess.run(["git", *words], check=True, capture_output=True)
    who = ["-c", "user.name=a", "-c", "user.email=b"]
    subprocess.run(["git", *who, "commit", "-qm", "c"], check=True, capture_output=True)
    put(work, {"docs/план.md": CANARY, "own.py": "x = 2", "sheet.csv": OWN})
    ran()
    environment = (runs()["baseline"] / "environment.json").read_text(encoding="utf-8")
    assert "+x = 2" in environment
    assert CANARY not in environment
    assert OWN not in environment


@pytest.mark.slow
def test_mlflow_holds_no_text_that_not_everybody_may_read(work):
    local = [word for word in QUIET if word != "tracking=off"]
    said = [ablate(*local, "dataset.dir=data", "tracking=mlflow", "+variant=access_postfilter")]
    said += [ablate(*local, "dataset.dir=data", "tracking=mlflow", word) for word in ("access=off", *FAILS[:3])]
    said += [ablate("sync"), ablate("sync", "--uri", f"sqlite:///{work}/other.db", "--log-text")]
    assert [each.code for each in said] == [0, 0, 1, 1, 1, 0, 0], said
    assert any("artifacts" in path.parts for path in work.rglob("*"))
    assert (work / "other.db").is_file()
    assert leaks(work, *said) == []


# What may be told of an error.


def secretive(folder, text, acl=True, **more):
    """A dataset of one document, for the boss alone or for everybody."""
    row = {"_id": "д", "text": text, **({"acl": {"allow": ["user:boss"]}} if acl else {}), **more}
    cli.dataset(folder, [row], [{"_id": "q", "text": "?", "principals": ["user:boss"]}])
    return Folder(str(folder), "test", "none", 1, "nobody", True, None).read()


LONG = "Пункт 7: смету на ремонт\nзнает только отдел закупок.\tБольше никто"

TOLD = {
    "the text": (LONG, True),
    "a part of it": (LONG[9:42], True),
    "its repr": (repr([LONG]), True),
    "as JSON": (json.dumps(LONG), True),
    "another text": ("Смета неизвестна, а ремонт ещё не начат", False),
    "few of its words": ("смету на ремонт не нашли", False),
    "the title": (f"не читается: {NAME}", True),
    "its metadata": (f"не читается: {NOTE}", True),
    "nothing": ("", False),
}


@pytest.mark.parametrize("words", TOLD)
def test_an_error_is_told_unless_it_quotes_a_document(tmp_path, words):
    message, kept_back = TOLD[words]
    dataset = secretive(tmp_path, LONG, title=NAME, metadata={"note": ["x", NOTE]})
    told = caught(ValueError(message), dataset)
    assert told.reason == f"ValueError: {LEFT_OUT if kept_back else message}"
    assert (message in told.trace) != kept_back or not message
    assert "in caught" in told.trace, "where it happened is told in any case"


def caught(error, dataset):
    try:
        raise error
    except Exception as found:
        return told(found, dataset)


def test_every_word_of_a_public_corpus_may_be_told(tmp_path):
    assert caught(ValueError(LONG), secretive(tmp_path, LONG, acl=False)).reason == f"ValueError: {LONG}"
    assert caught(ValueError(LONG), None).reason == f"ValueError: {LONG}"


def test_a_short_document_is_a_quotation_as_a_whole(tmp_path):
    dataset = secretive(tmp_path, "пароль: мышь")
    assert caught(ValueError("найдено 'пароль: мышь'"), dataset).reason == f"ValueError: {LEFT_OUT}"
    assert caught(ValueError("найдено 'пароль: слон'"), dataset).reason == "ValueError: найдено 'пароль: слон'"


def test_what_an_error_came_from_and_its_notes_are_looked_through_too(tmp_path):
    dataset = secretive(tmp_path, LONG)
    outer = RuntimeError("не вышло")
    outer.__cause__ = KeyError(LONG)
    noted = RuntimeError("не вышло")
    noted.add_note(LONG)
    for error in (outer, noted):
        found = caught(error, dataset)
        assert found.reason == "RuntimeError: не вышло"
        assert LONG[:20] not in found.trace
        assert found.trace.endswith("RuntimeError: не вышло")


@given(st.integers(0, 200), st.integers(27, 60))
def test_no_piece_of_27_characters_is_overlooked(start, length):
    text = plain("".join(f"{number} слово, " for number in range(60)))
    assert quotes(f"не могу: {text[start : start + length]}!", [text])


def test_a_long_error_is_cut_after_what_was_looked_through(tmp_path):
    reason = caught(ValueError("ы" * 5000), secretive(tmp_path, LONG)).reason
    assert reason == f"ValueError: {'ы' * 2000} ... (cut)"
