"""A document in, runs of whole sentences out."""

from __future__ import annotations

from dataclasses import dataclass

from ablate.chunker.borders import check, packed, sentences
from ablate.tokens import Tokens
from ablate.types import Chunk, Document


@dataclass(frozen=True)
class Sentence:
    """As many whole sentences as `size` tokens hold, after those of the chunk before that fit into `overlap` tokens.

    A sentence longer than `size` is cut between tokens, into windows that repeat `overlap` tokens.

    Raises:
        ConfigError: `size` is below 1, or `overlap` is not in `[0, size)`.

    """

    size: int
    overlap: int

    def __post_init__(self) -> None:
        check(self.size, self.overlap)

    def __call__(self, document: Document, tokens: Tokens) -> list[Chunk]:
        """The chunks in text order, from the start of a token to the end of one; none where there is no token."""
        spans = tokens.spans(document.text)
        runs = packed(sentences(document.text, spans), self.size, self.overlap)
        return [Chunk(document, int(spans[first, 0]), int(spans[last - 1, 1])) for first, last in runs]
