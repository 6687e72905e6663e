"""What rerankers have in common that give every (query, chunk) pair a score of its own."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from ablate.errors import AblateError
from ablate.types import Hit, Query, ranking

Pair = tuple[str, str]
"""The query's text and the chunk's reading."""

Judged = tuple[NDArray[np.float64], NDArray[np.bool_]]
"""The score of each pair, and whether the model's limit cut it, both of shape (pairs,)."""


def rerank(
    query: Query, hits: Sequence[Hit], first: int, scores: Callable[[list[Pair]], NDArray[np.float64]]
) -> list[Hit]:
    """The first `first` hits by their pair score, in the one total order; the others follow as they were."""
    head, tail = hits[:first], hits[first:]
    if not head:
        return []
    found = scores([(query.text, hit.chunk.reading) for hit in head])
    return [*ranking([Hit(hit.chunk, float(score)) for hit, score in zip(head, found, strict=True)]), *tail]


class Pairwise(ABC):
    """A reranker that scores pairs."""

    first: int

    @abstractmethod
    def read(self, pairs: Sequence[Pair]) -> Judged:
        """Scores, each a function of its pair alone, and which pairs were cut."""

    def scores(self, pairs: Sequence[Pair]) -> NDArray[np.float64]:
        """The score of each pair, shape (pairs,); a function of the pair alone."""
        return self.read(pairs)[0]

    def __call__(self, query: Query, hits: Sequence[Hit]) -> list[Hit]:
        return rerank(query, hits, self.first, self.scores)


def single(logits: NDArray[np.float32], name: str) -> float:
    """The one logit of one pair.

    Raises:
        AblateError: the model gives several.
    """
    if logits.size != 1:
        raise AblateError(
            f"reranker {name}: found {logits.size} numbers a pair, expected 1; "
            "choose a cross-encoder with a single label"
        )
    return float(logits.reshape(-1)[0])


def finite(scores: NDArray[np.float64], name: str) -> NDArray[np.float64]:
    """The scores themselves.

    Raises:
        AblateError: one is no number.
    """
    if not np.isfinite(scores).all():
        raise AblateError(
            f"reranker {name}: found a score that is NaN or infinite, expected numbers; check the weights"
        )
    return scores
