"""SGML as TREC writes it in, elements and plain text out: tags may stay open, and entities may be unknown."""

from __future__ import annotations

import html
import re
from collections.abc import Sequence
from functools import cache
from typing import NamedTuple

_NAME = r"[A-Za-z][\w.-]*"
_OPENING = re.compile(rf"<({_NAME})(?:\s[^<>]*)?>")
_TAG = re.compile(rf"</?{_NAME}(?:\s[^<>]*)?/?>")
_COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)
_ATTRIBUTE = re.compile(r"""([\w-]+)\s*=\s*["']([^"']*)["']""")
_ENTITY = re.compile(r"&(?:#\d+|#[xX][0-9a-fA-F]+|\w+);")


class Element(NamedTuple):
    """A tag's name in small letters and what stands inside."""

    name: str
    content: str


def elements(block: str) -> tuple[list[Element], str]:
    """The outermost elements of a block, and what stands between them.

    An element ends at its closing tag; without one, where the next element begins.
    """
    found, between, at = [], [], 0
    while opening := _OPENING.search(block, at):
        between.append(block[at : opening.start()])
        closed = closing(opening[1]).search(block, opening.end())
        if closed:
            end, at = closed.start(), closed.end()
        else:
            following = _OPENING.search(block, opening.end())
            end = at = following.start() if following else len(block)
        found.append(Element(opening[1].lower(), block[opening.end() : end]))
    between.append(block[at:])
    return found, "".join(between)


def attributes(tag: str) -> dict[str, str]:
    """The quoted attributes of one tag, names in small letters."""
    return {key.lower(): value for key, value in _ATTRIBUTE.findall(tag)}


@cache
def closing(name: str) -> re.Pattern[str]:
    return re.compile(rf"</{re.escape(name)}\s*>", re.IGNORECASE)


def tagged(content: str) -> bool:
    return bool(_TAG.search(content))


def uncommented(content: str) -> str:
    """Without comments, every line where it was."""
    return _COMMENT.sub(lambda comment: "\n" * comment[0].count("\n"), content)


def plain(content: str) -> str:
    """Without tags and comments, known entities as characters, no white space at the ends."""
    bare = _TAG.sub("", uncommented(content))
    return _ENTITY.sub(lambda entity: html.unescape(entity[0]), bare).strip()


def first(found: Sequence[Element], names: Sequence[str]) -> str:
    """The plain text of the first element that has one of the names and some text, on one line; else nothing."""
    texts = (" ".join(plain(element.content).split()) for element in found if element.name in names)
    return next(filter(None, texts), "")
