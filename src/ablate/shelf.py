"""Keys and a way to compute their values go in, values come out, each computed once: one sqlite file a revision."""

from __future__ import annotations

import functools
import hashlib
import logging
import os
import sqlite3
import stat
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
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

WORK = "kind, machine, characters, seconds"
"""The columns of what computing took."""

TABLES = (
    "CREATE TABLE about (revision BLOB PRIMARY KEY, model BLOB)",
    "CREATE TABLE rows (key BLOB PRIMARY KEY, value, checksum)",
    f"CREATE TABLE work ({WORK}, PRIMARY KEY (kind, machine))",
)
"""All that a file may declare, word for word: no view, trigger, virtual table or computed column, which would run."""

STRANGE = f"SELECT 1 FROM sqlite_master WHERE sql NOT IN ({', '.join('?' * len(TABLES))}) LIMIT 1"

NAMES_OTHERS = bytes.fromhex("d9d505f920a163d7")
"""How a journal ends that names another file, which sqlite would delete: ours name none."""

BROKEN = {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB}
"""What sqlite says of a file that is no database any more; its other complaints are about the folder or the disk."""


class Foreign(sqlite3.DatabaseError):
    """A file that is not what its name says, or does more than hold rows: as useless as no database at all."""

    sqlite_errorcode = sqlite3.SQLITE_NOTADB


@dataclass(frozen=True)
class Glance:
    """What a file held at one moment: which of some keys, how many rows and bytes in all.

    `paces` are seconds a character, by kind of work, as measured on this machine.
    """

    keys: frozenset[bytes] = frozenset()
    rows: int = 0
    size: int = 0
    paces: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Shelf:
    """What one revision of one model has computed: keys of 16 bytes to values, each row with a checksum of both.

    A row or a file that is broken costs one line of warning and is computed again; it never gives a wrong value.
    `model` is the name by which the revision was first asked for, for people to read.

    Raises:
        AblateError: by every method, if the file cannot be opened, read or written for another reason.
    """

    path: Path
    revision: str
    model: str = ""

    @classmethod
    def of(cls, folder: Path, kind: str, revision: str, model: str) -> Shelf:
        """The file under `folder` of everything of one kind that a revision has computed."""
        name = hashlib.sha256(_bytes(revision)).hexdigest()[:20]
        return cls(folder / kind / f"{name}.sqlite", revision, model)

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
        _touch(self.path)
        for places in _slices(missing):
            yield from self._filled(places, keys, compute)

    def read(self, keys: Sequence[bytes]) -> dict[bytes, bytes]:
        """The values of those keys that are there and whole."""
        return self._safely(lambda connection: self._read(connection, keys))

    def write(self, rows: dict[bytes, bytes]) -> None:
        """Keeps rows in one transaction."""
        lines = [(key, value, _checksum(key, value)) for key, value in rows.items()]
        self._safely(lambda connection: connection.executemany("INSERT OR REPLACE INTO rows VALUES (?, ?, ?)", lines))

    def note(self, kind: str, machine: str, characters: int, seconds: float) -> None:
        """Adds to what is known of how long computing takes on a machine."""

        def add(connection: sqlite3.Connection) -> None:
            connection.execute(TABLES[2].replace("TABLE", "TABLE IF NOT EXISTS"))
            connection.execute(
                "INSERT INTO work VALUES (?, ?, ?, ?) ON CONFLICT DO UPDATE SET "
                "characters = characters + excluded.characters, seconds = seconds + excluded.seconds",
                (kind, machine, characters, seconds),
            )

        self._safely(add)

    def glance(self, keys: Sequence[bytes], machine: str) -> Glance:
        """What is there, found without writing or creating anything: nothing, if the file cannot be read."""
        try:
            _refuse_strange(self.path)
            uri = f"{self.path.absolute().as_uri()}?mode=ro"
            with closing(sqlite3.connect(uri, uri=True, timeout=WAIT_SECONDS)) as connection:
                connection.text_factory = bytes
                self._refuse_foreign(connection)
                held = [key for part in _slices(keys) for key in self._read(connection, part)]
                rows = connection.execute("SELECT count(*) FROM rows").fetchone()[0]
                noted = connection.execute("SELECT name FROM sqlite_master WHERE name = 'work'").fetchone()
                query = "SELECT kind, seconds / characters FROM work WHERE machine = ? AND characters > 0"
                work = connection.execute(query, (machine,)).fetchall() if noted else []
        except sqlite3.DatabaseError:
            return Glance()
        paces = {str(kind, "utf-8"): pace for kind, pace in work}
        return Glance(frozenset(held), rows, self.path.stat().st_size, paces)

    def check(self) -> tuple[int, list[str]]:
        """How many rows there are, and the keys, as hexadecimal digits, of those that do not match their checksum.

        Raises:
            AblateError: the file is no database any more, or holds the work of another revision.
        """
        with self._checked() as connection:
            if self.path != Shelf.of(self.path.parents[1], self.path.parent.name, self.revision, "").path:
                raise Foreign("the work of another revision")
            problem = str(connection.execute("PRAGMA integrity_check(1)").fetchone()[0], "utf-8", "replace")
            if problem != "ok":
                raise sqlite3.DatabaseError(problem)
            count, broken = 0, []
            for name, key, value, checksum in connection.execute("SELECT hex(key), * FROM rows"):
                count += 1
                if checksum != _checksum(key, value):
                    broken.append(str(name, "ascii").lower())
        return count, broken

    def drop(self, names: Sequence[str]) -> None:
        """Removes the rows that `check` named."""
        with self._checked() as connection:
            connection.executemany("DELETE FROM rows WHERE hex(key) = ?", [(name.upper(),) for name in names])

    @contextmanager
    def _checked(self) -> Iterator[sqlite3.Connection]:
        try:
            with _connected(self.path) as connection:
                self._refuse_foreign(connection)
                with connection:
                    yield connection
        except sqlite3.DatabaseError as error:
            raise AblateError(
                f"{self.path}: found {str(error)!r}, expected a database that is whole; remove it with `python -m "
                "ablate index prune`: what it held is computed again"
            ) from error

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
        if self.path.parent.is_symlink():
            raise AblateError(
                f"{self.path.parent}: found a link to another place, expected a folder; remove it: what is kept is "
                "computed again, or make a link of the folder around it"
            )
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise AblateError(
                f"{self.path.parent}: found {error.strerror!r}, expected a folder to write to; check its path"
            ) from error

    @contextmanager
    def _open(self) -> Iterator[sqlite3.Connection]:
        self._make_folder()
        with _connected(self.path) as connection:
            if not connection.execute("PRAGMA user_version").fetchone()[0]:
                with connection:
                    for table in TABLES[:2]:
                        connection.execute(table.replace("TABLE", "TABLE IF NOT EXISTS"))
                    connection.execute("INSERT OR IGNORE INTO about VALUES (?, ?)", (self._mark, _bytes(self.model)))
                    connection.execute("PRAGMA user_version = 2")
            self._refuse_foreign(connection)
            with connection:
                yield connection

    def _refuse_foreign(self, connection: sqlite3.Connection) -> None:
        """Whoever sent the file may have put a view or a trigger in the place of rows, which would run when read."""
        if connection.execute(STRANGE, TABLES).fetchone():
            raise Foreign("something that is no table of kept work")
        if connection.execute("SELECT revision FROM about").fetchone() != (self._mark,):
            raise Foreign("the work of another revision")

    @property
    def _mark(self) -> bytes:
        return _bytes(self.revision)

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
        log.warning("%s: found %s, set aside as %s.broken and computed again", self.path, error, self.path.name)
        with suppress(FileNotFoundError):  # where a journal alone is broken
            os.replace(self.path, f"{self.path}.broken")
        for beside in _beside(self.path):
            beside.unlink(missing_ok=True)

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
    """Every shelf under `folder`, in order of path; the revision of one that is no database any more is empty.

    Folders below it that are links are not followed: what lies there is not ours to remove.
    """
    found = (path for path in folder.glob("*/*.sqlite") if not path.parent.is_symlink())
    return [Shelf(path, *_about(path)) for path in sorted(found)]


