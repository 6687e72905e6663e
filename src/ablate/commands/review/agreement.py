"""compare an expert's verdicts on whole contexts with the measure context/sufficient

Takes a sheet made by `review export --expert` and filled in. The queries on which the two disagree come first.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ablate.review.contexts import Agreement


def arguments(parser: argparse.ArgumentParser) -> None:
    """What the action takes."""
    parser.add_argument("sheet", type=Path, metavar="SHEET", help="the filled sheet, its key beside it")
    parser.add_argument(
        "--dataset", metavar="DIR", help="where the dataset lies now (default: where the runs found it)"
    )
    parser.add_argument("--json", action="store_true", help="print JSON; null is not applicable")


def main(args: argparse.Namespace) -> int:
    """Print where expert and measure disagree, and how often they agree."""
    from ablate.review.contexts import agreement
    from ablate.review.sheet import CONTEXTS, read
    from ablate.review.sides import sides
    from ablate.workspace import workspace

    rows, key = read(args.sheet, CONTEXTS)
    found = agreement(rows, key, sides(workspace(), key.made["runs"], args.dataset))
    if args.json:
        print(json.dumps(data(found), ensure_ascii=False, indent=1))
    else:
        print("\n".join(lines(found)))
    return 0


def data(found: Agreement) -> dict[str, Any]:
    return {
        "disagreements": [asdict(pair) for pair in found.apart],
        "n": len(found.pairs),
        "agreement": found.raw,
        "kappa": found.kappa,
        "cannot_tell": found.undecided,
        "without_verdict": found.silent,
        "without_alternatives": found.unmeasured,
    }


def lines(found: Agreement) -> Iterator[str]:
    """The disagreements, then the agreement and what it does not count."""
    for pair in found.apart:
        note = f": {pair.note}" if pair.note else ""
        yield f"{pair.query}: {pair.who} says {word(pair.expert)}, the measure {word(pair.measure)}{note}"
    if found.raw is None:
        yield "no context has both a verdict and the measure: there is nothing to compare"
    else:
        yield f"agreement {found.raw:.3f} on {len(found.pairs)} contexts, Cohen's kappa {chance(found)}"
    counted = {
        "cannot tell": found.undecided,
        "without a verdict": found.silent,
        "of queries without alternatives, to which the measure does not apply": found.unmeasured,
    }
    yield from (f"not counted: {count} {reason}" for reason, count in counted.items() if count)


def chance(found: Agreement) -> str:
    """Kappa, and why it says little or nothing where one side never varies."""
    if found.kappa is None:
        return f"n/a: both say {word(found.pairs[0].expert)} of every context"
    steady = {
        "the expert": {pair.expert for pair in found.pairs},
        "the measure": {pair.measure for pair in found.pairs},
    }
    same = [who for who, words in steady.items() if len(words) == 1]
    return f"{found.kappa:.3f}" + (f", as always where {same[0]} never varies" if same else "")


def word(sufficient: bool) -> str:
    return "sufficient" if sufficient else "not sufficient"
