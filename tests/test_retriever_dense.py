"""Exact search by vectors: the order of double precision, alone or in batches, among all or few."""

import math

import faiss
import numpy as np
import pytest
from fakes import Given, HashEmbedder, NearTies, chunks, everything, query
from hypothesis import given, settings
from hypothesis import strategies as st
from searching import EMBEDDERS, TEXTS, WORDS, found, named, placed

from ablate.errors import ConfigError
from ablate.retriever import Dense
from ablate.retriever.dense import DenseSearch
from ablate.types import Hit, ranking


@given(TEXTS, st.integers(1, 12), EMBEDDERS, st.data())
@settings(deadline=None)
def test_dense_search_is_exact_where_single_precision_cannot_tell(texts, depth, embedder, data):
    items = chunks(*texts)
    allowed = data.draw(st.lists(st.booleans(), min_size=len(texts), max_size=len(texts)))
    asked = embedder.queries(["отпуск"])[0].astype(float)
    scores = [min(1.0, float(np.add.reduce(vector.astype(float) * asked))) for vector in embedder.documents(texts)]
    every = [Hit(chunk, score) for chunk, score, may in zip(items, scores, allowed, strict=True) if may]
    assert found(Dense(), items, "отпуск", depth, embedder, allowed) == ranking(every)[:depth]


def test_a_score_depends_on_query_and_chunk_alone():
    items = chunks(*(f"текст {number}" for number in range(300)))
    every = dict(placed(found(Dense(), items, "отпуск", 300, HashEmbedder(384))))
    assert len(every) == 300
    for size in (1, 2, 3, 7, 64):
        few = found(Dense(), items[:size], "отпуск", 300, HashEmbedder(384))
        assert placed(few) == [(name, every[name]) for name, _ in placed(few)]


@pytest.mark.parametrize("embedder", [HashEmbedder(384), NearTies(384)])
def test_threads_do_not_move_a_bit(embedder):
    items = chunks(*(f"{number} текст" for number in range(500)))
    before = faiss.omp_get_max_threads()
    try:
        answers = []
        for threads in (1, 2):
            faiss.omp_set_num_threads(threads)
            answers.append([placed(found(Dense(), items, word, 20, embedder)) for word in WORDS])
    finally:
        faiss.omp_set_num_threads(before)
    assert answers[0] == answers[1]


def test_three_vectors_and_depth_five_give_three_hits():
    assert sorted(named(found(Dense(), chunks("а", "б", "в"), "г", 5))) == ["d0", "d1", "d2"]


def test_cosines_do_not_exceed_one():
    vector = (np.ones(3, dtype=np.float32) / np.float32(math.sqrt(3))).tolist()
    rounded_up = [float(np.nextafter(np.float32(value), np.float32(1))) for value in vector]
    embedder = Given({"а": rounded_up, "б": [-value for value in rounded_up]})
    assert [hit.score for hit in found(Dense(), chunks("а", "б"), "а", 5, embedder)] == [1.0, -1.0]


@pytest.mark.parametrize("vector", [[3.0, 4.0], [0.0, 0.0], [math.nan, 1.0], [0.6, 0.8001]])
def test_a_vector_that_is_not_of_length_one_is_refused(vector):
    embedder = Given({"а": [1.0, 0.0], "б": vector})
    with pytest.raises(ConfigError, match=r"vector 1 of Given.* has length .*, expected 1 .* normalise"):
        found(Dense(), chunks("а", "б"), "а", 5, embedder)
    with pytest.raises(ConfigError, match=r"vector 0 of Given.* has length"):
        found(Dense(), chunks("а"), "б", 5, embedder)


def test_other_dimensions_of_the_query_are_named():
    embedder = Given({"текст": [1.0] + [0.0] * 7, "вопрос": [1.0] + [0.0] * 6})
    with pytest.raises(ConfigError, match=r"query vectors of 7 dimensions against chunk vectors of 8, both from Given"):
        found(Dense(), chunks("текст"), "вопрос", 5, embedder)


