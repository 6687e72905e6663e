"""A fact that was lost goes in; whether it comes back once the blamed layer alone is made perfect comes out."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from ablate.ledger.again import Uncomputed, allowed, opened, packed, rechunked, reingested, reranked
from ablate.ledger.corpus import Corpus, bounds
from ablate.ledger.course import Course
from ablate.ledger.entry import Fate
from ablate.ledger.oracle import supporting
from ablate.ledger.stages import (
    ACCESS,
    CANDIDATES,
    CHUNKING,
    CUT_OFF,
    DENIED,
    FILTER,
    FUSION,
    INGESTION,
    PACKING,
    RERANK,
    TRUNCATION,
)
from ablate.pipeline import Ready, unique
from ablate.score.evidence import NEVER, finder
from ablate.types import Chunk, Context, Document, Fact, Hit, Unit

VERIFIED, SUSPECTED = "verified", "suspected"


@dataclass(frozen=True)
class Restored:
    """The corpus of a run with what `lost` names undone: the courses and facts lost in ingestion, or in chunking."""

    corpus: Corpus
    lost: Mapping[str, Sequence[tuple[Course, Fact]]]

    @cached_property
    def written(self) -> Mapping[str, Document]:
        """The documents from which ingestion took evidence, with their text as it is in the file."""
        units = [unit for course, fact in self.lost.get(INGESTION, ()) for unit in course.ends[fact].units]
        known = self.corpus.documents
        names = dict.fromkeys(unit.document for unit in units if unit.document in known)
        return {name: replace(known[name], text=self.corpus.texts[name]) for name in names}

    @cached_property
    def reingested(self) -> Ready:
        return reingested(self.corpus.ready, self.written)

    @cached_property
    def rechunked(self) -> Ready:
        units = [unit for course, fact in self.lost.get(CHUNKING, ()) for unit in course.ends[fact].units]
        return rechunked(self.corpus.ready, list(dict.fromkeys(filter(None, map(self.chunk, units)))))

    def chunk(self, unit: Unit) -> Chunk | None:
        """A unit as one chunk, from its first character to its last."""
        document = self.corpus.documents[unit.document]
        start, end = bounds(unit)
        return Chunk(document, start, min(end, len(document.text))) if start < len(document.text) else None


@dataclass(frozen=True)
class Trial:
    """One fact that one query lost, and the same query again with one layer of the line made perfect for it."""

    course: Course
    fact: Fact
    restored: Restored

    def __call__(self, stage: str) -> Fate:
        """The fate of the fact, verified where it comes back, or else suspected, and why."""
        try:
            back = self.back(stage)
        except Uncomputed as error:
            return Fate(self.fact, stage, SUSPECTED, str(error))
        except Exception as error:  # what a user's own component does when it is asked again must not end a run
            return Fate(self.fact, stage, SUSPECTED, f"running it again broke off with {type(error).__name__}")
        return Fate(self.fact, stage, *((VERIFIED, None) if back else (SUSPECTED, "it does not come back by that")))

    def back(self, stage: str) -> bool:
        """Whether the context supports the fact once `stage` loses nothing of it."""
        if stage == INGESTION:
            return self.whole(self.restored.reingested(self.course.query).context)
        return self.course.delivers(self.fact, AGAIN[stage](self).passages)

    def whole(self, context: Context) -> bool:
        """Whether the context supports the fact in documents as they were written."""
        corpus = self.course.corpus
        documents = {**corpus.documents, **self.restored.written}
        find = finder(context.passages, documents, self.course.barred, corpus.threshold)
        return any(find(unit).rank < NEVER for unit in self.fact)

    @property
    def line(self) -> Ready:
        return self.course.corpus.ready

    def denied(self) -> Context:
        raise Uncomputed("the access list lets the asker read no document that holds it")

    def chunking(self) -> Context:
        return self.restored.rechunked(self.course.query).context

    def access(self) -> Context:
        """Access lets the documents through, before the search and after it."""
        line, names = self.line, self.names
        asked, places = line.asked(self.course.query), self.places(names)
        known = opened(asked.known, places)
        readable = opened(line.access.allowed(self.course.query), places)
        search = asked._replace(known=known, allowed=readable & line.filter.allowed(self.course.query))
        return allowed(line, self.course.query, names, search)

    def filter(self) -> Context:
        """The filter lets the documents through."""
        line = self.line
        wanted = opened(line.filter.allowed(self.course.query), self.places(self.names))
        asked = line.asked(self.course.query)
        search = asked._replace(allowed=line.access.allowed(self.course.query) & wanted)
        return allowed(line, self.course.query, (), search)

    def candidates(self) -> Context:
        """The search puts the chunks that support the fact first in its fused list."""
        return self.leading(self.course.corpus.around)

    def fusion(self) -> Context:
        """The fusion puts those of the listed chunks first."""
        return self.leading(among(self.course.lists))

    def leading(self, pieces: Callable[[Unit], Sequence[Chunk]]) -> Context:
        line, fused = self.line, self.course.trace.candidates.fused
        hits = first(self.supporting(pieces), fused)[: line.depth]
        return reranked(line, self.course.query, line.access.after(self.course.query, hits))

    def rerank(self) -> Context:
        """The reranker keeps the order."""
        return packed(self.line, self.course.query, unique(self.course.trace.permitted))

    def cut_off(self) -> Context:
        """The chunks that support the fact stand first in the ranking."""
        return packed(self.line, self.course.query, first(self.permitted, self.course.trace.ranked))

    def packing(self) -> Context:
        """The packer hands over the chunks as they are, behind all else."""
        context = self.course.trace.context
        return replace(context, passages=[*context.passages, *self.permitted])

    @property
    def permitted(self) -> list[Chunk]:
        return self.supporting(among(self.course.mine(self.course.trace.permitted)))

    def supporting(self, pieces: Callable[[Unit], Sequence[Chunk]]) -> list[Chunk]:
        corpus = self.course.corpus
        return supporting(self.units, pieces, corpus.documents, corpus.threshold)

    @property
    def units(self) -> Sequence[Unit]:
        """The units of the fact that were left before it was lost."""
        return self.course.ends[self.fact].units

    @property
    def names(self) -> frozenset[str]:
        return frozenset(unit.document for unit in self.units)

    def places(self, names: Collection[str]) -> list[int]:
        return [self.course.corpus.places[name] for name in names]


AGAIN: Mapping[str, Callable[[Trial], Context]] = {
    DENIED: Trial.denied,
    CHUNKING: Trial.chunking,
    ACCESS: Trial.access,
    FILTER: Trial.filter,
    TRUNCATION: Trial.candidates,
    CANDIDATES: Trial.candidates,
    FUSION: Trial.fusion,
    RERANK: Trial.rerank,
    CUT_OFF: Trial.cut_off,
    PACKING: Trial.packing,
}
"""How a query runs again with one stage made perfect, by the name of the stage."""


def among(chunks: Sequence[Chunk]) -> Callable[[Unit], Sequence[Chunk]]:
    """Of some chunks those of a unit's document."""
    return lambda unit: [chunk for chunk in chunks if chunk.document.id == unit.document]


def first(chunks: Sequence[Chunk], hits: Sequence[Hit]) -> list[Hit]:
    """The hits with these chunks before them, as good as the best."""
    best, homes = hits[0].score if hits else 0.0, {chunk.document.id for chunk in chunks}
    rest = (hit for hit in hits if hit.chunk.document.id not in homes or hit.chunk not in chunks)
    return [*(Hit(chunk, best) for chunk in chunks), *rest]
