"""Several retrievers fused by score."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

from ablate.errors import ConfigError
from ablate.retriever.hybrid import HybridSearch, some
from ablate.retriever.search import Search
from ablate.types import Chunk, Hit, ranking


@dataclass(frozen=True)
class HybridWeighted:
    """Several retrievers, fused by score: a chunk scores the sum of weight x normalised score over their lists.

    Each list goes to depth and is normalised by itself, (score - lowest) / (highest - lowest), so that its first has
    1 and its last 0 (Lee, 1997); a list whose scores are all equal gives 1 to each. One that lacks the chunk adds 0.
    `parts` maps a name, under which its list is reported, to a retriever, and `weights` the same name to its weight.

    Raises:
        ConfigError: there are no parts, or not one weight above 0 for each of them.

    """

    relative: ClassVar[bool] = True  # a score orders the hits of one query and says nothing across queries

    parts: dict[str, Any]
    weights: dict[str, float]

    def __post_init__(self) -> None:
        some(self.parts)
        if self.weights.keys() != self.parts.keys():
            raise ConfigError(
                f"weights: found {', '.join(self.weights) or 'none'}, expected one for each of the parts "
                f"{', '.join(self.parts)}; name the same in both"
            )
        for name, weight in self.weights.items():
            if not 0 < weight < math.inf:
                raise ConfigError(
                    f"weights.{name}: found {weight}, expected a number above 0; leave the part out instead"
                )

    def index(self, chunks: Sequence[Chunk], embedder: Any) -> Search:
        parts = {name: part.index(chunks, embedder) for name, part in self.parts.items()}
        return HybridSearch(parts, partial(weighted, weights=self.weights))


def weighted(lists: Mapping[str, Sequence[Hit]], weights: Mapping[str, float]) -> list[Hit]:
    """The fusion of rankings by their normalised scores; their order is of no matter, because the sum rounds once."""
    shares: dict[Chunk, list[float]] = {}
    for name, hits in lists.items():
        for chunk, share in normalised(hits).items():
            shares.setdefault(chunk, []).append(weights[name] * share)
    return ranking([Hit(chunk, math.fsum(terms)) for chunk, terms in shares.items()])


def normalised(hits: Sequence[Hit]) -> dict[Chunk, float]:
    """The score of each chunk from 0 to 1; of hits on one chunk the best, which is the first."""
    best: dict[Chunk, float] = {}
    for hit in hits:
        best.setdefault(hit.chunk, hit.score)
    low, high = min(best.values(), default=0.0), max(best.values(), default=0.0)
    return {chunk: (score - low) / (high - low) if high > low else 1.0 for chunk, score in best.items()}
