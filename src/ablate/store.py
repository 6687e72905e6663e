"""An embedder or a pairwise reranker goes in, the same thing comes out that computes each text or pair only once."""

from __future__ import annotations

import hashlib
import inspect
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

from ablate.environment import machine
from ablate.progress import Meter, Pace, counted
from ablate.reranker import Pair, rerank
from ablate.shelf import Compute, Glance, Shelf
from ablate.types import Hit, Query

_LIVE: ContextVar[bool] = ContextVar("live", default=False)


LONGEST = 2000
"""Characters of a text or pair that count where time is told by length: few models read more."""


@contextmanager
def live() -> Iterator[None]:
    """Within it queries are encoded and pairs scored every time they are asked for, so that latency can be measured."""
    token = _LIVE.set(True)
    try:
        yield
    finally:
        _LIVE.reset(token)


@dataclass(frozen=True, slots=True)
class Audit:
    """A file's texts or pairs computed again: how many, and the positions of those whose bits are not the kept ones."""

    path: Path
    compared: int
    differing: Sequence[int]


class Stored:
    """What is common to components whose work is kept: where, and how much of it was already there."""

    revision: str
    model: str
    folder: Path
    _asked: dict[bytes, bool]

    @property
    def tally(self) -> dict[str, int]:
        """How many unique texts or pairs were "computed" and how many "reused" from the folder; empty before any."""
        computed = sum(self._asked.values())
        return {"computed": computed, "reused": len(self._asked) - computed} if self._asked else {}

    def _shelf(self, kind: str) -> Shelf:
        """The file of everything that this revision has computed."""
        return Shelf.of(self.folder, kind, self.revision, self.model)

    def _audit(self, shelf: Shelf, keys: Sequence[bytes], compute: Compute) -> Audit:
        """Computes again what was there before this object computed anything."""
        held = shelf.read(keys)
        places = [place for place, key in enumerate(keys) if key in held and not self._asked.get(key)]
        fresh = zip(places, compute(places) if places else [], strict=True)
        return Audit(shelf.path, len(places), [place for place, row in fresh if held[keys[place]] != row])

    def _worked(self, shelf: Shelf, kind: str, pace: Pace, lengths: Sequence[int]) -> None:
        """Keeps how long computing took, for who asks what more of it would take; `lengths` of what was computed."""
        count, seconds = pace.measured
        if count and seconds:
            shelf.note(kind, machine(), round(sum(lengths) * count / len(lengths)), seconds)

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

    @property
    def model(self) -> str:  # type: ignore[override]
        return named(self.embedder)

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

    def glance(self, texts: Sequence[str], as_queries: bool = False) -> tuple[list[str], Glance]:
        """Those of these texts that the folder does not hold, and what it holds; nothing is computed or written."""
        keys = self.keys(texts, as_queries)
        glance = self._shelf("vectors").glance(keys, machine())
        return [text for text, key in zip(texts, keys, strict=True) if key not in glance.keys], glance

    def keys(self, texts: Sequence[str], as_queries: bool = False) -> list[bytes]:
        """What each text is kept under."""
        return [_key("query" if as_queries else "document", text) for text in texts]

    def asked(self, texts: Sequence[str], as_queries: bool = False) -> list[bool]:
        """Which of these texts this object was asked for already, so that asking again computes nothing."""
        return [key in self._asked for key in self.keys(texts, as_queries)]

    def seen(self, texts: Sequence[str], as_queries: bool = False) -> NDArray[np.int64]:
        """How many characters from its start the model reads of each text, shape (texts,)."""
        seen = np.empty(len(texts), np.int64)
        for places, row in self._rows(texts, as_queries):
            seen[places] = struct.unpack_from("<q", row)[0]
        return seen

    def truncated(self, texts: Sequence[str], as_queries: bool = False) -> NDArray[np.bool_]:
        """Which texts the model's limit cut, shape (texts,)."""
        return self.seen(texts, as_queries) < np.array([len(text) for text in texts], np.int64)

    def audit(self, texts: Sequence[str], as_queries: bool = False) -> Audit:
        """Whether the kept vectors of those `texts` that have one are what the model gives now."""
        return self._audit(
            self._shelf("vectors"),
            self.keys(texts, as_queries),
            lambda places: self._computed([texts[place] for place in places], as_queries),
        )

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
        keys, shelf = self.keys(unique, as_queries), self._shelf("vectors")
        given = 0
        lengths: list[int] = []

        def compute(chosen: list[int]) -> list[bytes]:
            chosen_texts = [unique[place] for place in chosen]
            lengths.extend(map(length, chosen_texts))
            meter.expect(len(unique) - given)
            with counted(len(chosen), meter):
                return self._computed(chosen_texts, as_queries)

        with Meter("encoding", "texts") as meter:
            for place, row, computed in shelf.kept(keys, compute):
                given += 1
                self._note(keys[place], computed)
                yield places[unique[place]], row
        self._worked(shelf, "query" if as_queries else "document", meter.pace, lengths)

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
    def model(self) -> str:  # type: ignore[override]
        return named(self.reranker)

    @property
    def first(self) -> int:
        return int(self.reranker.first)

    def __call__(self, query: Query, hits: Sequence[Hit]) -> list[Hit]:
        return rerank(query, hits, self.first, self.scores)

    def prepare(self, hits: Sequence[Hit]) -> None:
        """Let a reranker encode chunks ahead of a live query; otherwise a kept score needs no chunk to be encoded."""
        if _LIVE.get() and offers(self.reranker, "prepare"):
            self.reranker.prepare(hits)

    def glance(self) -> Glance:
        """What the folder holds in all; nothing is computed or written."""
        return self._shelf("scores").glance([], machine())

    def scores(self, pairs: Sequence[Pair]) -> NDArray[np.float64]:
        """The logit of each pair, shape (pairs,)."""
        if _LIVE.get():
            return self.reranker.read(pairs)[0]  # type: ignore[no-any-return]
        return np.array([score for score, _ in self._values(pairs)], np.float64)

    def truncated(self, pairs: Sequence[Pair]) -> NDArray[np.bool_]:
        """Which pairs the model's limit cut, shape (pairs,)."""
        return np.array([cut for _, cut in self._values(pairs)], np.bool_)

    def known(self, pairs: Sequence[Pair]) -> bool:
        """Whether the score of every one of these pairs is kept, so that asking for it computes nothing."""
        keys = [_key(*pair) for pair in pairs]
        return self._shelf("scores").read(keys).keys() >= set(keys)

    def audit(self, pairs: Sequence[Pair]) -> Audit:
        """Whether the kept scores of those `pairs` that have one are what the model gives now."""
        return self._audit(
            self._shelf("scores"),
            [_key(*pair) for pair in pairs],
            lambda places: self._computed([pairs[place] for place in places]),
        )

    def _values(self, pairs: Sequence[Pair]) -> list[tuple[float, bool]]:
        """Of each pair its score and whether the limit cut it."""
        unique = list(dict.fromkeys(pairs))
        keys, shelf = [_key(*pair) for pair in unique], self._shelf("scores")
        values: dict[Pair, tuple[float, bool]] = {}
        pace = Pace()
        lengths: list[int] = []

        def compute(chosen: list[int]) -> list[bytes]:
            chosen_pairs = [unique[place] for place in chosen]
            lengths.extend(length("".join(pair)) for pair in chosen_pairs)
            with counted(len(chosen), pace):
                return self._computed(chosen_pairs)

        for place, row, computed in shelf.kept(keys, compute):
            self._note(keys[place], computed)
            values[unique[place]] = struct.unpack("<d?", row)
        self._worked(shelf, "pair", pace, lengths)
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


def named(component: Any) -> str:
    """The name by which people know a component's model."""
    return str(getattr(component, "model", type(component).__name__))


def length(text: str) -> int:
    """By how much a text counts where time is told by length."""
    return min(len(text), LONGEST)


def _key(*parts: str) -> bytes:
    """A hash of texts and of where each ends."""
    mark = hashlib.blake2b(digest_size=16)
    for part in parts:
        data = part.encode("utf-8", "surrogatepass")
        mark.update(len(data).to_bytes(8, "big") + data)
    return mark.digest()
