"""One query's trace down the line and its truth go in, every value of that query comes out."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass

from ablate.score.acl import acl, unchecked
from ablate.score.context import context
from ablate.score.cost import cost
from ablate.score.curve import Reader, curve
from ablate.score.doc import doc
from ablate.score.retrieval import retrieval
from ablate.score.settings import Scoring
from ablate.types import Chunk, Document, Hit, Trace, Truth

Values = dict[str, float | None]


@dataclass(frozen=True, slots=True)
class Exposure:
    """What the ACL checker needs to know about one query, beside its trace.

    `checked` is False where no document carries an ACL. `denied` are the documents that the principals may not read,
    by the audit. `stages` are the lists given out by every stage after access; `unrestricted` is the fused list
    of a search without access; `readable` is the number of hits of the exact search over the readable documents.
    """

    checked: bool
    denied: Container[str]
    stages: Sequence[Sequence[Hit]] = ()
    unrestricted: Sequence[Hit] = ()
    readable: int = 0


def of_ranking(
    truth: Truth,
    ranking: Sequence[Chunk],
    documents: Mapping[str, Document],
    denied: Container[str],
    scoring: Scoring,
) -> Values:
    """The `retrieval/` and `doc/` values of any ranking of chunks, best first."""
    return {
        **retrieval(truth, ranking, documents, denied, scoring),
        **doc(truth.documents, [chunk.document.id for chunk in ranking], scoring.cutoffs),
    }


def of_trace(
    truth: Truth,
    trace: Trace,
    documents: Mapping[str, Document],
    exposure: Exposure,
    scoring: Scoring,
    spent: Mapping[str, float],
    reader: Reader,
) -> Values:
    """Every value of one query of a run; None is not applicable.

    `spent` counts what the query used beside the tokens of its context, by the names that `scoring.cost` prices.
    """
    chunks, denied = [hit.chunk for hit in trace.ranked], exposure.denied
    return {
        **of_ranking(truth, chunks, documents, denied, scoring),
        **curve(truth, trace.context, chunks, documents, denied, scoring, reader),
        **context(truth, trace.context, documents, denied, scoring),
        **(_acl(trace, exposure) if exposure.checked else unchecked()),
        "cost/query": cost({"context_tokens": trace.context.tokens, **spent}, scoring.cost),
    }


def _acl(trace: Trace, exposure: Exposure) -> Values:
    shown, hits = trace.context.passages, len(trace.permitted)
    return acl(exposure.denied, shown, exposure.stages, exposure.unrestricted, hits, exposure.readable)
