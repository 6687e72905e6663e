"""What tests of retrievers share: texts, one of each option, and the hits of one search as plain values."""

from dataclasses import dataclass

import numpy as np
from fakes import HashEmbedder, NearTies, everything, query
from hypothesis import strategies as st

from ablate.retriever import Bm25, Dense, Hnsw, Hybrid, HybridWeighted, Ivf, RankBm25
from ablate.types import Chunk, Document

BM25 = Bm25(1.5, 0.75, [])
BOTH = {"dense": Dense(), "bm25": BM25}
RETRIEVERS = {
    "dense": Dense(),
    "bm25": BM25,
    "rank_bm25": RankBm25(1.5, 0.75, []),
    "hybrid": Hybrid(BOTH, 60),
    "hybrid_weighted": HybridWeighted(BOTH, {"dense": 0.3, "bm25": 0.7}),
    "hnsw": Hnsw(8, 40, 40),
    "ivf": Ivf(4, 2),
}
WORDS = ["отпуск", "дней", "премия", "rule", "CX-429", "C++", "東京", "ё", "и"]
LINES = st.lists(st.sampled_from(WORDS), max_size=6).map(" ".join)
TEXTS = st.lists(LINES, max_size=40)
EMBEDDERS = st.sampled_from([HashEmbedder(), NearTies(), HashEmbedder(1), NearTies(384)])
HASHED = HashEmbedder()


@dataclass(frozen=True)
class Crowding(HashEmbedder):
    """Every text with the word for holiday is near every other one, and far from all the rest."""

    def vector(self, text):
        drawn = super().vector(text) * 0.1
        drawn[0] += "отпуск" in text
        return drawn / np.linalg.norm(drawn)


def found(retriever, items, text, depth=50, embedder=HASHED, allowed=None):
    search = retriever.index(items, embedder)
    return search(query(text), everything(items) if allowed is None else np.array(allowed, dtype=bool), depth).fused


def named(hits):
    return [hit.chunk.document.id for hit in hits]


def placed(hits):
    return [(hit.chunk.id, hit.score) for hit in hits]


def family(*parents, name="d"):
    """The children of one document, a line each; a parent is given as the texts of its children."""
    document = Document(name, "\n".join(text for texts in parents for text in texts))
    children, start = [], 0
    for texts in parents:
        around = Chunk(document, start, start + len("\n".join(texts)))
        for text in texts:
            children.append(Chunk(document, start, start + len(text), parent=around))
            start += len(text) + 1
    return children
