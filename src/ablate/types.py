"""The records that travel along the line, and nothing else: frozen, without behaviour beyond their own fields."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple


class Span(NamedTuple):
    """A half-open interval `[start, end)` of a document's text, in Unicode code points."""

    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Acl:
    """Who may read a document: `deny` beats `allow`; nobody is allowed by silence."""

    allow: frozenset[str]
    deny: frozenset[str]


@dataclass(frozen=True, slots=True, eq=False)
class Document:
    """A source as it was ingested. Two documents are equal only if they are the same object."""

    id: str
    text: str
    title: str = ""
    metadata: Mapping[str, Any] = field(default_factory=dict)
    acl: Acl | None = None


@dataclass(frozen=True)
class Chunk:
    """A piece of one document; it carries the document's metadata and ACL by carrying the document.

    `headings` is the path of headings above it. A child is searched in place of its `parent`, which is what is found.
    """

    document: Document
    start: int
    end: int
    headings: tuple[str, ...] = ()
    parent: Chunk | None = None

    @property
    def handed(self) -> Chunk:
        """The chunk that a search gives out for this one: its parent, or itself."""
        return self.parent or self

    @cached_property
    def id(self) -> str:
        return f"{self.document.id}[{self.start}:{self.end}]"

    @property
    def text(self) -> str:
        return self.document.text[self.start : self.end]

    @property
    def reading(self) -> str:
        """What encoders, lexical indexes and rerankers read: the title, a line break and the text."""
        return f"{self.document.title}\n{self.text}" if self.document.title else self.text

    @cached_property
    def lot(self) -> int:
        """A 64-bit hash of document id and span: it settles ties, so that no one wins by standing first in a file."""
        key = f"{self.document.id}\0{self.start}\0{self.end}".encode()
        return int.from_bytes(hashlib.blake2b(key, digest_size=8).digest(), "big")


@dataclass(frozen=True, slots=True)
class Query:
    """A question as it was asked: by whom, when, about what; what it needs is in its `Truth`."""

    id: str
    text: str
    principals: frozenset[str] = frozenset()
    filter: Mapping[str, Any] = field(default_factory=dict)
    cohorts: Mapping[str, str] = field(default_factory=dict)
    answerable: bool = True
    why: str | None = None
    intent: str | None = None
    as_of: str | None = None
    subject: Mapping[str, Any] = field(default_factory=dict)
    compares: tuple[str, ...] = ()
    critical: bool = False
    cluster: str | None = None
    case: str | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Unit:
    """A piece of evidence: spans of one document that are needed together; without spans, the whole document."""

    document: str
    spans: tuple[Span, ...] = ()


Fact = tuple[Unit, ...]
"""Interchangeable sources: the fact is supported when any one of its units is."""

Alternative = tuple[Fact, ...]
"""Facts that must all be supported."""


@dataclass(frozen=True, slots=True)
class Judgment:
    """A graded label of a unit; grade 0 is judged and not relevant."""

    unit: Unit
    grade: int


@dataclass(frozen=True, slots=True)
class Truth:
    """What one query needs: any one of `alternatives`. An empty tuple means that nothing is known about evidence.

    `judged` holds the span judgments, `documents` the grade of every judged document; they are judged on their own.
    `complete` says that the list of judgments is exhaustive, `confirmed` which alternatives an expert vouched for, by
    their place in `alternatives`; it moves no number.
    """

    query: str
    alternatives: tuple[Alternative, ...] = ()
    judged: tuple[Judgment, ...] = ()
    documents: Mapping[str, int] = field(default_factory=dict)
    complete: bool = False
    confirmed: frozenset[int] = frozenset()

    @property
    def by_document(self) -> bool:
        """True where some unit of an alternative has no spans: chunk-level values are then an upper bound."""
        return any(not unit.spans for alternative in self.alternatives for fact in alternative for unit in fact)


@dataclass(frozen=True, slots=True)
class Dataset:
    """A corpus, its queries and their frozen ground truth, as read from one folder.

    `acl_default` says who reads a document without ACL where some have one (`nobody` or `public`).
    `fingerprints` names `corpus` and `ground_truth` by content; `groups` maps a group to its members, as written;
    `counts` and `warnings` say what reading left out and why; `version` is the one it is frozen as, if it is.
    """

    name: str
    folder: str
    documents: tuple[Document, ...]
    queries: tuple[Query, ...]
    truths: Mapping[str, Truth]
    groups: Mapping[str, tuple[str, ...]]
    acl_default: str
    contract: Mapping[str, Any]
    fingerprints: Mapping[str, str]
    counts: Mapping[str, int]
    warnings: tuple[str, ...]
    version: str | None = None


class Hit(NamedTuple):
    """A chunk and the score its stage gave it; a list of hits is a ranking, rank is the position from 1."""

    chunk: Chunk
    score: float


@dataclass(frozen=True, slots=True)
class Candidates:
    """What a retriever returned to candidate depth: the list of each source, by name, and the fused one."""

    sources: Mapping[str, Sequence[Hit]]
    fused: Sequence[Hit]


@dataclass(frozen=True, slots=True)
class Context:
    """What the packer hands to the reader: passages in reading order, and their length in study tokens."""

    passages: Sequence[Chunk]
    tokens: int


@dataclass(frozen=True, slots=True)
class Trace:
    """One query on its way down the line: the output of every stage, and how long each took.

    The pool is what the search was allowed to return: chunks, and their documents.
    """

    query: Query
    candidates: Candidates
    permitted: Sequence[Hit]
    ranked: Sequence[Hit]
    context: Context
    pool_chunks: int
    pool_documents: int
    milliseconds: Mapping[str, float]


def ranking(hits: Sequence[Hit]) -> list[Hit]:
    """Hits in the one total order: score descending, equal scores by lot; of duplicates the best stays."""
    best: dict[tuple[str, int, int], Hit] = {}
    for hit in sorted(hits, key=lambda hit: (-hit.score, hit.chunk.lot)):
        best.setdefault((hit.chunk.document.id, hit.chunk.start, hit.chunk.end), hit)
    return list(best.values())
