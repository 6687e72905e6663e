"""What was declared before a study and what its runs gave go in, one word a variant comes out."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from ablate.comparison import BY_DOCUMENT, RESHAPING, SUFFICIENT, at_budget, headline
from ablate.earlier import filled
from ablate.errors import ConfigError
from ablate.label_risk import LabelRisk, label_risk
from ablate.measures import HIGHER, LOWER, OF_A_RUN, OPEN, describe
from ablate.pipeline import STAGES
from ablate.records import RunRecord, current
from ablate.statistics import Differences, Verdict, Word, differences, interval, sign_flip, verdicts
from ablate.statistics.verdict import ALPHA


@dataclass(frozen=True)
class Declared:
    """What a study is judged by, declared before it runs and part of its name.

    `primary` is the measure that the words are about; None stands for the one that fits what a variant changes.
    `margin` is the least difference that matters, in the measure's unit.

    Raises:
        ConfigError: the margin is no finite number above 0, or no measure is named `primary`.

    """

    primary: str | None
    margin: float

    def __post_init__(self) -> None:
        if not math.isfinite(self.margin) or self.margin <= 0:
            raise ConfigError(f"margin: found {self.margin}, expected a number above 0; say what difference matters")
        if self.primary is not None and (wrong := unfit(self.primary)):
            raise ConfigError(f"primary: found {self.primary!r}, {wrong}")


@dataclass(frozen=True)
class Finding:
    """What is known of one variant: the verdict on its primary `measure`, and what a good mean could hide.

    `cohorts` has a verdict for every cohort that the success contract calls critical; `lost` are the critical queries
    that the baseline answers and the variant does not.
    """

    measure: str
    verdict: Verdict
    cohorts: Mapping[str, Verdict] = field(default_factory=dict)
    lost: tuple[str, ...] = ()

    @property
    def costs(self) -> list[str]:
        """The critical cohorts that are worse, or whose mean gets worse by more than the margin."""
        sign = -1 if direction(self.measure) == LOWER else 1
        cohorts = self.cohorts.items()
        return [name for name, found in cohorts if found.word == Word.WORSE or sign * found.difference < -found.margin]


def direction(measure: str) -> str | None:
    """Whether a measure is better when `higher` or `lower`; None where it is neither, or there is none of that name."""
    try:
        better = describe(measure).better
    except KeyError:
        return None
    return better if better in (HIGHER, LOWER) else None


def unfit(measure: str) -> str | None:
    """Why no word can be about a measure, as the end of a sentence; None: one can."""
    if direction(measure) is None:
        wanted = "a measure that is better when higher or lower"
    elif measure.startswith((*OF_A_RUN, *OPEN)):
        wanted = "a measure of which every query has a value on both sides"
    else:
        return None
    return f"expected {wanted}, such as context/sufficient; metrics.json lists those of a run"


def declared(record: RunRecord) -> Declared | None:
    """What was declared for a run; None where it was recorded before anything was, or with what gives no word."""
    if not isinstance(record.config.get("verdict"), Mapping):
        return None
    node = filled(record.config, "verdict")["verdict"]
    if node.get("primary") and unfit(node["primary"]):
        return None
    return Declared(node.get("primary"), float(node["margin"]))


def primary(baseline: RunRecord, variant: RunRecord) -> str:
    """The measure that the word for a variant is about.

    It is what was declared. Otherwise evidence in the context, but coverage at the budget for what decides how much
    text a context holds, and documents where nothing is known about evidence.
    """
    chosen = declared(baseline)
    if chosen and chosen.primary:
        return chosen.primary
    fair = at_budget(baseline) if variant.component in RESHAPING else None
    return fair if fair and baseline.mean(fair) is not None else headline(baseline)


def pair(
    baseline: RunRecord, variant: RunRecord, measure: str, among: Collection[str] | None = None
) -> Differences | None:
    """The paired differences of `measure` over the queries `among`; None where it applies to none of both."""
    before, after = baseline.values(measure), variant.values(measure)
    if among is not None or before.keys() != after.keys():
        chosen = shared(baseline, variant, measure, among)
        before, after = ({query: values[query] for query in chosen} for values in (before, after))
    return differences(before, after, baseline.clusters) if before else None


def exploratory(
    baseline: RunRecord, variant: RunRecord, measure: str, among: Collection[str] | None = None
) -> tuple[float | None, float | None]:
    """The 95 % interval of a difference that nobody asked about beforehand: no word comes of it."""
    found = pair(baseline, variant, measure, among)
    return interval(found, sign_flip(found), ALPHA) if found else (None, None)


def shared(baseline: RunRecord, variant: RunRecord, measure: str, among: Collection[str] | None = None) -> list[str]:
    """The queries `among` to which a measure applies on both sides, in the baseline's order."""
    other = variant.values(measure)
    return [query for query in baseline.values(measure) if query in other and (among is None or query in among)]


