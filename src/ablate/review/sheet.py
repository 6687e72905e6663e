"""Rows for a person to fill in go out as CSV or JSON Lines with a key beside them; filled rows come back, checked."""

from __future__ import annotations

import csv
import hashlib
import io
import json
import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ablate.dataset.lines import Entry, entries, parsed, quoted
from ablate.dataset.write import line, replace
from ablate.errors import AblateError

Cells = Mapping[str, str]

FACTS = "known facts"
"""The column that tells what the ground truth holds already, so that a source can be joined to a fact."""


class BadSheet(AblateError):
    """A sheet that cannot be used as it is: every problem is a line of the message, with its row."""


@dataclass(frozen=True)
class Kind:
    """What a sheet is about: the columns that nobody may change, and those to fill in."""

    name: str
    fixed: tuple[str, ...]
    filled: tuple[str, ...]

    @property
    def columns(self) -> tuple[str, ...]:
        return *self.fixed, *self.filled


SOURCES = Kind(
    "sources",
    ("item", "query_id", "question", "as_of", FACTS, "title", "doc_id", "start", "end", "text"),
    ("verdict", "quote", "fact", "alternative", "who", "note"),
)
CELL = 32767
"""Characters that a cell of a spreadsheet holds; what is longer is cut off when it is opened."""

CONTEXTS = Kind("contexts", ("item", "query_id", "question", "as_of", "context"), ("sufficient", "who", "note"))
KINDS = {kind.name: kind for kind in (SOURCES, CONTEXTS)}


@dataclass(frozen=True)
class Row:
    """One row of a sheet and the place where it stands: `sheet.csv, row 7`."""

    where: str
    cells: Cells

    def __getitem__(self, column: str) -> str:
        return self.cells[column]

    def said(self, column: str) -> str:
        """What a person wrote, without the white space around it."""
        return self.cells[column].strip()

    def problem(self, column: str, found: str, expected: str, advice: str) -> str:
        return f"{self.where}: {column}: found {found}, expected {expected}; {advice}"


@dataclass(frozen=True)
class Key:
    """What proves that a sheet is the one that was sent out, and from where: it tells no side, no rank and no score.

    `rows` maps an item to the hash of its fixed columns, `made` says with what the sheet was made: seed, depth, size,
    runs, fingerprints and principals.
    """

    kind: Kind
    rows: Mapping[str, str]
    made: Mapping[str, Any]


def write(path: Path, kind: Kind, rows: Sequence[Cells], made: Mapping[str, Any], sign: str = ",") -> None:
    """Write a sheet and its key, both new; the ending of the name says in which form, `sign` parts the cells of CSV.

    Raises:
        BadSheet: another ending than .csv or .jsonl, or a file that is there already: somebody may have filled it in.

    """
    forms = {".csv": lambda: table(kind, rows, sign), ".jsonl": lambda: b"".join(map(line, rows))}
    if path.suffix.lower() not in forms:
        raise BadSheet(f"--out: found {str(path)!r}, expected a name that ends with .csv or .jsonl; choose one")
    for place in (path, beside(path)):
        if place.exists():
            raise BadSheet(f"{place}: found a file, expected none; it may be filled in already: choose another name")
    key = {"kind": kind.name, **made, "rows": {row["item"]: hashed(kind, row) for row in rows}}
    replace(beside(path), json.dumps(key, ensure_ascii=False, indent=1).encode() + b"\n")
    replace(path, forms[path.suffix.lower()]())


def read(path: Path, kind: Kind) -> tuple[list[Row], Key]:
    """A sheet that came back, and its key. Rows may be sorted otherwise, or be left out.

    Raises:
        BadSheet: a file that cannot be read, another kind of sheet, or rows whose fixed columns were changed.

    """
    key = _key(beside(path))
    if key.kind != kind:
        flag = "with" if kind == CONTEXTS else "without"
        raise BadSheet(
            f"{path}: found a sheet of {key.kind.name}, expected one of {kind.name}; give one exported {flag} --expert"
        )
    data = _bytes(path)
    rows = list(_objects(path, kind, data) if path.suffix.lower() == ".jsonl" else _lines(path, kind, data))
    problems = list(_strange(rows, key))
    if problems:
        raise BadSheet("\n".join(problems))
    return rows, key


def beside(path: Path) -> Path:
    """Where the key of a sheet lies."""
    return path.with_name(f"{path.name}.key.json")


def table(kind: Kind, rows: Iterable[Cells], sign: str = ",") -> bytes:
    """CSV in UTF-8 with a byte order mark, by which spreadsheets know it; every cell in quotes and guarded."""
    out = io.StringIO(newline="")
    writer = csv.writer(out, quoting=csv.QUOTE_ALL, delimiter=sign)
    writer.writerow(kind.columns)
    writer.writerows([guarded(row[column]) for column in kind.columns] for row in rows)
    return out.getvalue().encode("utf-8-sig")


