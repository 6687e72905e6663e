"""What a run found goes in, the files of its run directory come out."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any
from urllib.parse import quote

import yaml

from ablate.config import Node
from ablate.environment import environment
from ablate.evaluate import Evaluation, timed
from ablate.identity import Side, digest
from ablate.latency import Timing
from ablate.ledger import entry as ledger
from ablate.page import public
from ablate.records import COMPACT, Start
from ablate.score import to_json
from ablate.types import Chunk, Query, Trace

Files = dict[str, Any]


def failed(side: Side, facts: Node, start: Start, reason: str) -> Files:
    """The files of a run that broke: who it was and why, so that it can be told and run again."""
    return {"run.json": {**facts, **start.told(), "status": "failed", "error": reason}, **setup(side)}


def finished(
    side: Side, facts: Node, start: Start, evaluation: Evaluation, timings: Sequence[Timing], root: Path
) -> Files:
    """The files of a run that went through."""
    traces = sorted(evaluation.traces, key=lambda trace: trace.query.id)  # the order of a file moves no fingerprint
    stages = {stage: digest(list(names)) for stage, names in outputs(evaluation).items()}
    facts = facts | {"models": evaluation.models, "stages": stages}
    facts = facts | {"fingerprints": facts["fingerprints"] | {"ranking": digest([fingerprint(t) for t in traces])}}
    measures = {**evaluation.measures, **timed(timings, "variant" if side.component else "baseline")}
    metrics = {"measures": measures, "counts": evaluation.counts, "ledger": masses(evaluation)}
    rows = [row(trace, evaluation) for trace in traces]
    return {
        "run.json": {**facts, **start.told(), "status": "finished", "error": None},
        **setup(side),
        "metrics.json": metrics,
        "queries.jsonl": rows,
        COMPACT: compact(metrics, rows, side.config),
        "ledger.jsonl": [ledger.row(entry) for entry in sorted(evaluation.ledger, key=lambda entry: entry.query)],
        "ranking.jsonl": [ranked(trace) for trace in traces],
        "ranking.trec": "".join(line for trace in traces for line in trec(trace)),
        "latency.jsonl": timings,
        "environment.json": environment(root),
    }


def compact(metrics: Node, rows: Sequence[Node], config: Mapping[str, Any]) -> list[Any]:
    """What comparisons read of a run, so that a study of a thousand is compared in a moment: names, then a line each.

    Everything in it stands in `metrics.json` and `queries.jsonl` too: means, counts, losses, and by query what it was
    chosen from and the values of the measures that words, columns and remarks are about; `overall` are the measures
    that no single query has.
    """
    wanted, single = compared(metrics["measures"], config), set().union(*(row["values"] for row in rows))
    found = {
        "means": {name: {key: found[key] for key in ("mean", "n")} for name, found in metrics["measures"].items()},
        "counts": metrics["counts"],
        "ledger": metrics.get("ledger", {}),
        "queries": [row["query_id"] for row in rows],
        "pools": [[row["pool"]["chunks"], row["pool"]["documents"]] for row in rows],
        "overall": [name for name in metrics["measures"] if name not in single],
        **{name: [row["values"].get(name) for row in rows] for name in wanted if name in single},
    }
    return [list(found), *found.values()]


def compared(measures: Mapping[str, Any], config: Mapping[str, Any]) -> list[str]:
    """The measures whose values of every query are read where many runs are compared."""
    evidence = measures.get("context/sufficient", {}).get("mean") is not None
    depths = [f"retrieval/coverage_at_{config.get(name)}" for name in ("depth", "k")]
    leading = ("context/sufficient", "context/coverage", "retrieval/completion_rr", *depths)
    documents = ("doc/ndcg_at_10", "doc/recall_at_10", f"doc/recall_at_{config.get('depth')}", "doc/mrr")
    wanted = [
        *(leading if evidence else documents),
        *("context/tokens", "acl/violations", "acl/exposure", "acl/candidate_violations", "retrieval/ann_recall"),
        f"retrieval/coverage_at_{config.get('budget')}_tokens",
        f"retrieval/judged_at_{config.get('k')}",
        str((config.get("verdict") or {}).get("primary")),
    ]
    return [name for name in dict.fromkeys(wanted) if name in measures]


def masses(evaluation: Evaluation) -> dict[str, float]:
    """The mass of queries at every stage of the ledger; empty where no query has alternatives."""
    found = ledger.cells(evaluation.ledger) if evaluation.ledger else {}
    return {stage: float(mass) for stage, mass in found.items()}


def setup(side: Side) -> Files:
    return {
        "config.yaml": public(yaml.safe_dump(dict(side.config), allow_unicode=True, sort_keys=False)),
        "overrides.yaml": public(yaml.safe_dump(list(side.overrides), allow_unicode=True)),
        "changes.json": {key: list(pair) for key, pair in side.changes.items()},
    }


def outputs(evaluation: Evaluation) -> dict[str, Iterator[Any]]:
    """What each stage gave out over all queries, as ids: where two runs first differ, a stage moved."""
    traces = sorted(evaluation.traces, key=lambda trace: trace.query.id)
    return {
        "chunker": iter(sorted(evaluation.chunks)),
        "retriever": ([hit.chunk.id for hit in trace.candidates.fused] for trace in traces),
        "access": ([hit.chunk.id for hit in trace.permitted] for trace in traces),
        "reranker": ([hit.chunk.id for hit in trace.ranked] for trace in traces),
        "packer": ([chunk.id for chunk in trace.context.passages] for trace in traces),
    }


def fingerprint(trace: Trace) -> str:
    """A hash of one query's ranking and context."""
    return digest([[hit.chunk.id for hit in trace.ranked], [chunk.id for chunk in trace.context.passages]])


