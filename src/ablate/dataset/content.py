"""A dataset folder in, the bytes of its files out; the corpus is read line by line, and hashed on the way."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from ablate.dataset import corpus, manifest
from ablate.dataset.problems import Problems
from ablate.errors import DatasetError, problem


@dataclass(frozen=True)
class Content:
    """The files of a folder by name, those that cannot be read left out; `digests` are their SHA-256.

    The corpus is no part of `files`, and its digest is known once all of its lines were taken.
    """

    folder: Path
    problems: Problems
    files: dict[str, bytes] = field(default_factory=dict)
    digests: dict[str, str] = field(default_factory=dict)

    def open(self) -> Content:
        """Read every file but the corpus."""
        for name in (manifest.NAME, *manifest.FILES, *self.problems.tried([], self.qrels)):
            if name != corpus.NAME:
                self.problems.tried(None, self.take, name)
        return self

    def qrels(self) -> list[str]:
        """The names of the files of judgments.

        Raises:
            DatasetError: what is called qrels is no folder, or cannot be looked into.

        """
        place = self.folder / "qrels"
        try:
            if place.exists() and not place.is_dir():
                raise fault("qrels", "a file", "a folder of .tsv files", "move it to qrels/test.tsv")
            return [f"qrels/{path.name}" for path in sorted(place.glob("*.tsv"))]
        except OSError as error:
            raise unread("qrels", error) from error

    def take(self, name: str) -> None:
        """Read a file, if there is one.

        Raises:
            DatasetError: there is something, but nothing that can be read.

        """
        if there(self.folder / name, name):
            try:
                self.files[name] = (self.folder / name).read_bytes()
            except OSError as error:
                raise unread(name, error) from error
            if name != manifest.NAME:
                self.digests[name] = hashlib.sha256(self.files[name]).hexdigest()

    def misspelt(self) -> list[str]:
        """Warnings about files that are not read but look as if they were meant to be.

        Raises:
            DatasetError: the folder cannot be looked into.

        """
        try:
            return manifest.misspelt(self.folder)
        except OSError as error:
            raise unread(str(self.folder), error) from error

    def lines(self) -> Iterator[bytes]:
        """The lines of the corpus.

        Raises:
            DatasetError: there is none, or it cannot be read.

        """
        name = corpus.NAME
        if not there(self.folder / name, name):
            raise self.missing(name)
        # A corpus is large, and only a manifest says what its digest should be.
        digest = hashlib.sha256() if manifest.NAME in self.files else None

        def hashed(line: bytes) -> bytes:
            if digest:
                digest.update(line)
            return line

        try:
            with (self.folder / name).open("rb") as file:
                yield from map(hashed, file)  # which holds no line while the next is read
        except OSError as error:
            raise unread(name, error) from error
        if digest:
            self.digests[name] = digest.hexdigest()

    def missing(self, name: str) -> DatasetError:
        return fault(name, f"no {name} in {self.folder}", "one", "check dataset.dir")


def there(path: Path, name: str) -> bool:
    """Whether there is a file to read.

    Raises:
        DatasetError: there is something else.

    """
    try:
        if path.is_symlink() and not path.exists():
            raise fault(name, f"a link to {os.readlink(path)} that leads nowhere", "a file", "correct the link")
        if path.is_dir():
            raise fault(name, "a folder", "a file", "move it away, or name the folder that holds the dataset")
        if path.exists() and not path.is_file():
            raise fault(name, "something that is no regular file", "a file", "copy what it gives into a file")
        return path.is_file()
    except OSError as error:
        raise unread(name, error) from error


def unread(name: str, error: OSError) -> DatasetError:
    return fault(name, error.strerror or str(error), "a file to read", "check it and its permissions")


def fault(name: str, found: str, expected: str, advice: str) -> DatasetError:
    return DatasetError([problem(name, None, found, expected, advice)])
