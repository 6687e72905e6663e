"""A PDF file in, its words out as Markdown, page by page, and which pages have none.

A PDF knows of no paragraph, heading or table, only of letters and lines at places. What stands in lines of one size
close below each other is taken for a paragraph, what is larger than most of the text for a heading, what stands in a
grid of ruled lines for a table. Lines are in reading order, column after column.
"""

from __future__ import annotations

import io
import logging
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import inf
from typing import TYPE_CHECKING

from ablate.errors import NotInstalled, first_line
from ablate.extraction import Extraction, Unreadable
from ablate.extraction.html import INVISIBLE, spaced
from ablate.extraction.markdown import table

if TYPE_CHECKING:
    from pdfplumber.page import Page

FEW_LETTERS = 50
"""A page covered by a picture with fewer letters than this, such as a page number, is taken for a scan."""

COVERED = 0.5
"""The share of a page from which on pictures cover it."""

LARGER = 1.15
"""How many times the size of most of the text a heading has at least."""

SIDEWAYS = 10
"""How many letters of a page stand sideways before it is told."""

LONGEST_HEADING = 200
"""In characters; what is longer is a paragraph in large print."""

UNMAPPED = re.compile(r"\(cid:\d+\)")  # a glyph of which the file does not say what letter it is
LIGATURES = str.maketrans(dict(zip("ﬀﬁﬂﬃﬄﬅﬆ", ("ff", "fi", "fl", "ffi", "ffl", "st", "st"), strict=True)))
BULLET = re.compile(r"[•●▪■◦‣∙·\uf0b7\uf0a7]\s*(?=\S)")
ITEM = re.compile(r"- |\d{1,3}[.)]\s")
WORD = re.compile(r"\w+(?:-\w+)*")


@dataclass(frozen=True, slots=True)
class Line:
    """A line of letters: where it stands on its page, in points from the left and the top, and its size."""

    page: int
    left: float
    right: float
    top: float
    bottom: float
    text: str

    @property
    def size(self) -> float:
        return round(2 * (self.bottom - self.top)) / 2


@dataclass(frozen=True, slots=True)
class Table:
    """A table in the place of the lines that its cells hold."""

    page: int
    text: str


Part = Line | Table


def read(data: bytes, encoding: str) -> Extraction:
    try:
        import pdfplumber
    except ModuleNotFoundError as error:
        raise NotInstalled(
            'found no package that reads PDF, expected pdfplumber; run `pip install "ablate-retrieval[documents]"`'
        ) from error
    logging.getLogger("pdfminer").setLevel(logging.ERROR)  # it warns of colours
    parts: list[Part] = []
    blank, scanned, sideways = [], [], []
    number = 0
    try:
        with pdfplumber.open(io.BytesIO(data), laparams={"all_texts": True}, raise_unicode_errors=False) as pdf:
            title = pdf.metadata.get("Title")
            for number, page in enumerate(pdf.pages, 1):
                found = lines(page, number)
                said = "".join(line.text for line in found)
                if needs_recognition(page, said):
                    scanned.append(number)
                elif not said.strip():
                    blank.append(number)
                if sum(not letter["upright"] for letter in page.chars) >= SIDEWAYS:
                    sideways.append(number)
                parts += with_tables(page, found)
                page.close()
    except MemoryError:
        raise
    except Exception as error:  # of whatever kind a broken file makes the library meet
        raise refused(error, number) from error
    if not number:
        raise Unreadable("found no page, expected a PDF file; open it and save it again")
    text, pages = written(parts, number)
    return Extraction(
        text,
        spaced(title) if isinstance(title, str) and title.lower() != "untitled" else "",
        pages=pages,
        blank=tuple(blank),
        scanned=tuple(scanned),
        remarks=tuple(remarks(text.count("\ufffd"), sideways)),
    )


def remarks(unknown: int, sideways: Sequence[int]) -> Iterator[str]:
    if unknown:
        yield f"{unknown} letters that the file does not name, written as \ufffd"
    if sideways:
        yield f"pages with words that stand sideways, of which every letter is a line: {', '.join(map(str, sideways))}"


def refused(error: Exception, page: int) -> Unreadable:
    from pdfminer.pdfdocument import PDFEncryptionError, PDFPasswordIncorrect

    cause = error.args[0] if error.args and isinstance(error.args[0], Exception) else error
    if isinstance(cause, (PDFPasswordIncorrect, PDFEncryptionError)):
        return Unreadable("found a file with a password, expected one without; save a copy that opens without")
    where = f" on page {page}" if page else ""
    return Unreadable(
        f"found a broken file ({first_line(cause)}{where}), expected a PDF file; open it and save it again"
    )


def lines(page: Page, number: int) -> list[Line]:
    found, mark = [], ""
    for line in page.objects.get("textlinehorizontal", []):
        text = spaced(UNMAPPED.sub("\ufffd", line["text"]).translate(LIGATURES).replace("\n", " "))
        if len(text) == 1 and BULLET.match(text + "x"):  # one drawn by itself belongs to what comes next
            mark = f"{text} "
        elif text:
            found.append(Line(number, line["x0"], line["x1"], line["top"], line["bottom"], mark + text))
            mark = ""
    return found


def needs_recognition(page: Page, text: str) -> bool:
    """Whether a page is a picture of text, or its text one of glyphs without a meaning."""
    letters = sum(map(str.isalnum, text))
    if text.count("\ufffd") > letters:
        return True
    area = sum((picture["x1"] - picture["x0"]) * (picture["bottom"] - picture["top"]) for picture in page.images)
    covered = area >= COVERED * float(page.width * page.height)
    return bool(page.images) and (not letters or (covered and letters < FEW_LETTERS))


