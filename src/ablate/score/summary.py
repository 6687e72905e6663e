"""Values per query go in, per measure a mean, a distribution and the means of cohorts and intents come out."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from ablate.measures import HIGHER, NEITHER, describe
from ablate.types import Query

COMPLETION_RANK = "retrieval/completion_rank"
PER_VALUE = 5
"""Queries per value, on average, from which a cohort key is averaged and not only a label."""
NAMED = 20
"""Queries from which a cohort may be called the worst."""

Values = Mapping[str, float | None]
Average = Callable[[Iterable[str]], dict[str, Any]]


def summarise(queries: Sequence[Query], values: Mapping[str, Values]) -> dict[str, dict[str, Any]]:
    """Measure -> mean, sum, n, not_applicable, distribution, cohorts, intents and worst_cohort.

    `values` holds those of every query by its id; None is not applicable, counted and in no mean. A cohort is called
    `key=value`. `retrieval/completion_rank` has no mean but a histogram whose last class is "never".
    """
    names = dict.fromkeys(name for query in queries for name in values[query.id])
    cohorts, intents = _cohorts(queries), _intents(queries)
    everyone = [query.id for query in queries]
    measures = {
        name: _summary(name, {query: values[query].get(name) for query in everyone}, cohorts, intents) for name in names
    }
    for name, numerator, denominator, scale in RATIOS:
        if numerator in names and denominator in names:
            average = _ratio(values, numerator, denominator, scale)
            measures[name] = {**average(everyone), **_groups(name, average, cohorts, intents)}
    return measures


RATIOS = (
    ("context/evidence_per_1k_tokens", "context/facts", "context/tokens", 1000.0),
    ("cost/per_sufficient_query", "cost/query", "context/sufficient", 1.0),
)
"""Ratios of totals: name, what is summed above and below the line, factor."""


def whole(values: Values, n: int) -> dict[str, dict[str, Any]]:
    """Values that belong to a run and not to its queries (`ingestion/`, `chunking/`), in the form of a summary."""
    return {
        name: {"mean": value, "n": 0 if value is None else n, "not_applicable": n if value is None else 0}
        for name, value in values.items()
    }


def to_json(values: Values) -> dict[str, float | None]:
    """Values as JSON has them: a completion rank of never is null, and one that does not apply is left out."""
    kept = {name: value for name, value in values.items() if name != COMPLETION_RANK or value is not None}
    return {name: None if value == math.inf else value for name, value in kept.items()}


def _summary(
    name: str,
    values: Values,
    cohorts: Mapping[str, Sequence[str]],
    intents: Mapping[str, Sequence[str]],
) -> dict[str, Any]:
    applied = [value for value in values.values() if value is not None]
    average = _ranks(values) if name == COMPLETION_RANK else _mean(values)
    return {
        **average(values),
        "distribution": _histogram(applied) if name == COMPLETION_RANK else _quantiles(applied),
        **_groups(name, average, cohorts, intents),
    }


def _groups(
    name: str, average: Average, cohorts: Mapping[str, Sequence[str]], intents: Mapping[str, Sequence[str]]
) -> dict[str, Any]:
    means = {cohort: average(members) for cohort, members in cohorts.items()}
    return {
        "cohorts": means,
        "intents": {intent: average(members) for intent, members in intents.items()},
        "worst_cohort": _worst(means, describe(name).better),
    }


def _mean(values: Values) -> Average:
    def average(members: Iterable[str]) -> dict[str, Any]:
        found = [values[member] for member in members]
        applied = [value for value in found if value is not None]
        # fsum rounds once, so that a mean does not depend on the order of the queries.
        total = math.fsum(applied)
        mean = total / len(applied) if applied else None
        return {"mean": mean, "sum": total, "n": len(applied), "not_applicable": len(found) - len(applied)}

    return average


def _ranks(values: Values) -> Average:
    """A rank of never has no mean: only its counts are given."""

    def average(members: Iterable[str]) -> dict[str, Any]:
        found = [values[member] for member in members]
        n = sum(value is not None for value in found)
        return {"mean": None, "n": n, "not_applicable": len(found) - n}

    return average


def _ratio(values: Mapping[str, Values], numerator: str, denominator: str, scale: float) -> Average:
    def average(members: Iterable[str]) -> dict[str, Any]:
        pairs = [(values[member].get(numerator), values[member].get(denominator)) for member in members]
        both = [(above, below) for above, below in pairs if above is not None and below is not None]
        above, below = math.fsum(pair[0] for pair in both), math.fsum(pair[1] for pair in both)
        mean = scale * above / below if below else (0.0 if both and not above else None)
        return {"mean": mean, "n": len(both), "not_applicable": len(pairs) - len(both)}

    return average


def _cohorts(queries: Sequence[Query]) -> dict[str, list[str]]:
    """`key=value` -> ids of its queries, for the keys that have enough queries per value."""
    members: dict[str, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    for query in queries:
        for key, value in query.cohorts.items():
            members[key][value].append(query.id)
    return {
        f"{key}={value}": ids
        for key, by_value in sorted(members.items())
        if sum(map(len, by_value.values())) >= PER_VALUE * len(by_value)
        for value, ids in sorted(by_value.items())
    }


def _intents(queries: Sequence[Query]) -> dict[str, list[str]]:
    members: dict[str, list[str]] = defaultdict(list)
    for query in queries:
        if query.intent is not None:
            members[query.intent].append(query.id)
    return dict(sorted(members.items()))


def _worst(means: Mapping[str, Mapping[str, Any]], better: str) -> str | None:
    large = [cohort for cohort, found in means.items() if found["n"] >= NAMED and found["mean"] is not None]
    if better == NEITHER or not large:
        return None
    return (min if better == HIGHER else max)(large, key=lambda cohort: means[cohort]["mean"])


def _quantiles(values: Sequence[float]) -> dict[str, float]:
    """Order statistics: every number is a value that some query has."""
    ordered = sorted(values)
    if not ordered:
        return {}
    inner = {f"p{percent}": ordered[-(-len(ordered) * percent // 100) - 1] for percent in (10, 25, 50, 75, 90)}
    return {"min": ordered[0], **inner, "max": ordered[-1]}


def _histogram(ranks: Sequence[float]) -> dict[str, int]:
    counts = Counter(ranks)
    never = counts.pop(math.inf, 0)
    return {**{str(int(rank)): counts[rank] for rank in sorted(counts)}, "never": never}
