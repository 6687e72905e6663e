"""A dataset setting in, its dataset out: read once a process, and again only if a file has changed meanwhile."""

from __future__ import annotations

import logging
from dataclasses import replace
from pathlib import Path

from ablate.dataset import Folder, path
from ablate.types import Dataset

log = logging.getLogger(__name__)

Stamp = list[tuple[str, int, int]]

READ: dict[str, tuple[Stamp, Dataset]] = {}


def read_once(folder: Folder) -> Dataset:
    """The dataset that a config names; what reading it warned of goes to the log, once."""
    key = repr(replace(folder, dir=str(path(folder.dir))))  # a relative folder is another one elsewhere
    if key not in READ or READ[key][0] != stamp(READ[key][1].folder):
        dataset = folder.read()
        for warning in dataset.warnings:
            log.warning("%s", warning)
        READ.clear()  # one is enough, and a corpus is large
        READ[key] = stamp(dataset.folder), dataset
    return READ[key][1]


def stamp(folder: str) -> Stamp:
    """What changes when a file of a dataset does: names, times and sizes."""
    found = sorted([*Path(folder).glob("*"), *Path(folder).glob("qrels/*")])
    return [(str(file), file.stat().st_mtime_ns, file.stat().st_size) for file in found if file.exists()]
