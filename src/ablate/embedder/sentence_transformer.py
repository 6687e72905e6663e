"""Texts go in, the vectors of a sentence-transformers model come out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ablate import models, weights
from ablate.embedder.vectors import Encoder, Read, normalised
from ablate.errors import ConfigError

DTYPES = ("float32", "bfloat16")


@dataclass(frozen=True)
class SentenceTransformer(Encoder):
    """A sentence-transformers model on the CPU.

    `model` is a folder, or a name that `weights.find` knows; `max_tokens` (None: the model's own limit) counts special
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
        models.refuse_below_one(self, "max_tokens")
        if self.dtype not in DTYPES:
            raise ConfigError(f"dtype: found {self.dtype!r}, expected {' or '.join(DTYPES)}; choose one")

    @property
    def revision(self) -> str:
        """Everything that shapes a vector, in one line: weights, prompts, limit, precision, libraries, own code."""
        found = weights.find(self.model, "torch")
        return (
            f"SentenceTransformer {found.revision} max_tokens={self.max_tokens} query_prompt={self.query_prompt!r} "
            f"document_prompt={self.document_prompt!r} {self.dtype} cpu l2 code={weights.code(type(self))} "
            + weights.versions("torch", "transformers", "sentence-transformers", "tokenizers")
        )

    def read(self, texts: Sequence[str], as_queries: bool = False) -> Read:
        """Vectors, each a function of its text alone, and how many characters of each text were seen."""
        prompt = self.query_prompt if as_queries else self.document_prompt
        model = models.sentence_transformer(weights.find(self.model, "torch").path, self.dtype)
        limit = models.token_limit(model, self.max_tokens, "embedder")
        inputs = (models.features(model, text, limit, prompt) for text in texts)
        rows = models.side_by_side(partial(_embedding, model), inputs, models.one_thread)
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


def _last_end(tokenizer: object, text: str, limit: int) -> int:
    """The end in `text` of the last token that fits into `limit` tokens."""
    tokens = tokenizer(text, truncation=True, max_length=limit, return_offsets_mapping=True)  # type: ignore[operator]
    return max((end for _, end in tokens["offset_mapping"]), default=0)
