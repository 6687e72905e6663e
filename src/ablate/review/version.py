"""A dataset and the lines that change in, a new folder with the next version out: whole and checked, or not at all."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from ablate.dataset import Folder, manifest
from ablate.dataset.freeze import Freezing
from ablate.dataset.lines import entries, lines, parsed
from ablate.dataset.manifest import Manifest
from ablate.dataset.write import absent, line, write
from ablate.errors import DatasetError
from ablate.types import Dataset, Document, Query, Truth

TRUTHS, QUERIES = "ground_truth.jsonl", "queries.jsonl"

Written = Mapping[str, Any]
"""A line of a dataset file as it is written."""


@dataclass(frozen=True)
class Version:
    """A dataset as it was read, together with its files, out of which the next version is made."""

    folder: Folder
    dataset: Dataset

    @cached_property
    def documents(self) -> Mapping[str, Document]:
        return {document.id: document for document in self.dataset.documents}

    @cached_property
    def queries(self) -> Mapping[str, Query]:
        return {query.id: query for query in self.dataset.queries}

    @cached_property
    def content(self) -> Mapping[str, bytes]:
        """The files by name. A folder that has only qrels gets its lines of ground truth from them.

        The qrels are then left out, and so are queries that they do not judge, which a ground truth would let in.
        """
        found = manifest.contents(Path(self.dataset.folder))
        if TRUTHS in found:
            return found
        asked = {query.id for query in self.dataset.queries}
        rows = [entry.value for entry in entries(QUERIES, found[QUERIES]) if entry.name("_id") in asked]
        kept = {name: data for name, data in found.items() if not name.startswith("qrels/")}
        return {**kept, QUERIES: b"".join(map(line, rows)), TRUTHS: b"".join(map(line, map(graded, self.judged)))}

    @property
    def converted(self) -> bool:
        """Whether the ground truth had to be made of qrels."""
        return not (Path(self.dataset.folder) / TRUTHS).is_file()

    @property
    def judged(self) -> Iterable[Truth]:
        return (self.dataset.truths[query.id] for query in self.dataset.queries)

    @property
    def asked(self) -> frozenset[str]:
        """The id of every line of queries.jsonl, those that are left out too."""
        data = manifest.contents(Path(self.dataset.folder))[QUERIES]
        return frozenset(entry.name("_id") for entry in entries(QUERIES, data))

    @cached_property
    def rows(self) -> Mapping[str, Written]:
        """The lines of the ground truth by query."""
        return {entry.name("query_id"): entry.value for entry in entries(TRUTHS, self.content[TRUTHS])}

    def publish(
        self, to: Path, name: str | None, truths: Mapping[str, Written], queries: Mapping[str, Written] | None = None
    ) -> Published:
        """Write and freeze the next version in `to`, with these lines in the place of earlier ones or behind them.

        It is called `name`, by default the number after this version's, and this version, if it is frozen, its parent.

        Raises:
            DatasetError: something is at `to`, or it cannot be written there, or the result breaks a rule; then nothing
                is written.

        """
        absent(to)
        old = Path(self.dataset.folder)
        known = manifest.known(old)
        freezing = Freezing(name, str(old) if known else None, bool(known and known.excluded), False)
        content = {
            **self.content,
            TRUTHS: merged(TRUTHS, self.content[TRUTHS], "query_id", truths),
            QUERIES: merged(QUERIES, self.content[QUERIES], "_id", queries or {}),
        }
        try:
            to.parent.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryDirectory(prefix=f".{to.name}.", dir=to.parent) as place:
                fresh = replace(self.folder, dir=str(Path(place) / to.name))
                write(Path(fresh.dir), content)
                made = freezing(fresh).manifest
                dataset = fresh.read()
                if to.is_dir():
                    to.rmdir()
                os.rename(fresh.dir, to)
        except OSError as error:
            raise DatasetError(f"{to}: found {error.strerror}, expected a place to write to; check --to") from error
        return Published(replace(dataset, folder=str(to.resolve())), made)


@dataclass(frozen=True)
class Published:
    """A version that was just written, and its manifest."""

    dataset: Dataset
    manifest: Manifest

    def __str__(self) -> str:
        parent = f", made from version {self.manifest.parent}" if self.manifest.parent else ""
        prints = self.dataset.fingerprints["ground_truth"][:8]
        return f"frozen as version {self.manifest.version}{parent}; ground truth {prints}"


def version(folder: Folder) -> Version:
    """The version that lies in a folder.

    Raises:
        DatasetError: it cannot be read.

    """
    return Version(folder, folder.read())


def graded(truth: Truth) -> Written:
    """The line that says of a query what its qrels said."""
    grades = [{"doc_id": document, "grade": grade} for document, grade in truth.documents.items()]
    return {"query_id": truth.query, "relevant": grades}


def merged(name: str, data: bytes, key: str, rows: Mapping[str, Written]) -> bytes:
    """A JSON Lines file with `rows` by id in the place of its own; lines that do not change stay as they are."""
    left = dict(rows)
    kept = []
    for number, text in lines(name, data):
        found = left.pop(parsed(f"{name}:{number}", text)[key], None)
        kept.append(f"{text}\n".encode() if found is None else line(found))
    return b"".join([*kept, *map(line, left.values())])
