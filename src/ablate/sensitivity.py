"""A dataset, and what a study has recorded, go in; what its queries can tell about one more variant comes out."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from fractions import Fraction
from typing import Any

from ablate import verdict
from ablate.comparison import DOCUMENT_NDCG, RESHAPING, SUFFICIENT, probability, short
from ablate.config import Settings, settings
from ablate.dataset.once import read_once
from ablate.errors import ConfigError
from ablate.identity import sides
from ablate.measures import describe
from ablate.page import Page
from ablate.records import RunRecord, current, find
from ablate.statistics import Differences, Plan, Spread, clustered, plan, shared, spread, spread_of_share
from ablate.statistics import spread_of_values as unlike
from ablate.statistics.power import POWER
from ablate.statistics.verdict import ALPHA
from ablate.types import Dataset, Query
from ablate.variant import Plan as Command
from ablate.workspace import Workspace

SHARES = (0.1, 0.2, 0.3, 0.5)
"""Shares of queries that a variant may change: of ten recorded ones most lie between."""

USUAL = 0.2
"""The share that is taken where nothing is recorded."""

HEADINGS = ("if a variant moves", "needs", "finds", "chance", "least p")


@dataclass(frozen=True, slots=True)
class Case:
    """What the queries can tell if differences spread in one way: alone, and as one of a family.

    `smallest_p` is the least p-value that is then to be expected, if all that moves moves one way.
    """

    how: str
    smallest_p: float
    alone: Plan
    among: Plan


@dataclass(frozen=True, slots=True)
class Sensitivity:
    """What `n` queries in `clusters` can tell about one `measure`; `family` variants are recorded in the study.

    `expected` is thought likeliest: the median of the recorded variants, or else a usual share, at worst and at best.
    """

    measure: str
    n: int
    clusters: int
    margin: float
    family: int
    expected: Sequence[Case]
    cases: Sequence[Case]

    def data(self) -> dict[str, Any]:
        return asdict(self)


def sensitivity(command: Command, place: Workspace) -> Sensitivity:
    """What can be told of a command before it runs; no model is loaded.

    Raises:
        ConfigError: no query of the dataset has evidence that the measure is about.

    """
    chosen = settings(command.config)
    dataset = read_once(chosen.dataset)
    records = find(place, sides(command, dataset)[0].study)
    baseline = next((run for run in reversed(current(records)) if run.is_baseline and run.finished), None)
    measure = aim(command, chosen, dataset, baseline)
    labels = cohort(command, dataset, measure, baseline)
    if not labels:
        raise ConfigError(
            f"{short(measure)}: found no query that it applies to, expected some; add evidence to the ground truth, or "
            "name another measure with verdict.primary"
        )
    known = seen(records, measure)
    return cases(labels, measure, chosen.verdict.margin, known, values(baseline, measure, labels))


def aim(command: Command, chosen: Settings, dataset: Dataset, baseline: RunRecord | None) -> str:
    """The measure that a word for the command's variant would be about."""
    if chosen.verdict.primary:
        return str(chosen.verdict.primary)
    if not any(truth.alternatives for truth in dataset.truths.values()):
        return DOCUMENT_NDCG
    fair = f"retrieval/coverage_at_{chosen.budget}_tokens"
    known = baseline is None or baseline.mean(fair) is not None
    return fair if command.component in RESHAPING and known else SUFFICIENT


def cohort(command: Command, dataset: Dataset, measure: str, baseline: RunRecord | None) -> dict[str, str]:
    """Query -> cluster, of all queries that a verdict on the measure would rest on."""
    labels = clustered(dataset)
    if baseline is not None and (applies := baseline.values(measure)):
        chosen = [query for query in dataset.queries if query.id in applies]
    else:
        chosen = [query for query in dataset.queries if answered(query, dataset, measure)]
    if command.component in RESHAPING:  # where any chunk of a document counts, none tells how text is cut
        chosen = [query for query in chosen if not dataset.truths[query.id].by_document]
    return {query.id: labels[query.id] for query in chosen}


def answered(query: Query, dataset: Dataset, measure: str) -> bool:
    """Whether something is known that the measure can be about: evidence, or documents for a measure of documents."""
    truth = dataset.truths.get(query.id)
    if truth is None:
        return False
    documents = any(kind == "document" for kind, _ in shared(query, truth))
    return documents if measure.startswith("doc/") else bool(truth.alternatives)


def seen(records: Sequence[RunRecord], measure: str) -> tuple[int, dict[str, Differences]]:
    """How many variants are recorded, and what those moved that were judged by this measure."""
    findings, runs = verdict.judged(records), {record.id: record for record in records}
    found: dict[str, Differences] = {}
    for run in (runs[name] for name, finding in findings.items() if finding.measure == measure):
        baseline = runs[str(run.baseline)]
        pair = verdict.pair(baseline, run, measure, verdict.sound(baseline, run))
        if pair is not None and not pair.unchanged:
            found[run.label] = pair
    return len(findings), found


