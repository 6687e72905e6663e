import hashlib
import logging
import multiprocessing
import os
import sqlite3
import subprocess
import sys
import threading
import time
import tracemalloc
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pytest
import tiny_models
from filelock import FileLock

import ablate
from ablate import shelf, weights
from ablate.embedder import SentenceTransformer
from ablate.errors import AblateError
from ablate.reranker import CrossEncoder, Keep, OnnxCrossEncoder, Pairwise
from ablate.shelf import Shelf, shelves
from ablate.store import Audit, StoredEmbedder, StoredReranker, live, stored
from ablate.types import Chunk, Document, Hit, Query

TEXTS = ["the refund policy", "возврат товара", "", "policy", "the refund policy", "x" * 90, "\ud800"]
PAIRS = [("the refund", "policy"), ("возврат", "товара " * 80), ("the refund", "policy"), ("a", "bc"), ("ab", "c")]


@dataclass(frozen=True)
class Stub:
    """Vectors and pair scores drawn from a hash of the text; it remembers what it was asked to compute."""

    revision: str = "stub"
    first: int = 20
    dimensions: int = 8
    limit: int = 60
    asked: list = field(default_factory=list)
    journal: Path | None = None

    def documents(self, texts):
        self.asked.extend(texts)
        if self.journal:
            with open(self.journal, "a", encoding="utf-8") as lines:
                lines.writelines(f"{text}\n" for text in texts)
        return np.array([self.vector(text) for text in texts], np.float32).reshape(-1, self.dimensions)

    def queries(self, texts):
        return -self.documents(texts)

    def read(self, texts, as_queries=False):
        vectors = self.queries(texts) if as_queries else self.documents(texts)
        return vectors, np.array([min(len(text), self.limit) for text in texts])

    def vector(self, text):
        seed = hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()
        return np.random.default_rng(list(seed)).normal(size=self.dimensions)


@dataclass(frozen=True)
class PairStub(Pairwise):
    revision: str = "pairs"
    first: int = 2
    asked: list = field(default_factory=list)

    def read(self, pairs):
        self.asked.extend(pairs)
        lengths = np.array([len(text) for _, text in pairs])
        return lengths * 1.1, lengths > 60


@pytest.fixture
def folder(tmp_path) -> Path:
    return tmp_path / "индексы и склад"


def file_of(folder: Path) -> Path:
    (path,) = folder.glob("*/*.sqlite")
    return path


def damage(path: Path, change) -> None:
    data = bytearray(path.read_bytes())
    path.write_bytes(change(data))


def test_a_stored_vector_is_the_same_bytes(folder):
    plain, kept = Stub(), stored(Stub(), folder)

    for _ in range(2):
        assert kept.documents(TEXTS).tobytes() == plain.documents(TEXTS).tobytes()
        assert kept.queries(TEXTS).tobytes() == plain.queries(TEXTS).tobytes()
    assert kept.documents(TEXTS).dtype == np.float32


def test_each_unique_text_is_encoded_once_whoever_asks(folder):
    first, second = Stub(), Stub()
    stored(first, folder).documents(TEXTS)
    kept = stored(second, folder)
    kept.documents([*TEXTS[::-1], "new"])

    assert sorted(first.asked) == sorted(set(TEXTS))
    assert second.asked == ["new"]
    assert kept.tally == {"computed": 1, "reused": len(set(TEXTS))}


def test_counts_are_of_unique_texts_however_often_they_are_asked_for(folder):
    kept = stored(Stub(), folder)
    assert kept.tally == {}

    kept.documents(TEXTS)
    kept.truncated(TEXTS)
    kept.documents(TEXTS)

    assert kept.tally == {"computed": len(set(TEXTS)), "reused": 0}


def test_what_the_limit_cut_is_kept_with_the_vector(folder):
    stored(Stub(), folder).documents(TEXTS)
    again = Stub()
    kept = stored(again, folder)

    assert kept.truncated(TEXTS).tolist() == [False, False, False, False, False, True, False]
    assert kept.seen(TEXTS).tolist() == [17, 14, 0, 6, 17, 60, 1]
    assert again.asked == []


