"""queries.jsonl in, queries out."""

from __future__ import annotations

from collections.abc import Iterable

from ablate.dataset.documents import unique
from ablate.dataset.lines import Entry, described
from ablate.errors import DatasetError
from ablate.moment import moment
from ablate.types import Query

WHY = ("absent", "access", "out_of_scope", "conflict")
_KEYS = (
    "_id", "text", "principals", "filter", "cohorts", "answerable", "why", "intent", "as_of", "subject", "compares",
    "critical", "cluster", "case", "metadata",
)  # fmt: skip


def queries(entries: Iterable[Entry]) -> dict[str, tuple[Query, str]]:
    """Queries by id with file and line of each, in the order of the file.

    Raises:
        DatasetError: an unknown key, a wrong type, an id given twice, a reason that does not fit, or no query.

    """
    found: dict[str, tuple[Query, str]] = {}
    seen: dict[str, str] = {}
    for entry in entries:
        entry.only(_KEYS)
        unique(entry, seen)
        found[entry.name("_id")] = (query(entry), entry.where)
    if not found:
        raise DatasetError("queries.jsonl: found no query, expected at least one; fill the file")
    return found


def query(entry: Entry) -> Query:
    answerable = entry.flag("answerable", True)
    text = entry.string("text")
    if not text.strip():
        entry.fault("text", "no words", "a question", "write the question or remove the line")
    return Query(
        id=entry.name("_id"),
        text=text,
        principals=frozenset(entry.names("principals")),
        filter=entry.mapping("filter"),
        cohorts=cohorts(entry),
        answerable=answerable,
        why=why(entry, answerable),
        intent=entry.maybe("intent"),
        as_of=as_of(entry),
        subject=entry.mapping("subject"),
        compares=entry.names("compares"),
        critical=entry.flag("critical", False),
        cluster=entry.maybe("cluster"),
        case=entry.maybe("case"),
        metadata=entry.mapping("metadata"),
    )


def cohorts(entry: Entry) -> dict[str, str]:
    found = entry.mapping("cohorts")
    inner = entry.inner("cohorts", found)
    return {key: inner.name(key) for key in found if inner.has(key)}


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
