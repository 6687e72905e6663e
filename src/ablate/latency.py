"""Milliseconds of single queries, both sides of a comparison measured in one session."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ablate.errors import ConfigError
from ablate.progress import followed
from ablate.types import Query, Trace

Timing = dict[str, Any]
"""One query: `{"query_id": ..., side: {stage: milliseconds}}`."""


@dataclass(frozen=True)
class Sample:
    """Time `queries` queries, drawn by the study's seed, after `warmup` unmeasured ones; sides alternate by query."""

    queries: int
    warmup: int

    def __post_init__(self) -> None:
        if self.queries < 1 or self.warmup < 0:
            raise ConfigError(
                f"queries, warmup: found {self.queries}, {self.warmup}, expected at least 1 and 0; "
                "use latency=off to measure nothing"
            )

    @property
    def measured(self) -> bool:
        return True

    def asked(self, queries: int) -> int:
        """How often each side is asked where there are so many queries."""
        return min(self.queries, queries) + self.warmup

    def __call__(
        self, sides: Mapping[str, Callable[[Query], Trace]], queries: Sequence[Query], seed: int
    ) -> list[Timing]:
        sample = random.Random(seed).sample(
            sorted(queries, key=lambda query: query.id), min(self.queries, len(queries))
        )
        for query in (sample * (1 + self.warmup))[: self.warmup]:
            for side in sides.values():
                side(query)
        timings = []
        for number, query in enumerate(followed("timing", sample, "queries")):
            # Who goes first alternates too: the second finds the processor's caches warm.
            order = list(sides)[:: -1 if number % 2 else 1]
            laps = {name: dict(sides[name](query).milliseconds) for name in order}
            timings.append({"query_id": query.id, **{name: laps[name] for name in sides}})
        return timings


@dataclass(frozen=True)
class Off:
    """Time nothing."""

    @property
    def measured(self) -> bool:
        return False

    def asked(self, queries: int) -> int:
        return 0

    def __call__(
        self, sides: Mapping[str, Callable[[Query], Trace]], queries: Sequence[Query], seed: int
    ) -> list[Timing]:
        return []
