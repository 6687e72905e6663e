"""Rows and bytes in, a new dataset folder out: whole, or not at all."""

from __future__ import annotations

import json
import os
import shutil
import uuid
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from ablate.errors import DatasetError

Content = bytes | Iterable[Mapping[str, Any]]


def write(folder: Path, files: Mapping[str, Content]) -> None:
    """Write `files`, each bytes or the rows of a JSON Lines file, into a folder that does not exist yet.

    Rows are taken one after another, so that a corpus need not fit into memory. What fails half way leaves nothing.

    Raises:
        DatasetError: there is such a folder already, and it holds something.

    """
    absent(folder)
    folder.parent.mkdir(parents=True, exist_ok=True)
    fresh = folder.parent / f".{folder.name}.{uuid.uuid4().hex}"
    fresh.mkdir()
    try:
        for name, content in files.items():
            path = fresh / name
            path.parent.mkdir(parents=True, exist_ok=True)
            with path.open("wb") as file:
                file.writelines([content] if isinstance(content, bytes) else map(line, content))
        if folder.is_dir():
            folder.rmdir()
        os.rename(fresh, folder)
    finally:
        shutil.rmtree(fresh, ignore_errors=True)


def absent(folder: Path) -> None:
    """Refuse a folder that holds something, before any work is done for it."""
    if folder.exists() and not (folder.is_dir() and not any(folder.iterdir())):
        raise DatasetError(f"{folder}: found something there, expected no such folder yet; choose another name")


def replace(path: Path, content: Content) -> None:
    """Write one file whole, over an earlier one, into a folder that is made if need be.

    Raises:
        DatasetError: it cannot be written; the earlier one is still there.

    """
    fresh = path.parent / f".{path.name}.{uuid.uuid4().hex}"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with fresh.open("wb") as file:
            file.writelines([content] if isinstance(content, bytes) else map(line, content))
        os.replace(fresh, path)
    except OSError as error:
        raise DatasetError(f"{path}: found {error.strerror}, expected a place to write to; check the folder") from error
    finally:
        with suppress(OSError):
            fresh.unlink(missing_ok=True)


def line(row: Mapping[str, Any]) -> bytes:
    """One row of a JSON Lines file, in UTF-8, letters of every script as they are."""
    return json.dumps(row, ensure_ascii=False, allow_nan=False).encode() + b"\n"
