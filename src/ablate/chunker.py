"""A document in, its chunks out: spans of its text that are searched, ranked and handed over as one."""

from __future__ import annotations

from dataclasses import dataclass

from ablate.errors import ConfigError
from ablate.tokens import Tokens
from ablate.types import Chunk, Document


@dataclass(frozen=True)
class Whole:
    """One chunk a document: all of its text."""

    def __call__(self, document: Document, tokens: Tokens) -> list[Chunk]:
        """The document as one chunk, or nothing where it holds no token."""
        return [Chunk(document, 0, len(document.text))] if tokens.count(document.text) else []


@dataclass(frozen=True)
class Fixed:
    """Windows of `size` tokens, each of which repeats the last `overlap` tokens of the one before.

    Raises:
        ConfigError: `size` is below 1, or `overlap` is not in `[0, size)`.

    """

    size: int
    overlap: int

    def __post_init__(self) -> None:
        if self.size < 1:
            raise ConfigError(f"size: found {self.size}, expected at least 1 token; set a larger size")
        if not 0 <= self.overlap < self.size:
            raise ConfigError(
                f"overlap: found {self.overlap} with size {self.size}, expected 0 <= overlap < size; set a smaller one"
            )

    def __call__(self, document: Document, tokens: Tokens) -> list[Chunk]:
        """The windows in text order, from the start of a token to the end of one; none where there is no token."""
        spans = tokens.spans(document.text)
        # The last window ends the text: one more would only repeat its overlap.
        starts = range(0, max(len(spans) - self.overlap, 1), self.size - self.overlap) if len(spans) else range(0)
        lasts = [min(start + self.size, len(spans)) - 1 for start in starts]
        return [
            Chunk(document, int(spans[start, 0]), int(spans[last, 1]))
            for start, last in zip(starts, lasts, strict=True)
        ]