def test_a_query_is_not_taken_for_a_document_of_the_same_text(folder):
    kept = stored(Stub(), folder)

    assert np.array_equal(kept.documents(TEXTS), -kept.queries(TEXTS))


def test_other_code_has_a_file_of_its_own(folder, tmp_path, monkeypatch):
    made = [
        SentenceTransformer(str(tiny_models.embedder(tmp_path / "модель")), None, "", "", "float32"),
        CrossEncoder(str(tiny_models.cross_encoder(tmp_path / "пары")), 3, None),
        OnnxCrossEncoder(str(onnx_folder(tmp_path / "onnx")), 3, 64),
    ]
    names = []
    for code in ("старый", "новый"):
        monkeypatch.setattr(weights, "code", lambda component, code=code: code)
        names += [stored(each, folder)._shelf("x").path.name for each in made]

    assert len(set(names)) == 6


def onnx_folder(path):
    path.mkdir()
    (path / "model.onnx").write_bytes(b"weights")
    return path


def test_another_revision_has_a_file_of_its_own(folder):
    stored(Stub("one"), folder).documents(TEXTS)
    other = Stub("other")
    stored(other, folder).documents(TEXTS)

    assert len(other.asked) == len(set(TEXTS))
    assert sorted(each.revision for each in shelves(folder)) == ["one", "other"]
    assert {each.model for each in shelves(folder)} == {"Stub"}


def test_a_file_that_was_copied_over_another_revisions_gives_it_nothing(folder, caplog):
    stored(Stub("one"), folder).documents(TEXTS)
    first = file_of(folder)
    other = Stub("other")
    object.__setattr__(other, "vector", lambda text: np.ones(8))
    first.rename(stored(other, folder)._shelf("vectors").path)

    with pytest.raises(AblateError, match="found 'the work of another revision'"):
        shelves(folder)[0].check()
    assert np.array_equal(stored(other, folder).documents(TEXTS), np.ones((len(TEXTS), 8)))
    assert [record.levelname for record in caplog.records] == ["WARNING"]
    assert "found the work of another revision, set aside" in caplog.text


def test_expected_queries_are_encoded_together_and_live_ones_every_time(folder):
    stub = Stub()
    kept = stored(stub, folder, ["one", "two"])

    assert np.array_equal(kept.queries(["one"]), stub.queries(["one"]))
    assert stub.asked == ["one", "two", "one"]
    with live():
        kept.queries(["one"])
        kept.queries(["one"])
        kept.documents(["one"])
        kept.documents(["one"])
    assert stub.asked[3:] == ["one", "one", "one"]
    kept.queries(["two"])
    assert len(stub.asked) == 6


def test_no_texts_have_the_models_dimensions(folder):
    assert stored(Stub(), folder).documents([]).shape == (0, 8)


def test_a_killed_run_keeps_what_it_had_computed(folder, monkeypatch):
    monkeypatch.setattr(shelf, "SLICE", 3)
    many = [f"text {number}" for number in range(9)]

    class Killed(Stub):
        def documents(self, texts):
            if len(self.asked) == 6:
                raise KeyboardInterrupt
            return super().documents(texts)

    killed, after = Killed(), Stub()
    with pytest.raises(KeyboardInterrupt):
        stored(killed, folder).documents(many)
    vectors = stored(after, folder).documents(many)

    assert sorted(killed.asked + after.asked) == many
    assert np.array_equal(vectors, Stub().documents(many))


