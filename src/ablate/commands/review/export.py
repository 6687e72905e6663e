"""write what nobody has judged among the first K chunks of two runs as a blind sheet

The sheet holds the questions and the texts that either run found and about which the ground truth says nothing, in an
order that is drawn, without ranks, scores or systems. Whoever gets it reads these texts: give --principals to send only
what that person may read. Beside it lies FILE.key.json, by which `review apply` knows that only the columns to fill in
were filled in.

To fill in: verdict (relevant, partly, not relevant, cannot tell; or in Russian); quote, the shortest passage of the
text that says it, copied from there (empty: the whole text); for a relevant source that is one more for a known fact:
alternative, its number, and fact, its name; for sources that are enough together: alternative `new` (`new A`, `new B`
where a question gets several) and a fact each, the same name for sources of which any one will do; who, and note.
"""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ablate.dataset.options import flags


def arguments(parser: argparse.ArgumentParser) -> None:
    """What the action takes."""
    parser.add_argument("runs", nargs=2, metavar="RUN", help="run ids, beginnings of them, or MLflow run ids")
    parser.add_argument("--out", required=True, type=Path, metavar="FILE", help="a new .csv or .jsonl file")
    parser.add_argument("--depth", type=int, metavar="K", help="one depth for both runs (default: the study's k)")
    parser.add_argument("--size", type=positive, metavar="N", help="at most so many rows (default: all)")
    parser.add_argument("--seed", type=int, default=0, help="draws the order and the choice (default 0)")
    parser.add_argument("--semicolon", action="store_true", help="for spreadsheets that part cells by ; and not by ,")
    parser.add_argument("--expert", action="store_true", help="whole contexts, to be called sufficient or not")
    parser.add_argument("--principals", nargs="+", default=[], metavar="NAME", help="who reviews, as user:x group:y")
    parser.add_argument(
        "--dataset", metavar="DIR", help="where the dataset lies now (default: where the runs found it)"
    )


def main(args: argparse.Namespace) -> int:
    """Write the sheet and its key; say what is in it and what is not."""
    from ablate.review import contexts, sources
    from ablate.review.sheet import CELL, CONTEXTS, SOURCES, beside, write
    from ablate.review.sides import sides
    from ablate.workspace import workspace

    pair = sides(workspace(), args.runs, args.dataset)
    made: dict[str, Any] = {
        "runs": [record.id for record in pair.runs],
        "fingerprints": dict(pair.dataset.fingerprints),
        "seed": args.seed,
        "size": args.size,
        "principals": sorted(args.principals),
    }
    if args.expert:
        kind, found = CONTEXTS, contexts.blind(pair, args.size, args.seed, args.principals)
    else:
        depth = pair.depth(args.depth)
        made["depth"] = depth
        kind, found = SOURCES, sources.blind(pair, depth, args.size, args.seed, args.principals)
    sign = ";" if args.semicolon else ","
    write(args.out, kind, found.rows, {**made, "left_out": found.left_out}, sign)
    queries = len({row["query_id"] for row in found.rows})
    print(f"{args.out}: {len(found.rows)} {kind.name} of {queries} queries{missing(found.left_out)}")
    print(f"key: {beside(args.out)}; keep it beside the sheet")
    long = sum(any(len(cell) >= CELL for cell in row.values()) for row in found.rows)
    if long and args.out.suffix.lower() == ".csv":
        print(f"{long} rows hold a text that a spreadsheet cuts off at {CELL} characters: give --out a .jsonl file")
    print(f"when it is filled in: {then(args, pair.runs[0].config.get('dataset') or {})}")
    return 0


def then(args: argparse.Namespace, dataset: Mapping[str, Any]) -> str:
    """The command that takes the filled sheet, with the settings by which the runs read their dataset."""
    words = ["python", "-m", "ablate", "review", "agreement" if args.expert else "apply", str(args.out)]
    if args.dataset or not args.expert:
        words += ["--dataset", args.dataset or str(dataset.get("dir"))]
    if not args.expert:
        words += flags(dataset)
    return shlex.join(words) + ("" if args.expert else " --to NEWDIR")


def missing(left_out: Mapping[str, int]) -> str:
    """What is not in the sheet, as the end of a sentence."""
    said = ", ".join(f"{count} {reason}" for reason, count in left_out.items() if count)
    return f"; left out: {said}" if said else ""


def positive(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"found {text!r}, expected a whole number from 1")
    return int(text)
