"""A dataset setting in, its dataset out: read once a process, and again only if a file has changed meanwhile."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

from ablate.types import Dataset

log = logging.getLogger(__name__)

Stamp = list[tuple[str, int, int]]

READ: dict[str, tuple[Stamp, Dataset]] = {}


def read_once(folder: Any) -> Dataset:
    """The dataset that a config names; what reading it warned of goes to the log, once."""
    key = repr(folder)
    if key not in READ or READ[key][0] != stamp(READ[key][1].folder):
        dataset: Dataset = folder.read()
        for warning in dataset.warnings:
            log.warning("%s", warning)
        READ.clear()  # one is enough, and a corpus is large
        READ[key] = stamp(dataset.folder), dataset
    return READ[key][1]


def stamp(folder: str) -> Stamp:
    """What changes when a file of a dataset does: names, times and sizes."""
    paths = sorted([*Path(folder).glob("*"), *Path(folder).glob("qrels/*")])
    return [(str(path), path.stat().st_mtime_ns, path.stat().st_size) for path in paths]
