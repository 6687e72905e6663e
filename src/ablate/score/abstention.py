"""The score of every query's best hit goes in; how well it tells what can be answered from what cannot comes out.

A system abstains where its best score is below a threshold, and always where it found nothing. The threshold of a query
is the one that costs least on the others: queries are dealt to folds, whole clusters together, and each fold gets the
threshold of the rest.

Intervals are of 95 %. Shares have Wilson's, for the thresholds as they are. The two areas have the middle of what comes
out when whole clusters are drawn again with replacement (Field and Welsh, Bootstrapping clustered data, Journal of the
Royal Statistical Society B 69 (2007), 369-390). Where few queries have no answer, or nearly all rank as they should,
redrawing shows too little, and nothing at all at an area of 1: that of the ROC curve reaches at least as far as
Newcombe's score interval.
"""

from __future__ import annotations

import hashlib
import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ablate.statistics.proportions import newcombe, wilson
from ablate.types import Query

FOLDS = 5
DRAWS = 999
SEED = 0
BATCH = 1 << 20
"""How many numbers of the redrawn queries are held at once, so that memory does not grow with their product."""
SUFFICIENT = "context/sufficient"

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]


def top_score(scores: Sequence[float], comparable: bool) -> dict[str, float | None]:
    """The value that decides, `abstention/top_score`: None if nothing was found, or scores only order one ranking."""
    return {"abstention/top_score": scores[0] if scores and comparable else None}


def abstention(
    queries: Sequence[Query],
    values: Mapping[str, Mapping[str, float | None]],
    clusters: Mapping[str, str],
    cost: float,
    comparable: bool,
) -> dict[str, dict[str, Any]]:
    """The `abstention/` measures of a run, each `{"mean", "n", "not_applicable", "interval"}`.

    `cost` is that of a false answer in units of a false abstention. Not applicable where every query can be answered
    or none, and where scores only order one ranking (`comparable` is False); shares neither where all queries are of
    one fold, whose threshold no other could give.
    """
    known = sorted(queries, key=lambda query: query.id)
    scores = [values[query.id].get("abstention/top_score") for query in known]
    table = Table(
        np.array([-math.inf if score is None else score for score in scores]),
        np.array([query.answerable for query in known], np.bool_),
        np.array([query.answerable and values[query.id].get(SUFFICIENT) != 0 for query in known], np.bool_),
        [clusters.get(query.id, query.id) for query in known],
    )
    whys = sorted({str(query.why) for query in known if not query.answerable and query.why})
    groups = {
        "abstention/false_answer": ~table.answerable,
        **{f"abstention/false_answer_{why}": np.array([query.why == why for query in known]) for why in whys},
        "abstention/false_abstention": table.answerable,
    }
    applies = bool(comparable and table.answerable.any() and not table.answerable.all())
    wrong = table.wrong(cost) if applies and len(set(table.folds)) > 1 else None
    shares = {name: inapplicable(known) if wrong is None else table.share(wrong, groups[name]) for name in groups}
    areas = table.areas() if applies else [inapplicable(known)] * 2
    return {**shares, **dict(zip(("abstention/auroc", "abstention/risk_coverage"), areas, strict=True))}


def inapplicable(queries: Sequence[Query]) -> dict[str, Any]:
    return {"mean": None, "n": 0, "not_applicable": len(queries), "interval": [None, None]}


