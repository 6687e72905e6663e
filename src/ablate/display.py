"""A run goes in, what MLflow shows of it comes out: its name, description, tags, parameters and metrics."""

from __future__ import annotations

import json
import posixpath
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ablate.comparison import TOKENS, at_budget, forbidden, headline, paired, second
from ablate.page import public, signed
from ablate.records import RunRecord

if TYPE_CHECKING:
    from ablate.table import Comparison
    from ablate.verdict import Finding

NOTE_LIMIT = 8000
VALUE_LIMIT = 500
METRIC_LIMIT = 80
NAME_LIMIT = 250


def name(record: RunRecord, baseline: RunRecord | None, finding: Finding | None) -> str:
    """What the page of runs shows: `reranker +0.083 better`, `baseline 0.612`, `reranker FAILED`."""
    if not record.finished:
        return f"{record.label} FAILED"
    alarm = " FORBIDDEN" if forbidden(record) else ""
    if finding:
        return f"{record.label} {signed(finding.verdict.difference)} {finding.verdict.word}{alarm}"
    if baseline and (pair := paired(baseline, record, headline(baseline))):
        return f"{record.label} {signed(pair.difference)}{alarm}"
    mean = record.mean(headline(record))
    return f"{record.label}{alarm}" if mean is None else f"{record.label} {mean:.3f}{alarm}"


def told(record: RunRecord, comparison: Comparison) -> dict[str, str]:
    """The tags that tell what came of a run; one more variant of its study, and they may be others."""
    finding = comparison.findings.get(record.id)
    return {
        "mlflow.runName": name(record, comparison.baseline(record), finding),
        "mlflow.note.content": comparison.markdown(record, NOTE_LIMIT),
        **({"ablate.verdict": str(finding.verdict.word)} if finding else {}),
    }


def tags(record: RunRecord) -> dict[str, str]:
    """What runs are searched by."""
    values: dict[str, Any] = {
        "study": record.study,
        "sweep": record.facts.get("sweep"),
        "variant": record.variant,
        "component": record.component,
        "baseline_run_id": record.baseline,
        "rescored_from": record.rescored_from,
        "error": record.error,
        **{f"fingerprint.{name}": value for name, value in record.fingerprints.items()},
    }
    for key, (before, after) in record.changes.items():
        values[f"change.{legal(key)}"] = f"{text(before)} -> {text(after)}"
    found = {f"ablate.{key}": cut(str(value)) for key, value in values.items() if value is not None}
    command = " ".join(["python -m ablate", *record.overrides])
    own = {"source.name": cut(public(command)), "source.type": "LOCAL", "source.git.commit": record.commit}
    return {**found, **{f"mlflow.{key}": value for key, value in own.items() if value}}


def source(record: RunRecord) -> str:
    """Where the data set was read, as MLflow writes it."""
    node = record.config.get("dataset")
    folder = node.get("dir") if isinstance(node, Mapping) else None
    return json.dumps({"uri": str(folder or record.dataset)}, ensure_ascii=False)


def parameters(config: Mapping[str, Any]) -> dict[str, str]:
    """The resolved config as MLflow parameters: dotted keys, short values."""
    return {legal(key): cut(public(text(value))) for key, value in flat(config)}


def flat(node: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Dotted key and value of every leaf."""
    for key, value in node.items():
        if isinstance(value, Mapping) and value:
            yield from flat(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", value


def figures(record: RunRecord, baseline: RunRecord | None) -> dict[str, float]:
    """The means that MLflow shows, at most 80: the rest is in metrics.json. What does not apply is left out."""
    from ablate.verdict import primary

    deltas, first = {}, primary(baseline or record, record)
    if baseline and record.finished:
        for measure in filter(None, (first, headline(baseline), second(baseline), at_budget(baseline), TOKENS)):
            if pair := paired(baseline, record, measure):
                deltas[f"delta/{legal(measure)}"] = round(pair.difference, 12)  # -0.05, not -0.050000000000000044
    wanted = [first.__eq__, *chosen(record.config.get("k"), record.config.get("budget"))]
    means = ((measure, record.mean(measure)) for pattern in wanted for measure in record.measures if pattern(measure))
    found = {legal(measure): mean for measure, mean in means if mean is not None}
    return dict(list({**deltas, **found}.items())[:METRIC_LIMIT])


def chosen(k: int | None, budget: int | None) -> Sequence[Callable[[str], bool]]:
    """Which measures go to MLflow, what matters most first: at the study's own cut-offs, documents at 10 too."""
    patterns = (
        r"context/.*",
        r"acl/.*",
        rf"retrieval/(.*_at_{k}|[a-z_]*|coverage_(at|area)_{budget}_tokens)",
        rf"doc/(.*_at_({k}|10)|[a-z_]*)",
        r"latency/total.*",
        r"(abstention|freshness|authority|ingestion|chunking|cost)/.*",
    )
    return [re.compile(pattern).fullmatch for pattern in patterns]  # type: ignore[misc]


def legal(name: str) -> str:
    """`name` with what MLflow refuses written as its code point, `a,b` as `a-x2c-b`: letters of any script stay."""
    safe = re.sub(r"[^\w.\- /]", coded, name)[:NAME_LIMIT]
    if posixpath.normpath(safe) != safe or safe.startswith(("/", "..")) or safe == ".":  # a path to somewhere else
        safe = re.sub(r"[/.]", coded, safe)[:NAME_LIMIT]
    return safe


def coded(found: re.Match[str]) -> str:
    return f"-x{ord(found[0]):x}-"


def text(value: Any) -> str:
    """A setting as one line: text as it is, anything else as JSON."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)


def cut(value: str) -> str:
    """At most 500 characters, and visibly so."""
    mark = " ... (cut)"
    return value if len(value) <= VALUE_LIMIT else value[: VALUE_LIMIT - len(mark)] + mark
