"""A dataset folder in, its manifest and the digests of its files out, and proof that they are the frozen ones."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ablate.dataset.lines import Entry, near, parsed, quoted
from ablate.errors import DatasetError

NAME = "manifest.json"
FILES = ("corpus.jsonl", "queries.jsonl", "ground_truth.jsonl", "groups.jsonl", "contract.yaml", "GUIDE.md")
_KEYS = ("version", "files", "counts", "created", "parent", "excluded")


@dataclass(frozen=True)
class Manifest:
    """What `freeze` says of a version: the SHA-256 of each file by name, and where the version comes from.

    `parent` is the version that it was made from; `excluded` gives, by query, the reason why it is left out when read.
    """

    version: str
    files: Mapping[str, str]
    counts: Mapping[str, Any]
    created: str
    parent: str | None
    excluded: Mapping[str, str]

    def row(self) -> dict[str, Any]:
        """The manifest as JSON holds it."""
        row = {key: getattr(self, key) for key in _KEYS}
        return row if self.excluded else {key: value for key, value in row.items() if key != "excluded"}

    def moved(self, found: Mapping[str, str]) -> str:
        """Every file that is not as it was frozen, in words; empty if all are. `found` holds digests by name."""
        kinds = {
            "changed": [name for name in self.files if name in found and self.files[name] != found[name]],
            "missing": [name for name in self.files if name not in found],
            "added": [name for name in found if name not in self.files],
        }
        return "; ".join(f"{kind}: {', '.join(sorted(names))}" for kind, names in kinds.items() if names)


def known(folder: Path) -> Manifest | None:
    """The manifest of a folder; None if it is not frozen.

    Raises:
        DatasetError: the file is no manifest.

    """
    path = folder / NAME
    return read(path.read_bytes()) if path.is_file() else None


def read(data: bytes) -> Manifest:
    """A manifest from the bytes of its file.

    Raises:
        DatasetError: they are no manifest.

    """
    entry = Entry(NAME, parsed(NAME, data.decode("utf-8-sig", errors="replace")))
    entry.only(_KEYS)
    files = entry.inner("files", entry.value.get("files"))
    excluded = entry.inner("excluded", entry.mapping("excluded"))
    return Manifest(
        version=entry.name("version"),
        files={name: files.string(name).lower() for name in files.value},
        counts=entry.mapping("counts"),
        created=entry.name("created"),
        parent=entry.maybe("parent"),
        excluded={query: excluded.string(query) for query in excluded.value},
    )


def paths(folder: Path) -> dict[str, Path]:
    """Every file a dataset is made of, by name; qrels are named `qrels/<split>.tsv`."""
    found = [folder / name for name in FILES] + sorted((folder / "qrels").glob("*.tsv"))
    return {path.relative_to(folder).as_posix(): path for path in found if path.is_file()}


def contents(folder: Path) -> dict[str, bytes]:
    """The bytes of every file a dataset is made of, by name.

    Raises:
        DatasetError: a file that cannot be read.

    """
    try:
        return {name: path.read_bytes() for name, path in paths(folder).items()}
    except OSError as error:
        raise unread(error) from error


def unread(error: OSError) -> DatasetError:
    return DatasetError(f"{error.filename}: found {error.strerror}, expected a file to read; check it")


def hashed(folder: Path) -> dict[str, str]:
    """SHA-256 of each file in hexadecimal, as `freeze` writes it; the files need not fit into memory.

    Raises:
        DatasetError: a file that cannot be read.

    """
    found = {}
    try:
        for name, path in paths(folder).items():
            with path.open("rb") as file:
                found[name] = hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise unread(error) from error
    return found


def same(manifest: Manifest, found: Mapping[str, str]) -> None:
    """Check that digests by name are exactly those that were frozen.

    Raises:
        DatasetError: files differ, are missing, or were added since; the message names all of them.

    """
    moved = manifest.moved(found)
    if moved:
        raise DatasetError(
            f"{NAME}: found other files than were frozen as version {quoted(manifest.version)} ({moved}), "
            "expected the frozen ones; put them back, and make changes in a copy of the folder without its "
            f"{NAME}, to be frozen as a new version (`python -m ablate dataset freeze COPY --parent THIS`)"
        )


def misspelt(folder: Path) -> list[str]:
    """Warnings about files that are not read but look as if they were meant to be."""
    known = (*FILES, NAME)
    names = sorted(path.name for path in folder.iterdir() if path.suffix in {".jsonl", ".json", ".yaml", ".yml"})
    hints = {name: near(name, known) for name in names if name not in known}
    return [f"{name}: this file is not read; {hint}" for name, hint in hints.items() if hint]
