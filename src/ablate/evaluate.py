"""A ready line and its dataset go in; every query's trace and values, and what the run says as a whole, come out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from ablate.audit import Audit, AuditError
from ablate.dataset.fingerprint import digest
from ablate.errors import DatasetError
from ablate.foresight import foreseen
from ablate.ledger.book import ledger
from ablate.ledger.corpus import Corpus
from ablate.ledger.entry import Entry
from ablate.pipeline import Asked, Mask, Ready, unlabelled
from ablate.progress import followed
from ablate.score import Exposure, Reader, Scoring, of_trace, summarise, whole
from ablate.score.abstention import abstention, top_score
from ablate.score.approximation import approximation
from ablate.score.chunking import chunking
from ablate.score.evidence import units
from ablate.score.ingestion import ingestion
from ablate.score.judged import unjudged
from ablate.score.latency import latency, paired
from ablate.score.standards import Standards, standards
from ablate.statistics import clustered
from ablate.types import Chunk, Dataset, Document, Hit, Query, Trace, Truth

Values = Mapping[str, float | None]

CUSTOMARY = 10
"""The cut-off at which `doc/` measures are compared the world over; always computed, whatever the settings ask for."""


@dataclass(frozen=True)
class Evaluation:
    """What a line did with every query of a dataset, and how well.

    `chunks` names all chunks, each behind the one that is handed over for it; `models` the revision of every model
    that was asked; `pools` the tokens of each query's candidates, to depth and to k; `asked` is a hash of all that
    decides a query's ranking beside corpus and line; `spent` is what each query used, by the names that have prices;
    `clusters` names the queries that stand or fall together; `unjudged` has the passages of each query's context about
    which the ground truth says nothing; `ledger` says where the evidence of each query was lost.
    """

    chunks: Sequence[str]
    models: Mapping[str, str]
    pools: Mapping[str, Mapping[str, int]]
    traces: Sequence[Trace]
    values: Mapping[str, Values]
    measures: Mapping[str, Any]
    counts: Mapping[str, int]
    asked: Mapping[str, str]
    spent: Mapping[str, Mapping[str, float]]
    clusters: Mapping[str, str]
    unjudged: Mapping[str, Sequence[Chunk]]
    ledger: Sequence[Entry] = ()


def at_all_cutoffs(scoring: Scoring, k: int, depth: int) -> Scoring:
    """The settings with the cut-offs that every run has beside those that were asked for."""
    return replace(scoring, cutoffs=sorted({*scoring.cutoffs, k, depth, CUSTOMARY}))


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
    scoring = at_all_cutoffs(scoring, ready.k, ready.depth)
    documents = {document.id: document for document in dataset.documents}
    inspect, reader = Inspector(ready, audit), Reader(ready.tokens, ready.budget, ready.length)
    queries = [marked(query, dataset.truths[query.id]) for query in dataset.queries]
    ready = foreseen(ready, searches(inspect, queries))
    inspect = replace(inspect, ready=ready)
    traces, values, used = [], {}, {}
    barred: dict[str, frozenset[str]] = {}
    unknown: dict[str, Sequence[Chunk]] = {}
    standard = standards(dataset)
    for query in followed("asking", queries, "queries"):
        trace = ready(query)
        traces.append(trace)
        used[query.id] = spent(ready, trace)
        truth, exposure = dataset.truths[query.id], inspect(trace)
        barred[query.id] = frozenset(unit.document for unit in units([truth]) if unit.document in exposure.denied)
        values[query.id] = {
            **of_trace(truth, trace, documents, exposure, scoring, used[query.id], reader),
            **recalled(ready, trace),
            **top_score([hit.score for hit in trace.ranked[:1]], comparable(ready)),
        }
        values[query.id] |= besides(query, trace, values[query.id], ready, standard)
        unknown[query.id] = unjudged(truth, trace.context.passages, exposure.denied)
    clusters, cost = clustered(dataset), scoring.false_answer_cost
    measures = summarise(queries, values) | corpus_measures(ready, audit, documents, scoring)
    measures |= abstention(queries, values, clusters, cost, comparable(ready))
    return Evaluation(
        [f"{chunk.handed.id} {chunk.id}" for chunk in ready.chunks],
        models(ready),
        {trace.query.id: pool_tokens(ready, trace) for trace in traces},
        traces,
        values,
        measures,
        counts(ready, traces),
        {query.id: asked(query, audit, dataset.acl_default) for query in queries},
        used,
        clusters,
        unknown,
        ledger(Corpus(ready, documents, audit.texts, scoring.span_threshold), traces, barred),
    )


def comparable(ready: Ready) -> bool:
    """Whether the scores of final rankings can be compared across queries: those of whichever component gave them."""
    giving = ready.line.reranker if getattr(ready.line.reranker, "first", 0) else ready.line.retriever
    return not getattr(giving, "relative", False)


def besides(query: Query, trace: Trace, values: Values, ready: Ready, standard: Standards) -> Values:
    """The values of what stands before the reader beside the evidence: how old it is, and of what authority."""
    ranking = [hit.chunk for hit in trace.ranked]
    truth, completion = ready.dataset.truths[query.id], values["retrieval/completion_rank"]
    return standard(query, truth, ranking, completion, trace.context, ready.k, ready.length)


def asked(query: Query, audit: Audit, acl_default: str) -> str:
    """A hash of what is asked, by whom, and what they hold: on one corpus, a line ranks equally for equal ones."""
    seen = unlabelled(query)
    names = sorted(audit.names(query.principals))
    return digest([seen.text, names, acl_default, seen.filter, seen.as_of, seen.metadata])


def marked(query: Query, truth: Truth) -> Query:
    """The query, in the cohort `granularity=document` if whole documents are among its evidence."""
    return replace(query, cohorts={**query.cohorts, "granularity": "document"}) if truth.by_document else query


def searches(inspect: Inspector, queries: Sequence[Query]) -> Iterator[Asked]:
    """Everything that the line and those who judge it will search for."""
    for query in map(unlabelled, queries):
        asked = inspect.ready.asked(query)
        yield from (asked, exactly(inspect.ready, asked), *inspect.asked(query))


def exactly(ready: Ready, asked: Asked) -> Asked:
    """The search that leaves nothing out: the same one, unless the retriever is approximate."""
    return asked._replace(exact=ready.approximate(asked))


def recalled(ready: Ready, trace: Trace) -> Values:
    """How much of what an exact search finds an approximate one found; nothing where the retriever is exact."""
    exact = exactly(ready, ready.asked(unlabelled(trace.query)))
    return approximation(ready.search(exact).fused, trace.candidates.fused) if exact.exact else {}


@dataclass(frozen=True)
class Inspector:
    """Asks the frozen ACL, not the access component, what a query's principals might have been shown."""

    ready: Ready
    audit: Audit
    masks: dict[frozenset[str], Mask] = field(default_factory=dict, repr=False)

    def __call__(self, trace: Trace) -> Exposure:
        if not self.audit.checked:
            return Exposure(False, frozenset())
        query = unlabelled(trace.query)
        denied = self.audit.denied(query.principals) | self.strange(trace)
        found = [*trace.candidates.sources.values(), trace.candidates.fused]
        stages = [trace.permitted, trace.ranked, *(self.ruled_out(query, hits) for hits in found)]
        unrestricted, readable = (self.ready.search(asked).fused for asked in self.asked(query))
        return Exposure(True, denied, stages, unrestricted, len(readable))

    @cached_property
    def places(self) -> Mapping[str, int]:
        """Where each document stands in a mask, by its id."""
        return {document.id: place for place, document in enumerate(self.ready.dataset.documents)}

    def known(self, document: Document) -> bool:
        """Whether a document is the corpus's own: about the text of any other the ACL says nothing."""
        place = self.places.get(document.id)
        return place is not None and self.ready.dataset.documents[place] is document

    def strange(self, trace: Trace) -> frozenset[str]:
        """The ids under which a stage gave out text that is of no document of the corpus."""
        lists = [*trace.candidates.sources.values(), trace.candidates.fused, trace.permitted, trace.ranked]
        chunks = [*(hit.chunk for hits in lists for hit in hits), *trace.context.passages]
        return frozenset(chunk.document.id for chunk in chunks if not self.known(chunk.document))

    def ruled_out(self, query: Query, hits: Sequence[Hit]) -> list[Hit]:
        """What a search found although access had taken it out; what access strikes out afterwards is not among it."""
        allowed = self.ready.access.allowed(query)
        places = ((hit, self.places.get(hit.chunk.document.id)) for hit in hits)
        return [hit for hit, place in places if place is None or not allowed[place]]

    def asked(self, query: Query) -> list[Asked]:
        """Two searches: without access, and an exact one among what the ACL allows; none where nothing is checked."""
        if not self.audit.checked:
            return []
        wanted = self.ready.filter.allowed(query)
        readable = self.readable(query.principals, self.audit.denied(query.principals))
        legal = Asked(query, self.ready.access.indexed(query), wanted & readable)
        return [Asked(query, np.ones_like(readable), wanted), exactly(self.ready, legal)]

    def readable(self, principals: frozenset[str], denied: frozenset[str]) -> Mask:
        """The documents that are not denied, `(documents,)`, found once for all queries of the same principals."""
        if principals not in self.masks:
            mask = [document.id not in denied for document in self.ready.dataset.documents]
            self.masks[principals] = np.array(mask, dtype=np.bool_)
        return self.masks[principals]


