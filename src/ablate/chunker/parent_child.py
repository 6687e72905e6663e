"""A document in, small chunks to search out, each of which stands for the larger one around it."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from dataclasses import dataclass

from ablate.chunker.borders import check, packed, sentences
from ablate.errors import ConfigError
from ablate.tokens import Tokens
from ablate.types import Chunk, Document


@dataclass(frozen=True)
class ParentChild:
    """Whole sentences: parents of up to `parent_size` tokens, and in each of them children of `size` with `overlap`.

    Parents share no token and no child crosses their borders. Children are what is searched, parents what is found.

    Raises:
        ConfigError: `size` is below 1 or above `parent_size`, or `overlap` is not in `[0, size)`.

    """

    parent_size: int
    size: int
    overlap: int

    def __post_init__(self) -> None:
        check(self.size, self.overlap)
        if self.parent_size < self.size:
            raise ConfigError(
                f"parent_size: found {self.parent_size} with size {self.size}, expected at least the size; set a "
                "larger one"
            )

    def __call__(self, document: Document, tokens: Tokens) -> list[Chunk]:
        """The children in text order, each with its parent; none where there is no token."""
        return list(self.children(document, tokens))

    def children(self, document: Document, tokens: Tokens) -> Iterator[Chunk]:
        spans = tokens.spans(document.text)
        edges = sentences(document.text, spans)
        for first, last in packed(edges, self.parent_size, 0):
            parent = Chunk(document, int(spans[first, 0]), int(spans[last - 1, 1]))
            inner = [first, *edges[bisect_right(edges, first) : bisect_left(edges, last)], last]
            for start, end in packed(inner, self.size, self.overlap):
                yield Chunk(document, int(spans[start, 0]), int(spans[end - 1, 1]), parent=parent)
