"""Recorded ledgers go in, the mass of queries in every cell, and from cell to cell between two runs, comes out."""

from __future__ import annotations

from collections import defaultdict
from fractions import Fraction

from ablate.errors import NotComparable
from ablate.ledger.stages import STAGES
from ablate.records import RunRecord

Flow = dict[tuple[str, str], Fraction]


def of_run(record: RunRecord) -> dict[str, Fraction]:
    """The mass of queries at every stage, which sums to their number; empty where a run kept no ledger."""
    if not record.ledger:
        return {}
    found = dict.fromkeys(STAGES, Fraction(0))
    for row in record.ledger.values():
        for fact in row["facts"]:
            found[fact["stage"]] += Fraction(1, len(row["facts"]))
    return found


def flow(baseline: RunRecord, variant: RunRecord) -> Flow:
    """Where the evidence stood in the baseline, and where the same evidence stands in the variant: (from, to) -> mass.

    Both sides are followed on the baseline's best alternative, so that the mass is the number of queries, and each
    stage's share of it in the baseline is its cell. Empty where one of the runs kept no ledger.

    Raises:
        NotComparable: the variant's ledger lacks a query or an alternative of the baseline's.

    """
    found: Flow = defaultdict(Fraction)
    if not variant.ledger:
        return {}
    for query, row in baseline.ledger.items():
        stages = row["alternatives"][row["name"]]
        other = variant.ledger.get(query, {"alternatives": {}})["alternatives"].get(row["name"])
        if other is None:
            raise NotComparable(
                f"run {variant.id}: found no ledger of the query {query!r} on the alternative that {baseline.id} "
                "rests on, expected runs on one ground truth; compare runs of one study"
            )
        for pair in zip(stages, other, strict=True):
            found[pair] += Fraction(1, len(stages))
    return dict(found)
