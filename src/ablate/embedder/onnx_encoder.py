"""Texts go in, the vectors of an ONNX sentence encoder come out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ablate import models, onnx_model, weights
from ablate.embedder.vectors import Encoder, Read, normalised
from ablate.errors import AblateError, ConfigError

POOLINGS = ("cls", "mean")


@dataclass(frozen=True)
class OnnxEncoder(Encoder):
    """A sentence encoder as an ONNX file, one text a call.

    Dynamic quantisation scales a whole batch at once, so a vector would depend on the text's batch mates. `model` is a
    folder with an ONNX file and tokenizer.json, or a name that `weights.find` knows; `pooling` makes one vector of
    those of the tokens: `cls` is the first, `mean` their mean; `max_tokens` counts special tokens and the prompt, what
    lies beyond is not read; the prompts are put before each query and each document.

    Raises:
        ConfigError: `max_tokens` is below 1, or `pooling` is another.
    """

    model: str
    pooling: str
    max_tokens: int
    query_prompt: str
    document_prompt: str

    def __post_init__(self) -> None:
        models.refuse_below_one(self, "max_tokens")
        if self.pooling not in POOLINGS:
            raise ConfigError(f"pooling: found {self.pooling!r}, expected {' or '.join(POOLINGS)}; choose one")

    @property
    def revision(self) -> str:
        """Everything that shapes a vector, in one line: weights, prompts, limit, pooling, libraries, own code."""
        found = weights.find(self.model, "onnx")
        return (
            f"OnnxEncoder {found.revision} {self.pooling} max_tokens={self.max_tokens} "
            f"query_prompt={self.query_prompt!r} document_prompt={self.document_prompt!r} cpu l2 "
            f"code={weights.code(type(self))} " + weights.versions("onnxruntime", "tokenizers")
        )

    def read(self, texts: Sequence[str], as_queries: bool = False) -> Read:
        """Vectors, each a function of its text alone, and how many characters of each text were seen."""
        prompt = self.query_prompt if as_queries else self.document_prompt
        found = weights.find(self.model, "onnx")
        tokenizer = onnx_model.tokenizer(found.path, self.max_tokens)

        def encode(text: str) -> tuple[NDArray[np.float64], int]:
            tokens = tokenizer.encode(prompt + text)
            end = max((end for _, end in tokens.offsets), default=0)
            return self.pooled(onnx_model.answer(found, tokens)), end - len(prompt) if tokens.overflowing else len(text)

        rows = models.side_by_side(encode, texts, size=len)
        # Of no texts only the model itself knows how many dimensions their vectors would have.
        width = len(rows[0][0] if rows else encode("")[0])
        vectors = np.array([vector for vector, _ in rows], np.float64).reshape(len(texts), width)
        return normalised(vectors, self.model), np.array([max(0, seen) for _, seen in rows], np.int64)

    def pooled(self, tokens: NDArray[np.float32]) -> NDArray[np.float64]:
        """One vector, shape (dimensions,), of the vectors of a text's tokens, shape (tokens, dimensions)."""
        if tokens.ndim != 2:
            raise AblateError(
                f"embedder {self.model}: found an output of {tokens.ndim} dimensions a text, expected a vector for "
                "each of its tokens; export the model without its pooling"
            )
        vector: NDArray[np.float64] = tokens[: 1 if self.pooling == "cls" else None].mean(axis=0, dtype=np.float64)
        return vector
