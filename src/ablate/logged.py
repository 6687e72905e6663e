"""The name of a run goes in, its record comes out, as data not to be trusted: from disk, a folder or MLflow."""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ablate.config import Node, trusted
from ablate.errors import ConfigError, first_line
from ablate.files import BrokenRecord
from ablate.records import RunNotFound, RunRecord, find, named, read
from ablate.tracking import Mlflow, Store, patient
from ablate.workspace import Workspace

SMALL, LARGE = 2**20, 2**30
"""Bytes that a file of settings, and one that grows with the data set, may have."""

FILES = {
    "run.json": SMALL,
    "config.yaml": SMALL,
    "overrides.yaml": SMALL,
    "changes.json": SMALL,
    "environment.json": LARGE,
    "inputs.json": LARGE,
    "metrics.json": LARGE,
    "queries.jsonl": LARGE,
    "ranking.jsonl": LARGE,
}
"""What is read of a run, and how large each file may be."""


@contextmanager
def logged(wanted: str, place: Workspace, uri: str | None = None) -> Iterator[RunRecord]:
    """The run that `wanted` names: a folder, an id of the workspace, or an MLflow run id of the store at `uri`.

    The store is asked where the workspace has no such run, or where `uri` is given. What it sends is gone afterwards.

    Raises:
        RunNotFound: there is none.
        BrokenRecord: its files cannot be read, or one is too large.

    """
    if uri is None and (Path(wanted) / "run.json").is_file():
        yield opened(Path(wanted).absolute())
        return
    try:
        found = None if uri else named(find(place), wanted)
    except RunNotFound:
        if not re.fullmatch("[0-9a-f]{32}", wanted):
            raise
        found = None
    if found:
        yield opened(found.folder)
        return
    with tempfile.TemporaryDirectory(prefix="ablate-") as folder:
        download(wanted, Mlflow(uri, False).store(place), folder)
        yield opened(Path(folder))


def opened(folder: Path) -> RunRecord:
    """The run in a folder.

    Raises:
        BrokenRecord: a file is none, too large, or holds nothing that can be read.

    """
    for name, most in FILES.items():
        path = folder / name
        if os.path.lexists(path) and not path.is_file():
            raise BrokenRecord(f"{path}: found something else, expected a file; check where the folder is from")
        if path.is_file():
            fits(str(path), path.stat().st_size, most)
    return read(folder)


def fits(where: str, size: int, most: int) -> None:
    """Refuse a file that is too large.

    Raises:
        BrokenRecord: it is.

    """
    if size > most:
        raise BrokenRecord(f"{where}: found {size} bytes, expected at most {most}; check where it is from")


def download(run: str, store: Store, folder: str) -> None:
    """Bring what is read of a run from MLflow.

    Raises:
        RunNotFound: the store has no such run, or cannot be reached.

    """
    nowhere = f"run {run!r}: found none in the workspace nor in MLflow at {store.shown}"
    if store.file and not store.file.exists():
        raise RunNotFound(f"{nowhere}, where there is no store; `python -m ablate compare` ends with the ids of runs")
    client = store.client()
    try:
        there = {file.path: file.file_size or 0 for file in patient(lambda: client.list_artifacts(run))}
        for name in FILES.keys() & there.keys():
            fits(name, there[name], FILES[name])
            client.download_artifacts(run, name, folder)
    except BrokenRecord:
        raise
    except Exception as error:  # of MLflow, of the network, of a database
        raise RunNotFound(f"{nowhere} ({first_line(error)[:300]}), expected one; check the id and --uri") from error


def config(record: RunRecord) -> Node:
    """The config that a run was logged with, once it is known to make components and nothing else.

    Raises:
        BrokenRecord: it is no YAML of plain data.
        ConfigError: as in `trusted`, or it is no config.

    """
    found = dict(record.config)
    if not found:
        raise ConfigError(f"{record.folder / 'config.yaml'}: found no settings, expected the config of a run")
    trusted(found)
    return found
