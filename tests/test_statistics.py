"""Words, intervals, p-values: by hand, against scipy and every flip, by law, and on studies where nothing is true."""

import itertools
import math
import random
import subprocess
import sys
import time
from collections import Counter
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as some
from scipy import stats

from ablate.errors import AblateError
from ablate.measures import LOWER
from ablate.statistics import (
    Differences,
    Spread,
    Word,
    clusters,
    detectable,
    differences,
    holm,
    interaction,
    interplay,
    needed,
    not_worse,
    placebo,
    plan,
    shared,
    sign_flip,
    spread,
    spread_of_share,
    spread_of_values,
    verdict,
    verdicts,
)
from ablate.statistics.differences import exact
from ablate.statistics.power import chance
from ablate.statistics.proportions import score, score_at_least
from ablate.types import Judgment, Query, Span, Truth, Unit

ALPHA = 0.05
STUDIES = 100
lawful = settings(derandomize=True, deadline=None, max_examples=40)


def found(*each, labels=None, reach=1, binary=False):
    """Differences as they are written."""
    return Differences(
        tuple(exact(value) for value in each), tuple(range(len(each)) if labels is None else labels), reach, binary
    )


def moves(gained, lost, same):
    """A 0/1 measure on queries of which some gained, some lost and the others stayed."""
    return found(*[1] * gained, *[-1] * lost, *[0] * same, binary=True)


def flips(test_of):
    """Sums of the clusters under every flip, literally."""
    sums = Counter()
    for difference, label in zip(test_of.each, test_of.labels, strict=True):
        sums[label] += difference
    return [
        sum(sign * total for sign, total in zip(signs, sums.values(), strict=True))
        for signs in itertools.product((1, -1), repeat=len(sums))
    ]


def brute(test_of, delta=Fraction(0)):
    """Two-sided and both one-sided p-values under every flip of the shifted differences, in exact arithmetic."""
    moved = replace(test_of, each=tuple(value - delta for value in test_of.each))
    seen, sums = sum(moved.each), flips(moved)
    share = [sum(map(rule, sums)) / len(sums) for rule in (lambda s: abs(s) >= abs(seen), seen.__le__, seen.__ge__)]
    return tuple(share)


shares = some.sampled_from([Fraction(k, n) for n in (1, 2, 3, 4) for k in range(-n, n + 1)])
small = some.lists(some.tuples(shares, some.integers(0, 6)), min_size=1, max_size=9).map(
    lambda rows: found(*[value for value, _ in rows], labels=[label for _, label in rows])
)
large = some.lists(some.tuples(shares, some.integers(0, 40)), min_size=20, max_size=60).map(
    lambda rows: found(*[value for value, _ in rows], labels=[label for _, label in rows])
)


# Clusters


def query(name, text="", **more):
    return Query(name, text or name, **more)


def truth(name, *documents, **more):
    return Truth(name, alternatives=((tuple(Unit(document) for document in documents),),), **more)


def test_queries_that_share_evidence_a_text_or_a_name_are_one_cluster():
    ties = {
        "а": shared(query("а"), truth("а", "отпуск", "приказ")),
        "б": shared(query("б"), truth("б", "приказ")),
        "в": shared(query("в", "Сколько  дней отпуска?"), truth("в", "другое")),
        "г": shared(query("г", "сколько дней ОТПУСКА?"), None),
        "д": shared(query("д", cluster="кадры"), None),
        "е": shared(query("е", cluster="кадры"), None),
        "ж": shared(query("ж", cluster="приказ"), None),
    }
    assert clusters(ties) == {"а": "а", "б": "а", "в": "в", "г": "в", "д": "д", "е": "д", "ж": "ж"}


def test_a_query_stands_with_those_that_share_its_most_common_source_and_ties_no_two_others():
    ties = {
        "c": [("document", "x")], "a": [("document", "y")], "b": [("document", "x"), ("document", "y")],
        "e": [("document", "x")], "d": [],
    }  # fmt: skip
    for order in itertools.permutations(ties):
        assert clusters({name: ties[name] for name in order}) == {"a": "a", "b": "b", "c": "b", "e": "b", "d": "d"}


def test_a_declared_cluster_decides_before_any_source():
    common = ("document", "приказ")
    ties = {"а": [common, ("cluster", "отпуск")], "б": [("cluster", "отпуск")], "в": [common], "г": [common]}
    assert clusters(ties) == {"а": "а", "б": "а", "в": "в", "г": "в"}


def test_what_is_judged_is_evidence_only_where_there_are_no_alternatives():
    judged = (Judgment(Unit("span", (Span(0, 1),)), 1), Judgment(Unit("useless", (Span(0, 1),)), 0))
    alone = Truth("q", judged=judged, documents={"whole": 2, "irrelevant": 0})
    assert {name for kind, name in shared(query("q"), alone) if kind == "document"} == {"span", "whole"}
    both = truth("q", "fact", judged=judged)
    assert {name for kind, name in shared(query("q"), both) if kind == "document"} == {"fact"}


# Differences


