"""What a study will cost: what is told before is what is then computed, and telling it leaves no trace."""

import hashlib
import json
import os
import re
import sqlite3
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import cli
import numpy as np
import pytest
from cli import ENCODED, ablate, dataset, put, quiet, runs, small, variant, workshop
from fakes import HashEmbedder, chunks, query

from ablate import environment, store, study
from ablate.commands import run
from ablate.conf import options
from ablate.errors import ModelNotFound
from ablate.estimate import TRIED, Encoding, Estimate, Judging, Task, asks, duration, estimate
from ablate.reranker import Pairwise
from ablate.shelf import Glance, Shelf
from ablate.store import stored

SAMPLE = (*cli.QUIET[:2], "dataset=sample", "embedder=counted", "tracking=off", "latency=off")


@dataclass(frozen=True)
class Judge(Pairwise):
    """A pairwise reranker without a model, whose scores are kept."""

    first: int

    revision = "судья"

    def read(self, pairs):
        return np.array([float(len(text)) for _, text in pairs]), np.zeros(len(pairs), dtype=np.bool_)


@dataclass(frozen=True)
class Missing(Judge):
    """A reranker whose weights are nowhere."""

    @property
    def revision(self):
        raise ModelNotFound("model 'нет': found nowhere, expected weights; check its name")


@dataclass(frozen=True)
class Lost(HashEmbedder):
    """An embedder whose weights are nowhere."""

    @property
    def revision(self):
        raise ModelNotFound("model 'нет': found nowhere, expected weights; check its name")

    def read(self, texts, as_queries=False):
        raise AssertionError("it has no weights")


@dataclass(frozen=True)
class Sized(cli.Counted):
    """Is another model for each number of dimensions."""

    @property
    def revision(self):
        return str(self.dimension)


@dataclass(frozen=True)
class Slow(HashEmbedder):
    """Takes its time: a fiftieth of a millisecond a character."""

    revision = "медленно"

    def read(self, texts, as_queries=False):
        time.sleep(sum(map(len, texts)) * 2e-5)
        return self.documents(texts), np.array([len(text) for text in texts])


@pytest.fixture
def work(tmp_path, monkeypatch):
    ENCODED.clear()
    folder = tmp_path / "мои опыты, 100% #1"
    folder.mkdir()
    workshop(folder, monkeypatch)
    own = {"judge": "Judge\nfirst: 3\n", "eager": "Judge\nfirst: 9\n", "missing": "Missing\nfirst: 3\n"}
    put(folder / "conf/reranker", {f"{name}.yaml": f"_target_: test_estimate.{text}" for name, text in own.items()})
    for name in ("Lost", "Sized", "Slow"):
        put(folder / "conf/embedder", {f"{name.lower()}.yaml": f"_target_: test_estimate.{name}\ndimension: 16\n"})
    return folder


@pytest.fixture
def data(work):
    return f"dataset.dir={small(work / 'данные')}"


def dry(*words):
    said = ablate(*words, "dry_run=true")
    assert said.code == 0, said
    assert said.err == "", said
    return said.out


def texts(told):
    """How many texts are said to be left, and of how many."""
    return tuple(int(number.replace(",", "")) for number in re.search(r"([\d,]+) of ([\d,]+) texts", told).groups())


def pairs(told):
    return int(re.search(r"at most ([\d,]+) pairs", told)[1].replace(",", ""))


def computed(stage):
    """How many texts or pairs all recorded runs together computed, by their own account."""
    counts = [json.loads((run / "metrics.json").read_text(encoding="utf-8"))["counts"] for run in runs().values()]
    return sum(count.get(f"{stage}_computed", 0) for count in counts)


def state(folder):
    """Every file and folder with content and times."""
    found = {}
    for path in sorted(folder.rglob("*")):
        content = hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else ""
        found[str(path)] = (content, path.stat().st_mtime_ns)
    return found


@pytest.mark.parametrize("chunker", [name for name in options()["chunker"] if name != "fixed"])
def test_the_texts_told_are_those_that_are_then_encoded(work, chunker):
    variant(work, "cut", f"defaults:\n  - override /chunker: {chunker}")
    words = [*SAMPLE, "+variant=cut"]
    left, total = texts(dry(*words))
    assert left == total
    assert ablate(*words).code == 0
    assert computed("embedder") == left > 0


