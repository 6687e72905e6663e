"""Chunks in, a search out; a query in, its candidates out: the list of each source to depth, and the fused one."""

from ablate.retriever.bm25 import Bm25
from ablate.retriever.dense import Dense
from ablate.retriever.hnsw import Hnsw
from ablate.retriever.hybrid import Hybrid
from ablate.retriever.hybrid_weighted import HybridWeighted
from ablate.retriever.ivf import Ivf
from ablate.retriever.rank_bm25 import RankBm25

__all__ = ["Bm25", "Dense", "Hnsw", "Hybrid", "HybridWeighted", "Ivf", "RankBm25"]
