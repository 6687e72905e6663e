"""Who asks in, what they may read out: masks over the documents, by ACL and groups."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt

from ablate.errors import ConfigError
from ablate.types import Acl, Document, Hit, Query

Mask = npt.NDArray[np.bool_]
Groups = Mapping[str, Sequence[str]]

PUBLIC = "public"
"""The principal that everyone holds."""


class View(Protocol):
    """Access to one corpus. Masks are over its documents, `(documents,)`, shared between queries and read-only."""

    def readable(self, query: Query) -> Mask:
        """What this component lets the query's principals read; a run in which no query reads anything must stop."""

    def indexed(self, query: Query) -> Mask:
        """Which documents the index may know, its statistics included."""

    def allowed(self, query: Query) -> Mask:
        """What the search may return."""

    def after(self, query: Query, hits: Sequence[Hit]) -> Sequence[Hit]:
        """What is left of a search's hits, in their order."""


@dataclass(frozen=True)
class Prefilter:
    """Searches among the readable documents alone, so that nobody's top k is eaten by what they may not see.

    With `statistics: global` an index counts words over all documents; with `readable` it knows only what the asker
    may read, and then deleting the rest changes no result.

    Raises:
        ConfigError: `statistics` is neither.

    """

    statistics: str

    def __post_init__(self) -> None:
        if self.statistics not in ("global", "readable"):
            raise ConfigError(f"statistics: found {self.statistics!r}, expected global or readable; choose one")

    def over(self, documents: Sequence[Document], groups: Groups, acl_default: str) -> View:
        return _Before(_Readers(documents, groups, acl_default), self.statistics)


@dataclass(frozen=True)
class Postfilter:
    """Searches among all documents, then strikes out what the asker may not read: its loss can be studied."""

    def over(self, documents: Sequence[Document], groups: Groups, acl_default: str) -> View:
        return _After(_Readers(documents, groups, acl_default))


@dataclass(frozen=True)
class Off:
    """Lets everyone read everything, whatever the ACL says: it exists to show that the gate catches it."""

    def over(self, documents: Sequence[Document], groups: Groups, acl_default: str) -> View:
        return _Open(_Readers(documents, groups, acl_default))


@dataclass(frozen=True)
class _Open:
    readers: _Readers

    def readable(self, query: Query) -> Mask:
        return self.readers.everything

    def indexed(self, query: Query) -> Mask:
        return self.readers.everything

    def allowed(self, query: Query) -> Mask:
        return self.readers.everything

    def after(self, query: Query, hits: Sequence[Hit]) -> Sequence[Hit]:
        return hits


@dataclass(frozen=True)
class _Before(_Open):
    statistics: str

    def readable(self, query: Query) -> Mask:
        return self.readers.readable(query.principals)

    def indexed(self, query: Query) -> Mask:
        return self.readable(query) if self.statistics == "readable" else self.readers.everything

    def allowed(self, query: Query) -> Mask:
        return self.readable(query)


@dataclass(frozen=True)
class _After(_Open):
    def readable(self, query: Query) -> Mask:
        return self.readers.readable(query.principals)

    def after(self, query: Query, hits: Sequence[Hit]) -> Sequence[Hit]:
        readable = self.readable(query)
        return [hit for hit in hits if readable[self.readers.position[hit.chunk.document.id]]]


class _Readers:
    """Which documents a set of principals may read.

    `deny` beats `allow`, and an ACL without `allow` is readable by nobody. As soon as one document carries an ACL,
    one without is readable by nobody either, unless `acl_default` is `public`.
    """

    def __init__(self, documents: Sequence[Document], groups: Groups, acl_default: str) -> None:
        self.position = {document.id: number for number, document in enumerate(documents)}
        self.everything = _fixed(np.ones(len(documents), dtype=np.bool_))
        self.silence = acl_default == PUBLIC or all(document.acl is None for document in documents)
        self.holders = _holders(groups)
        # Many documents share few ACLs, and many queries few principals: each is decided once.
        kinds: dict[Acl | None, int] = {}
        self.kind = np.array([kinds.setdefault(document.acl, len(kinds)) for document in documents], dtype=np.intp)
        self.acls = list(kinds)
        self.masks: dict[frozenset[str], Mask] = {}

    def readable(self, principals: frozenset[str]) -> Mask:
        if principals not in self.masks:
            held = self.held(principals)
            verdicts = np.array([self.allows(acl, held) for acl in self.acls], dtype=np.bool_)
            self.masks[principals] = _fixed(verdicts[self.kind])
        return self.masks[principals]

    def held(self, principals: frozenset[str]) -> set[str]:
        """The names that count for someone: their own, `public`, and every group that holds one of these."""
        held: set[str] = set()
        rising = [*principals, PUBLIC]
        while rising:
            name = rising.pop()
            if name not in held:
                held.add(name)
                rising.extend(self.holders.get(name, ()))
        return held

    def allows(self, acl: Acl | None, held: set[str]) -> bool:
        if acl is None:
            return self.silence
        return not acl.allow.isdisjoint(held) and acl.deny.isdisjoint(held)


def _holders(groups: Groups) -> dict[str, list[str]]:
    """From a member to the groups that name it."""
    holders: dict[str, list[str]] = {}
    for group, members in groups.items():
        for member in members:
            holders.setdefault(member, []).append(group)
    return holders


def _fixed(mask: Mask) -> Mask:
    mask.setflags(write=False)
    return mask