def test_of_a_store_that_is_half_full_only_the_rest_is_told(work):
    assert ablate(*SAMPLE).code == 0
    first = computed("embedder")
    left, total = texts(dry(*SAMPLE, "+variant=chunking_small"))
    assert 0 < left < total
    assert ablate(*SAMPLE, "+variant=chunking_small").code == 0
    assert computed("embedder") - first == left


def test_a_sweep_counts_each_text_once_and_no_run_twice(work, data):
    variant(work, "other", "retriever:\n  rrf_k: 7")
    words = [*SAMPLE, data, "retriever=hybrid", "-m", "+variant=chunking_small,other,access_postfilter"]
    told = dry(*words)
    assert told.startswith("runs to make: 4; recorded already: 0\n")
    assert texts(told) == (5, 5)
    assert ablate(*words).code == 0
    assert computed("embedder") == 5


def test_a_baseline_that_is_recorded_is_indexed_again_for_its_variant(work, data):
    assert ablate(*SAMPLE, data).code == 0
    for path in work.glob("indexes/*/*.sqlite"):
        path.unlink()
    ENCODED.clear()
    words = [*SAMPLE, data, "+variant=access_postfilter"]
    told = dry(*words)
    assert told.startswith("runs to make: 1; recorded already: 1\n")
    ENCODED.clear()
    assert ablate(*words).code == 0
    assert len(ENCODED) == texts(told)[0] == 5


def test_of_a_recorded_baseline_the_chunks_are_encoded_again_and_the_queries_are_not(work, data):
    variant(work, "wide", "embedder:\n  dimension: 24")
    words = [*SAMPLE[:3], "embedder=sized", *SAMPLE[4:], data]
    assert ablate(*words).code == 0
    for path in work.glob("indexes/*/*.sqlite"):
        path.unlink()
    study.LINES.clear()  # as in another process
    lines = dry(*words, "+variant=wide").splitlines()
    assert [texts(line)[0] for line in lines if "texts" in line] == [3, 5]
    ENCODED.clear()
    assert ablate(*words, "+variant=wide").code == 0
    assert len(ENCODED) == 3 + 5


def test_what_nobody_asks_is_neither_told_nor_looked_for(work, data):
    told = dry(*cli.QUIET[:3], "embedder=lost", "tracking=off", "latency=off", "retriever=bm25", data)
    assert "embedder" not in told
    assert "нет" not in told


def test_a_model_that_is_not_there_is_told_and_does_not_hide_the_others(work, data):
    variant(work, "gone", "defaults:\n  - override /reranker: missing")
    told = dry(*SAMPLE, data, "-m", "+variant=gone,bm25")
    assert told.endswith("\ngone: model 'нет': found nowhere, expected weights; check its name\n")
    assert told.startswith("runs to make: 2; recorded already: 0\n")


def test_a_model_that_keeps_nothing_is_named(work, data):
    told = dry(*cli.QUIET, data)
    assert "HashEmbedder: nothing it encodes is kept" in told
    assert "texts" not in told


@pytest.mark.parametrize("reranker", ["judge", "eager"])
def test_the_pairs_told_are_never_fewer_than_those_then_scored(work, reranker):
    variant(work, "judged", f"defaults:\n  - override /reranker: {reranker}")
    words = [*SAMPLE, "+variant=judged"]
    most = pairs(dry(*words))
    assert ablate(*words).code == 0
    assert most / 2 < computed("reranker") <= most


def test_pairs_that_several_variants_share_are_told_once(work, data):
    words = [*SAMPLE, data, "reranker=judge", "budget=20", "-m", "+variant=glob([context_packing,mmr])"]
    assert pairs(dry(*words)) == 2 * 3, "three documents and two queries, whatever the packer"
    variant(work, "more", "reranker:\n  first: 2")
    assert pairs(dry(*SAMPLE, data, "reranker=judge", "+variant=more")) == 2 * 3, "the larger holds the smaller"


@pytest.mark.parametrize(
    ("changed", "times"),
    [("hybrid", 2), ("metadata_filters", 2), ("access_postfilter", 2), ("chunking_small", 2), ("mmr", 1)],
)
def test_what_comes_before_the_reranker_brings_pairs_of_its_own(work, data, changed, times):
    assert pairs(dry(*SAMPLE, data, "reranker=judge", f"+variant={changed}")) == times * 2 * 3


def test_depth_bounds_the_pairs(work):
    assert pairs(dry(*SAMPLE, "reranker=eager", "k=2", "depth=2")) * 9 == pairs(dry(*SAMPLE, "reranker=eager")) * 2


