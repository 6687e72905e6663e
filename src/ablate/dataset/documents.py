"""corpus.jsonl and groups.jsonl in; documents, groups and who may read what out."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from graphlib import CycleError, TopologicalSorter

from ablate.dataset.lines import Entry
from ablate.errors import DatasetError
from ablate.moment import moment
from ablate.types import Acl, Document

_KEYS = ("_id", "title", "text", "metadata", "acl")


def documents(entries: Iterable[Entry], title: bool) -> dict[str, Document]:
    """Documents by id, in the order of the file; with `title` false all titles are empty.

    Raises:
        DatasetError: an unknown key, a wrong type, an id given twice, validity that is no interval, or no document.

    """
    found: dict[str, Document] = {}
    seen: dict[str, str] = {}
    for entry in entries:
        entry.only(_KEYS)
        unique(entry, seen)
        named = entry.string("title") if entry.has("title") else ""
        document = Document(
            entry.name("_id"), entry.string("text"), named if title else "", entry.mapping("metadata"), acl(entry)
        )
        interval(entry, document)
        found[document.id] = document
    if not found:
        raise DatasetError("corpus.jsonl: found no document, expected at least one; fill the file")
    return found


def unique(entry: Entry, seen: dict[str, str]) -> None:
    """Refuse an id that an earlier line of the file has, and remember this one."""
    key = entry.name("_id")
    if key in seen:
        raise DatasetError(
            f'{entry.where}: key "_id": found "{key}" a second time (first in {seen[key]}), expected ids that differ; '
            "remove one of the lines or give it an id of its own"
        )
    seen[key] = entry.where


def acl(entry: Entry) -> Acl | None:
    if not entry.has("acl"):
        return None
    inner = entry.inner("acl", entry.value["acl"])
    inner.only(("allow", "deny"))
    return Acl(frozenset(inner.names("allow")), frozenset(inner.names("deny")))


def interval(entry: Entry, document: Document) -> None:
    """Check that `valid_from` and `valid_to`, where given, are ISO dates in that order."""
    for key in ("valid_from", "valid_to"):
        value = document.metadata.get(key)
        if value is not None and (not isinstance(value, str) or moment(value) is None):
            entry.fault(f"metadata.{key}", repr(value), "an ISO date (2025-06-01)", "correct the date or leave it out")
    start, end = document.metadata.get("valid_from"), document.metadata.get("valid_to")
    if start is not None and end is not None and not moment(start) < moment(end):  # type: ignore[operator]
        entry.fault("metadata.valid_to", f'"{end}"', f'a moment after valid_from "{start}"', "correct one of the dates")


def groups(entries: Iterable[Entry]) -> dict[str, tuple[str, ...]]:
    """Members by group, as written; a member may be a group.

    Raises:
        DatasetError: an unknown key, a wrong type, an id given twice, or groups that contain each other.

    """
    found: dict[str, tuple[str, ...]] = {}
    seen: dict[str, str] = {}
    for entry in entries:
        entry.only(("_id", "members"))
        unique(entry, seen)
        found[entry.name("_id")] = entry.names("members")
    try:
        TopologicalSorter(found).prepare()
    except CycleError as error:
        circle = " in ".join(f'"{group}"' for group in error.args[1])
        raise DatasetError(
            f"groups.jsonl: found groups that contain each other ({circle}), expected none; remove one of the members"
        ) from error
    return found


@dataclass(frozen=True)
class Readers:
    """Who may read what, for checking evidence only: the line has its own `access`, the gate its own checker."""

    documents: Mapping[str, Document]
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

    @property
    def public(self) -> bool:
        """True if no document carries an ACL."""
        return all(document.acl is None for document in self.documents.values())

    def names(self, principals: frozenset[str]) -> frozenset[str]:
        """The principals, `public`, and every group that contains one of them, directly or through other groups."""
        held: set[str] = set()
        new = {"public", *principals}
        while new:
            held |= new
            new = {group for name in new for group in self.holders.get(name, ())} - held
        return frozenset(held)

    def may(self, held: frozenset[str], document: str) -> bool:
        """Whether someone who holds these names may read the document: `deny` beats `allow`."""
        acl = self.documents[document].acl
        if acl is None:
            return self.acl_default == "public"
        return not held.isdisjoint(acl.allow) and held.isdisjoint(acl.deny)