def corpus_measures(
    ready: Ready, audit: Audit, documents: Mapping[str, Document], scoring: Scoring
) -> dict[str, dict[str, Any]]:
    """The measures of ingestion and chunking, which belong to the corpus and to no query."""
    truths = list(ready.dataset.truths.values())
    indexed = {chunk.document.id for chunk in ready.chunks}
    values = ingestion(audit.documents, audit.texts, documents, indexed, truths)
    return whole(values, len(documents)) | whole(
        chunking(ready.handed, truncated(ready), documents, truths, scoring.span_threshold), len(ready.handed)
    )


def truncated(ready: Ready) -> Mask:
    """Which of the indexed chunks the encoder's limit cut, `(chunks,)`; an encoder that was not asked cut none."""
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
    lengths = [ready.length(hit.chunk) for hit in trace.ranked]
    return {"tokens_at_depth": sum(lengths), "tokens_at_k": sum(lengths[: ready.k])}


def counts(ready: Ready, traces: Sequence[Trace]) -> dict[str, int]:
    """What happened, in whole numbers: sizes, silent queries and chunks, work done and work found in the store."""
    searches = [search for search, _ in ready.indexes.values()]
    found: dict[str, int] = {
        **ready.dataset.counts,
        "queries": len(traces),
        "indexed_chunks": len(ready.chunks),
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