def sound(baseline: RunRecord, variant: RunRecord) -> Collection[str] | None:
    """Which queries may give a verdict, all if None: where any chunk of a document counts, none on how text is cut."""
    whole = baseline.groups.get(BY_DOCUMENT)
    return baseline.queries.keys() - whole if whole and variant.component in RESHAPING else None


def judged(records: Iterable[RunRecord]) -> dict[str, Finding]:
    """Run id -> what is known of every finished variant of one study; `records` are all that were ever recorded.

    The variants are one family, for each measure that some of them are about and for each critical cohort: one more
    variant, and the verdicts of all are new.
    """
    everything = list(records)
    bases = {record.id: record for record in everything if record.finished}
    ran = (record for record in current(everything) if record.finished and record.component in STAGES)
    pairs = [(bases[record.baseline], record) for record in ran if record.baseline in bases]
    pairs = [(baseline, variant) for baseline, variant in pairs if declared(baseline)]
    words = family(pairs)
    cohorts = sorted({name for baseline, _ in pairs for name in baseline.facts.get("critical_cohorts") or ()})
    inside = {name: family(pairs, name) for name in cohorts}
    return {
        variant.id: Finding(
            primary(baseline, variant),
            words[variant.id],
            {name: found[variant.id] for name, found in inside.items() if variant.id in found},
            lost(baseline, variant),
        )
        for baseline, variant in pairs
        if variant.id in words
    }


def risk(baseline: RunRecord, variant: RunRecord, finding: Finding) -> LabelRisk | None:
    """How few labels would turn a verdict; None where there is nothing to turn, or that is not known."""
    queries = shared(baseline, variant, finding.measure, sound(baseline, variant))
    return label_risk(baseline, variant, queries, finding.measure, finding.verdict)


def family(pairs: Sequence[tuple[RunRecord, RunRecord]], cohort: str | None = None) -> dict[str, Verdict]:
    """Run id -> the verdict on its primary measure, over all queries or those of a cohort; Holm over all of them."""
    if not pairs:
        return {}
    found, beside, chosen = {}, {}, declared(pairs[0][0])
    assert chosen is not None
    for baseline, variant in pairs:
        measure, among = primary(baseline, variant), sound(baseline, variant)
        if cohort is not None:
            mine = member(baseline, cohort)
            among = mine if among is None else mine.intersection(among)
        if (differing := pair(baseline, variant, measure, among)) is None:
            continue
        found[variant.id] = differing
        if measure != SUFFICIENT and (other := pair(baseline, variant, SUFFICIENT, among)):
            beside[variant.id] = other
    better = direction(primary(*pairs[0])) or HIGHER
    return verdicts(found, chosen.margin, beside, better)


def member(baseline: RunRecord, cohort: str) -> frozenset[str]:
    return baseline.groups.get(cohort, frozenset())


def lost(baseline: RunRecord, variant: RunRecord) -> tuple[str, ...]:
    """The critical queries whose evidence the baseline brings whole and the variant does not."""
    before, after = baseline.values(SUFFICIENT), variant.values(SUFFICIENT)
    critical = (query for query, row in baseline.queries.items() if row.get("critical"))
    return tuple(query for query in critical if before.get(query) == 1 and after.get(query) == 0)
