"""The folders that Python looks in go in, another distribution that calls its package `ablate` too comes out."""

from __future__ import annotations

import sys
from pathlib import Path

OURS = "ablate-retrieval"
THEIRS = "ablate"

CURE = f"pip uninstall {THEIRS} && pip install --force-reinstall --no-deps {OURS}"
"""Both write into one folder, so that removing the other one takes files of this one along."""


def clash() -> str | None:
    """The other distribution and its version, if it is installed; found by the name of a folder, for every start."""
    for folder in sys.path:
        for found in Path(folder).glob(f"{THEIRS}-[0-9]*.*-info"):
            return found.name.rpartition(".")[0].replace("-", " ", 1)
    return None


def warning(other: str) -> str:
    return (
        f"package ablate: found the distribution {other}, which installs a package of the same name, expected "
        f"{OURS} alone, for files of one may have replaced those of the other; run `{CURE}`"
    )
