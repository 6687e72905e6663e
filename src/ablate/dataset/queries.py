"""queries.jsonl in, queries out."""

from __future__ import annotations

from collections.abc import Iterable

from ablate.dataset.known import Known
from ablate.dataset.lines import Entry, described
from ablate.dataset.problems import Problems
from ablate.errors import DatasetError, problem
from ablate.moment import moment
from ablate.types import Query

WHY = ("absent", "access", "out_of_scope", "conflict")
_KEYS = (
    "_id", "text", "principals", "filter", "cohorts", "answerable", "why", "intent", "as_of", "subject", "compares",
    "critical", "cluster", "case", "metadata",
)  # fmt: skip


Rows = dict[str, tuple[Query, str]]
"""Queries by id, with file and line of each."""


def queries(entries: Iterable[Entry], known: Known, problems: Problems) -> Rows:
    """Queries without a broken rule, in the order of the file; `known` learns the ids of the others too.

    Broken rules are an unknown key, a wrong type, an id given twice, a reason that does not fit, or no query.
    """
    found: Rows = {}
    begun = len(problems)
    for entry in entries:
        before = len(problems)
        meant = entry.spelt(_KEYS, problems)
        with problems:
            known.add(meant)
        asked = query(meant, problems)
        if len(problems) == before:
            found[asked.id] = asked, entry.where
        else:
            known.missed(meant)
            found.pop(asked.id, None)  # of an id that stands twice, no one knows which query is meant
    if not found and len(problems) == begun:
        told, advice = (
            ("no query", "fill the file")
            if not known.skipped
            else (f"no query but {known.skipped} that are excluded", "correct the evidence of some, or add queries")
        )
        with problems:
            raise DatasetError([problem(known.file, None, told, "at least one", advice)])
    return found


def query(entry: Entry, problems: Problems) -> Query:
    """The query of a line; what is wrong with it goes to `problems`."""
    tried = problems.tried
    answerable = tried(None, entry.flag, "answerable", True)
    return Query(
        id=tried("", entry.name, "_id"),
        text=tried("", question, entry),
        principals=frozenset(tried((), entry.names, "principals")),
        filter=tried({}, entry.mapping, "filter"),
        cohorts=tried({}, cohorts, entry, problems),
        answerable=answerable is not False,
        why=None if answerable is None else tried(None, why, entry, answerable),
        intent=tried(None, entry.maybe, "intent"),
        as_of=tried(None, as_of, entry),
        subject=tried({}, entry.mapping, "subject"),
        compares=tried((), entry.names, "compares"),
        critical=tried(False, entry.flag, "critical", False),
        cluster=tried(None, entry.maybe, "cluster"),
        case=tried(None, entry.maybe, "case"),
        metadata=tried({}, entry.mapping, "metadata"),
    )


def question(entry: Entry) -> str:
    text = entry.string("text")
    if not text.strip():
        entry.fault("text", "no words", "a question", "write the question or remove the line")
    return text


def cohorts(entry: Entry, problems: Problems) -> dict[str, str]:
    found = entry.mapping("cohorts")
    inner = entry.inner("cohorts", found)
    return {key: problems.tried("", inner.name, key) for key in found if inner.has(key)}


def why(entry: Entry, answerable: bool) -> str | None:
    found = entry.maybe("why")
    if answerable and found is not None:
        entry.fault("why", f'"{found}" on an answerable query', "no reason", "set answerable to false or remove why")
    if not answerable and found not in WHY:
        entry.fault("why", described(found), f"one of {', '.join(WHY)}", "say why nobody can answer this query")
    return found


def as_of(entry: Entry) -> str | None:
    found = entry.maybe("as_of")
    if found is not None and moment(found) is None:
        entry.fault("as_of", described(found), "an ISO date (2025-06-01)", "correct the date")
    return found
