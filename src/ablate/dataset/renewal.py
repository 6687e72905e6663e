"""A drift in, the ground truth of the new folder out: what is certain stands at its new place, the rest is marked."""

from __future__ import annotations

import codecs
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from ablate.dataset import manifest, write
from ablate.dataset.drift import BETWEEN, CERTAIN, Drift, Unit
from ablate.dataset.lines import lines, parsed
from ablate.dataset.qrels import columns
from ablate.dataset.written import CORPUS, TRUTH, documents
from ablate.errors import DatasetError

SHORT = 120
"""Characters of a text that are shown where the whole would be too much."""


def renew(drift: Drift) -> tuple[str, ...]:
    """Write the ground truth of the new folder, and copy there what else it lacks of the old one; names of both.

    The ground truth comes last, so that what is interrupted can be done again.

    Raises:
        DatasetError: the new folder is frozen, or has a ground truth that may be somebody's work.

    """
    if (drift.new / manifest.NAME).is_file():
        raise DatasetError(
            f"{drift.new}: found a frozen folder, expected one that may be written to; copy it without its "
            f"{manifest.NAME} and name the copy"
        )
    old = (drift.old / TRUTH).read_bytes()
    new = renewed(old, drift.units)
    there = (drift.new / TRUTH).read_bytes() if (drift.new / TRUTH).is_file() else None
    if there not in (None, old, new):
        raise DatasetError(
            f"{drift.new / TRUTH}: found a ground truth that differs from the old one, expected none or the same, as "
            "it may be somebody's work; leave --fix out, or move the file away first"
        )
    have = manifest.paths(drift.new)
    lacking = {name: path for name, path in manifest.paths(drift.old).items() if name not in have}
    lacking = {name: path for name, path in lacking.items() if name not in (CORPUS, TRUTH)}
    for name, path in lacking.items():
        write.replace(drift.new / name, path.read_bytes())
    if there != new:
        write.replace(drift.new / TRUTH, new)
    return (*lacking, *([TRUTH] if there != new else []))


def renewed(data: bytes, units: Sequence[Unit]) -> bytes:
    """The bytes of the ground truth with every unit as it is now; lines in which no unit moved stay as they are."""
    by_query: dict[str, list[Unit]] = {}
    for unit in units:
        by_query.setdefault(unit.query, []).append(unit)
    return b"\n".join(line_with(line, by_query) for line in data.split(b"\n"))


def line_with(line: bytes, units: Mapping[str, Sequence[Unit]]) -> bytes:
    if not line.strip(b" \t\r" + codecs.BOM_UTF8):
        return line
    row = parsed(TRUTH, line.removeprefix(codecs.BOM_UTF8).decode())
    moved = False
    for unit in units.get(row["query_id"], ()):
        holder: Any = row
        for key in unit.path[:-1]:
            holder = holder[key]
        now = unit_with(holder[unit.path[-1]], unit)
        moved = moved or now != holder[unit.path[-1]]
        holder[unit.path[-1]] = now
    return write.line(row).removesuffix(b"\n") if moved else line


def unit_with(row: Mapping[str, Any], unit: Unit) -> dict[str, Any]:
    """A unit as the new ground truth has it: at its new place, or at the old one, with its text and what is amiss."""
    if unit.state not in CERTAIN:
        text = BETWEEN.join(passage.text for passage in unit.passages)
        return {**row, **({"quote": text} if text else {}), "unresolved": amiss(unit)}
    now = {key: value for key, value in row.items() if key != "unresolved"} | {"doc_id": unit.now}
    places = [passage.place for passage in unit.passages if passage.place is not None]
    if "spans" in row:
        now.pop("quote", None)
        return now | {"spans": [list(place) for place in places]} if places else now
    for passage, place in zip(unit.passages, places, strict=True):
        if "start" in row or not passage.alone:
            now |= {"start": place.start, "end": place.end}
        if "quote" in row:
            now["quote"] = passage.now
    return now


def amiss(unit: Unit) -> str:
    """The state of a unit and what is closest to those of its passages that are not certain, for who corrects it."""
    lost = [passage for passage in unit.passages if passage.place is None]
    near = BETWEEN.join(shortened(passage.now) for passage in lost if passage.now)
    remarks = dict.fromkeys([unit.remark, *(passage.remark for passage in lost)])
    told = "; ".join(filter(None, [near, *remarks]))
    nothing = "no document has the same text" if unit.now is None else "nothing like it was found"
    return f"{unit.state}: {told or nothing}"


def shortened(text: str) -> str:
    """A text on one line, cut to `SHORT` characters."""
    line = " ".join(text.split())
    return line if len(line) <= SHORT else line[: SHORT - 1] + "…"


def strangers(folder: Path) -> Iterator[tuple[str, int, str]]:
    """Every qrels file that judges documents which the corpus lacks, how often, and the first of them."""
    files = {name: path for name, path in manifest.paths(folder).items() if name.startswith("qrels/")}
    known = {key for key, _ in documents(folder)} if files else set()
    for name, path in files.items():
        cells = [columns(f"{name}:{number}", line) for number, line in lines(name, path.read_bytes())]
        lacking = [row[1] for number, row in enumerate(cells) if row[1] not in known and (number or row[2] != "score")]
        if lacking:
            yield name, len(lacking), lacking[0]
