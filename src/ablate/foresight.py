"""A line and the searches that it will be asked for go in, the line that has made them already comes out."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from ablate.pipeline import Asked, Ready
from ablate.progress import Meter
from ablate.retriever.search import together
from ablate.types import Candidates, Query

BATCH = 1024
"""Queries that are searched for at once."""


def foreseen(ready: Ready, searches: Iterable[Asked]) -> Ready:
    """The same line with these searches made: those among equal documents together, equal ones once.

    It gives what `ready` gives, but tells nothing about the time that a search takes.
    """
    groups: dict[bytes, tuple[Asked, dict[str, Query]]] = {}
    for asked in searches:
        groups.setdefault(asked.among, (asked, {}))[1][asked.query.id] = asked.query
    found: dict[tuple[str, bytes], Candidates] = {}
    with Meter("searching", "queries") as meter:
        meter.expect(sum(len(queries) for _, queries in groups.values()))
        for among, (asked, queries) in groups.items():
            search, allowed = ready.among(asked)
            for start in range(0, len(queries), BATCH):
                part = list(queries.values())[start : start + BATCH]
                answers = together(search, part, allowed, ready.depth)
                found |= {(query.id, among): answer for query, answer in zip(part, answers, strict=True)}
                meter.step(len(part))
    return replace(ready, foreseen=found)
