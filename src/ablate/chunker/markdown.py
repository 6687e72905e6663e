"""Raw Markdown in, its outline out."""

from __future__ import annotations

import re
from functools import cache
from itertools import pairwise
from typing import TYPE_CHECKING

from ablate.chunker.outline import Heading, Outline, nested
from ablate.chunker.tags import Page

if TYPE_CHECKING:
    from markdown_it import MarkdownIt

LINE = re.compile(r"\r\n?|\n")
FRONT_MATTER = re.compile(r"\A---[ \t]*(?:\r\n?|\n).*?(?:\r\n?|\n)---[ \t]*(?=[\r\n])", re.DOTALL)


def markdown(text: str) -> Outline:
    """The borders of all blocks, each of which begins with a line, and the headings that stand in no other block.

    Blocks of HTML are read as such. A plain text is one made of paragraphs.
    """
    # Front matter would be read as a heading, a text over a rule; without it, the lines keep their numbers.
    body = FRONT_MATTER.sub(lambda match: "\n" * len(LINE.findall(match[0])), text)
    lines = [0, *(match.end() for match in LINE.finditer(text)), len(text)]
    borders, headings = [], []
    for token, content in pairwise([*parser().parse(body), None]):
        # A table's body begins with its first row, and rows are what may be cut apart.
        if token is None or token.map is None or token.type in ("inline", "tbody_open"):
            continue
        start, end = (lines[number] for number in token.map)
        borders.append((start, nested(token.level)))
        if token.type == "fence":  # its first and last line are no code, and stay with some
            inner = range(token.map[0] + 2, token.map[1] - 1)
            borders += [(lines[number], nested(token.level + 1)) for number in inner]
        if token.type == "html_block":
            page = Page(text, start, end, token.level)
            borders += page.borders
            headings += page.headings
        if token.type == "heading_open" and not token.level and content:
            headings.append(Heading(start, end, int(token.tag[1:]), " ".join(content.content.split())))
    return Outline(borders, headings)


@cache
def parser() -> MarkdownIt:
    """CommonMark with tables; of blocks only, as nothing else has a place in the text."""
    from markdown_it import MarkdownIt

    return MarkdownIt("commonmark").enable("table").disable("inline")
