"""The chunks of a corpus and the evidence it must hold go in, the `chunking/` values of a run come out."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

import numpy as np
import numpy.typing as npt

from ablate.score.evidence import lay_out, units
from ablate.types import Chunk, Document, Truth, Unit


def chunking(
    chunks: Sequence[Chunk],
    truncated: npt.NDArray[np.bool_],
    documents: Mapping[str, Document],
    truths: Sequence[Truth],
    threshold: float,
) -> dict[str, float | None]:
    """Values of one chunker: `chunks` are what a search can give out, the parents where chunks have some.

    `truncated`, of shape `(indexed chunks,)`, says which of those that are indexed the encoder's limit cut off. A unit
    is whole where one chunk alone supports it, an alternative where one chunk alone supports all its facts.
    """
    pieces: dict[str, list[int]] = defaultdict(list)
    for number, chunk in enumerate(chunks):
        pieces[chunk.document.id].append(number)
    homes = {
        unit: _homes(unit, [(number, chunks[number]) for number in pieces[unit.document]], documents, threshold)
        for unit in units(truths)
    }
    alternatives = [alternative for truth in truths for alternative in truth.alternatives]
    together = [
        set.intersection(*(set.union(*(homes[unit] for unit in fact)) for fact in alternative))
        for alternative in alternatives
    ]
    return {
        "chunking/chunks": float(len(chunks)),
        "chunking/units_whole": _share([bool(home) for home in homes.values()]),
        "chunking/alternatives_whole": _share([bool(home) for home in together]),
        "chunking/truncated": float(truncated.sum()),
        "chunking/truncated_share": _share(truncated.tolist()),
    }


def _homes(
    unit: Unit, chunks: Iterable[tuple[int, Chunk]], documents: Mapping[str, Document], threshold: float
) -> set[int]:
    """The numbers of the chunks that support the unit alone; none where its document was not loaded."""
    if unit.document not in documents:
        return set()
    evidence = lay_out(documents[unit.document], unit, threshold)
    return {number for number, chunk in chunks if evidence.seen(chunk).bit_count() >= evidence.need}


def _share(flags: Sequence[bool]) -> float | None:
    return sum(flags) / len(flags) if flags else None
