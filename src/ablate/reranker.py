"""A query and its hits go in, the same hits in a better order come out; nothing is added and nothing is lost."""

from __future__ import annotations

import functools
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ablate import models
from ablate.errors import AblateError, ConfigError, ModelNotFound
from ablate.types import Hit, Query, ranking

Pair = tuple[str, str]
"""The query's text and the chunk's reading."""

Judged = tuple[NDArray[np.float64], NDArray[np.bool_]]
"""The logit of each pair, and whether the model's limit cut it, both of shape (pairs,)."""


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


class Pairwise(ABC):
    """What rerankers have in common that give every (query, chunk) pair a score of its own."""

    first: int

    @abstractmethod
    def read(self, pairs: Sequence[Pair]) -> Judged:
        """Logits, each a function of its pair alone, and which pairs were cut."""

    def scores(self, pairs: Sequence[Pair]) -> NDArray[np.float64]:
        """The logit of each pair, shape (pairs,); a function of the pair alone."""
        return self.read(pairs)[0]

    def __call__(self, query: Query, hits: Sequence[Hit]) -> list[Hit]:
        return rerank(query, hits, self.first, self.scores)


@dataclass(frozen=True)
class CrossEncoder(Pairwise):
    """A sentence-transformers cross-encoder on the CPU in float32, one pair a call; its scores are logits.

    `model` is a folder, or a name that `models.find` knows; `first` is how many hits are scored again; `max_tokens`
    (None: the model's own limit) counts query, chunk and special tokens.

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

    def read(self, pairs: Sequence[Pair]) -> Judged:
        """Logits, each a function of its pair alone, and which pairs were cut."""
        model = models.cross_encoder(models.find(self.model, "torch").path)
        limit = models.token_limit(model, self.max_tokens, "reranker")
        inputs = (models.features(model, pair, limit) for pair in pairs)
        logits = models.side_by_side(partial(_logits, model), inputs, models.one_thread)
        scores = np.array([_single(found, self.model) for found in logits], np.float64).reshape(len(pairs))
        return _finite(scores, self.model), models.token_counts(model, pairs) > limit


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

    def read(self, pairs: Sequence[Pair]) -> Judged:
        """Logits, each a function of its pair alone, and which pairs were cut."""
        folder = models.find(self.model, "onnx").path
        tokenizer, session = _tokenizer(folder, self.max_tokens), _session(folder)
        names = [each.name for each in session.get_inputs()]

        def judge(pair: Pair) -> tuple[float, bool]:
            tokens = tokenizer.encode(*pair)
            arrays = {
                "input_ids": tokens.ids,
                "attention_mask": tokens.attention_mask,
                "token_type_ids": tokens.type_ids,
            }
            logits = session.run(None, {name: np.array([arrays[name]], np.int64) for name in names})[0]
            return _single(logits, self.model), bool(tokens.overflowing)

        # The longest first, so that at the end no thread waits long for another.
        order = sorted(range(len(pairs)), key=lambda place: -len(pairs[place][1]))
        scores, cut = np.empty(len(pairs), np.float64), np.empty(len(pairs), np.bool_)
        for place, judged in zip(order, models.side_by_side(judge, [pairs[place] for place in order]), strict=True):
            scores[place], cut[place] = judged
        return _finite(scores, self.model), cut


@functools.cache
def _session(folder: Path) -> Any:
    """The model ready to run, one thread a call.

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
    options.intra_op_num_threads = 1
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


def _logits(model: Any, features: Any) -> NDArray[np.float32]:
    """The model itself is called, and not its `predict`, which puts an activation on the logits."""
    import torch

    with torch.inference_mode():
        logits: NDArray[np.float32] = model(features)["scores"].float().numpy()
    return logits


def _single(logits: NDArray[np.float32], name: str) -> float:
    """The one logit of one pair."""
    if logits.size != 1:
        raise AblateError(
            f"reranker {name}: found {logits.size} numbers a pair, expected 1; "
            "choose a cross-encoder with a single label"
        )
    return float(logits.reshape(-1)[0])


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
