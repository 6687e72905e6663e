"""Queries, truths and documents in; an error where evidence cannot be read, or was not valid when it is asked for."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from ablate.dataset.corpus import Corpus
from ablate.dataset.documents import Readers
from ablate.dataset.lines import described, near
from ablate.errors import DatasetError, Problem, problem
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
        return DatasetError([self.problem(found, expected, advice)])

    def problem(self, found: str, expected: str, advice: str) -> Problem:
        return problem(self.where, "alternatives", found, expected, advice, self.query.id)


def needed(truth: Truth, corpus: Corpus) -> tuple[Document, ...]:
    """Every document of every alternative, once, in order."""
    ids = dict.fromkeys(unit.document for alternative in truth.alternatives for fact in alternative for unit in fact)
    return tuple(corpus.document(key) for key in ids)


def readable(evidence: Evidence, truth: Truth, readers: Readers) -> None:
    """Some alternative must be readable as a whole.

    Raises:
        DatasetError: every alternative holds a document that the query's principals may not read.

    """
    held = readers.names(evidence.query.principals)
    hidden = {document.id for document in evidence.documents if not readers.may(held, document.acl)}
    if not hidden or any(
        all(any(unit.document not in hidden for unit in fact) for fact in alternative)
        for alternative in truth.alternatives
    ):
        return
    who = ", ".join(sorted(evidence.query.principals)) or "public"
    bare = any(document.id in hidden and document.acl is None for document in evidence.documents)
    silent = "a document without acl is read by nobody: write its acl, or set dataset.acl_default=public; else "
    raise evidence.fault(
        f'no alternative without a document that {who} may not read (first "{sorted(hidden)[0]}")',
        "one that can be read",
        (silent if bare else "")
        + 'correct the acl or the principals, or set answerable to false with why "access" in queries.jsonl',
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


def known(query: Query, where: str, corpus: Corpus) -> None:
    """Refuse a subject or a comparison by a field that no document carries.

    Raises:
        DatasetError: there are such fields.

    """
    asked = dict.fromkeys(query.subject, "subject") | dict.fromkeys(query.compares, "compares")
    fields = corpus.fields | corpus.known.mentioned | {"as_of", *_TIME}
    unknown = [key for key in asked if key not in fields] if corpus.known.lines else []
    if unknown:
        raise DatasetError(
            [
                problem(
                    where,
                    asked[key],
                    f'the subject field "{key}" that no document carries',
                    "a key of their metadata",
                    near(key, corpus.fields) or "correct the name, or add it to the documents",
                    query.id,
                )
                for key in unknown
            ]
        )


def match(evidence: Evidence) -> None:
    """Every document must match the query's subject in all fields but the compared ones; a missing one is open.

    Raises:
        DatasetError: documents are about something else.

    """
    query = evidence.query
    subject = {key: value for key, value in query.subject.items() if key not in query.compares and value is not None}
    pairs = [(key, document, document.metadata.get(key)) for key in subject for document in evidence.documents]
    wrong = [
        evidence.problem(
            f'document "{document.id}" with {key} {described(value)}',
            f"{key} {described(subject[key])}, the query's subject",
            f'correct one of them, or name "{key}" in compares if the question compares',
        )
        for key, document, value in pairs
        if value is not None and not _overlap(value, subject[key])
    ]
    if wrong:
        raise DatasetError(wrong)


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
