"""A document in, one chunk out."""

from __future__ import annotations

from dataclasses import dataclass

from ablate.tokens import Tokens
from ablate.types import Chunk, Document


@dataclass(frozen=True)
class Whole:
    """One chunk a document: all of its text."""

    def __call__(self, document: Document, tokens: Tokens) -> list[Chunk]:
        """The document as one chunk, or nothing where it holds no token."""
        return [Chunk(document, 0, len(document.text))] if tokens.count(document.text) else []
