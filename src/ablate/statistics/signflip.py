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
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache

import numpy as np
from numpy.typing import NDArray

from ablate.statistics.differences import Differences

Kinds = Mapping[tuple[int, int], int]
"""Sum and size -> number of clusters that have them."""

Floats = NDArray[np.float64]
Whole = NDArray[np.int64]
Atoms = tuple[Whole, Whole, Floats]
"""Sums, numbers of queries, and chances of sets."""

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
    `seed`, None where all were counted. What was found under the flips is found when it is asked for: a p-value at 0
    takes much less than bounds. `turned` says that the sides were swapped for that.
    """

    estimate: float
    clusters: int
    moved: int
    flips: Flips
    turned: bool
    draws: int | None
    seed: int | None

    @property
    def above(self) -> Tail:
        return self.flips.tails[self.turned]

    @property
    def below(self) -> Tail:
        return self.flips.tails[not self.turned]

    def p_greater(self, delta: float = 0.0) -> float:
        """One-sided: how often flips give so high a sum, if the mean is `delta`."""
        return self.above.at(delta) if delta else self.flips.at_zero[self.turned]

    def p_less(self, delta: float = 0.0) -> float:
        """One-sided: how often flips give so low a sum, if the mean is `delta`."""
        return self.below.at(-delta) if delta else self.flips.at_zero[not self.turned]

    def p(self, delta: float = 0.0) -> float:
        """Two-sided."""
        return min(1.0, 2 * min(self.p_greater(delta), self.p_less(delta)))

    def reaches(self, alpha: float) -> bool:
        """Whether there are clusters enough for bounds at level 1 - alpha."""
        return (0.5**self.clusters if self.draws is None else float(self.above.chances[0])) <= alpha

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
    kinds, unit, slack = _units(found)
    mirrored = {(-total, size): number for (total, size), number in kinds.items()}
    ours, theirs = (sorted((kind, -number) for kind, number in side.items()) for side in (kinds, mirrored))
    turned = theirs > ours  # as if every cluster stood alone: of more that are equal the next one comes later
    flips = _flips(tuple((kind, -number) for kind, number in max(ours, theirs)), unit, slack, draws, seed, work)
    return SignFlip(
        estimate=float(found.mean),
        clusters=len(found.clusters),
        moved=sum(number for (total, _), number in kinds.items() if total),
        flips=flips,
        turned=turned,
        draws=None if flips.counted else draws,
        seed=None if flips.counted else seed,
    )


@dataclass(frozen=True, eq=False)
class Flips:
    """What clusters come to under flips: every set of them is counted where `work` allows it, or sets are drawn.

    `kinds` are sums and sizes of clusters, sorted, and how many there are of each. Sums are whole numbers of `unit`,
    and those that differ by no more than `slack` are equal.
    """

    kinds: tuple[tuple[tuple[int, int], int], ...]
    unit: Fraction
    slack: int
    draws: int
    seed: int
    work: int

    @cached_property
    def groups(self) -> list[Group]:
        return _groups(self.kinds)

    @cached_property
    def clusters(self) -> list[tuple[int, int]]:
        """The clusters one by one, sorted."""
        return [kind for kind, number in self.kinds for _ in range(number)]

    @cached_property
    def dense(self) -> bool:
        """Whether sums and sizes lie so close that sets are counted in a table."""
        sums = 1 + sum(abs(group.total) * group.steps for group in self.groups)
        return sums * self.wide <= _dense(self.work)

    @property
    def wide(self) -> int:
        """How many sizes a set may have."""
        return 1 + sum(group.size * group.steps for group in self.groups)

    @cached_property
    def listed(self) -> Atoms | None:
        """The sets one by one, where they lie far apart; None where they do not, or there are too many."""
        return None if self.dense else _listed(self.groups, self.work)

    @cached_property
    def counted(self) -> bool:
        """Whether every set is counted."""
        return _affordable(self.groups, self.wide, self.work) if self.dense else self.listed is not None

    @cached_property
    def atoms(self) -> Atoms:
        """Sum, number of queries and chance of every set of clusters, or of each that was drawn."""
        if not self.counted:
            sums, sizes = (_drawn(values, self.draws, self.seed) for values in zip(*self.clusters, strict=True))
            return sums, sizes, np.ones(len(sums))
        return self.listed or _filled(self.groups)

    @cached_property
    def at_zero(self) -> tuple[float, float]:
        """The chances that the mean of a set is at most 0 and at least 0: of the sums alone, sizes do not matter."""
        if not self.counted:
            sums = _drawn([total for total, _ in self.clusters], self.draws, self.seed)
            chances = np.ones(len(sums))
        elif self.dense:
            moved = (group for group in self.groups if group.total)
            sums, _, chances = _filled([Group(group.total, 0, group.chosen, group.number) for group in moved])
        else:
            sums, _, chances = self.atoms
        above, below = (float(chances[sides <= self.slack].sum()) / self.total for sides in (sums, -sums))
        return max(above, sys.float_info.min), max(below, sys.float_info.min)

    @cached_property
    def tails(self) -> tuple[Tail, Tail]:
        """The chances that the mean of a set is at most x, and that its negative is."""
        return _tails(*self.atoms, self.unit, self.slack, self.total)

    @property
    def total(self) -> float:
        """What the chances of all sets add up to."""
        return 1.0 if self.counted else self.draws + 1.0


_flips = lru_cache(maxsize=256)(Flips)
"""In a small cohort many variants move as many clusters, and no more is asked."""


def _units(found: Differences) -> tuple[Kinds, Fraction, int]:
    """The kinds of clusters, their sums whole numbers of a unit, and by how many units a sum of sums may be off.

    They are off by nothing unless they have no small common denominator. They are then rounded to 40 bits of the
    largest, and what is off by no more than the rounding counts as equal, which makes p-values larger and intervals
    wider, never the other way.
    """
    kinds = Counter(found.clusters)
    divisor = math.gcd(*(total for total, _ in kinds)) or 1
    unit = Fraction(divisor, found.denominator)
    largest = sum(abs(total) * number for (total, _), number in kinds.items()) // divisor
    if max(largest * unit.numerator, found.n * unit.denominator) < FITS:
        return {(total // divisor, size): number for (total, size), number in kinds.items()}, unit, 0
    bits = min(40, 51 - len(found.clusters).bit_length())
    one = max(abs(total) for total, _ in kinds) / found.denominator
    unit = Fraction(2) ** (math.frexp(one)[1] - bits)
    rounded = ((round(Fraction(total, found.denominator) / unit), size) for total, size in found.clusters)
    return Counter(rounded), unit, len(found.clusters)


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


def _groups(kinds: Iterable[tuple[tuple[int, int], int]]) -> list[Group]:
    """Equal clusters together; those that sum to 0 last: they only add queries, rare numbers of them are left out."""
    ordered = sorted(kinds, key=lambda group: (group[0][0] == 0, group))
    return [Group(total, size, _chosen(number, total == 0), number) for (total, size), number in ordered]


def _dense(sets: int) -> int:
    """Up to how many pairs of a sum and a size it is worth while to look for equal ones among so many sets."""
    return 4 * sets + 1000


def _listed(groups: list[Group], work: int) -> Atoms | None:
    """Every set of clusters, one by one: for sums that lie far apart. None if there are too many."""
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


def _together(sums: Whole, sizes: Whole, chances: Floats) -> Atoms:
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

    Which pairs of a sum and a size there are is one long whole number, a bit a pair, `wide` bits a sum. Most often it
    is enough that there are never more sets than such pairs.
    """
    if _at_most(groups) <= work:
        return True
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


