"""A test goes in; bounds that are safe to claim sameness on, and the interval that is shown, come out."""

from __future__ import annotations

from ablate.statistics.differences import Differences
from ablate.statistics.proportions import score_bounds
from ablate.statistics.signflip import SignFlip

Bounds = tuple[float | None, float | None]


def bounds(found: Differences, test: SignFlip, alpha: float) -> Bounds:
    """What the mean difference is at least and at most, each at level 1 - alpha; None where there is no bound.

    Of a 0/1 measure they are score bounds, of other measures those of the inverted test; where a measure has a greatest
    difference, the wider of both. For the inverted test shifts queries that did not move, as if each were known to be
    free of rare and large changes, and is too sure of itself where few have moved. Too few clusters for the test to
    reach the level give no bound of either kind.
    """
    if found.reach is None:
        return test.at_least(alpha), test.at_most(alpha)
    if not test.reaches(alpha):
        return None, None
    low, high = score_bounds(found, found.reach, found.weight, alpha)
    if found.binary:
        return low, high
    least, most = test.at_least(alpha), test.at_most(alpha)
    return (None, None) if least is None or most is None else (min(low, least), max(high, most))


def negligible(found: Differences, test: SignFlip, alpha: float, margin: float) -> bool:
    """Whether both bounds lie inside the margin, not on it; first those found quickly, which are no wider."""
    if found.reach is not None and not inside(*score_bounds(found, found.reach, found.weight, alpha), margin):
        return False
    return inside(*bounds(found, test, alpha), margin)


def inside(at_least: float | None, at_most: float | None, margin: float) -> bool:
    """Whether both bounds lie inside the margin, not on it."""
    return at_least is not None and at_most is not None and -margin < at_least and at_most < margin


def interval(found: Differences, test: SignFlip, alpha: float) -> Bounds:
    """What the mean difference may be, at level 1 - alpha: it excludes 0 just when the test's p is at most alpha.

    Where the test rejects 0, the end that faces 0 is the inverted test's. Every other end is the wider of it and of
    score bounds for changes as large, and clusters as united, as those that were seen. For away from 0 the inverted
    test is too sure of what did not move: of 60 queries of which one in twenty is lost it would hold the truth in four
    studies of five (`scripts/check_statistics.py` shows both).
    """
    low, high = test.interval(alpha)
    size = found.amplitude
    if low is None or high is None or size is None:
        return low, high
    least, most = score_bounds(found, size, found.union, alpha / 2)
    return low if low > 0 else min(low, least), high if high < 0 else max(high, most)
