"""Two runs of the same thing go in; how often the verdict sees a difference all the same comes out."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from ablate.statistics.differences import Differences
from ablate.statistics.signflip import SEED
from ablate.statistics.verdict import ALPHA, verdict
from ablate.statistics.words import Word

FALSE = (Word.BETTER, Word.WORSE, Word.MIXED)
SPLITS = 200


@dataclass(frozen=True, slots=True)
class Placebo:
    """How often each word fell over `splits`, the share of false ones, and that share's standard error at `alpha`."""

    words: Mapping[Word, int]
    splits: int
    false: float
    alpha: float
    error: float

    @property
    def holds(self) -> bool:
        """Whether no more words are false than the level allows, give or take two standard errors."""
        return self.false <= self.alpha + 2 * self.error


def placebo(found: Differences, margin: float, alpha: float = ALPHA, splits: int = SPLITS, seed: int = SEED) -> Placebo:
    """Deal the two values of every cluster to the sides by lot, `splits` times, and give each deal its verdict.

    `found` pairs two runs that differ by chance alone. Whatever they hold, a deal has no true difference, so that
    `better` and `worse` may come up in at most the share alpha of them.
    """
    labels = list(dict.fromkeys(found.labels))
    place = {label: number for number, label in enumerate(labels)}
    stream = np.random.PCG64(seed)
    words: Counter[Word] = Counter()
    for _ in range(splits):
        turned = stream.random_raw(len(labels)) >> np.uint64(63)
        each = [-d if turned[place[label]] else d for d, label in zip(found.each, found.labels, strict=True)]
        words[verdict(replace(found, each=tuple(each)), margin, alpha=alpha, seed=seed).word] += 1
    false = sum(words[word] for word in FALSE) / splits
    return Placebo(dict(words), splits, false, alpha, math.sqrt(alpha * (1 - alpha) / splits))