def row(trace: Trace, evaluation: Evaluation) -> Node:
    query = trace.query
    return {
        "query_id": query.id,
        **labels(query, evaluation.clusters[query.id]),
        "unjudged": places(evaluation.unjudged[query.id]),
        "principals": sorted(query.principals),
        "filter": query.filter,
        "pool": {"chunks": trace.pool_chunks, "documents": trace.pool_documents, **evaluation.pools[query.id]},
        "asked": evaluation.asked[query.id],
        "spent": evaluation.spent[query.id],
        "values": to_json(evaluation.values[query.id]),
        "ranking_hash": fingerprint(trace),
    }


def labels(query: Query, cluster: str) -> Node:
    """What is known of a query beside its values: by this they are grouped, guarded and tested together."""
    return {
        "cohorts": query.cohorts,
        "intent": query.intent,
        "cluster": cluster,
        "critical": query.critical,
        "case": query.case,
        "answerable": query.answerable,
        "why": query.why,
    }


def ranked(trace: Trace) -> Node:
    """One query's ranking, best first, with scores where they fall from hit to hit.

    A reranker scores the head on a scale of its own: sorted by such scores, the tail would come out among the head.
    """
    scores = [hit.score for hit in trace.ranked]
    falling = all(before >= after for before, after in pairwise(scores))
    return {
        "query_id": trace.query.id,
        "hits": [located(hit.chunk) | ({"score": hit.score} if falling else {}) for hit in trace.ranked],
        "context": [located(chunk) for chunk in trace.context.passages],
    }


def places(chunks: Sequence[Chunk]) -> list[list[Any]]:
    """Passages as document id, start and end."""
    return [[chunk.document.id, chunk.start, chunk.end] for chunk in chunks]


def located(chunk: Chunk) -> Node:
    return {"doc_id": chunk.document.id, "start": chunk.start, "end": chunk.end}


def trec(trace: Trace) -> Iterator[str]:
    """The ranking of documents as a TREC run; scores count down by one, so that no tie rule moves a rank."""
    documents = list(dict.fromkeys(hit.chunk.document.id for hit in trace.ranked))
    for rank, document in enumerate(documents, 1):
        yield f"{escaped(trace.query.id)} Q0 {escaped(document)} {rank} {len(documents) - rank + 1} ablate-pct\n"


def escaped(name: str) -> str:
    """An id with white space and % percent-encoded, as `ablate-pct` in the last column says."""
    return re.sub(r"[\s%]", lambda found: quote(found[0]), name)
