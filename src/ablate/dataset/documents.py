"""Lines of corpus.jsonl and groups.jsonl in; documents, groups and who may read what out."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property, lru_cache
from graphlib import CycleError, TopologicalSorter
from typing import Any

from ablate.dataset.known import Known
from ablate.dataset.lines import Entry
from ablate.dataset.problems import Problems
from ablate.errors import DatasetError, problem
from ablate.moment import moment
from ablate.types import Acl, Document


def document(entry: Entry, title: bool, problems: Problems) -> Document:
    """The document of a line; what is wrong with it goes to `problems`. With `title` false the title is empty."""
    key, text = problems.tried("", entry.name, "_id"), problems.tried("", entry.string, "text")
    named = problems.tried("", entry.string, "title") if entry.has("title") else ""
    return Document(
        key,
        text,
        named if title else "",
        problems.tried({}, metadata, entry, problems),
        problems.tried(None, acl, entry, problems),
    )


def acl(entry: Entry, problems: Problems) -> Acl | None:
    if not entry.has("acl"):
        return None
    inner = entry.inner("acl", entry.value["acl"]).spelt(("allow", "deny"), problems)
    return Acl(
        frozenset(problems.tried((), inner.names, "allow")),
        frozenset(problems.tried((), inner.names, "deny")),
    )


def metadata(entry: Entry, problems: Problems) -> Mapping[str, Any]:
    """The metadata, in which `valid_from` and `valid_to`, where given, must be ISO dates in that order."""
    found = entry.mapping("metadata")
    moments = [problems.tried(None, date, entry, found, key) for key in ("valid_from", "valid_to")]
    if moments[0] and moments[1] and not moments[0] < moments[1]:
        entry.fault(
            "metadata.valid_to",
            f'"{found["valid_to"]}"',
            f'a moment after valid_from "{found["valid_from"]}"',
            "correct one of the dates",
        )
    return found


def date(entry: Entry, metadata: Mapping[str, Any], key: str) -> datetime | None:
    value = metadata.get(key)
    if value is None:
        return None
    found = when(value) if isinstance(value, str) else None
    if found is None:
        entry.fault(f"metadata.{key}", repr(value), "an ISO date (2025-06-01)", "correct the date or leave it out")
    return found


when = lru_cache(maxsize=2**14)(moment)
"""`moment`, kept: a corpus repeats its dates."""


def groups(entries: Iterable[Entry], problems: Problems) -> dict[str, tuple[str, ...]]:
    """Members by group, as written; a member may be a group."""
    found: dict[str, tuple[str, ...]] = {}
    known = Known("groups.jsonl", "_id")
    for entry in entries:
        meant = entry.spelt(("_id", "members"), problems)
        with problems:
            known.add(meant)
        found[str(meant.value.get("_id"))] = problems.tried((), meant.names, "members")
    try:
        TopologicalSorter({group: found[group] for group in known}).prepare()
    except CycleError as error:
        circle = " in ".join(f'"{group}"' for group in error.args[1])
        where = f"groups.jsonl:{min(known.lines[group] for group in error.args[1])}"
        with problems:
            raise DatasetError(
                [
                    problem(
                        where,
                        "members",
                        f"groups that contain each other ({circle})",
                        "none",
                        "remove one of the members",
                    )
                ]
            ) from error
    return found


@dataclass(frozen=True)
class Readers:
    """Who may read what, for checking evidence only: the line has its own `access`, the gate its own checker."""

    groups: Mapping[str, tuple[str, ...]]
    acl_default: str

    @cached_property
    def holders(self) -> Mapping[str, set[str]]:
        """The groups that list a name as their member."""
        found: dict[str, set[str]] = {}
        for group, members in self.groups.items():
            for name in members:
                found.setdefault(name, set()).add(group)
        return found

    def names(self, principals: frozenset[str]) -> frozenset[str]:
        """The principals, `public`, and every group that contains one of them, directly or through other groups."""
        held: set[str] = set()
        new = {"public", *principals}
        while new:
            held |= new
            new = {group for name in new for group in self.holders.get(name, ())} - held
        return frozenset(held)

    def may(self, held: frozenset[str], acl: Acl | None) -> bool:
        """Whether someone who holds these names may read a document with this ACL: `deny` beats `allow`."""
        if acl is None:
            return self.acl_default == "public"
        return not held.isdisjoint(acl.allow) and held.isdisjoint(acl.deny)
