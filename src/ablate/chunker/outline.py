"""What a document's markup says of its parts: borders by rank, and headings.

Nothing is taken out of the text: markup is part of it, and a mark that is misread only moves a border.
"""

from __future__ import annotations

from typing import NamedTuple

# Ranks of borders, the coarsest first: sections by the level of their heading (1 to 6), blocks by their depth in one
# another, sentences, and tokens, which need no border.
BLOCK, DEEPEST, SENTENCE, TOKEN = 7, 40, 50, 51


class Heading(NamedTuple):
    """A heading: where it begins, where what stands under it begins, its level from 1, and its words."""

    start: int
    end: int
    level: int
    text: str


class Outline(NamedTuple):
    """`borders` are (place, rank): the text may be cut before the character at this place. Headings are in order."""

    borders: list[tuple[int, int]]
    headings: list[Heading]


def nested(depth: int) -> int:
    """The rank of a border between blocks that lie in `depth` others."""
    return BLOCK + min(depth, DEEPEST)
