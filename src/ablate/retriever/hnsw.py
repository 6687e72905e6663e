"""Approximate search in a graph of near neighbours."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ablate.errors import ConfigError
from ablate.retriever.approximate import ApproximateSearch, approximate
from ablate.retriever.dense import Vectors
from ablate.types import Chunk


@dataclass(frozen=True)
class Hnsw:
    """Approximate search by the cosine of vectors, from neighbour to neighbour (Malkov and Yashunin, 2018).

    Each vector is linked with `m` others, twice as many on the lowest level, chosen among the `ef_construction`
    nearest that are known when it is added. A search keeps the `ef_search` best so far, or as many as it is asked
    for, and ends when none of their neighbours is better. The vectors are kept twice.

    Raises:
        ConfigError: `m` is below 2, or one of the others below 1.

    """

    m: int
    ef_construction: int
    ef_search: int

    def __post_init__(self) -> None:
        if self.m < 2:
            raise ConfigError(f"m: found {self.m}, expected at least 2; 16 to 48 are usual")
        for name in ("ef_construction", "ef_search"):
            if getattr(self, name) < 1:
                raise ConfigError(f"{name}: found {getattr(self, name)}, expected at least 1; 40 to 400 are usual")

    def index(self, chunks: Sequence[Chunk], embedder: Any) -> ApproximateSearch:
        """The search over these chunks, whose readings and queries `embedder` turns into vectors of length 1."""
        return approximate("hnsw", chunks, embedder, self.built, self.parameters)

    def built(self, vectors: Vectors) -> Any:
        import faiss

        index = faiss.IndexHNSWFlat(vectors.shape[1], self.m, faiss.METRIC_INNER_PRODUCT)
        index.hnsw.efConstruction = self.ef_construction
        index.add(vectors)
        return index

    def parameters(self, allowed: Any) -> Any:
        import faiss

        return faiss.SearchParametersHNSW(sel=allowed, efSearch=self.ef_search)  # type: ignore[attr-defined]  # C++'s
