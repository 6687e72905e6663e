"""Pairs go in, the sums of their tokens' best cosines come out."""

from __future__ import annotations

import functools
import math
from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ablate import models, weights
from ablate.reranker.pairwise import Judged, Pair, Pairwise, finite
from ablate.types import Hit

HELD = 2**29
"""Bytes of token vectors that are held in memory between calls: about 350,000 tokens of 384 float32 numbers."""


@dataclass(frozen=True)
class LateInteraction(Pairwise):
    """The sum over the query's tokens of each one's best cosine with a token of the chunk, MaxSim.

    Khattab & Zaharia, 2020 (ColBERT), here with the token vectors of a sentence-transformers encoder as it is, in
    float32 on the CPU; special tokens count as tokens. `model` is a folder, or a name that `weights.find` knows;
    `first` is how many hits are scored again; `max_tokens` (None: the model's own limit) counts the special tokens of
    the query, or of the chunk. A chunk comes back for many queries, so the vectors of the last ones are held.

    Raises:
        ConfigError: a number is below 1.
    """

    model: str
    first: int
    max_tokens: int | None

    def __post_init__(self) -> None:
        models.refuse_below_one(self, "first", "max_tokens")

    @property
    def revision(self) -> str:
        """Everything that shapes a score, in one line: weights, limit, precision, libraries, own code."""
        found = weights.find(self.model, "torch")
        return (
            f"LateInteraction {found.revision} max_tokens={self.max_tokens} maxsim float32 cpu "
            f"code={weights.code(type(self))} "
            + weights.versions("torch", "transformers", "sentence-transformers", "tokenizers")
        )

    def read(self, pairs: Sequence[Pair]) -> Judged:
        """Scores, each a function of its pair alone, and which pairs were cut."""
        encode = self._encode()
        queries = encode({query: None for query, _ in pairs})
        chunks = self._held().of((text for _, text in pairs), encode)
        sides = [(queries[query], chunks[text]) for query, text in pairs]
        scores = np.array(models.side_by_side(_maxsim, sides, models.one_thread), np.float64)
        return finite(scores, self.model), np.array([query.cut or chunk.cut for query, chunk in sides], np.bool_)

    def prepare(self, hits: Sequence[Hit]) -> None:
        """Encode the chunks to be scored, which a system that keeps token vectors does when it indexes them."""
        self._held().of((hit.chunk.reading for hit in hits[: self.first]), self._encode())

    def _held(self) -> Held:
        return _held(weights.find(self.model, "torch").path, self.max_tokens)

    def _encode(self) -> Encode:
        model = models.sentence_transformer(weights.find(self.model, "torch").path, "float32")
        limit = models.token_limit(model, self.max_tokens, "reranker")

        def encode(texts: Iterable[str]) -> dict[str, Tokens]:
            texts = list(texts)
            inputs = (models.features(model, text, limit) for text in texts)
            vectors = models.side_by_side(functools.partial(_vectors, model), inputs, models.one_thread)
            cuts = (models.token_counts(model, texts) > limit).tolist()
            return {text: Tokens(*row) for text, *row in zip(texts, vectors, cuts, strict=True)}

        return encode


class Tokens(NamedTuple):
    """The vectors of a text's tokens, (tokens, dimensions) and each of length 1, and whether the limit cut it."""

    vectors: Any
    cut: bool


Encode = Callable[[Iterable[str]], dict[str, Tokens]]
"""Texts that differ to their tokens."""


@dataclass
class Held:
    """The tokens of the chunks that were asked for last, as many as fit into `HELD` bytes."""

    rows: OrderedDict[str, Tokens] = field(default_factory=OrderedDict)
    size: int = 0

    def of(self, texts: Iterable[str], encode: Encode) -> dict[str, Tokens]:
        """The tokens of each text; what is not held is encoded."""
        unique = dict.fromkeys(texts)
        fresh = encode(text for text in unique if text not in self.rows)
        found = {text: fresh.get(text) or self.rows.pop(text) for text in unique}
        self.size += sum(row.vectors.nbytes for row in fresh.values())
        self.rows |= found
        while self.size > HELD:
            self.size -= self.rows.popitem(last=False)[1].vectors.nbytes
        return found


@functools.cache
def _held(path: Path, max_tokens: int | None) -> Held:
    """What is held of one model's answers, whichever component asks."""
    return Held()


def _vectors(model: Any, features: Any) -> Any:
    import torch

    with torch.inference_mode():
        return torch.nn.functional.normalize(model(features)["token_embeddings"][0].float(), dim=-1)


def _maxsim(sides: tuple[Tokens, Tokens]) -> float:
    """Summed without rounding, so that no order of the sum can matter."""
    query, chunk = sides
    return math.fsum((query.vectors @ chunk.vectors.T).amax(dim=1).tolist())