def test_values_are_the_fractions_that_they_mean():
    assert exact(0.1 + 0.2) == Fraction(3, 10)
    assert exact(2 / 3) == Fraction(2, 3)
    assert exact(-17 / 997) == Fraction(-17, 997)
    assert exact(1234.0) == 1234
    assert exact(1 / math.log2(3)) == Fraction(1 / math.log2(3))
    assert exact(1 / 3 + 1e-9) != Fraction(1, 3)


@lawful
@given(some.integers(-5000, 5000), some.integers(1, 1000))
def test_every_share_of_up_to_a_thousand_is_exact(above, below):
    assert exact(above / below) == Fraction(above, below)


@lawful
@given(some.floats(-10, 10))
def test_a_value_agrees_with_the_nearest_small_fraction_or_is_kept(value):
    near = Fraction(value).limit_denominator(1000)
    close = abs(float(near - Fraction(value))) <= 1e-12 * max(1, abs(value))
    assert exact(value) == (near if close else Fraction(value))


def test_sides_are_paired_on_the_queries_of_both():
    pairs = differences({"a": 0.0, "b": 1.0, "c": 0.5}, {"c": 1.0, "b": 1.0, "z": 0.0}, {"b": "x", "c": "x"})
    assert (pairs.each, pairs.labels, pairs.n, pairs.mean) == ((0, Fraction(1, 2)), ("x", "x"), 2, Fraction(1, 4))
    assert (pairs.reach, pairs.binary, pairs.weight) == (1, False, 2)


def test_a_query_without_a_label_is_its_own_cluster_even_if_another_cluster_has_its_name():
    pairs = differences(dict.fromkeys("abc", 0), dict.fromkeys("abc", 1), {"b": "a", "c": "a"})
    assert sorted(size for _, size in pairs.clusters) == [1, 2]
    assert pairs.binary


def test_a_measure_beyond_one_has_no_reach():
    assert differences({"a": 500}, {"a": 700}).reach is None


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_a_value_that_is_no_number_is_refused(value):
    with pytest.raises(AblateError, match="expected a finite number"):
        differences({"a": 0.0}, {"a": value})


def test_sides_without_a_common_query_are_refused():
    with pytest.raises(AblateError, match="found none that every side has"):
        differences({"a": 0.0}, {"b": 0.0})


# The test


def test_by_hand_three_of_three_queries_improved():
    test = sign_flip(moves(3, 0, 0))
    assert (test.p(), test.p_greater(), test.p_less()) == (2 / 8, 1 / 8, 1.0)
    assert (test.smallest_p, test.moved, test.interval(ALPHA)) == (2 / 8, 3, (None, None))


def test_by_hand_six_of_seven_queries_improved_by_different_amounts():
    """Of 64 flips of 1, 2, 3, 4, 5, 6 the sums 21 and 19 are at least 19, so p = 2 * 2 / 64."""
    test = sign_flip(found(-1, 2, 3, 4, 5, 6, 0, reach=None))
    assert test.p() == 4 / 64
    assert test.smallest_p == 2 / 64


def test_by_hand_the_bounds_are_means_of_sets():
    """Means of the sets of {1, 3}: empty, 1, 3, 2. More than a quarter of the sets are at most 1, more than half 2."""
    test = sign_flip(found(1, 3, reach=None))
    assert [test.at_least(alpha) for alpha in (0.2, 0.25, 0.3, 0.5, 0.75)] == [None, 1, 1, 2, 3]
    assert [test.at_most(alpha) for alpha in (0.2, 0.25, 0.3, 0.5, 0.75)] == [None, 3, 3, 2, 1]


def test_ties_in_the_sum_are_ties():
    """0.1 + 0.2 - 0.3 is 0 and not 5.6e-17: of 8 flips 2 are 0, and every one is at least as far from 0."""
    assert sign_flip(differences({"a": 0, "b": 0, "c": 0.3}, {"a": 0.1, "b": 0.2, "c": 0})).p() == 1
    irrational = 1 / math.log2(3)
    assert (
        sign_flip(found(irrational, irrational / 3, irrational / 3, irrational / 3)).p() == brute(found(3, 1, 1, 1))[0]
    )


@pytest.mark.parametrize("number", range(3, 20, 2))
@pytest.mark.parametrize("sign", [1, -1])
def test_sums_that_differ_by_rounding_alone_are_ties(number, sign):
    """A logarithm and thirds of it: no denominator makes them whole, and as floats they do not always add up."""
    third = sign / math.log2(number) / 3
    test = sign_flip(found(3 * third, -third, -third, -third, reach=None))
    assert (test.p(), test.p_greater(), test.p_less()) == brute(found(3, -1, -1, -1))


def test_clusters_flip_together():
    together = found(1, 1, 1, 1, 1, 1, labels=[0, 0, 0, 1, 1, 1])
    assert sign_flip(together).p() == 2 / 4
    assert sign_flip(replace(together, labels=tuple(range(6)))).p() == 2 / 64


@lawful
@given(small)
def test_p_is_that_of_every_flip_one_by_one(pairs):
    test = sign_flip(pairs)
    assert (test.p(), test.p_greater(), test.p_less()) == pytest.approx(brute(pairs), abs=1e-12)
    assert test.draws is None


