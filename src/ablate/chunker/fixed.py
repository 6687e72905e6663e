"""A document in, windows of equal length out, wherever they happen to cut it."""

from __future__ import annotations

from dataclasses import dataclass

from ablate.chunker.borders import check
from ablate.tokens import Tokens
from ablate.types import Chunk, Document


@dataclass(frozen=True)
class Fixed:
    """Windows of `size` tokens, each of which repeats the last `overlap` tokens of the one before.

    Raises:
        ConfigError: `size` is below 1, or `overlap` is not in `[0, size)`.

    """

    size: int
    overlap: int

    def __post_init__(self) -> None:
        check(self.size, self.overlap)

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
