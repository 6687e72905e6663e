"""Parts of extracted texts in, a table for a person's marks and pages that show each beside its source out."""

from __future__ import annotations

import base64
import csv
import hashlib
import io
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path

from ablate.dataset.lines import near, quoted
from ablate.errors import DatasetError
from ablate.extraction import KINDS, Unreadable
from ablate.extraction.encoding import decoded
from ablate.extraction.html import page_text
from ablate.extraction.sidecar import separator
from ablate.statistics.proportions import wilson

COLUMNS = ("number", "path", "place", "extracted", "where", "ok", "note")
SHOWN_CHARACTERS = 500
"""How much of a text stands in the table; the page has all of it."""

MARKS = {"y": True, "yes": True, "да": True, "n": False, "no": False, "нет": False}
PIXELS_PER_INCH = 110

PAGE = """<!DOCTYPE html>
<html><head><meta charset="utf-8"><meta http-equiv="Content-Security-Policy"
content="default-src 'none'; style-src 'unsafe-inline'; img-src data:"><title>{title}</title><style>
body {{ margin: 0; font: 15px/1.5 sans-serif }} header {{ padding: 8px 16px; border-bottom: 1px solid #bbb }}
main {{ display: flex; height: 90vh }} section {{ flex: 1; overflow: auto; padding: 8px 16px; min-width: 0 }}
section + section {{ border-left: 1px solid #bbb }}
pre {{ white-space: pre-wrap; overflow-wrap: anywhere; font: inherit }}
img {{ width: 100% }} iframe {{ width: 100%; height: 80vh; border: 0 }}
</style></head><body><header>{number}: <b>{title}</b> {links}</header>
<main><section><h3>source</h3>{source}</section><section><h3>extracted</h3><pre>{text}</pre></section></main></body></html>
"""
STATIC = "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">"


@dataclass(frozen=True, slots=True)
class Item:
    """A part to be looked at: of which file, where in it, and what was extracted."""

    path: str
    place: str
    text: str


def drawn(items: Iterable[Item], size: int, seed: int) -> list[Item]:
    """`size` items, each as likely as any other, in the order given; a new file moves few of the others out."""
    numbered = list(enumerate(items))
    lots = sorted(numbered, key=lambda row: hashlib.sha256(f"{seed}\0{row[1].path}\0{row[1].place}".encode()).digest())
    return [item for _, item in sorted(lots[:size], key=lambda row: row[0])]


def files(items: Sequence[Item], sources: Mapping[str, Path], encoding: str) -> dict[str, bytes]:
    """`sample.csv`, to be filled in, and a page for each of its rows; the pages load nothing from anywhere."""
    names = [f"sample/{number:03}.html" for number in range(1, len(items) + 1)]
    table = io.StringIO(newline="")
    writer = csv.writer(table)
    writer.writerow(COLUMNS)
    for number, (item, name) in enumerate(zip(items, names, strict=True), 1):
        shown = " ".join(item.text.split())
        shown = shown if len(shown) <= SHOWN_CHARACTERS else shown[:SHOWN_CHARACTERS] + "…"
        where = f"{name}; {item.place} of {item.path}"
        writer.writerow([number, *map(inert, (item.path, item.place, shown, where)), "", ""])
    pages = {
        name: page(items, number, source(item, sources[item.path], encoding)).encode()
        for number, (item, name) in enumerate(zip(items, names, strict=True))
    }
    return {"sample.csv": table.getvalue().encode("utf-8-sig"), **pages}  # the mark tells office programs the encoding


def inert(cell: str) -> str:
    """A cell that no office program takes for a formula."""
    return f"'{cell}" if cell.startswith(("=", "+", "-", "@", "\t")) else cell


def page(items: Sequence[Item], number: int, original: str) -> str:
    item = items[number]
    links = {"previous": number, "next": number + 2}
    return PAGE.format(
        title=escape(f"{item.place} of {item.path}"),
        number=number + 1,
        links=" ".join(f'<a href="{to:03}.html">{name}</a>' for name, to in links.items() if 0 < to <= len(items)),
        source=original,
        text=escape(item.text.strip()) or "<i>nothing</i>",
    )


def source(item: Item, path: Path, encoding: str) -> str:
    """The source as a person sees it: a page as a picture, a web page as one, a text as it is."""
    ending, data = path.suffix.lower(), path.read_bytes()
    if ending == ".pdf":
        picture = base64.b64encode(photographed(data, int(item.place.split()[1]))).decode()
        return f'<img alt="{escape(item.place)}" src="data:image/png;base64,{picture}">'
    if ending == ".docx":
        return f"<p>Open <b>{escape(item.path)}</b> and find: {escape(item.place)}</p>"
    if KINDS[ending] == "html":
        return f'<iframe sandbox srcdoc="{escape(STATIC + page_text(data, encoding)[0])}"></iframe>'
    return f"<pre>{escape(decoded(data, encoding)[0])}</pre>"


def photographed(data: bytes, number: int) -> bytes:
    """A page of a PDF as a PNG picture."""
    import pdfplumber

    found = io.BytesIO()
    with pdfplumber.open(io.BytesIO(data)) as pdf:
        pdf.pages[number - 1].to_image(resolution=PIXELS_PER_INCH).original.save(found, "PNG")
    return found.getvalue()


def marks(name: str, data: bytes) -> list[bool]:
    """The marks of a filled table, one a row.

    Raises:
        DatasetError: it is no such table, has no row, or a row whose `ok` is not filled in or is no mark.

    """
    try:
        text, _ = decoded(data, "")
    except Unreadable as error:
        raise DatasetError(f"{name}: {error}") from error
    found = []
    reader = csv.DictReader(io.StringIO(text, newline=""), delimiter=separator(text.partition("\n")[0]))
    if "ok" not in (reader.fieldnames or ()):
        raise DatasetError(f'{name}: found no column "ok", expected sample.csv as `dataset import folder` wrote it')
    for row in reader:
        mark = (row["ok"] or "").strip().lower()
        if mark not in MARKS:
            shown = quoted(mark) if mark else "nothing"
            hint = near(mark, MARKS) or "look at the place and fill it in"
            raise DatasetError(f"{name}:{reader.line_num}: found {shown} as ok, expected y or n; {hint}")
        found.append(MARKS[mark])
    if not found:
        raise DatasetError(f"{name}: found no row, expected one a part that was looked at; import with --sample 50")
    return found


def interval(good: int, of: int) -> tuple[float, float]:
    """The 95 % interval of a share, by Wilson."""
    return wilson(good / of, of)