def test_scores_that_are_kept_are_told(work, data):
    assert ablate(*SAMPLE, data, "reranker=judge").code == 0
    told = dry(*SAMPLE, data, "reranker=judge", "+variant=chunking_small")
    assert f"at most 6 pairs to score, less those among the {computed('reranker')} that are kept" in told


@pytest.mark.parametrize("before", [[], ["+variant=bm25"]])
def test_a_dry_run_leaves_everything_as_it_was(work, data, before):
    if before:
        assert ablate(*SAMPLE, data, *before).code == 0
    was = state(work)
    told = dry(*SAMPLE, data, "reranker=judge", "-m", "+variant=chunking_small,hybrid")
    assert "3 of 3 texts" in told or "0 of 5 texts" in told or "5 of 5 texts" in told
    assert state(work) == was


def test_what_is_recorded_costs_nothing_and_is_not_talked_about(work, data):
    words = [*SAMPLE, data, "reranker=judge", "+variant=bm25"]
    assert ablate(*words).code == 0
    assert dry(*words) == "runs to make: 0; recorded already: 2\n"
    said = ablate(*words)
    assert [line.partition(": ")[2].split(" as ")[0] for line in said.err.splitlines()] == [
        "baseline: already recorded",
        "bm25: already recorded",
    ]


def test_rerun_is_told_as_runs_to_make(work, data):
    assert ablate(*SAMPLE, data).code == 0
    told = dry(*SAMPLE, data, "rerun=true")
    assert told.startswith("runs to make: 1; recorded already: 0\n")
    assert "Counted: 0 of 5 texts to encode\n" in told


@pytest.fixture
def told(monkeypatch):
    """Every estimate that a command makes."""
    made = []
    monkeypatch.setattr(run, "estimate", lambda *given, **named: made.append(estimate(*given, **named)) or made[-1])
    return made


def test_live_pairs_are_told_of_every_side_that_is_timed(work, data, told):
    assert ablate(*SAMPLE, "reranker=judge", data).code == 0  # so that the pace of pairs is known
    timed = [*SAMPLE[:-1], "latency.queries=2", "latency.warmup=1", "reranker=judge", data]
    dry(*timed)
    dry(*timed, "+variant=hybrid")
    dry(*SAMPLE, "reranker=judge", data, "+variant=hybrid")
    dry(*timed, "-m", "+variant=hybrid,access_postfilter")
    alone, both, untimed, swept = (each.timing for each in told[1:])
    assert alone > 0
    assert both == pytest.approx(3 * alone), "the baseline's own, and both sides of the variant's"
    assert swept == pytest.approx(5 * alone), "a baseline is run once"
    assert untimed == 0


def test_what_a_run_takes_beside_its_models_is_learnt_from_earlier_ones(work, told):
    slow = [*SAMPLE[:3], "embedder=slow", *SAMPLE[4:]]
    assert ", and what searching and scoring take" in dry(*slow)
    assert ablate(*slow).code == 0
    record = cli.facts(runs()["baseline"])
    assert record["seconds"] > record["computing"] > 0.1
    assert ", and what" not in dry(*slow, "+variant=chunking_small")
    assert told[-1].besides == pytest.approx(record["seconds"] - record["computing"])
    assert told[-1].size == sum(path.stat().st_size for path in runs()["baseline"].iterdir())
    assert told[-1].seconds == pytest.approx(told[-1].besides + told[-1].tasks[0].seconds)


def test_an_estimate_loads_nothing_heavy(work, data):
    words = [*SAMPLE, data, "retriever=hybrid", "reranker=judge", "dry_run=true"]
    code = f"import sys; from ablate.__main__ import main; main({words!r}); print(*sorted(sys.modules))"
    path = os.pathsep.join(str(Path(__file__).parents[1] / part) for part in ("src", "tests"))
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, check=True, env={**os.environ, "PYTHONPATH": path}
    )
    assert b"3 of 3 texts" in done.stdout or b"5 of 5 texts" in done.stdout
    loaded = set(done.stdout.decode().split())
    assert loaded.isdisjoint({"torch", "mlflow", "transformers", "sentence_transformers", "onnxruntime"})


def many(folder, count=260):
    documents = [{"_id": f"д{number}", "text": f"Запись номер {number} говорит о возврате."} for number in range(count)]
    asked = [{"_id": "q", "text": "возврат"}]
    truth = [{"query_id": "q", "alternatives": [[{"doc_id": "д7", "quote": "номер 7 говорит о возврате"}]]}]
    return f"dataset.dir={dataset(folder, documents, asked, truth)}"


