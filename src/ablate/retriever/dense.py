"""Exact search by the cosine of vectors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ablate.errors import ConfigError
from ablate.retriever.order import Order, Rows, Scores
from ablate.retriever.search import Mask
from ablate.types import Candidates, Chunk, Hit, Query

Vectors = npt.NDArray[np.float32]

FETCHED = 2**24
"""Candidates that are held in memory at once, of however many queries: of vectors that are all alike there are many."""


@dataclass(frozen=True)
class Dense:
    """Exact search by the cosine of vectors.

    FAISS finds candidates in single precision; their scores are computed again in double precision from the stored
    vectors, so that a score depends on query and chunk alone.
    """

    def index(self, chunks: Sequence[Chunk], embedder: Any) -> DenseSearch:
        """The search over these chunks, whose readings and queries `embedder` turns into vectors of length 1.

        Raises:
            ConfigError: the embedder gives vectors of another number, dimension or length.

        """
        import faiss

        vectors = encoded(embedder.documents([chunk.reading for chunk in chunks]), len(chunks), embedder)
        index = faiss.IndexFlatIP(vectors.shape[1])
        index.add(vectors)
        return DenseSearch(Order.of(chunks), embedder, index)


@dataclass(frozen=True, eq=False, repr=False)
class DenseSearch:
    """The search over vectors of length 1, each the one of the chunk in its place."""

    order: Order
    embedder: Any
    index: Any

    silent_chunks = 0

    def silent(self, query: Query) -> bool:
        return False

    @property
    def stored(self) -> Vectors:
        """The vectors as they lie in the index, `(chunks, dimension)`; not a copy."""
        import faiss

        if not self.index.ntotal:
            return np.zeros((0, self.index.d), np.float32)
        flat: Vectors = faiss.rev_swig_ptr(self.index.get_xb(), self.index.ntotal * self.index.d)
        return flat.reshape(self.index.ntotal, self.index.d)

    def __call__(self, query: Query, allowed: Mask, depth: int) -> Candidates:
        return self.batch([query], allowed, depth)[0]

    def batch(self, queries: Sequence[Query], allowed: Mask, depth: int) -> list[Candidates]:
        """The candidates of each query, all of which may see the same chunks; to the last bit those of one alone."""
        found = self.best(self.asked(queries), allowed, depth) if queries and allowed.any() else [[] for _ in queries]
        return [Candidates({"dense": hits}, hits) for hits in found]

    def best(self, asked: Vectors, allowed: Mask, depth: int) -> list[list[Hit]]:
        """The first `depth` hits of each query of `asked`, `(queries, dimension)`, among the allowed chunks."""
        pool = int(allowed.sum())
        # Single precision is off by at most dimension * 2**-24 on vectors of length 1. What FAISS left out cannot reach
        # the cut once its last score is below it by more than that.
        margin = self.index.d * 2.0**-23
        hits: list[list[Hit]] = [[] for _ in asked]
        fetched = 2 * depth * self.order.spread
        unsettled = list(range(len(asked)))
        while unsettled:
            fetched, left = min(fetched, pool), []
            step = max(1, FETCHED // fetched)
            for part in (unsettled[start : start + step] for start in range(0, len(unsettled), step)):
                similarities, found = self.nearest(asked[part], allowed, fetched)
                for number, rows, last in zip(part, found, similarities[:, -1].tolist(), strict=True):
                    hits[number] = self.order.best(rows, self.scores(rows, asked[number]), depth)
                    settled = len(hits[number]) == depth and last + margin < hits[number][-1].score
                    if fetched < pool and not settled:
                        left.append(number)
            unsettled, fetched = left, 4 * fetched
        return hits

    def nearest(self, asked: Vectors, allowed: Mask, count: int) -> tuple[Vectors, Rows]:
        """The `count` allowed chunks that FAISS finds nearest to each query, and their similarities, best first."""
        import faiss

        # Few queries are compared vector by vector, and then a selector costs nothing. Many are multiplied as matrices,
        # but not with a selector: they search a copy of what is allowed, which costs little beside that.
        if asked.size < faiss.cvar.distance_compute_blas_threshold:
            return self.index.search(asked, count, params=faiss.SearchParameters(sel=selector(allowed)))  # type: ignore[no-any-return,call-arg]
        if allowed.all():
            return self.index.search(asked, count)  # type: ignore[no-any-return]
        rows = np.flatnonzero(allowed)
        similarities, places = faiss.knn(asked, self.stored[rows], count, faiss.METRIC_INNER_PRODUCT)
        return similarities, rows[places]

    def asked(self, queries: Sequence[Query]) -> Vectors:
        """The vectors of queries, `(queries, dimension)`.

        Raises:
            ConfigError: they are of other dimensions than those of the chunks, or not of length 1.

        """
        asked = encoded(self.embedder.queries([query.text for query in queries]), len(queries), self.embedder)
        if asked.shape[1] != self.index.d:
            raise ConfigError(
                f"dense: query vectors of {asked.shape[1]} dimensions against chunk vectors of {self.index.d}, both "
                f"from {self.embedder!r}, expected equal dimensions; encode both with one model"
            )
        return asked

    def scores(self, rows: Rows, asked: Vectors) -> Scores:
        """Cosines, `(rows,)`; each row is summed by itself, in one order, whatever its neighbours."""
        products = self.stored[rows].astype(np.float64) * asked.astype(np.float64)
        cosines: Scores = np.clip(np.add.reduce(products, axis=1), -1.0, 1.0)
        return cosines


def selector(allowed: Mask) -> Any:
    """The mask as FAISS takes it."""
    import faiss

    return faiss.IDSelectorBitmap(np.packbits(allowed, bitorder="little"))  # type: ignore[call-arg,arg-type]  # C++'s


def encoded(given: Any, expected: int, embedder: Any) -> Vectors:
    """The embedder's vectors, `(expected, dimension)`, found to be of length 1.

    Raises:
        ConfigError: they are of another number or length.

    """
    vectors = np.ascontiguousarray(given, dtype=np.float32)
    if not expected:
        return vectors.reshape(0, 0)
    if vectors.ndim != 2 or len(vectors) != expected:
        raise ConfigError(
            f"dense: vectors of shape {vectors.shape} for {expected} texts from {embedder!r}, expected one row a text; "
            "correct the embedder"
        )
    for start in range(0, expected, 4096):
        block = vectors[start : start + 4096].astype(np.float64)
        lengths = np.sqrt(np.einsum("ij,ij->i", block, block))
        wrong = np.flatnonzero(~(np.abs(lengths - 1) < 1e-5))
        if len(wrong):
            raise ConfigError(
                f"dense: vector {start + wrong[0]} of {embedder!r} has length {lengths[wrong[0]]:.6g}, expected 1 "
                "(else the inner product is no cosine); normalise in the embedder"
            )
    return vectors
