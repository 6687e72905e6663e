"""A query and its hits go in, the same hits in a better order come out; nothing is added and nothing is lost."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ablate import models
from ablate.errors import AblateError, ConfigError, ModelNotFound
from ablate.types import Hit, Query, ranking

Pair = tuple[str, str]
"""The query's text and the chunk's reading."""


@dataclass(frozen=True)
class Keep:
    """No reranker: the retriever's own order."""

    def __call__(self, query: Query, hits: Sequence[Hit]) -> list[Hit]:
        return list(hits)


def rerank(
    query: Query, hits: Sequence[Hit], first: int, scores: Callable[[list[Pair]], NDArray[np.float64]]
) -> list[Hit]:
    """The first `first` hits by their pair score, in the one total order; the others follow as they were."""
    head, tail = hits[:first], hits[first:]
    if not head:
        return []
    logits = scores([(query.text, hit.chunk.reading) for hit in head])
    return [*ranking([Hit(hit.chunk, float(logit)) for hit, logit in zip(head, logits, strict=True)]), *tail]


class Pairwise:
    """What rerankers have in common that give every (query, chunk) pair a score of its own."""

    first: int

    def scores(self, pairs: Sequence[Pair]) -> NDArray[np.float64]:
        raise NotImplementedError

    def __call__(self, query: Query, hits: Sequence[Hit]) -> list[Hit]:
        return rerank(query, hits, self.first, self.scores)


@dataclass(frozen=True)
class CrossEncoder(Pairwise):
    """A sentence-transformers cross-encoder on the CPU in float32, one pair a call; its scores are logits.

    The head of such a model multiplies one row a pair, and the last bits of so small a product depend on the number of
    rows; pairs of one query are seldom of equal length, so a batch would hardly be faster. `model` is a folder, or a
    name that `models.find` knows; `first` is how many hits are scored again; `max_tokens` (None: the model's own limit)
    counts query, chunk and special tokens.

    Raises:
        ConfigError: a number is below 1.
    """

    model: str
    first: int
    max_tokens: int | None

    def __post_init__(self) -> None:
        _check(self, "first", "max_tokens")

    @property
    def revision(self) -> str:
        """Everything that shapes a score, in one line: weights, limit, precision, libraries, own code."""
        return (
            f"CrossEncoder {models.find(self.model, 'torch').revision} max_tokens={self.max_tokens} logits float32 cpu "
            f"code={models.code()} " + models.versions("torch", "transformers", "sentence-transformers", "tokenizers")
        )

    def scores(self, pairs: Sequence[Pair]) -> NDArray[np.float64]:
        """The logit of each pair, shape (pairs,); a function of the pair alone."""
        import torch

        model, limit = self._loaded()
        counts = np.minimum(models.token_counts(model, pairs), limit)
        scores = np.empty(len(pairs), np.float64)
        # The model itself is called, and not its `predict`, which puts an activation on the logits.
        with torch.inference_mode():
            for places in models.batches(counts, 1):
                batch = models.features(model, [pairs[place] for place in places], limit)
                scores[places] = _single(model(batch)["scores"].float().numpy(), self.model)
        return _finite(scores, self.model)

    def truncated(self, pairs: Sequence[Pair]) -> NDArray[np.bool_]:
        """Which pairs the model's limit cut, shape (pairs,)."""
        model, limit = self._loaded()
        return models.token_counts(model, pairs) > limit

    def _loaded(self) -> tuple[Any, int]:
        model = models.cross_encoder(models.find(self.model, "torch").path)
        return model, models.token_limit(model, self.max_tokens, "reranker")


