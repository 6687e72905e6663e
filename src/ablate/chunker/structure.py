"""A document in, the parts that its markup makes out: sections, lists, tables, paragraphs."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from ablate.chunker.borders import Spans, check, packed, sentences
from ablate.chunker.markdown import markdown
from ablate.chunker.outline import BLOCK, SENTENCE, TOKEN, Heading, Outline
from ablate.chunker.tags import Page
from ablate.tokens import Tokens
from ablate.types import Chunk, Document

Ranks = npt.NDArray[np.int64]
"""The rank of the border before each token, `(tokens + 1,)`: the lower, the rather is the text cut there."""

COLON = re.compile("[:：][*_]*$")  # emphasis may end behind it


@dataclass(frozen=True)
class Structure:
    """The largest parts of a document that `size` tokens hold, neighbours put together as far as they fit.

    What alone is longer is cut at its next finer borders: a document at its headings (Markdown's and HTML's alike),
    then at its blocks, at list items and table rows, sentences, and at last between tokens. A heading stays with what
    follows it. The `headings` of a chunk are those under which it stands, without those that are in its own text.

    Raises:
        ConfigError: `size` is below 1.

    """

    size: int

    def __post_init__(self) -> None:
        check(self.size, 0)

    def __call__(self, document: Document, tokens: Tokens) -> list[Chunk]:
        """The chunks in text order, from the start of a token to the end of one; none where there is no token."""
        spans = tokens.spans(document.text)
        found = outline(document.text)
        begun = _at(spans, [heading.start for heading in found.headings]).tolist()
        path = [(), *paths(found.headings)]

        def above(first: int) -> tuple[str, ...]:
            standing = (number for number in path[bisect_right(begun, first)] if begun[number] < first)
            return tuple(found.headings[number].text for number in standing)

        runs = parts(ranked(document.text, spans, found, self.size), 0, len(spans), self.size)
        return [Chunk(document, int(spans[first, 0]), int(spans[last - 1, 1]), above(first)) for first, last in runs]


def outline(text: str) -> Outline:
    """The outline of an HTML document, or else of a Markdown one.

    HTML begins with a tag and has most of its text inside of blocks: a README may begin with a tag, too.
    """
    if re.match(r"[\s\ufeff]*<", text):
        page = Page(text, 0, len(text))
        if page.inside > page.outside:
            return Outline(page.borders, page.headings)
    return markdown(text)


def ranked(text: str, spans: Spans, outline: Outline, size: int) -> Ranks:
    """The coarsest border before each token, none inside a heading.

    A heading counts as the first part of what stands under it, and what ends in a colon as that of what it introduces.
    """
    marks = [*outline.borders, *((heading.start, heading.level) for heading in outline.headings)]
    ranks = np.full(len(spans) + 1, TOKEN)
    ranks[sentences(text, spans)] = SENTENCE
    np.minimum.at(ranks, _at(spans, [place for place, _ in marks]), np.array([rank for _, rank in marks], np.int64))
    leads: dict[int, int] = {}  # where what is led to begins, and where what leads to it does
    for last in np.flatnonzero((ranks[1:] >= BLOCK) & (ranks[1:] < SENTENCE)).tolist():
        end = int(spans[last, 1])
        if COLON.search(text, max(end - 3, 0), end):
            leads[last + 1] = block(ranks, last + 1, size)
    for heading in outline.headings:
        first, last = _at(spans, [heading.start, heading.end]).tolist()
        ranks[first + 1 : last] = TOKEN
        if ranks[last] > heading.level:  # else another section begins, and this one is empty
            leads[last] = first
    for at in sorted(leads):
        leads[at] = leads.get(leads[at], leads[at])  # a heading under a heading
    for at in sorted(leads, reverse=True):
        ranks[at] = joined(ranks, leads[at], at, size)
    return ranks


def block(ranks: Ranks, at: int, size: int) -> int:
    """Where the part begins that ends before a token; if that is further away than `size`, it does not matter where."""
    first = max(at - size, 0)
    before = np.flatnonzero(ranks[first:at] <= ranks[at])
    return first + int(before[-1]) if len(before) else first


def joined(ranks: Ranks, lead: int, at: int, size: int) -> int:
    """The rank of the border before the part that begins at a token, and whose lead begins at another.

    It is that of the coarsest border within the part, so that the lead is like the first piece of it; but the border
    stays as it is where the part fits `size` by itself and not with its lead.
    """
    own = int(ranks[at])
    after = np.flatnonzero(ranks[at + 1 :] <= own)
    end = at + 1 + int(after[0]) if len(after) else len(ranks) - 1
    inner = int(ranks[at + 1 : end].min(initial=SENTENCE))
    return own if end - at <= size < end - lead else inner


def parts(ranks: Ranks, first: int, last: int, size: int) -> Iterator[tuple[int, int]]:
    """Half-open runs of the tokens from `first` to `last`, none longer than `size`, cut at the coarsest borders."""
    if last - first <= size:
        yield from even([first, last], size)
        return
    inner = ranks[first + 1 : last]
    edges = [first, *(first + 1 + np.flatnonzero(inner == inner.min())).tolist(), last]
    fitting = [first]
    for start, end in pairwise(edges):
        if end - start > size:
            yield from even(fitting, size)
            yield from parts(ranks, start, end, size)
            fitting = [end]
        else:
            fitting.append(end)
    yield from even(fitting, size)


def even(edges: Sequence[int], size: int) -> Iterator[tuple[int, int]]:
    """Runs of the pieces between neighbouring `edges`: as few as `size` allows, the longest as short as can be.

    Filled one after the other, they would often end in a last row or sentence by itself.
    """
    longest = max((end - start for start, end in pairwise(edges)), default=size)
    fewest = sum(1 for _ in packed(edges, size, 0))
    limits = range(longest, size + 1)
    enough = bisect_left(limits, True, key=lambda limit: sum(1 for _ in packed(edges, limit, 0)) <= fewest)
    return packed(edges, limits[enough], 0)


def paths(headings: Sequence[Heading]) -> Iterator[tuple[int, ...]]:
    """For each heading, the numbers of those under which it stands, the outermost first, and its own."""
    path: tuple[int, ...] = ()
    for number, heading in enumerate(headings):
        path = (*(above for above in path if headings[above].level < heading.level), number)
        yield path


def _at(spans: Spans, places: Sequence[int]) -> npt.NDArray[np.intp]:
    """The first token that begins at or behind each place, `(places,)`."""
    return np.searchsorted(spans[:, 0], np.array(places, np.int64))
