"""Maximal marginal relevance: chunks that stand high in the ranking and say what those before them do not."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from ablate.errors import ConfigError
from ablate.tokens import Tokens, analyser
from ablate.types import Context, Hit, Query

RANKS = 60
"""How slowly relevance falls with the rank: the constant of reciprocal rank fusion (Cormack et al., 2009)."""


@dataclass(frozen=True)
class Mmr:
    """Picks k of the ranked candidates one by one, in the order in which they are read (Carbonell and Goldstein, 1998).

    The next is the one with the highest `balance` x relevance - (1 - `balance`) x the similarity to the most similar
    one picked before; of equals, the one that ranks higher. Similarity is the cosine of the counts of terms
    (`ablate.tokens.terms`, stemmed by `languages`), from 0 to 1. The scores of a ranking may be of several scales, for
    a reranker scores only its head: relevance is therefore of the rank alone, 61 / (60 + rank), 1 for the first. With
    a balance of 1 the first k are picked.

    Raises:
        ConfigError: `balance` is not in [0, 1], or `languages` are unknown or share a script.

    """

    balance: float
    languages: list[str]

    def __post_init__(self) -> None:
        if not 0 <= self.balance <= 1:
            raise ConfigError(f"balance: found {self.balance}, expected a number from 0 to 1; 0.5 to 0.9 are usual")
        analyser(tuple(self.languages))

    def __call__(self, query: Query, hits: Sequence[Hit], k: int, budget: int, tokens: Tokens) -> Context:
        passages = tuple(hits[number].chunk for number in self.picked([hit.chunk.text for hit in hits], k))
        return Context(passages, sum(tokens.count(passage.text) for passage in passages))

    def picked(self, texts: Sequence[str], k: int) -> list[int]:
        """The positions of at most k of the texts, which come best first."""
        counts = term_counts(texts, self.languages)
        squares = np.square(counts).sum(axis=1)
        relevance = (RANKS + 1) / (RANKS + 1 + np.arange(len(texts)))
        closest = np.zeros(len(texts))
        picked: list[int] = []
        while len(picked) < min(k, len(texts)):
            worth = self.balance * relevance - (1 - self.balance) * closest
            worth[picked] = -np.inf
            picked.append(int(worth.argmax()))
            closest = np.maximum(closest, cosines(counts, squares, picked[-1]))
        return picked


def term_counts(texts: Sequence[str], languages: Sequence[str]) -> npt.NDArray[np.float64]:
    """How often each text holds each term of any of them, `(texts, terms)`."""
    vocabulary: dict[str, int] = {}
    found = (analysed(text, tuple(languages)) for text in texts)
    columns = [[vocabulary.setdefault(term, len(vocabulary)) for term in terms] for terms in found]
    rows = np.repeat(np.arange(len(texts)), [len(column) for column in columns])
    cells = rows * len(vocabulary) + np.array([term for column in columns for term in column], dtype=np.intp)
    size = len(texts) * len(vocabulary)
    return np.bincount(cells, minlength=size).reshape(len(texts), len(vocabulary)).astype(np.float64)


@lru_cache(maxsize=2**14)  # the chunks of a corpus are found again and again, and an index would hold their terms
def analysed(text: str, languages: tuple[str, ...]) -> list[str]:
    return analyser(languages)(text)


def cosines(counts: npt.NDArray[np.float64], squares: npt.NDArray[np.float64], picked: int) -> npt.NDArray[np.float64]:
    """The cosine of every text with the picked one, `(texts,)`; 0 for a text without terms.

    All sums are of whole numbers below 2^53, so that their order, and with it the processor, moves no bit; the root is
    taken last, so that cosines which are equal are so to the last bit.
    """
    shared, norms = np.square(counts @ counts[picked]), squares * squares[picked]
    found: npt.NDArray[np.float64] = np.sqrt(np.divide(shared, norms, out=np.zeros_like(norms), where=norms > 0))
    return found
