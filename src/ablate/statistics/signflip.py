"""The paired sign-flip test over clusters and its inversion: differences go in, p-values and bounds come out.

If a change did nothing, either side of a query could have been the variant's: the sign of what each cluster adds is a
coin. The test compares the sum of the differences with the sums under all flips (Fisher 1935, The Design of
Experiments, section 21).

Its inversion asks the same of differences from which a supposed mean delta was taken, query by query; queries without
a difference are shifted too, and are then worth -delta. Flipping the clusters of a set A keeps the sum as high as
it was just when the mean difference of A's queries is at most delta. So the one-sided p-value at delta is the share of
the sets A whose mean is at most delta, the empty set counting always: a step function that never falls, and the bounds
are order statistics of the means of sets, found without a search (J. A. Hartigan, Using subsample values as typical
values, Journal of the American Statistical Association 64 (1969), 1303-1317). The two-sided p-value is twice the
smaller one-sided one, which is what counting |sum| gives, for the sums are symmetric. The interval at level 1 - alpha
therefore excludes 0 exactly when p <= alpha. What is shown is a little wider (`ablate.statistics.bounds.interval`).
"""

from __future__ import annotations

import math
import sys
from collections import Counter
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from ablate.statistics.differences import Differences

Floats = NDArray[np.float64]
Whole = NDArray[np.int64]

WORK = 1_000_000
"""Up to how many additions every set is counted; beyond, sets are drawn."""

DRAWS = 9_999
SEED = 0

FITS = 1 << 52
"""Whole numbers below it are exact in a float, so that equal means of sets are equal."""


@dataclass(frozen=True, eq=False, slots=True)
class Tail:
    """The chance that the mean of a random set of clusters is at most x; the empty set is at most everything.

    `steps` ascends; `chances[i]` is the chance up to and with the first i steps, `chances[0]` that of the empty set.
    """

    steps: Floats
    chances: Floats

    def at(self, x: float) -> float:
        chance = float(self.chances[np.searchsorted(self.steps, x, side="right")])
        return max(chance, sys.float_info.min)  # a p-value is never 0, though 2 ** -2000 is

    def bound(self, level: float) -> float | None:
        """The least x whose chance is above `level`; None where that of the empty set already is."""
        place = int(np.searchsorted(self.chances, level, side="right"))
        return float(self.steps[min(place, len(self.steps)) - 1]) if place else None


@dataclass(frozen=True, eq=False, slots=True)
class SignFlip:
    """The test of one set of differences, at any supposed mean and any level.

    `moved` is the number of clusters whose differences do not sum to 0. `draws` is how many sets were drawn with
    `seed`, None where all were counted.
    """

    estimate: float
    clusters: int
    moved: int
    above: Tail
    below: Tail
    draws: int | None
    seed: int | None

    def p_greater(self, delta: float = 0.0) -> float:
        """One-sided: how often flips give so high a sum, if the mean is `delta`."""
        return self.above.at(delta)

    def p_less(self, delta: float = 0.0) -> float:
        """One-sided: how often flips give so low a sum, if the mean is `delta`."""
        return self.below.at(-delta)

    def p(self, delta: float = 0.0) -> float:
        """Two-sided."""
        return min(1.0, 2 * min(self.p_greater(delta), self.p_less(delta)))

    def at_least(self, alpha: float) -> float | None:
        """The one-sided lower bound at level 1 - alpha; None where there are too few clusters for one."""
        return self.above.bound(alpha)

    def at_most(self, alpha: float) -> float | None:
        """The one-sided upper bound at level 1 - alpha; None where there are too few clusters for one."""
        bound = self.below.bound(alpha)
        return None if bound is None else -bound + 0.0  # + 0.0: never -0.0

    def interval(self, alpha: float) -> tuple[float | None, float | None]:
        """The means that the two-sided test does not reject at `alpha`: closed, and without 0 just when p <= alpha."""
        return self.at_least(alpha / 2), self.at_most(alpha / 2)

    @property
    def smallest_p(self) -> float:
        """The least two-sided p-value that these clusters could have given, had all moved one way."""
        counted = 0.5 ** (self.moved - 1) if self.moved else 1.0
        return counted if self.draws is None else max(counted, 2 / (self.draws + 1))