@pytest.mark.parametrize(
    "change",
    [
        lambda data: data[:1000],
        lambda data: b"not a database at all, and long enough to be taken for one" * 50,
        lambda data: data[:100] + b"\xff" * (len(data) - 100),
        lambda data: b"",
    ],
    ids=["truncated", "text", "filled over", "empty"],
)
def test_a_broken_file_is_set_aside_and_computed_again_with_one_line_of_warning(folder, caplog, change):
    stored(Stub(), folder).documents(TEXTS)
    damage(file_of(folder), change)
    again = Stub()
    with caplog.at_level(logging.WARNING):
        kept = stored(again, folder)
        vectors = kept.documents(TEXTS)

    assert np.array_equal(vectors, Stub().documents(TEXTS))
    assert sorted(again.asked) == sorted(set(TEXTS))
    assert len(caplog.records) == (1 if file_of(folder).with_suffix(".sqlite.broken").exists() else 0)
    assert np.array_equal(stored(Stub(), folder).documents(TEXTS), vectors)


@pytest.mark.parametrize("place", range(0, 100, 9))
def test_a_flipped_bit_never_gives_a_wrong_vector(folder, place, caplog):
    many = [f"text {number}" for number in range(60)]
    stored(Stub(), folder).documents(many)

    def flip(data):
        data[len(data) * place // 100] ^= 1
        return data

    damage(file_of(folder), flip)
    shelf._warn_of_rows.cache_clear()
    kept = stored(Stub(), folder)

    assert np.array_equal(kept.documents(many), Stub().documents(many))
    assert len(caplog.records) <= 1


def test_a_broken_row_is_computed_again_with_one_line_of_warning(folder, caplog):
    kept = stored(Stub(), folder)
    kept.documents(TEXTS)
    damage(file_of(folder), lambda data: data.replace(Stub().vector("policy").astype("<f4").tobytes(), bytes(32)))
    broken = kept.keys(["policy"])[0].hex()
    assert shelves(folder)[0].check() == (len(set(TEXTS)), [broken])

    shelf._warn_of_rows.cache_clear()
    again = Stub()
    vectors = stored(again, folder).documents(TEXTS)

    assert again.asked == ["policy"]
    assert np.array_equal(vectors, Stub().documents(TEXTS))
    assert [record.levelname for record in caplog.records] == ["WARNING"]
    assert shelves(folder)[0].check() == (len(set(TEXTS)), [])


def test_a_broken_row_can_be_dropped(folder):
    kept = stored(Stub(), folder)
    kept.documents(TEXTS)
    damage(file_of(folder), lambda data: data.replace(Stub().vector("policy").astype("<f4").tobytes(), bytes(32)))
    (found,) = shelves(folder)
    found.drop(found.check()[1])

    assert found.check() == (len(set(TEXTS)) - 1, [])


def test_bytes_that_became_text_or_a_number_are_broken_rows(folder, caplog):
    kept = stored(Stub(), folder)
    kept.documents(TEXTS)
    with closing(sqlite3.connect(file_of(folder))) as connection, connection:
        connection.execute("UPDATE rows SET value = CAST(X'FFFE41' AS TEXT) WHERE key = ?", kept.keys(["policy"]))
        connection.execute("UPDATE rows SET value = 7 WHERE key = ?", kept.keys([""]))
        connection.execute("UPDATE rows SET key = 7 WHERE key = ?", kept.keys(["\ud800"]))

    assert len(shelves(folder)[0].check()[1]) == 3
    assert np.array_equal(stored(Stub(), folder).documents(TEXTS), Stub().documents(TEXTS))


def test_when_a_file_was_last_used_is_its_time_of_change(folder):
    stored(Stub(), folder).documents(TEXTS)
    path = file_of(folder)
    os.utime(path, (1_000_000_000, 1_000_000_000))
    shelf._touch.cache_clear()
    shelves(folder)[0].check()
    assert path.stat().st_mtime == 1_000_000_000, "looking at it is no use"

    stored(Stub(), folder).documents(TEXTS)
    assert path.stat().st_mtime > 1_000_000_000


def test_a_value_that_is_whole_but_not_the_models_is_found_by_the_audit(folder):
    kept, unique = stored(Stub(), folder), list(dict.fromkeys(TEXTS))
    kept.documents(TEXTS)
    kept.queries(TEXTS[:1])
    path = file_of(folder)
    assert kept.audit(unique) == Audit(path, 0, []), "what this object computed itself is not worth computing again"
    assert stored(Stub(), folder).audit([*unique, "new"]) == Audit(path, len(unique), [])
    assert stored(Stub(), folder).audit(unique, as_queries=True) == Audit(path, 1, [])

    poisoned = Stub()
    object.__setattr__(poisoned, "vector", lambda text: np.ones(8) if text == "policy" else Stub().vector(text))
    assert stored(poisoned, folder).audit(unique) == Audit(path, len(unique), [unique.index("policy")])


def test_a_file_that_cannot_be_used_is_one_sentence(folder):
    folder.mkdir()
    (folder / "vectors").write_text("")
    with pytest.raises(AblateError, match=r"vectors: .*expected a folder to write to"):
        stored(Stub(), folder).documents(TEXTS)

    (folder / "vectors").unlink()
    stored(Stub(), folder).documents(TEXTS)
    path = file_of(folder)
    path.unlink()
    path.mkdir()
    with pytest.raises(AblateError, match=r"found 'unable to open database file', expected a file that can be read"):
        stored(Stub(), folder).documents(TEXTS)


def test_what_is_no_database_is_listed_without_revision_and_fails_its_check(folder):
    (folder / "vectors").mkdir(parents=True)
    (folder / "vectors" / "x.sqlite").write_bytes(b"no database" * 100)

    (found,) = shelves(folder)
    assert found.revision == ""
    with pytest.raises(
        AblateError, match="found 'file is not a database', expected a database that is whole; remove it"
    ):
        found.check()


def compute_all(folder: Path, journal: Path, start) -> None:
    shelf.SLICE = 5
    start.wait()
    kept = stored(Stub(journal=journal), folder)
    assert np.array_equal(kept.documents(MANY), Stub().documents(MANY))


MANY = [f"текст {number}" for number in range(100)]


def test_several_processes_compute_each_text_once(folder, tmp_path):
    context = multiprocessing.get_context("spawn")
    journal, start = tmp_path / "journal", context.Barrier(3)
    processes = [context.Process(target=compute_all, args=(folder, journal, start)) for _ in range(3)]
    for process in processes:
        process.start()
    for process in processes:
        process.join(60)

    assert [process.exitcode for process in processes] == [0, 0, 0]
    assert sorted(journal.read_text(encoding="utf-8").splitlines()) == sorted(MANY)


def test_memory_is_the_matrix_and_a_slice(folder):
    """Symptom R7: batches and their concatenation are not kept side by side."""
    many, stub = [str(number) for number in range(20_000)], Stub(dimensions=256)
    object.__setattr__(stub, "vector", lambda text: np.full(256, float(text)))
    matrix = len(many) * 256 * 4
    kept = stored(stub, folder)
    tracemalloc.start()
    try:
        vectors = kept.documents(many)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()

    assert vectors[:, 0].tolist() == [float(number) for number in range(20_000)]
    assert peak < 1.8 * matrix


def test_a_half_filled_store_gives_the_real_models_bytes(folder, tmp_path):
    model = SentenceTransformer(str(tiny_models.embedder(tmp_path / "model")), None, "", "", "float32")
    texts = [text for text in TEXTS if text.isprintable()] + ["the refund " * count for count in range(1, 9)]
    kept = stored(model, folder)
    kept.documents(texts[1::2])

    assert kept.documents(texts).tobytes() == model.documents(texts).tobytes()
    assert kept.truncated(texts).tolist() == (model.read(texts)[1] < [len(text) for text in texts]).tolist()


def test_when_everything_is_stored_torch_is_not_imported(folder, tmp_path):
    model = SentenceTransformer(str(tiny_models.embedder(tmp_path / "model")), None, "", "", "float32")
    pairs = CrossEncoder(str(tiny_models.cross_encoder(tmp_path / "pairs")), 3, None)
    stored(model, folder).documents(["возврат"])
    stored(pairs, folder).scores([("возврат", "товара")])
    code = (
        "import sys\nfrom pathlib import Path\nfrom ablate.store import stored\n"
        "from ablate.embedder import SentenceTransformer\nfrom ablate.reranker import CrossEncoder\n"
        f"kept, pairs = stored({model}, Path({str(folder)!r})), stored({pairs}, Path({str(folder)!r}))\n"
        "kept.documents(['возврат']); kept.truncated(['возврат']); pairs.scores([('возврат', 'товара')])\n"
        "print(kept.tally, pairs.tally, 'torch' in sys.modules)"
    )
    source = str(Path(ablate.__file__).parents[1])
    environment = {**os.environ, "PYTHONPATH": source, "PYTHONUTF8": "1"}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment)

    assert done.stdout.strip() == "{'computed': 0, 'reused': 1} {'computed': 0, 'reused': 1} False", done.stderr


