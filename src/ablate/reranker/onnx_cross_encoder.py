"""Pairs go in, the logits of an ONNX cross-encoder come out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ablate import models, onnx_model, weights
from ablate.reranker.pairwise import Judged, Pair, Pairwise, finite, single


@dataclass(frozen=True)
class OnnxCrossEncoder(Pairwise):
    """A cross-encoder as an ONNX file, one pair a call; its scores are logits.

    Dynamic quantisation scales a whole batch at once, so a logit would depend on the pair's batch mates. `model` is a
    folder with an ONNX file and tokenizer.json, or a name that `weights.find` knows; `first` is how many hits are
    scored again; `max_tokens` counts query, chunk and special tokens.

    Raises:
        ConfigError: a number is below 1.
    """

    model: str
    first: int
    max_tokens: int

    def __post_init__(self) -> None:
        models.refuse_below_one(self, "first", "max_tokens")

    @property
    def revision(self) -> str:
        """Everything that shapes a score, in one line: weights, limit, libraries, own code."""
        return (
            f"OnnxCrossEncoder {weights.find(self.model, 'onnx').revision} max_tokens={self.max_tokens} logits cpu "
            f"code={weights.code(type(self))} " + weights.versions("onnxruntime", "tokenizers")
        )

    def read(self, pairs: Sequence[Pair]) -> Judged:
        """Logits, each a function of its pair alone, and which pairs were cut."""
        found = weights.find(self.model, "onnx")
        tokenizer = onnx_model.tokenizer(found.path, self.max_tokens)

        def judge(pair: Pair) -> tuple[float, bool]:
            tokens = tokenizer.encode(*pair)
            return single(onnx_model.answer(found, tokens), self.model), bool(tokens.overflowing)

        judged = models.side_by_side(judge, pairs, size=lambda pair: len(pair[1]))
        scores = np.array([score for score, _ in judged], np.float64)
        return finite(scores, self.model), np.array([cut for _, cut in judged], np.bool_)
