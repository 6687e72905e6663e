"""A dataset's own files go in, the documents that given principals may not read come out: the second opinion on access.

It reads the frozen ACL itself and imports nothing from this package: a checker that shared code with what it checks
would share its mistakes.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

EVERYONE = "public"


class AuditError(ValueError):
    """A file that cannot be read: the message names file and line."""


class Rule(NamedTuple):
    """The ACL of a document; documents with equal rules are judged together."""

    allow: frozenset[str]
    deny: frozenset[str]

    def admits(self, names: frozenset[str]) -> bool:
        if names & self.deny:
            return False
        return bool(names & self.allow)


NOBODY = Rule(frozenset(), frozenset())
ANYBODY = Rule(frozenset({EVERYONE}), frozenset())


@dataclass(frozen=True)
class Audit:
    """The frozen ACL of one dataset, and its texts as they stand in the file.

    `checked` is False where no document carries an ACL: the corpus is public and there is nothing to check.
    `documents` is the number of lines in the corpus file, `texts` the text of each document by id; `ruled` names the
    documents that each rule is about.
    """

    checked: bool
    documents: int
    texts: Mapping[str, str]
    ruled: Mapping[Rule, frozenset[str]]
    memberships: Mapping[str, frozenset[str]]

    @classmethod
    def read(cls, folder: Path, acl_default: str) -> Audit:
        """Read `corpus.jsonl` and, where it exists, `groups.jsonl`.

        A document without an ACL is readable by nobody, unless `acl_default` is "public" or no document has one.

        Raises:
            AuditError: a line that is no JSON object, has no text, or whose ACL is not made of lists of names.

        """
        texts, rules = {}, []
        for where, record in _records(folder / "corpus.jsonl"):
            rules.append((record["_id"], _rule(record, where)))
            texts[record["_id"]] = _text(record, where)
        checked = any(rule is not None for _, rule in rules)
        silent = NOBODY if checked and acl_default != EVERYONE else ANYBODY
        ruled: dict[Rule, set[str]] = defaultdict(set)
        for name, rule in rules:
            ruled[silent if rule is None else rule].add(name)
        frozen = {rule: frozenset(names) for rule, names in ruled.items()}
        return cls(checked, len(rules), texts, frozen, _memberships(folder / "groups.jsonl"))

    def denied(self, principals: Iterable[str]) -> frozenset[str]:
        """The ids of the documents that a person with these names may not read; everyone also holds `public`."""
        names = self.names(principals)
        return frozenset().union(*(found for rule, found in self.ruled.items() if not rule.admits(names)))

    def names(self, principals: Iterable[str]) -> frozenset[str]:
        """All names of a person: their own, `public`, and every group that holds one of them, however deep."""
        names: set[str] = set()
        pending = {EVERYONE, *principals}
        while pending:
            name = pending.pop()
            names.add(name)
            pending |= self.memberships.get(name, frozenset()) - names
        return frozenset(names)


def _text(record: Mapping[str, Any], where: str) -> str:
    text = record.get("text")
    if not isinstance(text, str):
        raise AuditError(f"{where}: found text {text!r}, expected a string; put it in quotes")
    return text


def _rule(record: Mapping[str, Any], where: str) -> Rule | None:
    acl = record.get("acl")
    if acl is None:
        return None
    if not isinstance(acl, dict):
        raise AuditError(f"{where}: found acl {acl!r}, expected {{'allow': [...], 'deny': [...]}}; write it so")
    return Rule(_names(acl, "allow", where), _names(acl, "deny", where))


def _memberships(path: Path) -> dict[str, frozenset[str]]:
    """Member -> the groups that hold it directly."""
    groups: dict[str, set[str]] = defaultdict(set)
    for where, record in _records(path) if path.exists() else ():
        for member in _names(record, "members", where):
            groups[member].add(record["_id"])
    return {member: frozenset(names) for member, names in groups.items()}


def _names(record: Mapping[str, Any], key: str, where: str) -> frozenset[str]:
    names = [] if record.get(key) is None else record[key]
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise AuditError(f"{where}: found {key} {names!r}, expected a list of names; put each in quotes")
    return frozenset(names)


def _records(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    # utf-8-sig: some editors put a byte order mark before the first line.
    with path.open(encoding="utf-8-sig", newline="\n") as file:
        for number, line in enumerate(file, start=1):
            if not line.strip():
                continue
            where = f"{path.name}:{number}"
            try:
                record = json.loads(line)
            except ValueError as error:
                raise AuditError(f"{where}: found no JSON ({error}), expected one object a line; repair it") from error
            if not isinstance(record, dict) or not isinstance(record.get("_id"), str):
                raise AuditError(f"{where}: found no _id, expected an object with a string _id; add it")
            yield where, record