@lawful
@given(small, shares)
def test_p_of_a_shifted_mean_is_that_of_every_flip_one_by_one(pairs, delta):
    test = sign_flip(pairs)
    seen = test.p(float(delta)), test.p_greater(float(delta)), test.p_less(float(delta))
    assert seen == pytest.approx(brute(pairs, delta), abs=1e-12)


@pytest.mark.parametrize("alternative", ["two-sided", "greater", "less"])
@pytest.mark.parametrize("seed", range(4))
def test_p_is_scipy_s(alternative, seed):
    chosen = random.Random(seed)
    before = [chosen.randrange(4) / 3 for _ in range(11)]
    after = [chosen.randrange(4) / 3 for _ in range(11)]
    scaled = [round(3 * (new - old)) for new, old in zip(after, before, strict=True)]  # scipy has no exact ties
    expected = stats.permutation_test(
        (np.array(scaled),), np.sum, permutation_type="samples", n_resamples=np.inf, alternative=alternative
    ).pvalue
    test = sign_flip(differences(dict(enumerate(before)), dict(enumerate(after))))
    seen = {"two-sided": test.p(), "greater": test.p_greater(), "less": test.p_less()}[alternative]
    assert seen == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize(("gained", "lost", "same"), [(12, 3, 985), (30, 20, 450), (9, 0, 0), (40, 41, 9)])
def test_of_a_binary_measure_p_is_the_sign_test_s(gained, lost, same):
    expected = stats.binomtest(gained, gained + lost).pvalue
    test = sign_flip(moves(gained, lost, same))
    assert test.draws is None
    assert test.p() == pytest.approx(expected, rel=1e-9)


def test_many_queries_that_all_improved_have_a_p_above_zero():
    assert 0 < sign_flip(moves(3000, 0, 0)).p() < 1e-300


@lawful
@given(small, some.sampled_from([0.02, 0.05, 0.1, 0.3]))
def test_the_interval_holds_just_the_means_that_the_test_does_not_reject(pairs, alpha):
    """At the bounds, a little inside and a little outside of them, against every flip one by one."""
    low, high = sign_flip(pairs).interval(alpha)
    step = Fraction(1, 10**6)
    for bound, inwards in ((low, step), (high, -step)):
        if bound is None:
            assert 2 / 2 ** len(pairs.clusters) > alpha
        else:
            near = Fraction(bound).limit_denominator(5000)
            assert brute(pairs, near)[0] > alpha
            assert brute(pairs, near - inwards)[0] <= alpha
            if low != high:
                assert brute(pairs, near + inwards)[0] > alpha


@lawful
@given(some.one_of(small, large), some.sampled_from([0.01, 0.05, 0.2]), some.booleans())
def test_the_interval_excludes_zero_just_when_p_is_at_most_alpha(pairs, alpha, drawn):
    test = sign_flip(pairs, work=0 if drawn else 10**6)
    low, high = test.interval(alpha)
    outside = (low is not None and low > 0) or (high is not None and high < 0)
    assert outside == (test.p() <= alpha)


@lawful
@given(some.one_of(small, large), some.sampled_from([0.01, 0.05, 0.2]))
def test_the_interval_holds_the_difference(pairs, alpha):
    test = sign_flip(pairs)
    low, high = test.interval(alpha)
    assert low is None or low <= test.estimate
    assert high is None or test.estimate <= high


@lawful
@given(some.one_of(small, large), some.booleans())
def test_swapping_the_sides_mirrors_everything(pairs, drawn):
    one = sign_flip(pairs, work=0 if drawn else 10**6)
    other = sign_flip(replace(pairs, each=tuple(-value for value in pairs.each)), work=0 if drawn else 10**6)
    assert one.p() == other.p()
    assert one.p_greater() == other.p_less()
    mirrored = [None if bound is None else -bound for bound in reversed(other.interval(ALPHA))]
    assert list(one.interval(ALPHA)) == mirrored


@lawful
@given(some.one_of(small, large), some.sampled_from([2, 3, 7, Fraction(1, 5)]), some.booleans())
def test_another_unit_scales_the_interval_and_nothing_else(pairs, factor, drawn):
    one = sign_flip(pairs, work=0 if drawn else 10**6)
    other = sign_flip(replace(pairs, each=tuple(factor * d for d in pairs.each)), work=0 if drawn else 10**6)
    assert one.p() == other.p()
    for bound, scaled in zip(one.interval(ALPHA), other.interval(ALPHA), strict=True):
        assert (bound is None) == (scaled is None)
        assert bound is None or scaled == pytest.approx(float(factor) * bound, abs=1e-12)


@lawful
@given(large, some.randoms(use_true_random=False), some.booleans())
def test_the_order_of_queries_and_the_names_of_clusters_do_not_matter(pairs, chosen, drawn):
    rows = list(zip(pairs.each, pairs.labels, strict=True))
    chosen.shuffle(rows)
    other = Differences(tuple(d for d, _ in rows), tuple(f"имя-{label}" for _, label in rows), 1)
    work = 0 if drawn else 10**6
    one, two = sign_flip(pairs, work=work), sign_flip(other, work=work)
    assert (one.p(), one.interval(ALPHA)) == (two.p(), two.interval(ALPHA))
    assert verdict(pairs, 0.05).data() == verdict(other, 0.05).data()


