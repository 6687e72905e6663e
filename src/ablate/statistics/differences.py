"""Two sides of one measure go in, their paired differences come out, exact so that equal sums are equal."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache

from ablate.errors import AblateError

Value = float | Fraction
Values = Mapping[str, Value]
"""Query id -> value of one measure."""

LARGEST_DENOMINATOR = 1000
NEAR = 1e-12
"""How near a float must lie to k/n, relative to its size, to be meant as k/n."""


@dataclass(frozen=True)
class Differences:
    """What one change did to each query, and which queries stand or fall together.

    `each` is variant - baseline by query and `labels` the cluster of each; their order means nothing. `reach` is the
    greatest difference that the measure allows a query (1 for shares), None where it has no bound. `binary` says that
    either side has only 0 and 1.
    """

    each: tuple[Fraction, ...]
    labels: tuple[Hashable, ...]
    reach: int | None = None
    binary: bool = False

    @property
    def n(self) -> int:
        """How many queries there are."""
        return len(self.each)

    @cached_property
    def denominator(self) -> int:
        """The least number that makes every difference whole when multiplied by it."""
        return math.lcm(*{below for (_, below), _ in self._moved})

    @cached_property
    def whole(self) -> tuple[int, ...]:
        """The differences other than 0, times `denominator`."""
        whole = self.denominator
        return tuple(above * (whole // below) for (above, below), _ in self._moved)

    @cached_property
    def _moved(self) -> list[tuple[tuple[int, int], Hashable]]:
        pairs = zip(self.each, self.labels, strict=True)
        return [(difference.as_integer_ratio(), label) for difference, label in pairs if difference.numerator]

    @cached_property
    def clusters(self) -> tuple[tuple[int, int], ...]:
        """Sum of the differences, times `denominator`, and number of queries of every cluster."""
        sizes = _sizes(self.labels)
        sums = dict.fromkeys(sizes, 0)
        for difference, (_, label) in zip(self.whole, self._moved, strict=True):
            sums[label] += difference
        return tuple(zip(sums.values(), sizes.values(), strict=True))

    @property
    def mean(self) -> Fraction:
        return Fraction(sum(self.whole), self.n * self.denominator)

    @property
    def gained(self) -> Fraction:
        """The sum of the differences above 0."""
        return Fraction(sum(difference for difference in self.whole if difference > 0), self.denominator)

    @property
    def lost(self) -> Fraction:
        """The sum of the differences below 0, without its sign."""
        return Fraction(-sum(difference for difference in self.whole if difference < 0), self.denominator)

    def per_cluster(self) -> list[tuple[float, int]]:
        """`clusters` in the measure's own unit."""
        return [(total / self.denominator, size) for total, size in self.clusters]

    @cached_property
    def weight(self) -> float:
        """Mean, over queries, of the number of queries in the cluster: 1 where every query stands alone.

        It is how many times as many queries are needed if those of a cluster always move together (Kish 1965).
        """
        return sum(size * size for _, size in self.clusters) / self.n

    @cached_property
    def amplitude(self) -> float | None:
        """How large a difference is: the size that, alone, would give these sums of differences and of their squares.

        Where there is none it may be as large as the measure allows, None if it allows any.
        """
        if self.unchanged:
            return self.reach
        return self._squares / self.denominator / sum(map(abs, self.whole))

    @cached_property
    def union(self) -> float:
        """How many times as many queries are needed because those of a cluster moved together, as far as was seen.

        Their design effect: 1 where every query went its own way, `weight` where nothing moved.
        """
        if self.unchanged:
            return self.weight
        return max(1.0, sum(total * total for total, _ in self.clusters) / self._squares)

    @cached_property
    def _squares(self) -> int:
        return sum(difference * difference for difference in self.whole)

    @property
    def unchanged(self) -> bool:
        """Whether every query has the same value on both sides."""
        return not self.whole


@lru_cache(maxsize=16)  # all variants of a family have the same clusters
def _sizes(labels: tuple[Hashable, ...]) -> Mapping[Hashable, int]:
    return Counter(labels)


def differences(baseline: Values, variant: Values, labels: Mapping[str, Hashable] | None = None) -> Differences:
    """Pair two sides on the queries that both have; a query without a label is a cluster of its own.

    Raises:
        AblateError: no query is on both sides, or a value is no finite number.

    """
    (before, after), clusters = _paired((baseline, variant), labels)
    values = {exact(value) for value in {*before, *after}}
    return Differences(
        tuple(map(_difference, before, after)),
        clusters,
        reach=1 if all(0 <= value <= 1 for value in values) else None,
        binary=values <= {0, 1},
    )


@lru_cache(maxsize=1 << 16)  # few pairs of values come up again and again, and fractions are slow
def _difference(old: Value, new: Value) -> Fraction:
    return exact(new) - exact(old)


def interaction(
    base: Values, first: Values, second: Values, both: Values, labels: Mapping[str, Hashable] | None = None
) -> Differences:
    """By query, what two changes do together less what each does alone: (both - first) - (second - base).

    Raises:
        AblateError: no query is in all four runs, or a value is no finite number.

    """
    raw, clusters = _paired((base, first, second, both), labels)
    sides = [list(map(exact, side)) for side in raw]
    shares = all(0 <= value <= 1 for side in sides for value in side)
    each = tuple((ab - a) - (b - o) for o, a, b, ab in zip(*sides, strict=True))
    return Differences(each, clusters, reach=2 if shares else None)


def _paired(
    sides: Sequence[Values], labels: Mapping[str, Hashable] | None
) -> tuple[list[list[Value]], tuple[Hashable, ...]]:
    first, *rest = sides
    same = all(side.keys() == first.keys() for side in rest)
    queries = list(first) if same else [query for query in first if all(query in side for side in rest)]
    if not queries:
        raise AblateError("queries: found none that every side has, expected at least one; compare runs of one dataset")
    known = labels or {}
    alone = {query: ("", query) for query in queries if query not in known}  # which no text equals
    clusters = tuple(map({**known, **alone}.__getitem__, queries))
    return [list(map(side.__getitem__, queries)) for side in sides], clusters


@lru_cache(maxsize=1 << 16)
def exact(value: Value) -> Fraction:
    """The rational that is meant by a value: 0.1 + 0.2 is 3/10, and 1/3 + 1/3 + 1/3 is 1.

    It is the k/n with n <= 1000 that lies within 1e-12 of the value, and otherwise the float itself.

    Raises:
        AblateError: the value is infinite or not a number.

    """
    if not math.isfinite(value):
        raise AblateError(
            f"value: found {value}, expected a finite number; leave out queries that it does not apply to"
        )
    numerator, denominator = value.as_integer_ratio()
    near = _convergent(numerator, denominator)
    own = Fraction(numerator, denominator)
    return near if abs(float(near - own)) <= NEAR * max(1.0, abs(float(own))) else own


def _convergent(numerator: int, denominator: int) -> Fraction:
    """The last convergent of the continued fraction with a denominator of at most 1000.

    Whatever lies nearer than 1 / (2 * 1000 * 1000) with such a denominator is a convergent (Legendre).
    """
    (above, below), (last_above, last_below) = (1, 0), (0, 1)
    while denominator:
        whole, rest = divmod(numerator, denominator)
        if (next_below := whole * below + last_below) > LARGEST_DENOMINATOR:
            break
        (above, below), (last_above, last_below) = (whole * above + last_above, next_below), (above, below)
        numerator, denominator = denominator, rest
    return Fraction(above, below)