def values(baseline: RunRecord | None, measure: str, labels: Mapping[str, str]) -> dict[str, float]:
    """The baseline's, of these queries; empty where none is recorded."""
    held = baseline.values(measure) if baseline else {}
    return {query: held[query] for query in labels if query in held}


def cases(
    labels: Mapping[str, str],
    measure: str,
    margin: float,
    known: tuple[int, Mapping[str, Differences]],
    before: Mapping[str, float],
) -> Sensitivity:
    """Every way in which differences may spread: assumed shares, no relation to the baseline, as recorded ones did.

    Raises:
        ConfigError: the measure is no share, or the margin beyond any, and nothing is recorded.

    """
    variants, pairs = known
    family = max(1, variants)
    blank = Differences((Fraction(0),) * len(labels), tuple(labels.values()))
    n, clusters = blank.n, len(blank.clusters)

    def case(how: str, spreads: Spread, moved: int) -> Case:
        alone, among = (plan(spreads, n, margin, ALPHA / size) for size in (1, family))
        return Case(how, min(1.0, 0.5 ** (moved - 1)), alone, among)

    def assumed(share: float) -> list[Case]:
        one = replace(spread_of_share(share, margin), weight=blank.weight, size=n / clusters)
        step = float(math.gcd(*(size for _, size in blank.clusters)))
        as_one, moved = replace(one, variance=one.weight * one.variance, step=step), round(share * clusters)
        found = [case(f"{share:.0%} of queries, each by itself", one, moved)]
        return found if clusters == n else [*found, case(f"{share:.0%} of queries, clusters as one", as_one, moved)]

    far = unlike(before, labels) if before else None
    rest = [case("as if unrelated to the baseline", far, clusters)] if far and far.variance else []
    share = margin < 1 and describe(measure).unit == "share"
    recorded = []
    for label, pair in pairs.items():
        if spreads := spread(pair):
            recorded.append(case(f"as {label} did", spreads, sum(total != 0 for total, _ in pair.clusters)))
    recorded.sort(key=lambda each: each.alone.needed)
    expected = [recorded[len(recorded) // 2]] if recorded else assumed(max(USUAL, margin)) if share else rest
    if not expected:
        raise ConfigError(
            f"verdict.margin: found {margin:g} in {short(measure)}, expected runs that show how far that spreads; run "
            "the baseline, python -m ablate, and ask again"
        )
    shares = [each for part in SHARES if share and part >= margin for each in assumed(part)]
    return Sensitivity(measure, n, clusters, margin, variants, expected, [*shares, *rest, *recorded])


def told(found: Sensitivity, page: Page) -> str:
    """The answer in the first sentence, then every case."""
    blocks = [page.title(answer(found)), table(found, page, 1)]
    if found.family > 1:
        blocks += [page.title(f"as one of {found.family} variants, as many as are recorded"), table(found, page, 2)]
    return "\n\n".join([*blocks, page.items(list(legend(found)))])


def answer(found: Sensitivity) -> str:
    """What the queries can tell, in one sentence."""
    alone, among = [each.alone for each in found.expected], [each.among for each in found.expected]
    needed = between([str(ahead.needed) for ahead in alone])
    rest = f", as one of {found.family} variants {chances(among)}" if found.family > 1 else ""
    how = between([each.how for each in found.expected], " or ")
    return (
        f"{found.n} queries in {found.clusters} clusters find a difference of {found.margin:g} in "
        f"{short(found.measure)} with a chance of {chances(alone)}{rest}; {POWER:.0%} takes about {needed}: if a "
        f"variant moves {how}"
    )


def chances(plans: Sequence[Plan]) -> str:
    return between([f"{ahead.chance:.0%}" for ahead in sorted(plans, key=lambda ahead: ahead.chance)])


def between(texts: Sequence[str], word: str = " to ") -> str:
    return word.join(dict.fromkeys(texts))


def table(found: Sensitivity, page: Page, family: int) -> str:
    most = 1.0 if describe(found.measure).unit == "share" else math.inf
    rows = [row(each, each.alone if family == 1 else each.among, most) for each in found.cases]
    return page.table(HEADINGS, rows)


def row(case: Case, ahead: Plan, most: float) -> list[str]:
    """One way to differ; no difference can be greater than `most`."""
    least = "nothing" if ahead.detectable is None or ahead.detectable > most else f"{ahead.detectable:.3f}"
    return [case.how, str(ahead.needed), least, f"{ahead.chance:.0%}", probability(case.smallest_p)]


def legend(found: Sensitivity) -> Iterator[str]:
    yield (
        f"needs: queries, in clusters as these, that find a true difference of the margin ({found.margin:g}, "
        f"verdict.margin) with {POWER:.0%} power at the level {ALPHA:g}; finds: the least difference that these find "
        "so; chance: with which these find one of the margin; least p: if all that moves moves one way"
    )
    yield (
        "of queries: from nothing to everything or back, on balance by the margin; clusters as one: if the queries of "
        "a cluster always move together, which is the worst that can be"
    )
    if found.family > 1:
        yield f"as one of {found.family}: at the level {ALPHA:g} / {found.family}, the first step of Holm's correction"
