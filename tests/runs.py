"""Synthetic run directories: from values a query to a record on disk, with the names that real runs have."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ablate import records
from ablate.records import RunRecord
from ablate.workspace import Workspace

FINGERPRINTS = {"corpus": "c0" * 32, "ground_truth": "6e" * 32, "scoring": "5c" * 32, "code": "cd" * 32}
CONFIG: dict[str, Any] = {
    "dataset": {"_target_": "ablate.dataset.Folder", "dir": "отчёты и база", "evidence": "none"},
    "reranker": {"_target_": "ablate.reranker.Keep"},
    "k": 5,
    "depth": 50,
    "budget": 640,
}


def build(
    workspace: Workspace,
    variant: str = "baseline",
    values: Mapping[str, Mapping[str, float | None]] | None = None,
    *,
    baseline: RunRecord | str | None = None,
    component: str | None = None,
    cohorts: Mapping[str, Mapping[str, str]] | None = None,
    latency: Mapping[str, float] | None = None,
    config: Mapping[str, Any] | None = None,
    fingerprints: Mapping[str, str] | None = None,
    hashes: Mapping[str, str] | None = None,
    pool: Mapping[str, int] | None = None,
    files: Mapping[str, Any] | None = None,
    study: str = "учёба-1a2b3c4d",
    run: str | None = None,
    started: str = "2025-06-01T12:00:00+00:00",
    error: str | None = None,
    overrides: tuple[str, ...] = (),
    labels: Mapping[str, Mapping[str, Any]] | None = None,
) -> RunRecord:
    """Write one run; `values` is query -> measure -> value, None where a measure does not apply.

    `labels` is what else a line of `queries.jsonl` says: key -> query -> value.
    """
    run = run or f"{variant}-0001"
    values = {} if values is None else values
    base = baseline.id if isinstance(baseline, RunRecord) else baseline
    facts = {
        "run": run,
        "study": study,
        "dataset": "учёба",
        "variant": variant,
        "component": component or (None if variant == "baseline" else "reranker"),
        "status": "failed" if error else "finished",
        "error": error,
        "baseline": base,
        "sweep": "7",
        "started": started,
        "seconds": 3.5,
        "latency": bool(latency),
        "fingerprints": {**FINGERPRINTS, "config": f"{variant}{overrides}", **(fingerprints or {})},
    }
    content: dict[str, Any] = {
        "run.json": facts,
        "config.yaml": _yaml({**CONFIG, **(config or {})}),
        "overrides.yaml": _yaml(list(overrides)),
        "changes.json": {"reranker._target_": ["ablate.reranker.Keep", "ablate.reranker.CrossEncoder"]} if base else {},
        **(files or {}),
    }
    if not error:
        content |= {
            "metrics.json": {"measures": _measures(values, cohorts or {}, latency or {}), "counts": {}},
            "queries.jsonl": [
                {
                    "query_id": query,
                    "cohorts": (cohorts or {}).get(query, {}),
                    "pool": pool or {"chunks": 100, "documents": 10},
                    **{key: per.get(query) for key, per in (labels or {}).items()},
                    "values": row,
                    "ranking_hash": (hashes or {}).get(query, f"{variant} {query}"),
                }
                for query, row in values.items()
            ],
        }
    return records.write(workspace.runs / study / run, content)


def evidence(sufficient: float, coverage: float, tokens: float = 600, rr: float = 0.5) -> dict[str, float | None]:
    """The values of one query that has span evidence, in a corpus with access lists."""
    return {
        "context/sufficient": sufficient,
        "context/coverage": coverage,
        "context/tokens": tokens,
        "retrieval/coverage_at_50": max(coverage, 0.9),
        "retrieval/coverage_at_5": coverage,
        "retrieval/coverage_at_640_tokens": coverage,
        "retrieval/ndcg_at_5": coverage / 2,
        "retrieval/completion_rr": rr,
        "doc/ndcg_at_10": coverage / 3,
        "doc/recall_at_10": coverage / 4,
        "acl/violations": 0.0,
        "acl/exposure": 1.0,
    }


def study(workspace: Workspace, queries: int = 40) -> tuple[RunRecord, RunRecord, RunRecord]:
    """A baseline, a reranker that helps on every fourth query and hurts on every tenth, and a variant that failed."""
    cohorts = {f"вопрос-{n}": {"язык": "ru" if n % 2 else "中文"} for n in range(queries)}
    before = {name: evidence(n % 3 == 0, 1.0 if n % 3 == 0 else 0.5) for n, name in enumerate(cohorts)}
    after = {
        name: evidence(n % 4 == 0 or (n % 3 == 0 and n % 10 != 0), 1.0 if n % 4 == 0 else 0.5, 640, 1.0)
        for n, name in enumerate(cohorts)
    }
    baseline = build(workspace, values=before, cohorts=cohorts, latency={"total_p50": 12.0, "total_p95": 30.0})
    reranker = build(
        workspace,
        "reranker",
        after,
        baseline=baseline,
        cohorts=cohorts,
        latency={"total_p50": 310.0, "total_p95": 512.0, "baseline_p50": 12.4},
        started="2025-06-01T12:01:00+00:00",
    )
    broken = build(
        workspace,
        "hybrid",
        baseline=baseline,
        component="retriever",
        error="ValueError: нет индекса | индекс пуст",
        started="2025-06-01T12:02:00+00:00",
    )
    return baseline, reranker, broken


def _measures(values: Any, cohorts: Any, latency: Any) -> dict[str, Any]:
    labels = sorted({f"{key}={value}" for row in cohorts.values() for key, value in row.items()})
    found = {}
    for measure in dict.fromkeys(measure for row in values.values() for measure in row):
        column = {query: row.get(measure) for query, row in values.items()}
        among = {
            label: [query for query in values if label in {f"{k}={v}" for k, v in cohorts.get(query, {}).items()}]
            for label in labels
        }
        found[measure] = {
            **_mean(list(column.values())),
            "cohorts": {label: _mean([column[query] for query in members]) for label, members in among.items()},
        }
    return found | {f"latency/{name}": {"mean": value, "n": 40, "not_applicable": 0} for name, value in latency.items()}


def _mean(values: list[float | None]) -> dict[str, Any]:
    applied = [value for value in values if value is not None]
    mean = sum(applied) / len(applied) if applied else None
    return {"mean": mean, "n": len(applied), "not_applicable": len(values) - len(applied)}


def _yaml(value: Any) -> str:
    from omegaconf import OmegaConf

    return OmegaConf.to_yaml(OmegaConf.create(value))
