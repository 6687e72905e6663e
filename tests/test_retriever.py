"""What every retriever promises, whatever its index: allowed hits in the one order, whatever stands beside them."""

import random

import numpy as np
import pytest
from fakes import HashEmbedder, chunks, everything, query
from hypothesis import given, settings
from hypothesis import strategies as st
from searching import BM25, EMBEDDERS, LINES, RETRIEVERS, TEXTS, WORDS, Crowding, family, found, named, placed

from ablate.retriever import Dense, Hnsw, Ivf
from ablate.retriever.order import Order
from ablate.retriever.search import together
from ablate.types import Hit, ranking

EXACT = [name for name in RETRIEVERS if name not in ("hnsw", "ivf")]
SCORED = ["dense", "bm25", "rank_bm25"]
"""Retrievers whose score of a chunk depends on no other chunk of the list."""


@pytest.fixture(params=RETRIEVERS)
def retriever(request):
    return RETRIEVERS[request.param]


def test_hits_are_allowed_distinct_and_in_the_one_order(retriever):
    @given(TEXTS, st.data(), st.integers(1, 12), EMBEDDERS)
    @settings(deadline=None, max_examples=40)
    def check(texts, data, depth, embedder):
        items = chunks(*texts)
        allowed = data.draw(st.lists(st.booleans(), min_size=len(texts), max_size=len(texts)))
        hits = found(retriever, items, "отпуск CX-429", depth, embedder, allowed)
        assert ranking(hits) == hits
        assert len(hits) <= depth
        assert {hit.chunk.id for hit in hits} <= {chunk.id for chunk, may in zip(items, allowed, strict=True) if may}

    check()


def test_the_order_of_the_corpus_does_not_matter(retriever):
    @given(TEXTS, st.randoms(use_true_random=False), EMBEDDERS)
    @settings(deadline=None, max_examples=40)
    def check(texts, shuffle, embedder):
        items = chunks(*texts)
        expected = placed(found(retriever, items, "отпуск CX-429", 5, embedder))
        shuffle.shuffle(items)
        assert placed(found(retriever, items, "отпуск CX-429", 5, embedder)) == expected

    check()


@pytest.mark.parametrize("name", SCORED)
def test_the_best_k_begin_the_best_of_any_greater_depth(name):
    @given(TEXTS, st.integers(1, 12), st.integers(1, 12), EMBEDDERS)
    @settings(deadline=None, max_examples=40)
    def check(texts, k, more, embedder):
        search = RETRIEVERS[name].index(chunks(*texts), embedder)
        short, long = (search(query("отпуск CX-429"), everything(texts), depth).fused for depth in (k, k + more))
        assert long[:k] == short

    check()


def test_nothing_indexed_or_allowed_is_nothing_found(retriever):
    assert found(retriever, [], "отпуск") == []
    assert found(retriever, chunks("отпуск", "дней"), "отпуск", allowed=[False, False]) == []


def test_the_title_is_read():
    items = chunks("28 дней", title="Отпуск")
    assert found(BM25, items, "отпуск") != []
    assert found(Dense(), items, "Отпуск\n28 дней")[0].score == pytest.approx(1)


@pytest.mark.parametrize("name", EXACT)
def test_depth_may_exceed_the_corpus(name):
    items = chunks("отпуск", "отпуск дней", "отпуск")
    assert sorted(named(found(RETRIEVERS[name], items, "отпуск", 5))) == ["d0", "d1", "d2"]


def test_earlier_queries_do_not_move_later_ones(retriever):
    items = chunks(*(" ".join(random.Random(number).choices(WORDS, k=5)) for number in range(200)))
    search = retriever.index(items, HashEmbedder())
    asked = [query(f"{word} {number}") for word in WORDS for number in range(8)]
    forth = [search(one, everything(items), 5) for one in asked]
    assert [search(one, everything(items), 5) for one in reversed(asked)] == forth[::-1]


def test_a_batch_finds_what_each_query_finds_alone(retriever):
    @given(TEXTS, st.lists(LINES, max_size=8), st.data(), st.integers(1, 12), EMBEDDERS)
    @settings(deadline=None, max_examples=40)
    def check(texts, asked, data, depth, embedder):
        allowed = np.array(data.draw(st.lists(st.booleans(), min_size=len(texts), max_size=len(texts))), bool)
        search = retriever.index(chunks(*texts), embedder)
        queries = [query(text) for text in asked]
        assert together(search, queries, allowed, depth) == [search(one, allowed, depth) for one in queries]

    check()


