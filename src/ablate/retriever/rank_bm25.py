"""Lexical search by BM25 as the package rank_bm25 computes it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from ablate.errors import ConfigError
from ablate.retriever.bm25 import Bm25, Scorer, Terms, Vocabulary
from ablate.retriever.order import Scores


@dataclass(frozen=True)
class RankBm25(Bm25):
    """The formula of `Bm25` as `rank_bm25.BM25Okapi` sums it over every chunk: the same ranking, at its own speed.

    That class gives a term of every second chunk an idf of 0 and one of more a negative one; here it has the idf of
    `Bm25`.

    Raises:
        ConfigError: as for `Bm25`; or `k1` is 0, where the package divides zero by zero.

    """

    source = "rank_bm25"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.k1 == 0:
            raise ConfigError("k1: found 0, expected a number above 0 (rank_bm25 divides by it); use retriever=bm25")

    def scorer(self, texts: list[Terms], vocabulary: Vocabulary) -> Scorer:
        if not vocabulary:  # the package divides by the number and by the mean length of texts
            return lambda asked: np.zeros(len(texts))
        model = _okapi()(texts, k1=self.k1, b=self.b)

        def scores(asked: Terms) -> Scores:
            with np.errstate(invalid="ignore"):  # with b = 1 a text without terms gets 0 / 0, which is no score
                found: Scores = model.get_scores(asked)
            return found

        return scores


@cache
def _okapi() -> Any:
    """`BM25Okapi` with an idf above zero."""
    import rank_bm25

    class PositiveIdf(rank_bm25.BM25Okapi):  # type: ignore[misc]
        def _calc_idf(self, nd: Mapping[int, int]) -> None:
            self.idf = {term: math.log(1 + (self.corpus_size - n + 0.5) / (n + 0.5)) for term, n in nd.items()}

    return PositiveIdf
