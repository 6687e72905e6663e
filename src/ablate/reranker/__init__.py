"""A query and its hits go in, the same hits in a better order come out; nothing is added and nothing is lost."""

from ablate.reranker.cross_encoder import CrossEncoder
from ablate.reranker.keep import Keep
from ablate.reranker.late_interaction import LateInteraction
from ablate.reranker.onnx_cross_encoder import OnnxCrossEncoder
from ablate.reranker.pairwise import Judged, Pair, Pairwise, rerank

__all__ = ["CrossEncoder", "Judged", "Keep", "LateInteraction", "OnnxCrossEncoder", "Pair", "Pairwise", "rerank"]
