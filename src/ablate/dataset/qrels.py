"""qrels/<split>.tsv in, grades of documents by query out."""

from __future__ import annotations

import re
from collections.abc import Collection

from ablate.dataset.known import Known, hint
from ablate.dataset.lines import lines
from ablate.dataset.problems import FIRST, Problems
from ablate.errors import DatasetError, problem

_HEADER = ["query-id", "corpus-id", "score"]
Grades = dict[str, dict[str, int]]


def qrels(
    name: str, data: bytes, queries: Collection[str], documents: Collection[str], problems: Problems = FIRST
) -> Grades:
    """Grades by query and document, from three columns (BEIR, header or not) or four (TREC).

    A grade below 0 is kept as 0, judged and not relevant, which is how trec_eval scores it. Lines of queries that are
    left out are too.

    Raises:
        DatasetError: a line with other columns, a grade that is no whole number, an id that corpus or queries lack, or
            two grades for one pair.

    """
    clean = at_once(data, queries, documents)
    if clean is not None:
        return clean
    found: Grades = {}
    left_out = queries.left_out if isinstance(queries, Known) else ()
    for number, line in lines(name, data, problems):
        where = f"{name}:{number}"
        with problems:
            row = columns(where, line)
            if row[0] in left_out or (not found and row == _HEADER):
                continue
            query, document = row[:2]
            if row != _HEADER:
                with problems:
                    known(where, "query", query, queries, "queries.jsonl")
                with problems:
                    known(where, "document", document, documents, "corpus.jsonl")
            grade = whole(where, row[2])
            grades = found.setdefault(query, {})
            if grades.setdefault(document, grade) != grade:
                raise fault(
                    where,
                    f'grade {grade} for query "{query}" and document "{document}"',
                    f"{grades[document]} as in an earlier line",
                    "keep one of the two",
                )
    return found


def at_once(data: bytes, queries: Collection[str], documents: Collection[str]) -> Grades | None:
    """The grades of a file with three columns, parted by tabs, in which nothing is wrong or odd: None for any other."""
    try:
        rows = [line.split("\t") for line in data.decode().removesuffix("\n").split("\n")]
    except UnicodeDecodeError:
        return None
    if rows[0] == _HEADER:
        del rows[0]
    found: Grades = {}
    for row in rows:
        if len(row) != 3 or row[0] not in queries or row[1] not in documents or not row[2].isdigit():
            return None
        grades = found.setdefault(row[0], {})
        if row[1] in grades or not row[2].isascii():
            return None
        grades[row[1]] = int(row[2])
    return found


def columns(where: str, line: str) -> list[str]:
    """Query, document and grade. Ids may hold spaces where tabs part the columns."""
    found = cells(line)
    if len(found) == 4:
        del found[1]
    if len(found) != 3:
        expected = "3 (query, document, grade) or 4 (TREC qrels)"
        raise fault(where, f"{len(found)} columns", expected, "part them by tabs")
    return found


def cells(line: str) -> list[str]:
    return line.split("\t") if "\t" in line else line.split()


def whole(where: str, text: str) -> int:
    if not re.fullmatch(r"-?\d+", text, re.ASCII):
        raise fault(where, f'the grade "{text}"', "a whole number", f"a header is written {' '.join(_HEADER)}")
    return max(0, int(text))


def known(where: str, kind: str, key: str, ids: Collection[str], file: str) -> None:
    """Refuse an id that its file lacks."""
    if key not in ids:
        raise fault(
            where, f'the {kind} "{key}"', f"an id of {file}", hint(key, ids) or "add it there or remove the line"
        )


def fault(where: str, found: str, expected: str, advice: str) -> DatasetError:
    return DatasetError([problem(where, None, found, expected, advice)])


def named(name: str, data: bytes) -> set[str]:
    """Every word of the file that may be the id of a document, whatever is wrong with its line."""
    return {cell for _, line in lines(name, data, Problems()) for cell in cells(line)}
