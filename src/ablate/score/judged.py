"""What the ground truth says of a query and its ranking go in, of how much of the ranking it speaks comes out."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Container, Sequence

from ablate.score.evidence import unique
from ablate.types import Chunk, Span, Truth


def judged_at(truth: Truth, ranking: Sequence[Chunk], cutoffs: Sequence[int]) -> dict[str, float | None]:
    """The share of the first k chunks that are judged: Judged@k of ir_measures (MacAvaney et al., ECIR 2022).

    Of fewer than k chunks it is the share of those that there are, and 1 where there is none: nothing is left to
    review then. None, not applicable, where the ground truth judges nothing.
    """
    about = judged(truth)
    known = [about(chunk) for chunk in unique(ranking)[: max(cutoffs)]]
    speaks = truth.complete or truth.alternatives or truth.judged or truth.documents
    return {f"retrieval/judged_at_{k}": _share(known[:k]) if speaks else None for k in cutoffs}


def unjudged(truth: Truth, passages: Sequence[Chunk], denied: Container[str]) -> list[Chunk]:
    """The passages about which the ground truth says nothing, each once; without those that nobody may judge.

    What who asks may not read supports nothing, whatever a judge would say, and neither does text without a letter.
    """
    about = judged(truth)
    readable = (chunk for chunk in unique(passages) if chunk.document.id not in denied)
    return [chunk for chunk in readable if not about(chunk) and any(map(str.isalnum, chunk.text))]


def _share(known: Sequence[bool]) -> float:
    return sum(known) / len(known) if known else 1.0


def judged(truth: Truth) -> Callable[[Chunk], bool]:
    """Whether the ground truth says something about a chunk; what it does not speak of counts as useless.

    It does if the chunk overlaps a span of an alternative or a judged span, of grade 0 too, or if its document is
    judged as a whole. It does where `complete` is declared: what such a list leaves out is not relevant.

    A document is judged as a whole if it has a grade, or is a unit without spans. One whose spans are evidence has a
    grade because of them, which says nothing about the rest of it.
    """
    evidence = [unit for alternative in truth.alternatives for fact in alternative for unit in fact]
    spans: dict[str, list[Span]] = defaultdict(list)
    for unit in (*evidence, *(judgment.unit for judgment in truth.judged)):
        spans[unit.document] += unit.spans
    whole = truth.documents.keys() - {unit.document for unit in evidence}
    whole |= {unit.document for unit in evidence if not unit.spans}

    def about(chunk: Chunk) -> bool:
        document = chunk.document.id
        touched = (span.start < chunk.end and chunk.start < span.end for span in spans.get(document, ()))
        return truth.complete or document in whole or any(touched)

    return about