def test_a_stored_score_is_the_same_number_and_each_pair_is_scored_once(folder):
    stub = PairStub()
    kept = stored(stub, folder)

    for _ in range(2):
        assert kept.scores(PAIRS).tolist() == PairStub().scores(PAIRS).tolist()
        assert kept.truncated(PAIRS).tolist() == [False, True, False, False, False]
    assert sorted(stub.asked) == sorted(set(PAIRS))
    assert kept.tally == {"computed": 4, "reused": 0}


def test_a_score_that_is_whole_but_not_the_models_is_found_by_the_audit(folder):
    unique = list(dict.fromkeys(PAIRS))
    stored(PairStub(), folder).scores(unique[1:])
    assert stored(PairStub(), folder).audit(unique) == Audit(file_of(folder), 3, [])

    class Poisoned(PairStub):
        def read(self, pairs):
            scores, cut = super().read(pairs)
            return scores, cut ^ np.array([query == "возврат" for query, _ in pairs])

    assert stored(Poisoned(), folder).audit(unique) == Audit(file_of(folder), 3, [1])


def test_a_stored_reranker_ranks_like_the_reranker_and_live_scores_are_computed(folder):
    hits = [Hit(Chunk(Document(text, text), 0, len(text)), 1.0) for text in ("a", "bbb", "cc")]
    stub, query = PairStub(), Query("q", "вопрос")
    kept = stored(stub, folder)

    assert kept(query, hits) == PairStub()(query, hits)
    assert [hit.chunk.text for hit in kept(query, hits)] == ["bbb", "a", "cc"]
    with live():
        kept(query, hits)
    assert stub.asked == [("вопрос", "a"), ("вопрос", "bbb")] * 2


