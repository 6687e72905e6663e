"""One query's trace down the line and its truth go in, every value of that query comes out."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass

from ablate.score.acl import acl, unchecked
from ablate.score.context import context
from ablate.score.cost import cost
from ablate.score.curve import Reader, curve
from ablate.score.doc import doc
from ablate.score.judged import judged_at
from ablate.score.retrieval import retrieval
from ablate.score.settings import Scoring
from ablate.types import Chunk, Context, Document, Hit, Trace, Truth

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


def of_chunks(
    truth: Truth,
    ranking: Sequence[Chunk],
    documents: Mapping[str, Document],
    denied: Container[str],
    scoring: Scoring,
) -> Values:
    """The `retrieval/` values of any ranking of chunks, best first."""
    return {
        **retrieval(truth, ranking, documents, denied, scoring),
        **judged_at(truth, ranking, scoring.cutoffs),
    }


def of_ranking(
    truth: Truth,
    ranking: Sequence[Chunk],
    documents: Mapping[str, Document],
    denied: Container[str],
    scoring: Scoring,
) -> Values:
    """The `retrieval/` and `doc/` values of any ranking of chunks, best first."""
    return {
        **of_chunks(truth, ranking, documents, denied, scoring),
        **doc(truth.documents, [chunk.document.id for chunk in ranking], scoring.cutoffs),
    }


def of_record(
    truth: Truth,
    ranking: Sequence[Chunk],
    handed: Context,
    documents: Mapping[str, Document],
    denied: Container[str],
    scoring: Scoring,
    spent: Mapping[str, float],
    reader: Reader,
) -> Values:
    """Every value of one query that its ranking and its context decide, which is what a run keeps of it.

    `spent` counts what the query used beside the tokens of its context, by the names that `scoring.cost` prices.
    """
    return {
        **of_ranking(truth, ranking, documents, denied, scoring),
        **curve(truth, handed, ranking, documents, denied, scoring, reader),
        **context(truth, handed, documents, denied, scoring),
        "cost/query": cost({"context_tokens": handed.tokens, **spent}, scoring.cost),
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
    """Every value of one query of a run, as in `of_record`, and what its stages showed; None is not applicable."""
    chunks = [hit.chunk for hit in trace.ranked]
    return {
        **of_record(truth, chunks, trace.context, documents, exposure.denied, scoring, spent, reader),
        **(_acl(trace, exposure) if exposure.checked else unchecked()),
    }


def _acl(trace: Trace, exposure: Exposure) -> Values:
    shown, hits = trace.context.passages, len(trace.permitted)
    return acl(exposure.denied, shown, exposure.stages, exposure.unrestricted, hits, exposure.readable)
