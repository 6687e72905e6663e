"""The scoring settings of a study, checked: cut-offs, the share of a unit that counts as found, and prices."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from ablate.errors import ConfigError

SPENT = ("context_tokens", "queries", "rerank_pairs")
"""What a query spends and `cost` may price: tokens handed over, the query itself, pairs scored by a reranker."""


@dataclass(frozen=True)
class Scoring:
    """What every run of a study is scored with; part of the study's fingerprint.

    `cutoffs` are the k of the measures at k, in chunks (documents for `doc/`). `span_threshold` is the share of a
    unit's letters and digits, above 0 and at most 1, that must be covered. `cost` maps what a run spends
    (`context_tokens`, `rerank_pairs`, ...) to the price of one; empty, cost is not applicable. `false_answer_cost` is
    what answering a question without an answer costs, where abstaining from one that has an answer costs 1.

    Raises:
        ConfigError: a value outside its range.

    """

    cutoffs: list[int]
    span_threshold: float
    cost: dict[str, Any]
    false_answer_cost: float

    def __post_init__(self) -> None:
        if not self.cutoffs or any(not _whole(k) or k < 1 for k in self.cutoffs):
            raise ConfigError(f"cutoffs: found {self.cutoffs}, expected whole numbers from 1; give at least one")
        if len(set(self.cutoffs)) < len(self.cutoffs):
            raise ConfigError(f"cutoffs: found {self.cutoffs}, expected each cut-off once; remove the repeated one")
        if not _number(self.span_threshold) or not 0 < self.span_threshold <= 1:
            raise ConfigError(
                f"span_threshold: found {self.span_threshold}, expected a share above 0 and at most 1; use 1.0 to ask "
                "for whole units"
            )
        if not _number(self.false_answer_cost) or not self.false_answer_cost > 0:
            raise ConfigError(
                f"false_answer_cost: found {self.false_answer_cost}, expected a number above 0; 1.0 weighs both alike"
            )
        for name, price in self.cost.items():
            if name not in SPENT:
                raise ConfigError(
                    f"cost.{name}: found a price for what no stage counts, expected some of {', '.join(SPENT)}; "
                    "remove it or spell it so"
                )
            if not _number(price) or price < 0:
                raise ConfigError(
                    f"cost.{name}: found {price!r}, expected the price of one as a number from 0; remove what is free"
                )


def _whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
