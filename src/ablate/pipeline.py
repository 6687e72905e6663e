"""The straight line from a query to the context its reader gets, and the corpus made ready for it."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ablate.errors import AblateError
from ablate.progress import followed
from ablate.types import Candidates, Chunk, Context, Dataset, Hit, Query, Trace

Mask = npt.NDArray[np.bool_]
Search = Callable[[Query, Mask, int], Candidates]
Pieces = Sequence[Sequence[Chunk]]
"""Of every document its chunks."""


@dataclass(frozen=True)
class Line:
    """The components that an ablation can change, one at a time, in data-flow order."""

    chunker: Any
    embedder: Any
    retriever: Any
    filter: Any
    access: Any
    reranker: Any
    packer: Any


STAGES = tuple(field.name for field in fields(Line))
"""The component groups, in data-flow order: what a variant may change."""


class Asked(NamedTuple):
    """One search: by an index that knows only the `known` documents, among the `allowed` ones, both `(documents,)`.

    An `exact` one leaves nothing out where the retriever's own search is approximate.
    """

    query: Query
    known: Mask
    allowed: Mask
    exact: bool = False

    @property
    def among(self) -> bytes:
        """A hash of everything but the query: searches that share it can be made together."""
        mark = hashlib.blake2b(bytes([self.exact]), digest_size=16)
        for mask in (self.known, self.allowed):
            mark.update(np.packbits(mask).tobytes())
        return mark.digest()


@dataclass(frozen=True)
class Ready:
    """A line whose corpus is chunked and whose access and filter know the documents: call it with a query.

    `chunks` are those that are indexed; `owners` is the position of each one's document, `(chunks,)`. `k` is the number
    of chunks and `budget` the number of tokens that the packer may hand over, `depth` the number of candidates,
    `tokens` the study's counter. Indexes are built when a query first needs them. What is `foreseen`, by the id of its
    query and `Asked.among`, is not searched for again.
    """

    line: Line
    dataset: Dataset
    chunks: Sequence[Chunk]
    owners: npt.NDArray[np.intp]
    access: Any
    filter: Any
    tokens: Any
    k: int
    depth: int
    budget: int
    indexes: dict[bytes, tuple[Search, npt.NDArray[np.intp]]] = field(default_factory=dict, repr=False)
    lengths: dict[Chunk, int] = field(default_factory=dict, repr=False)
    foreseen: Mapping[tuple[str, bytes], Candidates] = field(default_factory=dict, repr=False)

    def __call__(self, asked: Query) -> Trace:
        query = unlabelled(asked)
        watch = Stopwatch()
        search = self.asked(query)
        watch.lap("allow")
        candidates = self.search(search)
        permitted = self.access.after(query, candidates.fused)
        watch.lap("search")
        if hasattr(self.line.reranker, "prepare"):  # what it may know of chunks before a query comes is not timed
            self.line.reranker.prepare(permitted)
            watch.skip()
        ranked = unique(self.line.reranker(query, permitted))
        watch.lap("rerank")
        context = counted(self.line.packer(query, ranked, self.k, self.budget, self.tokens), self.length)
        watch.lap("pack")
        pool, documents = int(self.sizes[search.allowed].sum()), int(search.allowed.sum())
        return Trace(asked, candidates, permitted, ranked, context, pool, documents, watch.laps)

    def asked(self, query: Query) -> Asked:
        """The search that access and filter leave to a query."""
        known = self.access.indexed(query)
        return Asked(query, known, self.access.allowed(query) & self.filter.allowed(query))

    def search(self, asked: Asked) -> Candidates:
        """The candidates of one search."""
        known = self.foreseen.get((asked.query.id, asked.among)) if self.foreseen else None
        if known:
            return known
        search, allowed = self.among(asked)
        return search(asked.query, allowed, self.depth)

    def among(self, asked: Asked) -> tuple[Search, Mask]:
        """The index that a search is made by, and which of its chunks it may find."""
        search, rows = self.indexed(asked.known)
        exact = getattr(search, "exact", None) if asked.exact else None
        return exact or search, asked.allowed[self.owners[rows]]

    def approximate(self, asked: Asked) -> bool:
        """Whether the retriever may leave out what an exact search would find."""
        return getattr(self.indexed(asked.known)[0], "exact", None) is not None

    def build(self, queries: Iterable[Query]) -> None:
        """Build every index that these queries need."""
        for query in queries:
            self.indexed(self.access.indexed(unlabelled(query)))

    def indexed(self, known: Mask) -> tuple[Search, npt.NDArray[np.intp]]:
        """The index over the chunks of the known documents and the positions of these chunks, built once a set."""
        key = known.tobytes()
        if key not in self.indexes:
            rows = np.flatnonzero(known[self.owners])
            chunks = [self.chunks[row] for row in rows.tolist()]
            self.indexes[key] = self.line.retriever.index(chunks, self.line.embedder), rows
        return self.indexes[key]

    @cached_property
    def handed(self) -> list[Chunk]:
        """What a search can give out, each once: the parents of the chunks that are indexed, or these themselves."""
        return list({chunk.handed.id: chunk.handed for chunk in self.chunks}.values())

    @cached_property
    def sizes(self) -> npt.NDArray[np.intp]:
        """The number of chunks of each document that a search can give out, `(documents,)`."""
        owners = {chunk.handed.id: owner for chunk, owner in zip(self.chunks, self.owners.tolist(), strict=True)}
        return np.bincount(np.array(list(owners.values()), np.intp), minlength=len(self.dataset.documents))

    def length(self, chunk: Chunk) -> int:
        """Study tokens of a chunk, counted once however many queries find it."""
        if chunk not in self.lengths:
            self.lengths[chunk] = self.tokens.count(chunk.text)
        return self.lengths[chunk]


def views(line: Line, dataset: Dataset) -> tuple[Any, Any]:
    """Access and filter, having seen the documents.

    Raises:
        AblateError: no query can read any document, so that empty rankings would look safe.

    """
    access = line.access.over(dataset.documents, dataset.groups, dataset.acl_default)
    if dataset.queries and not any(access.readable(query).any() for query in dataset.queries):
        raise AblateError(
            f"{dataset.folder}: no query can read any document, expected at least one that can (empty rankings would "
            "look safe); check the principals in queries.jsonl against the acl in corpus.jsonl"
        )
    return access, line.filter.over(dataset.documents)


def chunked(chunker: Any, dataset: Dataset, tokens: Any) -> Pieces:
    """The chunks of every document, each once.

    Raises:
        AblateError: as in `checked`.

    """
    documents = followed("chunking", dataset.documents, "documents")
    return [[checked(chunk) for chunk in dict.fromkeys(chunker(document, tokens))] for document in documents]


def ready(
    line: Line, dataset: Dataset, tokens: Any, k: int, depth: int, budget: int, pieces: Pieces | None = None
) -> Ready:
    """Chunk the corpus, unless its `pieces` are known, and let access and filter see its documents.

    Raises:
        AblateError: as in `views` and `checked`.

    """
    access, filter = views(line, dataset)
    pieces = chunked(line.chunker, dataset, tokens) if pieces is None else pieces
    owners = np.repeat(np.arange(len(pieces)), [len(piece) for piece in pieces])
    chunks = [chunk for piece in pieces for chunk in piece]
    return Ready(line, dataset, chunks, owners, access, filter, tokens, k, depth, budget)


def unique(hits: Iterable[Hit]) -> list[Hit]:
    """Of hits on one chunk the best, which is the first."""
    best: dict[Chunk, Hit] = {}
    for hit in hits:
        best.setdefault(hit.chunk, hit)
    return list(best.values())


def counted(context: Context, length: Callable[[Chunk], int]) -> Context:
    """The context with the study's own count: separators may add to the passages, but nothing can take from them."""
    least = sum(map(length, context.passages))
    return context if context.tokens >= least else replace(context, tokens=least)


