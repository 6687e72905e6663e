"""The line a query goes down: stages in order, masks inside the search, and no stage that sees the ground truth."""

import ast
import dataclasses
import itertools
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fakes import HashEmbedder

import ablate
from ablate.access import Off, Postfilter, Prefilter
from ablate.chunker import Fixed, ParentChild, Whole
from ablate.errors import AblateError
from ablate.filter import Declared, Open
from ablate.packer import TopK
from ablate.pipeline import Line, checked, counted, ready, unique, unlabelled
from ablate.reranker import Keep
from ablate.retriever import Bm25, Dense, Hybrid
from ablate.tokens import Words
from ablate.types import Acl, Candidates, Chunk, Context, Dataset, Document, Hit, Judgment, Query, Truth, Unit

ANNA, BOSS = frozenset({"user:anna"}), frozenset({"user:boss"})


def acl(*allow):
    return Acl(frozenset(allow), frozenset())


DOCUMENTS = (
    Document("отпуск", "Отпуск длится 28 дней.", metadata={"год": 2024}, acl=acl("public")),
    Document("remote", "Remote work on two days.", metadata={"год": 2025}, acl=acl("user:anna")),
    Document("salaries", "Отпуск правления длится дольше.", metadata={"год": 2024}, acl=acl("user:boss")),
    Document("пусто", "", acl=acl("public")),
)
QUERY = Query("q", "сколько длится отпуск", ANNA, {"год": 2024})


def dataset(documents=DOCUMENTS, queries=(QUERY,)):
    truths = {query.id: Truth(query.id, judged=(Judgment(Unit("отпуск"), 1),)) for query in queries}
    return Dataset("d", "d", documents, queries, truths, {}, "nobody", {}, {}, {}, ())


@dataclass
class Recorder:
    """Every stage in one: does what the plainest component would do, and notes who was called with what."""

    calls: list[tuple[str, tuple[Any, ...]]] = field(default_factory=list)

    def note(self, name, *arguments):
        self.calls.append((name, arguments))

    def chunk(self, document, tokens):
        self.note("chunk", document, tokens)
        return [Chunk(document, 0, len(document.text))] if document.text else []

    def index(self, chunks, embedder):
        self.note("index", chunks, embedder)
        return lambda *arguments: self.search(chunks, *arguments)

    def search(self, chunks, query, allowed, depth):
        self.note("search", query, allowed, depth)
        hits = [Hit(chunk, 1.0 - row) for row, chunk in enumerate(chunks) if allowed[row]][:depth]
        return Candidates({"one": hits}, hits)

    def over(self, documents, *more):
        self.note("over", documents, *more)
        self.documents = documents
        return self

    def readable(self, query):
        return np.ones(len(self.documents), bool)

    def indexed(self, query):
        self.note("indexed", query)
        return np.ones(len(self.documents), bool)

    def allowed(self, query):
        self.note("allowed", query)
        return np.ones(len(self.documents), bool)

    def after(self, query, hits):
        self.note("after", query, hits)
        return hits[1:]

    def rerank(self, query, hits):
        self.note("rerank", query, hits)
        return hits[::-1]

    def pack(self, query, hits, k, budget, tokens):
        self.note("pack", query, hits, k, budget, tokens)
        return Context([hit.chunk for hit in hits[:k]], 7)


def recorded():
    recorder = Recorder()
    line = Line(recorder.chunk, HashEmbedder(), recorder, recorder, recorder, recorder.rerank, recorder.pack)
    return recorder, ready(line, dataset(), Words(), 1, 50, 640)


def test_the_stages_are_called_in_the_order_of_the_line():
    recorder, line = recorded()
    recorder.calls.clear()
    trace = line(QUERY)
    assert [name for name, _ in recorder.calls] == [
        "indexed", "allowed", "allowed", "index", "search", "after", "rerank", "pack",
    ]  # fmt: skip
    assert list(trace.milliseconds) == ["allow", "search", "rerank", "pack"]
    assert all(lap >= 0 for lap in trace.milliseconds.values())


