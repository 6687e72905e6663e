"""A query runs again with the output of one layer replaced, everything after it as it is, and nothing computed anew."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from ablate.pipeline import Asked, Mask, Ready, chunked, counted, ready, unique
from ablate.types import Chunk, Context, Document, Hit, Query


class Uncomputed(Exception):
    """What runs again would need work that nobody has done; the message says which."""


@dataclass(frozen=True)
class KeptScores:
    """A reranker that gives only scores that are kept."""

    reranker: Any

    def __call__(self, query: Query, hits: Sequence[Hit]) -> list[Hit]:
        head = hits[: getattr(self.reranker, "first", 0)]
        if head:
            if not hasattr(self.reranker, "known"):
                raise Uncomputed("the scores of the reranker are not kept")
            if not self.reranker.known([(query.text, hit.chunk.reading) for hit in head]):
                raise Uncomputed("the reranker was not asked for a chunk that would come before it")
        return list(self.reranker(query, hits))


@dataclass(frozen=True)
class KeptVectors:
    """An embedder that gives only vectors that are kept; `fresh` are the texts of which that is not known."""

    embedder: Any
    fresh: Sequence[str]

    @cached_property
    def lacking(self) -> bool:
        return not hasattr(self.embedder, "glance") or bool(self.embedder.glance(self.fresh)[0])

    def documents(self, texts: Sequence[str]) -> npt.NDArray[np.float32]:
        if self.lacking:
            raise Uncomputed("the encoder was not asked for a text that would be searched")
        vectors: npt.NDArray[np.float32] = self.embedder.documents(texts)
        return vectors

    def queries(self, texts: Sequence[str]) -> npt.NDArray[np.float32]:
        vectors: npt.NDArray[np.float32] = self.embedder.queries(texts)
        return vectors


def packed(ready: Ready, query: Query, hits: Sequence[Hit]) -> Context:
    """The context that the packer makes of a ranking."""
    return counted(ready.line.packer(query, unique(hits), ready.k, ready.budget, ready.tokens), ready.length)


def reranked(ready: Ready, query: Query, permitted: Sequence[Hit]) -> Context:
    """The context that comes of the hits which the reranker gets.

    Raises:
        Uncomputed: the reranker would have to score a pair.

    """
    return packed(ready, query, KeptScores(ready.line.reranker)(query, permitted))


def allowed(ready: Ready, query: Query, names: Collection[str], search: Asked) -> Context:
    """The context that comes of another search, access letting the documents of these names through.

    Raises:
        Uncomputed: there is no index for the search, or query or pairs would have to be computed.

    """
    if search.known.tobytes() not in ready.indexes:
        raise Uncomputed("there is no index of the documents that would be searched")
    if not hasattr(ready.line.embedder, "glance"):
        raise Uncomputed("the vector of the query is not kept")
    fused = ready.search(search).fused
    kept = {hit.chunk for hit in ready.access.after(query, fused)}
    return reranked(ready, query, [hit for hit in fused if hit.chunk in kept or hit.chunk.document.id in names])


def opened(mask: Mask, places: Sequence[int]) -> Mask:
    """The mask with these documents let through."""
    wider = mask.copy()
    wider[list(places)] = True
    return wider


@dataclass(frozen=True)
class Rebuilt:
    """The line over a corpus that lost nothing: `documents` as they were written, and `pieces` as chunks of their own.

    Its indexes are built when it is first asked, of vectors that are kept.
    """

    ready: Ready
    documents: Mapping[str, Document]
    pieces: Sequence[Chunk]
    lines: dict[str, Ready] = field(default_factory=dict, repr=False)

    def __call__(self, query: Query) -> Context:
        """The context of a query.

        Raises:
            Uncomputed: a text, or a pair for the reranker, would have to be computed.

        """
        return self.line(query).context

    @cached_property
    def line(self) -> Ready:
        dataset, was = self.ready.dataset, self.ready
        renewed = {name: cut for name, cut in zip(self.documents, self.cut, strict=True)}
        added = renewed | {name: [c for c in self.pieces if c.document.id == name] for name in self.homes}
        fresh = [chunk.reading for chunks in added.values() for chunk in chunks]
        line = replace(
            was.line, embedder=KeptVectors(was.line.embedder, fresh), reranker=KeptScores(was.line.reranker)
        )
        by_document: dict[str, list[Chunk]] = {document.id: [] for document in dataset.documents}
        for chunk in was.chunks:
            by_document[chunk.document.id].append(chunk)
        pieces = [
            renewed.get(name, [*chunks, *(added.get(name) or ())]) for name, chunks in by_document.items()
        ]
        documents = tuple(self.documents.get(document.id, document) for document in dataset.documents)
        return ready(
            line, replace(dataset, documents=documents), was.tokens, was.k, was.depth, was.budget, pieces
        )
