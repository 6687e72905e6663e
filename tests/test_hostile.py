"""What came from elsewhere is data: nothing in a workspace that was sent runs, is followed, or is written through."""

from __future__ import annotations

import ast
import gzip
import json
import logging
import os
import pickle
import shutil
import sqlite3
import struct
import sys
import time
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace

import cli
import pytest
import tiny_models
import yaml
from cli import ablate, put, quiet, runs

import ablate as package
from ablate import logged, records, tracking, weights
from ablate.errors import AblateError
from ablate.files import BrokenRecord
from ablate.importer import source
from ablate.shelf import Shelf

KEY, VALUE = b"k" * 16, b"value"


class Boom:
    """Unpickled, it leaves a file."""

    def __reduce__(self):
        return os.system, ("touch boom",)


PAYLOAD = pickle.dumps(Boom())
EVIL = "from pathlib import Path\nPath('boom').touch()\nclass Boom: ...\n"


@pytest.fixture
def work(tmp_path, monkeypatch):
    return cli.workshop(tmp_path, monkeypatch)


@pytest.fixture
def data(work):
    return f"dataset.dir={cli.small(work / 'данные')}"


# Files that would run when they are read


def test_a_payload_that_is_unpickled_would_show(work):
    pickle.loads(PAYLOAD)
    assert (work / "boom").exists()


LINES = ("reproduce", "lineage", "gate", "compare", "review export")
RECORD = ("run.json", "config.yaml", "overrides.yaml", "changes.json", "metrics.json", "queries.jsonl", "ranking.jsonl")
KEPT = ("compact.jsonl", "inputs.json", "ledger.jsonl", "environment.json", "tracking.json", "latency.jsonl")
HYDRA = (".hydra/config.yaml", ".hydra/hydra.yaml", ".hydra/overrides.yaml")


@pytest.mark.slow
@pytest.mark.parametrize("name", [*RECORD, *KEPT, *HYDRA])
def test_no_command_unpickles_a_file_of_a_run(work, data, name):
    assert quiet("+variant=bm25", data).code == 0
    found = runs()
    run, base = found["bm25"].name, found["baseline"].name
    path = found["bm25"] / name
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(PAYLOAD)
    asked = [["compare"], ["compare", "--json"], ["reproduce", run], ["lineage", run, base], ["gate", run], ["sync"]]
    asked += [["rescore", "--dataset", "данные", run], ["review", "export", run, base, "--out", "лист.csv"]]
    for words in asked[:-3] if name in HYDRA else asked[:5]:
        said = ablate(*words)
        assert "Traceback" not in said.err, words
    assert quiet("+variant=bm25", data).code in (0, 2)
    assert not (work / "boom").exists()


@pytest.mark.parametrize("name", ["vectors/x.sqlite", "vectors/x.npy", "x.pkl", "bm25/index.json", "x.faiss"])
def test_no_command_unpickles_a_file_among_the_indexes(work, data, name):
    assert quiet(data).code == 0
    path = work / "indexes" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(PAYLOAD)
    for words in (["index", "list"], ["index", "verify"], ["doctor"], ["index", "prune"]):
        assert "Traceback" not in ablate(*words).err
    assert quiet("+variant=bm25", data).code == 0
    assert not (work / "boom").exists()


UNSAFE = {"pickle", "marshal", "shelve", "dill", "joblib", "cloudpickle"}
TALKS_TO_ITSELF = "extraction/apart.py"
"""Both ends of its pipe are this program."""


def test_the_source_reads_nothing_that_could_run():
    folder = Path(package.__file__).parent
    for path in folder.rglob("*.py"):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        nodes = list(ast.walk(tree))
        named = {alias.name.partition(".")[0] for node in nodes if isinstance(node, ast.Import) for alias in node.names}
        named |= {str(node.module).partition(".")[0] for node in nodes if isinstance(node, ast.ImportFrom)}
        assert path.relative_to(folder).as_posix() == TALKS_TO_ITSELF or not named & UNSAFE, path
        calls = {ast.unparse(node.func) for node in nodes if isinstance(node, ast.Call)}
        assert not calls & {"eval", "exec", "yaml.unsafe_load", "yaml.full_load", "torch.load", "np.load"}, path


# Kept work that is not what it seems


