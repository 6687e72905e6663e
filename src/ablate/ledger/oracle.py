"""A unit of evidence and the chunks at hand go in, the fewest chunks that support it come out."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from ablate.score.evidence import Evidence, lay_out
from ablate.types import Chunk, Document, Unit


def supporting(
    units: Iterable[Unit],
    pieces: Callable[[Unit], Sequence[Chunk]],
    documents: Mapping[str, Document],
    threshold: float,
) -> list[Chunk]:
    """Chunks that together support one of the units, for the unit that takes the fewest; none if no unit can be.

    `pieces` gives the chunks at hand of a unit's document.
    """
    found = [cover(lay_out(documents[unit.document], unit, threshold), pieces(unit)) for unit in units]
    return min(filter(None, found), key=len, default=[])


def cover(evidence: Evidence, chunks: Sequence[Chunk]) -> list[Chunk]:
    """Chunks of one document that support a unit, each time the one that adds most; none if all together do not."""
    if not evidence.need:
        return list(chunks[:1])
    picked: list[Chunk] = []
    covered = 0
    while covered.bit_count() < evidence.need:
        adding = [(evidence.seen(chunk) & ~covered, chunk) for chunk in chunks]
        new, chunk = max(adding, key=lambda pair: (pair[0].bit_count(), -pair[1].start), default=(0, None))
        if not new or chunk is None:
            return []
        picked.append(chunk)
        covered |= new
    return picked
