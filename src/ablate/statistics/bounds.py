"""A test goes in, one-sided bounds that are safe to claim sameness on come out."""

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
    inverted = test.at_least(alpha), test.at_most(alpha)
    if found.reach is None or inverted[0] is None or inverted[1] is None:
        return inverted
    low, high = score_bounds(found, found.reach, alpha)
    return (low, high) if found.binary else (min(low, inverted[0]), max(high, inverted[1]))
