"""Search by FAISS's graph and lists: as good as it is, but the same every time, and never what is not allowed."""

import faiss
import numpy as np
import pytest
from fakes import Given, HashEmbedder, chunks, everything, query
from searching import BM25, RETRIEVERS, WORDS, family, found, placed

from ablate.errors import ConfigError
from ablate.retriever import Dense, Hnsw, Hybrid, HybridWeighted, Ivf

KINDS = {"hnsw": Hnsw(8, 40, 40), "ivf": Ivf(16, 4)}
WIDE = HashEmbedder(64)
MANY = chunks(*(f"текст {number}" for number in range(1500)))
QUERIES = [query(f"{word} {number}") for word in WORDS for number in range(5)]
DEPTH = 20


@pytest.fixture(params=KINDS)
def kind(request):
    return KINDS[request.param]


def answers(retriever, items=MANY, allowed=None, depth=DEPTH, embedder=WIDE):
    search = retriever.index(items, embedder)
    allowed = everything(items) if allowed is None else allowed
    return [placed(search(one, allowed, depth).fused) for one in QUERIES]


def recall(retriever):
    pairs = zip(answers(retriever), answers(Dense()), strict=True)
    return np.mean([len(dict(hits).keys() & dict(best).keys()) / DEPTH for hits, best in pairs])


def test_two_builds_find_the_same(kind):
    assert answers(kind) == answers(kind)


def test_neither_threads_nor_the_order_of_the_corpus_move_a_bit(kind):
    expected = answers(kind)
    before = faiss.omp_get_max_threads()
    try:
        for threads in (1, 2):
            faiss.omp_set_num_threads(threads)
            assert answers(kind) == expected
            assert faiss.omp_get_max_threads() == threads
    finally:
        faiss.omp_set_num_threads(before)
    assert answers(kind, MANY[::-1]) == expected


def test_looking_further_finds_more_until_it_finds_all():
    few, more, every = (recall(Ivf(16, nprobe)) for nprobe in (1, 6, 16))
    assert few < more < every == 1
    few, more = recall(Hnsw(4, 8, 1)), recall(Hnsw(16, 200, 300))
    assert few < 0.9 < 0.99 < more


def test_each_setting_of_the_graph_counts():
    assert recall(Hnsw(4, 4, 20)) < recall(Hnsw(4, 200, 20)) < recall(Hnsw(16, 200, 20)) < recall(Hnsw(16, 200, 200))


def test_what_is_found_has_the_scores_of_exact_search(kind):
    for hits, exact in zip(answers(kind), answers(Dense(), depth=len(MANY)), strict=True):
        assert hits
        assert hits == [pair for pair in exact if pair[0] in dict(hits)]


@pytest.mark.parametrize("share", [0.002, 0.1, 0.9])
def test_what_is_not_allowed_is_passed_by_and_eats_no_place(kind, share):
    allowed = np.random.default_rng(1).random(len(MANY)) < share
    may = {item.id for item, free in zip(MANY, allowed, strict=True) if free}
    ours, exact = answers(kind, allowed=allowed), answers(Dense(), allowed=allowed)
    assert all(dict(hits).keys() <= may for hits in ours)
    assert sum(len(dict(hits).keys() & dict(best).keys()) for hits, best in zip(ours, exact, strict=True)) > 0


def test_reading_every_list_is_exact_among_any_share():
    for share in (0.002, 0.1, 0.9):
        allowed = np.random.default_rng(1).random(len(MANY)) < share
        assert answers(Ivf(16, 16), allowed=allowed) == answers(Dense(), allowed=allowed)


@pytest.mark.parametrize("size", range(1, 6))
@pytest.mark.parametrize("kind", [Hnsw(32, 200, 64), Ivf(64, 1)], ids=["hnsw", "ivf"])
def test_very_few_vectors_are_all_found_without_a_word(kind, size, capfd):
    assert answers(kind, MANY[:size]) == answers(Dense(), MANY[:size])
    assert capfd.readouterr() == ("", "")


def test_lists_hold_39_vectors_on_average_or_are_fewer():
    sizes = {size: Ivf(16, 4).index(MANY[:size], WIDE).index.nlist for size in (1, 39, 77, 78, 600, 1500)}
    assert sizes == {1: 1, 39: 1, 77: 1, 78: 2, 600: 15, 1500: 16}


def test_equal_vectors_are_searched_too(kind, capfd):
    items = chunks(*["один текст"] * 700)
    assert all(len(hits) <= DEPTH for hits in answers(kind, items))
    assert answers(kind, items) == answers(kind, items[::-1])
    assert capfd.readouterr() == ("", "")


def test_depth_counts_parents_here_too(kind):
    crowd = [f"отпуск {number}" for number in range(300)]
    children = family(crowd, *[[f"отпуск и премия {number}"] for number in range(9)])
    wide = {"hnsw": Hnsw(16, 200, 400), "ivf": Ivf(4, 4)}[type(kind).__name__.lower()]
    assert placed(found(wide, children, "отпуск", 5)) == placed(found(Dense(), children, "отпуск", 5))


def test_only_what_leaves_something_out_has_an_exact_search_beside_it(kind):
    items = chunks("отпуск", "премия")
    for name in ("dense", "bm25", "rank_bm25", "hybrid", "hybrid_weighted"):
        assert getattr(RETRIEVERS[name].index(items, WIDE), "exact", None) is None
    for retriever, exact in (
        (kind, Dense()),
        (Hybrid({"a": kind, "b": BM25}, 60), Hybrid({"a": Dense(), "b": BM25}, 60)),
        (Hybrid({"a": Hybrid({"c": kind}, 9)}, 60), Hybrid({"a": Hybrid({"c": Dense()}, 9)}, 60)),
        (HybridWeighted({"a": kind}, {"a": 0.5}), HybridWeighted({"a": Dense()}, {"a": 0.5})),
    ):
        search = retriever.index(MANY, WIDE).exact
        expected = exact.index(MANY, WIDE)
        for one in QUERIES[:5]:
            assert search(one, everything(MANY), DEPTH).fused == expected(one, everything(MANY), DEPTH).fused


def test_a_list_is_reported_by_the_name_of_its_index(kind):
    candidates = kind.index(MANY, WIDE)(QUERIES[0], everything(MANY), DEPTH)
    assert candidates.sources == {type(kind).__name__.lower(): candidates.fused}


def test_queries_are_never_silent(kind):
    search = kind.index(chunks("?!"), WIDE)
    assert search.silent_chunks == 0
    assert not search.silent(query("?!"))


def test_vectors_that_are_not_of_length_one_are_refused_here_too(kind):
    with pytest.raises(ConfigError, match=r"vector 0 of Given.* has length 5"):
        kind.index(chunks("а"), Given({"а": [3.0, 4.0]}))


@pytest.mark.parametrize(
    ("kind", "settings", "said"),
    [
        (Hnsw, (1, 40, 40), "m: found 1, expected at least 2"),
        (Hnsw, (8, 0, 40), "ef_construction: found 0"),
        (Hnsw, (8, 40, 0), "ef_search: found 0"),
        (Ivf, (0, 1), "nlist: found 0"),
        (Ivf, (4, 0), "nprobe: found 0 with nlist 4"),
        (Ivf, (4, 5), "nprobe: found 5 with nlist 4"),
    ],
)
def test_settings_out_of_range_are_refused(kind, settings, said):
    with pytest.raises(ConfigError, match=f"^{said}"):
        kind(*settings)
