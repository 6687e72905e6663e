"""A budget of tokens, filled from the top of a ranking: every text once, neighbours in one piece."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache

from ablate.errors import ConfigError
from ablate.tokens import Tokens
from ablate.types import Chunk, Context, Hit, Query

Passages = list[Chunk]


@dataclass(frozen=True)
class TokenBudget:
    """As much of the ranked candidates, best first, as `budget` tokens hold; k is not asked.

    What is handed over is the text of the passages, `separator` between two of them and, if `headings`, a line with
    the path of headings above each (`Leave > Sick leave`); all of that counts. Of a chunk that overlaps a passage only
    the new part is taken, unless it is blank. Passages of one document that overlap, or between which there is nothing
    but white space, are one passage: its headings are those of its first chunk. What does not fit whole is cut after
    the last token that does, and ends the walk.

    `order` is that in which the passages are read. By `score`, each is where its best chunk is. By `document`, the
    documents are in the order of their best passages, and the passages of each as in its text. By `ends`, the best is
    first, the second best last, and so on inwards, as readers lose what is in the middle (Liu et al., 2024).

    Raises:
        ConfigError: there is no such `order`.

    """

    order: str
    separator: str
    headings: bool

    def __post_init__(self) -> None:
        if self.order not in ORDERS:
            raise ConfigError(f"order: found {self.order!r}, expected one of {', '.join(ORDERS)}; choose one of them")

    def __call__(self, query: Query, hits: Sequence[Hit], k: int, budget: int, tokens: Tokens) -> Context:
        count = cache(tokens.count)  # what one chunk does not change is not counted again

        def length(passages: Passages) -> int:
            texts = [text for passage in passages for text in (passage.text, self.above(passage))]
            return sum(map(count, texts)) + count(self.separator) * max(len(passages) - 1, 0)

        passages = filled(hits, budget, tokens, length)
        return Context(tuple(ORDERS[self.order](passages)), length(passages))

    def above(self, passage: Chunk) -> str:
        """The line that stands above a passage."""
        return f"{' > '.join(passage.headings)}\n" if self.headings and passage.headings else ""


def filled(hits: Sequence[Hit], budget: int, tokens: Tokens, length: Callable[[Passages], int]) -> Passages:
    """The passages that fit, each at the place of its best chunk."""
    passages: Passages = []
    for hit in hits:
        for part in new(hit.chunk, passages):
            if not part.text.strip():
                continue
            fuller = joined(passages, part)
            if length(fuller) > budget:
                return cut(passages, part, budget, tokens, length)
            passages = fuller
    return passages


def cut(passages: Passages, part: Chunk, budget: int, tokens: Tokens, length: Callable[[Passages], int]) -> Passages:
    """The passages and, of a part that does not fit, as many of its first tokens as do."""
    ends = tokens.spans(part.text)[:, 1].tolist()

    def with_first(number: int) -> Passages:
        return joined(passages, replace(part, end=part.start + ends[number - 1])) if number else passages

    return with_first(bisect_right(range(1, len(ends) + 1), budget, key=lambda number: length(with_first(number))))


def new(chunk: Chunk, passages: Passages) -> Iterator[Chunk]:
    """The parts of a chunk that no passage holds, in the order of the text."""
    start = chunk.start
    for passage in sorted((p for p in passages if p.document is chunk.document), key=lambda passage: passage.start):
        if start < min(passage.start, chunk.end):
            yield replace(chunk, start=start, end=min(passage.start, chunk.end))
        start = max(start, passage.end)
    if start < chunk.end:
        yield replace(chunk, start=start)


def joined(passages: Passages, part: Chunk) -> Passages:
    """The passages with one more part, at the end, or as one with those it touches at the place of the best of them."""
    touched = [passage for passage in passages if touching(passage, part)]
    if not touched:
        return [*passages, part]
    first = min([*touched, part], key=lambda chunk: chunk.start)
    whole = replace(first, end=max(chunk.end for chunk in [*touched, part]))
    return [whole if passage is touched[0] else passage for passage in passages if passage not in touched[1:]]


def touching(one: Chunk, other: Chunk) -> bool:
    """Whether two pieces belong to one document and have nothing but white space between them."""
    if one.document is not other.document:
        return False
    return not one.document.text[min(one.end, other.end) : max(one.start, other.start)].strip()


def by_document(passages: Passages) -> Passages:
    best: dict[str, int] = {}
    for rank, passage in enumerate(passages):
        best.setdefault(passage.document.id, rank)
    return sorted(passages, key=lambda passage: (best[passage.document.id], passage.start))


def to_the_ends(passages: Passages) -> Passages:
    return [*passages[::2], *reversed(passages[1::2])]


ORDERS: Mapping[str, Callable[[Passages], Passages]] = {
    "score": list,
    "document": by_document,
    "ends": to_the_ends,
}
"""How the passages, best first, are put in the order of reading."""
