"""The words for variants go in, the tables that show them come out: one for each measure that words are about."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from ablate.comparison import judged_at, paired, probability, short
from ablate.page import Page, signed
from ablate.records import RunRecord
from ablate.statistics import Verdict, Word
from ablate.verdict import Finding, risk

HEADINGS = ("run", "word", "mean and difference", "interval", "+/-", "p", "needs", "judged %", "labels")
RISKS = 40
"""Up to how many variants it is looked for how few labels would turn each word."""

LEGEND = (
    "word: better, worse, mixed (better, but sufficient fell by more than the margin), equivalent (inside the margin), "
    "identical, cannot tell; by the paired sign-flip test over clusters (questions about one document or of one "
    "text, which count together), Holm's correction over all variants ever recorded in the study, its family",
    "interval: what the same test at the same level does not reject, wider away from 0 where few questions moved; it "
    "excludes 0 just where p is at most 0.05",
    "+/-: questions that got better and worse; needs: questions that would find a difference of the margin with 80 % "
    "power, and where there are as many, that would show that there is none; judged: of how much of the first k chunks "
    "the ground truth says something, without and with the change; labels: how few labels of what nobody has judged "
    "could turn the word, blank where it claims nothing",
)


def verdict_tables(
    page: Page,
    baseline: RunRecord,
    variants: Sequence[RunRecord],
    labels: Mapping[str, str],
    findings: Mapping[str, Finding],
) -> Iterator[str]:
    """A table for each measure, the largest difference first."""
    known = [run for run in variants if run.id in findings]
    for measure in dict.fromkeys(findings[run.id].measure for run in known):
        chosen = [run for run in known if findings[run.id].measure == measure]
        chosen.sort(key=lambda run: -findings[run.id].verdict.difference)
        verdicts = [findings[run.id].verdict for run in chosen]
        yield page.title(title(baseline, measure, verdicts, labels[baseline.id]))
        few = len(known) <= RISKS
        rows = [row(baseline, run, labels[run.id], findings[run.id], few) for run in chosen]
        yield page.table(HEADINGS, rows, words=(0, 1))
    if rows := [line for run in known for line in critical(labels[run.id], findings[run.id])]:
        yield page.title("in cohorts that were called critical beforehand; in all others nothing can be told")
        yield page.table(["run", "cohort", "queries", "word", "difference", "interval"], rows, words=(0, 1, 3))


def title(baseline: RunRecord, measure: str, verdicts: Sequence[Verdict], label: str) -> str:
    first = verdicts[0]
    mean = baseline.mean(measure)
    return (
        f"{short(measure)}, {label} {'n/a' if mean is None else f'{mean:.3f}'}, margin {first.margin:g}; "
        f"{first.n} queries in {first.clusters} clusters, a family of {first.family}"
    )


def row(baseline: RunRecord, variant: RunRecord, label: str, finding: Finding, few: bool) -> list[str]:
    found, pair = finding.verdict, paired(baseline, variant, finding.measure)
    assert pair is not None
    return [
        label,
        found.word,
        f"{pair.after:.3f} {signed(found.difference)}",
        interval(found),
        f"{pair.higher}/{pair.lower}",
        probability(found.p_adjusted),
        str(found.needed) if found.word == Word.CANNOT_TELL and found.needed else "",
        judged(baseline, variant),
        turned(baseline, variant, finding) if few else "",
    ]


def interval(found: Verdict) -> str:
    """Blank where no query moved: the word says it."""
    return "" if found.word == Word.IDENTICAL else between(found.interval)


def between(ends: tuple[float | None, float | None]) -> str:
    """Both ends of an interval; `none` where too few clusters give one."""
    low, high = ends
    return "none" if low is None or high is None else f"{signed(low, 2)} {signed(high, 2)}"


def judged(baseline: RunRecord, variant: RunRecord) -> str:
    pair = paired(baseline, variant, judged_at(baseline))
    return f"{pair.before:.0%} {pair.after:.0%}".replace("%", "") if pair else ""


def finding_data(baseline: RunRecord, variant: RunRecord, finding: Finding, few: bool) -> dict[str, Any]:
    """All that is known of a variant, for programs; of many variants not how few labels would turn the words."""
    labels = risk(baseline, variant, finding) if few else None
    return {
        "measure": finding.measure,
        **finding.verdict.data(),
        "critical_cohorts": {cohort: found.data() for cohort, found in finding.cohorts.items()},
        "critical_queries_lost": list(finding.lost),
        "label_risk": asdict(labels) if labels else None,
    }


def turned(baseline: RunRecord, variant: RunRecord, finding: Finding) -> str:
    found = risk(baseline, variant, finding)
    if found is None:
        return ""
    return "none" if found.overturned_by is None else str(found.overturned_by)


def critical(label: str, finding: Finding) -> Iterator[list[str]]:
    """What is told of critical cohorts: a word that claims something, or a mean that fell by more than the margin."""
    for cohort, found in finding.cohorts.items():
        if cohort in finding.costs or found.word not in (Word.IDENTICAL, Word.CANNOT_TELL):
            yield [label, cohort, str(found.n), found.word, signed(found.difference), interval(found)]
