"""What approximate indexes have in common: an index of FAISS and the exact search beside it in, a search out."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from ablate.retriever.dense import Dense, DenseSearch, Vectors, selector
from ablate.retriever.order import Rows
from ablate.retriever.search import Mask
from ablate.types import Candidates, Chunk, Hit, Query

Build = Callable[[Vectors], Any]
"""From vectors of length 1, `(chunks, dimension)`, to an index of them by their inner product."""

Parameters = Callable[[Any], Any]
"""From a selector of allowed positions to how an index is searched, both as FAISS has them."""


@dataclass(frozen=True, eq=False, repr=False)
class ApproximateSearch:
    """The search by an index that looks at some of the vectors only; `exact` looks at all of them.

    What is found has the scores of the exact search; what the index does not come across is missing, so that there may
    be fewer hits than allowed chunks. The index has the chunks in the order of `rows`; `source` names the list.
    """

    source: str
    exact: DenseSearch
    index: Any
    rows: Rows
    parameters: Parameters

    silent_chunks = 0

    def silent(self, query: Query) -> bool:
        return False

    def __call__(self, query: Query, allowed: Mask, depth: int) -> Candidates:
        hits = self.nearest(query, allowed, depth) if allowed.any() else []
        return Candidates({self.source: hits}, hits)

    def nearest(self, query: Query, allowed: Mask, depth: int) -> list[Hit]:
        asked = self.exact.asked([query])
        parameters, pool = self.parameters(selector(allowed[self.rows])), int(allowed.sum())
        fetched = depth * self.exact.order.spread
        while True:
            fetched = min(fetched, pool)
            with one_thread():
                found = self.index.search(asked, fetched, params=parameters)[1][0]
            rows = self.rows[found[found >= 0]]
            hits = self.exact.order.best(rows, self.exact.scores(rows, asked[0]), depth)
            if len(hits) == depth or len(rows) < fetched or fetched == pool:
                return hits
            fetched *= 4


def approximate(
    source: str, chunks: Sequence[Chunk], embedder: Any, build: Build, parameters: Parameters
) -> ApproximateSearch:
    """The search over these chunks by the index that `build` makes of their vectors.

    Built in the order of lots on one thread: neither a file's order nor a machine's processors shape the index.
    """
    exact = Dense().index(chunks, embedder)
    rows = np.argsort(np.array([chunk.lot for chunk in chunks], dtype=np.uint64), kind="stable")
    with one_thread():
        index = build(exact.stored[rows]) if chunks else None
    return ApproximateSearch(source, exact, index, rows, parameters)


@contextmanager
def one_thread() -> Iterator[None]:
    """FAISS on one thread: several insert into one graph, or add up one mean, in an order of their own."""
    import faiss

    before = faiss.omp_get_max_threads()
    faiss.omp_set_num_threads(1)
    try:
        yield
    finally:
        faiss.omp_set_num_threads(before)
