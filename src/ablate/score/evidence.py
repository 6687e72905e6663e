"""Units of evidence and chunks in rank order go in; the rank at which each unit and fact is supported comes out."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import NamedTuple

from ablate.types import Chunk, Document, Fact, Truth, Unit

NEVER = math.inf


@dataclass(frozen=True, slots=True)
class Evidence:
    """A unit laid out for counting, its characters from `start` on as the bits of whole numbers.

    A bit of `letters` is set where the character belongs to the unit and is a letter or digit. `need` is how many of
    them must be covered: 0 for a whole document, which any of its chunks supports.
    """

    start: int
    letters: int
    need: int

    def seen(self, chunk: Chunk) -> int:
        """The letters of the unit that a chunk of its document holds."""
        low = max(chunk.start - self.start, 0)
        high = min(chunk.end - self.start, self.letters.bit_length())
        return self.letters & (1 << high) - (1 << low) if low < high else 0


class Found(NamedTuple):
    """Where in a ranking a unit is found: the rank that completes it, and every rank that adds letters of it."""

    rank: float
    adding: tuple[int, ...]


Finder = Callable[[Unit], Found]
Walk = Callable[[Evidence, Sequence[tuple[int, Chunk]]], Found]


@lru_cache(maxsize=1 << 16)
def lay_out(document: Document, unit: Unit, threshold: float) -> Evidence:
    """A unit as bits. The threshold is read as the decimal it was written as: 0.7 of 10 letters is 7 letters."""
    if not unit.spans:
        return Evidence(start=0, letters=_bits(document.text), need=0)
    start = min(span.start for span in unit.spans)
    letters = 0
    for span in unit.spans:
        letters |= _bits(document.text[span.start : span.end]) << (span.start - start)
    # A unit without letters is refused by the reader; were one to come this far, nothing would support it.
    need = max(1, math.ceil(Fraction(str(threshold)) * letters.bit_count()))
    return Evidence(start, letters, need)


def _bits(text: str) -> int:
    return int("".join("1" if character.isalnum() else "0" for character in reversed(text)) or "0", 2)


def unique(ranking: Iterable[Chunk]) -> list[Chunk]:
    """Chunks in rank order; of duplicates (same document and span) the best stays and the others take no rank."""
    return list({(chunk.document.id, chunk.start, chunk.end): chunk for chunk in ranking}.values())


def finder(
    ranking: Sequence[Chunk], documents: Mapping[str, Document], denied: Container[str], threshold: float
) -> Finder:
    """Looks for units in a ranking without duplicates; chunks of denied documents keep their rank and give nothing."""
    return placed_finder(enumerate(ranking, start=1), documents, denied, threshold, _walk)


def placed_finder(
    placed: Iterable[tuple[int, Chunk]],
    documents: Mapping[str, Document],
    denied: Container[str],
    threshold: float,
    walk: Walk,
) -> Finder:
    """Looks for units in chunks, each with its place; `walk` says where a unit is among those of its document."""
    places: dict[str, list[tuple[int, Chunk]]] = defaultdict(list)
    for place, chunk in placed:
        if chunk.document.id not in denied:
            places[chunk.document.id].append((place, chunk))
    known: dict[Unit, Found] = {}

    def find(unit: Unit) -> Found:
        if unit not in known:
            chunks = places.get(unit.document, [])
            known[unit] = walk(lay_out(documents[unit.document], unit, threshold), chunks) if chunks else NOWHERE
        return known[unit]

    return find


NOWHERE = Found(NEVER, ())


def _walk(evidence: Evidence, chunks: Iterable[tuple[int, Chunk]]) -> Found:
    covered, completed, adding = 0, NEVER, []
    for rank, chunk in chunks:
        new = evidence.seen(chunk) & ~covered
        if new:
            covered |= new
            adding.append(rank)
        if completed == NEVER and covered.bit_count() >= evidence.need:
            completed = rank
    return Found(completed, tuple(adding))


def first(fact: Fact, find: Finder) -> Found:
    """Where a fact is found: its first completed unit, whose letters stand for it.

    Of units that are completed together it is the one begun first, so that the order in a file decides nothing.
    """
    return min(find(unit) for unit in fact)


def ranks(truth: Truth, find: Finder) -> list[list[float]]:
    """For every alternative, the ranks of its facts."""
    return [[first(fact, find).rank for fact in alternative] for alternative in truth.alternatives]


def best(supported: Sequence[Sequence[bool]]) -> Sequence[bool]:
    """Of alternatives, given as which of their facts are supported, the one with the highest share, then the fewest."""
    return max(supported, key=lambda facts: (Fraction(sum(facts), len(facts)), -len(facts)))


def units(truths: Iterable[Truth]) -> list[Unit]:
    """Every unit that some alternative rests on, once."""
    alternatives = (alternative for truth in truths for alternative in truth.alternatives)
    return list(dict.fromkeys(unit for facts in alternatives for fact in facts for unit in fact))