def sign_flip(found: Differences, draws: int = DRAWS, seed: int = SEED, work: int = WORK) -> SignFlip:
    """Test paired differences, counting all sets of clusters where that takes at most `work` additions.

    Otherwise `draws` sets are drawn, and the observed one counts as one more: p = (1 + b) / (1 + draws). The result
    does not depend on the order of the queries, and swapping the sides mirrors it bit by bit.
    """
    sums, unit, slack = _units(found)
    clusters = sorted(zip(sums, (size for _, size in found.clusters), strict=True))
    mirrored = sorted((-total, size) for total, size in clusters)
    turned = mirrored > clusters
    chosen = mirrored if turned else clusters
    above, below, counted = _flipped(tuple(chosen), unit, slack, draws, seed, work)
    return SignFlip(
        estimate=float(found.mean),
        clusters=len(clusters),
        moved=sum(total != 0 for total in sums),
        above=below if turned else above,
        below=above if turned else below,
        draws=None if counted else draws,
        seed=None if counted else seed,
    )


@lru_cache(maxsize=1024)  # in a small cohort many variants move as many clusters, and no more is asked
def _flipped(
    clusters: tuple[tuple[int, int], ...], unit: Fraction, slack: int, draws: int, seed: int, work: int
) -> tuple[Tail, Tail, bool]:
    """The tails of sorted clusters, and whether every set was counted."""
    counted = _counted(list(clusters), work)
    atoms = _drawn(list(clusters), draws, seed) if counted is None else counted
    return *_tails(*atoms, unit, slack, 1.0 if counted else draws + 1.0), counted is not None


