"""A line's corpus, from the text in its file to what its encoder saw, asked about one unit of evidence at a time."""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ablate.pipeline import Ready
from ablate.score.evidence import NEVER, finder
from ablate.types import Chunk, Document, Span, Unit


class Pieces(NamedTuple):
    """The chunks of a document, and where they begin and end, each `(chunks,)`."""

    chunks: Sequence[Chunk]
    starts: npt.NDArray[np.int64]
    ends: npt.NDArray[np.int64]

    @classmethod
    def of(cls, chunks: Sequence[Chunk]) -> Pieces:
        bounds = np.array([(chunk.start, chunk.end) for chunk in chunks], np.int64).reshape(len(chunks), 2)
        return cls(chunks, bounds[:, 0], bounds[:, 1])

    def around(self, unit: Unit) -> list[Chunk]:
        """The chunks between the first character of a unit and its last."""
        start, end = bounds(unit)
        return [self.chunks[place] for place in np.flatnonzero((self.starts < end) & (self.ends > start)).tolist()]


@dataclass(frozen=True)
class Corpus:
    """What is the same for all queries of a run.

    `documents` are those that were ingested and `texts` what stands in the corpus file, by id; `threshold` is the
    share of a unit's letters that must be covered.
    """

    ready: Ready
    documents: Mapping[str, Document]
    texts: Mapping[str, str]
    threshold: float
    known: dict[Unit, Sequence[Chunk]] = field(default_factory=dict, repr=False)

    @cached_property
    def places(self) -> Mapping[str, int]:
        """Where each document stands in a mask."""
        return {document.id: place for place, document in enumerate(self.ready.dataset.documents)}

    @cached_property
    def pieces(self) -> Mapping[str, Pieces]:
        """The chunks of each document that a search can give out."""
        found: dict[str, list[Chunk]] = defaultdict(list)
        for chunk in self.ready.handed:
            found[chunk.document.id].append(chunk)
        return {name: Pieces.of(chunks) for name, chunks in found.items()}

    def around(self, unit: Unit) -> Sequence[Chunk]:
        """The chunks that touch a unit, as the chunker gave them; of a whole document the first."""
        if unit not in self.known:
            pieces = self.pieces.get(unit.document)
            self.known[unit] = () if pieces is None else pieces.around(unit) if unit.spans else pieces.chunks[:1]
        return self.known[unit]

    def ingested(self, unit: Unit) -> bool:
        """Whether the document is there, and in it each span as the file has it; of a whole document, any text."""
        document, written = self.documents.get(unit.document), self.texts.get(unit.document)
        if document is None or written is None:
            return document is not None
        if not unit.spans:
            return bool(document.text.strip()) or not written.strip()
        return all(document.text[start:end] == written[start:end] for start, end in unit.spans)

    def chunked(self, unit: Unit) -> bool:
        """Whether all chunks together support a unit."""
        return finder(self.around(unit), self.documents, (), self.threshold)(unit).rank < NEVER

    def sight(self, units: Collection[Unit]) -> Mapping[str, int] | None:
        """What the encoder saw of the text around units: of each document the characters, as bits.

        None if it was asked for nothing. Nothing is encoded: a chunk that it was not asked for, it did not see.
        """
        embedder = self.ready.line.embedder
        if not units or not getattr(embedder, "tally", None) or not hasattr(embedder, "asked"):
            return None
        asked = [chunk for chunk in self.indexed(units) if embedder.asked([chunk.reading])[0]]
        found = dict.fromkeys((unit.document for unit in units), 0)
        for chunk, seen in zip(asked, embedder.seen([chunk.reading for chunk in asked]).tolist(), strict=True):
            letters = seen - (len(chunk.reading) - len(chunk.text))  # a reading begins with the title
            if letters > 0:
                found[chunk.document.id] |= ((1 << letters) - 1) << chunk.start
        return found

    def indexed(self, units: Collection[Unit]) -> Iterator[Chunk]:
        """The chunks that were indexed, children and not their parents, and that touch one of the units."""
        wanted: dict[str, list[Span]] = defaultdict(list)
        for unit in units:
            wanted[unit.document].append(bounds(unit))
        rows = np.flatnonzero(np.isin(self.ready.owners, [self.places[name] for name in wanted]))
        for chunk in (self.ready.chunks[row] for row in rows.tolist()):
            if any(chunk.start < end and start < chunk.end for start, end in wanted[chunk.document.id]):
                yield chunk


def bounds(unit: Unit) -> Span:
    """From the first character of a unit to its last; of a whole document, from its first on."""
    start = min((span.start for span in unit.spans), default=0)
    return Span(start, max((span.end for span in unit.spans), default=sys.maxsize))
