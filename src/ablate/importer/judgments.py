"""A qrels file in, the grades of documents out, each with its line."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from ablate.dataset.qrels import columns, whole
from ablate.importer import Grade, Report
from ablate.importer.source import lines

_HEADER = ["query-id", "corpus-id", "score"]


class Known(NamedTuple):
    """The ids of queries and documents that the source has."""

    queries: frozenset[str]
    documents: frozenset[str]


def leave_out(parser: argparse.ArgumentParser) -> None:
    """The flag for collections of which only a part is at hand."""
    parser.add_argument(
        "--leave-out-missing",
        action="store_true",
        help="leave out and count judgments of queries or documents that the source lacks (else they are an error)",
    )


def grades(path: Path, report: Report, known: Known | None) -> Iterator[Grade]:
    """Three columns (BEIR, header or not) or four (TREC). A grade below 0 stays as it is: it is read as 0.

    With `known`, judgments of other queries or documents are left out.

    Raises:
        DatasetError: a line with other columns, or a grade that is no whole number.

    """
    begun = False
    for number, line in lines(path):
        where = f"{path}:{number}"
        if not line.strip():
            continue
        cells = columns(where, line)
        header, begun = not begun and cells == _HEADER, True
        if header:
            continue
        whole(where, cells[2])
        if known and cells[0] not in known.queries:
            report.add("judgments of queries that the source lacks, left out", where)
        elif known and cells[1] not in known.documents:
            report.add("judgments of documents that the source lacks, left out", where)
        else:
            yield Grade(where, cells[0], cells[1], int(cells[2]))
