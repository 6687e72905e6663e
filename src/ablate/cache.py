"""Where a run's model work is kept, and whether what is kept there is still what the models give."""

from __future__ import annotations

import atexit
import functools
import random
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from ablate.errors import CacheDiffers, ConfigError
from ablate.store import Audit, StoredEmbedder, StoredReranker

if TYPE_CHECKING:
    from ablate.pipeline import Ready


@dataclass(frozen=True)
class Kept:
    """Each text is encoded and each pair scored once; what came out is kept in the workspace's `indexes/`.

    With `audit`, `sample` texts and as many pairs that a run would take from there are computed again first.

    Raises:
        ConfigError: `sample` is below 1.

    """

    audit: bool
    sample: int

    def __post_init__(self) -> None:
        if self.sample < 1:
            raise ConfigError(f"sample: found {self.sample}, expected at least 1; use audit=false to compare nothing")

    def folder(self, indexes: Path) -> Path:
        return indexes

    def compared(self, ready: Ready, seed: int) -> str:
        """How much was computed again and found to be equal, bit for bit.

        Raises:
            CacheDiffers: something is not what its model gives now.

        """
        draw = random.Random(seed)
        texts = sum(told(audit, "vector", names) for audit, names in texts_again(ready, draw, self.sample))
        pairs = sum(told(audit, "score", names) for audit, names in pairs_again(ready, draw, self.sample))
        return f"{texts} kept texts and {pairs} kept pairs computed again, equal bit for bit"


@dataclass(frozen=True)
class Off:
    """Nothing is taken from `indexes/` and nothing is left there; one command still computes nothing twice."""

    @property
    def audit(self) -> bool:
        return False

    def folder(self, indexes: Path) -> Path:
        return scratch()

    def compared(self, ready: Ready, seed: int) -> str:
        return "nothing is kept"


@functools.cache
def scratch() -> Path:
    """A folder that is gone when the process ends."""
    made = tempfile.mkdtemp(prefix="ablate-")
    atexit.register(shutil.rmtree, made, ignore_errors=True)
    return Path(made)


Again = Iterator[tuple[Audit, Sequence[str]]]
"""What was computed again, and the name of each text or pair."""


def texts_again(ready: Ready, draw: random.Random, count: int) -> Again:
    """Some of the texts that a line's embedder is asked for: chunks and queries."""
    embedder = ready.line.embedder
    if not isinstance(embedder, StoredEmbedder):
        return
    chunks = {(chunk.reading, False): f"chunk {chunk.id}" for chunk in ready.chunks}
    names = chunks | {(query.text, True): f"query {query.id}" for query in ready.dataset.queries}
    drawn = draw.sample(list(names), min(count, len(names)))
    for as_queries in (False, True):
        chosen = [text for text, kind in drawn if kind == as_queries]
        yield embedder.audit(chosen, as_queries), [names[text, as_queries] for text in chosen]


def pairs_again(ready: Ready, draw: random.Random, count: int) -> Again:
    """Some of the pairs that a line's reranker is asked for: one each of some queries."""
    reranker = ready.line.reranker
    if not isinstance(reranker, StoredReranker):
        return
    queries = ready.dataset.queries
    traces = [ready(query) for query in draw.sample(queries, min(count, len(queries)))]
    names = {}
    for query, hits in ((trace.query, trace.permitted[: reranker.first]) for trace in traces if trace.permitted):
        chunk = draw.choice(hits).chunk
        names[query.text, chunk.reading] = f"query {query.id} with chunk {chunk.id}"
    yield reranker.audit(list(names)), list(names.values())


def told(audit: Audit, what: str, names: Sequence[str]) -> int:
    """How many were compared.

    Raises:
        CacheDiffers: one differs.

    """
    if audit.differing:
        raise CacheDiffers(
            f"{audit.path}: found the {what} of {names[audit.differing[0]]} (and of {len(audit.differing) - 1} more of "
            f"{audit.compared}) to differ from what the model gives now, expected equal bits; remove the file, what it "
            "held is computed again"
        )
    return audit.compared
