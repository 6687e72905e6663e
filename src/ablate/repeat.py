"""A baseline goes in and runs once more beside itself; what differs though nothing was changed comes out."""

from __future__ import annotations

import logging
import math
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from ablate import archive, records, verdict
from ablate.comparison import headline, probability, short, some
from ablate.config import settings
from ablate.dataset.once import read_once
from ablate.errors import AblateError
from ablate.evaluate import Evaluation, total
from ablate.identity import Side, sides
from ablate.latency import Timing
from ablate.page import Page, milliseconds
from ablate.quotation import told as quoted
from ablate.records import RunRecord
from ablate.score.latency import latency, paired
from ablate.statistics import Placebo, Verdict, Word, differences, placebo
from ablate.statistics.verdict import ALPHA
from ablate.statistics.verdict import verdict as judge
from ablate.study import Session
from ablate.types import Dataset
from ablate.variant import Plan
from ablate.workspace import Workspace

log = logging.getLogger(__name__)

SIDES = ("first", "second")

NOTE = "again.json"
"""What a second run came to, beside the record of the first; it is no run of the study."""


class Broke(AblateError):
    """A line that ran once and does not run again: the answer is no, exit code 1."""

    code = 1


@dataclass(frozen=True)
class Anew:
    """A cache that is empty: whatever is asked for is computed, and kept in `place` for as long as the run takes."""

    place: Path

    @property
    def audit(self) -> bool:
        return False

    def folder(self, indexes: Path) -> Path:
        return self.place


@dataclass(frozen=True)
class Repeat:
    """A baseline beside its second run.

    `differing` are the queries whose ranking or context is another; `verdict` is on the study's primary `measure`.
    `dealt` has, for every recorded variant, how often its differences, dealt out to both sides by lot, made a word.
    `timings` are of one session that asked both in turn.
    """

    baseline: RunRecord
    measure: str
    differing: Sequence[str]
    verdict: Verdict
    dealt: Mapping[str, Placebo]
    timings: Sequence[Timing]

    @property
    def identical(self) -> bool:
        return not self.differing and self.verdict.word == Word.IDENTICAL

    @property
    def holds(self) -> bool:
        """Whether nothing differs, and false words are as rare as promised, give or take two standard errors."""
        return self.identical and (not self.dealt or self.false <= ALPHA + 2 * self.error)

    @property
    def deals(self) -> int:
        return sum(each.splits for each in self.dealt.values())

    @property
    def false(self) -> float:
        """The share of all deals in which a word was false."""
        return sum(each.false * each.splits for each in self.dealt.values()) / self.deals

    @property
    def error(self) -> float:
        """The standard error of that share, if it is what is promised."""
        return math.sqrt(ALPHA * (1 - ALPHA) / self.deals)

    def latency(self) -> dict[str, Any]:
        """p50 and p95 of both runs in ms, and the median of log(second / first) by query, each with an interval."""
        if not self.timings:
            return {}
        first, second = ([total(row[side]) for row in self.timings] for side in ("baseline", "variant"))
        found = latency({"first": first, "second": second})
        shown = {f"{side}_{p}": found[f"latency/{side}_{p}"] for side in SIDES for p in ("p50", "p95")}
        return {**shown, "log_ratio": paired(first, second)}

    def data(self) -> dict[str, Any]:
        words = {label: asdict(each) for label, each in self.dealt.items()}
        return {
            "baseline": self.baseline.id,
            "measure": self.measure,
            "queries": len(self.baseline.queries),
            "differing": list(self.differing),
            "verdict": self.verdict.data(),
            "placebo": {"false": self.false, "error": self.error, "variants": words} if words else None,
            "latency": self.latency(),
        }


def repeat(plan: Plan, place: Workspace) -> Repeat:
    """The baseline's record, made now if it is not there, and a second run of its line, computed anew, timed beside it.

    What came out is noted beside the record.

    Raises:
        Broke: the first run is recorded as failed, or the second fails.

    """
    dataset = read_once(settings(plan.baseline).dataset)
    session, base = Session(dataset, place), sides(plan, dataset)[0]
    baseline = session.record(base, [base], None)
    if not baseline.finished:
        raise Broke(f"baseline failed: {baseline.error}")
    log.info("again: running, everything computed anew")
    with tempfile.TemporaryDirectory(prefix="ablate-", ignore_cleanup_errors=True) as folder:
        other = replace(base, variant="again", settings=replace(base.settings, cache=Anew(Path(folder))))
        evaluation, timings = measured(session, base, other, dataset)
    found = compared(baseline, evaluation, timings, records.find(place, base.study))
    records.note(baseline.folder, NOTE, {"at": datetime.now(UTC).isoformat(), **found.data()})
    return found


