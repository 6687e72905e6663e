import logging
import math
import random
from pathlib import Path

import faiss
import numpy as np
import pytest
import rank_bm25
from fakes import Given, HashEmbedder, NearTies, chunks, everything, query
from hydra import compose, initialize_config_dir
from hydra.utils import instantiate
from hypothesis import given, settings
from hypothesis import strategies as st

from ablate.errors import ConfigError
from ablate.retriever import Bm25, Dense, Hybrid, fuse
from ablate.tokens import terms
from ablate.types import Candidates, Hit, ranking

BM25 = Bm25(1.5, 0.75, [])
RETRIEVERS = {"dense": Dense(), "bm25": BM25, "hybrid": Hybrid({"dense": Dense(), "bm25": BM25}, 60)}
WORDS = ["отпуск", "дней", "премия", "rule", "CX-429", "C++", "東京", "ё", "и"]
TEXTS = st.lists(st.lists(st.sampled_from(WORDS), max_size=6).map(" ".join), max_size=40)
EMBEDDERS = st.sampled_from([HashEmbedder(), NearTies(), HashEmbedder(1), NearTies(384)])


@pytest.fixture(params=RETRIEVERS)
def retriever(request):
    return RETRIEVERS[request.param]


HASHED = HashEmbedder()


def found(retriever, items, text, depth=50, embedder=HASHED, allowed=None):
    search = retriever.index(items, embedder)
    return search(query(text), everything(items) if allowed is None else np.array(allowed, dtype=bool), depth).fused


def named(hits):
    return [hit.chunk.document.id for hit in hits]


def placed(hits):
    return [(hit.chunk.id, hit.score) for hit in hits]


# Every retriever


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


@pytest.mark.parametrize("name", ["dense", "bm25"])
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


def test_depth_may_exceed_the_corpus(retriever):
    assert sorted(named(found(retriever, chunks("отпуск", "отпуск дней", "отпуск"), "отпуск", 5))) == ["d0", "d1", "d2"]


def test_earlier_queries_do_not_move_later_ones(retriever):
    items = chunks(*(" ".join(random.Random(number).choices(WORDS, k=5)) for number in range(200)))
    search = retriever.index(items, HashEmbedder())
    asked = [query(f"{word} {number}") for word in WORDS for number in range(8)]
    forth = [search(one, everything(items), 5) for one in asked]
    assert [search(one, everything(items), 5) for one in reversed(asked)] == forth[::-1]


# Dense


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


# BM25


class PositiveIdf(rank_bm25.BM25Okapi):
    def _calc_idf(self, nd):
        for word, n in nd.items():
            self.idf[word] = math.log(1 + (self.corpus_size - n + 0.5) / (n + 0.5))


@pytest.mark.parametrize(("k1", "b"), [(1.5, 0.75), (0.9, 0.4), (0.1, 0.0), (2.0, 1.0)])
def test_scores_are_those_of_rank_bm25_to_the_last_bit(k1, b):
    @given(TEXTS.filter(any), st.lists(st.sampled_from(WORDS)).map(" ".join))
    @settings(deadline=None, max_examples=60)
    def check(texts, asked):
        with np.errstate(invalid="ignore"):  # the reference divides by zero where a text is empty
            expected = PositiveIdf([terms(text) for text in texts], k1=k1, b=b).get_scores(terms(asked)).tolist()
        hits = [Hit(chunk, score) for chunk, score in zip(chunks(*texts), expected, strict=True) if score > 0]
        assert placed(found(Bm25(k1, b, []), chunks(*texts), asked, 10)) == placed(ranking(hits)[:10])

    check()


def test_a_term_in_half_of_the_documents_still_counts():
    hits = found(BM25, chunks("отпуск", "премия"), "отпуск")
    assert named(hits) == ["d0"]
    assert hits[0].score > 0


def test_a_term_in_every_document_still_counts():
    assert len(found(BM25, chunks("отпуск и", "премия и"), "и")) == 2


