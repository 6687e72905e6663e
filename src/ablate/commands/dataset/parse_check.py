"""the share of a sample that a person found rightly extracted

SHEET is the sample.csv that `dataset import folder --sample N` wrote, each row marked under "ok" with y or n.

ingestion/parse_ok = rows marked y / rows of the sheet, with the 95 % interval of Wilson. It speaks of the parts (pages
of a PDF, sections of other files) of all files that were imported, as the sample is drawn from them.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from ablate.errors import DatasetError
from ablate.extraction.sheet import interval, marks


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("sheet", type=Path, metavar="SHEET", help="the table with a mark in every row")
    parser.add_argument("--json", action="store_true", help="the share and its interval as JSON")


def main(args: argparse.Namespace) -> int:
    """Print the share and its interval.

    Raises:
        DatasetError: the table cannot be read, or a row is not filled in.

    """
    try:
        data = args.sheet.read_bytes()
    except OSError as error:
        raise DatasetError(f"{args.sheet}: found {error.strerror}, expected a table to read; check it") from error
    found = marks(args.sheet.name, data)
    good, of = sum(found), len(found)
    low, high = interval(good, of)
    if args.json:
        print(json.dumps({"ingestion/parse_ok": good / of, "low": low, "high": high, "ok": good, "rows": of}))
    else:
        print(f"ingestion/parse_ok {good / of:.3f} ({good} of {of}), 95 % interval {low:.3f} to {high:.3f}")
    return 0
