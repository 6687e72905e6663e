"""Exact search among a part of the vectors beside exact search among all: equal answers first, then times.

    python scripts/bench_filter.py [--vectors 100000] [--dimension 384] [--depth 50] [--queries 1 160 1000]

Vectors and queries are drawn at random. Queries that may see the same vectors are searched for together, as a run does;
first the answers to some of them are compared with those to each alone, and with sums over every allowed vector in
double precision. Then the sides take turns in rounds, and the median of a round's ratios is shown: to the same search
with everything allowed, and to a plain one of FAISS, which looks at all vectors and returns bare positions.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import faiss
import numpy as np
import numpy.typing as npt

sys.path.insert(0, str(Path(__file__).parents[1] / "src"))

from ablate.retriever import Dense
from ablate.retriever.dense import DenseSearch
from ablate.types import Candidates, Chunk, Document, Hit, Query, ranking

SHARES = (0.001, 0.01, 0.1, 0.5, 0.9, 0.99, 1.0)
CHECKED = 5
"""Queries whose answers are compared: the reference looks at every vector."""

Mask = npt.NDArray[np.bool_]


class Drawn:
    """An embedder whose vectors lie in a table: the reading of a chunk, or the text of a query, is its row."""

    def __init__(self, vectors: npt.NDArray[np.float32]) -> None:
        self.vectors = vectors

    def documents(self, texts: Sequence[str]) -> npt.NDArray[np.float32]:
        return self.vectors[[int(text) for text in texts]]

    queries = documents


def drawn(count: int, dimension: int, seed: int = 0) -> npt.NDArray[np.float32]:
    vectors = np.random.default_rng(seed).standard_normal((count, dimension), dtype=np.float32)
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def reference(search: DenseSearch, query: Query, allowed: Mask, depth: int) -> list[Hit]:
    """Every allowed vector's cosine in double precision, in the one total order."""
    rows = np.flatnonzero(allowed)
    scores = search.scores(rows, search.asked([query])[0]).tolist()
    best = sorted(zip(scores, rows.tolist(), strict=True), reverse=True)[: 2 * depth]
    return ranking([Hit(search.order.handed[row], score) for score, row in best])[:depth]


def check(search: DenseSearch, queries: list[Query], allowed: Mask, depth: int) -> None:
    together: list[Candidates] = search.batch(queries, allowed, depth)
    for query, answer in list(zip(queries, together, strict=True))[:CHECKED]:
        if answer != search(query, allowed, depth):
            sys.exit(f"query {query.id} finds something else in a batch of {len(queries)}")
        if answer.fused != reference(search, query, allowed, depth):
            sys.exit(f"query {query.id} does not find the best of the {allowed.sum()} allowed vectors")


def seconds(work: Callable[[], object], times: int) -> float:
    started = time.perf_counter()
    for _ in range(times):
        work()
    return (time.perf_counter() - started) / times


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--vectors", type=int, default=100_000)
    parser.add_argument("--dimension", type=int, default=384)
    parser.add_argument("--depth", type=int, default=50)
    parser.add_argument("--queries", type=int, nargs="+", default=[1, 160, 1000])
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    count, depth = options.vectors, options.depth
    names = [str(number) for number in range(count + max(options.queries))]
    chunks = [Chunk(Document(name, name), 0, len(name)) for name in names[:count]]
    search = Dense().index(chunks, Drawn(drawn(len(names), options.dimension)))
    everything, worst = np.ones(count, dtype=np.bool_), 0.0
    print(f"{count} vectors of {options.dimension} dimensions, depth {depth}, {faiss.omp_get_max_threads()} threads")
    for many in options.queries:
        queries = [Query(name, name) for name in names[count : count + many]]
        for share in SHARES:
            allowed = np.random.default_rng(1).random(count) < share
            check(search, queries, allowed, depth)
            sides = (
                partial(search.batch, queries, allowed, depth),
                partial(search.batch, queries, everything, depth),
                partial(search.index.search, search.asked(queries), depth),
            )
            times = [[seconds(side, max(1, 30 // many)) for side in sides] for _ in range(options.rounds)]
            ratio, plain = (statistics.median(row[0] / row[other] for row in times) for other in (1, 2))
            worst = max(worst, ratio)
            print(
                f"{many:5} queries, {share:6.1%} allowed: {1000 * statistics.median(row[0] for row in times):7.1f} ms, "
                f"{ratio:4.2f} times unfiltered, {plain:4.2f} times plain FAISS"
            )
    print(f"answers: equal everywhere; at worst {worst:.2f} times unfiltered")


if __name__ == "__main__":
    main()