@pytest.mark.parametrize("pairs", [moves(12, 5, 40), found(*[0.5, 1, -0.25, 1 / 3] * 6, *[0] * 20)])
def test_drawn_sets_agree_with_all_sets(pairs):
    every, drawn = sign_flip(pairs), sign_flip(pairs, work=0)
    assert (every.draws, every.seed, drawn.draws, drawn.seed) == (None, None, 9999, 0)
    assert drawn.p() == pytest.approx(every.p(), abs=4 * math.sqrt(every.p() / 9999))
    for bound, outwards in zip(drawn.interval(ALPHA), (-1e-6, 1e-6), strict=True):
        assert every.p(bound) > ALPHA - 0.01
        assert every.p(bound + outwards) < ALPHA + 0.01


def test_a_drawn_p_counts_the_observed_sum_as_one_more():
    test = sign_flip(moves(60, 0, 0), work=0, draws=999)
    assert test.p() == test.smallest_p == 2 / 1000
    assert test.p_greater() == 1 / 1000


def test_another_seed_draws_other_sets():
    pairs = moves(30, 20, 50)
    seeds = [sign_flip(pairs, work=0, seed=seed).p() for seed in (1, 1, 2)]
    assert seeds[0] == seeds[1] != seeds[2]


def test_irrational_values_are_tested_to_more_than_nine_digits():
    """Nothing but a ranking's gains: sums of logarithms that no common denominator makes whole."""
    chosen = random.Random(3)
    each = [chosen.choice([-1, 1, 1]) / math.log2(chosen.randrange(2, 30)) for _ in range(9)]
    test, expected = sign_flip(found(*each)), brute(found(*each))
    assert (test.p(), test.p_greater(), test.p_less()) == pytest.approx(expected, abs=1e-12)
    near = [round(value * 10**6) for value in each]
    rough = sign_flip(found(*near, reach=None)).interval(0.05)
    assert test.interval(0.05) == pytest.approx([bound / 10**6 for bound in rough], abs=1e-5)


# Words


def test_a_change_that_moves_nothing_is_identical_with_p_one():
    for n in (1, 3, 50):
        seen = verdict(moves(0, 0, n), 0.05)
        assert (seen.word, seen.p, seen.p_adjusted, seen.difference) == (Word.IDENTICAL, 1, 1, 0)
        assert (seen.needed, seen.moved) == (None, 0)


def test_equal_sums_of_a_cluster_are_not_identical_values():
    assert verdict(found(1, -1, labels=[0, 0]), 0.05).word == Word.CANNOT_TELL


@pytest.mark.parametrize("each", list(itertools.product((-1, 0, 0.5, 1), repeat=3)))
def test_three_queries_are_never_a_verdict(each):
    seen = verdict(found(*each), 0.9)
    assert seen.word == (Word.CANNOT_TELL if any(each) else Word.IDENTICAL)
    assert seen.smallest_p > ALPHA
    assert (seen.low, seen.high, seen.at_least, seen.at_most) == (None, None, None, None)
    assert not_worse(found(*each), 0.9).word == Word.CANNOT_JUDGE


def test_six_queries_that_all_improved_are_better_and_five_are_not():
    assert verdict(moves(6, 0, 0), 0.05).word == Word.BETTER
    five = verdict(moves(5, 0, 0), 0.05)
    assert (five.word, five.smallest_p, five.needed) == (Word.CANNOT_TELL, 2 / 32, 6)


def test_the_word_follows_the_measure_s_direction():
    up, down = moves(20, 2, 50), moves(2, 20, 50)
    assert (verdict(up, 0.05).word, verdict(down, 0.05).word) == (Word.BETTER, Word.WORSE)
    assert (verdict(up, 0.05, better=LOWER).word, verdict(down, 0.05, better=LOWER).word) == (Word.WORSE, Word.BETTER)


def test_better_is_mixed_where_sufficient_fell_by_more_than_the_margin():
    up = found(*[0.5] * 30, *[0] * 30)
    at_margin, beyond = moves(0, 3, 57), moves(0, 4, 56)
    assert verdict(up, 0.05, at_margin).word == Word.BETTER
    assert verdict(up, 0.05, beyond).word == Word.MIXED
    assert verdict(replace(up, each=tuple(-d for d in up.each)), 0.05, beyond).word == Word.WORSE


def test_equivalent_needs_both_bounds_inside_the_margin():
    even = verdict(moves(5, 5, 490), 0.05)
    assert (even.word, even.negligible) == (Word.EQUIVALENT, True)
    assert -0.05 < even.at_least < 0 < even.at_most < 0.05
    assert verdict(moves(5, 5, 90), 0.05).word == Word.CANNOT_TELL