def test_what_a_reranker_prepares_before_a_query_is_not_timed(monkeypatch):
    recorder, line = recorded()
    prepared, seconds = [], itertools.count()
    monkeypatch.setattr("ablate.pipeline.time.perf_counter", lambda: next(seconds))

    class Preparing:
        def prepare(self, hits):
            prepared.append(hits)
            list(itertools.islice(seconds, 100))

        def __call__(self, query, hits):
            return recorder.rerank(query, hits)

    trace = dataclasses.replace(line, line=dataclasses.replace(line.line, reranker=Preparing()))(QUERY)
    assert prepared == [trace.permitted]
    assert list(trace.milliseconds.values()) == [1000] * 4


def test_each_stage_gets_what_the_one_before_gave():
    recorder, line = recorded()
    trace = line(QUERY)
    calls = dict(recorder.calls)
    assert calls["after"][1] is trace.candidates.fused
    assert calls["rerank"][1] is trace.permitted
    assert calls["pack"][1] is trace.ranked
    assert calls["pack"][2] == 1
    assert calls["search"][2] == 50
    assert [hit.chunk.document.id for hit in trace.permitted] == ["remote", "salaries"]
    assert [hit.chunk.document.id for hit in trace.ranked] == ["salaries", "remote"]
    assert [chunk.document.id for chunk in trace.context.passages] == ["salaries"]


def within(value, seen=None):
    """The value and everything that can be reached from it."""
    seen = {} if seen is None else seen
    if id(value) in seen:
        return
    seen[id(value)] = value
    yield value
    if isinstance(value, Mapping):
        inner = [*value, *value.values()]
    elif isinstance(value, list | tuple | set | frozenset):
        inner = list(value)
    elif dataclasses.is_dataclass(value) and not isinstance(value, type):
        inner = [getattr(value, each.name) for each in dataclasses.fields(value)]
    else:
        inner = []
    for item in inner:
        yield from within(item, seen)


def test_no_component_is_ever_given_the_ground_truth():
    recorder, line = recorded()
    line(QUERY)
    assert {name for name, _ in recorder.calls} >= {"over", "chunk", "index", "search", "after", "rerank", "pack"}
    for name, arguments in recorder.calls:
        found = [value for value in within(arguments) if isinstance(value, Truth | Judgment | Unit | Dataset)]
        assert found == [], name
    assert any(isinstance(value, Truth) for value in within(line.dataset)), "the walk must be able to find one"


COMPONENTS = ["chunker", "embedder", "retriever", "filter", "access", "reranker", "packer", "tokens", "store", "models"]


@pytest.mark.parametrize("module", COMPONENTS)
def test_no_component_imports_what_knows_the_ground_truth(module):
    folder = Path(ablate.__file__).parent
    files = [*folder.glob(f"{module}.py"), *folder.glob(f"{module}/**/*.py")]
    assert files
    nodes = [node for path in files for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))]
    names = {alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names}
    for node in nodes:
        if isinstance(node, ast.ImportFrom):
            names |= {f"{node.module}.{alias.name}" for alias in node.names}
    ours = {name.removeprefix("ablate.") for name in names if name.startswith("ablate")}
    assert ours.isdisjoint(
        {f"types.{name}" for name in ("Truth", "Judgment", "Unit", "Dataset", "Fact", "Alternative")}
    )
    knowing = ("score", "dataset", "audit", "evaluate", "study", "records", "table", "measures")
    assert [name for name in ours if name.split(".")[0] in knowing] == []


def line_of(*, queries=(QUERY,), documents=DOCUMENTS, k=5, depth=50, **parts):
    """A line of plain components, but for `parts`, over documents and queries."""
    plain = Line(Whole(), HashEmbedder(), Bm25(1.5, 0.75, []), Open(), Prefilter("global"), Keep(), TopK())
    return ready(dataclasses.replace(plain, **parts), dataset(documents, queries), Words(), k, depth, 640)


def ids(hits):
    return [hit.chunk.document.id for hit in hits]


RETRIEVERS = [Dense(), Bm25(1.5, 0.75, []), Hybrid({"dense": Dense(), "bm25": Bm25(1.5, 0.75, [])}, 60)]


