"""Counts go in, score bounds on a share, an area, or the difference of two paired shares come out."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache
from statistics import NormalDist

from ablate.statistics.differences import Differences

HALVINGS = 60


def normal_quantile(level: float) -> float:
    """What a standard normal variable does not exceed with chance `level`."""
    return NormalDist().inv_cdf(level)


def wilson(share: float, n: float, alpha: float = 0.05) -> tuple[float, float]:
    """The interval at level 1 - alpha of a share of n (Wilson 1927, https://doi.org/10.2307/2276774, uncorrected)."""
    square = normal_quantile(1 - alpha / 2) ** 2
    middle = (share + square / (2 * n)) / (1 + square / n)
    half = math.sqrt(square * (share * (1 - share) / n + square / (4 * n * n))) / (1 + square / n)
    return max(0.0, min(share, middle - half)), min(1.0, max(share, middle + half))


def newcombe(area: float, m: float, n: float, alpha: float = 0.05) -> tuple[float, float]:
    """The score interval at level 1 - alpha of the area under an ROC curve of m and n queries: areas that fit the data.

    R. G. Newcombe, Confidence intervals for an effect size measure based on the Mann-Whitney statistic, part 2,
    Statistics in Medicine 25 (2006), 559-573, method 5. It is no point even where the area is 0 or 1.
    """
    z, more = normal_quantile(1 - alpha / 2), (m + n) / 2 - 1

    def fits(true: float) -> bool:
        pairs = 1 + more * ((1 - true) / (2 - true) + true / (1 + true))
        return abs(area - true) <= z * math.sqrt(true * (1 - true) * pairs / (m * n))

    return _edge(fits, area, 0.0), _edge(fits, area, 1.0)


def _edge(fits: Callable[[float], bool], inside: float, outside: float) -> float:
    """The last value between `inside` and `outside` that fits, to the precision of floats."""
    for _ in range(HALVINGS):
        middle = (inside + outside) / 2
        inside, outside = (middle, outside) if fits(middle) else (inside, middle)
    return outside


def score(gained: float, lost: float, n: float, delta: float) -> float:
    """Tango's score statistic of the difference gained / n - lost / n against a supposed `delta` in (-1, 1).

    T. Tango, Equivalence test and confidence interval for the difference in proportions for the paired-sample design,
    Statistics in Medicine 17 (1998), 891-908, equations 24 to 26 (there -delta is called delta).
    """
    distance = gained - lost - n * delta
    if distance == 0:
        return 0.0
    spread = n * variance(gained / n, lost / n, delta)
    return distance / math.sqrt(spread) if spread > 0 else math.copysign(math.inf, distance)


def variance(gained: float, lost: float, delta: float) -> float:
    """The variance of one pair's difference if the shares were `gained` and `lost` and the true difference is `delta`.

    The share that is truly lost is then taken as the most likely one.
    """
    b = -gained - lost + (2 - gained + lost) * delta
    c = -lost * delta * (1 - delta)
    likely = (math.sqrt(max(0.0, b * b - 8 * c)) - b) / 4
    return 2 * likely + delta * (1 - delta)


@lru_cache(maxsize=4096)  # the variants of a family often gain and lose the same
def score_at_least(gained: float, lost: float, n: float, alpha: float) -> float:
    """The one-sided lower bound at level 1 - alpha of a difference of paired shares, in [-1, 1].

    `gained` of n pairs went from 0 to 1, `lost` from 1 to 0. The statistic falls in delta, so halving finds the bound.
    """
    if lost >= n:
        return -1.0
    limit = normal_quantile(1 - alpha)
    low, high = -1.0, (gained - lost) / n
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if score(gained, lost, n, middle) > limit else (low, middle)
    return low


def score_bounds(found: Differences, reach: float, weight: float, alpha: float) -> tuple[float, float]:
    """One-sided score bounds, each at level 1 - alpha, on the mean of differences that lie within -reach and reach.

    Of 0/1 measures they are Tango's. Other differences are split into what was gained and what was lost, in units of
    `reach`: pairs that gain or lose all or nothing with these means vary at least as much, so the bounds are wide
    enough for whatever lies between. All counts are divided by `weight`, the design effect: where queries of one
    cluster count as one, their mean cluster size as queries see it (Kish 1965, Survey Sampling).
    """
    scale = reach * weight
    gained, lost = float(found.gained) / scale, float(found.lost) / scale
    n = found.n / weight
    return reach * score_at_least(gained, lost, n, alpha), -reach * score_at_least(lost, gained, n, alpha)


def pairs_needed(changing: float, margin: float, alpha: float, power: float) -> float:
    """How many pairs show with chance `power` that a difference is above -margin, if it is 0 and `changing` change.

    (z_a sqrt(V0) + z_b sqrt(V))^2 / margin^2 with the variances V0 if the difference were -margin and V as it is. With
    no change the bound is -z_a^2 / (n + z_a^2), whatever the chance.
    """
    if margin >= 1:
        return 0.0
    supposed = variance(changing / 2, changing / 2, -margin)
    root = normal_quantile(1 - alpha) * math.sqrt(supposed) + normal_quantile(power) * math.sqrt(changing)
    return (root / margin) ** 2
