"""What is said about runs: from records to paired differences and the sentences that tell them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from operator import gt, lt
from typing import TYPE_CHECKING, Any

from ablate.page import milliseconds, signed
from ablate.records import RunRecord, labels
from ablate.statistics.words import Word

if TYPE_CHECKING:
    from ablate.statistics import Verdict
    from ablate.verdict import Finding

SUFFICIENT, COVERAGE, COMPLETION = "context/sufficient", "context/coverage", "retrieval/completion_rr"
DOCUMENT_NDCG, DOCUMENT_RECALL = "doc/ndcg_at_10", "doc/recall_at_10"
TOKENS, VIOLATIONS, EXPOSED = "context/tokens", "acl/violations", "acl/exposure"
PASSED = "acl/candidate_violations"
P50, P50_BEFORE = "latency/total_p50", "latency/baseline_p50"
ANN_RECALL = "retrieval/ann_recall"

PROVISIONAL = 0.1
"""By how much the judged shares of two sides may differ before what nobody has judged may explain their difference."""

BY_DOCUMENT = "granularity=document"
"""The cohort of queries some of whose evidence is whole documents."""

RESHAPING = ("chunker", "packer")
"""What decides how much text k chunks or a context are: such variants are compared on equal numbers of tokens."""


@dataclass(frozen=True, slots=True)
class Paired:
    """One measure on the queries that both sides have: two means, and how many queries differ in which direction."""

    measure: str
    before: float
    after: float
    n: int
    higher: int
    lower: int

    @property
    def difference(self) -> float:
        return self.after - self.before


def paired(baseline: RunRecord, variant: RunRecord, measure: str, among: Iterable[str] | None = None) -> Paired | None:
    """The paired difference of `measure` over the queries `among` (default all); None where it applies to none."""
    left, right = baseline.values(measure), variant.values(measure)
    if among is not None or left.keys() != right.keys():
        among = [query for query in (left if among is None else among) if query in left and query in right]
        left, right = ({query: values[query] for query in among} for values in (left, right))
    if not left:
        return None
    before, after, n = list(left.values()), [right[query] for query in left], len(left)
    higher, lower = (sum(map(moves, after, before)) for moves in (gt, lt))
    return Paired(measure, sum(before) / n, sum(after) / n, n, higher, lower)


def headline(record: RunRecord) -> str:
    """The measure that comes first: evidence in the context, or documents where nothing is known about evidence."""
    return SUFFICIENT if record.mean(SUFFICIENT) is not None else DOCUMENT_NDCG


def second(record: RunRecord) -> str:
    """The measure that always stands beside the headline."""
    return COVERAGE if headline(record) == SUFFICIENT else DOCUMENT_RECALL


def at_budget(record: RunRecord) -> str | None:
    """Coverage at the study's budget of tokens; None for a run that was recorded without a budget."""
    budget = record.config.get("budget")
    return None if budget is None else f"retrieval/coverage_at_{budget}_tokens"


def judged_at(record: RunRecord) -> str:
    """The share of what the reader is handed, k chunks, about which the ground truth says something."""
    return f"retrieval/judged_at_{record.config.get('k')}"


def at_equal_tokens(baseline: RunRecord, variant: RunRecord) -> Paired | None:
    """What a chunker or packer is compared on: coverage at the budget, where evidence is spans.

    A whole document is met by any chunk of it, so that it says nothing about how text is cut or packed.
    """
    measure = at_budget(baseline)
    if measure is None or variant.component not in RESHAPING:
        return None
    return paired(baseline, variant, measure, [q for q in baseline.queries if not by_document(baseline.queries[q])])


def inert(baseline: RunRecord, variant: RunRecord) -> bool:
    """Whether every ranking and context of the variant equals the baseline's."""
    prints = [record.fingerprints.get("ranking") for record in (baseline, variant)]
    if all(prints):
        return prints[0] == prints[1]
    return bool(baseline.hashes) and baseline.hashes == variant.hashes


def told(baseline: RunRecord) -> tuple[str, str]:
    """The measures that are told of a query that moved."""
    return (COVERAGE, COMPLETION) if headline(baseline) == SUFFICIENT else (DOCUMENT_NDCG, DOCUMENT_RECALL)


def moved(baseline: RunRecord, variant: RunRecord) -> list[tuple[str, dict[str, tuple[float, float]]]]:
    """Queries whose values differ, most first: id and, by measure, the value before and after."""
    sides = {measure: (baseline.values(measure), variant.values(measure)) for measure in told(baseline)}
    found = []
    for query in baseline.queries:
        values = {
            m: (left[query], right[query]) for m, (left, right) in sides.items() if query in left and query in right
        }
        if any(before != after for before, after in values.values()):
            found.append((query, values))
    return sorted(found, key=lambda row: ([-abs(after - before) for before, after in row[1].values()], row[0]))


