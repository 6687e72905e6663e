"""A run goes in, the columns that the table of runs shows of it come out: each with its cells and its legend."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ablate.comparison import (
    COVERAGE,
    DOCUMENT_NDCG,
    DOCUMENT_RECALL,
    EXPOSED,
    P50,
    PASSED,
    SUFFICIENT,
    TOKENS,
    VIOLATIONS,
    at_budget,
    headline,
    paired,
    short,
    total,
)
from ablate.page import milliseconds, signed
from ablate.records import RunRecord

P95 = "latency/total_p95"
NA = "n/a"
OF_EXPOSED = "0 of 37: of 37 queries that could have been handed something forbidden, none was"


@dataclass(frozen=True, slots=True)
class Column:
    """One column: what it is called, the measures that its legend explains, what stands in a run's cell."""

    heading: str
    measures: tuple[str, ...]
    cell: Callable[[RunRecord, RunRecord | None], str]
    notes: tuple[str, ...] = ()


def columns(lead: RunRecord) -> list[Column]:
    """What is shown for runs like `lead`: evidence, or documents where nothing is known about evidence."""
    k, depth = lead.config["k"], lead.config["depth"]
    if headline(lead) == SUFFICIENT:
        budget = at_budget(lead)
        first = [
            differing("sufficient", SUFFICIENT),
            plain(f"found in {depth}", f"retrieval/coverage_at_{depth}"),
            plain(f"found in {k}", f"retrieval/coverage_at_{k}"),
            plain("found in context", COVERAGE),
            *([plain(f"found in {lead.config['budget']} tokens", budget)] if budget else []),
        ]
    else:
        first = [differing(heading(m), m) for m in (DOCUMENT_NDCG, DOCUMENT_RECALL)]
        first += [plain(heading(m), m) for m in (f"doc/recall_at_{depth}", "doc/mrr")]
    return [
        *first,
        plain("tokens", TOKENS, "{:.0f}".format),
        Column(
            "p50/p95 ms",
            (P50, P95),
            lambda record, _: speed(record),
        ),
        Column("forbidden", (VIOLATIONS, EXPOSED), lambda record, _: violations(record), (OF_EXPOSED,)),
    ]


def differing(heading: str, measure: str) -> Column:
    """A mean and, for a variant, the mean paired difference from its baseline."""

    def cell(record: RunRecord, baseline: RunRecord | None) -> str:
        value = figure(record, measure)
        pair = paired(baseline, record, measure) if baseline and record.finished else None
        return f"{value} {signed(pair.difference)}" if pair else value

    return Column(heading, (measure,), cell, ("with sign: mean difference from the baseline on the same queries",))


def plain(heading: str, measure: str, form: Callable[[float], str] = "{:.3f}".format) -> Column:
    """A mean."""
    return Column(heading, (measure,), lambda record, _: figure(record, measure, form))


def figure(record: RunRecord, measure: str, form: Callable[[float], str] = "{:.3f}".format) -> str:
    """A mean as shown; nothing for a failed run, n/a where it applies to no query."""
    mean = record.mean(measure)
    if not record.finished:
        return ""
    return NA if mean is None else form(mean)


def violations(record: RunRecord) -> str:
    """Forbidden documents handed over, and how many queries could have been handed one."""
    if not record.finished:
        return ""
    found, exposed = record.values(VIOLATIONS), sum(value > 0 for value in record.values(EXPOSED).values())
    if not found:
        return "not checked"
    documents, passed = total(record, VIOLATIONS), total(record, PASSED)
    if passed and not documents:
        return f"0, {passed} among candidates, {exposed or 'none'} exposed"
    return f"0 of {exposed}" if exposed and not documents else f"{documents}, {exposed or 'none'} exposed"


def speed(record: RunRecord) -> str:
    """Median and p95 latency."""
    if not record.finished or record.mean(P50) is None:
        return figure(record, P50)
    return f"{figure(record, P50, milliseconds)}/{figure(record, P95, milliseconds)}"


def heading(measure: str) -> str:
    """A measure as a column names it: `doc ndcg at 10`."""
    return short(measure).replace("/", " ").replace("_", " ")
