"""a TREC collection: topics, qrels and documents

SOURCE is a folder. Which file is what is found by its content, or said with --topics, --qrels and --corpus (a path in
SOURCE, or any other); where several fit, nothing is guessed. Each file may be gzip.
  topics     <top> with <num>, <title>, <desc>, <narr> (tags may stay open), <topic number="..."> in XML, lines of id
             and text parted by a tab, or JSON Lines in a file named after queries or topics
  qrels      four columns: topic, iteration (not kept), document, grade; negative grades stay, and are scored as 0
  documents  TREC text (<DOC> with <DOCNO> and <TEXT>) in any number of files, or JSON Lines with an id (docid, id, _id,
             docno), a text (contents, text, body) and perhaps a title; other keys become metadata

The text of a <DOC> is its <TEXT>, <LP> and <LEADPARA>, or what stands outside of any element; its title is the first of
<TITLE>, <HEADLINE>, <HL>, <HEAD>, <TTL>. Tags inside of a text are taken out and entities written as characters.
There is no ground_truth.jsonl: qrels grade documents, and say nothing about evidence (see dataset.evidence).
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from ablate.dataset.lines import Entry
from ablate.errors import DatasetError
from ablate.importer import Imported, Report, Row
from ablate.importer.judgments import Known, grades, leave_out
from ablate.importer.markup import Element, elements, first, plain, tagged
from ablate.importer.source import chosen, folder, inside, lines, objects, one, opened, rewritten
from ablate.importer.topics import queries

TITLES = ("title", "headline", "hl", "head", "ttl")
TEXTS = ("text", "lp", "leadpara")
_IDS, _CONTENTS = ("docid", "id", "_id", "docno"), ("contents", "text", "body")
_DOC = re.compile(r"(</?DOC(?:\s[^<>]*)?>)", re.IGNORECASE)
_BEGIN = re.compile(r"^\s*<(DOC|top|topic)[\s>]", re.IGNORECASE | re.MULTILINE)
_HEAD = 65_536


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--topics", metavar="FILE", help="the file of topics")
    parser.add_argument("--qrels", metavar="FILE", help="the file of judgments")
    parser.add_argument("--corpus", metavar="PATH", help="the file of documents, or the folder of all of them")
    parser.add_argument(
        "--field",
        choices=("title", "description", "narrative", "both"),
        default="title",
        help="what of a topic is the query (default title; both: title and description)",
    )
    parser.add_argument("--encoding", default="utf-8", help="of topics and TREC text (default utf-8; often latin-1)")
    leave_out(parser)


def read(source: Path, args: argparse.Namespace) -> Imported:
    """Topics, qrels and documents.

    Raises:
        DatasetError: a file is missing, cannot be read, or several could be meant.

    """
    folder(source, "trec")
    encoding, report = known_encoding(args.encoding), Report()
    files = [path for path in sorted(source.rglob("*")) if path.is_file() and not path.name.startswith(".")]
    kinds = {path: kind(path, encoding) for path in files}
    of = {name: [path for path in files if kinds[path] == name] for name in ("topics", "qrels", "TREC text", "JSONL")}
    topics = one(source, args.topics, of["topics"], "topics", "--topics")
    judged = one(source, args.qrels, of["qrels"], "qrels", "--qrels")
    collection = Collection(documents(source, args.corpus, of, encoding), encoding, report)
    taken = {path.resolve() for path in (topics, judged, *collection.files)}
    for path in files:
        if path.resolve() not in taken:
            report.add("files not read", str(path))
    marks = list(grades(judged, report, None))
    asked = list(queries(topics, args.field, encoding, {mark.query for mark in marks}, report))
    if args.leave_out_missing:
        known = Known(
            frozenset(row.value["_id"] for row in asked),
            frozenset(row.value["_id"] for row in Collection(collection.files, encoding, Report()).rows()),
        )
        marks = list(grades(judged, report, known))
    return Imported(corpus=collection.rows(), queries=asked, qrels={"test": marks}, report=report)


def known_encoding(name: str) -> str:
    try:
        "".encode(name)
    except LookupError as error:
        raise DatasetError(f'--encoding: found "{name}", expected the name of an encoding; try latin-1') from error
    return name


def kind(path: Path, encoding: str) -> str:
    """What a file holds, by how it begins: topics, qrels, TREC text, JSONL, or nothing that is known."""
    with opened(path) as file:
        data = file.read(_HEAD)
    head = data.decode(encoding, errors="replace").removeprefix("\ufeff")
    whole = (head.rpartition("\n")[0] or head) if len(data) == _HEAD else head
    rows = [line for line in whole.splitlines() if line.strip()]
    named = re.search("quer|topic", path.name, re.IGNORECASE)
    if not rows or "\0" in head:
        return ""
    if mark := _BEGIN.search(head):
        return "TREC text" if mark[1].lower() == "doc" else "topics"
    if rows[0].lstrip().startswith("{"):
        return "topics" if named else "JSONL"
    cells = [row.split("\t") if "\t" in row else row.split() for row in islice(rows, 50)]
    if all(len(row) == 4 and re.fullmatch(r"-?\d+", row[3].strip()) for row in cells):
        return "qrels"
    return "topics" if all(len(row) == 2 and "\t" in line for row, line in zip(cells, rows, strict=False)) else ""


def documents(source: Path, named: str | None, of: dict[str, list[Path]], encoding: str) -> list[Path]:
    """The files of the corpus, all of one kind.

    Raises:
        DatasetError: there is none, or there are several kinds.

    """
    if named is not None:
        path = inside(source, named, "--corpus")
        if path.is_file():
            return [path]
        inner = [file for file in sorted(path.rglob("*")) if file.is_file() and not file.name.startswith(".")]
        of = {name: [file for file in inner if kind(file, encoding) == name] for name in ("TREC text", "JSONL")}
    found = [of[name] for name in ("TREC text", "JSONL") if of[name]]
    if len(found) != 1:
        shown = ", ".join(str(path) for files in found for path in files[:3]) or "none"
        raise DatasetError(
            f"{source}: found {shown} as documents, expected TREC text or JSON Lines, one of the two; name the file or "
            "folder with --corpus"
        )
    return found[0]


@dataclass(frozen=True)
class Collection:
    """The documents of the corpus files; reading it again reads the files again."""

    files: Sequence[Path]
    encoding: str
    report: Report

    def rows(self) -> Iterator[Row]:
        """One document after another.

        Raises:
            DatasetError: a file cannot be read, or a document has no id, no text or no end.

        """
        for path in self.files:
            if kind(path, self.encoding) == "TREC text":
                yield from (self.marked(where, block) for where, block in blocks(path, self.encoding))
            else:
                yield from map(self.object, objects(path))

    def object(self, entry: Entry) -> Row:
        key, contents = chosen(entry, _IDS, "an id"), chosen(entry, _CONTENTS, "a text")
        return Row(entry.where, rewritten(entry, key, contents, "title"))

    def marked(self, where: str, block: str) -> Row:
        found, between = elements(block)
        key = first(found, ("docno",))
        if not key:
            raise DatasetError(f"{where}: found a document without <DOCNO>, expected its id; add it")
        texts = [element for element in found if element.name in TEXTS]
        body = "\n".join(filter(None, (plain(element.content) for element in texts))) if texts else plain(between)
        self.remarks(where, key, texts, found)
        if not body:
            self.report.add("documents without any text, kept", f'{where}, "{key}"')
        title = first(found, TITLES)
        return Row(where, {"_id": key, "text": body} | ({"title": title} if title else {}))

    def remarks(self, where: str, key: str, texts: Sequence[Element], found: Sequence[Element]) -> None:
        """Say what is lost of a document."""
        if any(tagged(element.content) for element in texts):
            self.report.add("documents with tags in their text, taken out", f'{where}, "{key}"')
        for name in dict.fromkeys(element.name for element in found):
            if name not in (*TITLES, *TEXTS, "docno"):
                self.report.add(f"documents with <{name.upper()}>, left out", f'{where}, "{key}"')


def blocks(path: Path, encoding: str) -> Iterator[tuple[str, str]]:
    """The place and the inside of every document, one after another.

    Raises:
        DatasetError: a document does not end, or begins inside another.

    """
    begun, inner = 0, [""]
    for number, line in lines(path, encoding):
        for part in _DOC.split(f"{line}\n"):
            if not _DOC.fullmatch(part):
                inner.append(part)
            elif part.startswith("</"):
                yield f"{path}:{begun or number}", "".join(inner)
                begun = 0
            elif begun:
                raise DatasetError(f"{path}:{begun}: found a document that does not end, expected </DOC>; close it")
            else:
                begun, inner = number, [""]
    if begun:
        raise DatasetError(f"{path}:{begun}: found a document that does not end, expected </DOC>; close it")
