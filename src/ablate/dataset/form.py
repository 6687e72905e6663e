"""A text in, what a new export of it keeps out: its signs without white space, decomposed, each with its offset."""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from unicodedata import combining, normalize

from ablate.types import Span

_INVISIBLE = "\u00ad\u200b\u2060\ufeff"
"""Soft hyphen, zero width space, word joiner, byte order mark: they come and go with the program that exports."""


@dataclass(frozen=True, slots=True)
class Form:
    """Signs in Unicode's canonical decomposition; of white space only one blank between two words is left, and before
    a digit that would else belong to the number or the minus sign before it.

    `offsets` has, for every sign, the offset of the character of the original text that it comes from, and then the
    length of that text. `10 000` and `10000` differ, as do other letters, digits and punctuation.
    """

    text: str
    offsets: Sequence[int]

    def within(self, span: Span) -> tuple[int, int]:
        """Where the signs of a span of the original text begin and end, blanks at its edges left out."""
        start, end = bisect_left(self.offsets, span.start), bisect_left(self.offsets, span.end)
        end = min(end, len(self.text))
        while start < end and self.text[start] == " ":
            start += 1
        while start < end and self.text[end - 1] == " ":
            end -= 1
        return start, end

    def original(self, start: int, end: int) -> Span | None:
        """The span of the original text that these signs come from; None if they are parts of its characters."""
        cut = self.offsets[start - 1] == self.offsets[start] if start else False
        if cut or self.offsets[end] == self.offsets[end - 1]:
            return None
        return Span(self.offsets[start], self.offsets[end - 1] + 1)


@dataclass(frozen=True)
class Text:
    """A document's text, and its form once it is asked for."""

    raw: str

    @cached_property
    def form(self) -> Form:
        return form(self.raw)


def form(text: str) -> Form:
    """The form of a text: equal for two texts that differ in white space and in Unicode normalisation alone."""
    signs: list[str] = []
    offsets = array("L")
    blank = -1
    for offset, character in enumerate(text):
        if character.isspace():
            blank = offset if blank < 0 else blank
            continue
        if character in _INVISIBLE:
            continue
        if blank >= 0 and signs and parted(signs, character):
            signs.append(" ")
            offsets.append(blank)
        blank = -1
        for sign in character if character.isascii() else normalize("NFD", character):
            signs.append(sign)
            offsets.append(offset)
    ordered(signs)
    offsets.append(len(text))
    return Form("".join(signs), offsets)


def ordered(signs: list[str]) -> None:
    """Put the marks on each letter in Unicode's canonical order, in place; offsets stay in the order of the text."""
    start = 0
    while start < len(signs):
        end = start
        while end < len(signs) and not signs[end].isascii() and combining(signs[end]):
            end += 1
        if end - start > 1:
            signs[start:end] = sorted(signs[start:end], key=combining)
        start = max(end, start + 1)


def parted(signs: Sequence[str], character: str) -> bool:
    """Whether white space between these says something: between two words, and where `1. 5` or `- 5` is no number."""
    if wordlike(signs[-1]):
        return wordlike(character)
    return character.isdigit() and (signs[-1] in "-\u2212" or (signs[-1] in ".,:" and "".join(signs[-2:-1]).isdigit()))


def wordlike(sign: str) -> bool:
    """Whether a sign belongs to a word or a number: a letter, a digit, or a mark on one."""
    return sign.isalnum() or bool(combining(sign))


def starts(part: str, whole: str) -> Iterator[int]:
    """Where the part begins in the whole; places may overlap."""
    start = whole.find(part) if part else -1
    while start >= 0:
        yield start
        start = whole.find(part, start + 1)
