"""A ready line and its dataset go in; every query's trace and values, and what the run says as a whole, come out."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from ablate.audit import Audit, AuditError
from ablate.errors import DatasetError
from ablate.pipeline import Mask, Ready, unlabelled
from ablate.score import Exposure, Scoring, of_trace, summarise, whole
from ablate.score.chunking import chunking
from ablate.score.ingestion import ingestion
from ablate.score.latency import latency, paired
from ablate.types import Dataset, Document, Hit, Query, Trace, Truth

log = logging.getLogger(__name__)

Values = Mapping[str, float | None]

CUSTOMARY = 10
"""The cut-off at which `doc/` measures are compared the world over; always computed, whatever the settings ask for."""


@dataclass(frozen=True)
class Evaluation:
    """What a line did with every query of a dataset, and how well.

    `chunks` are the ids of all chunks; `models` the revision of every model that was asked; `pools` the tokens of each
    query's candidates, to depth and to k.
    """

    chunks: Sequence[str]
    models: Mapping[str, str]
    pools: Mapping[str, Mapping[str, int]]
    traces: Sequence[Trace]
    values: Mapping[str, Values]
    measures: Mapping[str, Any]
    counts: Mapping[str, int]


def audited(dataset: Dataset) -> Audit:
    """The second opinion on a dataset, from its own files.

    Raises:
        DatasetError: a line of them cannot be read.

    """
    try:
        return Audit.read(Path(dataset.folder), dataset.acl_default)
    except AuditError as error:
        raise DatasetError(str(error)) from error


def evaluate(ready: Ready, audit: Audit, scoring: Scoring) -> Evaluation:
    """Run every query of the dataset once and score what each stage gave out."""
    dataset = ready.dataset
    scoring = replace(scoring, cutoffs=sorted({*scoring.cutoffs, ready.k, ready.depth, CUSTOMARY}))
    documents = {document.id: document for document in dataset.documents}
    inspect = Inspector(ready, audit)
    queries = [marked(query, dataset.truths[query.id]) for query in dataset.queries]
    traces, values = [], {}
    for query in followed(queries):
        trace = ready(query)
        traces.append(trace)
        truth, exposure = dataset.truths[query.id], inspect(trace)
        values[query.id] = of_trace(truth, trace, documents, exposure, scoring, spent(ready, trace))
    measures = summarise(queries, values) | corpus_measures(ready, audit, documents, scoring)
    return Evaluation(
        [chunk.id for chunk in ready.chunks],
        models(ready),
        {trace.query.id: pool_tokens(ready, trace) for trace in traces},
        traces,
        values,
        measures,
        counts(ready, traces),
    )


def marked(query: Query, truth: Truth) -> Query:
    """The query, in the cohort `granularity=document` if whole documents are among its evidence."""
    return replace(query, cohorts={**query.cohorts, "granularity": "document"}) if truth.by_document else query


@dataclass(frozen=True)
class Inspector:
    """Asks the frozen ACL, not the access component, what a query's principals might have been shown."""

    ready: Ready
    audit: Audit
    masks: dict[frozenset[str], Mask] = field(default_factory=dict, repr=False)

    def __call__(self, trace: Trace) -> Exposure:
        if not self.audit.checked:
            return Exposure(False, frozenset())
        ready, query = self.ready, unlabelled(trace.query)
        denied = self.audit.denied(query.principals)
        wanted = ready.filter.allowed(query)
        readable = self.readable(query.principals, denied)
        stages = [trace.permitted, trace.ranked]
        if np.array_equal(ready.access.allowed(query), readable):
            stages += [*trace.candidates.sources.values(), trace.candidates.fused]
        return Exposure(
            checked=True,
            denied=denied,
            stages=stages,
            unrestricted=self.found(query, np.ones_like(readable), wanted),
            readable=len(self.found(query, ready.access.indexed(query), wanted & readable)),
        )

    def readable(self, principals: frozenset[str], denied: frozenset[str]) -> Mask:
        """The documents that are not denied, `(documents,)`, found once for all queries of the same principals."""
        if principals not in self.masks:
            mask = [document.id not in denied for document in self.ready.dataset.documents]
            self.masks[principals] = np.array(mask, dtype=np.bool_)
        return self.masks[principals]

    def found(self, query: Query, known: Mask, allowed: Mask) -> Sequence[Any]:
        return self.ready.search(query, known, allowed).fused


