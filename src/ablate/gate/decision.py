"""Outcomes go in, one decision comes out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from ablate.gate.outcome import Outcome, State


class Decision(StrEnum):
    """What may be done with a run."""

    SHIP = "ship"
    CANARY = "canary"
    STOP = "stop"


@dataclass(frozen=True, slots=True)
class Decided:
    """The decision and its exit code: 0 pass, 1 fail, 2 cannot judge."""

    decision: Decision
    code: int


def decided(outcomes: Sequence[Outcome], doubt: Decision) -> Decided:
    """Decide: a rule that fails stops, whatever the others say; then a hard rule that cannot be judged stops.

    What cannot be judged by statistics stops or, where the policy's `doubt` says so, goes to a few users. A policy
    without a rule cannot judge anything.
    """
    states = [outcome.state for outcome in outcomes]
    unsure = [outcome for outcome in outcomes if outcome.state is State.CANNOT_JUDGE]
    if State.FAILED in states:
        return Decided(Decision.STOP, 1)
    if not outcomes or any(outcome.hard for outcome in unsure):
        return Decided(Decision.STOP, 2)
    if unsure:
        return Decided(doubt, 0 if doubt is Decision.CANARY else 2)
    return Decided(Decision.SHIP, 0)