@pytest.mark.parametrize("retriever", RETRIEVERS, ids=lambda retriever: type(retriever).__name__)
def test_a_filter_is_applied_inside_the_search_and_eats_no_place(retriever):
    twins = tuple(Document(f"d{n}", f"отпуск длится {n}", metadata={"год": 2000 + n}) for n in range(9))
    query = Query("q", "отпуск длится", filter={"год": 2008})
    trace = line_of(retriever=retriever, filter=Declared(), documents=twins, queries=(query,), k=1, depth=1)(query)
    assert ids(trace.candidates.fused) == ["d8"]
    assert (trace.pool_documents, trace.pool_chunks) == (1, 1)


@pytest.mark.parametrize("retriever", RETRIEVERS, ids=lambda retriever: type(retriever).__name__)
def test_access_is_applied_inside_the_search_and_eats_no_place(retriever):
    twins = tuple(Document(f"d{n}", "отпуск длится", acl=acl("user:boss")) for n in range(9))
    mine = Document("моё", "отпуск", acl=acl("user:anna"))
    trace = line_of(retriever=retriever, documents=(*twins, mine), k=1, depth=1)(QUERY)
    assert ids(trace.candidates.fused) == ids(trace.ranked) == ["моё"]


def test_a_postfilter_strikes_out_before_the_reranker_reads():
    read = []

    class Reader:
        def __call__(self, query, hits):
            read.extend(ids(hits))
            return hits

    line = Line(Whole(), HashEmbedder(), Dense(), Open(), Postfilter(), Reader(), TopK())
    trace = ready(line, dataset(), Words(), 5, 50, 640)(QUERY)
    assert "salaries" in ids(trace.candidates.fused)
    assert "salaries" not in read
    assert "отпуск" in read


def test_the_pool_counts_what_the_search_might_have_returned():
    trace = line_of(chunker=Fixed(2, 0), filter=Declared())(QUERY)
    assert (trace.pool_documents, trace.pool_chunks) == (1, 3)  # "Отпуск длится", "28 дней", "."
    trace = line_of(chunker=Fixed(2, 0))(QUERY)
    assert (trace.pool_documents, trace.pool_chunks) == (3, 3 + 3)  # the empty document is readable, too


def test_nobody_who_can_read_anything_stops_the_run_before_work():
    with pytest.raises(AblateError, match="no query can read any document, expected at least one"):
        line_of(documents=DOCUMENTS[2:3])
    assert ids(line_of(documents=DOCUMENTS[2:3], access=Off())(QUERY).ranked) == ["salaries"]


def test_one_reader_is_enough_to_run():
    queries = (QUERY, Query("q2", "отпуск", BOSS))
    line = line_of(documents=DOCUMENTS[2:3], queries=queries)
    assert [ids(line(query).ranked) for query in queries] == [[], ["salaries"]]


def test_without_queries_there_is_nothing_to_stop():
    assert line_of(queries=()).chunks


def test_a_chunk_that_a_chunker_gives_twice_is_there_once():
    class Twice:
        def __call__(self, document, tokens):
            return Whole()(document, tokens) * 2

    assert len(line_of(chunker=Twice()).chunks) == 3


def test_an_index_is_built_once_for_each_set_of_documents_that_it_may_know():
    queries = (QUERY, Query("q2", "remote", ANNA), Query("q3", "отпуск", BOSS))
    line = line_of(access=Prefilter("readable"), queries=queries)
    for query in queries:
        line(query)
    assert len(line.indexes) == 2
    line = line_of(queries=queries)
    for query in queries:
        line(query)
    assert len(line.indexes) == 1


def test_an_index_of_the_readable_documents_returns_chunks_of_the_right_documents():
    queries = (QUERY, Query("q3", "отпуск", BOSS))
    line = line_of(access=Prefilter("readable"), queries=queries, chunker=Fixed(2, 0))
    assert set(ids(line(queries[0]).ranked)) <= {"отпуск", "remote"}
    assert "salaries" in ids(line(queries[1]).ranked)
    assert "remote" not in ids(line(queries[1]).ranked)


