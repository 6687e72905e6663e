"""Chunks in, a search out; a query in, its candidates out: the list of each source to depth, and the fused one."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from ablate.errors import ConfigError
from ablate.tokens import analyser
from ablate.types import Candidates, Chunk, Hit, Query, ranking

Mask = npt.NDArray[np.bool_]
Rows = npt.NDArray[np.intp]
Scores = npt.NDArray[np.float64]
Vectors = npt.NDArray[np.float32]


class Search(Protocol):
    """An index that answers queries. It is exact, and its answer to one query depends on no other query."""

    def __call__(self, query: Query, allowed: Mask, depth: int) -> Candidates:
        """The best `depth` of the allowed chunks, in the one total order; fewer where nothing speaks for more.

        `allowed` is a mask over the indexed chunks, `(chunks,)`.
        """

    @property
    def silent_chunks(self) -> int:
        """The number of chunks that have a text but can never be found, because nothing in them is a term."""

    def silent(self, query: Query) -> bool:
        """True where the query has a text but can find nothing, because nothing in it is a term."""


@dataclass(frozen=True)
class Dense:
    """Exact search by the cosine of vectors.

    FAISS finds candidates in single precision; their scores are computed again in double precision from the stored
    vectors, so that a score depends on query and chunk alone.
    """

    def index(self, chunks: Sequence[Chunk], embedder: Any) -> Search:
        """The search over these chunks, whose readings and queries `embedder` turns into vectors of length 1.

        Raises:
            ConfigError: the embedder gives vectors of another number, dimension or length.

        """
        import faiss

        vectors = _vectors(embedder.documents([chunk.reading for chunk in chunks]), len(chunks), embedder)
        index = faiss.IndexFlatIP(vectors.shape[1])
        index.add(vectors)
        return _DenseSearch(_Order.of(chunks), embedder, index)


@dataclass(frozen=True)
class Bm25:
    """Lexical search, BM25 with an idf above zero: log(1 + (N - n + 0.5) / (n + 0.5)).

    A term of frequency f in a chunk of length l among chunks of mean length m gives
    idf f (k1 + 1) / (f + k1 (1 - b + b l / m)) as often as the query repeats it (Trotman et al., 2014; the idf is
    Lucene's). Lengths are in terms of `ablate.tokens.terms`; `languages` are its stemmers.

    Raises:
        ConfigError: `k1` is negative, `b` is not in [0, 1], or `languages` are unknown or share a script.

    """

    k1: float
    b: float
    languages: list[str]

    def __post_init__(self) -> None:
        if not 0 <= self.k1 < float("inf"):
            raise ConfigError(f"k1: found {self.k1}, expected a number of at least 0; values of 0.9 to 2 are usual")
        if not 0 <= self.b <= 1:
            raise ConfigError(f"b: found {self.b}, expected a number from 0 to 1; 0.75 is usual")
        analyser(tuple(self.languages))

    def index(self, chunks: Sequence[Chunk], embedder: Any) -> Search:
        """The search over these chunks; `embedder` is not asked."""
        terms = analyser(tuple(self.languages))
        vocabulary: dict[str, int] = {}
        texts = [[vocabulary.setdefault(term, len(vocabulary)) for term in terms(chunk.reading)] for chunk in chunks]
        silent = sum(not text and bool(chunk.text.strip()) for text, chunk in zip(texts, chunks, strict=True))
        return _Bm25Search(_Order.of(chunks), terms, vocabulary, *_weights(texts, vocabulary, self.k1, self.b), silent)


@dataclass(frozen=True)
class Hybrid:
    """Several retrievers, fused by reciprocal rank: a chunk scores the sum of 1 / (rrf_k + rank) over their lists.

    Ranks count from 1, each list goes to depth, and one that lacks the chunk adds nothing (Cormack et al., 2009).
    `parts` maps a name, under which its list is reported, to a retriever.

    Raises:
        ConfigError: there are no parts, or `rrf_k` is negative.

    """

    parts: dict[str, Any]
    rrf_k: int

    def __post_init__(self) -> None:
        if not self.parts:
            raise ConfigError("parts: found none, expected at least one retriever; add one under a name of your choice")
        if self.rrf_k < 0:
            raise ConfigError(f"rrf_k: found {self.rrf_k}, expected at least 0; 60 is usual")

    def index(self, chunks: Sequence[Chunk], embedder: Any) -> Search:
        return _HybridSearch({name: part.index(chunks, embedder) for name, part in self.parts.items()}, self.rrf_k)


@dataclass(frozen=True, eq=False, repr=False)
class _Order:
    """The one total order over indexed chunks: score descending, equal scores by lot."""

    chunks: Sequence[Chunk]
    lots: npt.NDArray[np.uint64]

    @classmethod
    def of(cls, chunks: Sequence[Chunk]) -> _Order:
        return cls(chunks, np.array([chunk.lot for chunk in chunks], dtype=np.uint64))

    def best(self, rows: Rows, scores: Scores, depth: int) -> list[Hit]:
        """The first `depth` of the chunks in `rows`, `(n,)`, by their `scores`, `(n,)`."""
        if len(rows) > depth:
            cut = np.partition(scores, len(scores) - depth)[len(scores) - depth]
            kept = np.flatnonzero(scores >= cut)
            rows, scores = rows[kept], scores[kept]
        order = np.lexsort((self.lots[rows], -scores))[:depth]
        ranked = zip(rows[order].tolist(), scores[order].tolist(), strict=True)
        return [Hit(self.chunks[row], score) for row, score in ranked]


@dataclass(frozen=True, eq=False, repr=False)
class _DenseSearch:
    order: _Order
    embedder: Any
    index: Any

    silent_chunks = 0

    def silent(self, query: Query) -> bool:
        return False

    def __call__(self, query: Query, allowed: Mask, depth: int) -> Candidates:
        hits = self.nearest(query, allowed, depth) if allowed.any() else []
        return Candidates({"dense": hits}, hits)

    def nearest(self, query: Query, allowed: Mask, depth: int) -> list[Hit]:
        import faiss

        asked = _vectors(self.embedder.queries([query.text]), 1, self.embedder)
        if asked.shape[1] != self.index.d:
            raise ConfigError(
                f"dense: query vectors of {asked.shape[1]} dimensions against chunk vectors of {self.index.d}, both "
                f"from {self.embedder!r}, expected equal dimensions; encode both with one model"
            )
        # For one query at a time a selector costs nothing, and copying the allowed vectors would. Its types are C++'s.
        selector = faiss.IDSelectorBitmap(np.packbits(allowed, bitorder="little"))  # type: ignore[call-arg,arg-type]
        within = faiss.SearchParameters(sel=selector)  # type: ignore[call-arg]
        pool = int(allowed.sum())
        # Single precision is off by at most dimension * 2**-24 on vectors of length 1. What FAISS left out cannot reach
        # the cut once its last score is below it by more than that.
        margin = self.index.d * 2.0**-23
        fetched = 2 * depth
        while True:
            similarities, found = self.index.search(asked, min(fetched, pool), params=within)
            rows = found[0][found[0] >= 0]
            hits = self.order.best(rows, self.scores(rows, asked[0]), depth)
            if fetched >= pool or similarities[0, -1] + margin < hits[-1].score:
                return hits
            fetched *= 4

    def scores(self, rows: Rows, asked: Vectors) -> Scores:
        """Cosines, `(rows,)`; each row is summed by itself, in one order, whatever its neighbours."""
        products = self.index.reconstruct_batch(rows).astype(np.float64) * asked.astype(np.float64)
        cosines: Scores = np.clip(np.add.reduce(products, axis=1), -1.0, 1.0)
        return cosines


def _vectors(given: Any, expected: int, embedder: Any) -> Vectors:
    """The embedder's vectors, `(expected, dimension)`, found to be of length 1."""
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


@dataclass(frozen=True, eq=False, repr=False)
class _Bm25Search:
    order: _Order
    terms: Callable[[str], list[str]]
    vocabulary: Mapping[str, int]
    weights: Scores
    rows: Rows
    bounds: list[int]
    silent_chunks: int

    def silent(self, query: Query) -> bool:
        return bool(query.text.strip()) and not self.terms(query.text)

    def __call__(self, query: Query, allowed: Mask, depth: int) -> Candidates:
        scores = self.scores(query.text)
        rows = np.flatnonzero((scores > 0) & allowed)
        hits = self.order.best(rows, scores[rows], depth)
        return Candidates({"bm25": hits}, hits)

    def scores(self, text: str) -> Scores:
        """The score of every chunk, `(chunks,)`; 0 where no term is shared."""
        scores = np.zeros(len(self.order.chunks))
        for term in self.terms(text):
            number = self.vocabulary.get(term)
            if number is not None:
                posting = slice(self.bounds[number], self.bounds[number + 1])
                np.add.at(scores, self.rows[posting], self.weights[posting])
        return scores


def _weights(texts: list[list[int]], vocabulary: dict[str, int], k1: float, b: float) -> tuple[Scores, Rows, list[int]]:
    """What each term gives to each chunk that holds it: weights, chunks, and where each term's begin and end."""
    if not vocabulary:
        return np.zeros(0), np.zeros(0, dtype=np.intp), [0]
    import bm25s

    logging.getLogger("bm25s").setLevel(logging.INFO)  # importing it sets DEBUG, which every log would then show
    model = bm25s.BM25(
        k1=k1, b=b, method="atire", idf_method="lucene", dtype="float64", int_dtype="int64",
        backend="numpy", csc_backend="numpy",
    )  # fmt: skip
    model.index((texts, vocabulary), create_empty_token=False, show_progress=False)
    return model.scores["data"], model.scores["indices"], model.scores["indptr"].tolist()


@dataclass(frozen=True, eq=False, repr=False)
class _HybridSearch:
    parts: Mapping[str, Search]
    rrf_k: int

    # A part of a user's own may be a plain function, which says nothing of silence.
    @property
    def silent_chunks(self) -> int:
        return max(getattr(part, "silent_chunks", 0) for part in self.parts.values())

    def silent(self, query: Query) -> bool:
        return any(part.silent(query) for part in self.parts.values() if hasattr(part, "silent"))

    def __call__(self, query: Query, allowed: Mask, depth: int) -> Candidates:
        sources = {name: part(query, allowed, depth).fused for name, part in self.parts.items()}
        return Candidates(sources, fuse(list(sources.values()), self.rrf_k)[:depth])


def fuse(lists: Sequence[Sequence[Hit]], rrf_k: int) -> list[Hit]:
    """Reciprocal rank fusion of rankings, the order of `lists` being of no matter."""
    shares: dict[Chunk, Fraction] = {}  # exact: sums that are equal stay equal, and are settled by lot
    for hits in lists:
        for rank, chunk in enumerate(dict.fromkeys(hit.chunk for hit in hits), 1):
            shares[chunk] = shares.get(chunk, Fraction(0)) + Fraction(1, rrf_k + rank)
    return ranking([Hit(chunk, float(share)) for chunk, share in shares.items()])