def test_few_queries_that_hardly_moved_are_not_equivalent():
    """One loss among 60 is what a variant that loses 5 % of all queries shows in one study of five."""
    seen = verdict(moves(0, 1, 59), 0.05)
    assert (seen.word, seen.negligible) == (Word.CANNOT_TELL, False)


def test_a_difference_that_is_sure_and_small_is_better_and_negligible():
    seen = verdict(moves(30, 5, 1965), 0.05)
    assert (seen.word, seen.negligible) == (Word.BETTER, True)


def test_a_verdict_is_the_same_whatever_else_ran_before():
    pairs = moves(300, 250, 450)
    before = verdict(pairs, 0.05).data()
    verdict(moves(301, 200, 499), 0.05)
    assert verdict(pairs, 0.05).data() == before
    assert (before["draws"], before["seed"]) == (9999, 0)


# Families


def test_holm_by_hand():
    steps = holm({"a": 0.01, "b": 0.04, "c": 0.03, "d": 0.005})
    assert {name: step.adjusted for name, step in steps.items()} == pytest.approx(
        {"a": 0.03, "b": 0.06, "c": 0.06, "d": 0.02}
    )
    assert [name for name, step in steps.items() if step.rejected] == ["a", "d"]
    assert {name: step.alpha for name, step in steps.items()} == pytest.approx(
        {"a": 0.05 / 3, "b": 0.025, "c": 0.025, "d": 0.0125}
    )


def test_equal_p_values_are_treated_equally():
    for names in ("ab", "ba"):
        steps = holm(dict.fromkeys(names, 0.02))
        assert {step.alpha for step in steps.values()} == {0.025}
        assert {step.adjusted for step in steps.values()} == {0.04}


p_values = some.lists(some.integers(1, 2000).map(lambda k: k / 2000), min_size=1, max_size=12)


@lawful
@given(p_values, some.integers(1, 2000))
def test_one_more_variant_never_lowers_an_adjusted_p(ps, more):
    family = dict(zip("abcdefghijkl", ps, strict=False))
    before, after = holm(family), holm({**family, "more": more / 2000})
    assert all(before[name].adjusted <= after[name].adjusted for name in family)
    assert all(before[name].rejected or not after[name].rejected for name in family)


@lawful
@given(p_values, some.randoms(use_true_random=False))
def test_holm_keeps_the_order_of_p_whatever_order_they_come_in(ps, chosen):
    family = list(zip("abcdefghijkl", ps, strict=False))
    steps = holm(dict(family))
    chosen.shuffle(family)
    assert holm(dict(family)) == steps
    ordered = sorted(steps.values(), key=lambda step: step.p)
    for one, other in itertools.pairwise(ordered):
        assert one.adjusted <= other.adjusted
        assert one.rejected or not other.rejected
    for step in steps.values():
        assert step.rejected == (step.p <= step.alpha)
        assert step.p <= step.adjusted <= 1
        assert abs(step.adjusted - ALPHA) < 1e-12 or step.rejected == (step.adjusted < ALPHA)


def test_the_words_of_all_are_new_when_a_variant_is_added():
    family = {"alone": moves(6, 0, 30)}
    alone = verdicts(family, 0.05)["alone"]
    assert (alone.word, alone.family, alone.p_adjusted) == (Word.BETTER, 1, 2 / 64)
    assert alone.low > 0
    both = verdicts({**family, "no-op": moves(0, 0, 36)}, 0.05)
    again = both["alone"]
    assert (again.word, again.family, again.p, again.p_adjusted) == (Word.CANNOT_TELL, 2, 2 / 64, 4 / 64)
    assert again.low <= 0
    assert both["no-op"].word == Word.IDENTICAL


@lawful
@given(some.lists(large, min_size=2, max_size=5))
def test_every_word_of_a_family_can_be_read_off_its_interval(family):
    for seen in verdicts({str(place): pairs for place, pairs in enumerate(family)}, 0.05).values():
        above = seen.low is not None and seen.low > 0
        below = seen.high is not None and seen.high < 0
        assert (seen.word == Word.BETTER, seen.word == Word.WORSE) == (above, below)
        assert (above or below) == (seen.p <= seen.alpha)
        if seen.word == Word.EQUIVALENT:
            assert -0.05 < seen.at_least <= seen.at_most < 0.05


# Power


