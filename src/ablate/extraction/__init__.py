"""A file in, its text out, with headings, lists and tables as Markdown; a module here for each kind of file."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from ablate.errors import AblateError

if TYPE_CHECKING:
    from ablate.chunker.outline import Heading

KINDS = {
    ".docx": "docx",
    ".htm": "html",
    ".html": "html",
    ".markdown": "markdown",
    ".md": "markdown",
    ".pdf": "pdf",
    ".text": "plain",
    ".txt": "plain",
    ".xhtml": "html",
}
"""The module for each ending of a file's name."""


class Unreadable(AblateError):
    """A file that gives no text, or not all that it should: the message says why, and what to do."""


@dataclass(frozen=True)
class Extraction:
    """What a file says.

    `title` is the one that the file itself states, `encoding` that of a text file, `front` its front matter. Where
    there are pages, `pages` holds the place in `text` at which each begins; `blank` are the numbers, from 1, of those
    with nothing on them, `scanned` of those that have to go through character recognition. `remarks` say what is left
    out. `headings` and the number of `tables` are those that the chunker `structure` finds in the text.
    """

    text: str
    title: str = ""
    encoding: str = ""
    front: Mapping[str, Any] = field(default_factory=dict)
    pages: tuple[int, ...] = ()
    blank: tuple[int, ...] = ()
    scanned: tuple[int, ...] = ()
    remarks: tuple[str, ...] = ()
    headings: tuple[Heading, ...] = ()
    tables: int = 0


def extracted(data: bytes, ending: str, encoding: str) -> Extraction:
    """The text of a file whose name ends in one of `KINDS`; `encoding` is tried where a text is not UTF-8.

    Raises:
        Unreadable: the file is broken, locked, no text, or larger than it pretends to be.
        NotInstalled: its kind needs a package that is not there.

    """
    found: Extraction = importlib.import_module(f"ablate.extraction.{KINDS[ending]}").read(data, encoding)
    parts = importlib.import_module("ablate.extraction.parts")
    return replace(found, headings=tuple(parts.headings(found.text)), tables=parts.tables(found.text))
