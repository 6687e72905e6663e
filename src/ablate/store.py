"""Vectors and pair scores that were computed once go in, the same bytes come out: sqlite files under one folder."""

from __future__ import annotations

import hashlib
import logging
import os
import sqlite3
import struct
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from ablate.errors import AblateError
from ablate.reranker import Pair, rerank
from ablate.types import Hit, Query

log = logging.getLogger(__name__)

Answer = TypeVar("Answer")

SLICE = 512
"""How many rows are read, computed and written at a time: it bounds memory, and what a killed process loses."""

WAIT_SECONDS = 60.0
"""How long a read waits for another process's write."""

BROKEN = {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB}


_LIVE: ContextVar[bool] = ContextVar("live", default=False)


@contextmanager
def live() -> Iterator[None]:
    """Within it queries are encoded and pairs scored every time they are asked for, so that latency can be measured."""
    token = _LIVE.set(True)
    try:
        yield
    finally:
        _LIVE.reset(token)


@dataclass(frozen=True)
class Shelf:
    """What one revision of one model has computed: keys of 16 bytes to values, each with a checksum of both."""

    path: Path
    revision: str

    @cached_property
    def lock(self) -> Any:
        """Held while rows are computed, so that several processes compute each only once."""
        from filelock import FileLock

        self.path.parent.mkdir(parents=True, exist_ok=True)
        return FileLock(f"{self.path}.lock")

    def read(self, keys: Sequence[bytes]) -> dict[bytes, bytes]:
        """The values of those keys that are there and whole."""
        return self._safely(lambda connection: self._read(connection, keys))

    def write(self, rows: dict[bytes, bytes]) -> None:
        """Keeps rows in one transaction."""
        lines = [(key, value, _checksum(key, value)) for key, value in rows.items()]
        self._safely(lambda connection: connection.executemany("INSERT OR REPLACE INTO rows VALUES (?, ?, ?)", lines))

    def kept(
        self, keys: Sequence[bytes], compute: Callable[[list[int]], list[bytes]], tally: Counter[str]
    ) -> Iterator[tuple[int, bytes]]:
        """Position and value of every key, in any order; `compute` gives the values of the positions that are missing.

        Keys must differ from each other. Positions are computed in their order, slice by slice, under the lock.
        """
        missing: list[int] = []
        for places in _slices(range(len(keys))):
            found = self.read([keys[place] for place in places])
            tally["reused"] += len(found)
            missing += [place for place in places if keys[place] not in found]
            yield from ((place, found[keys[place]]) for place in places if keys[place] in found)
        for places in _slices(missing):
            yield from self._filled(places, keys, compute, tally)

    def _filled(
        self,
        places: Sequence[int],
        keys: Sequence[bytes],
        compute: Callable[[list[int]], list[bytes]],
        tally: Counter[str],
    ) -> Iterator[tuple[int, bytes]]:
        with self.lock:
            # Another process may have computed these while this one waited.
            found = self.read([keys[place] for place in places])
            rest = [place for place in places if keys[place] not in found]
            if rest:
                fresh = dict(zip((keys[place] for place in rest), compute(rest), strict=True))
                self.write(fresh)
                found |= fresh
        tally["reused"] += len(places) - len(rest)
        tally["computed"] += len(rest)
        yield from ((place, found[keys[place]]) for place in places)

    @contextmanager
    def _open(self) -> Iterator[sqlite3.Connection]:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with closing(sqlite3.connect(self.path, timeout=WAIT_SECONDS)) as connection:
            # Rows are checked when read, so a power cut may cost rows but cannot give wrong ones.
            connection.execute("PRAGMA synchronous = OFF")
            connection.execute("CREATE TABLE IF NOT EXISTS about (revision TEXT PRIMARY KEY)")
            connection.execute("CREATE TABLE IF NOT EXISTS rows (key BLOB PRIMARY KEY, value BLOB, checksum BLOB)")
            with connection:
                connection.execute("INSERT OR IGNORE INTO about VALUES (?)", (self.revision,))
            with connection:
                yield connection

    def _safely(self, action: Callable[[sqlite3.Connection], Answer]) -> Answer:
        """Runs `action` on the file; a file that is no database any more is set aside and begun anew."""
        try:
            with self._open() as connection:
                return action(connection)
        except sqlite3.DatabaseError as error:
            self._raise_unless_broken(error)
        with self.lock:
            try:  # another process may have begun it anew meanwhile
                with self._open() as connection:
                    return action(connection)
            except sqlite3.DatabaseError as error:
                self._raise_unless_broken(error)
                self._set_aside(error)
            with self._open() as connection:
                return action(connection)

    def _raise_unless_broken(self, error: sqlite3.DatabaseError) -> None:
        if getattr(error, "sqlite_errorcode", 0) & 0xFF not in BROKEN:
            raise AblateError(
                f"{self.path}: {error}, expected a file that can be read and written, check its folder or remove it"
            ) from error

    def _set_aside(self, error: sqlite3.DatabaseError) -> None:
        log.warning("%s: %s, set aside as %s.broken and computed again", self.path, error, self.path.name)
        os.replace(self.path, f"{self.path}.broken")
        Path(f"{self.path}-journal").unlink(missing_ok=True)

    def _read(self, connection: sqlite3.Connection, keys: Sequence[bytes]) -> dict[bytes, bytes]:
        found: dict[bytes, bytes] = {}
        broken = 0
        for part in _slices(keys):
            marks = ",".join("?" * len(part))
            for key, value, checksum in connection.execute(f"SELECT * FROM rows WHERE key IN ({marks})", part):
                if checksum == _checksum(key, value):
                    found[key] = value
                else:
                    broken += 1
        if broken:
            log.warning("%s: %d rows do not match their checksum, computed again", self.path, broken)
        return found


