"""Recorded ledgers go in, what is said of them comes out: where each run lost evidence, and what a variant moved."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

from ablate.errors import NotComparable
from ablate.ledger.advice import next_test
from ablate.ledger.flow import flow
from ablate.ledger.stages import STAGES
from ablate.page import Page
from ablate.records import RunRecord

DELIVERED = STAGES[-1]

FLOWS = 4
"""How many of the largest flows are told of a variant."""

Pairs = Sequence[tuple[RunRecord, RunRecord]]


def losses(page: Page, records: Sequence[RunRecord], labels: Mapping[str, str]) -> Iterator[str]:
    """A row a run, a column for each stage that lost something: in queries, which the row sums to."""
    known = {record.id: record.losses for record in records if record.finished}
    rows = [(record, known[record.id]) for record in records if known.get(record.id)]
    stages = [stage for stage in STAGES if stage == DELIVERED or any(cells[stage] for _, cells in rows)]
    if rows:
        yield page.title("Where the evidence was lost, in queries, each shared among the facts it needs")
        cells = [[labels[record.id], *(f"{masses[stage]:.1f}" for stage in stages)] for record, masses in rows]
        yield page.table(["run", *stages], cells)


def flows(page: Page, pairs: Pairs, labels: Mapping[str, str]) -> Iterator[str]:
    """What each variant moved from stage to stage, and what to test next."""
    said = [f"{labels[variant.id]}: {moves}" for baseline, variant in pairs if (moves := moved(baseline, variant))]
    if said:
        yield page.title("What moved, in queries of the baseline's evidence")
        yield page.items(said)


def moved(baseline: RunRecord, variant: RunRecord) -> str:
    """The largest flows between two stages; nothing where one run kept no ledger, or nothing moved."""
    try:
        found = flow(baseline, variant)
    except NotComparable:
        return ""
    moves = [(mass, *ends) for ends, mass in found.items() if ends[0] != ends[1]]
    moves.sort(key=lambda move: (-move[0], STAGES.index(move[1]), STAGES.index(move[2])))
    return ", ".join(f"{one} to {other} {float(mass):.1f}" for mass, one, other in moves[:FLOWS])


def advice(lead: RunRecord, pairs: Pairs, tried: Collection[str]) -> str:
    """What to test next on the first run's largest loss, without what was `tried`; of the pairs, which brought most."""
    said = next_test(lead, tried) or ""
    cells = lead.losses
    largest = max((stage for stage in cells if stage != DELIVERED), key=lambda stage: cells[stage], default="")
    brought = [
        (flow(lead, variant).get((largest, DELIVERED), 0), variant.label)
        for base, variant in pairs
        if base.id == lead.id and variant.ledger
    ]
    mass, best = max(brought, default=(0, ""))
    return f"{said}; of what was tried {best} brought most of it back ({float(mass):.1f})" if mass else said


def blamed(record: RunRecord) -> str:
    """How many blames of a run were verified."""
    blames = [fact["blame"] for row in record.ledger.values() for fact in row["facts"] if "blame" in fact]
    if not blames:
        return ""
    sure = blames.count("verified")
    rest = "; the rest are suspected" if sure < len(blames) else ""
    return (
        f"{sure} of {len(blames)} lost facts are blamed on a stage by proof: with that stage alone made perfect the "
        f"fact reaches the context{rest}"
    )
