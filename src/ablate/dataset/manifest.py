"""A dataset folder in, the digest of each of its files out, and proof that they are the frozen ones."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path

from ablate.dataset.lines import Entry, near, parsed
from ablate.errors import DatasetError

NAME = "manifest.json"
FILES = ("corpus.jsonl", "queries.jsonl", "ground_truth.jsonl", "groups.jsonl", "contract.yaml", "GUIDE.md")


def contents(folder: Path) -> dict[str, bytes]:
    """The bytes of every file a dataset is made of, by name; qrels are named `qrels/<split>.tsv`.

    Raises:
        DatasetError: a file that cannot be read.

    """
    paths = [folder / name for name in FILES] + sorted((folder / "qrels").glob("*.tsv"))
    try:
        return {path.relative_to(folder).as_posix(): path.read_bytes() for path in paths if path.is_file()}
    except OSError as error:
        raise DatasetError(f"{error.filename}: found {error.strerror}, expected a file to read; check it") from error


def digests(files: Mapping[str, bytes]) -> dict[str, str]:
    """SHA-256 of each file in hexadecimal: what `freeze` writes under `files` of the manifest."""
    return {name: hashlib.sha256(data).hexdigest() for name, data in files.items()}


def verified(manifest: bytes, files: Mapping[str, bytes]) -> None:
    """Check that the files are exactly those that were frozen.

    The manifest is `{"version": ..., "files": {name: SHA-256}, "counts": {...}, "created": ..., "parent": ...}`.

    Raises:
        DatasetError: a file that differs, is missing, or was added since.

    """
    entry = Entry(NAME, parsed(NAME, manifest.decode("utf-8-sig", errors="replace")))
    entry.only(("version", "files", "counts", "created", "parent"))
    frozen = entry.inner("files", entry.value.get("files"))
    found = digests(files)
    unfreeze = "delete manifest.json to work on an unfrozen dataset"
    advice = f"restore the file, or {unfreeze}"
    for name in frozen.value:
        if name not in found:
            frozen.fault(name, "no such file", "the file that was frozen", advice)
        if frozen.string(name).lower() != found[name]:
            frozen.fault(name, f"SHA-256 {found[name][:12]}…", f"{frozen.string(name)[:12]}… as it was frozen", advice)
    for name in found:
        if name not in frozen.value:
            frozen.fault(name, "a file that is not listed", "only frozen files", f"remove it, or {unfreeze}")


def misspelt(folder: Path) -> list[str]:
    """Warnings about files that are not read but look as if they were meant to be."""
    known = (*FILES, NAME)
    names = sorted(path.name for path in folder.iterdir() if path.suffix in {".jsonl", ".json", ".yaml", ".yml"})
    hints = {name: near(name, known) for name in names if name not in known}
    return [f"{name}: this file is not read; {hint}" for name, hint in hints.items() if hint]
