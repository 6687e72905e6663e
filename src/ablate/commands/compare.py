"""print the table of a study, or of some runs, from what is recorded on disk"""

from __future__ import annotations

import argparse
import json

from ablate.records import RunRecord, families, find, named, of_study
from ablate.table import compare
from ablate.workspace import Workspace, workspace


def main(argv: list[str]) -> int:
    """Print one comparison; nothing is computed that is not in the records."""
    parser = argparse.ArgumentParser(prog="python -m ablate compare", description=__doc__)
    parser.add_argument("runs", nargs="*", metavar="RUN", help="run ids, beginnings of them, or MLflow run ids")
    parser.add_argument("--study", metavar="S", help="all runs of this study (default: the one that ran last)")
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--markdown", action="store_true", help="print GitHub Markdown")
    form.add_argument("--json", action="store_true", help="print JSON; null is not applicable")
    args = parser.parse_args(argv)
    if args.runs and args.study:
        parser.error("give runs or --study, not both")
    place = workspace()
    comparison = compare(chosen(place, args.runs) if args.runs else of_study(place, args.study))
    if args.json:
        print(json.dumps(comparison.data(), ensure_ascii=False, indent=1))
    elif args.markdown:
        print(comparison.markdown(), end="")
    else:
        print(comparison.text(), end="")
    return 0


def chosen(place: Workspace, wanted: list[str]) -> list[RunRecord]:
    """The runs that are meant, and the baselines of the variants among them where they are recorded."""
    known = find(place)
    runs = {record.id: record for record in (named(known, name) for name in wanted)}
    bases = {record.baseline for record in runs.values()}
    runs |= {record.id: record for record in known if record.id in bases}
    return families(runs.values())
