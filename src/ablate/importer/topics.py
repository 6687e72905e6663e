"""A file of TREC topics in, queries out: topics in SGML or XML, or one a line."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path

from ablate.errors import DatasetError
from ablate.importer import Report, Row
from ablate.importer.markup import attributes, elements, first, plain, uncommented
from ablate.importer.source import chosen, identity, lines, objects, text

FIELDS = {
    "title": ("title", "query"),
    "description": ("desc", "description", "question"),
    "narrative": ("narr", "narrative"),
}
_NUMBER = ("number", "num", "id", "qid")
_LABEL = re.compile(r"^(?:Number|Topic|Description|Narrative)\s*:\s*", re.IGNORECASE)
_MARK = re.compile(r"<(/?)(top|topic)(\s[^<>]*)?>", re.IGNORECASE)

Topic = tuple[str, str, Mapping[str, str]]
"""Place, id and the texts by the names of `FIELDS`."""


def queries(path: Path, field: str, encoding: str, judged: Collection[str], report: Report) -> Iterator[Row]:
    """A query a topic: its `field` is the text, the others are metadata.

    Raises:
        DatasetError: the file cannot be read, or a topic lacks its number or the field.

    """
    for where, written, texts in topics(path, encoding):
        asked = " ".join(filter(None, map(texts.get, ("title", "description") if field == "both" else (field,))))
        if not asked:
            shown = ", ".join(key for key, value in texts.items() if value) or "none"
            raise DatasetError(
                f'{where}: found no {field} of topic "{written}" (it has: {shown}), expected one; choose with --field'
            )
        key = written
        if key not in judged and key.lstrip("0") in judged:
            key = key.lstrip("0")
            report.add("topic numbers without the zeros that the qrels lack too", where)
        rest = {name: value for name, value in texts.items() if value and value != asked}
        yield Row(where, {"_id": key, "text": asked} | ({"metadata": rest} if rest else {}))


def topics(path: Path, encoding: str) -> Iterator[Topic]:
    content = text(path, encoding)
    if content.lstrip().startswith("{"):
        return objects_of(path)
    return marked(path, uncommented(content)) if _MARK.search(content) else tabbed(path, encoding)


def objects_of(path: Path) -> Iterator[Topic]:
    for entry in objects(path):
        key = identity(entry, chosen(entry, ("_id", "id", "qid", "query_id"), "an id"))
        yield entry.where, key, {"title": entry.string(chosen(entry, ("text", "query", "title"), "a text"))}


def tabbed(path: Path, encoding: str) -> Iterator[Topic]:
    for number, line in lines(path, encoding):
        if not line.strip():
            continue
        cells = line.split("\t")
        if len(cells) != 2 or not all(map(str.strip, cells)):
            raise DatasetError(
                f"{path}:{number}: found {len(cells)} columns, expected 2 that are not empty (id, text); part them by "
                "one tab"
            )
        yield f"{path}:{number}", cells[0].strip(), {"title": cells[1].strip()}


def marked(path: Path, content: str) -> Iterator[Topic]:
    """Every `<top>` or `<topic>`: its number is an attribute or an element.

    A topic of none of the known fields is one text, taken for its title.
    """
    for line, opening, block in blocks(path, content):
        where = f"{path}:{line}"
        inner, bare = elements(block)
        number = next(filter(None, map(attributes(opening).get, _NUMBER)), "") or label(first(inner, _NUMBER))
        if not number:
            raise DatasetError(f"{where}: found a topic without a number, expected <num> or number=; add it")
        texts = {name: label(first(inner, names)) for name, names in FIELDS.items()}
        if not any(texts.values()):
            rest = (element.content for element in inner if element.name not in _NUMBER)
            texts["title"] = " ".join(plain("\n".join((bare, *rest))).split())
        yield where, number, texts


def blocks(path: Path, content: str) -> Iterator[tuple[int, str, str]]:
    """The line, the opening tag and the inside of every topic.

    Raises:
        DatasetError: a topic does not end.

    """
    begun: re.Match[str] | None = None
    for mark in _MARK.finditer(content):
        if mark[1] and begun:
            yield content.count("\n", 0, begun.start()) + 1, begun[0], content[begun.end() : mark.start()]
            begun = None
        elif not mark[1] and begun:
            break
        elif not mark[1]:
            begun = mark
    if begun:
        line = content.count("\n", 0, begun.start()) + 1
        raise DatasetError(f"{path}:{line}: found a topic that does not end, expected </{begun[2]}>; close it")


def label(found: str) -> str:
    """Without the word that the oldest topics begin with ("Number:", "Description:")."""
    return _LABEL.sub("", found)