def test_where_a_difference_would_have_been_found_the_number_needed_is_that_which_shows_there_is_none():
    """1 of 100 lost, in clusters of 4: 88 find a difference, 4 (1.645 sqrt(.0525) + 1.282 sqrt(.01))^2 / .05^2 none."""
    found = Differences((exact(-1), *[exact(0)] * 99), tuple(place // 4 for place in range(100)), 1, binary=True)
    seen = verdict(found, 0.05)
    assert (seen.word, needed(spread(found), 0.05) <= 100) == (Word.CANNOT_TELL, True)
    spread_out = 0.0525  # of one query, were the true difference -.05 and what was seen as likely as it can be
    assert seen.needed == pytest.approx(4 * ((1.645 * math.sqrt(spread_out) + 1.282 * 0.1) / 0.05) ** 2, rel=0.01)


def test_the_number_needed_by_hand():
    """Connor 1987: (1.960 sqrt(.2) + .8416 sqrt(.2 - .01))^2 / .01 = 154.2 if 20 % change, by 10 % on balance.

    With half a step of 2 made up for: ((1.2433 + sqrt(1.2433^2 + 4 x .1)) / .2)^2 = 174.
    """
    assert needed(Spread(0.19), 0.1) == 155
    assert needed(spread_of_share(0.2, 0.1), 0.1) == 175


@pytest.mark.parametrize(("changing", "margin"), [(0.2, 0.1), (0.1, 0.05), (0.3, 0.2)])
def test_the_exact_test_of_as_many_as_are_needed_finds_what_is_promised(changing, margin):
    """Summed over how many of n change, and over how many of these improve."""
    n, rise = needed(spread_of_share(changing, margin), margin), (1 + margin / changing) / 2
    moved = np.arange(n + 1)
    enough = stats.binom.isf(ALPHA / 2, moved, 0.5) + 1  # the least number of gains that is significant
    power = float(stats.binom.pmf(moved, n, changing) @ stats.binom.sf(enough - 1, moved, rise))
    assert 0.8 <= power < 0.86


def test_the_detectable_difference_is_what_the_number_needed_finds():
    for variance, weight, step in ((0.19, 1, 0), (0.04, 2.5, 0.5), (0.7, 1, 1)):
        seen = Spread(variance, weight, 1.5, step)
        n = needed(seen, 0.08)
        assert detectable(seen, n) <= 0.08 < detectable(seen, n - 1)
        assert chance(seen, n, 0.08) >= 0.8 > chance(seen, n - 1, 0.08)


def test_too_few_clusters_to_reach_the_level_find_nothing():
    seen = Spread(0.0, 1.0, 1.0)
    assert (needed(seen, 0.5), chance(seen, 5, 1.0), detectable(seen, 5)) == (6, 0.0, None)
    assert needed(Spread(0.0, 3.0, 3.0), 0.5) == 18


def test_the_spread_counts_clusters():
    """Five clusters of two, each +1 or -1 as one: mean .2, squares of sums about it 3 x 1.6^2 + 2 x 2.4^2 = 19.2."""
    each = [1] * 6 + [-1] * 4
    seen = spread(found(*each, labels=[place // 2 for place in range(10)]))
    assert (seen.variance, seen.weight, seen.size) == pytest.approx((19.2 / 10 * 5 / 4, 2, 2))
    assert spread(found(1, 0, labels=[0, 0])) is None


def test_a_plan_from_a_baseline_alone_expects_a_variant_unlike_it():
    values = {place: float(place % 2) for place in range(100)}
    seen = spread_of_values(values)
    assert seen.variance == pytest.approx(2 * 0.25 * 100 / 99)
    assert spread_of_values(values, correlation=0.8).variance == pytest.approx(0.2 * seen.variance)
    ahead = plan(seen, 100, 0.1)
    assert ahead.needed > 100
    assert ahead.detectable > 0.1
    assert ahead.chance < 0.8


# Not worse


@pytest.mark.parametrize(
    ("table", "alpha", "low", "high"),
    [
        ((43, 0, 1, 0), 0.05, -0.096, 0.037),  # Tango 1998, section 6.1: 90 % interval
        ((53, 16, 8, 9), 0.025, -0.020, 0.207),  # Agresti and Min 2005
        ((1, 1, 7, 12), 0.025, -0.517, -0.026),  # Fagerland, Lydersen and Laake 2014
        ((7, 25, 2, 68), 0.025, 0.139, 0.321),  # Chang 2024
    ],
)
def test_score_bounds_are_the_published_ones(table, alpha, low, high):
    n, gained, lost = sum(table), table[1], table[2]
    assert round(score_at_least(gained, lost, n, alpha), 3) == low
    assert round(-score_at_least(lost, gained, n, alpha), 3) == high


def test_the_score_statistic_is_the_published_one():
    """Tango 1998, section 6.1: 1.709 for a margin of .1."""
    assert round(score(0, 1, 44, -0.1), 3) == 1.709


@pytest.mark.parametrize(("gained", "lost"), [(0, 0), (3, 3), (9, 1)])
def test_the_score_against_zero_is_mcnemar_s(gained, lost):
    assert score(gained, lost, 50, 0.0) == pytest.approx((gained - lost) / math.sqrt(gained + lost) if gained else 0)


def test_the_score_bound_solves_its_equation_by_another_road():
    """The share lost is found by a search over the likelihood instead of the formula."""
    gained, lost, n, alpha = 4, 9, 60, 0.05
    bound = score_at_least(gained, lost, n, alpha)
    grid = np.linspace(max(0, -bound) + 1e-9, (1 - bound) / 2 - 1e-9, 400_001)
    likelihood = gained * np.log(grid + bound) + lost * np.log(grid) + (n - gained - lost) * np.log1p(-2 * grid - bound)
    likely = grid[np.argmax(likelihood)]
    statistic = (gained - lost - n * bound) / math.sqrt(n * (2 * likely + bound * (1 - bound)))
    assert statistic == pytest.approx(stats.norm.isf(alpha), abs=1e-4)


def test_without_a_change_the_bound_is_known():
    square = stats.norm.isf(0.05) ** 2
    seen = not_worse(moves(0, 0, 60), 0.05)
    assert seen.bound == pytest.approx(-square / (60 + square))
    assert (seen.word, seen.needed, seen.score) == (Word.NOT_WORSE, 52, True)
    assert not_worse(moves(0, 0, 51), 0.05).word == Word.CANNOT_JUDGE
    assert not_worse(moves(0, 0, 52), 0.05).word == Word.NOT_WORSE


def test_three_queries_of_which_one_improved_cannot_be_judged():
    seen = not_worse(moves(1, 0, 2), 0.05)
    assert (seen.word, seen.bound) == (Word.CANNOT_JUDGE, None)
    assert seen.needed > 3


def test_the_words_of_a_gate():
    assert not_worse(moves(10, 8, 482), 0.05).word == Word.NOT_WORSE
    assert not_worse(moves(1, 40, 160), 0.05).word == Word.WORSE
    assert not_worse(moves(2, 16, 482), 0.03).word == Word.MAY_BE_WORSE
    assert not_worse(moves(10, 12, 78), 0.05).word == Word.CANNOT_JUDGE


def test_a_gate_on_a_measure_without_a_reach_uses_the_inverted_test():
    pairs = found(*[-2, -1, 0, 1, 3] * 8, reach=None)
    seen = not_worse(pairs, 0.5)
    assert (seen.bound, seen.score) == (sign_flip(pairs).at_least(ALPHA), False)
    more = not_worse(pairs, 0.5, better=LOWER)
    assert more.bound == sign_flip(pairs).at_most(ALPHA)
    assert (seen.word, more.word) == (Word.NOT_WORSE, Word.CANNOT_JUDGE)


def test_a_gate_on_shares_takes_the_more_careful_bound():
    pairs = found(*[0.5, -0.5, 1 / 3, 0, 0, 0] * 30)
    seen = not_worse(pairs, 0.1)
    assert seen.bound <= sign_flip(pairs).at_least(ALPHA)
    assert seen.bound <= score_at_least(25, 15, 180, ALPHA) + 1e-9


def test_queries_of_one_cluster_count_once_for_a_gate():
    alone = moves(0, 0, 60)
    threes = replace(alone, labels=tuple(place // 3 for place in range(60)))
    assert (not_worse(alone, 0.05).word, not_worse(threes, 0.05).word) == (Word.NOT_WORSE, Word.CANNOT_JUDGE)
    assert not_worse(threes, 0.05).needed == 155
    moved = moves(10, 4, 86)
    twice = found(*moved.each * 2, labels=moved.labels * 2, binary=True)
    assert not_worse(twice, 0.05).bound == pytest.approx(not_worse(moved, 0.05).bound, abs=1e-9)
    assert verdict(twice, 0.05).p == verdict(moved, 0.05).p


# Two changes


def test_an_interaction_is_the_difference_of_differences():
    base, first, second = {"a": 0.0, "b": 0.5}, {"a": 1.0, "b": 0.5}, {"a": 1.0, "b": 1.0}
    both = {"a": 1.0, "b": 1.0, "z": 0.0}
    pairs = interaction(base, first, second, both)
    assert (pairs.each, pairs.reach) == ((-1, 0), 2)


def test_the_words_of_two_changes():
    n = 400
    base = dict.fromkeys(range(n), 0.0)
    first = {place: float(place < 40) for place in range(n)}
    second = {place: float(40 <= place < 80) for place in range(n)}
    same = first
    union = {place: max(first[place], second[place]) for place in range(n)}
    more = {place: float(place < 160) for place in range(n)}
    assert interplay(interaction(base, first, second, union), 0.05).word == Word.ADDITIVE
    assert interplay(interaction(base, first, same, same), 0.05).word == Word.OVERLAPPING
    assert interplay(interaction(base, first, second, more), 0.05).word == Word.REINFORCING
    few = [{place: side[place] for place in (0, 41, 399)} for side in (base, first, second, union)]
    assert interplay(interaction(*few), 0.05).word == Word.CANNOT_TELL


# Studies in which nothing is true, and some in which something is


def drawn_study(chosen, n, gain, lose, size=1, amount=(1,)):
    """`n` queries in clusters of `size` that move together, a share of which gains or loses."""
    each, labels = [], []
    for cluster in range(n // size):
        draw = chosen.random()
        sign = 1 if draw < gain else -1 if draw < gain + lose else 0
        each += [sign * chosen.choice(amount)] * size
        labels += [cluster] * size
    return found(*each, labels=labels, binary=amount == (1,))


def at_most(false, of, share=ALPHA):
    """Within two standard errors of the share that is allowed."""
    return false / of <= share + 2 * math.sqrt(share * (1 - share) / of)


def false_families(studies, variants=5, **how):
    chosen = random.Random(20)
    false = 0
    for _ in range(studies):
        family = {str(place): drawn_study(chosen, **how) for place in range(variants)}
        false += any(seen.word in (Word.BETTER, Word.WORSE) for seen in verdicts(family, 0.05).values())
    return false


NULLS = {
    "binary": {"n": 80, "gain": 0.15, "lose": 0.15},
    "shares": {"n": 60, "gain": 0.2, "lose": 0.2, "amount": (0.5, 1)},
    "clustered": {"n": 120, "gain": 0.2, "lose": 0.2, "size": 4},
}


@pytest.mark.parametrize("how", NULLS.values(), ids=NULLS)
def test_a_family_in_which_nothing_is_true_has_a_false_word_as_rarely_as_promised(how):
    assert at_most(false_families(STUDIES, **how), STUDIES)


@pytest.mark.slow
@pytest.mark.parametrize("how", NULLS.values(), ids=NULLS)
def test_a_thousand_families_in_which_nothing_is_true_have_false_words_as_rarely_as_promised(how):
    assert at_most(false_families(1000, **how), 1000)


def test_clusters_that_are_not_told_would_break_the_promise():
    """The studies can fail: without their labels, queries that move together look like many witnesses."""
    chosen, false = random.Random(20), 0
    for _ in range(STUDIES):
        pairs = drawn_study(chosen, **NULLS["clustered"])
        false += verdict(replace(pairs, labels=tuple(range(pairs.n))), 0.05).word in (Word.BETTER, Word.WORSE)
    assert not at_most(false, STUDIES)


SAME = {
    "rare losses": {"n": 60, "gain": 0, "lose": 0.05},
    "both ways": {"n": 200, "gain": 0.05, "lose": 0.1},
    "clustered": {"n": 180, "gain": 0, "lose": 0.05, "size": 3},
    "shares": {"n": 120, "gain": 0, "lose": 0.1, "amount": (0.5,)},
}


@pytest.mark.parametrize("how", SAME.values(), ids=SAME)
def test_a_variant_that_loses_the_margin_is_called_the_same_as_rarely_as_promised(how):
    """Neither `equivalent` nor `not worse`, by score bounds: the inverted test alone says so in one of five here."""
    chosen, equivalent, passed = random.Random(7), 0, 0
    for _ in range(STUDIES):
        pairs = drawn_study(chosen, **how)
        equivalent += verdict(pairs, 0.05).word == Word.EQUIVALENT
        passed += not_worse(pairs, 0.05).word == Word.NOT_WORSE
    assert at_most(equivalent, STUDIES)
    assert at_most(passed, STUDIES)


@pytest.mark.parametrize(("size", "margin"), [(1, 0.1), (3, 0.12)])
def test_a_true_effect_of_the_margin_is_found_as_often_as_promised(size, margin):
    gain, lose = 0.15 + margin / 2, 0.15 - margin / 2
    n = needed(Spread((0.3 - margin**2) * size, size, size), margin)
    n += -n % size
    chosen = random.Random(11)
    words = [verdict(drawn_study(chosen, n, gain, lose, size), margin).word for _ in range(STUDIES)]
    assert words.count(Word.BETTER) / STUDIES >= 0.8 - 2 * math.sqrt(0.8 * 0.2 / STUDIES)
    assert words.count(Word.BETTER) / STUDIES <= 0.8 + 3 * math.sqrt(0.8 * 0.2 / STUDIES)


def test_a_change_without_effect_passes_the_gate_as_often_as_promised():
    chosen = random.Random(12)
    n = not_worse(moves(5, 5, 90), 0.05).needed
    words = [not_worse(drawn_study(chosen, n, 0.05, 0.05), 0.05).word for _ in range(STUDIES)]
    assert words.count(Word.NOT_WORSE) / STUDIES >= 0.8 - 2 * math.sqrt(0.8 * 0.2 / STUDIES)


def test_two_runs_of_the_same_thing_differ_in_words_as_rarely_as_promised():
    chosen = random.Random(4)
    pairs = found(*[chosen.choice([-1, 0, 0, 0.5, 1]) for _ in range(60)], labels=[place // 2 for place in range(60)])
    seen = placebo(pairs, 0.05)
    assert (seen.splits, sum(seen.words.values())) == (200, 200)
    assert seen.holds
    assert placebo(pairs, 0.05) == seen
    assert not replace(seen, false=0.1).holds
    assert placebo(moves(20, 0, 0), 0.05).holds  # a true difference is dealt away


# Around


@pytest.mark.slow
def test_a_family_of_twenty_on_a_thousand_queries_takes_less_than_two_seconds():
    chosen = random.Random(5)
    runs = [
        {place: chosen.randrange(kinds + 1) / kinds for place, kinds in enumerate([1, 2, 3, 4, 5] * 200)}
        for _ in range(21)
    ]
    before = time.perf_counter()
    family = {str(place): differences(runs[0], run) for place, run in enumerate(runs[1:])}
    assert len(verdicts(family, 0.05)) == 20
    assert time.perf_counter() - before < 2


def test_nothing_here_needs_scipy():
    code = "import sys, ablate.statistics; sys.exit(any(name.partition('.')[0] == 'scipy' for name in sys.modules))"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
