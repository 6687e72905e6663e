"""A query runs again with the output of one layer replaced, everything after it as it is, and nothing computed anew."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
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


def packed(line: Ready, query: Query, hits: Sequence[Hit]) -> Context:
    """The context that the packer makes of a ranking, in which no chunk stands twice."""
    return counted(line.line.packer(query, hits, line.k, line.budget, line.tokens), line.length)


def reranked(line: Ready, query: Query, permitted: Sequence[Hit]) -> Context:
    """The context that comes of the hits which the reranker gets.

    Raises:
        Uncomputed: the reranker would have to score a pair.

    """
    return packed(line, query, unique(KeptScores(line.line.reranker)(query, permitted)))


def allowed(line: Ready, query: Query, names: Collection[str], search: Asked) -> Context:
    """The context that comes of another search, access letting the documents of these names through.

    Raises:
        Uncomputed: there is no index for the search, or query or pairs would have to be computed.

    """
    if search.known.tobytes() not in line.indexes:
        raise Uncomputed("there is no index of the documents that would be searched")
    if not hasattr(line.line.embedder, "glance"):
        raise Uncomputed("the vector of the query is not kept")
    fused = line.search(search).fused
    kept = {hit.chunk for hit in line.access.after(query, fused)}
    return reranked(line, query, [hit for hit in fused if hit.chunk in kept or hit.chunk.document.id in names])


def opened(mask: Mask, places: Sequence[int]) -> Mask:
    """The mask with these documents let through."""
    wider = mask.copy()
    wider[list(places)] = True
    return wider


def rebuilt(was: Ready, documents: Sequence[Document], renewed: Mapping[str, Sequence[Chunk]]) -> Ready:
    """The line over other documents, or with other chunks: `renewed` has those of some documents, by id.

    Its indexes are built when it is first asked, of vectors that are kept; Uncomputed is raised then.
    """
    pieces: dict[str, list[Chunk]] = {document.id: [] for document in documents}
    for chunk in was.chunks:
        pieces[chunk.document.id].append(chunk)
    pieces |= {name: list(chunks) for name, chunks in renewed.items()}
    fresh = [chunk.reading for chunks in renewed.values() for chunk in chunks]
    kept = KeptVectors(was.line.embedder, fresh), KeptScores(was.line.reranker)
    line = replace(was.line, embedder=kept[0], reranker=kept[1])
    dataset = replace(was.dataset, documents=tuple(documents))
    return ready(line, dataset, was.tokens, was.k, was.depth, was.budget, list(pieces.values()))


def rechunked(was: Ready, units: Sequence[Chunk]) -> Ready:
    """The line with each of these units as one chunk, beside those that its chunker made."""
    renewed: dict[str, list[Chunk]] = {unit.document.id: [] for unit in units}
    for chunk in (*was.chunks, *units):
        if chunk.document.id in renewed:
            renewed[chunk.document.id].append(chunk)
    return rebuilt(was, was.dataset.documents, renewed)


def reingested(was: Ready, written: Mapping[str, Document]) -> Ready:
    """The line over the corpus with these documents, by id, as they were written, in the chunks of its chunker."""
    cut = chunked(was.line.chunker, replace(was.dataset, documents=tuple(written.values())), was.tokens)
    documents = [written.get(document.id, document) for document in was.dataset.documents]
    return rebuilt(was, documents, dict(zip(written, cut, strict=True)))
