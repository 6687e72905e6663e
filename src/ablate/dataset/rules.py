"""Queries, truths and documents in; an error where evidence cannot be read, or was not valid when it is asked for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from typing import Any

from ablate.dataset.documents import Readers
from ablate.dataset.lines import described, near
from ablate.errors import DatasetError
from ablate.moment import moment
from ablate.types import Document, Query, Truth

_TIME = ("valid_from", "valid_to")
_BEGIN = datetime.min.replace(tzinfo=UTC)
_END = datetime.max.replace(tzinfo=UTC)


@dataclass(frozen=True)
class Evidence:
    """The documents of one query's alternatives, and the line that names them."""

    query: Query
    where: str
    documents: tuple[Document, ...]

    def fault(self, found: str, expected: str, advice: str) -> DatasetError:
        return DatasetError(f'{self.where}: query "{self.query.id}": found {found}, expected {expected}; {advice}')


def needed(truth: Truth, documents: Mapping[str, Document]) -> tuple[Document, ...]:
    """Every document of every alternative, once, in order."""
    ids = dict.fromkeys(unit.document for alternative in truth.alternatives for fact in alternative for unit in fact)
    return tuple(documents[key] for key in ids)


def readable(evidence: Evidence, truth: Truth, readers: Readers) -> None:
    """Some alternative must be readable as a whole.

    Raises:
        DatasetError: every alternative holds a document that the query's principals may not read.

    """
    held = readers.names(evidence.query.principals)
    hidden = {document.id for document in evidence.documents if not readers.may(held, document.id)}
    if not hidden or any(
        all(any(unit.document not in hidden for unit in fact) for fact in alternative)
        for alternative in truth.alternatives
    ):
        return
    who = ", ".join(sorted(evidence.query.principals)) or "public"
    raise evidence.fault(
        f'no alternative without a document that {who} may not read (first "{sorted(hidden)[0]}")',
        "one that can be read",
        'correct the acl or the principals, or set answerable to false with why "access"',
    )


def valid(evidence: Evidence) -> None:
    """All evidence must be valid on `as_of`, or share one moment; `compares` on a field of time lifts the rule.

    Raises:
        DatasetError: a document is not valid then, or two are never valid together.

    """
    query = evidence.query
    if not set(query.compares).isdisjoint(("as_of", *_TIME)):
        return
    asked = moment(query.as_of) if query.as_of else None
    starts = [(_bound(document, "valid_from", _BEGIN), document) for document in evidence.documents]
    ends = [(_bound(document, "valid_to", _END), document) for document in evidence.documents]
    last, first = max(starts, key=lambda pair: pair[0]), min(ends, key=lambda pair: pair[0])
    advice = 'correct the dates, ask two queries, or name "valid_from" in compares if the question compares'
    if asked is None and not last[0] < first[0]:
        raise evidence.fault(
            f"{_validity(first[1])} and {_validity(last[1])}", "evidence that shares one moment", advice
        )
    if asked is not None and not last[0] <= asked < first[0]:
        wrong = last[1] if asked < last[0] else first[1]
        raise evidence.fault(_validity(wrong), f"evidence valid on {query.as_of} (as_of)", advice)


@dataclass(frozen=True)
class Subjects:
    """The metadata that documents carry, against which `subject` and `compares` are checked."""

    documents: Mapping[str, Document]

    @cached_property
    def fields(self) -> frozenset[str]:
        return frozenset(key for document in self.documents.values() for key in document.metadata)

    def known(self, query: Query, where: str) -> None:
        """Refuse a subject or a comparison by a field that no document carries."""
        for key in (*query.subject, *query.compares):
            if key not in self.fields and key not in ("as_of", *_TIME):
                advice = near(key, self.fields) or "correct the name, or add it to the documents"
                raise DatasetError(
                    f'{where}: query "{query.id}": found the subject field "{key}" that no document carries, expected '
                    f"a key of their metadata; {advice}"
                )

    def match(self, evidence: Evidence) -> None:
        """Every document must match the query's subject in all fields but the compared ones; a missing one is open.

        Raises:
            DatasetError: a document is about something else.

        """
        for key, wanted in evidence.query.subject.items():
            if key in evidence.query.compares or wanted is None:
                continue
            for document in evidence.documents:
                value = document.metadata.get(key)
                if value is not None and not _overlap(value, wanted):
                    raise evidence.fault(
                        f'document "{document.id}" with {key} {described(value)}',
                        f"{key} {described(wanted)}, the query's subject",
                        f'correct one of them, or name "{key}" in compares if the question compares',
                    )


def _overlap(value: Any, wanted: Any) -> bool:
    values = value if isinstance(value, list) else [value]
    asked = wanted if isinstance(wanted, list) else [wanted]
    return any(a == b and isinstance(a, bool) == isinstance(b, bool) for a in values for b in asked)


def _bound(document: Document, key: str, missing: datetime) -> datetime:
    value = document.metadata.get(key)
    return missing if value is None else moment(value) or missing


def _validity(document: Document) -> str:
    start, end = (document.metadata.get(key) or "…" for key in _TIME)
    return f'document "{document.id}" valid in [{start}, {end})'
