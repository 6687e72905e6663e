"""print the table of a study, or of some runs, from what is recorded on disk"""

from __future__ import annotations

import argparse
import gc
import json
from typing import Any

from ablate.comparison import SUFFICIENT, headline
from ablate.errors import AblateError
from ablate.page import clean, escaped, signed
from ablate.records import RunRecord, families, find, named, of_study
from ablate.table import compare
from ablate.workspace import Workspace, workspace


def main(argv: list[str]) -> int:
    """Print one comparison, from the records; of two that are named also what unjudged sources could make of it."""
    parser = argparse.ArgumentParser(prog="python -m ablate compare", description=__doc__)
    parser.add_argument("runs", nargs="*", metavar="RUN", help="run ids, beginnings of them, or MLflow run ids")
    parser.add_argument("--study", metavar="S", help="all runs of this study (default: the one that ran last)")
    parser.add_argument("--uri", help="ask this MLflow store for the runs of a study, instead of the records on disk")
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--markdown", action="store_true", help="print GitHub Markdown")
    form.add_argument("--json", action="store_true", help="print JSON; null is not applicable")
    args = parser.parse_args(argv)
    if args.runs and args.study:
        parser.error("give runs or --study, not both")
    if args.runs and args.uri is not None:
        parser.error("give runs or --uri, not both: a store is asked for whole studies")
    place = workspace()
    gc.disable()  # a study of a thousand runs makes many objects, all of which stay until it is told
    if args.uri is not None:
        return asked(args, place)
    known = find(place)
    records = chosen(known, args.runs) if args.runs else of_study(place, args.study, known)
    comparison = compare(records, [record for record in known if record.study == records[0].study])
    two = [record for record in records if record.id in {named(records, name).id for name in args.runs}]
    data, sentence = bounded(*two) if len(two) == 2 else (None, "")
    if args.json:
        print(json.dumps({**comparison.data(), "bounds": data}, ensure_ascii=False, indent=1))
    elif args.markdown:
        print("\n".join(filter(None, [comparison.markdown(), sentence and f"{escaped(sentence)}\n"])), end="")
    else:
        print("\n".join(filter(None, [comparison.text(), sentence and f"{sentence}\n"])), end="")
    return 0


def asked(args: argparse.Namespace, place: Workspace) -> int:
    """Print the runs of a study as an MLflow store has them."""
    from ablate.distant import data, page, rows
    from ablate.page import Markdown, Terminal, columns_shown
    from ablate.tracking import Mlflow

    study, found = rows(Mlflow(args.uri, False).store(place), args.study)
    if args.json:
        print(json.dumps(data(study, found), ensure_ascii=False, indent=1))
    else:
        print("\n\n".join(page(study, found, Markdown() if args.markdown else Terminal(columns_shown()))))
    return 0


def bounded(before: RunRecord, after: RunRecord) -> tuple[dict[str, Any] | None, str]:
    """How far what nobody has judged could move the difference of two runs, as data and as a sentence.

    Nothing where evidence is not known, or where the dataset that the runs were made on cannot be read any more.
    """
    from ablate.review.bounds import bounds
    from ablate.review.sides import recorded

    if not (before.finished and after.finished) or headline(before) != SUFFICIENT:
        return None, ""
    try:
        found = bounds(before, after, recorded(after, None))
    except AblateError as error:
        return None, f"bounds over what nobody has judged are left out: {clean(str(error))}"
    if found is None:
        return None, ""
    data = {"low": found.low, "high": found.high, "n": found.n, "unjudged": len(found.unjudged)}
    return data, (
        f"{len(found.unjudged)} unjudged passages of either context could each be sufficient or useless: then the "
        f"difference in sufficient, {clean(after.label)} from {clean(before.label)}, lies between {signed(found.low)} "
        f"and {signed(found.high)}, over {found.n} queries"
    )


def chosen(known: list[RunRecord], wanted: list[str]) -> list[RunRecord]:
    """The runs that are meant, and the baselines of the variants among them where they are recorded."""
    runs = {record.id: record for record in (named(known, name) for name in wanted)}
    bases = {record.baseline for record in runs.values()}
    runs |= {record.id: record for record in known if record.id in bases}
    return families(runs.values())
