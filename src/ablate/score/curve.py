"""A ranking and its tokens go in, coverage by the number of tokens read comes out: fair between sizes of chunks."""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping, Sequence
from itertools import islice, pairwise

from ablate.score.evidence import finder, ranks, unique
from ablate.score.settings import Scoring
from ablate.tokens import Tokens
from ablate.types import Chunk, Document, Truth


def curve(
    truth: Truth,
    ranking: Sequence[Chunk],
    documents: Mapping[str, Document],
    denied: Container[str],
    scoring: Scoring,
    budgets: Sequence[int],
    tokens: Tokens,
) -> dict[str, float | None]:
    """Coverage of the text that fits into the first T tokens of the ranking, and the area under it from 1 to T over T.

    None is not applicable: the truth has no alternatives.
    """
    read = list(islice(_token_by_token(unique(ranking), tokens), max(budgets)))
    alternatives = ranks(truth, finder(read, documents, denied, scoring.span_threshold))
    values: dict[str, float | None] = {}
    for budget in budgets:
        values[f"retrieval/coverage_at_{budget}_tokens"] = _coverage(alternatives, budget) if alternatives else None
        values[f"retrieval/coverage_over_{budget}_tokens"] = _area(alternatives, budget) if alternatives else None
    return values


def _token_by_token(ranking: Sequence[Chunk], tokens: Tokens) -> Iterator[Chunk]:
    """The ranking as chunks of one token each: the rank at which these support a unit is the tokens it takes."""
    for chunk in ranking:
        starts_and_ends = tokens.spans(chunk.text).tolist()
        for start, end in starts_and_ends:
            yield Chunk(chunk.document, chunk.start + start, chunk.start + end)


def _coverage(alternatives: Sequence[Sequence[float]], read: float) -> float:
    return max(sum(rank <= read for rank in facts) / len(facts) for facts in alternatives)


def _area(alternatives: Sequence[Sequence[float]], budget: int) -> float:
    steps = [*sorted({rank for facts in alternatives for rank in facts if rank <= budget}), budget + 1]
    return sum((after - step) * _coverage(alternatives, step) for step, after in pairwise(steps)) / budget
