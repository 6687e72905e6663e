"""write the verdicts of a filled sheet into a new version of the dataset

The old version stays as it is. A verdict grades its source: relevant 2, partly 1, not relevant 0; a source that names a
known fact becomes one more source of it, sources marked new become a new alternative. Every verdict is kept in
`reviewed` with who, when and why; rows without one change nothing.
"""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Iterator
from datetime import UTC, date, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from ablate.dataset import options

if TYPE_CHECKING:
    from ablate.review.apply import Applied


def arguments(parser: argparse.ArgumentParser) -> None:
    """What the action takes."""
    parser.add_argument("sheet", type=Path, metavar="SHEET", help="the filled sheet, its key beside it")
    parser.add_argument("--dataset", required=True, metavar="DIR", help="the version that the sheet was made from")
    parser.add_argument("--to", required=True, type=Path, metavar="NEWDIR", help="a new folder for the next version")
    parser.add_argument("--version", metavar="NAME", help="its name (default: the number after the old version's)")
    parser.add_argument("--who", default="", metavar="NAME", help="who judged, where a row does not say")
    parser.add_argument("--when", type=day, default=today(), metavar="DATE", help="when it was judged (default today)")
    options.add(parser)


def main(args: argparse.Namespace) -> int:
    """Write the new version; say what is new in it."""
    from ablate.review.apply import apply

    folder = options.folder(args, args.dataset)
    print("\n".join(lines(args.to, apply(args.sheet, folder, args.to, args.version, args.who, args.when))))
    return 0


def lines(to: Path, done: Applied) -> Iterator[str]:
    """What changed, and what did not."""
    words = ", ".join(f"{count} {word}" for word, count in sorted(done.verdicts.items()))
    yield f"{to}: {sum(done.verdicts.values())} verdicts on {done.queries} queries ({words})"
    if done.joined or done.opened:
        yield f"{done.joined} sources joined a known fact, {done.opened} alternatives are new"
    if done.whole:
        yield f"{done.whole} of them are whole texts, all of which a variant must hold: a quote is fairer to it"
    if done.graded:
        yield (
            f"the evidence of {done.graded} queries was graded 2 beside their judged sources, so that recall, "
            "precision, nDCG and MRR are of both"
        )
    if done.converted:
        yield "the ground truth was made of the qrels, which it replaces, with the queries that they judge"
    if done.silent:
        yield f"{done.silent} rows without a verdict changed nothing"
    yield str(done.version)
    again = ["python", "-m", "ablate", "rescore", "--dataset", str(to), *done.runs]
    yield f"the runs on this version: {shlex.join(again)}"


def day(text: str) -> str:
    """An ISO date or time, as it is written."""
    from ablate.moment import moment

    if moment(text) is None:
        raise argparse.ArgumentTypeError(f"found {text!r}, expected an ISO date (2025-06-01)")
    return text


def today() -> str:
    return date.isoformat(datetime.now(UTC).date())
