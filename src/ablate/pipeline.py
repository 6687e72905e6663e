"""The straight line from a query to the context its reader gets, and the corpus made ready for it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from ablate.errors import AblateError
from ablate.types import Candidates, Chunk, Context, Dataset, Hit, Query, Trace

Mask = npt.NDArray[np.bool_]
Search = Callable[[Query, Mask, int], Candidates]


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


@dataclass(frozen=True)
class Ready:
    """A line whose corpus is chunked and whose access and filter know the documents: call it with a query.

    `owners` is the position of each chunk's document, `(chunks,)`; `k` the number of chunks and `budget` the number of
    tokens that the packer may hand over, `depth` the number of candidates, `tokens` the study's counter. Indexes are built when a query first needs them.
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

    def __call__(self, asked: Query) -> Trace:
        query = unlabelled(asked)
        watch = Stopwatch()
        known = self.access.indexed(query)
        allowed = self.access.allowed(query) & self.filter.allowed(query)
        watch.lap("allow")
        candidates = self.search(query, known, allowed)
        permitted = self.access.after(query, candidates.fused)
        watch.lap("search")
        ranked = unique(self.line.reranker(query, permitted))
        watch.lap("rerank")
        context = counted(self.line.packer(query, ranked, self.k, self.budget, self.tokens), self.tokens)
        watch.lap("pack")
        pool = int(allowed[self.owners].sum())
        return Trace(asked, candidates, permitted, ranked, context, pool, int(allowed.sum()), watch.laps)

    def search(self, query: Query, known: Mask, allowed: Mask) -> Candidates:
        """The retriever's candidates among the allowed documents, by an index that knows only the `known` ones.

        `known` and `allowed` are masks over documents, `(documents,)`.
        """
        search, rows = self.indexed(known)
        return search(query, allowed[self.owners[rows]], self.depth)

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


def ready(line: Line, dataset: Dataset, tokens: Any, k: int, depth: int, budget: int) -> Ready:
    """Chunk the corpus and let access and filter see its documents.

    Raises:
        AblateError: as in `views`.

    """
    access, filter = views(line, dataset)
    pieces = [list(dict.fromkeys(line.chunker(document, tokens))) for document in dataset.documents]
    owners = np.repeat(np.arange(len(pieces)), [len(piece) for piece in pieces])
    chunks = [checked(chunk) for piece in pieces for chunk in piece]
    return Ready(line, dataset, chunks, owners, access, filter, tokens, k, depth, budget)


def unique(hits: Iterable[Hit]) -> list[Hit]:
    """Of hits on one chunk the best, which is the first."""
    best: dict[Chunk, Hit] = {}
    for hit in hits:
        best.setdefault(hit.chunk, hit)
    return list(best.values())


def counted(context: Context, tokens: Any) -> Context:
    """The context with the study's own count: separators may add to the passages, but nothing can take from them."""
    least = sum(tokens.count(passage.text) for passage in context.passages)
    return context if context.tokens >= least else replace(context, tokens=least)


def checked(chunk: Chunk) -> Chunk:
    """A chunk whose span lies in its document.

    Raises:
        AblateError: it does not, so that what it holds could not be told.

    """
    if not 0 <= chunk.start < chunk.end <= len(chunk.document.text):
        raise AblateError(
            f"chunker: found the chunk {chunk.id}, expected a span within the {len(chunk.document.text)} characters of "
            "its document; correct the chunker"
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

    def lap(self, stage: str) -> None:
        now = time.perf_counter()
        self.laps[stage] = (now - self.last) * 1000
        self.last = now
