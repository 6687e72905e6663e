"""An embedder or a pairwise reranker goes in, the same thing comes out that computes each text or pair only once."""

from __future__ import annotations

import hashlib
import inspect
import logging
import struct
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ablate.reranker import Pair, rerank
from ablate.shelf import Shelf
from ablate.types import Hit, Query

log = logging.getLogger(__name__)

_LIVE: ContextVar[bool] = ContextVar("live", default=False)


@contextmanager
def live() -> Iterator[None]:
    """Within it queries are encoded and pairs scored every time they are asked for, so that latency can be measured."""
    token = _LIVE.set(True)
    try:
        yield
    finally:
        _LIVE.reset(token)


class Stored:
    """What is common to components whose work is kept: where, and how much of it was already there."""

    revision: str
    folder: Path
    _asked: dict[bytes, bool]

    @property
    def tally(self) -> dict[str, int]:
        """How many unique texts or pairs were "computed" and how many "reused" from the folder; empty before any."""
        computed = sum(self._asked.values())
        return {"computed": computed, "reused": len(self._asked) - computed} if self._asked else {}

    def _shelf(self, kind: str) -> Shelf:
        """The file of everything that this revision has computed."""
        name = hashlib.sha256(self.revision.encode("utf-8", "surrogatepass")).hexdigest()[:20]
        return Shelf(self.folder / kind / f"{name}.sqlite", self.revision)

    def _note(self, key: bytes, computed: bool) -> None:
        self._asked[key] = self._asked.get(key, False) or computed


