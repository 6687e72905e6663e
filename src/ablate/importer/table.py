"""A table of JSON Lines, JSON or CSV in, its rows out."""

from __future__ import annotations

import ast
import csv
import json
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from ablate.dataset.lines import Entry, half_pair
from ablate.errors import DatasetError
from ablate.extraction.sidecar import separator
from ablate.importer.source import first, lines, records


def rows(path: Path) -> Iterator[Entry]:
    """JSON where the file begins like it, else CSV with a header; a CSV cell may hold a list, as JSON or as Python.

    Raises:
        DatasetError: the file cannot be read, or a row has more or fewer cells than the header.

    """
    yield from records(path) if first(path) in ("{", "[") else cells(path)


def cells(path: Path) -> Iterator[Entry]:
    limit = csv.field_size_limit(sys.maxsize)  # a cell may hold whole documents
    try:
        between = separator(next((line for _, line in lines(path)), ""))
        reader = csv.DictReader((f"{line}\n" for _, line in lines(path)), delimiter=between, strict=True)
        names = list(filter(None, reader.fieldnames or ()))
        if len(set(names)) < len(names):
            twice = next(name for name in names if names.count(name) > 1)
            raise DatasetError(f'{path}:1: found the column "{twice}" twice, expected names that differ; rename one')
        for row in reader:
            where = f"{path}:{reader.line_num}"
            if None in row or None in row.values():
                found = sum(value is not None for key, value in row.items() if key is not None)
                extra = len(row.get(None, ()))
                raise DatasetError(
                    f"{where}: found {found + extra} cells, expected {len(reader.fieldnames or ())} as in the header; "
                    "check separators and quotes"
                )
            entry = Entry(where, without_empty(row))
            half = half_pair(entry.value)
            if half:
                raise DatasetError(f"{where}: found half of a surrogate pair ({half}), expected a character; write it")
            yield entry
    except csv.Error as error:
        raise DatasetError(f"{path}:{reader.reader.line_num}: found {error}, expected CSV; correct the line") from error
    finally:
        csv.field_size_limit(limit)


def without_empty(row: Mapping[str, str]) -> dict[str, Any]:
    """An empty cell is a missing value."""
    return {key: listed(value) for key, value in row.items() if value.strip()}


def listed(cell: str) -> Any:
    """The list that a cell in square brackets holds; any other cell as it is."""
    if not (cell.lstrip().startswith("[") and cell.rstrip().endswith("]")):
        return cell
    for read in (json.loads, ast.literal_eval):
        try:
            found = read(cell)
        except (ValueError, SyntaxError, RecursionError, MemoryError):
            continue
        if isinstance(found, list):
            return found
    return cell
