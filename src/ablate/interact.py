"""The runs of two variants, alone and together, go in; whether their effects add up comes out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ablate.comparison import RESHAPING, lacking, probability, short
from ablate.errors import AblateError
from ablate.measures import HIGHER
from ablate.page import Page, signed
from ablate.records import RunRecord
from ablate.statistics import Interplay, Word, interaction, interplay
from ablate.verdict import declared, direction, primary, sound

SAID = {
    Word.ADDITIVE: "add up",
    Word.OVERLAPPING: "overlap",
    Word.REINFORCING: "reinforce each other",
    Word.CANNOT_TELL: "may add up or not: these questions cannot tell",
}


@dataclass(frozen=True)
class Square:
    """Four runs: without both changes, with either, with both."""

    base: RunRecord
    first: RunRecord
    second: RunRecord
    both: RunRecord

    @property
    def runs(self) -> Sequence[RunRecord]:
        return self.base, self.first, self.second, self.both

    @property
    def measure(self) -> str:
        """The primary measure of whichever of both changes how much text a context holds, else of either."""
        reshaping = [run for run in (self.first, self.second) if run.component in RESHAPING]
        return primary(self.base, (reshaping or [self.first])[0])

    @property
    def queries(self) -> list[str]:
        """The queries to which the measure applies in all four runs, and on which it says something of both changes."""
        values = [run.values(self.measure) for run in self.runs]
        may = [sound(self.base, run) for run in (self.first, self.second)]
        return [
            q
            for q in values[0]
            if all(q in other for other in values) and all(each is None or q in each for each in may)
        ]

    def means(self) -> list[float]:
        """Of the four runs, over the same queries.

        Raises:
            AblateError: there are none.

        """
        queries = self.queries
        if not queries:
            raise AblateError(f"{self.measure}: found no query that it applies to in all four runs, expected some")
        return [sum(run.values(self.measure)[query] for query in queries) / len(queries) for run in self.runs]

    def interplay(self) -> Interplay:
        """What both do together less what each does alone, with its word.

        Raises:
            AblateError: nothing was declared for the study, so that no margin is known.

        """
        chosen = declared(self.base)
        if chosen is None:
            raise AblateError(f"run {self.base.id}: found no margin, expected one that was declared; run it again")
        queries = self.queries
        base, first, second, both = ({q: run.values(self.measure)[q] for q in queries} for run in self.runs)
        found = interaction(base, first, second, both, self.base.clusters)
        return interplay(found, chosen.margin, direction(self.measure) or HIGHER)


def told(square: Square, page: Page) -> str:
    """The answer, the four cells, and what each step brings."""
    base, first, second, both = square.means()
    found = square.interplay()
    seen, names = found.found, (square.first.label, square.second.label)
    ends = "no interval" if seen.low is None or seen.high is None else f"{signed(seen.low)} to {signed(seen.high)}"
    rows = [
        [f"without {names[1]}", f"{base:.3f}", f"{first:.3f}", signed(first - base)],
        [f"with {names[1]}", f"{second:.3f}", f"{both:.3f}", signed(both - second)],
        ["difference", signed(second - base), signed(both - first), signed(seen.difference)],
    ]
    return "\n\n".join(
        [
            page.title(
                f"{names[0]} and {names[1]} {SAID[found.word]}: together {signed(both - base)}, alone "
                f"{signed(first - base)} and {signed(second - base)}; interaction {signed(seen.difference)} ({ends})"
            ),
            page.title(f"{short(square.measure)} of {seen.n} queries in {seen.clusters} clusters"),
            page.table(["", f"without {names[0]}", f"with {names[0]}", "difference"], rows),
            page.items([explained(found)]),
        ]
    )


def explained(found: Interplay) -> str:
    seen = found.found
    more = f"; about {seen.needed} queries would tell" if lacking(seen) else ""
    return (
        f"interaction: what both bring together less what each brings alone, p {probability(seen.p)} by the paired "
        f"sign-flip test; additive is said only if it lies inside the margin of {seen.margin:g}{more}"
    )


def data(square: Square) -> dict[str, Any]:
    """The same for programs."""
    found = square.interplay()
    cells = dict(zip(("baseline", "first", "second", "both"), square.means(), strict=True))
    runs = dict(zip(cells, (run.id for run in square.runs), strict=True))
    return {"measure": square.measure, "word": found.word, "cells": cells, "runs": runs, **_interval(found)}


def _interval(found: Interplay) -> dict[str, Any]:
    return {"interaction": {key: value for key, value in found.found.data().items() if key != "word"}}