@pytest.mark.parametrize("retriever", RETRIEVERS, ids=lambda retriever: type(retriever).__name__)
def test_a_corpus_without_text_gives_empty_contexts(retriever):
    empty = (Document("пусто", ""), Document("пробел", " \n "))
    query = Query("q", "что угодно")
    trace = line_of(retriever=retriever, documents=empty, queries=(query,))(query)
    assert (ids(trace.ranked), trace.context.passages, trace.context.tokens) == ([], (), 0)


@pytest.mark.parametrize("retriever", RETRIEVERS, ids=lambda retriever: type(retriever).__name__)
@pytest.mark.parametrize("statistics", ["global", "readable"])
def test_what_one_query_gets_depends_on_no_other_query(retriever, statistics):
    queries = (QUERY, Query("q2", "remote days", ANNA), Query("q3", "отпуск правления", BOSS))
    line = line_of(retriever=retriever, access=Prefilter(statistics), queries=queries)
    together = [line(query).ranked for query in queries]
    for query, before in zip(reversed(queries), reversed(together), strict=True):
        alone = line_of(retriever=retriever, access=Prefilter(statistics), queries=queries)
        assert [(hit.chunk.id, hit.score) for hit in alone(query).ranked] == [
            (hit.chunk.id, hit.score) for hit in before
        ]


def test_a_component_sees_a_question_and_nothing_that_is_known_about_its_answer():
    known = Query("q", "сколько?", frozenset({"user:anna"}), {"a": 1}, {"kind": "hard"}, False, "absent", critical=True)
    assert unlabelled(known) == Query("q", "сколько?", frozenset({"user:anna"}), {"a": 1})


def test_a_chunk_outside_its_document_is_refused():
    document = Document("отпуск", "28 дней")
    for start, end in [(0, 8), (5, 2), (-1, 3), (4, 4)]:
        with pytest.raises(AblateError, match="expected a span within the 7 characters"):
            checked(Chunk(document, start, end))


def test_a_parent_outside_its_document_or_apart_from_its_child_is_refused():
    document = Document("отпуск", "28 дней")
    for start, end in [(0, 8), (5, 2), (-1, 3)]:
        with pytest.raises(AblateError, match="expected a span within the 7 characters"):
            checked(Chunk(document, 0, 2, parent=Chunk(document, start, end)))
    whole = Chunk(document, 0, 7)
    strange = [Chunk(document, 3, 7), Chunk(document, 0, 1), Chunk(Document("отпуск", "28 дней"), 0, 7)]
    for parent in [*strange, Chunk(document, 0, 3, parent=whole)]:
        with pytest.raises(AblateError, match="expected a parent that holds it and has none itself"):
            checked(Chunk(document, 0, 2, parent=parent))
    child = Chunk(document, 0, 2, parent=whole)
    assert checked(child) is child


def test_a_line_counts_what_it_can_hand_over_and_not_what_it_searches():
    line = line_of(chunker=ParentChild(3, 2, 1), filter=Declared())
    assert [chunk.text for chunk in line.chunks if chunk.document.id == "отпуск"] == [
        "Отпуск длится", "длится 28", "дней.",
    ]  # fmt: skip
    assert [chunk.text for chunk in line.handed if chunk.document.id == "отпуск"] == ["Отпуск длится 28", "дней."]
    trace = line(QUERY)  # of the documents of 2024 Anna may read one
    assert (trace.pool_documents, trace.pool_chunks) == (1, 2)


def test_of_hits_on_one_chunk_the_first_stays():
    a, b = (Chunk(Document(name, "text"), 0, 4) for name in "ab")
    assert unique([Hit(a, 2.0), Hit(b, 1.0), Hit(a, 0.5)]) == [Hit(a, 2.0), Hit(b, 1.0)]


def test_no_packer_can_make_its_context_look_shorter_than_it_is():
    passage = Chunk(Document("d", "один два три"), 0, 12)
    assert counted(Context([passage], 1), lambda chunk: 3).tokens == 3
    assert counted(Context([passage], 5), lambda chunk: 3).tokens == 5