def _at_most(groups: list[Group]) -> int:
    """How many additions at most it takes to count every set, if every pair of a sum and a size were one."""
    last = max(len(group.chosen) if group.total == 0 else 1 for group in groups)
    sums, sizes, additions, pairs = 1, 1, 0, 1
    for group in groups:
        pairs = sums * sizes
        additions += pairs * len(group.chosen)
        sums += abs(group.total) * group.steps
        sizes += group.size * group.steps
    return additions + pairs * last


def _repeated(bits: int, step: int, times: int) -> int:
    """All of `bits` moved up by 0, 1, ... `times` steps."""
    copies = 1
    while copies <= times:
        more = min(copies, times + 1 - copies)
        bits |= bits << step * more
        copies += more
    return bits


def _filled(groups: list[Group]) -> Atoms:
    """Every set of clusters, in a table of sizes by sums: for sums that lie close."""
    table = np.ones((1, 1))
    for group in groups:
        table = (_widened if group.total == 0 and len(table) < group.steps else _moved)(table, group)
    table = np.ascontiguousarray(table.T)
    sums, sizes = np.nonzero(table)
    low = sum(min(group.total * group.chosen.start, group.total * (group.chosen.stop - 1)) for group in groups)
    return sums + low, sizes + sum(group.size * group.chosen.start for group in groups), table[sums, sizes]


def _moved(table: Floats, group: Group) -> Floats:
    """The table once for every choice from a group, moved to where that leads; sums always in the same order."""
    rows, columns = table.shape
    down, right, steps = group.size, abs(group.total), group.steps
    fuller, part = np.zeros((rows + down * steps, columns + right * steps)), np.empty_like(table)
    choices = list(enumerate(group.chances.tolist()))
    for step, chance in choices if group.total < 0 else reversed(choices):
        row, column = down * step, right * (steps - step if group.total < 0 else step)
        fuller[row : row + rows, column : column + columns] += np.multiply(table, chance, out=part)
    return fuller


def _widened(table: Floats, group: Group) -> Floats:
    """The same of clusters that sum to 0, row by row of the table: bit for bit, and quick where these are few."""
    rows, columns = table.shape
    reach = group.size * group.steps
    fuller = np.zeros((rows + reach, columns))
    for row in range(rows):
        fuller[row : row + reach + 1 : group.size] += np.multiply.outer(group.chances, table[row])
    return fuller


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


def _drawn(values: Sequence[int], draws: int, seed: int) -> Whole:
    """What sets of clusters come to, drawn with fair coins, and first the empty set, which was observed.

    Eight clusters are added at a time, by what each of their 256 sets comes to.
    """
    coins = _coins(draws, -(-len(values) // 64), seed)
    sums = np.zeros(draws + 1, np.int64)
    for place in range(0, len(values), 8):
        if any(eight := tuple(values[place : place + 8])):
            sums[1:] += _sets(eight).take(coins[place // 8])
    return sums


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
