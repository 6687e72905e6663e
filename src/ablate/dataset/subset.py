"""A dataset goes in, the few of its queries that are asked of every change come out."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace

from ablate.dataset.fingerprint import digest
from ablate.types import Dataset, Query

PER_STRATUM = 5
"""Queries of each cohort, intent and kind of answer that are always asked; all where there are fewer."""


def pr(dataset: Dataset) -> frozenset[str]:
    """What a pull request is asked: critical queries, closed incidents, and a few of every stratum.

    A stratum is a value of a cohort, an intent, or whether there is an answer and why not. Its queries are those whose
    ids have the least hashes, so that a frozen version has one subset, and a new query moves at most one out of it.
    """
    guarded = {query.id for query in dataset.queries if query.critical or query.case is not None}
    members: dict[str, list[str]] = defaultdict(list)
    for query in dataset.queries:
        for stratum in strata(query):
            members[stratum].append(query.id)
    drawn = {id for ids in members.values() for id in sorted(ids, key=lot)[:PER_STRATUM]}
    return frozenset(guarded | drawn)


def strata(query: Query) -> Iterator[str]:
    yield from (f"{key}={value}" for key, value in query.cohorts.items())
    yield f"intent={query.intent}"
    yield f"answerable={query.answerable} {query.why}"


def lot(query: str) -> str:
    return hashlib.sha256(query.encode()).hexdigest()


SUBSETS: Mapping[str, Callable[[Dataset], frozenset[str]]] = {"pr": pr}


def cut(dataset: Dataset, name: str | None) -> Dataset:
    """The dataset with the queries of a subset alone, and a fingerprint of their own; whole where `name` is None."""
    if name is None:
        return dataset
    chosen = SUBSETS[name](dataset)
    truth = digest([dataset.fingerprints["ground_truth"], name, sorted(chosen)])
    return replace(
        dataset,
        queries=tuple(query for query in dataset.queries if query.id in chosen),
        truths={query: truth for query, truth in dataset.truths.items() if query in chosen},
        fingerprints={**dataset.fingerprints, "ground_truth": truth},
        counts={**dataset.counts, "queries_outside_subset": len(dataset.queries) - len(chosen)},
    )
