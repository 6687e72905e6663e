"""check a dataset and freeze it as a version: manifest.json with the SHA-256 of every file

A frozen version is never changed: to work on it, copy the folder without its manifest.json and freeze the copy with
--parent. Runs refuse a frozen folder whose files have changed.
"""

from __future__ import annotations

import argparse

from ablate.dataset import options
from ablate.dataset.freeze import Freezing


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("folder", metavar="DIR", help="folder of the dataset")
    parser.add_argument("--version", metavar="NAME", help="default: the number after the parent's, else 1")
    parser.add_argument("--parent", metavar="DIR_OR_VERSION", help="the frozen folder that this one was made from")
    parser.add_argument("--require-review", action="store_true", help="refuse what no expert has confirmed (exit 1)")
    parser.add_argument(
        "--exclude-unresolved", action="store_true", help="leave out queries whose evidence does not fit the documents"
    )
    options.add(parser)


def main(args: argparse.Namespace) -> int:
    """Freeze the folder and say as what."""
    freezing = Freezing(args.version, args.parent, args.exclude_unresolved, args.require_review)
    frozen = freezing(options.folder(args, args.folder))
    made = frozen.manifest
    parent = f", made from {made.parent}" if made.parent else ""
    if not frozen.fresh:
        print(f"{args.folder}: already frozen as version {made.version}{parent} ({made.created}); nothing has changed")
        return 0
    print(f"{args.folder}: frozen as version {made.version}{parent}, {len(made.files)} files")
    print(", ".join(f"{count} {name.replace('_', ' ')}" for name, count in made.counts.items() if count))
    for query, reason in made.excluded.items():
        print(f'left out: query "{query}": {reason}')
    for warning in frozen.warnings:
        print(f"warning: {warning}")
    print(f"next: `{options.command(args, args.folder)}` runs a search on it")
    return 0
