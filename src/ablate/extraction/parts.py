"""A text in Markdown in, its headings, the number of its tables, and the parts that a person can look at out."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from ablate.chunker.markdown import markdown, parser
from ablate.chunker.outline import Heading
from ablate.extraction import Extraction

DELIMITERS = re.compile(r"^[ >]*\|?[ ]*:?-+:?[ ]*(?:\|[ ]*:?-+:?[ ]*)*\|?[ ]*$", re.MULTILINE)
TITLE_CHARACTERS = 200


@dataclass(frozen=True, slots=True)
class Part:
    """A page or a section: what it is called, and where in the text it stands."""

    place: str
    start: int
    end: int


def headings(text: str) -> list[Heading]:
    """The headings that the chunker `structure` finds."""
    return markdown(text).headings


def tables(text: str) -> int:
    """How many tables the chunker `structure` finds."""
    if not DELIMITERS.search(text):
        return 0
    return sum(token.type == "table_open" for token in parser().parse(text))


def title(found: Iterable[Heading]) -> str:
    """The words of the first heading, without marks of emphasis, links and code."""
    words = (re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", heading.text) for heading in found)
    plain = (" ".join(re.sub(r"[*`]+", "", text).split()) for text in words)
    return next((text for text in plain if text and len(text) <= TITLE_CHARACTERS), "")


def parts(extraction: Extraction) -> list[Part]:
    """The pages of a text that has some; else what stands before the first heading and under each; else all of it."""
    text, found = extraction.text, extraction.headings
    if extraction.pages:
        edges = [*extraction.pages, len(text)]
        return [Part(f"page {number}", *edges[number - 1 : number + 1]) for number in range(1, len(edges))]
    edges = [0, *(heading.start for heading in found), len(text)]
    names = ["beginning", *(f"section {number}: {heading.text}" for number, heading in enumerate(found, 1))]
    if not found:
        return [Part("whole text", 0, len(text))]
    found_parts = [Part(name, *edges[number : number + 2]) for number, name in enumerate(names)]
    return [part for part in found_parts if text[part.start : part.end].strip()]
