"""Lexical search of ablate beside rank_bm25 in one process: equal rankings first, then queries per second.

    python scripts/bench_bm25.py [--documents 20000] [--queries 50] [--depth 50] [--folder DIR]

Without a folder the text is synthetic: words drawn by Zipf's law, queries drawn from the documents. Ours is timed from
the text of a query to its hits, rank_bm25 from ready terms to the order of its scores; the sides take turns in rounds.
"""

from __future__ import annotations

import argparse
import itertools
import json
import math
import statistics
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import rank_bm25

sys.path.insert(0, str(Path(__file__).parents[1] / "src"))

from ablate.retriever import Bm25
from ablate.tokens import terms
from ablate.types import Chunk, Document, Hit, Query

K1, B = 1.5, 0.75


class PositiveIdf(rank_bm25.BM25Okapi):  # type: ignore[misc]
    """rank_bm25 with the idf that stays above zero; everything else is its own."""

    def _calc_idf(self, nd: dict[str, int]) -> None:
        for word, n in nd.items():
            self.idf[word] = math.log(1 + (self.corpus_size - n + 0.5) / (n + 0.5))


def zipf(documents: int, queries: int, seed: int = 0) -> tuple[list[str], list[str]]:
    """Texts of about 120 words from a vocabulary of 100,000, and queries of 3 to 12 words of one text each."""
    draw = np.random.default_rng(seed)
    chances = 1 / np.arange(1, 100_001)
    chances /= chances.sum()
    lengths = np.clip(draw.lognormal(np.log(110), 0.5, documents), 10, 1000).astype(int)
    words = [f"w{number}" for number in draw.choice(100_000, lengths.sum(), p=chances)]
    ends = np.cumsum(lengths)
    texts = [words[end - length : end] for end, length in zip(ends.tolist(), lengths.tolist(), strict=True)]
    asked = [texts[number] for number in draw.integers(0, documents, queries)]
    return [" ".join(text) for text in texts], [" ".join(draw.choice(text, draw.integers(3, 13))) for text in asked]


def read(path: Path, limit: int) -> list[str]:
    with path.open(encoding="utf-8") as lines:
        return [json.loads(line)["text"] for line in itertools.islice(lines, limit)]


def reference(model: PositiveIdf, chunks: list[Chunk], asked: list[str], depth: int) -> Iterator[Hit]:
    """rank_bm25's positive scores in the one total order."""
    scores = model.get_scores(asked).tolist()
    order = sorted((-score, chunk.lot, row) for row, (score, chunk) in enumerate(zip(scores, chunks, strict=True)))
    return (Hit(chunks[row], -score) for score, _, row in order[:depth] if score < 0)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--documents", type=int, default=20_000)
    parser.add_argument("--queries", type=int, default=50)
    parser.add_argument("--depth", type=int, default=50)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--folder", type=Path, help="holds corpus.jsonl and queries.jsonl")
    options = parser.parse_args()
    texts, asked = (
        (
            read(options.folder / "corpus.jsonl", options.documents),
            read(options.folder / "queries.jsonl", options.queries),
        )
        if options.folder
        else zipf(options.documents, options.queries)
    )
    chunks = [Chunk(Document(str(number), text), 0, len(text)) for number, text in enumerate(texts)]
    queries = [Query(str(number), text) for number, text in enumerate(asked)]
    started = time.perf_counter()
    ours = Bm25(K1, B, []).index(chunks, None)
    middle = time.perf_counter()
    theirs = PositiveIdf([terms(text) for text in texts], k1=K1, b=B)
    print(f"{len(texts)} documents, {len(queries)} queries, depth {options.depth}")
    print(f"index: ours {middle - started:.1f} s, rank_bm25 {time.perf_counter() - middle:.1f} s")

    allowed = np.ones(len(chunks), dtype=np.bool_)
    for query in queries:
        expected = list(reference(theirs, chunks, terms(query.text), options.depth))
        if ours(query, allowed, options.depth).fused != expected:
            sys.exit(f"rankings differ on query {query.text!r}")
    print("rankings and scores: equal on every query")

    ready = [terms(query.text) for query in queries]
    ratios = []
    for _ in range(options.rounds):
        started = time.perf_counter()
        for query in queries:
            ours(query, allowed, options.depth)
        middle = time.perf_counter()
        for asked_terms in ready:
            np.argsort(theirs.get_scores(asked_terms))[::-1][: options.depth]
        ended = time.perf_counter()
        ratios.append((ended - middle) / (middle - started))
        print(
            f"queries/s: ours {len(queries) / (middle - started):.0f}, "
            f"rank_bm25 {len(queries) / (ended - middle):.1f}, ratio {ratios[-1]:.0f}"
        )
    print(f"median ratio: {statistics.median(ratios):.0f}")


if __name__ == "__main__":
    main()
