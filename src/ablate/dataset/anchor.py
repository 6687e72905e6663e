"""A passage of an old text in, its place in the new text out where that is certain."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice, takewhile
from unicodedata import combining

from ablate.dataset.form import Text, form, starts
from ablate.dataset.likeness import LIKE, similarity
from ablate.types import Span

CONTEXT = 40
"""Signs around a passage that must be the same, on both sides together, to tell it from its doubles."""

LONG = 20
"""Signs of a passage which, where both texts hold it once, tell it by themselves, whatever stands around it."""

FAR = 1000
"""Signs on either side that are compared at most."""

NEXT = 10
"""Signs directly before and after a passage by which its old place is known again."""

MANY = 1000
"""Places with the same signs before them that are looked at."""

_BEFORE = "-\u2010\u2011\u2012\u2013\u2212+±<>≤≥$€£¥₽"
_AFTER = "%‰°$€£¥₽"
_BETWEEN = ".,:/'\u2019 \u00a0\u2009\u202f"


@dataclass(frozen=True, slots=True)
class Place:
    """Where a passage stands in the new text; without `span` it is not certain, and `doubles` are what it could be."""

    span: Span | None
    doubles: Sequence[Span] = ()


def anchored(old: Text, span: Span, new: Text) -> Place:
    """The place of `old.raw[span]` in `new`.

    It is certain where the new text holds it once, as the old one did, and it is long or stands in surroundings that
    are the same; or where what stands around it picks one of its doubles in the new text, and no double in the old text
    fits that one as well. It is never certain where something like it took its old place: then it was edited there.
    Only if the new text does not hold it, the same signs in other white space or Unicode form are looked for in this
    way. A passage that now ends inside a longer word or number ("30 days" in "130 days") is not the same.
    """
    if old.raw == new.raw:
        return Place(span)
    quote, cut = old.raw[span.start : span.end], edges(old.raw, span)
    places = [each for each in exact(quote, new.raw) if fits(new.raw, each, cut)]
    rivals = [each for each in exact(quote, old.raw) if each != span and fits(old.raw, each, cut)]
    if not places:
        start, end = old.form.within(span)
        places = [each for each in alike(old.form.text[start:end], new) if fits(new.raw, each, cut)]
        own = old.form.original(start, end)
        rivals = [each for each in alike(old.form.text[start:end], old) if each != own and fits(old.raw, each, cut)]
    if not places:
        return Place(None)
    if len(places) == 1 and not rivals and aligned(old.raw, span, new.raw, places[0]):
        return Place(places[0])
    return picked(old, span, new, places, rivals)


def aligned(old: str, span: Span, new: str, place: Span) -> bool:
    """Whether the texts are the same from their beginning to the passage's end, or from its beginning to their end."""
    return (span == place and new.startswith(old[: span.end])) or new[place.start :] == old[span.start :]


def alone(quote: str, new: Text) -> Place:
    """The place of a text of which no more is known than that it was cited: certain where a long one stands once."""
    signs = form(quote).text
    places = exact(quote, new.raw) or alike(signs, new)
    places = [place for place in places if fits(new.raw, place, (False, False))]
    return Place(places[0]) if len(places) == 1 and len(signs) >= LONG else Place(None, places)


def picked(old: Text, span: Span, new: Text, places: Sequence[Span], rivals: Sequence[Span]) -> Place:
    """The one place whose surroundings are those of the passage, better than any other place and any rival's."""
    scored = sorted(((around(old, span, new, place), place) for place in places), reverse=True)
    best, place = scored[0]
    others = [score for score, _ in scored[1:]] + [around(old, rival, new, place) for rival in rivals]
    start, end = old.form.within(span)
    enough = best >= CONTEXT if others else best + end - start >= LONG
    if not enough or max(others, default=-1) >= best or supplanted(old, span, new, place, best):
        return Place(None, places)
    return Place(place)


def supplanted(old: Text, span: Span, new: Text, place: Span, best: int) -> bool:
    """Whether another text took the place of a passage: one whose surroundings are the same farther than `best` signs.

    In the place of a long passage only a text that is like it counts: paragraphs may be put in another order.
    """
    (start, end), (at, to) = old.form.within(span), new.form.within(place)
    one, other = old.form.text, new.form.text
    quote = one[start:end]
    for begin, stop in between(
        one[max(0, start - NEXT) : start], one[end : end + NEXT], other, 2 * len(quote) + CONTEXT
    ):
        apart = to <= begin or stop <= at
        alike = len(quote) < CONTEXT or similarity(quote, other[begin:stop]) >= LIKE
        if apart and alike and beside(one, start, end, other, begin, stop) > best:
            return True
    return False


def between(left: str, right: str, text: str, most: int) -> Iterator[tuple[int, int]]:
    """Pieces of up to `most` signs from one text to another; where these are short, from the edges of the whole."""
    if len(left) < NEXT:
        begins = [len(left)] if text.startswith(left) else []
    else:
        begins = [found + NEXT for found in islice(starts(left, text), MANY)]
    for begin in begins:
        if len(right) < NEXT:
            stop = len(text) - len(right) if text.endswith(right) else -1
        else:
            stop = text.find(right, begin, begin + most + NEXT)
        if begin < stop <= begin + most:
            yield begin, stop


def exact(quote: str, text: str) -> list[Span]:
    """Every span of the text that is `quote`; spans may overlap."""
    return [Span(start, start + len(quote)) for start in starts(quote, text)]


def alike(signs: str, text: Text) -> list[Span]:
    """Every span of the text with these signs, whatever its white space and Unicode form."""
    found = (text.form.original(start, start + len(signs)) for start in starts(signs, text.form.text))
    return [span for span in found if span is not None]


def around(old: Text, span: Span, new: Text, place: Span) -> int:
    """How many signs before and after two passages are the same, up to the first that differs.

    That both texts begin, or end, at the same distance counts as if `CONTEXT` more were the same.
    """
    return beside(old.form.text, *old.form.within(span), new.form.text, *new.form.within(place))


def beside(one: str, start: int, end: int, other: str, at: int, to: int) -> int:
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
    """Whether an offset parts a word, a number (1.5, 1 000, 1/2), its sign (-5, 5%), or a letter from its mark."""
    if not 0 < offset < len(text):
        return False
    left, right = text[offset - 1], text[offset]
    if combining(right) or ((left.isalnum() or combining(left)) and right.isalnum()):
        return True
    if (left in _BEFORE and right.isdigit()) or (left.isdigit() and right in _AFTER):
        return True
    number = text[max(0, offset - 2) : offset], text[offset : offset + 2]
    return joined(left + number[1]) or joined(number[0] + right)


def joined(text: str) -> bool:
    """Whether three characters are two digits and what joins them to one number."""
    return len(text) == 3 and text[0].isdigit() and text[1] in _BETWEEN and text[2].isdigit()
