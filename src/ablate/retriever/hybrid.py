"""Several retrievers fused by rank."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

from ablate.errors import ConfigError
from ablate.retriever.search import Mask, Search, together
from ablate.types import Candidates, Chunk, Hit, Query, ranking


@dataclass(frozen=True)
class Hybrid:
    """Several retrievers, fused by reciprocal rank: a chunk scores the sum of 1 / (rrf_k + rank) over their lists.

    Ranks count from 1, each list goes to depth, and one that lacks the chunk adds nothing (Cormack et al., 2009).
    `parts` maps a name, under which its list is reported, to a retriever.

    Raises:
        ConfigError: there are no parts, or `rrf_k` is negative.

    """

    relative: ClassVar[bool] = True  # a score orders the hits of one query and says nothing across queries

    parts: dict[str, Any]
    rrf_k: int

    def __post_init__(self) -> None:
        some(self.parts)
        if self.rrf_k < 0:
            raise ConfigError(f"rrf_k: found {self.rrf_k}, expected at least 0; 60 is usual")

    def index(self, chunks: Sequence[Chunk], embedder: Any) -> Search:
        parts = {name: part.index(chunks, embedder) for name, part in self.parts.items()}
        return HybridSearch(parts, partial(fuse, rrf_k=self.rrf_k))


@dataclass(frozen=True, eq=False, repr=False)
class HybridSearch:
    """The search of several parts, whose lists, by name, `fusion` makes one of."""

    parts: Mapping[str, Search]
    fusion: Callable[[Mapping[str, Sequence[Hit]]], list[Hit]]

    # A part of a user's own may be a plain function, which says nothing of silence or exactness.
    @property
    def silent_chunks(self) -> int:
        return max(getattr(part, "silent_chunks", 0) for part in self.parts.values())

    def silent(self, query: Query) -> bool:
        return any(part.silent(query) for part in self.parts.values() if hasattr(part, "silent"))

    @property
    def exact(self) -> HybridSearch | None:
        exact = {name: getattr(part, "exact", None) for name, part in self.parts.items()}
        parts = {name: exact[name] or part for name, part in self.parts.items()}
        return HybridSearch(parts, self.fusion) if any(exact.values()) else None

    def __call__(self, query: Query, allowed: Mask, depth: int) -> Candidates:
        return self.batch([query], allowed, depth)[0]

    def batch(self, queries: Sequence[Query], allowed: Mask, depth: int) -> list[Candidates]:
        """The candidates of each query, all of which may see the same chunks."""
        found = {name: together(part, queries, allowed, depth) for name, part in self.parts.items()}
        lists = [{name: found[name][number].fused for name in found} for number in range(len(queries))]
        return [Candidates(sources, self.fusion(sources)[:depth]) for sources in lists]


def some(parts: Mapping[str, Any]) -> None:
    """Refuse a fusion of nothing."""
    if not parts:
        raise ConfigError("parts: found none, expected at least one retriever; add one under a name of your choice")


def fuse(lists: Mapping[str, Sequence[Hit]], rrf_k: int) -> list[Hit]:
    """Reciprocal rank fusion of rankings, by name; their order is of no matter."""
    # In whole parts of one denominator: sums that are equal stay equal, and are settled by lot.
    one = math.lcm(*range(rrf_k + 1, rrf_k + 1 + max(map(len, lists.values()), default=0)))
    shares: dict[Chunk, int] = {}
    for hits in lists.values():
        for rank, chunk in enumerate(dict.fromkeys(hit.chunk for hit in hits), 1):
            shares[chunk] = shares.get(chunk, 0) + one // (rrf_k + rank)
    return ranking([Hit(chunk, share / one) for chunk, share in shares.items()])