def test_a_run_with_much_to_do_says_so_before_it_starts(work):
    said = ablate(*SAMPLE, many(work / "много"))
    assert said.code == 0
    lines = said.err.splitlines()
    assert lines[:2] == [
        "ablate: runs to make: 1; recorded already: 0",
        "ablate: embedder Counted: 261 of 261 texts to encode; about 1 s",
    ]
    assert lines[2].startswith("ablate: in all about 1 s")
    assert lines[3] == "ablate: baseline: running"
    assert 1 <= 261 - computed("embedder") <= TRIED, "what a model was tried out on is kept"
    again = ablate(*SAMPLE, many(work / "много"), "rerun=true")
    assert again.err == "ablate: baseline: running\n"


def test_a_run_with_little_to_do_starts_without_a_word(work, data):
    assert ablate(*SAMPLE, data).err == "ablate: baseline: running\n"
    assert len(ENCODED) == 5, "no model is tried out for it"


TEXTS = ["длинный текст о возврате товара " * 10, *(f"текст {number}" * 9 for number in range(40))]


def test_a_model_is_tried_out_where_nobody_knows_its_pace(tmp_path):
    model = stored(Slow(), tmp_path / "индексы")
    work = Encoding(model, texts={False: set(TEXTS), True: {"вопрос"}})
    told = work.task(trying=True)
    least = sum(map(len, [*TEXTS, "вопрос"])) * 2e-5
    assert (told.todo, told.total) == (42, 42)
    assert least <= told.seconds < 20 * least
    assert told.size >= 42 * 16 * 4
    assert not (tmp_path / "индексы").exists()
    assert work.task(trying=False).seconds is None


def test_earlier_work_tells_the_pace_of_this_machine_and_of_no_other(tmp_path, monkeypatch):
    model = stored(Slow(), tmp_path / "индексы")
    model.documents(TEXTS[:30])
    work = Encoding(model, texts={False: set(TEXTS), True: set()})
    least = sum(map(len, TEXTS[30:])) * 2e-5
    told = work.task(trying=False)
    assert told.todo == len(TEXTS) - 30
    assert least <= told.seconds < 20 * least
    monkeypatch.setattr(store, "machine", lambda: "другая")
    assert work.task(trying=False).seconds is None


def test_queries_have_a_pace_of_their_own(tmp_path):
    model = stored(Slow(), tmp_path)
    shelf = model._shelf("vectors")
    shelf.note("document", environment.machine(), 100, 1.0)
    shelf.note("document", environment.machine(), 300, 7.0)
    work = Encoding(model, texts={False: {"а" * 10}, True: {"б" * 5}})
    assert work.task(False).seconds == pytest.approx(15 * 0.02)
    shelf.note("query", environment.machine(), 10, 1.0)
    assert work.task(False).seconds == pytest.approx(10 * 0.02 + 5 * 0.1)


def test_pairs_have_the_pace_of_pairs_and_a_reranker_that_may_need_no_loading_is_not_loaded(tmp_path):
    class Heavy(Judge):
        def read(self, pairs):
            raise AssertionError("it would have to be loaded")

    model = stored(Judge(first=9), tmp_path)
    model.scores([("вопрос", f"текст {number}") for number in range(300)])
    heavy = stored(Heavy(first=9), tmp_path)
    work = Judging(heavy, pairs={"x": (1000, 20000.0)}, live=500.0)
    pace = heavy.glance().paces["pair"]
    told, live = work.task(trying=True)
    assert (told.todo, told.total, told.kept) == (1000, None, 300)
    assert told.seconds == pytest.approx(pace * 20000)
    assert live == pytest.approx(pace * 500)


@dataclass(frozen=True)
class Prepared(Judge):
    """Encodes each chunk once, which takes long, and then scores its pairs in no time."""

    def prepare(self, hits):
        time.sleep(1e-4 * sum(len(hit.chunk.reading) for hit in hits[: self.first]))


def test_what_is_computed_once_a_chunk_is_not_told_once_a_pair(tmp_path):
    found = {chunk.reading: chunk for chunk in chunks(*TEXTS)}
    model = stored(Prepared(first=9), tmp_path)
    work = Judging(model, pairs={"x": (9000, 9e5)}, chunks=found, queries=[query("вопрос")])
    once = 1e-4 * sum(map(len, found))
    assert once <= work.task(trying=True)[0].seconds < 10 * once
    assert work.task(trying=False)[0].seconds is not None, "it has to be loaded anyway"
    assert Judging(model, pairs={"x": (9, 900.0)}).task(trying=False)[0].seconds is None