def checked(chunk: Chunk) -> Chunk:
    """A chunk whose span lies in its document, and in its parent where it has one.

    Raises:
        AblateError: it does not, so that what it holds could not be told.

    """
    if not 0 <= chunk.start < chunk.end <= len(chunk.document.text):
        raise AblateError(
            f"chunker: found the chunk {chunk.id}, expected a span within the {len(chunk.document.text)} characters of "
            "its document; correct the chunker"
        )
    if chunk.parent is not None:
        parent = checked(chunk.parent)
        within = parent.document is chunk.document and parent.start <= chunk.start and chunk.end <= parent.end
        if not within or parent.parent is not None:
            raise AblateError(
                f"chunker: found the chunk {chunk.id} with the parent {parent.id}, expected a parent that holds it and "
                "has none itself; correct the chunker"
            )
    return chunk


def unlabelled(query: Query) -> Query:
    """A query as it was asked: no component sees what is known about its answer."""
    return Query(query.id, query.text, query.principals, query.filter, as_of=query.as_of, metadata=query.metadata)


class Stopwatch:
    """Milliseconds a stage, measured from one lap to the next."""

    def __init__(self) -> None:
        self.laps: dict[str, float] = {}
        self.last = time.perf_counter()

    def skip(self) -> None:
        self.last = time.perf_counter()

    def lap(self, stage: str) -> None:
        now = time.perf_counter()
        self.laps[stage] = (now - self.last) * 1000
        self.last = now
