"""Approximate search in the nearest of many lists."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ablate.errors import ConfigError
from ablate.retriever.approximate import ApproximateSearch, approximate
from ablate.retriever.dense import Vectors
from ablate.types import Chunk

SEED = 1234
"""Draws the vectors that k-means begins with."""

FILLED = 39
"""Vectors a list, on average, below which FAISS warns that centroids mean little."""


@dataclass(frozen=True)
class Ivf:
    """Approximate search by the cosine of vectors, in inverted lists (Sivic and Zisserman, 2003).

    Every vector is in the list of its nearest centroid, of which k-means finds `nlist`, or fewer where lists would hold
    fewer than 39 vectors; a search reads the `nprobe` lists whose centroids are nearest to the query. The vectors are
    kept twice.

    Raises:
        ConfigError: `nlist` is below 1, or `nprobe` not from 1 to `nlist`.

    """

    nlist: int
    nprobe: int

    def __post_init__(self) -> None:
        if self.nlist < 1:
            raise ConfigError(
                f"nlist: found {self.nlist}, expected at least 1; the square root of the number of chunks is usual"
            )
        if not 1 <= self.nprobe <= self.nlist:
            raise ConfigError(
                f"nprobe: found {self.nprobe} with nlist {self.nlist}, expected 1 <= nprobe <= nlist; as many as nlist "
                "read every list, which is exact"
            )

    def index(self, chunks: Sequence[Chunk], embedder: Any) -> ApproximateSearch:
        """The search over these chunks, whose readings and queries `embedder` turns into vectors of length 1."""
        return approximate("ivf", chunks, embedder, self.built, self.parameters)

    def built(self, vectors: Vectors) -> Any:
        import faiss

        dimension, lists = vectors.shape[1], max(1, min(self.nlist, len(vectors) // FILLED))
        centroids = faiss.IndexFlatIP(dimension)
        index = faiss.IndexIVFFlat(centroids, dimension, lists, faiss.METRIC_INNER_PRODUCT)
        index.cp.min_points_per_centroid = 1  # for a single list; it would print a warning of its own
        index.cp.seed = SEED
        index.train(vectors)
        index.add(vectors)
        return index

    def parameters(self, allowed: Any) -> Any:
        import faiss

        return faiss.SearchParametersIVF(sel=allowed, nprobe=self.nprobe)  # type: ignore[call-arg]  # C++'s