def _units(found: Differences) -> tuple[list[int], Fraction, int]:
    """The sums of the clusters as whole numbers of a unit, and by how many units a sum of sums may be off.

    They are off by nothing unless they have no small common denominator. They are then rounded to 40 bits of the
    largest, and what is off by no more than the rounding counts as equal, which makes p-values larger and intervals
    wider, never the other way.
    """
    sums = [total for total, _ in found.clusters]
    divisor = math.gcd(*sums) or 1
    unit = Fraction(divisor, found.denominator)
    if max(sum(map(abs, sums)) // divisor * unit.numerator, found.n * unit.denominator) < FITS:
        return [total // divisor for total in sums], unit, 0
    bits = min(40, 51 - len(sums).bit_length())
    largest = max(map(abs, sums)) / found.denominator
    unit = Fraction(2) ** (math.frexp(largest)[1] - bits)
    return [round(Fraction(total, found.denominator) / unit) for total in sums], unit, len(sums)


def _counted(clusters: list[tuple[int, int]], work: int) -> tuple[Whole, Whole, Floats] | None:
    """Sum, number of queries and chance of every set of clusters; equal ones together. None if it takes too long.

    Equal clusters are chosen together, k of n with binomial chance. Those that sum to 0 come last: they only add
    queries, and far tails of how many are left out.
    """
    groups = _groups(clusters)
    sums = 1 + sum(abs(group.total) * group.steps for group in groups)
    sizes = 1 + sum(group.size * group.steps for group in groups)
    if sums * sizes > _dense(work):
        return _listed(groups, work)
    return _filled(groups) if _affordable(groups, sizes, work) else None


@dataclass(frozen=True, slots=True)
class Group:
    """Equal clusters, `number` of them, each of `size` queries that sum to `total`; a set holds any of `chosen`."""

    total: int
    size: int
    chosen: range
    number: int

    @property
    def steps(self) -> int:
        return len(self.chosen) - 1

    @property
    def chances(self) -> Floats:
        return _binomial(self.number, self.chosen.start, self.chosen.stop)


def _groups(clusters: list[tuple[int, int]]) -> list[Group]:
    ordered = sorted(Counter(clusters).items(), key=lambda group: (group[0][0] == 0, group))
    return [Group(total, size, _chosen(number, total == 0), number) for (total, size), number in ordered]


def _dense(sets: int) -> int:
    """Up to how many pairs of a sum and a size it is worth while to look for equal ones among so many sets."""
    return 4 * sets + 1000


def _listed(groups: list[Group], work: int) -> tuple[Whole, Whole, Floats] | None:
    """As `_counted`, set by set: for sums that lie far apart."""
    last = max(len(group.chosen) if group.total == 0 else 1 for group in groups)
    sums, sizes, chances = np.zeros(1, np.int64), np.zeros(1, np.int64), np.ones(1)
    for group in groups:
        work -= len(sums) * len(group.chosen)
        if work < 0 or len(sums) * last > work + len(sums) * len(group.chosen):  # sets never become fewer
            return None
        count = np.arange(group.chosen.start, group.chosen.stop)
        sums = np.add.outer(sums, group.total * count).ravel()
        sizes = np.add.outer(sizes, group.size * count).ravel()
        chances = np.multiply.outer(chances, group.chances).ravel()
        sums, sizes, chances = _together(sums, sizes, chances)
    return sums, sizes, chances


def _together(sums: Whole, sizes: Whole, chances: Floats) -> tuple[Whole, Whole, Floats]:
    """Sets of equal sum and size as one, where these lie dense enough for it to be worth while."""
    low, few = int(sums.min()), int(sizes.min())
    wide = int(sizes.max()) - few + 1
    if (int(sums.max()) - low + 1) * wide > _dense(len(sums)):
        return sums, sizes, chances
    places = (sums - low) * wide + (sizes - few)
    dense: Floats = np.bincount(places, weights=chances).astype(np.float64)
    kept: Whole = np.flatnonzero(dense).astype(np.int64)
    return kept // wide + low, kept % wide + few, dense[kept]


def _affordable(groups: list[Group], wide: int, work: int) -> bool:
    """Whether `_listed` would have counted every set, found without their chances.

    Which pairs of a sum and a size there are is one long whole number, a bit a pair, `wide` bits a sum.
    """
    last = max(len(group.chosen) if group.total == 0 else 1 for group in groups)
    there, sets, sums, sizes = 1, 1, 1, 1
    for group in groups:
        made = sets * len(group.chosen)
        work -= made
        if work < 0 or sets * last > work + made:
            return False
        sums += abs(group.total) * group.steps
        sizes += group.size * group.steps
        there <<= group.size * group.steps if group.total < 0 else 0
        there = _repeated(there, abs(group.total * wide + group.size), group.steps)
        sets = there.bit_count() if sums * sizes <= _dense(made) else made
    return True


def _repeated(bits: int, step: int, times: int) -> int:
    """All of `bits` moved up by 0, 1, ... `times` steps."""
    copies = 1
    while copies <= times:
        more = min(copies, times + 1 - copies)
        bits |= bits << step * more
        copies += more
    return bits


def _filled(groups: list[Group]) -> tuple[Whole, Whole, Floats]:
    """As `_counted`, in a table of sums by sizes: for sums that lie close."""
    table = np.ones((1, 1))
    for group in groups:
        table = (_widened if group.total == 0 and table.shape[1] < group.steps else _moved)(table, group)
    sums, sizes = np.nonzero(table)
    low = sum(min(group.total * group.chosen.start, group.total * (group.chosen.stop - 1)) for group in groups)
    return sums + low, sizes + sum(group.size * group.chosen.start for group in groups), table[sums, sizes]


def _moved(table: Floats, group: Group) -> Floats:
    """The table once for every choice from a group, moved to where that leads; sums always in the same order."""
    rows, columns = table.shape
    up, right, steps = abs(group.total), group.size, group.steps
    fuller = np.zeros((rows + up * steps, columns + right * steps))
    for step, chance in sorted(enumerate(group.chances), reverse=group.total >= 0):
        row, column = up * (steps - step if group.total < 0 else step), right * step
        fuller[row : row + rows, column : column + columns] += chance * table
    return fuller


def _widened(table: Floats, group: Group) -> Floats:
    """The same of clusters that sum to 0, column by column of the table: bit for bit, and quick where these are few."""
    rows, columns = table.shape
    reach = group.size * group.steps
    fuller = np.zeros((columns + reach, rows))  # turned: what is added lies in one piece
    for column in range(columns):
        fuller[column : column + reach + 1 : group.size] += np.multiply.outer(group.chances, table[:, column])
    return fuller.T


def _chosen(number: int, trimmed: bool) -> range:
    """How many of `number` clusters a set may hold; trimmed, without tails that have a chance below 1e-19 in all."""
    reach = math.ceil(4.75 * math.sqrt(number)) if trimmed else number
    return range(max(0, number // 2 - reach), min(number, number - number // 2 + reach) + 1)


@lru_cache(maxsize=256)
def _binomial(number: int, start: int, stop: int) -> Floats:
    """The chance that fair coins choose start, start + 1, ... of `number` clusters."""
    ways, chances = math.comb(number, start), []
    for chosen in range(start, stop):
        chances.append(ways / (1 << number))
        ways = ways * (number - chosen) // (chosen + 1)
    return np.array(chances)


def _drawn(clusters: list[tuple[int, int]], draws: int, seed: int) -> tuple[Whole, Whole, Floats]:
    """As `_counted`, of sets drawn with fair coins, and of the empty set, which was observed.

    Eight clusters are added at a time, by what each of their 256 sets comes to.
    """
    coins = _coins(draws, -(-len(clusters) // 64), seed)
    sums, sizes = np.zeros(draws + 1, np.int64), np.zeros(draws + 1, np.int64)
    for place in range(0, len(clusters), 8):
        eight, thrown = clusters[place : place + 8], coins[place // 8].astype(np.intp)
        if any(total for total, _ in eight):
            sums[1:] += _sets(tuple(total for total, _ in eight)).take(thrown)
        sizes[1:] += _sets(tuple(size for _, size in eight)).take(thrown)
    return sums, sizes, np.ones(draws + 1)


@lru_cache(maxsize=2)  # all variants of a family are drawn alike
def _coins(draws: int, width: int, seed: int) -> NDArray[np.uint8]:
    """Eight coins a number, of shape (8 * `width`, `draws`).

    They are the raw bits of PCG64, a stream that numpy promises never to change.
    """
    raw = np.random.PCG64(seed).random_raw(draws * width).astype("<u8")
    return np.ascontiguousarray(raw.view(np.uint8).reshape(draws, width * 8).T)


@lru_cache(maxsize=1024)  # clusters stand sorted, so that the same eight come again
def _sets(values: tuple[int, ...]) -> Whole:
    """The sum of every set of up to eight values: bit i of the place in it says whether value i is in the set."""
    sums = np.zeros(1, np.int64)
    for value in [*values, *[0] * (8 - len(values))]:
        sums = np.concatenate([sums, sums + value])
    return sums


def _tails(sums: Whole, sizes: Whole, chances: Floats, unit: Fraction, slack: int, total: float) -> tuple[Tail, Tail]:
    """The chances that the mean of a set is at most x, and that its negative is."""
    some = sizes > 0
    empty, rest, queries = chances[~some].sum(), chances[some], sizes[some] * float(unit.denominator)
    above = ((sums[some] - slack) * float(unit.numerator)) / queries
    below = ((-sums[some] - slack) * float(unit.numerator)) / queries
    if total > 1:  # sets that were drawn, each once: their order alone matters
        reached = np.arange(empty, len(rest) + empty + 1) / total
        return Tail(np.sort(above), reached), Tail(np.sort(below), reached)
    up = np.argsort(above, kind="stable")
    down = np.argsort(below, kind="stable") if slack else up[::-1]
    return (
        Tail(above[up], np.cumsum(np.concatenate([[empty], rest[up]]))),
        Tail(below[down], np.cumsum(np.concatenate([[empty], rest[down]]))),
    )
