"""A ranking of chunks and what the query needs go in, the `retrieval/` values of DESIGN section 5 come out."""

from __future__ import annotations

import math
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass

from ablate.score.evidence import NEVER, Finder, Found, finder, first, ranks, unique
from ablate.score.settings import Scoring
from ablate.types import Chunk, Document, Truth, Unit


@dataclass(frozen=True, slots=True)
class Target:
    """Something worth finding, a judged span or a fact: its grade and where the ranking has it."""

    grade: int
    found: Found


def retrieval(
    truth: Truth,
    ranking: Sequence[Chunk],
    documents: Mapping[str, Document],
    denied: Container[str],
    scoring: Scoring,
) -> dict[str, float | None]:
    """Values of one ranking, best chunk first, at every cut-off; None is not applicable, which the truth alone decides.

    `retrieval/completion_rank` is `math.inf` where no alternative is ever complete.
    """
    chunks = unique(ranking)
    find = finder(chunks, documents, denied, scoring.span_threshold)
    values = _completeness(truth, find, scoring.cutoffs)
    groups = _targets(truth, find)
    gains = [_gains(group, min(len(chunks), max(scoring.cutoffs))) for group in groups]
    useful = [_useful(group) for group in groups]
    for k in scoring.cutoffs:
        values[f"retrieval/recall_at_{k}"] = _most([_share_found(group, k) for group in groups])
        values[f"retrieval/hit_at_{k}"] = _most([float(_least(group) <= k) for group in groups])
        values[f"retrieval/precision_at_{k}"] = _most([sum(since <= k for since in group) / k for group in useful])
        values[f"retrieval/ndcg_at_{k}"] = _most(
            [
                discounted(gain[:k]) / discounted(sorted((target.grade for target in group), reverse=True)[:k])
                for gain, group in zip(gains, groups, strict=True)
            ]
        )
    values["retrieval/mrr"] = _most([1 / _least(group) for group in groups])
    return values


def discounted(gains: Sequence[int]) -> float:
    """Discounted cumulative gain, linear gain over log2(1 + place) (Järvelin and Kekäläinen 2002), exactly rounded."""
    return math.fsum(gain / math.log2(place + 1) for place, gain in enumerate(gains, start=1) if gain)


def _completeness(truth: Truth, find: Finder, cutoffs: Sequence[int]) -> dict[str, float | None]:
    alternatives = ranks(truth, find)
    values: dict[str, float | None] = {}
    completion = min((max(facts) for facts in alternatives), default=None)
    for k in cutoffs:
        shares = [sum(rank <= k for rank in facts) / len(facts) for facts in alternatives]
        values[f"retrieval/coverage_at_{k}"] = _most(shares)
        values[f"retrieval/sufficient_at_{k}"] = None if completion is None else float(completion <= k)
    values["retrieval/completion_rank"] = completion
    values["retrieval/completion_rr"] = None if completion is None else 1 / completion
    return values


def _targets(truth: Truth, find: Finder) -> list[list[Target]]:
    """The judged spans of grade 1 or more, as one group; without any, the facts of each alternative, grade 1 each."""
    grades: dict[Unit, int] = {}
    for judgment in truth.judged:
        if judgment.grade >= 1:
            grades[judgment.unit] = max(judgment.grade, grades.get(judgment.unit, 0))
    if grades:
        return [[Target(grade, find(unit)) for unit, grade in grades.items()]]
    return [[Target(1, first(fact, find)) for fact in alternative] for alternative in truth.alternatives]


def _most(values: Sequence[float]) -> float | None:
    return max(values, default=None)


def _least(group: Sequence[Target]) -> float:
    return min(target.found.rank for target in group)


def _share_found(group: Sequence[Target], k: int) -> float:
    return sum(target.found.rank <= k for target in group) / len(group)


def _useful(group: Sequence[Target]) -> list[float]:
    """For every chunk that adds letters of a target, the least k at which it counts: both are there by then."""
    since: dict[int, float] = {}
    for target in group:
        for rank in target.found.adding:
            since[rank] = min(since.get(rank, NEVER), max(rank, target.found.rank))
    return list(since.values())


def _gains(group: Sequence[Target], chunks: int) -> list[int]:
    """The ranking written out as grades: what each chunk completes, best first, or one empty place."""
    completed: dict[float, list[int]] = {}
    for target in group:
        completed.setdefault(target.found.rank, []).append(target.grade)
    return [grade for rank in range(1, chunks + 1) for grade in sorted(completed.get(rank, [0]), reverse=True)]
