"""A table with a row a file in: who may read it, its title and its metadata out."""

from __future__ import annotations

import csv
import io
import re
import unicodedata
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ablate.dataset.lines import near
from ablate.errors import DatasetError
from ablate.extraction import Unreadable
from ablate.extraction.encoding import decoded
from ablate.extraction.markdown import ACL as WORDS
from ablate.extraction.markdown import DECIMAL, WHOLE

NAME = "metadata.csv"
SEPARATORS = (",", ";", "\t")
"""Office programs write what the country's habit is; the first with which the header has a column `path` is taken."""

ACL = ("allow", "deny")


@dataclass(frozen=True)
class Sidecar:
    """Values by file: `title`, `acl` and metadata, as front matter has them; and where each row stands."""

    path: Path
    rows: Mapping[str, Mapping[str, Any]]


def sidecar(path: Path, files: Collection[str], otherwise: str, reserved: Collection[str]) -> Sidecar:
    """The rows of a table whose column `path` names files.

    `allow` and `deny` hold names with `;` between them; every other column but `title` is metadata: numbers where all
    of its values are, else text. An empty cell is no value.

    Raises:
        DatasetError: the table cannot be read, has no column `path`, a column that could be meant for an ACL, a row too
            long or too short, or one that names no file or one that an earlier row names. A row may say who reads the
            file, so none is passed over.

    """
    name = path.name
    try:
        text, _ = decoded(path.read_bytes(), otherwise)
    except OSError as error:
        raise DatasetError(f"{path}: found {error.strerror}, expected a table to read; check it") from error
    except Unreadable as error:
        raise DatasetError(f"{name}: {error}") from error
    lines, columns = table(name, text)
    check(name, columns, reserved)
    rows: dict[str, dict[str, str]] = {}
    seen: dict[str, int] = {}
    for number, cells in lines:
        if len(cells) != len(columns):
            raise DatasetError(
                f"{name}:{number}: found {len(cells)} cells, expected {len(columns)} as in the header; leave a cell "
                "empty, but do not leave it out, and put quotes around one that holds the separator"
            )
        for column, cell in zip(columns, cells, strict=True):
            if column in ACL and "," in cell:
                raise DatasetError(f'{name}:{number}: found "{cell}" as {column}, expected names with ; between them')
        row = {column: cell.strip() for column, cell in zip(columns, cells, strict=False) if cell.strip()}
        key = unicodedata.normalize("NFC", row.pop("path", ""))
        if key not in files:
            hint = near(key, sorted(files)) or "write its path from the folder, with forward slashes"
            raise DatasetError(f'{name}:{number}: found "{key}", expected a file of the folder; {hint}')
        if key in seen:
            raise DatasetError(
                f'{name}:{number}: found "{key}" a second time (first in line {seen[key]}), expected a row a file; '
                "remove one of them"
            )
        seen[key], rows[key] = number, row
    return Sidecar(path, typed(rows, columns))


def table(name: str, text: str) -> tuple[list[tuple[int, list[str]]], list[str]]:
    """The rows that hold something, each with the number of the line in which it ends, and the names of the columns."""
    header = next((line for line in text.split("\n") if line.strip()), "").replace('"', "")
    fitting = [between for between in SEPARATORS if "path" in map(str.strip, header.split(between))]
    if not fitting:
        raise DatasetError(f'{name}: found no column "path", expected a header that names it; add it')
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=fitting[0], strict=True)
    try:
        found = [(reader.line_num, row) for row in reader if any(cell.strip() for cell in row)]
    except csv.Error as error:
        raise DatasetError(f"{name}:{reader.line_num}: found {error}, expected CSV; correct the line") from error
    return found[1:], [column.strip() for column in found[0][1]]


def separator(header: str) -> str:
    """What parts the cells of a table of which no column is known, by its first line."""
    return max(SEPARATORS, key=header.count)


def check(name: str, columns: Sequence[str], reserved: Collection[str]) -> None:
    for column in columns:
        if not column or columns.count(column) > 1:
            found = f'the column "{column}" twice' if column else "a column without a name"
            raise DatasetError(f"{name}: found {found}, expected columns with different names; rename or remove it")
        if column not in ACL and any(word in re.split(r"\W+", column.casefold()) for word in WORDS):
            raise DatasetError(
                f'{name}: found the column "{column}", expected allow and deny, each a column of its own; rename it'
            )
        if column in reserved:
            raise DatasetError(f'{name}: found the column "{column}", which the import fills itself; rename it')


def typed(rows: Mapping[str, Mapping[str, str]], columns: Sequence[str]) -> dict[str, dict[str, Any]]:
    """Cells as values: names of an ACL as lists, numbers in columns that hold nothing else."""
    found: dict[str, dict[str, Any]] = {key: {} for key in rows}
    for column in columns:
        cells = {key: row[column] for key, row in rows.items() if column in row}
        number = None if column == "title" else kind(cells.values())
        for key, cell in cells.items():
            if column in ACL:
                names = [name.strip() for name in cell.split(";") if name.strip()]
                found[key].setdefault("acl", {"allow": [], "deny": []})[column] = names
            else:
                found[key][column] = number(cell) if number else cell
    return found


def kind(cells: Collection[str]) -> type[int] | type[float] | None:
    """What all cells are: whole numbers, numbers, or text (None)."""
    if all(re.fullmatch(WHOLE, cell) for cell in cells):
        return int
    return float if all(re.fullmatch(f"{WHOLE}|{DECIMAL}", cell) for cell in cells) else None
