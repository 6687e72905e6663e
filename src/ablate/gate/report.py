"""A decision and its reasons go in; lines for a terminal, Markdown for a pull request, JUnit for a CI come out."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from xml.etree import ElementTree

from ablate.gate.decision import Decided
from ablate.gate.outcome import Outcome, State
from ablate.page import Markdown, Page, clean
from ablate.records import RunRecord

ORDER = {State.FAILED: 0, State.CANNOT_JUDGE: 1, State.PASSED: 2}


def title(run: RunRecord, decided: Decided, outcomes: Sequence[Outcome]) -> str:
    """The decision and what it rests on, in one sentence."""
    against = [outcome for outcome in outcomes if outcome.state is not State.PASSED]
    against.sort(key=lambda outcome: (ORDER[outcome.state], not outcome.hard))
    whole = "every rule holds" if outcomes else "the policy has no rule, so that nothing was judged"
    reasons = "; ".join(f"{outcome.rule} {outcome.state}" for outcome in against) or whole
    return f"{decided.decision}: {run.label} ({run.id}): {reasons}"


def lines(page: Page, run: RunRecord, decided: Decided, outcomes: Sequence[Outcome]) -> Iterator[str]:
    """The decision first, then every rule, what failed first."""
    yield page.title(title(run, decided, outcomes))
    if not outcomes:
        return
    chosen = sorted(outcomes, key=lambda outcome: (ORDER[outcome.state], not outcome.hard))
    rows = [[each.rule, "hard" if each.hard else "statistical", str(each.state)] for each in chosen]
    yield page.table(["rule", "kind", "outcome"], rows, words=(0, 1, 2))
    yield page.items([f"{outcome.rule}: {outcome.why}" for outcome in chosen])


def markdown(run: RunRecord, decided: Decided, outcomes: Sequence[Outcome]) -> str:
    return "\n\n".join(lines(Markdown(), run, decided, outcomes)) + "\n"


def junit(run: RunRecord, outcomes: Sequence[Outcome]) -> bytes:
    """A test case a rule: what failed is a failure, what cannot be judged an error."""
    states = [outcome.state for outcome in outcomes]
    failures, errors = (str(states.count(state)) for state in (State.FAILED, State.CANNOT_JUDGE))
    counts = {"tests": str(len(outcomes)), "failures": failures, "errors": errors}
    suite = ElementTree.Element("testsuite", {"name": f"ablate gate {clean(run.id)}", **counts})
    for outcome in outcomes:
        name = {"classname": clean(run.study), "name": clean(outcome.rule)}
        test = ElementTree.SubElement(suite, "testcase", name)
        if outcome.state is not State.PASSED:
            kind = "failure" if outcome.state is State.FAILED else "error"
            ElementTree.SubElement(test, kind, {"message": clean(outcome.why)})
    return bytes(ElementTree.tostring(suite, encoding="utf-8", xml_declaration=True))
