"""Several lists made one: by rank, by score, whatever their order."""

import math
import re
from fractions import Fraction
from pathlib import Path

import pytest
from fakes import chunks, everything, query
from hydra import compose, initialize_config_dir
from hydra.utils import instantiate
from hypothesis import given
from hypothesis import strategies as st
from searching import BM25, BOTH, RETRIEVERS, found, named

from ablate.errors import ConfigError
from ablate.retriever import Bm25, Dense, Hybrid, HybridWeighted
from ablate.retriever.hybrid import fuse
from ablate.retriever.hybrid_weighted import weighted
from ablate.types import Candidates, Hit, ranking


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
    scores = dict(fuse(numbered([[Hit(chunk, 0.0) for chunk in ranks] for ranks in (first, second)]), 60))
    assert scores[one] == scores[other]


def numbered(lists):
    return dict(enumerate(lists))


ITEMS = chunks(*map(str, range(8)))
LISTS = st.lists(st.lists(st.sampled_from(ITEMS), unique=True).map(lambda items: [Hit(item, 0.0) for item in items]))


@given(LISTS, st.randoms(use_true_random=False))
def test_the_order_of_the_lists_does_not_matter(lists, shuffle):
    fused = fuse(numbered(lists), 60)
    shuffle.shuffle(lists)
    assert fuse(numbered(lists), 60) == fused
    assert {hit.chunk for hit in fused} == {hit.chunk for hits in lists for hit in hits}


def test_a_list_that_repeats_a_chunk_counts_its_best_rank():
    one, other = ITEMS[:2]
    assert dict(fuse({"a": [Hit(one, 3.0), Hit(one, 2.0), Hit(other, 1.0)]}, 60)) == {one: 1 / 61, other: 1 / 62}


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


# By score


def scored(*pairs):
    return [Hit(ITEMS[number], score) for number, score in pairs]


def test_the_weighted_sum_by_hand():
    lists = {"dense": scored((0, 0.9), (1, 0.5), (2, 0.1)), "bm25": scored((3, 12.0), (2, 6.0), (0, 2.0))}
    fused = dict(weighted(lists, {"dense": 0.5, "bm25": 2.0}))
    assert fused == {ITEMS[3]: 2.0, ITEMS[2]: pytest.approx(2 * 0.4), ITEMS[0]: 0.5, ITEMS[1]: pytest.approx(0.25)}
    assert [hit.chunk for hit in weighted(lists, {"dense": 0.5, "bm25": 2.0})] == [ITEMS[n] for n in (3, 2, 0, 1)]


def test_a_list_of_equal_scores_gives_one_to_each():
    assert dict(weighted({"a": scored((0, 7.0), (1, 7.0))}, {"a": 0.3})) == {ITEMS[0]: 0.3, ITEMS[1]: 0.3}
    assert dict(weighted({"a": scored((0, -1.0))}, {"a": 0.3})) == {ITEMS[0]: 0.3}


def test_the_last_of_a_list_counts_no_more_than_one_that_it_lacks():
    fused = dict(weighted({"a": scored((0, 2.0), (1, 1.0)), "b": scored((0, 2.0))}, {"a": 1.0, "b": 1.0}))
    assert fused == {ITEMS[0]: 2.0, ITEMS[1]: 0.0}


def test_a_list_that_repeats_a_chunk_counts_its_best_score():
    repeated = scored((0, 3.0), (1, 2.0), (0, 1.0), (2, 0.0))
    assert dict(weighted({"a": repeated}, {"a": 3.0})) == {ITEMS[0]: 3.0, ITEMS[1]: 2.0, ITEMS[2]: 0.0}


def test_an_empty_list_leaves_the_order_of_the_other_by_score_too():
    items = chunks("отпуск", "премия")
    assert named(found(RETRIEVERS["hybrid_weighted"], items, "zzz")) == named(found(Dense(), items, "zzz"))


FLOATS = st.floats(-1e6, 1e6)
SCORED = st.lists(st.dictionaries(st.sampled_from(ITEMS), FLOATS), min_size=1, max_size=4).map(
    lambda lists: [sorted((Hit(*pair) for pair in each.items()), key=lambda hit: -hit.score) for each in lists]
)


@given(SCORED, st.data())
def test_weighted_sums_are_those_of_exact_arithmetic(lists, data):
    weights = {name: data.draw(st.floats(0.01, 10)) for name in range(len(lists))}
    fused = weighted(numbered(lists), weights)
    exact = {}
    for name, hits in enumerate(lists):
        scores = [Fraction(hit.score) for hit in hits]
        for hit, score in zip(hits, scores, strict=True):
            width = max(scores) - min(scores)
            share = (score - min(scores)) / width if width else Fraction(1)
            exact[hit.chunk] = exact.get(hit.chunk, 0) + Fraction(weights[name]) * share
    assert dict(fused) == {chunk: pytest.approx(float(value), rel=1e-12, abs=1e-12) for chunk, value in exact.items()}
    assert ranking(fused) == fused


@given(SCORED, st.data())
def test_the_order_of_the_weighted_lists_moves_no_bit(lists, data):
    weights = {name: data.draw(st.floats(0.01, 10)) for name in range(len(lists))}
    names = data.draw(st.permutations(list(weights)))
    assert weighted({name: lists[name] for name in names}, weights) == weighted(numbered(lists), weights)


@given(SCORED, st.floats(0.5, 4))
def test_the_scale_of_a_list_does_not_matter(lists, factor):
    moved = [[Hit(hit.chunk, hit.score * 2.0) for hit in hits] for hits in lists]
    weights = dict.fromkeys(range(len(lists)), factor)
    assert weighted(numbered(moved), weights) == weighted(numbered(lists), weights)


@pytest.mark.parametrize(
    ("parts", "weights", "said"),
    [
        ({}, {}, "parts: found none"),
        (BOTH, {"dense": 1.0}, "weights: found dense, expected one for each of the parts dense, bm25"),
        (BOTH, {}, "weights: found none"),
        (BOTH, {"dense": 1.0, "bm25": 1.0, "x": 1.0}, "weights: found dense, bm25, x"),
        (BOTH, {"dense": 0.0, "bm25": 1.0}, "weights.dense: found 0.0, expected a number above 0; leave the part out"),
        (BOTH, {"dense": 1.0, "bm25": -1.0}, "weights.bm25: found -1.0"),
        (BOTH, {"dense": 1.0, "bm25": math.nan}, "weights.bm25: found nan"),
        (BOTH, {"dense": 1.0, "bm25": math.inf}, "weights.bm25: found inf"),
    ],
)
def test_weights_that_do_not_fit_the_parts_are_refused(parts, weights, said):
    with pytest.raises(ConfigError, match=f"^{re.escape(said)}"):
        HybridWeighted(parts, weights)
