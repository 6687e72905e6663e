"""Keys and a way to compute their values go in, values come out, each computed once: one sqlite file a revision."""

from __future__ import annotations

import functools
import hashlib
import logging
import os
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

from ablate.errors import AblateError

log = logging.getLogger(__name__)

Answer = TypeVar("Answer")

Compute = Callable[[list[int]], list[bytes]]
"""Positions of keys to their values."""

SLICE = 512
"""How many rows are read, computed and written at a time: it bounds memory, and what a killed process loses."""

WAIT_SECONDS = 60.0
"""How long a read waits for another process's write."""

BROKEN = {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB}
"""What sqlite says of a file that is no database any more; its other complaints are about the folder or the disk."""


@dataclass(frozen=True)
class Shelf:
    """What one revision of one model has computed: keys of 16 bytes to values, each row with a checksum of both.

    A row or a file that is broken costs one line of warning and is computed again; it never gives a wrong value.

    Raises:
        AblateError: by every method, if the file cannot be opened, read or written for another reason.
    """

    path: Path
    revision: str

    def kept(self, keys: Sequence[bytes], compute: Compute) -> Iterator[tuple[int, bytes, bool]]:
        """Position and value of every key, in any order, and whether it was computed just now.

        Keys must differ from each other. What is missing is computed in the order of the keys, slice by slice, under
        a lock, so that of several processes only one does it.
        """
        missing: list[int] = []
        for places in _slices(range(len(keys))):
            found = self.read([keys[place] for place in places])
            missing += [place for place in places if keys[place] not in found]
            yield from ((place, found[keys[place]], False) for place in places if keys[place] in found)
        for places in _slices(missing):
            yield from self._filled(places, keys, compute)

    def read(self, keys: Sequence[bytes]) -> dict[bytes, bytes]:
        """The values of those keys that are there and whole."""
        return self._safely(lambda connection: self._read(connection, keys))

    def write(self, rows: dict[bytes, bytes]) -> None:
        """Keeps rows in one transaction."""
        lines = [(key, value, _checksum(key, value)) for key, value in rows.items()]
        self._safely(lambda connection: connection.executemany("INSERT OR REPLACE INTO rows VALUES (?, ?, ?)", lines))

    def check(self) -> tuple[int, int]:
        """How many rows there are, and how many of them do not match their checksum.

        Raises:
            AblateError: the file is no database any more.
        """
        try:
            with self._open() as connection:
                whole = [_checksum(*row[:2]) == row[2] for row in connection.execute("SELECT * FROM rows")]
        except sqlite3.DatabaseError as error:
            raise AblateError(f"{self.path}: found {str(error)!r}, expected a database; remove the file") from error
        return len(whole), len(whole) - sum(whole)

    def _filled(self, places: Sequence[int], keys: Sequence[bytes], compute: Compute) -> list[tuple[int, bytes, bool]]:
        with self._locked():
            # Another process may have computed these while this one waited.
            found = self.read([keys[place] for place in places])
            rest = [place for place in places if keys[place] not in found]
            fresh = dict(zip((keys[place] for place in rest), compute(rest) if rest else [], strict=True))
            self.write(fresh)
        values = found | fresh
        return [(place, values[keys[place]], keys[place] in fresh) for place in places]

    @contextmanager
    def _locked(self) -> Iterator[None]:
        from filelock import Timeout

        try:
            self._lock.acquire(timeout=1)
        except Timeout:
            log.info("%s: waiting for another process that computes the same", self.path)
            self._lock.acquire()
        try:
            yield
        finally:
            self._lock.release()

    @cached_property
    def _lock(self) -> Any:
        from filelock import FileLock

        self._make_folder()
        return FileLock(f"{self.path}.lock")

    def _make_folder(self) -> None:
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise AblateError(
                f"{self.path.parent}: found {error.strerror!r}, expected a folder to write to; check its path"
            ) from error

    @contextmanager
    def _open(self) -> Iterator[sqlite3.Connection]:
        self._make_folder()
        with closing(sqlite3.connect(self.path, timeout=WAIT_SECONDS)) as connection:
            # Rows are checked when read, so a power cut may cost rows but cannot give wrong ones.
            connection.execute("PRAGMA synchronous = OFF")
            if not connection.execute("PRAGMA user_version").fetchone()[0]:
                with connection:
                    connection.execute("CREATE TABLE IF NOT EXISTS about (revision TEXT PRIMARY KEY)")
                    connection.execute("INSERT OR IGNORE INTO about VALUES (?)", (self.revision,))
                    connection.execute("CREATE TABLE IF NOT EXISTS rows (key BLOB PRIMARY KEY, value, checksum)")
                    connection.execute("PRAGMA user_version = 1")
            with connection:
                yield connection

    def _safely(self, action: Callable[[sqlite3.Connection], Answer]) -> Answer:
        """Runs `action` on the file; a file that is no database any more is set aside and begun anew."""
        try:
            with self._open() as connection:
                return action(connection)
        except sqlite3.DatabaseError as error:
            self._raise_unless_broken(error)
        with self._locked():
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
                f"{self.path}: found {str(error)!r}, expected a file that can be read and written; check its folder or "
                "remove it"
            ) from error

    def _set_aside(self, error: sqlite3.DatabaseError) -> None:
        log.warning("%s: %s, set aside as %s.broken and computed again", self.path, error, self.path.name)
        os.replace(self.path, f"{self.path}.broken")
        Path(f"{self.path}-journal").unlink(missing_ok=True)

    def _read(self, connection: sqlite3.Connection, keys: Sequence[bytes]) -> dict[bytes, bytes]:
        found: dict[bytes, bytes] = {}
        for part in _slices(keys):
            marks = ",".join("?" * len(part))
            for key, value, checksum in connection.execute(f"SELECT * FROM rows WHERE key IN ({marks})", part):
                if checksum == _checksum(key, value):
                    found[key] = value
                else:
                    _warn_of_rows(self.path)
        return found


def shelves(folder: Path) -> list[Shelf]:
    """Every shelf under `folder`, in order of path; the revision of one that is no database any more is empty."""
    return [Shelf(path, _revision(path)) for path in sorted(folder.glob("*/*.sqlite"))]


def _revision(path: Path) -> str:
    try:
        with closing(sqlite3.connect(path)) as connection:
            return str(connection.execute("SELECT revision FROM about").fetchone()[0])
    except (sqlite3.DatabaseError, TypeError):
        return ""


@functools.cache
def _warn_of_rows(path: Path) -> None:
    """Once a process and file, however many rows are met."""
    log.warning("%s: holds rows that do not match their checksum, they are computed again", path)


def _checksum(key: bytes, value: Any) -> bytes:
    """A hash of key and value; of a value that is no bytes any more, a hash of nothing else."""
    return hashlib.blake2b(key + value if isinstance(value, bytes) else b"", digest_size=8).digest()


def _slices(items: Sequence[Any]) -> Iterator[Any]:
    for start in range(0, len(items), SLICE):
        yield items[start : start + SLICE]
