"""A verdict goes in, how few labels of what nobody has judged would turn it comes out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Any

from ablate.records import RunRecord
from ablate.statistics import Differences, Verdict, Word, differences, verdict
from ablate.statistics.differences import exact

EVIDENCE = ("context/sufficient", "context/coverage", "retrieval/coverage_at_")
"""Measures that are 1 for a query as soon as one source suffices, by how their names begin."""

CLAIMS = (Word.BETTER, Word.MIXED, Word.WORSE, Word.EQUIVALENT)
"""Words that labels could take back; the others claim nothing."""

Place = Sequence[Any]
"""A passage: its document's id, where it starts and where it ends."""


@dataclass(frozen=True, slots=True)
class LabelRisk:
    """The fewest sources whose labels would give another word, of the `possible` ones; None if all would not.

    A source counts where only the context that loses holds it and it would suffice by itself: the worst that a label
    can do. It is looked for where it does most, so that fewer would not do.
    """

    overturned_by: int | None
    possible: int


def label_risk(
    baseline: RunRecord, variant: RunRecord, queries: Sequence[str], measure: str, given: Verdict
) -> LabelRisk | None:
    """The risk of a verdict that was given on `queries`; None where it claims nothing about evidence.

    None, too, for runs that were recorded without what nobody has judged.
    """
    known = all("unjudged" in record.queries[query] for record in (baseline, variant) for query in queries)
    if given.word not in CLAIMS or not measure.startswith(EVIDENCE) or not known:
        return None
    signs = (-1, 1) if given.word == Word.EQUIVALENT else (1,) if given.word == Word.WORSE else (-1,)
    sides = [Side(baseline, variant, queries, measure, sign) for sign in signs]
    risks = [fewest(side, given) for side in sides]
    return min(risks, key=lambda risk: (risk.overturned_by is None, risk.overturned_by or 0))


@dataclass(frozen=True)
class Side:
    """Labels that raise the difference of two runs (`sign` 1: for the variant) or lower it (-1: for the baseline)."""

    baseline: RunRecord
    variant: RunRecord
    queries: Sequence[str]
    measure: str
    sign: int

    @cached_property
    def found(self) -> Differences:
        before, after = self.baseline.values(self.measure), self.variant.values(self.measure)
        labels = {query: self.baseline.queries[query].get("cluster") or query for query in self.queries}
        left, right = ({query: values[query] for query in self.queries} for values in (before, after))
        return differences(left, right, labels)

    @cached_property
    def moves(self) -> list[Fraction]:
        """By how much one label moves the difference of each query."""
        one, other = (self.variant, self.baseline) if self.sign > 0 else (self.baseline, self.variant)
        values = one.values(self.measure)
        return [
            self.sign * (1 - exact(values[query])) if alone(query, one, other) else Fraction(0)
            for query in self.queries
        ]

    @cached_property
    def order(self) -> list[int]:
        """The places of the queries that a label moves, those that it moves most first."""
        moved = (place for place, move in enumerate(self.moves) if move)
        return sorted(moved, key=lambda place: (-abs(self.moves[place]), self.queries[place]))

    def after(self, labels: int) -> Differences:
        """The differences once so many labels were given."""
        each = list(self.found.each)
        for place in self.order[:labels]:
            each[place] += self.moves[place]
        return replace(self.found, each=tuple(each))


def fewest(side: Side, given: Verdict) -> LabelRisk:
    """Look for the number of labels from which the word is another."""
    stays, turns = 0, len(side.order) + 1
    while turns - stays > 1:
        middle = (stays + turns) // 2
        turned = not same(verdict(side.after(middle), given.margin, alpha=given.alpha).word, given.word)
        stays, turns = (stays, middle) if turned else (middle, turns)
    return LabelRisk(turns if turns <= len(side.order) else None, len(side.order))


def same(word: Word, given: Word) -> bool:
    """Whether two words claim the same of the primary measure: `mixed` is better on it."""
    better = (Word.BETTER, Word.MIXED)
    return word == given or (word in better and given in better)


def alone(query: str, one: RunRecord, other: RunRecord) -> bool:
    """Whether one context holds an unjudged passage of which the other holds nothing."""
    theirs = other.queries[query]["unjudged"]
    return any(not any(overlap(mine, their) for their in theirs) for mine in one.queries[query]["unjudged"])


def overlap(one: Place, other: Place) -> bool:
    return bool(one[0] == other[0] and one[1] < other[2] and other[1] < one[2])
