"""What became of the facts of one query goes in, its line of the ledger comes out."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any

from ablate.dataset.fingerprint import digest
from ablate.ledger.stages import DELIVERED, ORDER, STAGES
from ablate.types import Alternative, Fact, Truth, Unit

NAME = 16
"""Characters of a content hash that name an alternative among those of one query."""


@dataclass(frozen=True, slots=True)
class Fate:
    """What became of a fact: where it was lost, whether that is `verified` or `suspected`, and why it is not sure."""

    fact: Fact
    stage: str
    blame: str | None = None
    why: str | None = None


@dataclass(frozen=True, slots=True)
class Entry:
    """One query: its best alternative by its place in the truth, the fates of that one's facts, each of equal mass.

    `alternatives` holds, by content hash, the stages of all of them, so that another run can be followed on this
    one's best; their facts are in the order of their own hashes.
    """

    query: str
    alternative: int
    name: str
    fates: tuple[Fate, ...]
    alternatives: Mapping[str, tuple[str, ...]]

    @property
    def mass(self) -> Fraction:
        """What each fact weighs."""
        return Fraction(1, len(self.fates))


def entry(truth: Truth, fates: Mapping[Fact, str]) -> Entry:
    """The line of a query that has alternatives, its best one chosen.

    That is the one with the highest share of facts delivered; then the one that got furthest as a whole, which is as
    far as the first of its facts to be lost; then the one of fewest facts; then the one whose hash is least.
    """
    sorted_facts = [sorted(alternative, key=named) for alternative in truth.alternatives]
    names = [name(alternative) for alternative in truth.alternatives]
    stages = [tuple(fates[fact] for fact in facts) for facts in sorted_facts]
    places = range(len(stages))
    best = min(places, key=lambda place: (*standing(stages[place]), names[place], place))
    chosen = tuple(Fate(fact, fates[fact]) for fact in sorted_facts[best])
    return Entry(truth.query, best, names[best], chosen, dict(zip(names, stages, strict=True)))


def standing(stages: Sequence[str]) -> tuple[Fraction, int, int]:
    """By what alternatives are compared, the better the less."""
    delivered = Fraction(stages.count(DELIVERED), len(stages))
    return -delivered, -min(ORDER[stage] for stage in stages), len(stages)


def name(alternative: Alternative) -> str:
    """A hash of an alternative's content, whatever the order in which its facts and their sources are written."""
    return digest(sorted(map(named, alternative)))[:NAME]


@lru_cache(maxsize=1 << 16)
def named(fact: Fact) -> str:
    """A hash of a fact's content."""
    return digest(sorted(located(unit) for unit in fact))


def located(unit: Unit) -> list[Any]:
    return [unit.document, [list(span) for span in unit.spans]]


def cells(entries: Iterable[Entry]) -> dict[str, Fraction]:
    """The mass of queries at every stage; together it is the number of entries, exactly."""
    found = dict.fromkeys(STAGES, Fraction(0))
    for each in entries:
        for fate in each.fates:
            found[fate.stage] += each.mass
    return found


def row(entry: Entry) -> dict[str, Any]:
    """An entry as JSON has it; a mass is a float there, and 1 over the number of facts exactly."""
    return {
        "query_id": entry.query,
        "alternative": entry.alternative,
        "name": entry.name,
        "facts": [_fact(fate, float(entry.mass)) for fate in entry.fates],
        "alternatives": {name: list(stages) for name, stages in entry.alternatives.items()},
    }


def _fact(fate: Fate, mass: float) -> dict[str, Any]:
    units = [{"doc_id": unit.document} | ({"spans": located(unit)[1]} if unit.spans else {}) for unit in fate.fact]
    told = {"blame": fate.blame, "why": fate.why}
    return {"units": units, "stage": fate.stage, "mass": mass, **{key: text for key, text in told.items() if text}}
