"""The chunks of an index go in; positions and scores go in, hits in the one total order come out."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

import numpy as np
import numpy.typing as npt

from ablate.types import Chunk, Hit

Rows = npt.NDArray[np.intp]
Scores = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False, repr=False)
class Order:
    """The one total order over what indexed chunks hand out: score descending, equal scores by lot.

    A chunk that is handed out, a parent or the indexed chunk itself, has the score of the best that stands for it.
    `places` says which of the `handed` chunks that is for each indexed one, `(chunks,)`.
    """

    handed: Sequence[Chunk]
    lots: npt.NDArray[np.uint64]
    places: Rows

    @classmethod
    def of(cls, chunks: Sequence[Chunk]) -> Order:
        """The order of these chunks; handed chunks of one document and span are one."""
        handed: dict[tuple[str, int, int], Chunk] = {}
        spans = [(chunk.document.id, chunk.start, chunk.end) for chunk in (chunk.handed for chunk in chunks)]
        for span, chunk in zip(spans, chunks, strict=True):
            handed.setdefault(span, chunk.handed)
        number = {span: place for place, span in enumerate(handed)}
        lots = np.array([chunk.lot for chunk in handed.values()], dtype=np.uint64)
        return cls(list(handed.values()), lots, np.array([number[span] for span in spans], dtype=np.intp))

    @property
    def spread(self) -> int:
        """How many indexed chunks there are for one that is handed out, on average, rounded up."""
        return -(-len(self.places) // max(len(self.handed), 1))

    def best(self, rows: Rows, scores: Scores, depth: int) -> list[Hit]:
        """The first `depth` of what the chunks in `rows`, `(n,)`, hand out, by their `scores`, `(n,)`."""
        reach = depth
        while True:
            kept = _leading(scores, reach)
            hits = list(islice(self._ranked(rows[kept], scores[kept]), depth))
            if len(hits) == depth or len(kept) == len(rows):
                return hits
            reach *= 4

    def _ranked(self, rows: Rows, scores: Scores) -> Iterator[Hit]:
        places = self.places[rows]
        order = np.lexsort((self.lots[places], -scores))
        seen: set[int] = set()
        for place, score in zip(places[order].tolist(), scores[order].tolist(), strict=True):
            if place not in seen:
                seen.add(place)
                yield Hit(self.handed[place], score)


def _leading(scores: Scores, reach: int) -> Rows:
    """Where the highest `reach` scores are, and all that equal the last of them."""
    if len(scores) <= reach:
        return np.arange(len(scores))
    cut = np.partition(scores, len(scores) - reach)[len(scores) - reach]
    return np.flatnonzero(scores >= cut)
