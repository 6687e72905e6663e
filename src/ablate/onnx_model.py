"""The weights of an ONNX model go in, its tokenizer and its answer to one text or pair come out."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ablate.errors import AblateError, ModelNotFound, first_line
from ablate.weights import Weights


@functools.cache
def session(file: Path) -> Any:
    """The model ready to run, one thread a call.

    Raises:
        ModelNotFound: the file is no ONNX model that onnxruntime can run.
    """
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    try:
        return onnxruntime.InferenceSession(str(file), options, providers=["CPUExecutionProvider"])
    except Exception as error:  # its errors have no class of their own in common
        raise ModelNotFound(
            f"{file}: found {first_line(error)!r}, expected a model that onnxruntime can run; check that it is complete"
        ) from error


@functools.cache
def tokenizer(folder: Path, max_tokens: int) -> Any:
    """The tokenizer in a model's folder, which cuts at `max_tokens`, special ones included, and never pads.

    Raises:
        ModelNotFound: the folder has none.
    """
    import tokenizers

    file = next(iter(sorted(folder.rglob("tokenizer.json"))), None)
    if file is None:
        raise ModelNotFound(
            f"model folder {folder}: found no tokenizer.json, expected one beside the ONNX file; add it"
        )
    made = tokenizers.Tokenizer.from_file(str(file))
    made.no_padding()  # the file may fix padding to a length of its own
    made.enable_truncation(max_tokens)
    return made


def answer(weights: Weights, tokens: Any) -> NDArray[np.float32]:
    """The model's first output for one text or pair, without the dimension of the batch.

    Raises:
        AblateError: the model cannot run so many tokens, or asks for inputs that its tokenizer does not make.
    """
    arrays = {"input_ids": tokens.ids, "attention_mask": tokens.attention_mask, "token_type_ids": tokens.type_ids}
    model = session(weights.file)
    try:
        inputs = {each.name: np.array([arrays[each.name]], np.int64) for each in model.get_inputs()}
        output: NDArray[np.float32] = model.run(None, inputs)[0][0]
    except Exception as error:
        raise AblateError(
            f"model {weights.name}: found {type(error).__name__} {first_line(error)!r} for {len(tokens.ids)} tokens, "
            "expected an answer; lower max_tokens to what the model has positions for"
        ) from error
    return output