@pytest.fixture
def kept(tmp_path):
    shelf = Shelf.of(tmp_path, "vectors", "revision", "модель")
    shelf.path.parent.mkdir(parents=True)
    return shelf


def computed(shelf):
    """Whether a value had to be computed; it is right in any case."""
    asked = []
    found = list(shelf.kept([KEY], lambda places: [asked.append(place) or VALUE for place in places]))
    assert found == [(0, VALUE, bool(asked))]
    return bool(asked)


def test_a_link_among_the_indexes_is_not_followed(kept, tmp_path, caplog):
    other = tmp_path / "чужое.sqlite"
    with closing(sqlite3.connect(other)) as database:
        database.execute("CREATE TABLE own (text)")
    before = other.read_bytes()
    kept.path.symlink_to(other)
    with caplog.at_level(logging.WARNING):
        assert computed(kept)
    assert [record.getMessage() for record in caplog.records if "a link to another place" in record.getMessage()]
    assert other.read_bytes() == before
    assert not kept.path.is_symlink()
    assert not computed(kept)


ENDLESS = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT x, x, x FROM n"


@pytest.mark.parametrize("end", ["", "-journal", "-wal", "-shm"])
@pytest.mark.parametrize("kind", ["link", "pipe"])
def test_what_is_no_file_is_not_opened_and_nothing_is_written_through_it(kept, tmp_path, caplog, end, kind):
    kept.write({KEY: b"other"})
    (other := tmp_path / "чужое").write_bytes(b"precious " * 1000)
    strange = Path(f"{kept.path}{end}")
    strange.unlink(missing_ok=True)
    strange.symlink_to(other) if kind == "link" else os.mkfifo(strange)
    assert kept.glance([KEY], "").rows == 0
    with pytest.raises(AblateError, match="expected a database that is whole"):
        kept.check()
    with caplog.at_level(logging.WARNING):
        assert computed(kept)
    assert len(caplog.records) == 1
    assert other.read_bytes() == b"precious " * 1000
    assert not computed(kept)