# Parents


FAMILIES = st.lists(st.lists(st.lists(LINES.filter(bool), min_size=1, max_size=5), max_size=4), max_size=5)
"""Of each document its parents, of each parent the texts of its children."""


def best_of(hits, by_chunk):
    """The reference: of every parent the best of its children, then all of them in the one order."""
    best = {}
    for hit in hits:
        parent = by_chunk[hit.chunk.id]
        best[parent] = max(hit.score, best.get(parent, -np.inf))
    return ranking([Hit(parent, score) for parent, score in best.items()])


def mixed(families, data):
    """Children of several documents in any order, some of which are parents' own, and the same ones on their own."""
    children = [child for number, parents in enumerate(families) for child in family(*parents, name=f"d{number}")]
    own = data.draw(st.lists(st.booleans(), min_size=len(children), max_size=len(children)))
    children = [child.parent if alone else child for child, alone in zip(children, own, strict=True)]
    children = data.draw(st.permutations(list({child.id: child for child in children}.values())))
    return children, [type(child)(child.document, child.start, child.end) for child in children]


@pytest.mark.parametrize("name", SCORED)
def test_a_parent_has_the_score_of_its_best_child_and_depth_counts_parents(name):
    @given(FAMILIES, st.data(), st.integers(1, 8), EMBEDDERS)
    @settings(deadline=None, max_examples=80)
    def check(families, data, depth, embedder):
        children, alone = mixed(families, data)
        allowed = data.draw(st.lists(st.booleans(), min_size=len(children), max_size=len(children)))
        every = found(RETRIEVERS[name], alone, "отпуск CX-429", len(alone) + 1, embedder, allowed)
        expected = best_of(every, {child.id: child.handed for child in children})[:depth]
        assert found(RETRIEVERS[name], children, "отпуск CX-429", depth, embedder, allowed) == expected

    check()


def test_every_list_speaks_of_parents_before_it_is_fused(retriever):
    @given(FAMILIES, st.data(), st.integers(1, 8))
    @settings(deadline=None, max_examples=40)
    def check(families, data, depth):
        children, _ = mixed(families, data)
        handed = {child.handed for child in children}
        candidates = retriever.index(children, HashEmbedder())(query("отпуск CX-429"), everything(children), depth)
        for hits in (*candidates.sources.values(), candidates.fused):
            assert len(hits) == len({hit.chunk for hit in hits}) <= depth
            assert {hit.chunk for hit in hits} <= handed
            assert ranking(hits) == hits

    check()


@pytest.mark.parametrize("name", EXACT)
def test_a_parent_of_very_many_near_children_takes_one_place(name):
    crowd = [f"отпуск {number}" for number in range(500)]
    children = family(crowd, *[[f"отпуск и премия {number}"] for number in range(4)])
    hits = found(RETRIEVERS[name], children, "отпуск", 5)
    assert len({hit.chunk.start for hit in hits}) == len(hits) == 5


@pytest.mark.parametrize("retriever", [Dense(), Hnsw(32, 400, 1000), Ivf(1, 1)], ids=["dense", "hnsw", "ivf"])
def test_a_search_goes_on_until_it_knows_of_as_many_parents(retriever):
    crowd = [f"отпуск {number}" for number in range(200)]
    children = family(crowd, *[[f"премия {number}"] for number in range(500)])
    alone = [type(child)(child.document, child.start, child.end) for child in children]
    every = found(Dense(), alone, "отпуск", len(alone), Crowding())
    expected = best_of(every, {child.id: child.handed for child in children})[:7]
    assert found(retriever, children, "отпуск", 7, Crowding()) == expected


def test_without_parents_each_chunk_stands_for_itself():
    items = chunks(*map(str, range(9)))
    order = Order.of(items)
    assert (order.handed, order.places.tolist(), order.spread) == (items, list(range(9)), 1)


def test_chunks_of_one_span_are_one_hit(retriever):
    one, other = chunks("отпуск", "премия дней")
    again = type(one)(one.document, one.start, one.end, ("Глава",))
    hits = found(retriever, [one, again, other], "отпуск", 5)
    assert sum(hit.chunk.document.id == "d0" for hit in hits) == 1
