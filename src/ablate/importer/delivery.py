"""What an importer found in, a finished dataset folder out: whole and proved valid, or not there at all."""

from __future__ import annotations

import os
import re
import shutil
import uuid
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ablate.dataset import Folder, corpus
from ablate.dataset.qrels import qrels
from ablate.dataset.write import Content, absent, write
from ablate.errors import DatasetError
from ablate.importer import Grade, Imported, Row

_PLACE = re.compile(r"\b([a-z_]+\.jsonl|qrels/[^\s:]+\.tsv):(\d+)")
_TOLD = 10
_HEADER = b"query-id\tcorpus-id\tscore\n"


@dataclass(frozen=True)
class Delivered:
    """What reading the finished folder counted, and what it warned of."""

    counts: Mapping[str, int]
    warnings: tuple[str, ...]


def deliver(imported: Imported, source: Path, folder: Path) -> Delivered:
    """Write what was found in `source` beside `folder`, read it, and give it its name.

    Raises:
        DatasetError: the folder is there already or cannot be made, or what was found is no dataset; its sentences,
            a line each, name the source.

    """
    folder = folder.resolve()
    absent(folder)
    fresh = folder.parent / f".{folder.name}.{uuid.uuid4().hex}"
    places = Places(source)
    try:
        write(fresh, places.files(imported))
        found = places.proved(fresh, imported)
        absent(folder)
        if folder.is_dir():
            folder.rmdir()
        os.rename(fresh, folder)
    except OSError as error:
        raise DatasetError(f"{folder}: found {error.strerror}, expected a place to write to; choose another") from error
    finally:
        shutil.rmtree(fresh, ignore_errors=True)
    return found


@dataclass
class Places:
    """Remembers the id of each written row, and where in the source it comes from."""

    source: Path
    lines: dict[str, list[str]] = field(default_factory=dict)
    ids: dict[str, set[str]] = field(default_factory=dict)

    def files(self, imported: Imported) -> dict[str, Content]:
        """The content of every file; rows are taken, and their places remembered, while it is written."""
        rows = {"corpus": imported.corpus, "queries": imported.queries, "ground_truth": imported.ground_truth}
        found: dict[str, Content] = {
            f"{name}.jsonl": self.watched(f"{name}.jsonl", taken) for name, taken in rows.items() if taken is not None
        }
        for split, grades in imported.qrels.items():
            name = f"qrels/{split}.tsv"
            found[name] = _HEADER + b"".join(self.judged(name, grades))
        return {**found, **imported.files}

    def watched(self, name: str, rows: Iterable[Row]) -> Iterator[Mapping[str, Any]]:
        places, ids = self.lines.setdefault(name, []), self.ids.setdefault(name, set())
        for row in rows:
            places.append(row.where)
            ids.add(row.value.get("_id", ""))
            yield row.value

    def judged(self, name: str, grades: Iterable[Grade]) -> Iterator[bytes]:
        places = self.lines.setdefault(name, ["its header"])
        for grade in grades:
            for key in (grade.query, grade.document):
                if not key.strip() or re.search(r"[\t\r\n]", key):
                    raise DatasetError(f"{grade.where}: found the id {key!r}, expected one without tabs; rename it")
            places.append(grade.where)
            yield f"{grade.query}\t{grade.document}\t{grade.grade}\n".encode()

    def proved(self, folder: Path, imported: Imported) -> Delivered:
        """What reading the written folder finds, in terms of the source.

        Raises:
            DatasetError: it is no valid dataset.

        """
        if imported.queries is None:
            with (folder / "corpus.jsonl").open("rb") as file, self.told():
                found = corpus.read(file, True, lambda document: None).counts
            return Delivered({key: found[key] for key in ("documents", "documents_empty")}, ())
        first, *others = sorted(imported.qrels, key=lambda split: (split != "test", split)) or ["test"]
        checked = Folder(str(folder), first, "none", 1, "nobody", True, None).checked(sparing=True)
        with self.told():
            if checked.dataset is None:
                raise DatasetError(checked.problems)
            for split in others:
                name = f"qrels/{split}.tsv"
                qrels(name, (folder / name).read_bytes(), self.ids["queries.jsonl"], self.ids["corpus.jsonl"])
        return Delivered(checked.dataset.counts, tuple(map(self.translated, checked.warnings)))

    @contextmanager
    def told(self) -> Iterator[None]:
        """Problems that are found inside are told by their places in the source: the first ones, a line each."""
        try:
            yield
        except DatasetError as error:
            found = [
                f"{self.source}, as {problem}" if problem.line is None else self.translated(str(problem))
                for problem in error.problems
            ]
            more = [f"and {len(found) - _TOLD} more"] if len(found) > _TOLD else []
            raise DatasetError("\n".join([*found[:_TOLD], *more])) from error

    def translated(self, sentence: str) -> str:
        """The sentence with places of the source instead of lines that nobody can see."""

        def place(match: re.Match[str]) -> str:
            places = self.lines.get(match[1], [])
            return places[int(match[2]) - 1] if 0 < int(match[2]) <= len(places) else match[0]

        return _PLACE.sub(place, sentence)