def test_a_repeated_word_of_the_query_counts_as_often():
    once, twice = (found(BM25, chunks("отпуск"), asked)[0].score for asked in ("отпуск", "отпуск отпуск"))
    assert twice == 2 * once


@pytest.mark.parametrize("texts", [(), ("", " "), ("...",)])
def test_a_corpus_without_a_term_is_indexed_and_finds_nothing(texts):
    assert found(BM25, chunks(*texts), "отпуск") == []


@pytest.mark.parametrize("asked", ["zzz", "", " ", "?!"])
def test_a_query_that_shares_no_term_finds_nothing(asked):
    assert found(BM25, chunks("отпуск", "премия"), asked) == []


def test_silence_of_chunks_and_queries_is_told_but_not_of_blanks():
    items = chunks("отпуск", "!?", " ", "")
    search = BM25.index(items, None)
    assert search.silent_chunks == 1
    assert [search.silent(query(text)) for text in ("?!", " ", "", "zzz", "отпуск")] == [
        True,
        False,
        False,
        False,
        False,
    ]
    both = RETRIEVERS["hybrid"].index(items, HashEmbedder())
    assert both.silent_chunks == 1
    assert both.silent(query("?!"))
    assert Dense().index(items, HashEmbedder()).silent_chunks == 0


def test_cyrillic_and_ideographs_are_found():
    items = chunks("vacation lasts long", "Отпуск длится 28 дней", "東京の休暇")
    assert named(found(BM25, items, "сколько ДНЕЙ отпуска")) == ["d1"]
    assert named(found(BM25, items, "休暇")) == ["d2"]


def test_languages_find_other_forms_of_a_word():
    items = chunks("Отпуск предоставляется", "holidays")
    assert found(BM25, items, "отпуска") == found(BM25, items, "holiday") == []
    stemmed = Bm25(1.5, 0.75, ["russian", "english"])
    assert named(found(stemmed, items, "отпуска")) == ["d0"]
    assert named(found(stemmed, items, "holiday")) == ["d1"]


@pytest.mark.parametrize("identifier", ["CX-429", "C++", ".NET", "v2.1.3", "AB/12"])
def test_an_identifier_beats_its_parts(identifier):
    part = terms(identifier)[-1]
    items = chunks(f"{part} есть", f"{identifier} есть", f"есть {part} {part}")
    assert named(found(BM25, items, identifier))[0] == "d1"


def test_indexing_neither_prints_nor_logs(capsys, caplog):
    with caplog.at_level(logging.DEBUG):
        found(BM25, chunks("отпуск"), "отпуск")
    assert capsys.readouterr() == ("", "")
    assert [record for record in caplog.records if record.name.startswith("bm25s")] == []


@pytest.mark.parametrize(
    ("k1", "b", "key"),
    [(-0.1, 0.5, "k1"), (math.nan, 0.5, "k1"), (math.inf, 0.5, "k1"), (1, 1.1, "b"), (1, math.nan, "b")],
)
def test_settings_out_of_range_are_refused(k1, b, key):
    with pytest.raises(ConfigError, match=f"^{key}: found"):
        Bm25(k1, b, [])


def test_an_unknown_language_is_refused_before_anything_is_indexed():
    with pytest.raises(ConfigError, match="found 'klingon'"):
        Bm25(1.5, 0.75, ["klingon"])


# Hybrid


class Fixed:
    """A retriever with a list of its own, as a user may write one."""

    def __init__(self, *numbers):
        self.numbers = numbers

    def index(self, items, embedder):
        def search(query, allowed, depth):
            hits = [Hit(items[number], -rank) for rank, number in enumerate(self.numbers) if allowed[number]][:depth]
            return Candidates({"own": hits}, hits)

        return search