@dataclass(frozen=True)
class Table:
    """Queries by their best score; `right` says that an answer would be a good one, `clusters` who stands together."""

    scores: Floats
    answerable: Mask
    right: Mask
    clusters: Sequence[str]

    @cached_property
    def order(self) -> NDArray[np.int64]:
        """The highest score first."""
        return np.argsort(-self.scores, kind="stable")

    @cached_property
    def ends(self) -> NDArray[np.int64]:
        """In that order, where each run of equal scores begins."""
        ordered = self.scores[self.order]
        return np.flatnonzero(np.concatenate([[True], ordered[1:] != ordered[:-1]]))

    def grouped(self, weights: Floats) -> Floats:
        """Weights, shape (draws, queries), summed over equal scores."""
        summed: Floats = np.add.reduceat(weights[:, self.order], self.ends, axis=1)
        return summed

    def draws(self) -> Iterator[Floats]:
        """How often each query is drawn when clusters are drawn with replacement, batches of shape (draws, queries)."""
        numbers = {name: number for number, name in enumerate(sorted(set(self.clusters)))}
        places, count = np.array([numbers[name] for name in self.clusters]), len(numbers)
        generator = np.random.Generator(np.random.PCG64(SEED))
        size = max(1, BATCH // len(places))
        for done in range(0, DRAWS, size):
            drawn = generator.integers(count, size=(min(size, DRAWS - done), count))
            drawn += np.arange(len(drawn))[:, np.newaxis] * count
            counts = np.bincount(drawn.ravel(), minlength=drawn.size).reshape(drawn.shape)
            yield counts[:, places].astype(np.float64)

    def auroc(self, weights: Floats) -> Floats:
        """The chance that an answerable query scores higher than one that is not, ties counting half."""
        good, bad = self.grouped(weights * self.answerable), self.grouped(weights * ~self.answerable)
        below = bad.sum(1, keepdims=True) - np.cumsum(bad, 1)
        with np.errstate(invalid="ignore", divide="ignore"):
            area: Floats = (good * (below + bad / 2)).sum(1) / (good.sum(1) * bad.sum(1))
        return area

    def risk_coverage(self, weights: Floats) -> Floats:
        """Mean, over all shares of queries that are answered, the surest first, of the share answered wrongly.

        El-Yaniv and Wiener, On the foundations of noise-free selective classification, JMLR 11 (2010); equal scores are
        answered together.
        """
        size, wrong = self.grouped(weights), self.grouped(weights * ~self.right)
        answered = np.cumsum(size, 1)
        risk = np.divide(np.cumsum(wrong, 1), answered, out=np.zeros_like(answered), where=answered > 0)
        area: Floats = (size * risk).sum(1) / size.sum(1)
        return area

    def areas(self) -> list[dict[str, Any]]:
        """`auroc` and `risk_coverage` with their intervals."""
        measures = (self.auroc, self.risk_coverage)
        found = [float(measure(np.ones((1, len(self.scores))))[0]) for measure in measures]
        ends: list[Any] = [[None, None], [None, None]]
        if len(set(self.clusters)) > 1:
            drawn = np.concatenate([[measure(weights) for measure in measures] for weights in self.draws()], axis=1)
            ends = [np.quantile(row[np.isfinite(row)], [0.025, 0.975]).tolist() for row in drawn]
            good, bad = (group.sum() / self.weight(group) for group in (self.answerable, ~self.answerable))
            low, high = newcombe(found[0], good, bad)
            ends[0] = [min(low, ends[0][0]), max(high, ends[0][1])]
        return [
            {"mean": mean, "n": len(self.scores), "not_applicable": 0, "interval": between}
            for mean, between in zip(found, ends, strict=True)
        ]

    def weight(self, group: Mask) -> float:
        """How many queries of a group count as one: the mean size of a cluster as queries see it (Kish 1965)."""
        sizes = Counter(name for name, inside in zip(self.clusters, group, strict=True) if inside)
        return sum(size * size for size in sizes.values()) / sum(sizes.values())

    def share(self, wrong: Mask, group: Mask) -> dict[str, Any]:
        """The share of a group, which is not empty, that went wrong."""
        n, share = int(group.sum()), int((wrong & group).sum()) / int(group.sum())
        ends = list(wilson(share, n / self.weight(group)))
        return {"mean": share, "n": n, "not_applicable": len(group) - n, "interval": ends}

    @cached_property
    def folds(self) -> Sequence[int]:
        """The fold of each query."""
        return [fold(cluster) for cluster in self.clusters]

    def wrong(self, cost: float) -> Mask:
        """Which queries are answered and should not be, or the other way round, shape (queries,)."""
        return ~(self.abstains(cost) ^ self.answerable)

    def abstains(self, cost: float) -> Mask:
        """Which queries fall below the threshold of the other folds, shape (queries,)."""
        folds = np.array(self.folds)
        found = np.zeros(len(folds), np.bool_)
        for number in range(FOLDS):
            mine, others = folds == number, folds != number
            if mine.any():
                found[mine] = self.scores[mine] < threshold(self.scores[others], self.answerable[others], cost)
        return found | np.isneginf(self.scores)


def fold(cluster: str) -> int:
    """By hash, so that one more query moves no other."""
    return int.from_bytes(hashlib.sha256(cluster.encode()).digest()[:4], "big") % FOLDS


def threshold(scores: Floats, answerable: Mask, cost: float) -> float:
    """The score from which answering costs least; of several the lowest, which abstains least.

    `cost` is that of answering what has no answer, abstaining where there is one costs 1. Where it costs least to
    answer everything, or nothing, that holds for scores of any height: the threshold is infinite.
    """
    levels = np.unique(scores[np.isfinite(scores)])
    if not len(levels):
        return math.inf
    bad, good = np.sort(scores[~answerable]), np.sort(scores[answerable])
    answered = len(bad) - np.searchsorted(bad, levels, side="left")
    missed = np.searchsorted(good, levels, side="left")
    costs = np.append(cost * answered + missed, len(good))
    best = int(np.argmin(costs))
    return float([-math.inf, *levels[1:], math.inf][best])
