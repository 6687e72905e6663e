"""Lexical search by BM25."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ablate.errors import ConfigError
from ablate.retriever.order import Order, Rows, Scores
from ablate.retriever.search import Mask
from ablate.tokens import analyser
from ablate.types import Candidates, Chunk, Query

Vocabulary = dict[str, int]

Terms = list[int]
"""The terms of a text in their order, each by its number in the vocabulary."""

Scorer = Callable[[Terms], Scores]
"""From the terms of a query to the score of every text, `(texts,)`; one that shares none of them has 0 or NaN."""


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

    source = "bm25"

    def index(self, chunks: Sequence[Chunk], embedder: Any) -> LexicalSearch:
        """The search over these chunks; `embedder` is not asked."""
        terms = analyser(tuple(self.languages))
        vocabulary: Vocabulary = {}
        texts = [[vocabulary.setdefault(term, len(vocabulary)) for term in terms(chunk.reading)] for chunk in chunks]
        silent = sum(not text and bool(chunk.text.strip()) for text, chunk in zip(texts, chunks, strict=True))
        return LexicalSearch(self.source, Order.of(chunks), terms, vocabulary, self.scorer(texts, vocabulary), silent)

    def scorer(self, texts: list[Terms], vocabulary: Vocabulary) -> Scorer:
        return Postings(len(texts), *_weights(texts, vocabulary, self.k1, self.b))


@dataclass(frozen=True, eq=False, repr=False)
class LexicalSearch:
    """The search by the terms of a query: what shares none with it is not found. `source` names its list."""

    source: str
    order: Order
    terms: Callable[[str], list[str]]
    vocabulary: Vocabulary
    scorer: Scorer
    silent_chunks: int

    def silent(self, query: Query) -> bool:
        return bool(query.text.strip()) and not self.terms(query.text)

    def __call__(self, query: Query, allowed: Mask, depth: int) -> Candidates:
        scores = self.scorer([self.vocabulary[term] for term in self.terms(query.text) if term in self.vocabulary])
        rows = np.flatnonzero((scores > 0) & allowed)
        hits = self.order.best(rows, scores[rows], depth)
        return Candidates({self.source: hits}, hits)


@dataclass(frozen=True, eq=False, repr=False)
class Postings:
    """What each term gives to each text that holds it: `weights` and `rows`, and in `bounds` where each term begins."""

    texts: int
    weights: Scores
    rows: Rows
    bounds: list[int]

    def __call__(self, asked: Terms) -> Scores:
        scores = np.zeros(self.texts)
        for term in asked:
            posting = slice(self.bounds[term], self.bounds[term + 1])
            np.add.at(scores, self.rows[posting], self.weights[posting])
        return scores


def _weights(texts: list[Terms], vocabulary: Vocabulary, k1: float, b: float) -> tuple[Scores, Rows, list[int]]:
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
