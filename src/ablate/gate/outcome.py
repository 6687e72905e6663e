"""What one rule says of a run."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class State(StrEnum):
    """Whether a rule holds."""

    PASSED = "passed"
    FAILED = "failed"
    CANNOT_JUDGE = "cannot judge"


@dataclass(frozen=True, slots=True)
class Outcome:
    """One rule: its name, whether no gain pays for it (`hard`), whether it holds, and the sentence that says why."""

    rule: str
    hard: bool
    state: State
    why: str
