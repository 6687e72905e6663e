"""Pairs go in, the logits of a sentence-transformers cross-encoder come out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ablate import models, weights
from ablate.reranker.pairwise import Judged, Pair, Pairwise, finite, single


@dataclass(frozen=True)
class CrossEncoder(Pairwise):
    """A sentence-transformers cross-encoder on the CPU in float32, one pair a call; its scores are logits.

    `model` is a folder, or a name that `weights.find` knows; `first` is how many hits are scored again; `max_tokens`
    (None: the model's own limit) counts query, chunk and special tokens.

    Raises:
        ConfigError: a number is below 1.
    """

    model: str
    first: int
    max_tokens: int | None

    def __post_init__(self) -> None:
        models.refuse_below_one(self, "first", "max_tokens")

    @property
    def revision(self) -> str:
        """Everything that shapes a score, in one line: weights, limit, precision, libraries, own code."""
        found = weights.find(self.model, "torch")
        return (
            f"CrossEncoder {found.revision} max_tokens={self.max_tokens} logits float32 cpu "
            f"code={weights.code(type(self))} "
            + weights.versions("torch", "transformers", "sentence-transformers", "tokenizers")
        )

    def read(self, pairs: Sequence[Pair]) -> Judged:
        """Logits, each a function of its pair alone, and which pairs were cut."""
        model = models.cross_encoder(weights.find(self.model, "torch").path)
        limit = models.token_limit(model, self.max_tokens, "reranker")
        inputs = (models.features(model, pair, limit) for pair in pairs)
        logits = models.side_by_side(partial(_logits, model), inputs, models.one_thread)
        scores = np.array([single(found, self.model) for found in logits], np.float64).reshape(len(pairs))
        return finite(scores, self.model), models.token_counts(model, pairs) > limit


def _logits(model: Any, features: Any) -> NDArray[np.float32]:
    """The model itself is called, and not its `predict`, which puts an activation on the logits."""
    import torch

    with torch.inference_mode():
        logits: NDArray[np.float32] = model(features)["scores"].float().numpy()
    return logits
