"""What all encoders have in common: who asks for vectors, and that a vector has length 1."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ablate.errors import AblateError

Read = tuple[NDArray[np.float32], NDArray[np.int64]]
"""Vectors, (texts, dimensions), and how many characters of each text the model's limit let it see, (texts,)."""


class Encoder(ABC):
    """What encoders have in common that give every text a vector of its own."""

    @abstractmethod
    def read(self, texts: Sequence[str], as_queries: bool = False) -> Read:
        """Vectors, each a function of its text alone, and how many characters of each text were seen."""

    def documents(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Vectors of documents, shape (texts, dimensions)."""
        return self.read(texts)[0]

    def queries(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Vectors of queries, shape (texts, dimensions)."""
        return self.read(texts, as_queries=True)[0]


def normalised(vectors: NDArray[np.floating], name: str) -> NDArray[np.float32]:
    """Rows scaled to length 1, each by its own numbers alone; a row of zeros stays zero.

    Raises:
        AblateError: a number is NaN or infinite.
    """
    lengths = np.sqrt(np.square(vectors, dtype=np.float64).sum(axis=1, keepdims=True))
    if not np.isfinite(lengths).all():
        raise AblateError(f"embedder {name}: found a vector with NaN or infinity, expected numbers; check the weights")
    return (vectors / np.where(lengths > 0, lengths, 1.0)).astype(np.float32)
