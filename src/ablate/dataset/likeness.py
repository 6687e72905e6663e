"""A passage that a text no longer holds in, the piece of the text most like it out."""

from __future__ import annotations

import re
from collections.abc import Sequence
from difflib import SequenceMatcher
from itertools import islice

from ablate.dataset.form import starts
from ablate.types import Span

LIKE = 0.5
"""The least similarity, of 0 to 1, of two texts that are worth showing side by side."""

_ANCHORS = 60
_OFTEN = 40
_WINDOWS = 3
_LONG = 400
_TOKEN = re.compile(r"\w+|[^\w\s]")


def closest(quote: str, text: str) -> tuple[Span, float] | None:
    """The span of `text` most like `quote`, and how much (0 to 1); None where nothing reaches `LIKE`.

    Only places that share rare words with the passage are compared, so that a long document takes no longer than a
    short one: the words vote for where the passage would begin, and the best-voted windows are compared by difflib.
    """
    lower, sought = lowered(text), lowered(quote)
    found = [refined(sought, lower, window) for window in windows(sought, lower)]
    near = max(found, key=lambda pair: (pair[1], -pair[0].start), default=None)
    return near if near and near[1] >= LIKE else None


def lowered(text: str) -> str:
    """The text in small letters, unless that moves its offsets."""
    small = text.lower()
    return small if len(small) == len(text) else text


def anchors(quote: str) -> list[tuple[int, str]]:
    """Words of the passage with their offsets, evenly chosen; of words as long as sentences, pieces."""
    found: list[tuple[int, str]] = []
    for match in re.finditer(r"\w+", quote):
        word, at = match[0], match.start()
        if len(word) <= 2 * 12:
            found.append((at, word))
        else:  # scripts that part no words by blanks
            found += [(at + offset, word[offset : offset + 3]) for offset in range(0, len(word) - 2, 3)]
    step = -(-len(found) // _ANCHORS) or 1
    return found[::step]


def windows(quote: str, text: str) -> list[Span]:
    """Where the passage could have been: the pieces of the text that share its rarest words, the best first."""
    votes: list[tuple[int, float]] = []
    for offset, word in anchors(quote):
        places = list(islice(starts(word, text), _OFTEN + 1))
        if len(places) <= _OFTEN:
            votes += [(place - offset, 1 / len(places)) for place in places]
    votes.sort()
    slack = len(quote) // 2 + 20
    scored = sorted(((gathered(votes, number, slack), -votes[number][0]) for number in range(len(votes))), reverse=True)
    chosen: list[int] = []
    for _, minus in scored:
        if len(chosen) < _WINDOWS and all(abs(-minus - other) > slack for other in chosen):
            chosen.append(-minus)
    return [Span(max(0, at - slack), min(len(text), at + len(quote) + 2 * slack)) for at in chosen]


def gathered(votes: Sequence[tuple[int, float]], first: int, slack: int) -> float:
    """The votes for a beginning at this one's place or up to `slack` characters later."""
    total, at = 0.0, votes[first][0]
    for place, weight in islice(votes, first, None):
        if place > at + slack:
            break
        total += weight
    return total


def refined(quote: str, text: str, window: Span) -> tuple[Span, float]:
    """The piece of the window most like the passage, from word to word, and how much it is."""
    sought = [match[0] for match in _TOKEN.finditer(quote)]
    tokens = list(_TOKEN.finditer(text, window.start, window.end))
    words = [match[0] for match in tokens]
    blocks = [block for block in SequenceMatcher(None, sought, words, False).get_matching_blocks() if block.size]
    if not blocks:
        return Span(window.start, window.end), 0.0
    first, last = blocks[0], blocks[-1]
    tight = first.b, last.b + last.size
    wide = max(0, first.b - first.a), min(len(words), tight[1] + len(sought) - last.a - last.size)
    pieces = [Span(tokens[start].start(), tokens[end - 1].end()) for start, end in {tight: None, wide: None}]
    scored = [(piece, similarity(quote, text[piece.start : piece.end])) for piece in pieces]
    return max(scored, key=lambda pair: pair[1])


def similarity(one: str, other: str) -> float:
    """How alike two texts are, 0 to 1: difflib's ratio of their characters, of long texts of their words."""
    if max(len(one), len(other)) <= _LONG:
        return SequenceMatcher(None, one, other, False).ratio()
    return SequenceMatcher(None, _TOKEN.findall(one), _TOKEN.findall(other), False).ratio()
