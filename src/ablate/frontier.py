"""What runs bring and what they cost go in; which of them nothing beats at its price, and the cheapest, come out."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from enum import StrEnum
from functools import cached_property, partial
from typing import Any

from ablate.comparison import TOKENS, headline, paired, short
from ablate.records import RunRecord
from ablate.statistics import Word, not_worse
from ablate.statistics.proportions import score_bounds
from ablate.statistics.verdict import ALPHA
from ablate.verdict import declared, pair

RATIO = "latency/log_ratio"


class Cost(StrEnum):
    """What a better result may be paid with."""

    TOKENS = "tokens"
    LATENCY = "median latency"


@dataclass(frozen=True, slots=True)
class Point:
    """One run: how good it is, and what it costs (`tokens` a query, `times` the baseline's latency).

    What was not measured is NaN: a run that was not timed beside its baseline has no `times`.
    """

    label: str
    value: float
    tokens: float
    times: float

    def price(self, cost: Cost) -> float:
        return self.tokens if cost is Cost.TOKENS else self.times

    def data(self) -> dict[str, Any]:
        """For programs; what was not measured is null."""
        return {key: None if value != value else value for key, value in asdict(self).items()}

    def shown(self, cost: Cost) -> str:
        return f"{self.tokens:.0f} tokens" if cost is Cost.TOKENS else f"x{self.times:.2g}"


@dataclass(frozen=True)
class Frontier:
    """A baseline, called `label`, and by their labels the variants that each change one component of it."""

    label: str
    baseline: RunRecord
    variants: Mapping[str, RunRecord]

    @cached_property
    def points(self) -> list[Point]:
        """The baseline and its variants; nothing where no margin was declared."""
        measure = headline(self.baseline)
        value = self.baseline.mean(measure)
        if declared(self.baseline) is None or value is None:
            return []
        found = [Point(self.label, value, measured(self.baseline, TOKENS), 1.0)]
        for name, variant in self.variants.items():
            if (value := variant.mean(measure)) is not None:
                found.append(Point(name, value, measured(variant, TOKENS), math.exp(measured(variant, RATIO))))
        return found

    @cached_property
    def cheap(self) -> dict[Cost, Point]:
        """The cheapest variants that are not worse, by tokens and by time."""
        found = {cost: cheapest(self.points, cost, partial(self.fits, cost=cost)) for cost in Cost if self.points}
        return {cost: point for cost, point in found.items() if point}

    def fits(self, label: str, cost: Cost) -> bool:
        variant = self.variants[label]
        return holds(self.baseline, variant) and (cost is not Cost.LATENCY or quicker(variant))

    def sentences(self) -> list[str]:
        """What nothing beats at its price, and the cheapest that is not worse."""
        chosen = declared(self.baseline)
        if chosen is None or not self.points:
            return []
        return list(sentences(self.points, headline(self.baseline), chosen.margin, self.cheap))


def holds(baseline: RunRecord, variant: RunRecord) -> bool:
    """Whether a run is shown not to be worse than its baseline by more than the margin."""
    chosen, measure = declared(baseline), headline(baseline)
    seen = paired(baseline, variant, measure)
    if chosen is None or seen is None or seen.difference <= -chosen.margin:  # no bound lies above the difference
        return False
    differing = pair(baseline, variant, measure)
    if (
        differing
        and differing.reach
        and score_bounds(differing, differing.reach, differing.weight, ALPHA)[0] <= -chosen.margin
    ):
        return False  # the bound that decides is never above this one, which is found quickly
    return differing is not None and not_worse(differing, chosen.margin).word == Word.NOT_WORSE


def quicker(variant: RunRecord) -> bool:
    """Whether a run is shown to take less time than its baseline, by the interval: two equal lines differ by noise."""
    _, high = variant.measures.get(RATIO, {}).get("interval") or (None, None)
    return high is not None and high < 0


def measured(record: RunRecord, measure: str) -> float:
    """A mean; NaN where there is none."""
    mean = record.mean(measure)
    return math.nan if mean is None else mean


def efficient(points: Sequence[Point], cost: Cost) -> list[Point]:
    """The points that no other beats, cheapest first: none is as good for less, or better for the same."""
    kept: list[Point] = []
    for point in sorted(priced(points, cost), key=lambda point: (point.price(cost), -point.value)):
        if not kept or point.value > kept[-1].value:
            kept.append(point)
    return kept


def cheapest(points: Sequence[Point], cost: Cost, holds: Callable[[str], bool]) -> Point | None:
    """The cheapest variant that is not worse, which `holds` says of a label.

    None where none is cheaper than the baseline, the first point.
    """
    return next((point for point in cheaper(points, cost) if holds(point.label)), None)


def cheaper(points: Sequence[Point], cost: Cost) -> list[Point]:
    """The variants that cost less than the baseline by as much as can be seen, the cheapest first."""
    base = points[0]
    found = [point for point in priced(points[1:], cost) if point.price(cost) < base.price(cost)]
    found.sort(key=lambda point: (point.price(cost), -point.value))
    return [point for point in found if point.shown(cost) != base.shown(cost)]


def priced(points: Iterable[Point], cost: Cost) -> list[Point]:
    return [point for point in points if not math.isnan(point.price(cost))]


def sentences(points: Sequence[Point], measure: str, margin: float, cheap: Mapping[Cost, Point]) -> Iterator[str]:
    """Which runs nothing beats at their price, and the cheapest that is not worse."""
    for cost in Cost:
        best = efficient(points, cost)
        if len(best) > 1:
            steps = ", ".join(f"{point.label} {point.value:.3f} at {point.shown(cost)}" for point in best)
            yield f"{short(measure)} against {cost}, what nothing beats: {steps}"
    for cost in Cost:
        if len(priced(points, cost)) > 1:
            point = cheap.get(cost)
            prices = [each.shown(cost) for each in (point, points[0]) if each]
            less = len(cheaper(points, cost))
            none = f"none of the {less} that are cheaper is shown to be" if less else "none is cheaper"
            said = f"{point.label}, {' against '.join(prices)}" if point else none
            yield f"by {cost} the cheapest variant that is not worse by more than {margin:g}: {said}"
