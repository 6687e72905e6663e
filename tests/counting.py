"""A user's own cheap models, which note in the file JOURNAL what they compute, whatever process they compute it in."""

import json
import os
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from fakes import HashEmbedder

from ablate import shelf

shelf.SLICE = int(os.environ.get("SLICE", shelf.SLICE))

CONF = {
    "embedder/encoder.yaml": "_target_: counting.Encoder\ndimension: 16\nmodel: наша/модель\npause: 0\n",
    "reranker/scorer.yaml": "_target_: counting.Scorer\nmodel: пары\nfirst: 10\n",
    "reranker/waiting.yaml": "_target_: counting.Waiting\n",
}
"""The configs that choose them."""


@dataclass(frozen=True)
class Encoder(HashEmbedder):
    """Vectors by the hash of the text, each after `pause` seconds."""

    model: str = ""
    pause: float = 0.0

    @property
    def revision(self):
        return f"Encoder {self.model} {self.dimension}"

    def read(self, texts, as_queries=False):
        note("query" if as_queries else "document", texts, self.pause)
        return super().documents(texts), np.array([len(text) for text in texts])

    def documents(self, texts):
        return self.read(texts)[0]

    def queries(self, texts):
        return self.read(texts, as_queries=True)[0]


@dataclass(frozen=True)
class Scorer:
    """Scores by the letters that question and chunk share."""

    model: str
    first: int

    @property
    def revision(self):
        return f"Scorer {self.model}"

    def read(self, pairs):
        note("pair", pairs)
        return np.array([len({*query} & {*text}) for query, text in pairs], float), np.zeros(len(pairs), bool)


@dataclass(frozen=True)
class Waiting:
    """Keeps the order; it touches the file `begun`, and does not go on before there is a file `go`."""

    def __call__(self, query, hits):
        Path("begun").touch()
        while not Path("go").exists():
            time.sleep(0.02)
        return list(hits)


def note(kind, items, pause=0.0):
    for item in items:
        time.sleep(pause)
        with open(os.environ["JOURNAL"], "a", encoding="utf-8") as journal:
            journal.write(json.dumps([kind, item], ensure_ascii=False) + "\n")


def noted(kind=None):
    """What was computed, in order; with `kind` only that: `document`, `query` or `pair`."""
    path = Path(os.environ["JOURNAL"])
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    rows = [json.loads(line) for line in lines]
    return [row[1] if isinstance(row[1], str) else tuple(row[1]) for row in rows if kind in (None, row[0])]


def forget():
    Path(os.environ["JOURNAL"]).unlink(missing_ok=True)
