"""corpus.jsonl in, its documents out, line by line: a corpus may be larger than what is kept of it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from ablate.dataset import fingerprint
from ablate.dataset.documents import document, when
from ablate.dataset.known import Known
from ablate.dataset.lines import Entry, broken, deep, finite, lines, parsed, unique
from ablate.dataset.problems import FIRST, Problems, unknowable
from ablate.errors import DatasetError, problem
from ablate.types import Acl, Document

NAME = "corpus.jsonl"

Keep = Callable[[Document], Document | None]
"""What is kept of a document: all of it, less, or nothing."""

_KEYS = ("_id", "text", "title", "metadata", "acl")
_NONE = type(None)
_TYPES = {
    (str, str, title, metadata, acl) for title in (str, _NONE) for metadata in (dict, _NONE) for acl in (dict, _NONE)
}
_RIGHTS = 2**14
"""Different ACLs that are shared by the documents which carry them."""


@dataclass
class Corpus:
    """What was kept of the documents, by id and in the order of the file, and what is known of all of them.

    `fields` are the keys of their metadata, `groups` the typed groups that their ACLs name and where each stands first,
    `bare` is the first document without ACL, `broken` holds ids whose line breaks a rule.
    """

    title: bool
    keep: Keep
    problems: Problems
    known: Known = field(default_factory=lambda: Known(NAME, "_id"))
    documents: dict[str, Document] = field(default_factory=dict)
    fields: set[str] = field(default_factory=set)
    groups: dict[str, str] = field(default_factory=dict)
    broken: set[str] = field(default_factory=set)
    bare: str | None = None
    empty: int = 0
    with_acl: int = 0
    digests: list[bytes] = field(default_factory=list)
    rights: dict[tuple[Any, ...], Acl] = field(default_factory=dict)

    def document(self, key: str) -> Document:
        """A known document that was kept.

        Raises:
            DatasetError: without a problem of its own, as the line of the document is broken itself.

        """
        if key in self.broken or key not in self.known.lines:
            raise unknowable()
        return self.documents[key]

    @property
    def fingerprint(self) -> str:
        return fingerprint.corpus(self.digests)

    @property
    def counts(self) -> dict[str, int]:
        return {
            "documents": len(self.digests),
            "documents_empty": self.empty,
            "documents_with_acl": self.with_acl,
        }

    def plain(self, number: int, line: str) -> bool:
        """Take a line that is quickly seen to break no rule; what is unusual about another, `checked` finds out."""
        try:
            value = _decode(line)
            if not usual(value) or value["_id"] in self.known.lines:
                return False
            title = (value.get("title") or "") if self.title else ""
            rights = self.shared(value.get("acl"), number)
            found = Document(value["_id"], value["text"], title, value.get("metadata") or {}, rights)
            self.add(found)
        except (ValueError, TypeError, RecursionError):
            return False
        self.known.lines[found.id] = number
        return True

    def checked(self, number: int, line: str) -> None:
        """Take a line rule by rule, noting those that it breaks."""
        where = f"{NAME}:{number}"
        try:
            entry = Entry(where, parsed(where, line))
        except DatasetError as error:
            broken(error, line, self.problems, self.known)
            return
        before = len(self.problems)
        entry = entry.spelt(_KEYS, self.problems)
        with self.problems:
            self.known.add(entry)
        found = document(entry, self.title, self.problems)
        self.fields.update(found.metadata)
        if len(self.problems) == before:
            self.named(found.acl, number)
            self.add(found)
        else:
            self.known.missed(entry)
            self.broken.add(found.id)  # of an id that stands twice, no one knows which text is meant

    def add(self, found: Document) -> None:
        self.digests.append(fingerprint.document(found))
        self.fields.update(found.metadata)
        self.empty += not found.text or found.text.isspace()
        if found.acl is not None:
            self.with_acl += 1
        elif self.bare is None:
            self.bare = found.id
        kept = self.keep(found)
        if kept is not None:
            self.documents[found.id] = kept

    def shared(self, acl: Mapping[str, Any] | None, number: int) -> Acl | None:
        """The ACL, one object for all documents with the same.

        Raises:
            ValueError: something about it is unusual.

        """
        if acl is None:
            return None
        allow, deny = acl.get("allow"), acl.get("deny")
        if not acl.keys() <= {"allow", "deny"} or not {type(allow), type(deny)} <= {list, _NONE}:
            raise ValueError(acl)
        key = (tuple(allow or ()), tuple(deny or ()))
        found = self.rights.get(key)
        if found is None:
            if not all(isinstance(name, str) and name for names in key for name in names):
                raise ValueError(acl)
            found = Acl(frozenset(key[0]), frozenset(key[1]))
            self.named(found, number)
            if len(self.rights) < _RIGHTS:
                self.rights[key] = found
        return found

    def named(self, acl: Acl | None, number: int) -> None:
        """Remember where a typed group is named first."""
        for name in sorted(acl.allow | acl.deny) if acl else ():
            if name.startswith("group:"):
                self.groups.setdefault(name, f"{NAME}:{number}")


def read(
    data: bytes | Iterable[bytes], title: bool, keep: Keep = lambda found: found, problems: Problems = FIRST
) -> Corpus:
    """The documents of corpus.jsonl, from its bytes or its lines; with `title` false all titles are empty.

    Raises:
        DatasetError: an unknown key, a wrong type, an id given twice, validity that is no interval, or no document.

    """
    corpus, before, number = Corpus(title, keep, problems), len(problems), 0
    for number, line in lines(NAME, data, problems, corpus.known):
        if not corpus.plain(number, line):
            corpus.checked(number, line)
        del line  # it may be large
    if not number and len(problems) == before:
        with problems:
            raise DatasetError([problem(NAME, None, "no document", "at least one", "fill the file")])
    return corpus


def usual(value: Any) -> bool:
    """Whether a line has known keys alone, each of its type, and in its metadata dates that are an interval."""
    if type(value) is not dict or not value.keys() <= _KEY_SET:
        return False
    get = value.get
    types = type(get("_id")), type(get("text")), type(get("title")), type(get("metadata")), type(get("acl"))
    if types not in _TYPES or not value["_id"]:
        return False
    metadata = get("metadata")
    if not metadata:
        return True
    if ("valid_from" in metadata or "valid_to" in metadata) and not interval(
        metadata.get("valid_from"), metadata.get("valid_to")
    ):
        return False
    return _NESTED.isdisjoint(map(type, metadata.values())) or not deep(value)


@lru_cache(maxsize=2**14)
def interval(start: Any, end: Any) -> bool:
    moments = [when(value) if isinstance(value, str) else None for value in (start, end) if value is not None]
    return None not in moments and (len(moments) < 2 or moments[0] < moments[1])  # type: ignore[operator]


_NESTED = frozenset((dict, list))
_KEY_SET = frozenset(_KEYS)

# Without a hook for floats, which metadata may hold many of: one that is not finite is refused when it is hashed.
_decode = json.JSONDecoder(object_pairs_hook=unique, parse_constant=finite).decode
