"""check a dataset as a whole and list everything that is wrong with it

Prints the first 20 problems with file, line and key, and how many there are; --json gives all of them. Nothing is
written. Exit code 2 if there is a problem.
"""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import asdict
from typing import Any

from ablate.dataset import Checked, options
from ablate.errors import DatasetError, Problem
from ablate.page import clean

LISTED = 20


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("dir", metavar="DIR", help="folder of the dataset")
    parser.add_argument("--json", action="store_true", help="every problem, warnings, counts and fingerprints as JSON")
    options.add(parser)


def main(args: argparse.Namespace) -> int:
    """Check the folder and say what was found; 2 if anything is wrong."""
    try:
        found = options.folder(args, args.dir).checked(sparing=True)
    except DatasetError as error:  # there is no folder to look into
        found = Checked(error.problems, (), None, None)
    print(json.dumps(data(found), ensure_ascii=False, indent=1) if args.json else "\n".join(said(found, args.dir)))
    if found.dataset and not found.frozen and not args.json:
        print(f"next: `{options.command(args, args.dir)}` runs a search on it, `dataset freeze` keeps a version")
    if found.problems:
        many = counted(len(found.problems), "problem")
        more = "" if args.json or len(found.problems) <= LISTED else "; --json lists all of them"
        sys.stderr.write(f"ablate: {args.dir}: found {many}, expected none; correct them and validate again{more}\n")
    return DatasetError.code if found.problems else 0


def said(found: Checked, dir: str) -> list[str]:
    """The result as lines: the problems, or one line that says how much was read and what names it."""
    warnings = [clean(f"warning: {warning}") for warning in found.warnings]
    if found.dataset is None:
        listed = [clean(str(problem)) for problem in found.problems[:LISTED]]
        rest = len(found.problems) - len(listed)
        return [*listed, *([f"and {counted(rest, 'problem')} more"] if rest else []), *warnings]
    counts = [f"{count} {name.replace('_', ' ')}" for name, count in found.dataset.counts.items() if count]
    names = [f"{name.replace('_', ' ')} {value[:12]}" for name, value in found.dataset.fingerprints.items()]
    return [f"{dir}: valid: {', '.join(counts)}; {', '.join(names)}; {frozen(found)}", *warnings]


def frozen(found: Checked) -> str:
    known = found.frozen
    return f"frozen as version {known.version} on {known.created[:10]}" if known else "not frozen"


def counted(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def data(found: Checked) -> dict[str, Any]:
    """Everything as plain data; counts and fingerprints are those of a valid folder, otherwise empty."""
    return {
        "valid": not found.problems,
        "problems": [row(problem) for problem in found.problems],
        "warnings": list(found.warnings),
        "counts": dict(found.dataset.counts) if found.dataset else {},
        "fingerprints": dict(found.dataset.fingerprints) if found.dataset else {},
        "frozen": {"version": found.frozen.version, "created": found.frozen.created} if found.frozen else None,
    }


def row(problem: Problem) -> dict[str, Any]:
    return asdict(problem) | {"sentence": str(problem)}
