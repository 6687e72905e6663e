"""Differences of a family of variants go in, one word each comes out, with the interval that says the same."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from ablate.measures import HIGHER, LOWER
from ablate.statistics.bounds import Bounds, bounds, interval, negligible
from ablate.statistics.differences import Differences, exact
from ablate.statistics.holm import Step, holm
from ablate.statistics.power import POWER, Spread, detectable, needed, needed_for_sameness, spread
from ablate.statistics.signflip import SEED, SignFlip, sign_flip
from ablate.statistics.words import Word

ALPHA = 0.05


@dataclass(frozen=True, eq=False)
class Verdict:
    """What one variant did to one measure, among the `family` of variants that were asked about together.

    Bounds are found when they are asked for. `sufficient` is what the variant did to the measure that must not fall by
    more than the margin, and `better` the good direction of its own.
    """

    found: Differences
    test: SignFlip
    step: Step
    family: int
    margin: float
    sufficient: Differences | None
    better: str

    @cached_property
    def word(self) -> Word:
        if self.found.unchanged:
            return Word.IDENTICAL
        if self.step.rejected and (self.found.mean > 0) != (self.better == LOWER):
            fell = self.sufficient is not None and self.sufficient.mean < -exact(self.margin)
            return Word.MIXED if fell else Word.BETTER
        if self.step.rejected:
            return Word.WORSE
        return Word.EQUIVALENT if self.negligible else Word.CANNOT_TELL

    @property
    def difference(self) -> float:
        """Variant - baseline."""
        return self.test.estimate

    @property
    def n(self) -> int:
        return self.found.n

    @property
    def clusters(self) -> int:
        return self.test.clusters

    @property
    def moved(self) -> int:
        """How many clusters have a difference."""
        return self.test.moved

    @property
    def smallest_p(self) -> float:
        """The least p-value that as many could have given."""
        return self.test.smallest_p

    @property
    def alpha(self) -> float:
        """The variant's share of the family's level."""
        return self.step.alpha

    @property
    def p(self) -> float:
        return self.step.p

    @property
    def p_adjusted(self) -> float:
        """For the family: at most the family's level just when `p` <= `alpha`."""
        return self.step.adjusted

    @cached_property
    def interval(self) -> Bounds:
        """What the difference may be at level 1 - `alpha`: it excludes 0 just when `p` <= `alpha`."""
        return interval(self.found, self.test, self.alpha)

    @cached_property
    def bounds(self) -> Bounds:
        """What the difference is at least and at most, each at level 1 - `alpha`; None where clusters are too few."""
        return bounds(self.found, self.test, self.alpha)

    @property
    def low(self) -> float | None:
        return self.interval[0]

    @property
    def high(self) -> float | None:
        return self.interval[1]

    @property
    def at_least(self) -> float | None:
        return self.bounds[0]

    @property
    def at_most(self) -> float | None:
        return self.bounds[1]

    @cached_property
    def negligible(self) -> bool:
        """Whether both bounds lie inside the margin, whatever the word."""
        return negligible(self.found, self.test, self.alpha, self.margin)

    @cached_property
    def needed(self) -> int | None:
        """How many queries could tell at 80 % power; None where nothing spreads.

        They find a difference of the margin or, where there are as many, show that there is none.
        """
        if self.spread is None:
            return None
        finding = needed(self.spread, self.margin, self.alpha, POWER)
        both_sides = (1 + POWER) / 2
        return finding if finding > self.n else needed_for_sameness(self.found, self.margin, self.alpha, both_sides)

    @cached_property
    def detectable(self) -> float | None:
        """The difference that these queries find at 80 % power."""
        return detectable(self.spread, self.n, self.alpha, POWER) if self.spread else None

    @cached_property
    def spread(self) -> Spread | None:
        return None if self.found.unchanged else spread(self.found)

    def data(self) -> dict[str, Any]:
        """All of it, for programs; `draws` and `seed` are null where the test counted every flip."""
        told = (
            *("word", "difference", "low", "high", "at_least", "at_most", "negligible", "alpha", "p", "p_adjusted"),
            *("family", "n", "clusters", "moved", "smallest_p", "margin", "needed", "detectable"),
        )
        return {**{name: getattr(self, name) for name in told}, "draws": self.test.draws, "seed": self.test.seed}


def verdict(
    found: Differences,
    margin: float,
    sufficient: Differences | None = None,
    better: str = HIGHER,
    alpha: float = ALPHA,
    seed: int = SEED,
) -> Verdict:
    """The verdict on one variant alone: a family of one."""
    beside = {} if sufficient is None else {"": sufficient}
    return verdicts({"": found}, margin, beside, better, alpha, seed)[""]


def verdicts(
    family: Mapping[str, Differences],
    margin: float,
    sufficient: Mapping[str, Differences] | None = None,
    better: str = HIGHER,
    alpha: float = ALPHA,
    seed: int = SEED,
) -> dict[str, Verdict]:
    """The verdicts on every variant of a family, Holm's correction over all of them; add one and all are new.

    `margin` is the least difference that matters, above 0. `sufficient` holds, by the same names, what each did to the
    measure that must not fall by more than the margin. `better` is the measure's good direction.
    """
    tests = {name: sign_flip(found, seed=seed) for name, found in family.items()}
    steps = holm({name: test.p() for name, test in tests.items()}, alpha)
    beside = sufficient or {}
    return {
        name: Verdict(found, tests[name], steps[name], len(family), margin, beside.get(name), better)
        for name, found in family.items()
    }