@dataclass(frozen=True)
class StoredEmbedder:
    """An embedder that encodes each unique text once, whatever asks for it and in whichever process.

    `tally` counts the unique texts that were "computed" and those "reused" from the folder. `expected` are queries that
    will be asked one by one: the first of them brings the vectors of all, because encoding in batches is faster.
    """

    embedder: Any
    folder: Path
    expected: Sequence[str] = ()
    tally: Counter[str] = field(default_factory=Counter)

    @cached_property
    def revision(self) -> str:
        return str(self.embedder.revision)

    @cached_property
    def _shelf(self) -> Shelf:
        return Shelf(_file(self.folder, "vectors", self.revision), self.revision)

    @cached_property
    def _foreseen(self) -> dict[str, NDArray[np.float32]]:
        return dict(zip(self.expected, self._vectors(self.expected, True), strict=True)) if self.expected else {}

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

    def _vectors(self, texts: Sequence[str], as_queries: bool) -> NDArray[np.float32]:
        if not texts:
            return self.embedder.documents([])  # type: ignore[no-any-return]
        vectors: NDArray[np.float32] | None = None
        for places, row in self._rows(texts, as_queries):
            vector = np.frombuffer(row, "<f4", offset=8)
            if vectors is None:
                vectors = np.empty((len(texts), len(vector)), np.float32)
            vectors[places] = vector
        assert vectors is not None
        return vectors

    def _rows(self, texts: Sequence[str], as_queries: bool) -> Iterator[tuple[list[int], bytes]]:
        """Of each unique text its places in `texts` and its row: characters seen as int64, then the vector."""
        places: dict[str, list[int]] = {}
        for place, text in enumerate(texts):
            places.setdefault(text, []).append(place)
        # Neighbours of about one length fill the encoder's batches of equal token count.
        unique = sorted(places, key=len, reverse=True)
        encode = self.embedder.queries if as_queries else self.embedder.documents

        def compute(chosen: list[int]) -> list[bytes]:
            part = [unique[place] for place in chosen]
            log.info("encoding %d of %d texts", len(part), len(unique))
            seen = self.embedder.seen(part, as_queries)
            vectors = np.ascontiguousarray(encode(part), "<f4")
            return [struct.pack("<q", count) + vector.tobytes() for count, vector in zip(seen, vectors, strict=True)]

        keys = [_key("query" if as_queries else "document", text) for text in unique]
        for place, row in self._shelf.kept(keys, compute, self.tally):
            yield places[unique[place]], row


@dataclass(frozen=True)
class StoredReranker:
    """A pairwise reranker that scores each unique pair once; `tally` counts pairs "computed" and "reused"."""

    reranker: Any
    folder: Path
    tally: Counter[str] = field(default_factory=Counter)

    @cached_property
    def revision(self) -> str:
        return str(self.reranker.revision)

    @property
    def first(self) -> int:
        return int(self.reranker.first)

    @cached_property
    def _shelf(self) -> Shelf:
        return Shelf(_file(self.folder, "scores", self.revision), self.revision)

    def __call__(self, query: Query, hits: Sequence[Hit]) -> list[Hit]:
        return rerank(query, hits, self.first, self.scores)

    def scores(self, pairs: Sequence[Pair]) -> NDArray[np.float64]:
        """The logit of each pair, shape (pairs,)."""
        if _LIVE.get():
            return self.reranker.scores(pairs)  # type: ignore[no-any-return]
        return np.array([score for score, _ in self._rows(pairs)], np.float64)

    def truncated(self, pairs: Sequence[Pair]) -> NDArray[np.bool_]:
        """Which pairs the model's limit cut, shape (pairs,)."""
        return np.array([cut for _, cut in self._rows(pairs)], np.bool_)

    def _rows(self, pairs: Sequence[Pair]) -> list[tuple[float, bool]]:
        unique = list(dict.fromkeys(pairs))

        def compute(chosen: list[int]) -> list[bytes]:
            part = [unique[place] for place in chosen]
            scores, cut = self.reranker.scores(part), self.reranker.truncated(part)
            return [struct.pack("<d?", *row) for row in zip(scores, cut, strict=True)]

        rows = self._shelf.kept([_key(*pair) for pair in unique], compute, self.tally)
        of = {unique[place]: struct.unpack("<d?", row) for place, row in rows}
        return [of[pair] for pair in pairs]


def stored(component: Any, folder: Path, expected: Sequence[str] = ()) -> Any:
    """`component` with its work kept under `folder`, or itself if it does no work that can be kept.

    `expected` are the queries that an embedder will be asked for.
    """
    if all(hasattr(component, name) for name in ("documents", "queries", "seen", "revision")):
        return StoredEmbedder(component, folder, expected)
    if all(hasattr(component, name) for name in ("scores", "truncated", "first", "revision")):
        return StoredReranker(component, folder)
    return component


def _file(folder: Path, kind: str, revision: str) -> Path:
    return folder / kind / f"{hashlib.sha256(revision.encode()).hexdigest()[:20]}.sqlite"


def _key(*parts: str) -> bytes:
    """A hash of texts and of where each ends."""
    mark = hashlib.blake2b(digest_size=16)
    for part in parts:
        data = part.encode("utf-8", "surrogatepass")
        mark.update(len(data).to_bytes(8, "big") + data)
    return mark.digest()


def _checksum(key: bytes, value: bytes) -> bytes:
    return hashlib.blake2b(key + value, digest_size=8).digest()


def _slices(items: Sequence[Any]) -> Iterator[Any]:
    for start in range(0, len(items), SLICE):
        yield items[start : start + SLICE]
