"""Differences of differences go in; whether two changes add up comes out."""

from __future__ import annotations

from dataclasses import dataclass

from ablate.measures import HIGHER
from ablate.statistics.differences import Differences
from ablate.statistics.signflip import SEED
from ablate.statistics.verdict import ALPHA, Verdict, verdict
from ablate.statistics.words import Word

WORDS = {
    Word.BETTER: Word.REINFORCING,
    Word.WORSE: Word.OVERLAPPING,
    Word.EQUIVALENT: Word.ADDITIVE,
    Word.IDENTICAL: Word.ADDITIVE,
    Word.CANNOT_TELL: Word.CANNOT_TELL,
}


@dataclass(frozen=True, slots=True)
class Interplay:
    """How two changes act together; `found` has the interaction, its interval and p-value."""

    word: Word
    found: Verdict


def interplay(
    found: Differences, margin: float, better: str = HIGHER, alpha: float = ALPHA, seed: int = SEED
) -> Interplay:
    """Name the interaction (both - first) - (second - base) of `ablate.statistics.interaction`, by the same test.

    Additive is claimed only where both one-sided bounds lie inside the margin, or where every query adds up exactly
    and there are clusters enough to say so. `better` is the measure's good direction.
    """
    seen = verdict(found, margin, better=better, alpha=alpha, seed=seed)
    unsure = seen.word == Word.IDENTICAL and not seen.negligible
    return Interplay(Word.CANNOT_TELL if unsure else WORDS[seen.word], seen)
