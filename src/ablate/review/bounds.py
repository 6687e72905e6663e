"""Two runs and their dataset go in, how far unjudged sources could move the difference between them comes out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from ablate.comparison import SUFFICIENT
from ablate.records import RunRecord
from ablate.review.sides import Sides
from ablate.score.evidence import lay_out
from ablate.score.judged import judged
from ablate.types import Chunk, Dataset, Span, Unit


class Held(NamedTuple):
    """Which contexts hold an unjudged source: the baseline's, the variant's, or both."""

    baseline: bool
    variant: bool


@dataclass(frozen=True)
class Bounds:
    """The least and the greatest mean difference in `context/sufficient`, variant minus baseline, over `n` queries.

    `unjudged` are the passages of either context, by query, about which the ground truth says nothing; each could be
    sufficient by itself, or useless. Without any, both bounds are the difference that was measured.
    """

    low: float
    high: float
    n: int
    unjudged: tuple[tuple[str, Chunk], ...]


def bounds(baseline: RunRecord, variant: RunRecord, dataset: Dataset) -> Bounds | None:
    """The bounds for two runs on `dataset`; None where the measure applies to no query of both.

    A source that both contexts hold counts for both, and one that who asks may not read for neither.
    """
    pair = Sides((baseline, variant), dataset)
    before, after = baseline.values(SUFFICIENT), variant.values(SUFFICIENT)
    least, most, found = 0, 0, []
    both = [query for query in dataset.queries if query.id in before and query.id in after]
    for query in both:
        about, denied = judged(dataset.truths[query.id]), pair.audit.denied(query.principals)
        left, right = (pair.context(record, query.id) for record in pair.runs)
        handed = [chunk for chunk in dict.fromkeys((*left, *right)) if chunk.document.id not in denied]
        sources = [chunk for chunk in handed if not about(chunk) and any(map(str.isalnum, chunk.text))]
        found += [(query.id, chunk) for chunk in sources]
        held = [Held(holds(left, chunk), holds(right, chunk)) for chunk in sources]
        low, high = extremes(before[query.id] == 1, after[query.id] == 1, held)
        least, most = least + low, most + high
    return Bounds(least / len(both), most / len(both), len(both), tuple(found)) if both else None


def extremes(before: bool, after: bool, held: Sequence[Held]) -> tuple[int, int]:
    """The least and the greatest difference of one query over all sets of unjudged sources that are sufficient.

    A side that is sufficient stays so. The other becomes so by any source that it holds; it alone does by one that
    only it holds.
    """
    flipped = [Held(source.variant, source.baseline) for source in held]
    return -_greatest(after, before, flipped), _greatest(before, after, held)


def _greatest(before: bool, after: bool, held: Sequence[Held]) -> int:
    """How far the variant can come out above the baseline."""
    if before:
        return 0 if after or any(source.variant for source in held) else -1
    return 1 if after or any(source.variant and not source.baseline for source in held) else 0


def holds(context: Sequence[Chunk], chunk: Chunk) -> bool:
    """Whether the passages of a context together hold all letters and digits of a chunk."""
    laid = lay_out(chunk.document, Unit(chunk.document.id, (Span(chunk.start, chunk.end),)), 1.0)
    covered = 0
    for passage in context:
        if passage.document.id == chunk.document.id:
            covered |= laid.seen(passage)
    return covered.bit_count() >= laid.need
