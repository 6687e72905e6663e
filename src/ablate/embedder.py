"""Texts go in, L2-normalised float32 vectors come out; a vector depends on its own text alone, never on its batch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ablate import models
from ablate.errors import AblateError, ConfigError

DTYPES = ("float32", "bfloat16")


@dataclass(frozen=True)
class SentenceTransformer:
    """A sentence-transformers model on the CPU.

    `model` is a folder, or a name that `models.find` knows; `max_tokens` (None: the model's own limit) counts special
    tokens and the prompt, what lies beyond is not read; the prompts are put before each query and each document;
    `dtype` is `float32`, or `bfloat16`, which is faster where the processor has it and moves low bits.

    Raises:
        ConfigError: `max_tokens` is below 1, or `dtype` is another.
    """

    model: str
    max_tokens: int | None
    query_prompt: str
    document_prompt: str
    dtype: str

    def __post_init__(self) -> None:
        if self.max_tokens is not None and self.max_tokens < 1:
            raise ConfigError(f"max_tokens: found {self.max_tokens}, expected 1 or more; raise it")
        if self.dtype not in DTYPES:
            raise ConfigError(f"dtype: found {self.dtype!r}, expected {' or '.join(DTYPES)}; choose one")

    @property
    def revision(self) -> str:
        """Everything that shapes a vector, in one line: weights, prompts, limit, precision, libraries, own code."""
        weights = models.find(self.model, "torch")
        return (
            f"SentenceTransformer {weights.revision} max_tokens={self.max_tokens} query_prompt={self.query_prompt!r} "
            f"document_prompt={self.document_prompt!r} {self.dtype} cpu l2 code={models.code()} "
            + models.versions("torch", "transformers", "sentence-transformers", "tokenizers")
        )

    def documents(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Vectors of documents, shape (texts, dimensions)."""
        return self.read(texts)[0]

    def queries(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Vectors of queries, shape (texts, dimensions)."""
        return self.read(texts, as_queries=True)[0]

    def read(self, texts: Sequence[str], as_queries: bool = False) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
        """Vectors, (texts, dimensions), and how many characters of each text the model's limit let it see, (texts,)."""
        prompt = self.query_prompt if as_queries else self.document_prompt
        model = models.sentence_transformer(models.find(self.model, "torch").path, self.dtype)
        limit = models.token_limit(model, self.max_tokens, "embedder")
        inputs = (models.features(model, text, limit, prompt) for text in texts)
        rows = list(models.side_by_side(partial(_embedding, model), inputs, models.one_thread))
        vectors = np.array(rows, np.float32).reshape(len(texts), model.get_embedding_dimension())
        counts = models.token_counts(model, texts, prompt)
        seen = np.array([len(text) for text in texts], np.int64)
        for place in np.flatnonzero(counts > limit).tolist():
            seen[place] = max(0, _last_end(model.tokenizer, prompt + texts[place], limit) - len(prompt))
        return normalised(vectors, self.model), seen


def _embedding(model: Any, features: Any) -> NDArray[np.float32]:
    import torch

    with torch.inference_mode():
        vector: NDArray[np.float32] = model(features)["sentence_embedding"][0].float().numpy()
    return vector


def normalised(vectors: NDArray[np.float32], name: str) -> NDArray[np.float32]:
    """Rows scaled to length 1, each by its own numbers alone; a row of zeros stays zero.

    Raises:
        AblateError: a number is NaN or infinite.
    """
    lengths = np.sqrt(np.square(vectors, dtype=np.float64).sum(axis=1, keepdims=True))
    if not np.isfinite(lengths).all():
        raise AblateError(f"embedder {name}: found a vector with NaN or infinity, expected numbers; check the weights")
    return (vectors / np.where(lengths > 0, lengths, 1.0)).astype(np.float32)


def _last_end(tokenizer: object, text: str, limit: int) -> int:
    """The end in `text` of the last token that fits into `limit` tokens."""
    tokens = tokenizer(text, truncation=True, max_length=limit, return_offsets_mapping=True)  # type: ignore[operator]
    return max((end for _, end in tokens["offset_mapping"]), default=0)
