"""Searches made beforehand: the same answers, fewer questions."""

from dataclasses import dataclass, field, replace

import numpy as np
import pytest
from fakes import HashEmbedder
from searching import RETRIEVERS

from ablate.access import Off, Postfilter, Prefilter
from ablate.chunker import ParentChild
from ablate.filter import Declared
from ablate.foresight import foreseen
from ablate.packer import TopK
from ablate.pipeline import Asked, Line, ready
from ablate.reranker import Keep
from ablate.tokens import Words
from ablate.types import Acl, Dataset, Document, Query

ACLS = [Acl(frozenset({name}), frozenset()) for name in ("public", "user:anna", "user:boss")]
DOCUMENTS = tuple(
    Document(f"d{number}", f"Отпуск {number} дней. Премия {number % 7}.", metadata={"год": 2020 + number % 2}, acl=acl)
    for number, acl in enumerate(ACLS * 30)
)
QUERIES = tuple(
    Query(f"q{number}", f"отпуск {number} премия", frozenset({who}), {"год": 2021} if number % 2 else {})
    for number, who in enumerate(["user:anna", "user:boss", "user:eve"] * 4)
)
ACCESS = [Prefilter("global"), Prefilter("readable"), Postfilter(), Off()]


def line(retriever, access=ACCESS[0]):
    data = Dataset("d", "d", DOCUMENTS, QUERIES, {}, {}, "nobody", {}, {}, {}, ())
    stages = Line(ParentChild(6, 3, 1), HashEmbedder(), retriever, Declared(), access, Keep(), TopK())
    return ready(stages, data, Words(), 3, 5, 640)


@dataclass
class Counting:
    """A retriever that notes how many queries its searches were asked at once."""

    retriever: object
    asked: list[int] = field(default_factory=list)

    def index(self, chunks, embedder):
        return CountingSearch(self.retriever.index(chunks, embedder), self.asked)


@dataclass
class CountingSearch:
    inner: object
    asked: list[int]

    def __call__(self, query, allowed, depth):
        self.asked.append(1)
        return self.inner(query, allowed, depth)

    def batch(self, queries, allowed, depth):
        self.asked.append(len(queries))
        return self.inner.batch(queries, allowed, depth)


def plain(trace):
    return replace(trace, milliseconds={})


@pytest.mark.parametrize("access", ACCESS, ids=lambda access: f"{access}")
@pytest.mark.parametrize("retriever", RETRIEVERS)
def test_the_line_gives_what_it_gives_without(retriever, access):
    alone = line(RETRIEVERS[retriever], access)
    ahead = foreseen(alone, map(alone.asked, QUERIES))
    assert len(ahead.foreseen) == len(QUERIES)
    assert [plain(ahead(query)) for query in QUERIES] == [plain(alone(query)) for query in QUERIES]


def test_queries_among_equal_documents_are_asked_together_and_once():
    counting = Counting(RETRIEVERS["dense"])
    alone = line(counting)
    asked = [alone.asked(query) for query in QUERIES] * 2
    ahead = foreseen(alone, iter(asked))
    assert sorted(counting.asked) == [2] * 6  # three people, with and without a filter
    for query in QUERIES:
        ahead(query)
    assert sorted(counting.asked) == [2] * 6
    alone(QUERIES[0])  # the line itself still searches, so that its time can be taken
    assert counting.asked[-1] == 1


def test_what_was_not_foreseen_is_searched_for():
    alone = line(RETRIEVERS["bm25"])
    ahead = foreseen(alone, [alone.asked(QUERIES[0])])
    assert plain(ahead(QUERIES[1])) == plain(alone(QUERIES[1]))
    everything = np.ones(len(DOCUMENTS), bool)
    open_to_all = Asked(QUERIES[0], everything, everything)
    assert ahead.search(open_to_all).fused != ahead.search(alone.asked(QUERIES[0])).fused


def test_what_an_index_knows_is_not_taken_for_what_it_may_find():
    alone = line(RETRIEVERS["bm25"])
    one = alone.asked(QUERIES[0])
    narrow = one._replace(known=one.allowed)
    ahead = foreseen(alone, [one, narrow])
    assert ahead.search(one) == alone.search(one)
    assert ahead.search(narrow) == alone.search(narrow) != ahead.search(one)


def test_many_queries_are_asked_in_parts(monkeypatch):
    monkeypatch.setattr("ablate.foresight.BATCH", 5)
    counting = Counting(RETRIEVERS["dense"])
    alone = line(counting, Off())
    ahead = foreseen(alone, [alone.asked(replace(query, filter={})) for query in QUERIES])
    assert counting.asked == [5, 5, 2]
    assert len(ahead.foreseen) == 12


def test_an_exact_search_is_not_taken_for_the_approximate_one():
    alone = line(RETRIEVERS["ivf"])
    one = alone.asked(QUERIES[0])
    exact = one._replace(exact=True)
    ahead = foreseen(alone, [one, exact])
    assert ahead.search(one).sources.keys() == {"ivf"}
    assert ahead.search(exact).sources.keys() == {"dense"}
    assert ahead.search(exact).fused == line(RETRIEVERS["dense"]).search(one).fused
    assert alone.approximate(one)
    assert not line(RETRIEVERS["bm25"]).approximate(one)
