"""The score of every query's best hit goes in; how well it tells what can be answered from what cannot comes out.

A system abstains where its best score is below a threshold, and always where it found nothing. The threshold of a query
is the one that costs least on the others: queries are dealt to folds, whole clusters together, and each fold gets the
threshold of the rest.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ablate.types import Query

FOLDS = 5
DRAWS = 999
SEED = 0
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
    or none, and where scores only order one ranking (`comparable` is False).
    """
    known = sorted(queries, key=lambda query: query.id)
    scores = [values[query.id].get("abstention/top_score") for query in known]
    table = Table(
        np.array([-math.inf if score is None else score for score in scores]),
        np.array([query.answerable for query in known], np.bool_),
        np.array([query.answerable and values[query.id].get(SUFFICIENT) != 0 for query in known], np.bool_),
        [clusters.get(query.id, query.id) for query in known],
    )
    applies = comparable and table.answerable.any() and not table.answerable.all()
    whys = sorted({str(query.why) for query in known if not query.answerable and query.why})
    groups = {
        "abstention/false_answer": ~table.answerable,
        **{f"abstention/false_answer_{why}": np.array([query.why == why for query in known]) for why in whys},
        "abstention/false_abstention": table.answerable,
    }
    if not applies:
        names = [*groups, "abstention/auroc", "abstention/risk_coverage"]
        return {name: {"mean": None, "n": 0, "not_applicable": len(known), "interval": [None, None]} for name in names}
    abstains = table.abstains(cost)
    wrong = np.where(table.answerable, abstains, ~abstains).astype(np.float64)
    return {
        **{name: table.share(wrong, group) for name, group in groups.items()},
        "abstention/auroc": table.measured(table.auroc),
        "abstention/risk_coverage": table.measured(table.risk_coverage),
    }


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

    @cached_property
    def draws(self) -> Floats:
        """How often each query is drawn when clusters are drawn with replacement, shape (draws, queries); all first."""
        names = sorted(set(self.clusters))
        places = np.array([names.index(name) for name in self.clusters])
        generator = np.random.Generator(np.random.PCG64(SEED))
        counts = generator.multinomial(len(names), np.full(len(names), 1 / len(names)), size=DRAWS)
        return np.concatenate([np.ones((1, len(places))), counts[:, places]]).astype(np.float64)

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

    def measured(self, measure: Any) -> dict[str, Any]:
        """A measure of all queries, with the middle 95 % of it over redrawn clusters."""
        found = measure(self.draws)
        drawn = found[1:][np.isfinite(found[1:])]
        ends = [float(end) for end in np.quantile(drawn, [0.025, 0.975])] if len(set(self.clusters)) > 1 else [None] * 2
        return {"mean": float(found[0]), "n": len(self.scores), "not_applicable": 0, "interval": ends}

    def share(self, wrong: Floats, group: Mask) -> dict[str, Any]:
        """The share of a group that went wrong."""

        def mean(weights: Floats) -> Floats:
            of = (weights * group).sum(1)
            share: Floats = np.divide((weights * group) @ wrong, of, out=np.full_like(of, np.nan), where=of > 0)
            return share

        n = int(group.sum())
        if not n:
            return {"mean": None, "n": 0, "not_applicable": len(group), "interval": [None, None]}
        return {**self.measured(mean), "n": n, "not_applicable": len(group) - n}

    def abstains(self, cost: float) -> Mask:
        """Which queries fall below the threshold of the other folds, shape (queries,)."""
        folds = np.array([fold(cluster) for cluster in self.clusters])
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

    `cost` is that of answering what has no answer, abstaining where there is one costs 1.
    """
    levels = np.unique(scores[np.isfinite(scores)])
    if not len(levels):
        return math.inf
    bad, good = np.sort(scores[~answerable]), np.sort(scores[answerable])
    answered = len(bad) - np.searchsorted(bad, levels, side="left")
    missed = np.searchsorted(good, levels, side="left")
    costs = np.append(cost * answered + missed, len(good))
    best = int(np.argmin(costs))
    return float(levels[best]) if best < len(levels) else math.inf