def measured(session: Session, base: Side, other: Side, dataset: Dataset) -> tuple[Evaluation, list[Timing]]:
    try:
        return session.measured(other, [base, other])
    except AblateError:
        raise
    except Exception as error:  # a component may raise anything
        raise Broke(f"baseline: ran once and failed again: {quoted(error, dataset).reason}") from error


def compared(
    baseline: RunRecord, evaluation: Evaluation, timings: Sequence[Timing], study: Sequence[RunRecord]
) -> Repeat:
    declared = verdict.declared(baseline)
    assert declared is not None  # it was made, or found equal, by this program
    hashes = {trace.query.id: archive.fingerprint(trace) for trace in evaluation.traces}
    differing = sorted(query for query, name in baseline.hashes.items() if hashes.get(query) != name)
    measure = declared.primary or headline(baseline)
    values = {query: row.get(measure) for query, row in evaluation.values.items()}
    known = {query: value for query, value in values.items() if value is not None}
    pair = differences(baseline.values(measure), known, baseline.clusters)
    return Repeat(baseline, measure, differing, judge(pair, declared.margin), dealt(study, declared.margin), timings)


def dealt(study: Sequence[RunRecord], margin: float) -> dict[str, Placebo]:
    """Of every recorded variant, how often its differences on its primary measure, dealt out by lot, make a word."""
    runs, found = {record.id: record for record in study}, {}
    for name, finding in verdict.judged(study).items():
        run, baseline = runs[name], runs[str(runs[name].baseline)]
        pair = verdict.pair(baseline, run, finding.measure, verdict.sound(baseline, run))
        if pair is not None and not pair.unchanged:
            found[run.label] = placebo(pair, margin)
    return found


def told(found: Repeat, page: Page) -> str:
    return "\n\n".join([page.title(answer(found)), page.items(list(details(found)))])


def answer(found: Repeat) -> str:
    queries = len(found.baseline.queries)
    if found.identical:
        return f"the baseline and itself: identical on each of {queries} queries, {short(found.measure)} too"
    return (
        f"the baseline and itself DIFFER on {len(found.differing)} of {queries} queries ({some(found.differing)}); "
        f"{short(found.measure)} is {found.verdict.word}: no difference of a variant can be trusted before this is "
        "found; python -m ablate reproduce looks for it"
    )


def details(found: Repeat) -> Iterator[str]:
    seen = found.verdict
    of = f"{short(found.measure)} of {seen.n} queries in {seen.clusters} clusters"
    yield f"{of}: {seen.word}, p {probability(seen.p)}"
    if found.dealt:
        yield (
            f"false words: {found.false:.3f} of {found.deals} deals, promised at most {ALPHA:g} (standard error "
            f"{found.error:.3f}); the differences of {some(list(found.dealt))} were dealt out to both sides by lot, so "
            "that no word for them is true"
        )
    else:
        yield "false words: no recorded variant moves anything that could be dealt out to both sides by lot"
    yield timed(found.latency())


def timed(times: Mapping[str, Any]) -> str:
    if not times:
        return "latency: not measured (latency=off)"
    ratio, (low, high) = times["log_ratio"]["mean"], times["log_ratio"]["interval"]
    ends = "no interval" if low is None or high is None else f"{math.expm1(low):+.1%} to {math.expm1(high):+.1%}"
    shown = {name: milliseconds(times[name]["mean"]) for name in times}
    sides = "; ".join(f"{side} p50 {shown[f'{side}_p50']} ms, p95 {shown[f'{side}_p95']} ms" for side in SIDES)
    return (
        f"latency noise: the second run takes {math.expm1(ratio):+.1%} ({ends}) of a query's time more, median over "
        f"{times['log_ratio']['n']} queries asked in turn; {sides}"
    )