def with_tables(page: Page, found: Sequence[Line]) -> list[Part]:
    """The lines, those of each table replaced by it. A grid that does not hold just its lines' letters is no table."""
    parts: list[Part] = list(found)
    for grid in page.find_tables() if page.lines or page.rects or page.curves else ():
        left, top, right, bottom = grid.bbox
        inside = [
            part
            for part in parts
            if isinstance(part, Line)
            and left <= (part.left + part.right) / 2 <= right
            and top <= (part.top + part.bottom) / 2 <= bottom
        ]
        rows = [[cleaned(cell or "") for cell in row] for row in grid.extract()]
        rows = [row for row in rows if any(row)]
        columns = sum(map(any, zip(*rows, strict=True)))
        if len(rows) < 2 or columns < 2 or letters(inside) != Counter("".join("".join(map("".join, rows)).split())):
            continue
        first = parts.index(inside[0])
        rest = [part for part in parts if part not in inside]
        parts = [*rest[:first], Table(inside[0].page, table(rows)), *rest[first:]]
    return parts


def cleaned(text: str) -> str:
    return spaced(UNMAPPED.sub("\ufffd", text).translate(LIGATURES))


def letters(inside: Iterable[Line]) -> Counter[str]:
    return Counter("".join("".join(line.text for line in inside).split()))


def written(parts: Sequence[Part], pages: int) -> tuple[str, tuple[int, ...]]:
    """All parts as one text, and where in it each page begins."""
    all_lines = [part for part in parts if isinstance(part, Line)]
    sizes: Counter[float] = Counter()
    for line in all_lines:
        sizes[line.size] += len(line.text)
    body = max(sizes, key=lambda size: (sizes[size], -size), default=0.0)
    larger = sorted({line.size for line in all_lines if line.size >= LARGER * body}, reverse=True)
    levels = {size: min(number, 6) for number, size in enumerate(larger, 1)}
    words = {word.lower() for line in all_lines for word in WORD.findall(line.text)}
    text, starts = "", [0] * pages
    begun = 0
    for block in blocks(parts):
        page = block[0].page
        starts[begun:page] = [len(text)] * (page - begun)
        begun = page
        text += shown(block, levels, words) + "\n\n"
    starts[begun:] = [len(text)] * (pages - begun)
    return (text[:-1] if text else ""), tuple(min(start, max(len(text) - 1, 0)) for start in starts)


def blocks(parts: Sequence[Part]) -> Iterator[list[Part]]:
    """Runs of lines that make a paragraph, and tables."""
    gaps = Counter(gap(above, below) for above, below in pairwise(parts) if beneath(above, below))
    usual = max(gaps, key=lambda gap: (gaps[gap], -gap), default=0.0)
    run: list[Part] = []
    for part in parts:
        if run and not continues(run[-1], part, usual):
            yield run
            run = []
        run.append(part)
    if run:
        yield run


def beneath(above: Part, below: Part) -> bool:
    """Whether two parts are lines that stand below each other in one column, in letters of one size."""
    if not isinstance(above, Line) or not isinstance(below, Line) or above.page != below.page:
        return False
    return above.size == below.size and above.top < below.top and above.left < below.right and below.left < above.right


def gap(above: Part, below: Part) -> float:
    """How far two lines are apart, in half points; a table is far from everything."""
    if not isinstance(above, Line) or not isinstance(below, Line):
        return inf
    return round(2 * (below.top - above.bottom)) / 2


def continues(above: Part, below: Part, usual: float) -> bool:
    """Whether a line goes on with the paragraph above: not further away than usual, nor indented."""
    if not beneath(above, below) or not isinstance(above, Line) or not isinstance(below, Line):
        return False
    near = gap(above, below) <= max(usual, 0) + above.size / 4
    indented = below.left > above.left + above.size and not BULLET.match(above.text) and not ITEM.match(above.text)
    return near and not indented


def shown(block: Sequence[Part], levels: dict[float, int], words: set[str]) -> str:
    """A paragraph, heading or table as Markdown."""
    if isinstance(block[0], Table):
        return block[0].text
    run = [part for part in block if isinstance(part, Line)]
    text = joined(run, words)
    level = levels.get(run[0].size)
    if level and len(text) <= LONGEST_HEADING and sum(map(str.isalpha, text)) > 1:
        return f"{'#' * level} {' '.join(text.split())}"
    return text


def joined(run: Sequence[Line], words: set[str]) -> str:
    """The lines of a paragraph as one; where a line is broken before its end, it stays so, as in an address or a list.

    A hyphen that ends a line falls away, unless the same word has one elsewhere.
    """
    right = max(line.right for line in run)
    text = BULLET.sub("- ", run[0].text, count=1) if BULLET.match(run[0].text) else run[0].text
    for above, below in pairwise(run):
        bullet = BULLET.match(below.text)
        next_text = "- " + below.text[bullet.end() :] if bullet else below.text
        if bullet or ITEM.match(next_text):
            text += "\n" + next_text
        elif re.search(r"\w[-\u00ad\u2010]\Z", text) and next_text[0].islower():
            whole = (text.split()[-1] + WORD.match(next_text)[0]).lower()  # type: ignore[index]
            text = (text if whole in words else text[:-1]) + next_text
        else:
            text += (" " if full(above, below, right) else "\n") + next_text
    return INVISIBLE.sub("", text)


def full(above: Line, below: Line, right: float) -> bool:
    """Whether the first word of the line below would not have fitted into the one above."""
    word = below.text.split()[0]
    width = (below.right - below.left) * (len(word) + 1) / max(len(below.text), 1)
    return above.right + width > right