@dataclass(frozen=True)
class OnnxCrossEncoder(Pairwise):
    """A cross-encoder as an ONNX file, one pair a call; its scores are logits.

    Dynamic quantisation scales a whole batch at once, so a logit would depend on the pair's batch mates. `model` is a
    folder with an ONNX file and tokenizer.json, or a name that `models.find` knows; `first` is how many hits are scored
    again; `max_tokens` counts query, chunk and special tokens.

    Raises:
        ConfigError: a number is below 1.
    """

    model: str
    first: int
    max_tokens: int

    def __post_init__(self) -> None:
        _check(self, "first", "max_tokens")

    @property
    def revision(self) -> str:
        """Everything that shapes a score, in one line: weights, limit, libraries, own code."""
        return (
            f"OnnxCrossEncoder {models.find(self.model, 'onnx').revision} max_tokens={self.max_tokens} logits cpu "
            f"code={models.code()} " + models.versions("onnxruntime", "tokenizers")
        )

    def scores(self, pairs: Sequence[Pair]) -> NDArray[np.float64]:
        """The logit of each pair, shape (pairs,); a function of the pair alone."""
        folder = models.find(self.model, "onnx").path
        session, tokenizer = _session(folder), _tokenizer(folder, self.max_tokens)
        names = [each.name for each in session.get_inputs()]
        scores = np.empty(len(pairs), np.float64)
        for place, pair in enumerate(pairs):
            tokens = tokenizer.encode(*pair)
            arrays = {
                "input_ids": tokens.ids,
                "attention_mask": tokens.attention_mask,
                "token_type_ids": tokens.type_ids,
            }
            scores[place] = _single(
                session.run(None, {name: np.array([arrays[name]], np.int64) for name in names})[0], self.model
            )[0]
        return _finite(scores, self.model)

    def truncated(self, pairs: Sequence[Pair]) -> NDArray[np.bool_]:
        """Which pairs the limit cut, shape (pairs,)."""
        tokenizer = _tokenizer(models.find(self.model, "onnx").path, self.max_tokens)
        return np.array([bool(tokenizer.encode(*pair).overflowing) for pair in pairs], np.bool_)


@functools.cache
def _session(folder: Path) -> Any:
    """The model ready to run on as many threads as this process may use; scores are the same on any number.

    Raises:
        AblateError: the `onnxruntime` package is missing.
    """
    try:
        import onnxruntime
    except ImportError as error:
        raise AblateError(
            f"{folder}: found no package onnxruntime, expected it for running ONNX weights; "
            'run `pip install "ablate-retrieval[models]"`'
        ) from error

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 0
    file = models.weight_files(folder, "onnx")[0]
    return onnxruntime.InferenceSession(str(file), options, providers=["CPUExecutionProvider"])


@functools.cache
def _tokenizer(folder: Path, max_tokens: int) -> Any:
    import tokenizers

    file = next(iter(sorted(folder.rglob("tokenizer.json"))), None)
    if file is None:
        raise ModelNotFound(
            f"model folder {folder}: found no tokenizer.json, expected one beside the ONNX file; add it"
        )
    tokenizer = tokenizers.Tokenizer.from_file(str(file))
    tokenizer.no_padding()  # the file may fix padding to a length of its own
    tokenizer.enable_truncation(max_tokens)
    return tokenizer


def _single(logits: NDArray[np.float32], name: str) -> NDArray[np.float64]:
    """Logits of shape (pairs,) or (pairs, 1) as float64 of shape (pairs,)."""
    rows = logits.reshape(len(logits), -1)
    if rows.shape[1] != 1:
        raise AblateError(
            f"reranker {name}: found {rows.shape[1]} numbers a pair, expected 1; "
            "choose a cross-encoder with a single label"
        )
    return rows[:, 0].astype(np.float64)


def _finite(scores: NDArray[np.float64], name: str) -> NDArray[np.float64]:
    if not np.isfinite(scores).all():
        raise AblateError(
            f"reranker {name}: found a score that is NaN or infinite, expected numbers; check the weights"
        )
    return scores


def _check(component: object, *keys: str) -> None:
    for key in keys:
        value = getattr(component, key)
        if value is not None and value < 1:
            raise ConfigError(f"{key}: found {value}, expected 1 or more; raise it")
