"""Runs side by side: from run records to one page, as text, as Markdown, as data."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from ablate.answer import Told, answer
from ablate.columns import NA, Column, columns
from ablate.comparison import (
    Paired,
    at_equal_tokens,
    by_cohort,
    forbidden,
    headline,
    inert,
    judged_at,
    moved,
    outcome,
    paired,
    remarks,
    second,
    short,
    some,
    told,
)
from ablate.errors import NotComparable
from ablate.frontier import Frontier
from ablate.loss_table import advice, blamed, flows, losses
from ablate.measures import Measure, describe
from ablate.page import Markdown, Page, Terminal, clean, columns_shown, escaped, signed
from ablate.pipeline import STAGES
from ablate.records import RunRecord
from ablate.verdict import Finding, declared, exploratory, judged
from ablate.verdict_table import LEGEND, between, finding_data, verdict_tables

SAME = ("corpus", "ground_truth", "scoring")
"""Fingerprints that runs must share before their numbers may stand side by side."""

SHOWN = ("run", "study", "variant", "component", "status", "error", "baseline")

MOST = 100
"""Of how many runs a page tells."""

DETAILED = 20
"""Of how many variants details are shown."""

ABREAST = 5
"""Variants whose cohorts stand side by side: more would not fit on a page."""

MOVED = 5
COHORTS = 12


def compare(records: Sequence[RunRecord], study: Sequence[RunRecord] = ()) -> Comparison:
    """`records`, each baseline before its variants, as one comparison; with the words that their `study` gives them.

    `study` is all that was ever recorded of it: a word depends on how many variants were asked about.

    Raises:
        NotComparable: they were measured on different corpora or ground truths, or with different scoring settings.

    """
    for name in SAME:
        found: dict[str, RunRecord] = {}
        for record in records:
            if name in record.fingerprints:
                found.setdefault(record.fingerprints[name], record)
        if len(found) > 1:
            (one, first), (two, other) = list(found.items())[:2]
            raise NotComparable(
                f"{name}: found {one} in run {first.id} and {two} in run {other.id}, expected the same for all; "
                f"{agreement(records)}"
            )
    names = [record.label for record in records]
    unique = {r.id: r.label if names.count(r.label) == 1 else f"{r.label} {r.id[-6:]}" for r in records}
    return Comparison(tuple(records), unique, judged(study))


def agreement(records: Sequence[RunRecord]) -> str:
    """What makes runs comparable: running again or, where they searched one corpus, scoring as the newest is scored."""
    newest = max(records, key=lambda record: (record.started, record.id))
    theirs, ours = ([record.fingerprints.get(name) for record in records] for name in ("corpus", "scoring"))
    node = newest.config.get("dataset")
    dir = node.get("dir") if isinstance(node, Mapping) else None
    nodes = (record.config.get("dataset") for record in records)
    if len({each.get("subset") for each in nodes if isinstance(each, Mapping)}) > 1:
        return "run both with one dataset.subset"
    if len(set(theirs)) > 1 or dir is None:
        return "run both on one version of the dataset and with one set of scoring settings"
    other = [r.id for r in records if any(r.fingerprints.get(name) != newest.fingerprints.get(name) for name in SAME)]
    scoring = ["--score-as", newest.id] if len(set(ours)) > 1 else []
    command = shlex.join(["python", "-m", "ablate", "rescore", "--dataset", str(dir), *scoring, *other])
    return f"score the others as {newest.id} is: {command}"


@dataclass(frozen=True)
class Comparison:
    """Runs that may stand side by side; `labels` names each by its id, no two alike, and `findings` has their words."""

    records: tuple[RunRecord, ...]
    labels: Mapping[str, str]
    findings: Mapping[str, Finding] = field(default_factory=dict)

    def baseline(self, record: RunRecord) -> RunRecord | None:
        """The finished run that `record` is measured against, if it is here."""
        return next((r for r in self.records if r.finished and r.id == record.baseline and r is not record), None)

    @cached_property
    def pairs(self) -> list[tuple[RunRecord, RunRecord]]:
        """(baseline, variant) for every finished variant whose baseline is here and finished."""
        found = ((self.baseline(record), record) for record in self.records if record.finished)
        return [(baseline, record) for baseline, record in found if baseline]

    @cached_property
    def lead(self) -> RunRecord | None:
        """The run whose measures decide what is shown: the first one that finished."""
        return next((record for record in self.records if record.finished), None)

    @cached_property
    def columns(self) -> list[Column]:
        return columns(self.lead) if self.lead else []

    def text(self, width: int | None = None) -> str:
        """For a terminal of `width` columns; None asks the terminal."""
        return "\n\n".join(self._blocks(Terminal(width or columns_shown()))) + "\n"

    def short(self, width: int | None = None) -> str:
        """The same without details and legend."""
        return "\n\n".join(self._first(Terminal(width or columns_shown()))) + "\n"

    def markdown(self, subject: RunRecord | None = None, limit: int | None = None) -> str:
        """For GitHub and MLflow: what came of `subject` in the first line, if it is given.

        With `limit` no more characters than that; a last line then says that it was cut.
        """
        page = Markdown()
        said = [] if subject is None else [escaped(self.sentence(subject))]
        whole = "\n\n".join([*said, *self._blocks(page, subject)]) + "\n"
        if limit is None or len(whole) <= limit:
            return whole
        command = ["python", "-m", "ablate", "compare", "--study", self.records[0].study]
        cut = f"\n\n**Cut here.** All of it: `comparison.md`, or `{shlex.join(command)}`\n"
        return whole[: whole.rfind("\n", 0, limit - len(cut))] + cut

    def sentence(self, record: RunRecord) -> str:
        """What came out, in one sentence."""
        finding = self.findings.get(record.id)
        return clean(f"{self.labels[record.id]}: {outcome(record, self.baseline(record), finding)}")

    def about(self, record: RunRecord) -> Comparison:
        """The comparison of one run with its baseline alone, with the words of the whole study."""
        return replace(self, records=tuple(run for run in (self.baseline(record), record) if run))

    @cached_property
    def answer(self) -> str:
        """The answer of all runs together, in one sentence."""
        runs = [Told(self.labels[record.id], record, self.findings.get(record.id)) for record in self.records]
        return clean(answer(runs, self.frontier.cheap if self.frontier else {}))

    @cached_property
    def shown(self) -> tuple[RunRecord, ...]:
        """The runs that have a line: all, or of very many those that differ most, and whatever has no word or leaks."""
        if len(self.records) <= MOST:
            return self.records
        sizes = {run: abs(finding.verdict.difference) for run, finding in self.findings.items()}
        chosen = set(sorted(sizes, key=lambda run: (-sizes[run], run))[:MOST])
        return tuple(
            record for record in self.records if record.id in chosen or record.id not in sizes or forbidden(record)
        )

    @cached_property
    def loud(self) -> list[tuple[RunRecord, RunRecord]]:
        """Of `pairs` those of which details are shown: something moved, and of many those that moved most."""
        told = {record.id for record in self.shown}
        found = [(baseline, run, movement(baseline, run)) for baseline, run in self.pairs if run.id in told]
        found.sort(key=lambda row: -row[2])
        chosen = {run.id for _, run, queries in found[:DETAILED] if queries}
        return [(baseline, run) for baseline, run in self.pairs if run.id in chosen]

    @cached_property
    def families(self) -> list[tuple[RunRecord, list[RunRecord]]]:
        """Each baseline with its finished variants."""
        bases = {baseline.id: baseline for baseline, _ in self.pairs}
        return [(base, [run for baseline, run in self.pairs if baseline is base]) for base in bases.values()]

    @cached_property
    def frontier(self) -> Frontier | None:
        """What the variants of the baseline that has most of them bring and cost; those of two changes are left out."""
        if not self.families:
            return None
        baseline, variants = max(self.families, key=lambda family: len(family[1]))
        single = {self.labels[run.id]: run for run in variants if run.component in STAGES}
        return Frontier(self.labels[baseline.id], baseline, single)

    def data(self) -> dict[str, Any]:
        """The same content for programs; a measure that applies to no query is null."""
        return {
            "answer": self.answer,
            "frontier": [point.data() for point in self.frontier.points] if self.frontier else [],
            "runs": [self._row(record) for record in self.records],
        }

    def _row(self, record: RunRecord) -> dict[str, Any]:
        baseline, finding = self.baseline(record) if record.finished else None, self.findings.get(record.id)
        few = len(self.records) <= MOST  # of more it would take minutes
        cohorts = by_cohort(baseline, record) if baseline and few else {}
        measures = [measure for column in self.columns for measure in column.measures]
        measures += [measure for measure in [judged_at(self.lead or record)] if measure in record.means]
        pairs = {m: pair for m in measures if baseline and (pair := paired(baseline, record, m))}
        return {
            **{key: record.facts.get(key) for key in SHOWN},
            "label": self.labels[record.id],
            "result": self.sentence(record),
            "inert": bool(baseline and inert(baseline, record)),
            "values": {measure: record.mean(measure) for measure in measures},
            "differences": {measure: summary(pair) for measure, pair in pairs.items()},
            "cohorts": {name: summary(pair) for name, pair in cohorts.items()},
            "verdict": finding_data(baseline, record, finding, few) if baseline and finding else None,
            "moved": [
                {"query_id": query, **{measure: list(pair) for measure, pair in values.items()}}
                for query, values in (moved(baseline, record)[:MOVED] if baseline and few else ())
            ],
        }

    def _blocks(self, page: Page, subject: RunRecord | None = None) -> Iterator[str]:
        """The parts of the page, what matters most first; of `subject` it was said already what came out."""
        yield from self._first(page, subject)
        if self.lead is not None:
            yield from self._details(page)
            yield page.title("What the columns say")
            words = LEGEND if self.findings else ()
            yield page.items([*words, *(self._legend(column) for column in self.columns)])
        yield page.title("Runs")
        yield page.items([self._identity(record) for record in self.shown])
        if said := self._ends():
            yield page.items(said)

    def _ends(self) -> list[str]:
        """How sure it is where the first run lost evidence, and what to test next."""
        if self.lead is None:
            return []
        tried = {variant.variant for _, variant in self.pairs}
        return list(filter(None, (blamed(self.lead), advice(self.lead, self.loud, tried))))

    def _identity(self, record: RunRecord) -> str:
        made = f"{record.started:%Y-%m-%d %H:%M} UTC, {record.seconds:.0f} s"
        ran = f", scored again from {record.rescored_from}" if record.rescored_from else ""
        return f"{self.labels[record.id]}: {record.id}, {made}{ran}"

    def _first(self, page: Page, subject: RunRecord | None = None) -> Iterator[str]:
        """What came out, the table, and what must be known beside it."""
        first = self.lead or self.records[0]
        studies = ", ".join(dict.fromkeys(record.study for record in self.records))
        leaking = ", ".join(self.labels[record.id] for record in self.records if record.finished and forbidden(record))
        alarm = f"; FORBIDDEN documents in {leaking}" if leaking else ""
        if self.findings and subject is None:
            yield page.title(self.answer)
        left = len(self.records) - len(self.shown)
        more = (
            f"; of {len(self.records)} runs {left} that differ less are left out here, --json has all" if left else ""
        )
        yield page.title(f"{studies}: {first.size} queries of {first.dataset}{alarm}{more}")
        told = self.findings.keys() | ({subject.id} if subject else set())
        if said := [self.sentence(record) for record in self.shown if record.id not in told]:
            yield page.items(said)
        lines = {record.id for record in self.shown}
        for baseline, variants in self.families:
            shown = [run for run in variants if run.id in lines]
            yield from verdict_tables(page, baseline, shown, self.labels, self.findings)
        if self.lead is None:
            return
        headings = ["run", *(column.heading for column in self.columns)]
        rows = [self._cells(record) for record in self.shown]
        if states := [state for record in self.shown if (state := self._status(record))]:
            headings.append("status")
            rows = [[*cells, self._status(record)] for cells, record in zip(rows, self.shown, strict=True)]
        yield page.table(headings, rows, words=(0, len(headings) - 1) if states else (0,))
        if notes := self._notes():
            yield page.items(notes)

    def _cells(self, record: RunRecord) -> list[str]:
        baseline = self.baseline(record)
        return [self.labels[record.id], *(column.cell(record, baseline) for column in self.columns)]

    def _notes(self) -> list[str]:
        """What must be known beside the numbers, each said once, of all runs that it is true of."""
        found: dict[str, list[str]] = {said: [] for said in wordless(self.lead)} if self.lead else {}
        for record in self.shown:
            label = self.labels[record.id]
            for remark in remarks(label, record, self.baseline(record)):
                said = remark.removeprefix(f"{label}: ")
                found.setdefault(said, []).extend([label] if said != remark else [])
        return [f"{some(labels, COHORTS)}: {said}" if labels else said for said, labels in found.items()]

    def _details(self, page: Page) -> Iterator[str]:
        if counts := [row for baseline, variant in self.loud for row in self._counts(baseline, variant)]:
            headings = ["run", "measure", "better", "worse", "same", "of", "difference", "95 %"]
            yield page.title("What was not asked about beforehand: exploratory, no word comes of it")
            yield page.table(headings, counts, words=(0, 1))
        for baseline, _ in self.families:
            shown = [run for base, run in self.loud if base is baseline]
            for start in range(0, len(shown), ABREAST):
                yield from self._cohorts(page, baseline, shown[start : start + ABREAST])
        if self.frontier and (prices := self.frontier.sentences()):
            yield page.title("What it costs (x2 is twice the baseline's time)")
            yield page.items(prices)
        yield from losses(page, self.shown, self.labels)
        yield from flows(page, self.loud, self.labels)
        if rows := [row for baseline, variant in self.loud for row in self._moved(baseline, variant)]:
            measures = told(self.pairs[0][0])
            last = f"{short(measures[-1])} = {describe(measures[-1]).formula}"
            yield page.title(f"Queries that moved most (up to {MOVED} a run); {last}")
            yield page.table(["run", "query", *map(short, measures)], rows, words=(0, 1))

    def _counts(self, baseline: RunRecord, variant: RunRecord) -> Iterator[list[str]]:
        """What a variant did to the measures beside its primary one."""
        finding = self.findings.get(variant.id)
        pairs = [paired(baseline, variant, measure) for measure in (headline(baseline), second(baseline))]
        for pair in filter(None, [*pairs, at_equal_tokens(baseline, variant)]):
            if finding is None or pair.measure != finding.measure:
                counts = (pair.higher, pair.lower, pair.n - pair.higher - pair.lower, pair.n)
                ends = between(exploratory(baseline, variant, pair.measure))
                yield [self.labels[variant.id], short(pair.measure), *map(str, counts), signed(pair.difference), ends]

    def _cohorts(self, page: Page, baseline: RunRecord, variants: Sequence[RunRecord]) -> Iterator[str]:
        table = {variant.id: by_cohort(baseline, variant) for variant in variants}
        names = list(dict.fromkeys(name for pairs in table.values() for name in pairs))
        names.sort(key=lambda name: -max(abs(pairs[name].difference) for pairs in table.values() if name in pairs))
        rows = []
        for name in names[:COHORTS]:
            found = [pairs.get(name) for pairs in table.values()]
            one = next(pair for pair in found if pair)
            differences = (signed(pair.difference) if pair else NA for pair in found)
            rows.append([name, str(one.n), f"{one.before:.3f}", *differences])
        if rows:
            label = self.labels[baseline.id]
            rest = f", the {COHORTS} of {len(names)} that moved most" if len(names) > COHORTS else ""
            yield page.title(f"{short(headline(baseline))} by cohort: difference from {label}{rest}")
            yield page.table(["cohort", "queries", label, *(self.labels[variant.id] for variant in variants)], rows)

    def _moved(self, baseline: RunRecord, variant: RunRecord) -> Iterator[list[str]]:
        for query, values in moved(baseline, variant)[:MOVED]:
            yield [self.labels[variant.id], query, *(change(values.get(measure)) for measure in told(baseline))]

    def _status(self, record: RunRecord) -> str:
        if not record.finished:
            return "FAILED"
        baseline = self.baseline(record)
        if baseline is None:
            return "" if record.is_baseline else "no run of its baseline"
        return "inert" if inert(baseline, record) else ""

    def _legend(self, column: Column) -> str:
        said = [text for measure in column.measures for text in self._explained(describe(measure))]
        return f"{column.heading}: {'; '.join([*said, *column.notes])}"

    def _explained(self, measure: Measure) -> Iterator[str]:
        """What a number is, over how many queries, and why it may be missing."""
        better = f", {measure.better} is better" if measure.better in ("higher", "lower") else ""
        yield f"{measure.name} = {measure.formula} ({measure.unit}{better})"
        finished = [record for record in self.records if record.finished]
        counts = {record.means[measure.name]["n"] for record in finished if record.mean(measure.name) is not None}
        if counts - {record.size for record in finished}:
            yield f"over {' or '.join(map(str, sorted(counts)))} queries"
        if missing := [record for record in finished if record.mean(measure.name) is None]:
            measured = any(measure.name in record.means for record in missing)
            yield f"{NA}: {'applies to no query of this ground truth' if measured else 'was not measured'}"


def wordless(lead: RunRecord) -> Iterator[str]:
    """That no variant can have a word, where what was declared is not measured."""
    chosen = declared(lead)
    if chosen and chosen.primary and lead.mean(chosen.primary) is None:
        yield f"no word: {chosen.primary} (verdict.primary) has no value; metrics.json lists what has one"


def movement(baseline: RunRecord, variant: RunRecord) -> int:
    """In how many values that are told of queries two runs differ."""
    sides = [(baseline.values(measure), variant.values(measure)) for measure in told(baseline)]
    return sum(after.get(query, value) != value for before, after in sides for query, value in before.items())


def change(pair: tuple[float, float] | None) -> str:
    """A value before and after, n/a where it does not apply to the query."""
    return NA if pair is None else f"{pair[0]:.3f} -> {pair[1]:.3f}"


def summary(pair: Paired) -> dict[str, float]:
    return {
        "before": pair.before,
        "after": pair.after,
        "difference": pair.difference,
        "n": pair.n,
        "higher": pair.higher,
        "lower": pair.lower,
    }
