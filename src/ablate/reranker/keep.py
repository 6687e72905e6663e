"""Hits go in, the same hits come out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ablate.types import Hit, Query


@dataclass(frozen=True)
class Keep:
    """No reranker: the retriever's own order."""

    def __call__(self, query: Query, hits: Sequence[Hit]) -> list[Hit]:
        return list(hits)