def test_chunks_are_prepared_for_live_queries_only(folder):
    class Preparing(PairStub):
        def prepare(self, hits):
            self.asked.append(hits)

    hits = [Hit(Chunk(Document("a", "a"), 0, 1), 1.0)]
    kept, plain = stored(Preparing(), folder), stored(PairStub(), folder)
    kept.prepare(hits)
    assert kept.reranker.asked == []
    with live():
        kept.prepare(hits)
        plain.prepare(hits)
    assert kept.reranker.asked == [hits]
    assert plain.reranker.asked == []


def test_what_does_no_work_that_can_be_kept_stays_itself(folder):
    keep = Keep()

    assert stored(keep, folder) is keep
    assert isinstance(stored(Stub(), folder), StoredEmbedder)
    assert isinstance(stored(PairStub(), folder), StoredReranker)
    assert not folder.exists()


def test_waiting_for_another_process_is_said(folder, caplog):
    kept = Shelf(folder / "vectors" / "x.sqlite", "revision")
    kept.write({})
    held = threading.Event()

    def hold():
        with FileLock(f"{kept.path}.lock"):
            held.set()
            time.sleep(1.2)

    other = threading.Thread(target=hold)
    other.start()
    held.wait()
    with caplog.at_level(logging.INFO):
        rows = list(kept.kept([b"k" * 16], lambda places: [b"value"]))
    other.join()

    assert rows == [(0, b"value", True)]
    assert "waiting for another process" in caplog.text
