"""Many rankings and their grades go in, the values of `ablate.score.doc` come out, to the bit, in one pass."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import accumulate
from typing import Any

import numpy as np
import numpy.typing as npt

Numbers = npt.NDArray[np.int64]
Values = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Ragged:
    """Whole numbers of several queries in one array: those of query i are `values[bounds[i] : bounds[i + 1]]`."""

    values: Numbers
    bounds: Numbers

    @classmethod
    def of(cls, lists: Sequence[Sequence[int]]) -> Ragged:
        values = [value for numbers in lists for value in numbers]
        return cls(np.array(values, np.int64), np.array([0, *accumulate(map(len, lists))], np.int64))

    @property
    def sizes(self) -> Numbers:
        return np.diff(self.bounds)

    @cached_property
    def rows(self) -> Numbers:
        """The query of each number, from 0."""
        return np.repeat(np.arange(len(self.bounds) - 1), self.sizes)

    @cached_property
    def places(self) -> Numbers:
        """The place of each number among those of its query, from 1."""
        return np.arange(1, len(self.values) + 1) - np.repeat(self.bounds[:-1], self.sizes)

    @property
    def once(self) -> Ragged:
        """Each number of a query where it stands first."""
        keys = self.rows * (self.values.max(initial=0) + 1) + self.values
        ordered = np.sort(keys)
        if (ordered[1:] != ordered[:-1]).all():  # far quicker than to look for what is twice
            return self
        kept = np.zeros(len(keys), np.bool_)
        kept[np.unique(keys, return_index=True)[1]] = True
        return self.only(kept)

    def only(self, kept: npt.NDArray[np.bool_]) -> Ragged:
        """Those numbers that a mask keeps."""
        return Ragged(self.values[kept], np.concatenate([[0], np.cumsum(kept)])[self.bounds])


def of_rankings(
    grades: Sequence[Mapping[str, int]], rankings: Sequence[Sequence[str]], cutoffs: Sequence[int]
) -> list[dict[str, float | None]]:
    """The values of each ranking of document ids, as `ablate.score.doc.doc` gives them one by one."""
    pairs = list(zip(grades, rankings, strict=True))
    gains = [[max(known.get(document, 0), 0) for document in dict.fromkeys(ranking)] for known, ranking in pairs]
    ideal = [sorted((grade for grade in known.values() if grade >= 1), reverse=True) for known in grades]
    found = measured(Ragged.of(gains), Ragged.of(ideal), cutoffs)
    rows = zip(*(values.tolist() for values in found.values()), strict=True)
    return [
        dict(zip(found, row if best else [None] * len(row), strict=True)) for best, row in zip(ideal, rows, strict=True)
    ]


def measured(gains: Ragged, ideal: Ragged, cutoffs: Sequence[int]) -> dict[str, Values]:
    """Values of many queries, `(queries,)` each; NaN for a query without a relevant document.

    `gains` are the grades of the documents in rank order, 0 for one that is not relevant, `ideal` those of all relevant
    documents, best first. Sums are exactly rounded, so that no order of adding and no processor moves a bit.
    """
    relevant, queries = ideal.sizes, len(ideal.sizes)
    places, hits = gains.places[gains.values > 0], gains.only(gains.values > 0)
    values: dict[str, Values] = {}
    with np.errstate(divide="ignore", invalid="ignore"):
        for k in cutoffs:
            found = total(hits.rows, places <= k, queries)
            values[f"doc/recall_at_{k}"] = found / relevant
            values[f"doc/precision_at_{k}"] = found / k
            values[f"doc/ndcg_at_{k}"] = discounted(hits, places, k) / discounted(ideal, ideal.places, k)
        values["doc/mrr"] = total(hits.rows, (hits.places == 1) / places, queries)
        values["doc/map"] = total(hits.rows, hits.places / places, queries) / relevant
    return {name: np.where(relevant > 0, found, np.nan) for name, found in values.items()}


def discounted(grades: Ragged, places: Numbers, k: int) -> Values:
    """Cumulative gain at k, linear and discounted by log2(1 + place) (Järvelin and Kekäläinen 2002), `(queries,)`."""
    within = places <= k
    return total(grades.rows[within], grades.values[within] / logarithms(k)[places[within]], len(grades.sizes))


@lru_cache
def logarithms(k: int) -> Values:
    """log2(1 + place) of the places 0 to k, the same on every machine."""
    return np.array([math.log2(place + 1) for place in range(k + 1)])


def total(rows: Numbers, terms: npt.NDArray[Any], queries: int) -> Values:
    """The sum of each query's terms, exactly rounded as by `math.fsum`, `(queries,)`.

    Each term is parted into a multiple of a grain and a small rest: both parts are added without rounding, because few
    bits are left in them, and their sum is rounded once. That holds for tens of thousands of terms of one query.
    """
    numbers: Values = terms.astype(np.float64)
    grain = 2.0 ** (math.frexp(float(numbers.sum()))[1] - 52)
    coarse = np.rint(numbers / grain) * grain
    high, low = (np.bincount(rows, part, queries) for part in (coarse, numbers - coarse))
    return np.asarray(high + low, np.float64)


def mean(values: Values) -> float | None:
    """The mean over the queries to which a measure applies, exactly rounded; None if it applies to none."""
    applied = values[~np.isnan(values)].tolist()
    return math.fsum(applied) / len(applied) if applied else None


def graded(documents: Ragged, judged: Ragged, grades: Numbers) -> tuple[Ragged, Ragged]:
    """The grade of each document of a ranking, 0 where it is not relevant, and of the relevant ones, best first.

    `documents` and `judged` are numbers of documents, `grades` those of the judged ones.
    """
    relevant = judged.only(grades >= 1)
    order = np.lexsort((-grades[grades >= 1], relevant.rows))
    ideal = Ragged(grades[grades >= 1][order], relevant.bounds)
    span = max(documents.values.max(initial=0), relevant.values.max(initial=0)) + 1
    keys, wanted = (each.rows * span + each.values for each in (documents, relevant))
    order = np.argsort(wanted)
    wanted, gains = np.append(wanted[order], -1), np.append(grades[grades >= 1][order], 0)
    at = np.searchsorted(wanted[:-1], keys)
    return Ragged(np.where(wanted[at] == keys, gains[at], 0), documents.bounds), ideal
