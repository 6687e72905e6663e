"""One query's trace and the evidence it needs go in, the stage at which each fact was lost comes out."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from ablate.ledger.corpus import Corpus
from ablate.ledger.stages import (
    ACCESS,
    CANDIDATES,
    CHUNKING,
    CUT_OFF,
    DELIVERED,
    DENIED,
    FILTER,
    FUSION,
    INGESTION,
    PACKING,
    RERANK,
)
from ablate.pipeline import unlabelled
from ablate.score.evidence import NEVER, Finder, finder, lay_out, unique, units
from ablate.types import Chunk, Fact, Hit, Query, Trace, Truth, Unit

Holds = Callable[[Unit], bool]
"""Whether the output of a stage supports a unit."""


class End(NamedTuple):
    """Where a fact came to: the stage that lost it, and those of its units that were left before it."""

    stage: str
    units: Sequence[Unit]


@dataclass(frozen=True)
class Course:
    """How far the evidence of one query came; `barred` are those of its documents that its principals may not read."""

    corpus: Corpus
    trace: Trace
    truth: Truth
    barred: frozenset[str]

    @cached_property
    def query(self) -> Query:
        return unlabelled(self.trace.query)

    @cached_property
    def ends(self) -> Mapping[Fact, End]:
        """Where every fact came to, `candidates` standing for `truncation` too."""
        facts = dict.fromkeys(fact for alternative in self.truth.alternatives for fact in alternative)
        delivered = self.finder(self.trace.context.passages)
        return {fact: End(DELIVERED, fact) if supports(delivered, fact) else self.lost(fact) for fact in facts}

    def lost(self, fact: Fact) -> End:
        """The first stage whose output supports none of a fact's units that all before it supported."""
        units: Sequence[Unit] = fact
        for stage, holds in self.checks:
            held = [unit for unit in units if holds(unit)]
            if not held:
                return End(stage, units)
            units = held
        k = self.corpus.ready.k
        if self.delivers(units, leading(self.trace.ranked, k)):
            return End(PACKING, units)
        return End(RERANK if self.delivers(units, leading(self.trace.permitted, k)) else CUT_OFF, units)

    @cached_property
    def checks(self) -> Sequence[tuple[str, Holds]]:
        """The stages up to what the reranker gets, in the order of the line, each with what its output supports.

        Access stands twice: it takes documents away before the search, and may strike out hits after it.
        """
        return (
            (DENIED, lambda unit: unit.document not in self.barred),
            (INGESTION, self.corpus.ingested),
            (CHUNKING, self.corpus.chunked),
            (ACCESS, self.readable),
            (FILTER, self.wanted),
            (CANDIDATES, lambda unit: self.listed(unit).rank < NEVER),
            (FUSION, lambda unit: self.fused(unit).rank < NEVER),
            (ACCESS, lambda unit: self.permitted(unit).rank < NEVER),
        )

    def delivers(self, fact: Sequence[Unit], passages: Sequence[Chunk]) -> bool:
        """Whether some chunks, all of them read, support one of these units."""
        return supports(self.finder(passages), fact)

    def readable(self, unit: Unit) -> bool:
        """Whether the access component lets the asker have the document."""
        access, place = self.corpus.ready.access, self.corpus.places[unit.document]
        return all(bool(mask(self.query)[place]) for mask in (access.readable, access.indexed, access.allowed))

    def wanted(self, unit: Unit) -> bool:
        """Whether the filter lets the document through."""
        return bool(self.corpus.ready.filter.allowed(self.query)[self.corpus.places[unit.document]])

    def unseen(self, units: Iterable[Unit], sight: Mapping[str, int]) -> bool:
        """Whether the encoder saw none of the letters that are missing in the lists of the search."""
        return all(self.missing(unit) and not self.missing(unit) & sight[unit.document] for unit in units)

    def missing(self, unit: Unit) -> int:
        """The letters of a unit that no list of the search holds, as bits of its document."""
        evidence = lay_out(self.corpus.documents[unit.document], unit, self.corpus.threshold)
        missing = evidence.letters
        for chunk in self.lists:
            if chunk.document.id == unit.document:
                missing &= ~evidence.seen(chunk)
        return missing << evidence.start

    @cached_property
    def lists(self) -> list[Chunk]:
        """Everything that the search lists, under the name of any source or as fused."""
        return [chunk for hits in self.distinct for chunk in self.mine(hits)]

    @cached_property
    def distinct(self) -> list[Sequence[Hit]]:
        """The lists of the search; where there is one source, it is most often the fused list itself."""
        candidates = self.trace.candidates
        return list({id(hits): hits for hits in (*candidates.sources.values(), candidates.fused)}.values())

    def mine(self, hits: Iterable[Hit]) -> list[Chunk]:
        """The chunks of documents that hold evidence."""
        return [hit.chunk for hit in hits if hit.chunk.document.id in self.homes]

    @cached_property
    def homes(self) -> frozenset[str]:
        """The documents that any evidence of the query is in: no other chunk is of interest, or held in memory."""
        return frozenset(unit.document for unit in units([self.truth]))

    def finder(self, chunks: Sequence[Chunk]) -> Finder:
        return finder(chunks, self.corpus.documents, self.barred, self.corpus.threshold)

    @cached_property
    def listed(self) -> Finder:
        return self.finder(self.lists)

    @cached_property
    def fused(self) -> Finder:
        return self.listed if len(self.distinct) == 1 else self.finder(self.mine(self.trace.candidates.fused))

    @cached_property
    def permitted(self) -> Finder:
        same = self.trace.permitted is self.trace.candidates.fused
        return self.fused if same else self.finder(self.mine(self.trace.permitted))


def supports(find: Finder, units: Iterable[Unit]) -> bool:
    """Whether one of these units is found, at whatever rank."""
    return any(find(unit).rank < NEVER for unit in units)


def leading(hits: Sequence[Hit], k: int) -> list[Chunk]:
    """The first k chunks of a ranking, of which each counts once."""
    first = unique(hit.chunk for hit in hits[:k])
    return first if len(first) == min(k, len(hits)) else unique(hit.chunk for hit in hits)[:k]
