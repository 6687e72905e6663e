"""A folder with a BERT cross-encoder as dynamically quantised ONNX goes in, a float32 torch folder of it comes out."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

HEAD = 32
"""Dimensions of one attention head: MiniLM's; the ONNX graph does not name it."""


def write(source: Path, target: Path) -> None:
    """Writes config, weights and tokenizer into `target`; every weight is what the int8 file says it is, no nearer."""
    import torch
    from transformers import BertConfig, BertForSequenceClassification

    weights = _weights(source / "model.onnx")
    words, width = weights["bert.embeddings.word_embeddings.weight"].shape
    labels = [name for name in weights if name.endswith("intermediate.dense.weight")]
    config = BertConfig(
        vocab_size=words,
        hidden_size=width,
        num_hidden_layers=len(labels),
        num_attention_heads=width // HEAD,
        intermediate_size=weights[labels[0]].shape[0],
        max_position_embeddings=len(weights["bert.embeddings.position_embeddings.weight"]),
    )
    config.num_labels = 1
    model = BertForSequenceClassification(config)
    model.load_state_dict({name: torch.tensor(array) for name, array in weights.items()})
    model.save_pretrained(target)
    for name in ("tokenizer.json", "tokenizer_config.json", "vocab.txt"):
        shutil.copy(source / name, target / name)


def _weights(file: Path) -> dict[str, NDArray[np.float32]]:
    """Every weight by its name in torch."""
    import onnx

    graph = onnx.load(str(file)).graph
    arrays = {each.name: onnx.numpy_helper.to_array(each) for each in graph.initializer}
    weights = {name: array for name, array in arrays.items() if array.dtype == np.float32 and array.ndim == 1}
    # A product's weights are numbered in the file; the node that multiplies by them has the layer's name.
    for node in graph.node:
        for name in {*node.input} & {*arrays}:
            if name.endswith("_quantized"):
                layer = re.sub(r"/(Gather|MatMul_quant|Gemm_MatMul_quant)$", "", node.name).strip("/").replace("/", ".")
                weights[f"{layer}.weight"] = _floats(arrays, name, transposed=node.op_type == "MatMulInteger")
    return weights


def _floats(arrays: dict[str, Any], name: str, transposed: bool) -> NDArray[np.float32]:
    stem = name.removesuffix("_quantized")
    whole = arrays[name].astype(np.float32) - arrays[f"{stem}_zero_point"].astype(np.float32)
    floats = whole * arrays[f"{stem}_scale"]
    return np.ascontiguousarray(floats.T if transposed else floats, np.float32)
