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
    reasons = "; ".join(f"{outcome.rule} {outcome.state}" for outcome in against) or "every rule holds"
    return f"{decided.decision}: {run.label} ({run.id}): {reasons}"


def lines(page: Page, run: RunRecord, decided: Decided, outcomes: Sequence[Outcome]) -> Iterator[str]:
    """The decision first, then every rule, what failed first."""
    yield page.title(title(run, decided, outcomes))
    chosen = sorted(outcomes, key=lambda outcome: (ORDER[outcome.state], not outcome.hard))
    rows = [[each.rule, "hard" if each.hard else "statistical", str(each.state)] for each in chosen]
    yield page.table(["rule", "kind", "outcome"], rows, words=(0, 1, 2))
    yield page.items([f"{outcome.rule}: {outcome.why}" for outcome in chosen])


def markdown(run: RunRecord, decided: Decided, outcomes: Sequence[Outcome]) -> str:
    return "\n\n".join(lines(Markdown(), run, decided, outcomes)) + "\n"


def junit(run: RunRecord, decided: Decided, outcomes: Sequence[Outcome]) -> bytes:
    """A test case a rule: what failed is a failure, what cannot be judged an error, or skipped in a run that passes.

    So a report is green just when the exit code is 0.
    """
    kinds = {State.FAILED: "failure", State.CANNOT_JUDGE: "error" if decided.code else "skipped"}
    told = [kinds.get(outcome.state) for outcome in outcomes]
    names = {"failures": "failure", "errors": "error", "skipped": "skipped"}
    counts = {"tests": str(len(outcomes)), **{name: str(told.count(kind)) for name, kind in names.items()}}
    suite = ElementTree.Element("testsuite", {"name": f"ablate gate {clean(run.id)}", **counts})
    for outcome, kind in zip(outcomes, told, strict=True):
        name = {"classname": clean(run.study), "name": clean(outcome.rule)}
        test = ElementTree.SubElement(suite, "testcase", name)
        if kind:
            ElementTree.SubElement(test, kind, {"message": clean(outcome.why)})
    return bytes(ElementTree.tostring(suite, encoding="utf-8", xml_declaration=True))