def test_an_embedder_that_drops_a_text_is_refused():
    class Short(HashEmbedder):
        def documents(self, texts):
            return super().documents(texts[1:])

    with pytest.raises(ConfigError, match=r"vectors of shape \(1, 16\) for 2 texts"):
        Dense().index(chunks("а", "б"), Short())


def test_the_dense_list_is_reported_by_its_name():
    items = chunks("а", "б")
    candidates = Dense().index(items, HashEmbedder())(query(), everything(items), 5)
    assert candidates.sources == {"dense": candidates.fused}


# Batches


@pytest.fixture(params=["by selector", "by copy"])
def way(request, monkeypatch):
    """The two ways in which FAISS is asked about a part of the vectors, whatever the number of queries."""
    threshold = 10**9 if request.param == "by selector" else 1
    monkeypatch.setattr(faiss.cvar, "distance_compute_blas_threshold", threshold)


def batched(items, texts, allowed, depth, embedder):
    search = Dense().index(items, embedder)
    return [answer.fused for answer in search.batch([query(text) for text in texts], allowed, depth)]


@pytest.mark.parametrize("share", [0.01, 0.1, 0.5, 0.9, 1.0])
@pytest.mark.parametrize("embedder", [HashEmbedder(384), NearTies(384)])
def test_a_batch_is_exact_whatever_share_is_allowed(way, embedder, share):
    items = chunks(*(f"{number} текст" for number in range(400)))
    allowed = np.random.default_rng(0).random(400) < share
    vectors = embedder.documents([item.reading for item in items]).astype(float)
    texts = [f"{word} {number}" for word in WORDS for number in range(4)]
    answers = batched(items, texts, allowed, 7, embedder)
    for asked, hits in zip(embedder.queries(texts).astype(float), answers, strict=True):
        scores = [min(1.0, float(np.add.reduce(vector * asked))) for vector in vectors]
        every = [Hit(item, score) for item, score, may in zip(items, scores, allowed, strict=True) if may]
        assert hits == ranking(every)[:7]


@given(TEXTS, st.lists(st.sampled_from(WORDS), max_size=9), st.data(), st.integers(1, 9), EMBEDDERS)
@settings(deadline=None, max_examples=60)
def test_what_is_asked_together_moves_no_bit(texts, asked, data, depth, embedder):
    items = chunks(*texts)
    allowed = np.array(data.draw(st.lists(st.booleans(), min_size=len(texts), max_size=len(texts))), bool)
    alone = [batched(items, [text], allowed, depth, embedder)[0] for text in asked]
    before = faiss.cvar.distance_compute_blas_threshold
    try:
        for faiss.cvar.distance_compute_blas_threshold in (1, 10**9):
            assert batched(items, asked, allowed, depth, embedder) == alone
    finally:
        faiss.cvar.distance_compute_blas_threshold = before


def test_vectors_that_are_all_alike_are_held_for_few_queries_at_once(way, monkeypatch):
    items = chunks(*["один текст"] * 300)
    texts = [f"{word} {number}" for word in WORDS for number in range(3)]
    allowed = np.random.default_rng(0).random(300) < 0.8
    expected = batched(items, texts, allowed, 5, HashEmbedder())
    monkeypatch.setattr("ablate.retriever.dense.FETCHED", 100)
    sizes = []
    nearest = DenseSearch.nearest

    def noted(search, asked, allowed, count):
        sizes.append(len(asked) * count)
        return nearest(search, asked, allowed, count)

    monkeypatch.setattr(DenseSearch, "nearest", noted)
    assert batched(items, texts, allowed, 5, HashEmbedder()) == expected
    assert max(sizes) <= max(100, allowed.sum())


def test_a_batch_of_no_queries_finds_nothing():
    items = chunks("а", "б")
    assert batched(items, [], everything(items), 5, HashEmbedder()) == []
