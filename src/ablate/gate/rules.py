"""A run, what it is measured against and a policy go in; what every rule of the policy says comes out."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass

from ablate.comparison import (
    EXPOSED,
    P50_BEFORE,
    PASSED,
    SUFFICIENT,
    TOKENS,
    VIOLATIONS,
    judged_at,
    paired,
    short,
    total,
)
from ablate.frontier import RATIO
from ablate.gate.outcome import Outcome, State
from ablate.gate.policy import Policy
from ablate.label_risk import EVIDENCE, Side
from ablate.measures import HIGHER
from ablate.page import milliseconds, signed
from ablate.records import RunRecord
from ablate.statistics import Word, not_worse
from ablate.verdict import direction, member, pair, shared, sound

P95 = "latency/total_p95"
FEWEST_TIMED = 72
"""So many queries give the interval of p95 an upper end, at 2.5 % beyond either: 0.95 ** 72 < 0.025."""

FEW = 10
"""Labels that a person gives in an hour: if they could turn a rule, the ground truth is looked at first."""

Again = Callable[[RunRecord], tuple[bool | None, str]]
"""Runs a run again: whether it is reproduced, None where that cannot be told, and the sentence that says so."""


@dataclass(frozen=True)
class Case:
    """What is judged: a run, the run that it is measured against, the policy, and how to run it again."""

    run: RunRecord
    base: RunRecord
    policy: Policy
    again: Again


def outcomes(case: Case) -> list[Outcome]:
    """Every rule of the policy, hard ones first."""
    hard = (access, ingestion, critical_queries, incidents, reproducible)
    statistical = (means, cohorts, judged, tokens, latency, slower)
    return [outcome for rule in (*hard, *statistical) for outcome in rule(case)]


def access(case: Case) -> Iterator[Outcome]:
    shown, passed = total(case.run, VIOLATIONS), total(case.run, PASSED)
    exposed = sum(value > 0 for value in case.run.values(EXPOSED).values())
    said = f"{shown} forbidden documents handed over, {passed} among candidates, {exposed} queries exposed"
    if shown or passed:
        state = State.FAILED
    elif case.policy.access_exposed and not exposed:
        state, said = State.CANNOT_JUDGE, "no query was exposed to a forbidden document, so that nothing was tested"
    else:
        state = State.PASSED
    if not case.run.values(VIOLATIONS):
        said = "access was not checked: no document carries an ACL"
    yield Outcome("access violations", True, state, said)


def ingestion(case: Case) -> Iterator[Outcome]:
    wanted = (
        ("documents indexed", "ingestion/coverage", case.policy.ingestion),
        ("evidence ingested", "ingestion/units_verbatim", case.policy.evidence),
    )
    for rule, measure, least in wanted:
        if least is not None:
            found = case.run.mean(measure)
            if found is None:
                yield Outcome(rule, True, State.CANNOT_JUDGE, f"{measure} was not measured")
            else:
                state = State.PASSED if found >= least else State.FAILED
                yield Outcome(rule, True, state, f"{measure} is {found:.4g}, at least {least:g} is asked for")


def critical_queries(case: Case) -> Iterator[Outcome]:
    if case.policy.critical_queries:
        chosen = [query for query, row in case.base.queries.items() if row.get("critical")]
        yield none_lost("critical queries", "critical queries", case, chosen)


def incidents(case: Case) -> Iterator[Outcome]:
    if case.policy.incidents:
        chosen = [query for query, row in case.base.queries.items() if row.get("case")]
        yield none_lost("closed incidents", "closed incident cases", case, chosen)


def none_lost(rule: str, what: str, case: Case, chosen: Sequence[str]) -> Outcome:
    """None of the queries that the other run answers may be without its evidence now."""
    before, after = case.base.values(SUFFICIENT), case.run.values(SUFFICIENT)
    if chosen and not before:
        said = f"{len(chosen)} {what}, and of none is it known what evidence it needs"
        return Outcome(rule, True, State.CANNOT_JUDGE, said)
    held = [query for query in chosen if before.get(query) == 1]
    lost = [query for query in held if after.get(query) != 1]
    if lost:
        return Outcome(rule, True, State.FAILED, f"{len(lost)} of {len(held)} {what} are lost: {', '.join(lost[:5])}")
    return Outcome(rule, True, State.PASSED, f"none of the {len(held)} {what} that were answered is lost")


def reproducible(case: Case) -> Iterator[Outcome]:
    if case.policy.reproducible:
        same, said = case.again(case.run)
        state = State.CANNOT_JUDGE if same is None else State.PASSED if same else State.FAILED
        yield Outcome("reproducible", True, state, said)


def means(case: Case) -> Iterator[Outcome]:
    for measure, margin in case.policy.not_worse.items():
        yield bounded(f"{short(measure)} not worse", case, measure, margin)


def cohorts(case: Case) -> Iterator[Outcome]:
    if case.policy.critical_cohorts is not None:
        for cohort in case.base.facts.get("critical_cohorts") or ():
            among = member(case.base, cohort)
            yield bounded(f"{cohort} not worse", case, SUFFICIENT, case.policy.critical_cohorts, among)


def bounded(rule: str, case: Case, measure: str, margin: float, among: Collection[str] | None = None) -> Outcome:
    """Whether a measure is shown not to have fallen by more than the margin; with the queries that fell."""
    among = fit(case, among)
    found = pair(case.base, case.run, measure, among)
    if found is None:
        known = shared(case.base, case.run, measure)
        why = (
            f"in all queries any chunk of a document counts, which tells nothing about a {case.run.component}"
            if known and not fit(case, known)
            else f"{measure} applies to no such query of both runs"
        )
        return Outcome(rule, False, State.CANNOT_JUDGE, why)
    better = direction(measure) or HIGHER
    seen = not_worse(found, margin, better)
    united = ", if questions of one cluster move together" if seen.clusters < seen.n else ""
    bound = "no bound" if seen.bound is None else f"at worst {signed(seen.bound)}{united}"
    n = f"{seen.n} queries in {seen.clusters} clusters"
    said = f"{signed(seen.difference)} ({bound}; {margin:g} may be lost) on {n}"
    state = {Word.NOT_WORSE: State.PASSED, Word.CANNOT_JUDGE: State.CANNOT_JUDGE}.get(seen.word, State.FAILED)
    if state is State.CANNOT_JUDGE:
        said += f"; about {seen.needed} queries are needed"
    if state is not State.PASSED:
        said += fallen(case, measure, among) + labels(case, measure, margin, among)
    return Outcome(rule, False, state, said)


def fit(case: Case, among: Collection[str] | None) -> Collection[str] | None:
    """Those of the queries that say something about what the run changes; None: all."""
    may = sound(case.base, case.run)
    return among if may is None else may if among is None else frozenset(may).intersection(among)


def fallen(case: Case, measure: str, among: Collection[str] | None) -> str:
    """The queries whose value is worse."""
    before, after = case.base.values(measure), case.run.values(measure)
    sign = 1 if direction(measure) == HIGHER else -1
    worse = [q for q in shared(case.base, case.run, measure, among) if sign * after[q] < sign * before[q]]
    return f"; worse on {len(worse)}: {', '.join(worse[:5])}" if worse else ""


def labels(case: Case, measure: str, margin: float, among: Collection[str] | None) -> str:
    """What to do first, if few labels of what nobody has judged could show that nothing is lost."""
    queries = shared(case.base, case.run, measure, among)
    known = all("unjudged" in record.queries[query] for record in (case.base, case.run) for query in queries)
    if not measure.startswith(EVIDENCE) or not known:
        return ""
    side = Side(case.base, case.run, queries, measure, 1)
    for given in range(1, min(FEW, len(side.order)) + 1):
        if not_worse(side.after(given), margin).word == Word.NOT_WORSE:
            return (
                f"; {given} label{'s' if given > 1 else ''} could turn this: check the ground truth before rolling back"
            )
    return ""


def judged(case: Case) -> Iterator[Outcome]:
    if case.policy.judged is None:
        return
    found = paired(case.base, case.run, judged_at(case.run))
    if found is None:
        yield Outcome("judged", False, State.CANNOT_JUDGE, "how much is judged was not measured")
        return
    apart = abs(round(found.difference, 9)) > case.policy.judged
    more = f", more than {case.policy.judged:g} apart: send the rest to a person (review export)" if apart else ""
    said = f"the ground truth speaks of {found.before:.2f} and {found.after:.2f} of the first chunks{more}"
    yield Outcome("judged", False, State.CANNOT_JUDGE if apart else State.PASSED, said)


def tokens(case: Case) -> Iterator[Outcome]:
    if case.policy.tokens is not None:
        found = case.run.mean(TOKENS)
        if found is None:
            yield Outcome("tokens", False, State.CANNOT_JUDGE, f"{TOKENS} was not measured")
            return
        state = State.PASSED if found <= case.policy.tokens else State.FAILED
        yield Outcome("tokens", False, state, f"{found:.0f} tokens a context, at most {case.policy.tokens:g}")


def latency(case: Case) -> Iterator[Outcome]:
    """p95 within the budget by its interval: few queries say little about the slowest of twenty."""
    most = case.policy.latency_p95_ms
    if most is None:
        return
    measured = case.run.measures.get(P95, {})
    n, (low, high) = measured.get("n") or 0, measured.get("interval") or (None, None)
    if high is not None and high <= most:
        state, said = State.PASSED, f"p95 is at most {milliseconds(high)} ms, {most:g} is allowed"
    elif low is not None and low > most:
        state, said = State.FAILED, f"p95 is at least {milliseconds(low)} ms, {most:g} is allowed"
    else:
        more = f"time at least {FEWEST_TIMED}" if n < FEWEST_TIMED else "time more"
        state, said = State.CANNOT_JUDGE, f"{n} timed queries cannot tell whether p95 is within {most:g} ms; {more}"
    yield Outcome("latency p95", False, state, said)


def slower(case: Case) -> Iterator[Outcome]:
    """How many times its baseline's time, where one session measured both."""
    most = case.policy.latency_times
    if most is None:
        return
    ratio = case.run.measures.get(RATIO, {})
    low, high = (None if end is None else math.exp(end) for end in ratio.get("interval") or (None, None))
    if case.run.mean(P50_BEFORE) is None or case.run.baseline != case.base.id:
        state, said = State.CANNOT_JUDGE, "both sides were not timed in one session: a difference in time is not known"
    elif high is not None and high <= most:
        state, said = State.PASSED, f"the median query takes at most {high:.2f} times as long, {most:g} is allowed"
    elif low is not None and low > most:
        state, said = State.FAILED, f"the median query takes at least {low:.2f} times as long, {most:g} is allowed"
    else:
        state, said = State.CANNOT_JUDGE, f"{ratio.get('n') or 0} timed queries cannot tell; time more"
    yield Outcome("latency against baseline", False, state, said)
