"""A text file in, its text out, as it is."""

from __future__ import annotations

from ablate.extraction import Extraction
from ablate.extraction.encoding import decoded


def read(data: bytes, encoding: str) -> Extraction:
    text, found = decoded(data, encoding)
    return Extraction(text, encoding=found)
