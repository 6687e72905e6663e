"""The ranked hits in, the context out: the passages that a reader gets, and their length."""

from ablate.packer.mmr import Mmr
from ablate.packer.token_budget import TokenBudget
from ablate.packer.top_k import TopK

__all__ = ["Mmr", "TokenBudget", "TopK"]
