"""What is known of every variant goes in, the answer to the whole study comes out, in one sentence."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from ablate.comparison import SUFFICIENT, alone, forbidden, harm, short, some
from ablate.frontier import Cost, Point
from ablate.page import signed
from ablate.records import RunRecord
from ablate.statistics import Word
from ablate.verdict import Finding

CLAIMED = (Word.BETTER, Word.MIXED, Word.WORSE, Word.EQUIVALENT, Word.IDENTICAL, Word.CANNOT_TELL)
"""The order in which the words are said."""


@dataclass(frozen=True, slots=True)
class Told:
    """One run as the answer speaks of it; `finding` is None for a baseline, and where nothing was declared."""

    label: str
    record: RunRecord
    finding: Finding | None


def answer(runs: Sequence[Told], cheap: Mapping[Cost, Point] = MappingProxyType({})) -> str:
    """What helped and what it may have cost; `cheap` has the cheapest variants that are not worse, by what they save.

    What is forbidden comes before everything; what a gain costs stands beside it.
    """
    leaking = [told.label for told in runs if told.record.finished and forbidden(told.record)]
    alarm = f"FORBIDDEN documents in {', '.join(leaking)}" if leaking else ""
    broken = [told.label for told in runs if not told.record.finished]
    failed = f"failed: {some(broken)}" if broken else ""
    return "; ".join(filter(None, [alarm, *(words(runs) or [plain(runs)]), failed, *saving(cheap)]))


def words(runs: Sequence[Told]) -> list[str]:
    """The variants by their words, the largest difference first."""
    found = [(told, told.finding) for told in runs if told.finding]
    found.sort(key=lambda pair: -abs(pair[1].verdict.difference))
    said = []
    for word in CLAIMED:
        chosen = [(told, finding) for told, finding in found if finding.verdict.word == word]
        if chosen:
            silent = word in (Word.IDENTICAL, Word.CANNOT_TELL) and len(found) > 1
            names = [told.label if silent else sized(told.label, finding) for told, finding in chosen]
            said.append(f"{word}: {some(names) if silent else ', '.join(names)}")
    return said


def sized(label: str, finding: Finding) -> str:
    """A variant with its difference, in what, if that is not evidence in the context, and what it costs."""
    measure = "" if finding.measure == SUFFICIENT else f" in {short(finding.measure)}"
    word = finding.verdict.word
    fell = ["falls on sufficient"] if word == Word.MIXED else []
    costs = " and ".join([*fell, *harm(finding)])
    return f"{label} {signed(finding.verdict.difference)}{measure}" + (
        f" ({'and' if word == Word.WORSE else 'but'} {costs})" if costs else ""
    )


def plain(runs: Sequence[Told]) -> str:
    """What is said where no variant has a word."""
    finished = [told for told in runs if told.record.finished]
    return "; ".join(f"{told.label}: {alone(told.record)}" for told in finished if told.record.is_baseline)


def saving(cheap: Mapping[Cost, Point]) -> Iterator[str]:
    if found := [f"{point.label} ({point.shown(cost)})" for cost, point in cheap.items()]:
        yield f"cheapest that is not worse: {', '.join(found)}"