def by_cohort(baseline: RunRecord, variant: RunRecord) -> dict[str, Paired]:
    """The headline's paired difference in every cohort that is averaged, and for every intent."""
    measure = headline(baseline)
    pairs = {cohort: paired(baseline, variant, measure, queries) for cohort, queries in members(baseline).items()}
    return {cohort: pair for cohort, pair in pairs.items() if pair}


def members(baseline: RunRecord) -> dict[str, Collection[str]]:
    """The queries of every cohort that is averaged, and of every intent."""
    known = baseline.measures.get(headline(baseline), {})
    names = [*known.get("cohorts", {}), *(f"intent={intent}" for intent in known.get("intents", {}))]
    return {name: sorted(baseline.groups.get(name, ())) for name in names}


def outcome(record: RunRecord, baseline: RunRecord | None, finding: Finding | None = None) -> str:
    """What came out of one run, as the end of a sentence."""
    if not record.finished:
        return f"FAILED: {record.error or 'no reason was recorded'}"
    said = alone(record) if baseline is None else change(record, baseline, finding)
    return f"{found}; {said}" if (found := forbidden(record)) else said


def forbidden(record: RunRecord) -> str:
    """What a run gave out that the ACL denies, before anything else is said; nothing where there is nothing."""
    shown, passed = (total(record, measure) for measure in (VIOLATIONS, PASSED))
    if shown:
        return f"{shown} FORBIDDEN documents handed over"
    return f"{passed} FORBIDDEN documents among the candidates" if passed else ""


def total(record: RunRecord, measure: str) -> int:
    """The sum of a measure that counts."""
    return round(sum(record.values(measure).values()))


def change(record: RunRecord, baseline: RunRecord, finding: Finding | None = None) -> str:
    """What a variant changed, access aside."""
    if inert(baseline, record):
        return f"identical to its baseline on each of {record.size} queries (inert){time(baseline, record)}"
    pair = paired(baseline, record, headline(baseline))
    if pair is None:
        return f"{short(headline(baseline))} applies to no query"
    tokens = paired(baseline, record, TOKENS)
    more = f"{signed(tokens.difference, 0)} tokens" if tokens else ""
    said = [*word(finding), sides(pair), more, fair(baseline, record), judged(baseline, record)]
    return "; ".join(filter(None, said)) + time(baseline, record)


def word(finding: Finding | None) -> Iterator[str]:
    """The verdict on a variant, with the interval that says the same, and what a good mean could hide."""
    if finding is None:
        return
    found = finding.verdict
    more = f", needs about {found.needed} queries" if lacking(found) else ""
    yield f"{found.word} in {short(finding.measure)}: {span(found)}{more}"
    yield from harm(finding)


def lacking(found: Verdict) -> bool:
    """Whether more queries would tell; with enough for the margin there is only no proof that the effect is smaller."""
    return found.word == Word.CANNOT_TELL and found.needed is not None and found.needed > found.n


def harm(finding: Finding) -> Iterator[str]:
    """What a variant costs those who were called critical beforehand."""
    if lost := finding.lost:
        yield f"loses {len(lost)} critical {'query' if len(lost) == 1 else 'queries'} ({some(lost)})"
    for cohort in finding.costs:
        yield f"costs {cohort} {signed(finding.cohorts[cohort].difference)}"


def some(names: Sequence[str], most: int = 4) -> str:
    """The first names, and how many more there are."""
    rest = len(names) - most
    return ", ".join(names[:most]) + (f" and {rest} more" if rest > 0 else "")


def span(found: Verdict) -> str:
    """A difference and its interval: `+0.083 (+0.012 to +0.154, p 0.021 among 19 variants)`."""
    low, high = found.low, found.high
    between = "no interval" if low is None or high is None else f"{signed(low)} to {signed(high)}"
    many = "1 variant" if found.family == 1 else f"{found.family} variants"
    return f"{signed(found.difference)} ({between}, p {probability(found.p_adjusted)} among {many})"


def probability(p: float) -> str:
    return "<.001" if p < 0.001 else f"{p:.3f}"


def sides(pair: Paired) -> str:
    """Both means of a measure, and on how many queries the variant is better or worse."""
    return (
        f"{short(pair.measure)} {pair.before:.3f} -> {pair.after:.3f} ({signed(pair.difference)}), "
        f"better on {pair.higher} queries, worse on {pair.lower}, of {pair.n}"
    )


