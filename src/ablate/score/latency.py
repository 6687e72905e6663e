"""Milliseconds of single queries go in, percentiles with distribution-free intervals and paired effects come out."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

LEVEL = 0.95
PERCENTILES = (50, 95, 99)
CLOCK = 1e-6
"""One nanosecond in ms, the clock's own grain: a stage that does nothing may measure 0, which has no logarithm."""


def latency(samples: Mapping[str, Sequence[float]]) -> dict[str, dict[str, Any]]:
    """For every stage, p50, p95 and p99 of its samples in ms: `{"mean": value, "n": n, "interval": [low, high]}`.

    A value is an order statistic, the least sample that at least p % of the samples do not exceed. The interval is
    between two order statistics and holds the true percentile in at least 95 of 100 samples, whatever the
    distribution (David and Nagaraja 2003, section 7.1); a bound is None where the sample is too small to have one.
    """
    return {
        f"latency/{stage}_p{percent}": _percentile(sorted(times), percent)
        for stage, times in samples.items()
        for percent in PERCENTILES
        if times
    }


def paired(before: Sequence[float], after: Sequence[float]) -> dict[str, Any]:
    """The median over queries of log(after / before), with its interval; both sides measured in one session."""
    ratios = sorted(math.log(max(new, CLOCK) / max(old, CLOCK)) for old, new in zip(before, after, strict=True))
    return _percentile(ratios, 50) if ratios else {"mean": None, "n": 0, "interval": [None, None]}


def _percentile(ordered: Sequence[float], percent: int) -> dict[str, Any]:
    n = len(ordered)
    low, high = order_bounds(n, percent)
    return {
        "mean": ordered[-(-n * percent // 100) - 1],
        "n": n,
        "interval": [ordered[low - 1] if low else None, ordered[high - 1] if high <= n else None],
    }


def order_bounds(n: int, percent: int) -> tuple[int, int]:
    """Ranks, from 1, of the samples that bound the percentile; 0 below or n + 1 above say that there is no bound.

    How many of n samples fall below the percentile is binomial: the lower rank is the greatest that leaves at most
    2.5 % below it, the upper the least that leaves at most 2.5 % at or above it.
    """
    share, tail = percent / 100, (1 - LEVEL) / 2
    low, below = 0, 0.0
    while low < n and below + _binomial(low, n, share) <= tail:
        below += _binomial(low, n, share)
        low += 1
    high, above = n + 1, 0.0
    while high > 1 and above + _binomial(high - 1, n, share) <= tail:
        above += _binomial(high - 1, n, share)
        high -= 1
    return low, high


def _binomial(successes: int, n: int, share: float) -> float:
    ways = math.lgamma(n + 1) - math.lgamma(successes + 1) - math.lgamma(n - successes + 1)
    return math.exp(ways + successes * math.log(share) + (n - successes) * math.log1p(-share))
