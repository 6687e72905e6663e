"""Stand-ins for models and documents: deterministic, tiny, without weights."""

import hashlib
from dataclasses import dataclass

import numpy as np

from ablate.score import Reader
from ablate.tokens import Words
from ablate.types import Chunk, Document, Query


@dataclass(frozen=True)
class HashEmbedder:
    """A vector of length 1 a text, drawn with the text's hash as seed."""

    dimension: int = 16

    def documents(self, texts):
        return np.array([self.vector(text) for text in texts], dtype=np.float32).reshape(len(texts), self.dimension)

    queries = documents

    def vector(self, text):
        seed = int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "big")
        drawn = np.random.default_rng(seed).normal(size=self.dimension)
        return drawn / np.linalg.norm(drawn)


@dataclass(frozen=True)
class NearTies(HashEmbedder):
    """Vectors whose cosines differ by less than single precision can tell, many of them not at all."""

    def vector(self, text):
        rest = HashEmbedder(self.dimension).vector(text[:1]) * 1e-4
        rest[0] = 1
        return rest / np.linalg.norm(rest)


@dataclass(frozen=True)
class Given:
    """Vectors from a table, by text."""

    table: dict[str, list[float]]

    def documents(self, texts):
        return np.array([self.table[text] for text in texts], dtype=np.float32)

    queries = documents


def chunks(*texts, title=""):
    """One chunk a text, each of a document of its own: `d0`, `d1`, ..."""
    return [Chunk(Document(f"d{number}", text, title), 0, len(text)) for number, text in enumerate(texts)]


def query(text="вопрос", *principals):
    return Query("q", text, frozenset(principals))


def everything(items):
    return np.ones(len(items), dtype=np.bool_)


def reader(budget=640, tokens=None):
    """Who reads a context, by the study's words."""
    tokens = tokens or Words()
    return Reader(tokens, budget, lambda chunk: tokens.count(chunk.text))