@pytest.mark.parametrize(
    ("task", "large"),
    [
        (Task("a", 200, 900, 0, None, None), False),
        (Task("a", 201, 900, 900, None, None), True),
        (Task("a", 900, None, 700, None, None), False),
        (Task("a", 901, None, 700, None, None), True),
    ],
)
def test_only_work_of_many_texts_or_of_pairs_that_cannot_be_kept_is_worth_a_word(task, large):
    assert task.large == large
    assert Estimate(1, 0, [task], 0.0, None, 0, []).large == large


def test_whoever_fails_to_be_tried_out_has_an_unknown_time_and_is_left_to_its_run(tmp_path, caplog):
    class Broken(Slow):
        def read(self, texts, as_queries=False):
            raise ModelNotFound("модель: found nothing")

    told = Encoding(stored(Broken(), tmp_path), texts={False: set(TEXTS), True: set()}).task(trying=True)
    assert (told.todo, told.seconds) == (len(TEXTS), None)
    assert "unknown time" in str(told)
    assert "модель: found nothing" in caplog.text


def test_all_in_all_is_the_sum_and_unknown_where_a_part_is():
    one = Task("a", 1, 2, 0, 10.0, 1e6)
    idle, unknown = Task("b", 0, 2, 0, None, None), Task("c", 3, None, 0, None, None)
    whole = Estimate(2, 1, [one, idle], timing=5.0, besides=3.0, size=500_000, problems=["x"])
    assert whole.seconds == 10 + 5 + 2 * 3
    assert list(whole.lines()) == [
        "runs to make: 2; recorded already: 1",
        "a: 1 of 2 texts to encode; about 10 s",
        "b: 0 of 2 texts to encode",
        "in all about 21 s; 2 MB of disk",
        "x",
    ]
    assert Estimate(2, 1, [one, unknown], 5.0, 3.0, 0, []).seconds is None


@pytest.mark.parametrize(
    ("seconds", "told"), [(0.0, "about 1 s"), (89, "about 89 s"), (90, "about 1.5 min"), (5400, "about 1.5 h")]
)
def test_a_duration_is_told_in_the_unit_that_people_would_use(seconds, told):
    assert duration(seconds, False) == told
    assert duration(seconds, True) == told.replace("about", "at most")


class Fussy:
    def index(self, chunks, embedder):
        raise ValueError("сломан")


def test_a_retriever_that_breaks_is_not_taken_for_one_that_asks():
    with pytest.raises(ValueError, match="сломан"):
        asks(Fussy(), None)


@pytest.mark.parametrize("content", [b"", b"no database at all, but a longer text" * 100])
def test_a_glance_at_a_broken_file_finds_nothing_and_leaves_it(tmp_path, content):
    path = tmp_path / "индекс.sqlite"
    path.write_bytes(content)
    assert Shelf(path, "r").glance([b"k" * 16], "m") == Glance()
    assert path.read_bytes() == content
    assert [found.name for found in tmp_path.iterdir()] == [path.name]


def test_a_glance_finds_the_whole_rows_of_its_own_revision_alone(tmp_path):
    shelf = Shelf(tmp_path / "индекс 100%?#.sqlite", "r")
    assert shelf.glance([b"a" * 16], "m") == Glance()
    assert not list(tmp_path.iterdir())
    shelf.write({b"a" * 16: b"1", b"b" * 16: b"2"})
    shelf.note("document", "m", 10, 2.0)
    seen = shelf.glance([b"a" * 16, b"c" * 16], "m")
    assert (seen.keys, seen.rows, seen.paces) == ({b"a" * 16}, 2, {"document": 0.2})
    assert seen.size == Path(shelf.path).stat().st_size
    assert shelf.glance([], "другая").paces == {}
    assert Shelf(shelf.path, "other").glance([b"a" * 16], "m") == Glance()
    with sqlite3.connect(shelf.path) as connection:
        connection.execute("UPDATE rows SET value = ? WHERE key = ?", (b"x", b"b" * 16))
    connection.close()
    assert shelf.glance([b"a" * 16, b"b" * 16], "m").keys == {b"a" * 16}


def test_quiet_runs_of_models_that_keep_nothing_say_nothing_of_cost(work, data):
    assert quiet(data).err == "ablate: baseline: running\n"