@dataclass(frozen=True)
class StoredEmbedder(Stored):
    """An embedder that encodes each unique text once, whatever asks for it and in whichever process.

    `expected` are queries that will be asked one by one: the first of them brings the vectors of all, because many
    are encoded side by side.
    """

    embedder: Any
    folder: Path
    expected: Sequence[str] = field(default=(), repr=False)
    _asked: dict[bytes, bool] = field(default_factory=dict, repr=False)

    @cached_property
    def revision(self) -> str:  # type: ignore[override]  # read once: it hashes the weights
        return str(self.embedder.revision)

    @cached_property
    def _foreseen(self) -> dict[str, NDArray[np.float32]]:
        return dict(zip(self.expected, self._vectors(self.expected, True), strict=True))

    def documents(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Vectors of documents, shape (texts, dimensions)."""
        return self._vectors(texts, False)

    def queries(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Vectors of queries, shape (texts, dimensions)."""
        if _LIVE.get():
            return self.embedder.queries(texts)  # type: ignore[no-any-return]
        if texts and all(text in self._foreseen for text in texts):
            return np.stack([self._foreseen[text] for text in texts])
        return self._vectors(texts, True)

    def seen(self, texts: Sequence[str], as_queries: bool = False) -> NDArray[np.int64]:
        """How many characters from its start the model reads of each text, shape (texts,)."""
        seen = np.empty(len(texts), np.int64)
        for places, row in self._rows(texts, as_queries):
            seen[places] = struct.unpack_from("<q", row)[0]
        return seen

    def truncated(self, texts: Sequence[str], as_queries: bool = False) -> NDArray[np.bool_]:
        """Which texts the model's limit cut, shape (texts,)."""
        return self.seen(texts, as_queries) < np.array([len(text) for text in texts], np.int64)

    def audit(self, texts: Sequence[str], as_queries: bool = False) -> list[str]:
        """Those of `texts` whose stored vector is not what the model gives now."""
        fresh = dict(zip(texts, self._computed(texts, as_queries), strict=True))
        return [texts[places[0]] for places, row in self._rows(texts, as_queries) if fresh[texts[places[0]]] != row]

    def _vectors(self, texts: Sequence[str], as_queries: bool) -> NDArray[np.float32]:
        vectors: NDArray[np.float32] | None = None
        for places, row in self._rows(texts, as_queries):
            vector = np.frombuffer(row, "<f4", offset=8)
            if vectors is None:
                vectors = np.empty((len(texts), len(vector)), np.float32)
            vectors[places] = vector
        # Of no texts only the model itself knows how many dimensions their vectors would have.
        return self.embedder.documents([]) if vectors is None else vectors

    def _rows(self, texts: Sequence[str], as_queries: bool) -> Iterator[tuple[list[int], bytes]]:
        """Of each unique text its places in `texts` and its row."""
        places: dict[str, list[int]] = {}
        for place, text in enumerate(texts):
            places.setdefault(text, []).append(place)
        unique = list(places)
        keys = [_key("query" if as_queries else "document", text) for text in unique]

        def compute(chosen: list[int]) -> list[bytes]:
            log.info("encoding %d of %d texts", len(chosen), len(unique))
            return self._computed([unique[place] for place in chosen], as_queries)

        for place, row, computed in self._shelf("vectors").kept(keys, compute):
            self._note(keys[place], computed)
            yield places[unique[place]], row

    def _computed(self, texts: Sequence[str], as_queries: bool) -> list[bytes]:
        """A row of each text: the characters seen as int64, then the vector as float32."""
        vectors, seen = self.embedder.read(texts, as_queries)
        rows = zip(seen, np.ascontiguousarray(vectors, "<f4"), strict=True)
        return [struct.pack("<q", count) + vector.tobytes() for count, vector in rows]


@dataclass(frozen=True)
class StoredReranker(Stored):
    """A pairwise reranker that scores each unique pair once, whatever asks for it and in whichever process."""

    reranker: Any
    folder: Path
    _asked: dict[bytes, bool] = field(default_factory=dict, repr=False)

    @cached_property
    def revision(self) -> str:  # type: ignore[override]  # read once: it hashes the weights
        return str(self.reranker.revision)

    @property
    def first(self) -> int:
        return int(self.reranker.first)

    def __call__(self, query: Query, hits: Sequence[Hit]) -> list[Hit]:
        return rerank(query, hits, self.first, self.scores)

    def scores(self, pairs: Sequence[Pair]) -> NDArray[np.float64]:
        """The logit of each pair, shape (pairs,)."""
        if _LIVE.get():
            return self.reranker.read(pairs)[0]  # type: ignore[no-any-return]
        return np.array([score for score, _ in self._values(pairs)], np.float64)

    def truncated(self, pairs: Sequence[Pair]) -> NDArray[np.bool_]:
        """Which pairs the model's limit cut, shape (pairs,)."""
        return np.array([cut for _, cut in self._values(pairs)], np.bool_)

    def audit(self, pairs: Sequence[Pair]) -> list[Pair]:
        """Those of `pairs` whose stored score is not what the model gives now."""
        fresh = [struct.unpack("<d?", row) for row in self._computed(pairs)]
        return [pair for pair, was, now in zip(pairs, self._values(pairs), fresh, strict=True) if was != now]

    def _values(self, pairs: Sequence[Pair]) -> list[tuple[float, bool]]:
        """Of each pair its score and whether the limit cut it."""
        unique = list(dict.fromkeys(pairs))
        keys = [_key(*pair) for pair in unique]
        values: dict[Pair, tuple[float, bool]] = {}

        def compute(chosen: list[int]) -> list[bytes]:
            return self._computed([unique[place] for place in chosen])

        for place, row, computed in self._shelf("scores").kept(keys, compute):
            self._note(keys[place], computed)
            values[unique[place]] = struct.unpack("<d?", row)
        return [values[pair] for pair in pairs]

    def _computed(self, pairs: Sequence[Pair]) -> list[bytes]:
        scores, cut = self.reranker.read(pairs)
        return [struct.pack("<d?", *row) for row in zip(scores, cut, strict=True)]


def stored(component: Any, folder: Path, expected: Sequence[str] = ()) -> Any:
    """`component` with its work kept under `folder`, or itself if it does no work that can be kept.

    `expected` are the queries that an embedder will be asked for.
    """
    if offers(component, "documents", "queries", "read", "revision"):
        return StoredEmbedder(component, folder, expected)
    if offers(component, "read", "first", "revision"):
        return StoredReranker(component, folder)
    return component


def offers(component: Any, *names: str) -> bool:
    """Whether a component has all of these, found without asking for any: a revision looks its model up."""
    return all(inspect.getattr_static(component, name, None) is not None for name in names)


def _key(*parts: str) -> bytes:
    """A hash of texts and of where each ends."""
    mark = hashlib.blake2b(digest_size=16)
    for part in parts:
        data = part.encode("utf-8", "surrogatepass")
        mark.update(len(data).to_bytes(8, "big") + data)
    return mark.digest()
