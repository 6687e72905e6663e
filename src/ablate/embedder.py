"""Texts go in, L2-normalised float32 vectors come out; a vector depends on its own text alone, never on its batch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ablate import models
from ablate.errors import AblateError, ConfigError


@dataclass(frozen=True)
class SentenceTransformer:
    """A sentence-transformers model on the CPU in float32.

    `model` is a folder, or a name that `models.find` knows; `batch_size` moves no bit of a vector; `max_tokens` (None:
    the model's own limit) counts special tokens and the prompt, what lies beyond is not read; the prompts are put
    before each query and each document.

    Raises:
        ConfigError: `batch_size` or `max_tokens` is below 1.
    """

    model: str
    batch_size: int
    max_tokens: int | None
    query_prompt: str
    document_prompt: str

    def __post_init__(self) -> None:
        for key in ("batch_size", "max_tokens"):
            value = getattr(self, key)
            if value is not None and value < 1:
                raise ConfigError(f"{key}: found {value}, expected 1 or more; raise it")

    @property
    def revision(self) -> str:
        """Everything that shapes a vector, in one line: weights, prompts, limit, precision, libraries, own code."""
        weights = models.find(self.model, "torch")
        return (
            f"SentenceTransformer {weights.revision} max_tokens={self.max_tokens} query_prompt={self.query_prompt!r} "
            f"document_prompt={self.document_prompt!r} float32 cpu l2 code={models.code()} "
            + models.versions("torch", "transformers", "sentence-transformers", "tokenizers")
        )

    def documents(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Vectors of documents, shape (texts, dimensions)."""
        return self._encode(texts, self.document_prompt)

    def queries(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Vectors of queries, shape (texts, dimensions)."""
        return self._encode(texts, self.query_prompt)

    def seen(self, texts: Sequence[str], as_queries: bool = False) -> NDArray[np.int64]:
        """How many characters from its start the model reads of each text, shape (texts,); all of an uncut one."""
        prompt = self.query_prompt if as_queries else self.document_prompt
        model = models.sentence_transformer(models.find(self.model, "torch").path)
        limit = models.token_limit(model, self.max_tokens, "embedder")
        seen = np.array([len(text) for text in texts], np.int64)
        for place in np.flatnonzero(models.token_counts(model, texts, prompt) > limit).tolist():
            seen[place] = _last_end(model.tokenizer, prompt + texts[place], limit) - len(prompt)
        return np.maximum(seen, 0)

    def truncated(self, texts: Sequence[str], as_queries: bool = False) -> NDArray[np.bool_]:
        """Which texts the model's limit cut, shape (texts,)."""
        return self.seen(texts, as_queries) < np.array([len(text) for text in texts], np.int64)

    def _encode(self, texts: Sequence[str], prompt: str) -> NDArray[np.float32]:
        import torch

        weights = models.find(self.model, "torch")
        model = models.sentence_transformer(weights.path)
        limit = models.token_limit(model, self.max_tokens, "embedder")
        counts = np.minimum(models.token_counts(model, texts, prompt), limit)
        vectors = np.empty((len(texts), model.get_embedding_dimension()), np.float32)
        with torch.inference_mode():
            for places in models.batches(counts, self.batch_size):
                batch = models.features(model, [texts[place] for place in places], limit, prompt)
                vectors[places] = normalised(model(batch)["sentence_embedding"].float().numpy(), self.model)
        return vectors


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
