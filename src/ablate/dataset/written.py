"""A dataset folder in, its units and its documents as written out, before anything is checked against each other."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from ablate.dataset.lines import Entry, entries

TRUTH = "ground_truth.jsonl"
CORPUS = "corpus.jsonl"

UnitPath = tuple[str | int, ...]
"""The keys and places that lead to a unit in the line of its query: ("alternatives", 0, 1)."""


def rows(folder: Path) -> Iterator[Entry]:
    """The lines of a folder's ground truth."""
    with (folder / TRUTH).open("rb") as file:
        yield from entries(str(folder / TRUTH), file)


def units(lines: Iterable[Entry]) -> Iterator[tuple[str, UnitPath, Entry]]:
    """Query, path and object of every unit in the order of the file."""
    seen: set[str] = set()
    for line in lines:
        query = line.name("query_id")
        if query in seen:
            line.fault("query_id", f'"{query}" a second time', "one line a query", "join the two lines")
        seen.add(query)
        for number, group in enumerate(line.items("alternatives")):
            if not isinstance(group, list):
                line.fault(f"alternatives[{number}]", "no list", "a list of units", "write it in square brackets")
            for place, value in enumerate(group):
                yield query, ("alternatives", number, place), line.inner(f"alternatives[{number}][{place}]", value)
        for number, value in enumerate(line.items("relevant")):
            yield query, ("relevant", number), line.inner(f"relevant[{number}]", value)


def documents(folder: Path) -> Iterator[tuple[str, str]]:
    """Id and text of every document, one after another, so that a corpus need not fit into memory.

    Raises:
        DatasetError: a line is not UTF-8 or no JSON object, lacks id or text, or has an id given before.

    """
    seen: set[str] = set()
    with (folder / CORPUS).open("rb") as file:
        for entry in entries(str(folder / CORPUS), file):
            key = entry.name("_id")
            if key in seen:
                entry.fault("_id", f'"{key}" a second time', "ids that differ", "remove one of the lines")
            seen.add(key)
            yield key, entry.string("text")
