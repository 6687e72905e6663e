"""p-values of a family go in; which stand when all are asked at once comes out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Step:
    """One member of a family: its p-value, the level that it was tested at, and its p-value adjusted for the family.

    `alpha` is the step's own share of the family's; an interval at level 1 - `alpha` says what the step says.
    """

    p: float
    adjusted: float
    alpha: float
    rejected: bool


def holm(p_values: Mapping[str, float], alpha: float = 0.05) -> dict[str, Step]:
    """Test every member so that the chance of any false rejection in the family is at most `alpha`, however dependent.

    The least p-value is held against alpha / m, the next against alpha / (m - 1), and so on to the first that fails:
    it and all after it are held against the share at which it failed. The adjusted p-value is the least alpha that
    would reject. Holm 1979, A simple sequentially rejective multiple test procedure, Scandinavian Journal of Statistics
    6, 65-70. Equal p-values are treated equally.
    """
    ordered = sorted(p_values, key=lambda name: p_values[name])
    steps: dict[str, Step] = {}
    adjusted, share, rejecting, last = 0.0, 0.0, True, None
    for place, name in enumerate(ordered):
        p, left = p_values[name], len(ordered) - place
        if rejecting and p != last:
            share = alpha / left
            rejecting = p <= share
        adjusted, last = min(1.0, max(adjusted, left * p)), p
        steps[name] = Step(p, adjusted, share, rejecting)
    return {name: steps[name] for name in p_values}
