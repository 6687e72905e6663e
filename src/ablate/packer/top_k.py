"""The first k chunks of a ranking, whatever their length."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ablate.tokens import Tokens
from ablate.types import Context, Hit, Query


@dataclass(frozen=True)
class TopK:
    """The first k chunks as they are, in the order of the ranking."""

    def __call__(self, query: Query, hits: Sequence[Hit], k: int, budget: int, tokens: Tokens) -> Context:
        passages = tuple(hit.chunk for hit in hits[:k])
        return Context(passages, sum(tokens.count(passage.text) for passage in passages))
