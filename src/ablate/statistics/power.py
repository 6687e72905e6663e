"""How far queries spread goes in; how many are needed, or what these can tell, comes out.

The sign-flip test at a true mean difference d of n queries rejects when the mean exceeds z_a times the standard error
under flips, whose variance is the mean square. So d is found with chance `power` when

    (n d - s) / sqrt(n) = z_a sqrt(V + w d^2) + z_b sqrt(V)

with z_a and z_b the normal quantiles of 1 - alpha / 2 and of `power`, V = n times the variance of the mean difference,
estimated from the sums of clusters, and w the mean cluster size as queries see it. Under flips the sum moves in steps
of 2 s, and what lies on a step counts as so far out: half a step has to be made up for (the correction for continuity
of Yates 1934), or an exact test would find less than is promised. For a 0/1 measure and queries that stand alone, V +
d^2 is the share of queries that change, and without s this is the sample size of R. J. Connor, Sample size for testing
differences in proportions for the paired-sample design, Biometrics 43 (1987), 207-211.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, replace
from statistics import NormalDist

from ablate.statistics.differences import Differences, Values, differences
from ablate.statistics.proportions import normal_quantile, pairs_needed

POWER = 0.8


@dataclass(frozen=True, slots=True)
class Spread:
    """How far the differences of queries spread, clusters counted.

    `variance` is n times the variance of the mean difference, `weight` the mean cluster size as queries see it, `size`
    the plain mean of queries a cluster. `step` is the number of which every cluster's sum is a multiple; 0: there is
    none that matters.
    """

    variance: float
    weight: float = 1.0
    size: float = 1.0
    step: float = 0.0


@dataclass(frozen=True, slots=True)
class Plan:
    """What n queries can tell: by the chance `power`, the least difference, and how many the margin needs.

    `chance` is that of finding a difference of the margin with these n. `detectable` is None where no difference is
    ever found with that chance.
    """

    n: int
    margin: float
    alpha: float
    power: float
    needed: int
    detectable: float | None
    chance: float


def spread(found: Differences) -> Spread | None:
    """The spread of differences that were seen; None from one cluster, which shows none."""
    count = len(found.clusters)
    if count < 2:
        return None
    mean = float(found.mean)
    squares = math.fsum((total - mean * size) ** 2 for total, size in found.per_cluster())
    step = math.gcd(*(total for total, _ in found.clusters)) / found.denominator if squares else 0.0
    return Spread(squares / found.n * count / (count - 1), found.weight, found.n / count, step)


def spread_of_values(
    values: Values, labels: Mapping[str, Hashable] | None = None, correlation: float = 0.0
) -> Spread | None:
    """The spread to expect of a variant, from the values of the baseline alone.

    The difference of two sides that spread equally has the variance 2 (1 - correlation) times that of one. 0 is a
    variant that has nothing to do with the baseline, which asks for the most queries.
    """
    alone = spread(differences(dict.fromkeys(values, 0), values, labels))
    return None if alone is None else replace(alone, variance=2 * (1 - correlation) * alone.variance)


def spread_of_share(changing: float, difference: float = 0.0) -> Spread:
    """The spread of a 0/1 measure if the share `changing` of queries changes, on balance by `difference`."""
    return Spread(max(0.0, changing - difference**2), step=1.0)


def needed(seen: Spread, margin: float, alpha: float = 0.05, power: float = POWER) -> int:
    """How many queries, in clusters as these, find a true difference of `margin` with chance `power`."""
    z_a, z_b = normal_quantile(1 - alpha / 2), normal_quantile(power)
    root = z_a * math.sqrt(seen.variance + seen.weight * margin**2) + z_b * math.sqrt(seen.variance)
    root = (root + math.sqrt(root**2 + 4 * margin * seen.step)) / 2
    return max(math.ceil((root / margin) ** 2), math.ceil(fewest_clusters(alpha / 2) * seen.size))


def needed_for_sameness(found: Differences, margin: float, alpha: float = 0.05, power: float = POWER) -> int:
    """How many queries, in clusters as these, show that a change without effect is not worse by more than the margin.

    Where differences have no reach: ((z_a + z_b) / margin)^2 times their mean square by clusters. At least as many as
    have the clusters to reach alpha.
    """
    clusters = fewest_clusters(alpha) * found.n / len(found.clusters)
    if found.reach is None:
        squares = math.fsum(total * total for total, _ in found.per_cluster()) / found.n
        width = (normal_quantile(1 - alpha) + normal_quantile(power)) / margin
        return math.ceil(max(width**2 * squares, clusters))
    changing = float(found.gained + found.lost) / found.n / found.reach
    return math.ceil(max(pairs_needed(changing, margin / found.reach, alpha, power) * found.weight, clusters))


def detectable(seen: Spread, n: int, alpha: float = 0.05, power: float = POWER) -> float | None:
    """The least true difference that n queries find with chance `power`; None where they find none."""
    z_a, z_b = normal_quantile(1 - alpha / 2), normal_quantile(power)
    free = n - z_a**2 * seen.weight
    if free <= 0 or n < fewest_clusters(alpha / 2) * seen.size:
        return None
    half = z_b * math.sqrt(n * seen.variance) + seen.step
    return (half + math.sqrt(max(0.0, half**2 - free * (half**2 / n - z_a**2 * seen.variance)))) / free


def chance(seen: Spread, n: int, difference: float, alpha: float = 0.05) -> float:
    """With what chance n queries find a true `difference`."""
    if n < fewest_clusters(alpha / 2) * seen.size:
        return 0.0
    flips = math.sqrt(seen.variance + seen.weight * difference**2)
    distance = (abs(difference) * n - seen.step) / math.sqrt(n) - normal_quantile(1 - alpha / 2) * flips
    return NormalDist().cdf(distance / math.sqrt(seen.variance)) if seen.variance > 0 else float(distance > 0)


def plan(seen: Spread, n: int, margin: float, alpha: float = 0.05, power: float = POWER) -> Plan:
    """What n queries can tell about a margin."""
    least, most = detectable(seen, n, alpha, power), needed(seen, margin, alpha, power)
    return Plan(n, margin, alpha, power, most, least, chance(seen, n, margin, alpha))


def fewest_clusters(level: float) -> int:
    """From how many clusters a one-sided sign-flip test can reach `level` at all: 2 ** -m <= level."""
    return max(1, math.ceil(-math.log2(level)))
