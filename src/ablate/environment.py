"""What a run was made with: packages, Python, processor, and the state of the git checkout it ran in."""

from __future__ import annotations

import os
import platform
import re
import subprocess
from functools import cache
from importlib.metadata import Distribution, distributions
from pathlib import Path
from typing import Any

from ablate.extraction import KINDS
from ablate.models import processors

LONGEST_DIFF = 200_000
"""Characters of an uncommitted change that are kept; a longer one is cut and says so."""

DATA = ("csv", "jsonl", "tsv", *(ending.removeprefix(".") for ending in KINDS))
"""Kinds of files whose changes are not kept: they hold texts that not everybody may read, and have fingerprints.

Those are the files of a dataset, the sheets of a review, and the documents of a folder that is imported.
"""


def environment(folder: Path) -> dict[str, Any]:
    """The environment of a run that is started in `folder`, as plain data."""
    return {
        "python": platform.python_version(),
        "platform": platform.platform(),
        "cpu": processor(),
        "cores": os.cpu_count(),
        "packages": packages(),
        "git": checkout(folder),
    }


@cache
def packages() -> dict[str, str]:
    """Name and version of every installed distribution, by name."""
    heads = (dict(re.findall(r"^(Name|Version): *(.*)$", head(each), re.MULTILINE)) for each in distributions())
    found = [(about["Name"], about["Version"]) for about in heads if about.keys() == {"Name", "Version"}]
    return dict(sorted(found, key=lambda pair: pair[0].lower()))


def head(distribution: Distribution) -> str:
    """What a distribution says of itself, without its description: to parse those of all of them takes long."""
    text = distribution.read_text("METADATA") or distribution.read_text("PKG-INFO") or ""
    return text.partition("\n\n")[0]


def processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(names, platform.processor() or platform.machine())


@cache
def machine() -> str:
    """What decides how fast this process computes: the processor, and how much of it may be used."""
    return f"{processor()}, {processors()} in use"


def checkout(folder: Path) -> dict[str, str] | None:
    """Commit and uncommitted difference of the checkout that holds `folder`; None where there is none."""
    commit = git(folder, "rev-parse", "HEAD")
    if commit is None:
        return None
    outside = [f":(top,exclude)*.{kind}" for kind in DATA]
    diff = git(folder, "diff", "--no-ext-diff", "--no-color", "HEAD", "--", ":/", *outside) or ""
    cut = f"{diff[:LONGEST_DIFF]}\n[cut: {len(diff)} characters]" if len(diff) > LONGEST_DIFF else diff
    return {"commit": commit.strip(), "diff": cut}


def git(folder: Path, *arguments: str) -> str | None:
    try:
        done = subprocess.run(["git", "-C", str(folder), *arguments], capture_output=True, timeout=20, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.decode(errors="replace")
