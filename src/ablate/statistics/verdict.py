"""Differences of a family of variants go in, one word each comes out, with the interval that says the same."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ablate.measures import HIGHER, LOWER
from ablate.statistics.bounds import bounds, interval
from ablate.statistics.differences import Differences, exact
from ablate.statistics.holm import Step, holm
from ablate.statistics.power import POWER, Spread, detectable, needed, needed_for_sameness, spread
from ablate.statistics.signflip import SEED, SignFlip, sign_flip
from ablate.statistics.words import Word

ALPHA = 0.05


@dataclass(frozen=True, slots=True)
class Verdict:
    """What one variant did to one measure, among the `family` of variants that were asked about together.

    `difference` is variant - baseline. `low` and `high` bound it at level 1 - `alpha`, where `alpha` is this variant's
    share in the family: the interval excludes 0 just when `p` <= `alpha`, which is when `p_adjusted` is at most the
    family's level. `at_least` and `at_most` are one-sided at the same level; `negligible` says that both lie inside
    the margin, whatever the word. A bound is None where too few clusters could give one. `moved` of the `clusters`
    have a difference, and `smallest_p` is the least that these could have given. `needed` queries would find a
    difference of the margin at 80 % power; where there are as many, `needed` would show that there is none. These find
    one of `detectable`. Both are None where nothing spreads. `draws` and `seed` are None where the test counted every
    flip.
    """

    word: Word
    difference: float
    low: float | None
    high: float | None
    at_least: float | None
    at_most: float | None
    negligible: bool
    alpha: float
    p: float
    p_adjusted: float
    family: int
    n: int
    clusters: int
    moved: int
    smallest_p: float
    margin: float
    needed: int | None
    detectable: float | None
    draws: int | None
    seed: int | None


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
        name: _verdict(found, tests[name], steps[name], len(family), margin, beside.get(name), better)
        for name, found in family.items()
    }


def _verdict(
    found: Differences,
    test: SignFlip,
    step: Step,
    family: int,
    margin: float,
    sufficient: Differences | None,
    better: str,
) -> Verdict:
    at_least, at_most = bounds(found, test, step.alpha)
    low, high = interval(found, test, step.alpha)
    small = inside(at_least, at_most, margin)
    seen = spread(found)
    told = seen is not None and not found.unchanged
    return Verdict(
        word=_word(found, step, small, margin, sufficient, better),
        difference=test.estimate,
        low=low,
        high=high,
        at_least=at_least,
        at_most=at_most,
        negligible=small,
        alpha=step.alpha,
        p=step.p,
        p_adjusted=step.adjusted,
        family=family,
        n=found.n,
        clusters=test.clusters,
        moved=test.moved,
        smallest_p=test.smallest_p,
        margin=margin,
        needed=_needed(found, seen, margin, step.alpha) if told and seen else None,
        detectable=detectable(seen, found.n, step.alpha, POWER) if told and seen else None,
        draws=test.draws,
        seed=test.seed,
    )


def _needed(found: Differences, seen: Spread, margin: float, alpha: float) -> int:
    """How many queries could tell: where there are enough to find a difference, how many show that there is none."""
    finding = needed(seen, margin, alpha, POWER)
    both_sides = (1 + POWER) / 2
    return finding if finding > found.n else needed_for_sameness(found, margin, alpha, both_sides)


def _word(
    found: Differences, step: Step, small: bool, margin: float, sufficient: Differences | None, better: str
) -> Word:
    if found.unchanged:
        return Word.IDENTICAL
    if step.rejected and (found.mean > 0) != (better == LOWER):
        return Word.MIXED if sufficient is not None and sufficient.mean < -exact(margin) else Word.BETTER
    if step.rejected:
        return Word.WORSE
    return Word.EQUIVALENT if small else Word.CANNOT_TELL


def inside(at_least: float | None, at_most: float | None, margin: float) -> bool:
    """Whether both bounds lie inside the margin, not on it."""
    return at_least is not None and at_most is not None and -margin < at_least and at_most < margin