def guarded(text: str) -> str:
    """A cell that a spreadsheet neither runs as a formula nor rewrites as a number or a date.

    Those that it would get an apostrophe in front, and so do those that begin with one, so that `bare` undoes it. What
    is short and has a digit may be a date or a sum somewhere: `May 2025`, `Май 2025`, `SEPT2`, `(5)`, `$5`.
    """
    return f"'{text}" if _ACTIVE.match(text) and not _SAFE.fullmatch(text) else text


_ACTIVE = re.compile(r"['=+\-@\t\r]|\s*[=+\-@]|(?=.{1,40}\Z).*\d|(?i:true|false|истина|ложь)\Z")
_SAFE = re.compile(r"i\d{4,}|0|[1-9]\d{0,8}")


def bare(text: str) -> str:
    """The cell before it was guarded."""
    return text.removeprefix("'")


def kept(text: str) -> str:
    """What every spreadsheet keeps of a cell: lines that end alike, no tabs and no other control characters."""
    return re.sub(r"[\x00-\x09\x0b-\x1f\x7f]", "", re.sub(r"\r\n?", "\n", text))


def hashed(kind: Kind, row: Cells) -> str:
    """A hash of the fixed columns, of what every spreadsheet keeps of them."""
    cells = [kept(row[column]) for column in kind.fixed]
    return hashlib.blake2b(json.dumps(cells, ensure_ascii=False).encode(), digest_size=12).hexdigest()


def lot(seed: int, *names: object) -> str:
    """Where something stands in an order that is drawn: a hash of the seed and of what it is."""
    return hashlib.blake2b("\0".join(map(str, (seed, *names))).encode(), digest_size=16).hexdigest()


def _key(path: Path) -> Key:
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        found = "bytes that are not UTF-8" if isinstance(error, UnicodeDecodeError) else error.strerror
        raise BadSheet(
            f"{path}: found {found}, expected the key that was written beside the sheet; put it there, and "
            "give the sheet the name that it had"
        ) from error
    entry = Entry(path.name, parsed(path.name, text))
    kind, rows = KINDS.get(entry.string("kind")), entry.mapping("rows")
    if kind is None:
        entry.fault("kind", quoted(entry.string("kind")), f"one of {', '.join(KINDS)}", "export the sheet again")
    if len(entry.names("runs")) != 2:
        entry.fault("runs", f"{len(entry.items('runs'))} names", "those of two runs", "export the sheet again")
    entry.names("principals")
    return Key(kind, rows, {name: value for name, value in entry.value.items() if name not in ("kind", "rows")})


def _bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise BadSheet(f"{path}: found {error.strerror}, expected a filled sheet; check the name") from error


def _objects(path: Path, kind: Kind, data: bytes) -> Iterator[Row]:
    for entry in entries(path.name, data):
        cells = {column: entry.string(column) if entry.has(column) else "" for column in kind.columns}
        yield Row(entry.where, cells)


def _lines(path: Path, kind: Kind, data: bytes) -> Iterator[Row]:
    """The rows of a CSV file with any of the three delimiters that spreadsheets use."""
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise BadSheet(
            f"{path}: found bytes that are not UTF-8, expected UTF-8; save it as `CSV UTF-8`, which keeps all letters"
        ) from error
    csv.field_size_limit(sys.maxsize)  # a whole document may stand in a cell
    heads = {sign: next(csv.reader(io.StringIO(text, newline=""), delimiter=sign), []) for sign in ",;\t"}
    heads = {sign: [name.strip('\ufeff"') for name in head] for sign, head in heads.items()}  # a mark read as a letter
    sign = max(heads, key=lambda sign: len(set(heads[sign]) & set(kind.columns)))
    if missing := [column for column in kind.columns if column not in heads[sign]]:
        raise BadSheet(f"{path}: found no column {missing[0]!r}, expected the columns that were sent; put it back")
    for number, record in enumerate(csv.reader(io.StringIO(text, newline=""), delimiter=sign), 1):
        cells = {name: bare(cell) for name, cell in zip(heads[sign], record, strict=False)}
        if number > 1 and any(cells.values()):
            yield Row(f"{path.name}, row {number}", {column: cells.get(column, "") for column in kind.columns})


def _strange(rows: Sequence[Row], key: Key) -> Iterator[str]:
    """What shows that a row is not as it was sent out."""
    seen: dict[str, str] = {}
    for row in rows:
        item = row["item"]
        if item not in key.rows:
            yield row.problem("item", quoted(item), "an item of the key", "remove the row, or put its item back")
        elif item in seen:
            yield row.problem("item", f"{item} a second time (first in {seen[item]})", "each once", "remove one row")
        elif hashed(key.kind, row.cells) != key.rows[item]:
            columns = ", ".join(key.kind.fixed)
            yield row.problem(
                f"item {item}", "columns that were changed", f"{columns} as they were sent", "copy the row from there"
            )
        seen.setdefault(item, row.where)
