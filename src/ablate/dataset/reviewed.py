"""`reviewed` of a ground truth line in, the alternatives that an expert confirmed out; what it may hold is checked."""

from __future__ import annotations

from typing import Any

from ablate.dataset.lines import Entry, described, near
from ablate.dataset.problems import Problems
from ablate.moment import moment

ACTIONS = ("added", "confirmed", "rejected", "judged", "incident")
CONFIRMING = ("added", "confirmed")
"""Actions by which an expert vouches for the alternative that the entry names."""

_KEYS = ("who", "when", "action", "alternative", "fact", "unit", "note")
_UNIT = ("doc_id", "start", "end", "quote", "spans", "fact", "unresolved", "grade")


def confirmed(value: Any) -> frozenset[int]:
    """The indexes of the alternatives that an expert added or confirmed; `value` is the list under `reviewed`."""
    return frozenset(
        entry["alternative"]
        for entry in (value if isinstance(value, list) else ())
        if isinstance(entry, dict) and entry.get("action") in CONFIRMING and isinstance(entry.get("alternative"), int)
    )


def check(entry: Entry, problems: Problems) -> None:
    """Check the list under `reviewed` of a line of ground truth, noting an unknown key, a wrong type or no such action.

    What was reviewed may have gone since, so a unit is not looked up; an alternative that was confirmed must be there.
    """
    alternatives = entry.value.get("alternatives")
    there = len(alternatives) if isinstance(alternatives, list) else 0
    for number, value in enumerate(problems.tried([], entry.items, "reviewed")):
        with problems:
            one(entry.inner(f"reviewed[{number}]", value).spelt(_KEYS, problems), there, problems)


def one(entry: Entry, alternatives: int, problems: Problems) -> None:
    problems.tried("", entry.name, "who")
    problems.tried("", when, entry)
    problems.tried("", entry.maybe, "fact")
    problems.tried("", entry.maybe, "note")
    with problems:
        unit(entry)
    action = doing(entry)
    if entry.has("alternative"):
        index = entry.whole("alternative")
        if index < 0 or (action in CONFIRMING and index >= alternatives):
            entry.fault(
                "alternative",
                described(index),
                f"an index from 0 of one of the line's {alternatives} alternatives",
                "correct it, or leave the key out",
            )


def when(entry: Entry) -> None:
    found = entry.name("when")
    if moment(found) is None:
        entry.fault("when", described(found), "an ISO date or time (2025-06-01T12:30:00Z)", "correct the date")


def doing(entry: Entry) -> str:
    found = entry.name("action")
    if found not in ACTIONS:
        advice = near(found, ACTIONS) or "correct the action"
        entry.fault("action", described(found), f"one of {', '.join(ACTIONS)}", advice)
    return found


def unit(entry: Entry) -> None:
    if entry.has("unit"):
        inner = entry.inner("unit", entry.value["unit"])
        inner.only(_UNIT)
        inner.name("doc_id")
