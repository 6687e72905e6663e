"""The folder of a model goes in, the loaded model comes out, and answers that its one input alone decides."""

from __future__ import annotations

import functools
import logging
import os
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ablate import dequantise
from ablate.errors import ConfigError, ModelNotFound, first_line
from ablate.progress import stepped
from ablate.weights import weight_files


@functools.cache
def sentence_transformer(path: Path, dtype: str) -> Any:
    """The loaded embedding model: on the CPU in torch's `dtype`, whatever checkpoint or machine would prefer."""
    import sentence_transformers
    import torch

    with _loading(path):
        return sentence_transformers.SentenceTransformer(
            str(path), device="cpu", local_files_only=True, model_kwargs={"dtype": getattr(torch, dtype)}
        )


@functools.cache
def cross_encoder(path: Path) -> Any:
    """The loaded cross-encoder: float32 on the CPU.

    A folder that holds only quantised ONNX weights is de-quantised first.
    """
    import sentence_transformers
    import torch

    with _loading(path), tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as made:
        if not weight_files(path, "torch"):
            dequantise.write(path, Path(made))
            path = Path(made)
        model = sentence_transformers.CrossEncoder(
            str(path),
            device="cpu",
            local_files_only=True,
            model_kwargs={"dtype": torch.float32},
        )
    if model.config.pad_token_id is None:
        # Models that pool the last token refuse to guess which tokens are padding; nothing is padded here.
        model.config.pad_token_id = -1
    return model


@contextmanager
def _loading(path: Path) -> Iterator[None]:
    """No progress bar and no news while weights are read from disk; the settings are put back as they were."""
    from transformers.utils import logging as transformers_logging

    spoken = logging.getLogger("sentence_transformers")
    level, shown = spoken.level, transformers_logging.is_progress_bar_enabled()
    spoken.setLevel(logging.WARNING)
    transformers_logging.disable_progress_bar()  # type: ignore[no-untyped-call]
    try:
        yield
    except (KeyError, OSError, RuntimeError, TypeError, ValueError) as error:
        raise ModelNotFound(
            f"model folder {path}: found {first_line(error)!r}, expected one that sentence-transformers can load; "
            "check that it is complete"
        ) from error
    finally:
        spoken.setLevel(level)
        if shown:
            transformers_logging.enable_progress_bar()  # type: ignore[no-untyped-call]


def token_limit(model: Any, max_tokens: int | None, where: str) -> int:
    """How many tokens, special ones included, `model` reads of one input: `max_tokens`, or its own limit for None.

    Raises:
        ConfigError: `max_tokens` is more than the model has positions for.
    """
    positions = getattr(model[0].config, "max_position_embeddings", None) or model.max_seq_length
    limit = max_tokens or min(model.max_seq_length or positions, positions)
    if limit > positions:
        raise ConfigError(
            f"{where}.max_tokens: found {limit}, expected at most the model's {positions} positions; lower it"
        )
    return int(limit)


def token_counts(model: Any, inputs: Sequence[Any], prompt: str | None = None) -> NDArray[np.int64]:
    """Tokens of each text or pair, uncut and with prompt and special tokens, shape (inputs,)."""
    counts = np.zeros(len(inputs), np.int64)
    for start in range(0, len(inputs), 1024):
        part = list(inputs[start : start + 1024])
        uncut = {"text": {"padding": False, "truncation": False, "verbose": False}, "common": {"return_tensors": None}}
        tokens = model.preprocess(part, prompt=prompt, processing_kwargs=uncut)["input_ids"]
        counts[start : start + len(part)] = [len(ids) for ids in tokens]
    return counts


def features(model: Any, item: Any, limit: int, prompt: str | None = None) -> Any:
    """Model-ready tensors of one text or pair, cut at `limit` tokens, with a first dimension of 1."""
    cut = {"text": {"padding": False, "truncation": "longest_first", "max_length": limit}}
    return model.preprocess([item], prompt=prompt, processing_kwargs=cut)


def side_by_side(
    call: Callable[[Any], Any],
    items: Iterable[Any],
    prepare: Callable[[], None] | None = None,
    size: Callable[[Any], int] = lambda item: 0,
) -> list[Any]:
    """`call` of each item, in order, one item a call and one thread a call, as many at a time as there are processors.

    Matrix libraries choose their path by the number of rows and threads, and paths differ in the last bit. A call that
    holds one item on one thread gives what that item alone decides, whatever is asked for beside it; and threads that
    never wait for each other lose little to batches. `prepare` is run once in every thread. The items of the largest
    `size` are called first, so that at the end no thread waits long for another.
    """
    items = list(items)
    order = sorted(range(len(items)), key=lambda place: -size(items[place]))
    answers = stepped(_threads(prepare).map(call, [items[place] for place in order]))
    return [answer for _, answer in sorted(zip(order, answers, strict=True), key=lambda pair: pair[0])]


@functools.cache
def _threads(prepare: Callable[[], None] | None) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(processors(), "model", initializer=prepare or (lambda: None))


def one_thread() -> None:
    """Torch's own threads, which would share one call, are set to one for the thread that this is run in."""
    import torch

    torch.set_num_threads(1)


def processors() -> int:
    """How many this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def refuse_below_one(component: object, *keys: str) -> None:
    """Refuse settings that count something and are below 1; None is no count.

    Raises:
        ConfigError: one is.
    """
    for key in keys:
        value = getattr(component, key)
        if value is not None and value < 1:
            raise ConfigError(f"{key}: found {value}, expected 1 or more; raise it")