def _about(path: Path) -> list[str]:
    """The revision that a file is of and, where it is known, the model's name."""
    try:
        with _connected(path) as connection:
            row = connection.execute("SELECT * FROM about").fetchone()
            return [str(part, "utf-8", "surrogatepass") for part in row]
    except (sqlite3.DatabaseError, TypeError):
        return [""]


@contextmanager
def _connected(path: Path) -> Iterator[sqlite3.Connection]:
    _refuse_strange(path)
    with closing(sqlite3.connect(path, timeout=WAIT_SECONDS)) as connection:
        connection.text_factory = bytes  # a bit that turned bytes into text must not stop the reading
        connection.execute("PRAGMA trusted_schema = OFF")
        # Rows are checked when read, so a power cut may cost rows but cannot give wrong ones.
        connection.execute("PRAGMA synchronous = OFF")
        yield connection


def _refuse_strange(path: Path) -> None:
    """Look at a file and what lies beside it before sqlite does, which would follow links and believe journals.

    Raises:
        Foreign: one is a link, no file, or a journal that names other files.
    """
    for file in (path, *_beside(path)):
        with suppress(OSError):  # it is not there
            mode = file.lstat().st_mode
            if stat.S_ISLNK(mode):
                raise Foreign("a link to another place")
            if not stat.S_ISREG(mode) and not stat.S_ISDIR(mode):
                raise Foreign("something that is no file")
    journal = _beside(path)[0]
    if journal.is_file():
        with journal.open("rb") as written:
            written.seek(max(0, journal.stat().st_size - len(NAMES_OTHERS)))
            if written.read() == NAMES_OTHERS:
                raise Foreign("a journal that names other files")


def _beside(path: Path) -> list[Path]:
    """Where sqlite looks for what an interrupted write left."""
    return [Path(f"{path}{end}") for end in ("-journal", "-wal", "-shm")]


@functools.cache
def _touch(path: Path) -> None:
    """Once a process: a file's time of change is when it was last used."""
    with suppress(OSError):  # a folder that can only be read is good enough to read from
        os.utime(path)


@functools.cache
def _warn_of_rows(path: Path) -> None:
    """Once a process and file, however many rows are met."""
    log.warning("%s: holds rows that do not match their checksum, they are computed again", path)


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def _checksum(key: Any, value: Any) -> bytes:
    """A hash of key and value; of what is no bytes any more, a hash of nothing."""
    whole = isinstance(key, bytes) and isinstance(value, bytes)
    return hashlib.blake2b(key + value if whole else b"", digest_size=8).digest()


def _slices(items: Sequence[Any]) -> Iterator[Any]:
    for start in range(0, len(items), SLICE):
        yield items[start : start + SLICE]
