"""A line's corpus, from the text in its file to what its encoder saw, asked about one unit of evidence at a time."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ablate.pipeline import Ready
from ablate.score.evidence import NEVER, Finder, finder
from ablate.types import Chunk, Document, Unit


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

    @cached_property
    def places(self) -> Mapping[str, int]:
        """Where each document stands in a mask."""
        return {document.id: place for place, document in enumerate(self.ready.dataset.documents)}

    @cached_property
    def pieces(self) -> Mapping[str, Sequence[Chunk]]:
        """The chunks of each document that a search can give out."""
        found: dict[str, list[Chunk]] = defaultdict(list)
        for chunk in self.ready.handed:
            found[chunk.document.id].append(chunk)
        return found

    @cached_property
    def whole(self) -> Finder:
        """Looks for units in all chunks that there are."""
        return finder(self.ready.handed, self.documents, (), self.threshold)

    def ingested(self, unit: Unit) -> bool:
        """Whether the document is there, and in it each span as the file has it; of a whole document, any text."""
        document, written = self.documents.get(unit.document), self.texts.get(unit.document)
        if document is None or written is None:
            return document is not None
        if not unit.spans:
            return bool(document.text.strip()) or not written.strip()
        return all(document.text[start:end] == written[start:end] for start, end in unit.spans)

    def chunked(self, unit: Unit) -> bool:
        return self.whole(unit).rank < NEVER

    def sight(self, names: Collection[str]) -> Mapping[str, int] | None:
        """Of each of these documents the characters that the encoder saw, as bits; None if it was asked for none.

        Nothing is encoded: a chunk that the encoder was not asked for, it did not see.
        """
        embedder = self.ready.line.embedder
        if not names or not getattr(embedder, "tally", None) or not hasattr(embedder, "asked"):
            return None
        rows = np.flatnonzero(np.isin(self.ready.owners, [self.places[name] for name in names]))
        chunks = [self.ready.chunks[row] for row in rows.tolist()]
        asked = embedder.asked([chunk.reading for chunk in chunks])
        chunks = [chunk for chunk, encoded in zip(chunks, asked, strict=True) if encoded]
        found = dict.fromkeys(names, 0)
        for chunk, seen in zip(chunks, embedder.seen([chunk.reading for chunk in chunks]).tolist(), strict=True):
            letters = seen - (len(chunk.reading) - len(chunk.text))  # a reading begins with the title
            if letters > 0:
                found[chunk.document.id] |= ((1 << letters) - 1) << chunk.start
        return found