def corpus_measures(
    ready: Ready, audit: Audit, documents: Mapping[str, Document], scoring: Scoring
) -> dict[str, dict[str, Any]]:
    """The measures of ingestion and chunking, which belong to the corpus and to no query."""
    truths = list(ready.dataset.truths.values())
    indexed = {chunk.document.id for chunk in ready.chunks}
    values = ingestion(audit.documents, audit.texts, documents, indexed, truths)
    return whole(values, len(documents)) | whole(
        chunking(ready.chunks, truncated(ready), documents, truths, scoring.span_threshold), len(ready.chunks)
    )


def truncated(ready: Ready) -> Mask:
    """Which chunks the encoder's limit cut, `(chunks,)`; an encoder that was not asked cut none."""
    tally = getattr(ready.line.embedder, "tally", None)
    if not tally:
        return np.zeros(len(ready.chunks), dtype=np.bool_)
    cut: Mask = ready.line.embedder.truncated([chunk.reading for chunk in ready.chunks])
    return cut


def spent(ready: Ready, trace: Trace) -> dict[str, float]:
    """What a query used beside the tokens of its context, by the names that prices are given for."""
    return {"queries": 1.0, "rerank_pairs": float(len(reranked(ready, trace)))}


def reranked(ready: Ready, trace: Trace) -> Sequence[Hit]:
    """The hits of a query that its reranker scored again."""
    return trace.permitted[: getattr(ready.line.reranker, "first", 0)]


def models(ready: Ready) -> dict[str, str]:
    """The revision of every model that did some of the work."""
    asked = {stage: getattr(ready.line, stage) for stage in ("embedder", "reranker")}
    return {stage: component.revision for stage, component in asked.items() if getattr(component, "tally", None)}


def pool_tokens(ready: Ready, trace: Trace) -> dict[str, int]:
    """Study tokens of a query's candidates: to depth, and the first k."""
    lengths = [ready.tokens.count(hit.chunk.text) for hit in trace.ranked]
    return {"tokens_at_depth": sum(lengths), "tokens_at_k": sum(lengths[: ready.k])}


def counts(ready: Ready, traces: Sequence[Trace]) -> dict[str, int]:
    """What happened, in whole numbers: sizes, silent queries and chunks, work done and work found in the store."""
    searches = [search for search, _ in ready.indexes.values()]
    found: dict[str, int] = {
        **ready.dataset.counts,
        "queries": len(traces),
        "queries_without_hits": sum(not trace.ranked for trace in traces),
        "silent_queries": sum(
            any(silent(search, unlabelled(trace.query)) for search in searches[:1]) for trace in traces
        ),
        "silent_chunks": max((getattr(search, "silent_chunks", 0) for search in searches), default=0),
        "rerank_pairs": sum(len(reranked(ready, trace)) for trace in traces),
        "reranker_truncated": sum(truncated_pairs(ready, trace) for trace in traces),
    }
    for stage in ("embedder", "reranker"):
        tally = getattr(getattr(ready.line, stage), "tally", {})
        found |= {f"{stage}_{key}": tally[key] for key in tally}
    return found


def truncated_pairs(ready: Ready, trace: Trace) -> int:
    """How many of a query's pairs the reranker's limit cut."""
    pairs = [(trace.query.text, hit.chunk.reading) for hit in reranked(ready, trace)]
    cut = getattr(ready.line.reranker, "truncated", None)
    return int(cut(pairs).sum()) if cut and pairs else 0


def silent(search: Any, query: Query) -> bool:
    return bool(getattr(search, "silent", lambda _: False)(query))


def timed(timings: Sequence[Mapping[str, Any]], side: str) -> dict[str, dict[str, Any]]:
    """The `latency/` measures of one side, and against the baseline's of the same session where there is one."""
    if not timings:
        return {}
    mine = [total(row[side]) for row in timings]
    samples = {stage: [row[side][stage] for row in timings] for stage in timings[0][side]}
    measures = latency({**samples, "total": mine})
    if side != "baseline":
        base = [total(row["baseline"]) for row in timings]
        measures |= latency({"baseline": base})
        measures["latency/log_ratio"] = paired(base, mine)
    return measures


def total(laps: Mapping[str, float]) -> float:
    return sum(laps.values())


def followed(queries: Sequence[Query]) -> Iterable[Query]:
    """The queries one by one, with a line in the log every ten seconds."""
    last = time.monotonic()
    for number, query in enumerate(queries):
        if time.monotonic() - last > 10:
            last = time.monotonic()
            log.info("query %d of %d", number, len(queries))
        yield query