def judged(baseline: RunRecord, record: RunRecord) -> str:
    """Of how much of either side's first k chunks the ground truth says something."""
    pair = paired(baseline, record, judged_at(baseline))
    return f"judged {pair.before:.2f} -> {pair.after:.2f}" if pair else ""


def fair(baseline: RunRecord, record: RunRecord) -> str:
    """The comparison on equal tokens, for variants that need one."""
    pair = at_equal_tokens(baseline, record)
    return sides(pair) if pair else ""


def alone(record: RunRecord) -> str:
    """The values of a run that nothing is compared with."""
    values = [(measure, record.mean(measure)) for measure in (headline(record), second(record))]
    parts = [f"{short(measure)} {mean:.3f}" for measure, mean in values if mean is not None]
    parts.append(f"of {len(record.values(headline(record)))} queries")
    said = ", ".join(parts)
    if (tokens := record.mean(TOKENS)) is not None:
        said += f"; {tokens:.0f} tokens"
    if (p50 := record.mean(P50)) is not None:
        said += f"; p50 {milliseconds(p50)} ms"
    return said if record.is_baseline else f"{said}; no run of its baseline"


def time(baseline: RunRecord, record: RunRecord) -> str:
    """Latency of both sides, where one session measured both."""
    before, after = record.mean(P50_BEFORE), record.mean(P50)
    return "" if before is None or after is None else f"; p50 {milliseconds(before)} -> {milliseconds(after)} ms"


def remarks(label: str, record: RunRecord, baseline: RunRecord | None) -> Iterator[str]:
    """What must be known beside the numbers of one run."""
    if not record.finished:
        return
    if not record.values(VIOLATIONS):
        yield "access was not checked: no document carries an ACL"
    elif not sum(record.values(EXPOSED).values()):
        yield "no query was exposed: without a forbidden chunk within depth, 0 access violations show nothing"
    if baseline is None and headline(record) == SUFFICIENT and (whole := whole_documents(record)):
        yield f"{whole} queries rest on whole documents, any chunk of which counts: their coverage is an upper bound"
    yield from left_out(label, record)
    yield from approximate(label, record)
    if baseline is None:
        return
    yield from provisional(label, record, baseline)
    if record.fingerprints.get("code") != baseline.fingerprints.get("code"):
        yield f"{label}: run by other code than its baseline: a difference may be the code's"
    if record.component == "filter":
        yield f"{label}: declared filter: whoever wrote the filter of a query knew its answer"
    different = sum(record.pools.get(query) != pool for query, pool in baseline.pools.items())
    if different:
        yield f"{label}: different candidate pool on {different} queries: ndcg is not comparable with the baseline's"


def left_out(label: str, record: RunRecord) -> Iterator[str]:
    """Which queries are in no number."""
    counts = record.counts
    if excluded := counts.get("queries_excluded"):
        yield f"{excluded} queries are excluded (their evidence moved and was not resolved)"
    if removed := counts.get("queries_removed"):
        yield f"{label}: {removed} queries that were asked are not in this version of the ground truth"
    if missing := counts.get("queries_without_ranking"):
        yield f"{label}: {missing} queries of this version were not asked and are not scored"


def provisional(label: str, record: RunRecord, baseline: RunRecord) -> Iterator[str]:
    """That more of one side's chunks is judged than of the other's, and how the rest comes to be."""
    pair = paired(baseline, record, judged_at(baseline))
    if pair and abs(round(pair.difference, 9)) > PROVISIONAL:
        yield (
            f"{label}: provisional, for {short(pair.measure)} is {pair.before:.2f} -> {pair.after:.2f} and what nobody "
            f"has judged counts as useless; python -m ablate review export {baseline.id} {record.id} --out review.csv"
        )


def approximate(label: str, record: RunRecord) -> Iterator[str]:
    """What an index that is not exact has missed."""
    if found := record.values(ANN_RECALL).values():
        share = f"{sum(found) / len(found):.3f} of what exact search finds, at worst {min(found):.3f} of a query's"
        yield f"{label}: its index is approximate: it found {share} ({ANN_RECALL})"


def whole_documents(record: RunRecord) -> int:
    """How many queries rest on whole documents."""
    return sum(by_document(record.queries[query]) for query in record.values(COVERAGE))


def by_document(query: Mapping[str, Any]) -> bool:
    """Whether some evidence of a line of `queries.jsonl` is a whole document, which any chunk of it supports."""
    return BY_DOCUMENT in labels(query)


def short(measure: str) -> str:
    """A measure as a sentence names it: `sufficient`, but `doc/ndcg_at_10`."""
    return measure.removeprefix("context/").removeprefix("retrieval/")
