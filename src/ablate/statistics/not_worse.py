"""Differences go in; whether they show that a variant is not worse by more than a margin comes out, for gates."""

from __future__ import annotations

from dataclasses import dataclass

from ablate.measures import HIGHER, LOWER
from ablate.statistics.bounds import bounds
from ablate.statistics.differences import Differences
from ablate.statistics.power import needed_for_sameness
from ablate.statistics.signflip import SEED, sign_flip
from ablate.statistics.verdict import ALPHA
from ablate.statistics.words import Word


@dataclass(frozen=True, slots=True)
class NotWorse:
    """The answer: `not worse`, `worse` (by more than the margin), `may be worse` or `cannot judge`.

    `bound` is one-sided at level 1 - `alpha`: what the difference, variant - baseline, is at least (at most where lower
    is better); None where too few clusters could give one. `needed` queries would show with 80 % power that a variant
    which changes as many queries, but nothing on balance, is not worse.
    """

    word: Word
    difference: float
    bound: float | None
    margin: float
    alpha: float
    n: int
    clusters: int
    needed: int
    score: bool


def not_worse(
    found: Differences, margin: float, better: str = HIGHER, alpha: float = ALPHA, seed: int = SEED
) -> NotWorse:
    """Judge by the one-sided bound: score bounds for 0/1 measures, the inverted sign-flip test for others.

    Fewer clusters than could ever reach `alpha` cannot judge, whatever they hold; neither can fewer queries than
    `needed` whose bounds lie on either side of the margin.
    """
    test = sign_flip(found, seed=seed)
    at_least, at_most = bounds(found, test, alpha)
    if better == LOWER:
        at_least, at_most = _minus(at_most), _minus(at_least)
    enough = needed_for_sameness(found, margin, alpha)
    bound = _minus(at_least) if better == LOWER else at_least
    word = _word(at_least, at_most, margin, found.n >= enough)
    return NotWorse(
        word, test.estimate, bound, margin, alpha, found.n, test.clusters, enough, score=found.reach is not None
    )


def _word(at_least: float | None, at_most: float | None, margin: float, enough: bool) -> Word:
    if at_least is None or at_most is None:
        return Word.CANNOT_JUDGE
    if at_least > -margin:
        return Word.NOT_WORSE
    if at_most < -margin:
        return Word.WORSE
    return Word.MAY_BE_WORSE if enough else Word.CANNOT_JUDGE


def _minus(bound: float | None) -> float | None:
    return None if bound is None else -bound + 0.0
