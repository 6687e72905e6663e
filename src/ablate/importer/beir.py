"""a BEIR folder: corpus.jsonl, queries.jsonl and qrels/*.tsv

SOURCE is a folder as BEIR publishes it, each of its files plain or gzip:
  corpus.jsonl    {"_id", "title", "text", "metadata"?} a line
  queries.jsonl   {"_id", "text", "metadata"?} a line
  qrels/*.tsv     query-id, corpus-id and score, parted by tabs; one file a split

Other keys of a line (url, ...) go to its metadata. Ids may be whole numbers. No ground_truth.jsonl is written: qrels
grade documents, and say nothing about evidence (see dataset.evidence).
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping
from pathlib import Path

from ablate.errors import DatasetError
from ablate.importer import Imported, Report, Row
from ablate.importer.judgments import Known, grades, leave_out
from ablate.importer.source import folder, objects, rewritten


def arguments(parser: argparse.ArgumentParser) -> None:
    leave_out(parser)


def read(source: Path, args: argparse.Namespace) -> Imported:
    """Corpus, queries and the qrels of every split.

    Raises:
        DatasetError: a file is missing or cannot be read.

    """
    folder(source, "beir")
    report = Report()
    files = {name: one(source, name) for name in ("corpus.jsonl", "queries.jsonl")}
    splits = sorted([*(source / "qrels").glob("*.tsv"), *(source / "qrels").glob("*.tsv.gz")])
    if not splits:
        raise DatasetError(f"{source / 'qrels'}: found no .tsv file, expected one a split; add the judgments")
    asked = list(queries(files["queries.jsonl"]))
    known = None
    if args.leave_out_missing:
        known = Known(
            frozenset(row.value["_id"] for row in asked),
            frozenset(row.value["_id"] for row in corpus(files["corpus.jsonl"])),
        )
    return Imported(
        corpus=watched(corpus(files["corpus.jsonl"]), {row.value["_id"]: row.value["text"] for row in asked}, report),
        queries=asked,
        qrels={path.name.partition(".tsv")[0]: list(grades(path, report, known)) for path in splits},
        report=report,
    )


def one(source: Path, name: str) -> Path:
    for path in (source / name, source / f"{name}.gz"):
        if path.is_file():
            return path
    raise DatasetError(f"{source}: found no {name}, expected one; see `dataset import beir --help`")


def corpus(path: Path) -> Iterator[Row]:
    for entry in objects(path):
        yield Row(entry.where, rewritten(entry, "_id", "text", "title"))


def queries(path: Path) -> Iterator[Row]:
    for entry in objects(path):
        yield Row(entry.where, rewritten(entry, "_id", "text"))


def watched(rows: Iterator[Row], asked: Mapping[str, str], report: Report) -> Iterator[Row]:
    """Remark on documents that are a query's own text: BEIR's evaluation takes them out of that query's ranking."""
    for row in rows:
        if asked.get(row.value["_id"]) == row.value["text"]:
            report.add("documents that are a query themselves (same id and text), kept", row.where)
        yield row
