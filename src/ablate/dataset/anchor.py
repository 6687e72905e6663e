"""A passage of an old text in, its place in the new text out where that is certain."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import takewhile
from unicodedata import combining

from ablate.dataset.form import Text, form
from ablate.types import Span

CONTEXT = 40
"""Signs around a passage that must be the same, on both sides together, to tell it from its doubles."""

FAR = 1000
"""Signs on either side that are compared at most."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where a passage stands in the new text; without `span` it is not certain, and `doubles` are what it could be."""

    span: Span | None
    doubles: Sequence[Span] = ()


def anchored(old: Text, span: Span, new: Text) -> Place:
    """The place of `old.raw[span]` in `new`.

    It is certain where the same text stands at the same offsets; where both texts hold it exactly once; or where what
    stands around it picks one of its doubles in the new text, and no double in the old text fits that one as well. Only
    if the new text does not hold it, the same signs in other white space or Unicode form are looked for in this way.
    A passage that now ends inside a longer word or number ("30 days" in "130 days") is not the same.
    """
    quote = old.raw[span.start : span.end]
    cut = edges(old.raw, span)
    if new.raw[span.start : span.end] == quote and fits(new.raw, span, cut):
        return Place(span)
    places = [each for each in exact(quote, new.raw) if fits(new.raw, each, cut)]
    rivals = [each for each in exact(quote, old.raw) if each != span and fits(old.raw, each, cut)]
    if not places:
        start, end = old.form.within(span)
        places = [each for each in alike(old.form.text[start:end], new) if fits(new.raw, each, cut)]
        own = old.form.original(start, end)
        rivals = [each for each in alike(old.form.text[start:end], old) if each != own and fits(old.raw, each, cut)]
    if not places:
        return Place(None)
    if len(places) == 1 and not rivals:
        return Place(places[0])
    return picked(old, span, new, places, rivals)


def alone(quote: str, new: Text) -> Place:
    """The place of a text of which no more is known than that it was cited: certain where it stands exactly once."""
    places = exact(quote, new.raw) or alike(form(quote).text, new)
    places = [place for place in places if fits(new.raw, place, (False, False))]
    return Place(places[0]) if len(places) == 1 else Place(None, places)


def picked(old: Text, span: Span, new: Text, places: Sequence[Span], rivals: Sequence[Span]) -> Place:
    """The one place whose surroundings are those of the passage, better than any other place and any rival's."""
    scored = sorted(((around(old, span, new, place), place) for place in places), reverse=True)
    best, place = scored[0]
    others = [score for score, _ in scored[1:]] + [around(old, rival, new, place) for rival in rivals]
    if best < CONTEXT or max(others, default=0) >= best:
        return Place(None, places)
    return Place(place)


def exact(quote: str, text: str) -> list[Span]:
    """Every span of the text that is `quote`; spans may overlap."""
    return [Span(start, start + len(quote)) for start in starts(quote, text)]


def alike(signs: str, text: Text) -> list[Span]:
    """Every span of the text with these signs, whatever its white space and Unicode form."""
    found = (text.form.original(start, start + len(signs)) for start in starts(signs, text.form.text))
    return [span for span in found if span is not None]


def starts(part: str, whole: str) -> Iterable[int]:
    start = whole.find(part) if part else -1
    while start >= 0:
        yield start
        start = whole.find(part, start + 1)


def around(old: Text, span: Span, new: Text, place: Span) -> int:
    """How many signs before and after two passages are the same, up to the first that differs.

    That both texts begin, or end, at the same distance counts as if `CONTEXT` more were the same.
    """
    (start, end), (at, to) = old.form.within(span), new.form.within(place)
    one, other = old.form.text, new.form.text
    before = shared(one[max(0, start - FAR) : start][::-1], other[max(0, at - FAR) : at][::-1])
    return before + shared(one[end : end + FAR], other[to : to + FAR])


def shared(one: str, other: str) -> int:
    same = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False)))
    return same + CONTEXT * (same == len(one) == len(other) < FAR)


def edges(text: str, span: Span) -> tuple[bool, bool]:
    """Whether a span begins, and whether it ends, inside a word or a number."""
    return inside(text, span.start), inside(text, span.end)


def fits(text: str, span: Span, cut: tuple[bool, bool]) -> bool:
    """Whether a span cuts no word that was whole before."""
    return all(was or not now for was, now in zip(cut, edges(text, span), strict=True))


def inside(text: str, offset: int) -> bool:
    """Whether an offset parts a word, a number (1.5), or a letter from its mark."""
    if not 0 < offset < len(text):
        return False
    left, right = text[offset - 1], text[offset]
    if combining(right) or ((left.isalnum() or combining(left)) and right.isalnum()):
        return True
    number = text[max(0, offset - 2) : offset], text[offset : offset + 2]
    return pointed(left + number[1]) or pointed(number[0] + right)


def pointed(text: str) -> bool:
    """Whether three characters are two digits around a decimal point or comma."""
    return len(text) == 3 and text[0].isdigit() and text[1] in ".," and text[2].isdigit()