def test_what_both_lists_hold_beats_what_one_holds_first():
    x, a, y, b, c = range(5)
    hybrid = Hybrid({"dense": Fixed(x, a, y), "sparse": Fixed(b, c, y)}, 60)
    hits = found(hybrid, chunks(*"xaybc"), "?")
    assert hits[0] == Hit(hits[0].chunk, 2 / 63)
    assert hits[0].chunk.text == "y"
    assert {hit.chunk.text for hit in hits[1:3]} == {"x", "b"}
    assert [hit.score for hit in hits[1:]] == [1 / 61, 1 / 61, 1 / 62, 1 / 62]


def test_a_part_of_ones_own_may_be_a_function_that_says_nothing_of_silence():
    search = Hybrid({"own": Fixed(0), "bm25": BM25}, 60).index(chunks("?!"), None)
    assert search.silent_chunks == 1
    assert search.silent(query("?!"))


def test_lists_are_cut_at_depth_before_and_after_fusion_and_kept_by_name():
    hybrid = Hybrid({"dense": Fixed(0, 1, 2), "sparse": Fixed(3, 4, 2)}, 60)
    items = chunks(*"xaybc")
    candidates = hybrid.index(items, None)(query(), everything(items), 2)
    assert {name: named(hits) for name, hits in candidates.sources.items()} == {
        "dense": ["d0", "d1"],
        "sparse": ["d3", "d4"],
    }
    assert sorted(named(candidates.fused)) == ["d0", "d3"]


def test_an_empty_list_leaves_the_order_of_the_other():
    items = chunks("отпуск", "премия")
    assert named(found(RETRIEVERS["hybrid"], items, "zzz")) == named(found(Dense(), items, "zzz"))


def test_sums_of_equal_shares_are_equal():
    # 1/66 + 1/99 = 1/72 + 1/88, which sums of floating-point shares miss
    items = chunks(*map(str, range(80)))
    one, other = items[:2]
    rest = iter(items[2:])
    first = [{6: one, 12: other}.get(rank) or next(rest) for rank in range(1, 13)]
    second = [{39: one, 28: other}.get(rank) or next(rest) for rank in range(1, 40)]
    scores = dict(fuse([[Hit(chunk, 0.0) for chunk in ranks] for ranks in (first, second)], 60))
    assert scores[one] == scores[other]


ITEMS = chunks(*map(str, range(8)))
LISTS = st.lists(st.lists(st.sampled_from(ITEMS), unique=True).map(lambda items: [Hit(item, 0.0) for item in items]))


@given(LISTS, st.randoms(use_true_random=False))
def test_the_order_of_the_lists_does_not_matter(lists, shuffle):
    fused = fuse(lists, 60)
    shuffle.shuffle(lists)
    assert fuse(lists, 60) == fused
    assert {hit.chunk for hit in fused} == {hit.chunk for hits in lists for hit in hits}


def test_a_list_that_repeats_a_chunk_counts_its_best_rank():
    one, other = ITEMS[:2]
    assert dict(fuse([[Hit(one, 3.0), Hit(one, 2.0), Hit(other, 1.0)]], 60)) == {one: 1 / 61, other: 1 / 62}


@pytest.mark.parametrize(("parts", "rrf_k", "key"), [({}, 60, "parts"), ({"dense": Dense()}, -1, "rrf_k")])
def test_a_fusion_of_nothing_or_by_a_negative_constant_is_refused(parts, rrf_k, key):
    with pytest.raises(ConfigError, match=f"^{key}: found"):
        Hybrid(parts, rrf_k)


def test_the_parts_keep_the_settings_of_their_own_files():
    with initialize_config_dir(str(Path(__file__).parents[1] / "conf"), version_base="1.3"):
        alone = compose("retriever/bm25", ["retriever.k1=0.9"]).retriever
        hybrid = compose("retriever/hybrid", ["retriever.parts.bm25.k1=0.9"]).retriever
    assert hybrid.parts.bm25 == alone
    assert instantiate(hybrid, _convert_="all") == Hybrid({"dense": Dense(), "bm25": Bm25(0.9, 0.75, [])}, 60)