def test_a_journal_that_names_another_file_does_not_delete_it(kept, tmp_path, caplog):
    kept.write({KEY: VALUE})
    (victim := tmp_path / "чужое").write_bytes(b"names no journal\0")
    name, mark = bytes(victim), bytes.fromhex("d9d505f920a163d7")
    size = kept.path.stat().st_size // 4096
    head = (mark + struct.pack(">5I", 0, 0, size, 512, 4096)).ljust(512, b"\0")
    total = sum(struct.unpack(f"{len(name)}b", name)) & 0xFFFFFFFF
    end = struct.pack(">I", 2**30 // 4096 + 1) + name + struct.pack(">2I", len(name), total) + mark
    Path(f"{kept.path}-journal").write_bytes(head + end)
    assert kept.glance([KEY], "").rows == 0
    with pytest.raises(AblateError, match="a journal that names other files"):
        kept.check()
    with caplog.at_level(logging.WARNING):
        assert computed(kept)
    assert victim.exists()
    shutil.copy(f"{kept.path}.broken", kept.path)
    Path(f"{kept.path}-journal").write_bytes(head + end)
    with closing(sqlite3.connect(kept.path)) as connection:
        connection.execute("SELECT count(*) FROM rows").fetchone()
    assert not victim.exists()  # it is what sqlite does, where nobody looks first


def test_a_folder_among_the_indexes_that_is_a_link_is_neither_listed_nor_emptied_nor_written_to(work, data):
    assert quiet(data, "embedder=counted").code == 0
    elsewhere, folder = work / "чужое", work / "indexes/vectors"
    elsewhere.mkdir()
    (own := elsewhere / "photos.sqlite").write_bytes(b"precious")
    (other := elsewhere / "photos.sqlite.broken").write_bytes(b"precious")
    shutil.rmtree(folder)
    folder.symlink_to(elsewhere)
    for words in (["index", "list"], ["index", "verify"], ["index", "prune"]):
        said = ablate(*words)
        assert (said.code, "photos" in said.out) == (0, False)
    said = quiet(data, "embedder=counted", "rerun=true")
    assert said.code == 2
    assert f"{folder}: found a link to another place, expected a folder; remove it" in said.err
    assert sorted(elsewhere.iterdir()) == [own, other]


@pytest.mark.parametrize(
    "made",
    [
        "DROP TABLE rows; CREATE VIEW rows AS " + ENDLESS,
        "DROP TABLE about; CREATE VIEW about AS " + ENDLESS,
        "CREATE TRIGGER t AFTER INSERT ON rows BEGIN DELETE FROM rows; END",
        "DROP TABLE rows; CREATE VIRTUAL TABLE rows USING fts5(key, value, checksum)",
        "DROP TABLE rows; CREATE TABLE rows (key BLOB PRIMARY KEY, value, checksum AS (hex(zeroblob(400000000))))",
        "CREATE INDEX i ON rows (length(hex(zeroblob(100000000))))",
    ],
    ids=["view of rows", "view of itself", "trigger", "virtual table", "computed column", "computed index"],
)
def test_a_file_that_does_more_than_hold_rows_is_set_aside(kept, made, caplog):
    kept.write({KEY: b"other"})
    with closing(sqlite3.connect(kept.path)) as database:
        database.executescript(made)
    assert kept.glance([KEY], "") == type(kept.glance([], ""))()
    with caplog.at_level(logging.WARNING):
        assert computed(kept)
    assert len(caplog.records) == 1
    assert not computed(kept)


# Models that a config names


@pytest.mark.parametrize("kind", ["evil.Boom", "modeling_evil.Boom", "os.system"])
def test_a_model_folder_cannot_name_code_to_run(work, data, monkeypatch, kind):
    model = tiny_models.embedder(work / "модель")
    modules = json.loads((model / "modules.json").read_text())
    modules.append({"idx": len(modules), "name": "2", "path": "2_Boom", "type": kind})
    put(
        model,
        {"modules.json": json.dumps(modules), "evil.py": EVIL, "modeling_evil.py": EVIL, "2_Boom/config.json": "{}"},
    )
    put(work, {"evil.py": EVIL})
    monkeypatch.syspath_prepend(work)
    weights.find.cache_clear()
    said = quiet(data, "embedder=sentence_transformer", "embedder.model=модель")
    assert said.code in (1, 2), said
    assert "evil" not in sys.modules
    assert not (work / "boom").exists()


def test_weights_that_are_a_pickle_do_not_run(work, data):
    model = tiny_models.embedder(work / "модель")
    for path in model.glob("*.safetensors"):
        path.unlink()
    (model / "pytorch_model.bin").write_bytes(PAYLOAD)
    weights.find.cache_clear()
    said = quiet(data, "embedder=sentence_transformer", "embedder.model=модель")
    assert said.code in (1, 2), said
    assert not (work / "boom").exists()


# Links in a workspace that was sent


@pytest.mark.parametrize("name", ["metrics.json", "queries.jsonl", "compact.jsonl", "ledger.jsonl"])
def test_a_file_of_a_run_that_is_a_link_is_not_sent_anywhere(work, data, name):
    assert quiet(data).code == 0
    (work / "тайна").write_text("SECRET", encoding="utf-8")
    path = runs()["baseline"] / name
    path.unlink()
    path.symlink_to(work / "тайна")
    for words in (["compare"], ["lineage", runs()["baseline"].name]):
        said = ablate(*words)
        assert "Traceback" not in said.err
        assert "SECRET" not in said.out + said.err
    assert path not in records.read(path.parent).files  # which is what a store gets


# Records that came from elsewhere


ALIASES = "a: &a [x, x, x, x, x, x, x, x, x, x]\n" + "\n".join(
    f"{b}: &{b} [{', '.join([f'*{a}'] * 10)}]" for a, b in zip("abcdefgh", "bcdefghi", strict=True)
)
STRANGE = {
    "deep": b"[" * 100_000,
    "deep objects": b'{"a":' * 100_000,
    "aliases": ALIASES.encode(),
    "an object of Python": b"!!python/object/apply:os.system ['touch boom']",
    "a list of lists": b"[[]]\n",
    "a number": b"7",
    "no text": b"\xff\xfe\x00",
    "a pickle": PAYLOAD,
}
READ = {
    **dict.fromkeys(("config", "overrides"), "yaml"),
    **dict.fromkeys(("changes", "metrics", "environment", "inputs"), "json"),
    **dict.fromkeys(("queries", "ranking", "ledger", "compact"), "jsonl"),
}


@pytest.mark.parametrize("name", READ)
@pytest.mark.parametrize("what", ["link", "pipe", *STRANGE])
def test_a_file_of_a_run_that_is_something_else_is_a_sentence(tmp_path, monkeypatch, name, what):
    monkeypatch.chdir(tmp_path)
    facts = dict.fromkeys(records.REQUIRED, "x") | {"started": "2026-03-01", "fingerprints": {}, "status": "finished"}
    run = records.write(tmp_path / "run", {"run.json": facts, "metrics.json": {}, "queries.jsonl": []})
    path = run.folder / f"{name}.{READ[name]}"
    path.unlink(missing_ok=True)
    if what == "link":
        path.symlink_to("/dev/zero")
    elif what == "pipe":
        os.mkfifo(path)
    else:
        path.write_bytes(STRANGE[what])
    with pytest.raises(BrokenRecord, match=rf"{name}\.{READ[name]}: found .+, expected "):
        getattr(run, name)
    assert not (tmp_path / "boom").exists()


@pytest.mark.slow
@pytest.mark.parametrize("name", [*RECORD, *KEPT])
def test_whatever_a_file_of_a_run_is_every_command_ends_with_a_sentence(work, data, name):
    assert quiet("+variant=bm25", data).code == 0
    run, base = runs()["bm25"], runs()["baseline"].name
    asked = [["compare"], ["lineage", run.name, base], ["gate", run.name], ["index", "list"], ["doctor"]]
    asked += [["rescore", "--dataset", "данные", run.name], ["reproduce", run.name]]
    asked += [["review", "export", run.name, base, "--out", "лист.csv"], [*cli.QUIET, "+variant=bm25", data]]
    path = run / name
    for what in ("deep", "a list of lists", "a number"):
        path.write_bytes(STRANGE[what])
        for words in asked:
            said = ablate(*words)
            assert said.code in (0, 1, 2), (what, words)
            assert "Traceback" not in said.err, (what, words)
            assert len(said.out + said.err) < 20_000, (what, words)
    assert not (work / "boom").exists()


# Files that explode when they are read


@pytest.mark.parametrize("text", [ALIASES, "a: &a [*a]", "&a {prices: *a}"], ids=["tree", "circle", "mapping"])
def test_aliases_of_a_contract_that_stand_for_too_much_are_refused_before_they_are_written_out(work, data, text):
    put(work / "данные", {"contract.yaml": text})
    began = time.monotonic()
    said = quiet(data)
    assert said.code == 2
    assert "contract.yaml: found aliases that stand for more than 50000 values, expected a YAML mapping" in said.err
    said = ablate("dataset", "validate", "данные")
    assert (said.code, "aliases that stand for more than" in said.out) == (2, True), said
    assert time.monotonic() - began < 20


def test_aliases_of_a_policy_that_stand_for_too_much_are_one_short_sentence(work, data):
    assert quiet("+variant=bm25", data).code == 0
    put(work, {"p.yaml": ALIASES, "q.yaml": ALIASES.replace("a: &a", "doubt: &a", 1)})
    for name in ("p.yaml", "q.yaml"):
        said = ablate("gate", "bm25", "--policy", name)
        assert (said.code, len(said.err) < 1000) == (2, True)
        assert "found an unknown rule" in said.err


def test_an_archive_that_explodes_is_not_unpacked_to_its_end(work, monkeypatch):
    monkeypatch.setattr(source, "UNPACKED_BYTES", 2**20)
    bomb = gzip.compress(b" " * 2**24)
    put(work, {"beir/queries.jsonl": '{"_id": "q", "text": "x"}', "beir/qrels/test.tsv": "", "squad.json": ""})
    (work / "beir/corpus.jsonl").write_bytes(bomb)
    (work / "squad.json").write_bytes(bomb)
    for words in (["beir", "beir"], ["squad", "squad.json"]):
        said = ablate("dataset", "import", *words, "новое")
        assert said.code == 2
        assert "found a gzip file that unpacks to more than 30 times its size, expected a file to read" in said.err
        assert not (work / "новое").exists()


# A server


NAMES = ("../../../../../x", "/tmp/x", "..", "a\nb", "\x1b[31mred", "a\0b", "x" * 300)


@pytest.mark.parametrize("key", ["run", "study", "variant", "dataset", "component", "baseline"])
def test_names_in_a_record_are_no_paths_and_move_no_cursor(tmp_path, monkeypatch, key):
    (work := tmp_path / "a/b/c").mkdir(parents=True)
    cli.workshop(work, monkeypatch)
    cli.small(work / "данные")
    shutil.copytree("данные", "новее")
    truth = Path("новее/ground_truth.jsonl")
    truth.write_text(truth.read_text(encoding="utf-8").replace("28 календарных", "календарных"), "utf-8")
    assert quiet("+variant=bm25", "dataset.dir=данные").code == 0
    run, base = runs()["bm25"], runs()["baseline"].name
    known = cli.facts(run)
    for bad in NAMES:
        (run / "run.json").write_text(json.dumps({**known, key: bad}), encoding="utf-8")
        asked = [["compare"], ["gate", run.name], ["gate", bad], ["reproduce", str(run)], ["lineage", str(run)]]
        asked += [["rescore", "--dataset", "новее", name] for name in (run.name, bad)]
        for words in (*asked, ["review", "export", run.name, base, "--out", "лист.csv"]):
            said = ablate(*words)
            assert said.code in (0, 1, 2), (bad, words)
            assert "Traceback" not in said.err, (bad, words)
            assert not {"\x1b", "\0"} & set(said.out + said.err), (bad, words)
    assert [path.name for path in tmp_path.iterdir()] == ["a"]
    assert {path.name for path in work.iterdir()} <= {
        "conf", "данные", "новее", "experiments", "indexes", "лист.csv", "лист.csv.key.json",
    }  # fmt: skip


class Server:
    """What stands for a server: it names files as it likes, and sends what it likes."""

    def __init__(self, files, sizes=0):
        self.files, self.sizes, self.asked = files, sizes, []

    def list_artifacts(self, run):
        names = [*self.files, "../../evil.py", "/tmp/evil.py", "a/../../evil.py"]
        return [SimpleNamespace(path=name, file_size=self.sizes) for name in names]

    def download_artifacts(self, run, name, folder):
        self.asked.append(name)
        content = self.files[name]
        Path(folder, name).write_bytes(content if isinstance(content, bytes) else content.encode())


def served(monkeypatch, files, sizes=0):
    server = Server(files, sizes)
    monkeypatch.setattr(tracking.Store, "client", lambda store: server)
    return server


WORDS = (["reproduce", "0" * 32, "--uri", "http://x"], ["lineage", "0" * 32, "--uri", "http://x"])


@pytest.mark.slow
@pytest.mark.parametrize("name", [*RECORD, "inputs.json", "environment.json"])
def test_what_a_server_sends_is_data(work, data, monkeypatch, name):
    assert quiet(data).code == 0
    run = runs()["baseline"]
    whole = {path.name: path.read_bytes() for path in records.read(run).files if path.name in logged.FILES}
    put(work, {"evil.py": EVIL})
    monkeypatch.syspath_prepend(work)
    hostile = yaml.safe_load(whole["config.yaml"])
    hostile["retriever"] = {"_target_": "evil.Boom"}
    config = [yaml.safe_dump(hostile)] if name == "config.yaml" else []
    before = cli.everything(work)
    for content in (*STRANGE.values(), PAYLOAD, *config):
        server = served(monkeypatch, {**whole, name: content})
        for words in WORDS:
            said = ablate(*words)
            assert said.code in (0, 1, 2)
            assert "Traceback" not in said.err, (words, content[:40])
            assert len(said.out + said.err) < 20_000
        assert set(server.asked) <= logged.FILES.keys()
    assert "evil" not in sys.modules
    assert cli.everything(work) == before


def test_a_file_of_a_server_that_is_larger_than_it_said_is_not_read(work, monkeypatch):
    monkeypatch.setitem(logged.FILES, "run.json", 10)
    served(monkeypatch, {"run.json": json.dumps({"run": "x" * 20})}, 1)
    for words in WORDS:
        said = ablate(*words)
        assert (said.code, "run.json: found 31 bytes, expected at most 10" in said.err) == (2, True), said
    server = served(monkeypatch, {"run.json": "{}"}, 2**40)
    assert ablate(*WORDS[0]).code == 2
    assert server.asked == []
