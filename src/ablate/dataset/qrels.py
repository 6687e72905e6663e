"""qrels/<split>.tsv in, grades of documents by query out."""

from __future__ import annotations

import re
from collections.abc import Collection

from ablate.dataset.lines import lines, near
from ablate.errors import DatasetError

_HEADER = ["query-id", "corpus-id", "score"]
Grades = dict[str, dict[str, int]]


def qrels(name: str, data: bytes, queries: Collection[str], documents: Collection[str]) -> Grades:
    """Grades by query and document, from three columns (BEIR, header or not) or four (TREC).

    A grade below 0 is kept as 0, judged and not relevant, which is how trec_eval scores it.

    Raises:
        DatasetError: a line with other columns, a grade that is no whole number, an id that corpus or queries lack, or
            two grades for one pair.

    """
    found: Grades = {}
    for number, line in lines(name, data):
        where = f"{name}:{number}"
        cells = columns(where, line)
        if not found and cells == _HEADER:
            continue
        query, document, grade = cells[0], cells[1], whole(where, cells[2])
        known(where, "query", query, queries, "queries.jsonl")
        known(where, "document", document, documents, "corpus.jsonl")
        grades = found.setdefault(query, {})
        if grades.setdefault(document, grade) != grade:
            raise DatasetError(
                f'{where}: found grade {grade} for query "{query}" and document "{document}", expected '
                f"{grades[document]} as in an earlier line; keep one of the two"
            )
    return found


def columns(where: str, line: str) -> list[str]:
    """Query, document and grade. Ids may hold spaces where tabs part the columns."""
    cells = line.split("\t") if "\t" in line else line.split()
    if len(cells) == 4:
        del cells[1]
    if len(cells) != 3:
        raise DatasetError(
            f"{where}: found {len(cells)} columns, expected 3 (query, document, grade) or 4 (TREC qrels); part them "
            "by tabs"
        )
    return cells


def whole(where: str, text: str) -> int:
    if not re.fullmatch(r"-?\d+", text, re.ASCII):
        raise DatasetError(
            f'{where}: found the grade "{text}", expected a whole number; a header is written {" ".join(_HEADER)}'
        )
    return max(0, int(text))


def known(where: str, kind: str, key: str, ids: Collection[str], file: str) -> None:
    """Refuse an id that its file lacks."""
    if key not in ids:
        advice = near(key, ids) or "add it there or remove the line"
        raise DatasetError(f'{where}: found the {kind} "{key}", expected an id of {file}; {advice}')
