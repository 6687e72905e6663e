"""add a failure of production to a new version of the dataset, as a question that must not fail again

The evidence is given by `--unit "DOCUMENT:QUOTE"`, one a fact that the answer needs; `--alternative` between two units
starts another set of facts that is enough. Without evidence `--why` says why nobody can answer. A JSON file (`--file`)
has the same keys: query, case, id, critical, layer, owner, principals, as_of, why, note, alternatives (a list of lists
of units, as "DOCUMENT:QUOTE" or as in ground_truth.jsonl), and what else a line of queries.jsonl may hold.
"""

from __future__ import annotations

import argparse
import shlex
from pathlib import Path

from ablate.commands.review.apply import day, today
from ablate.dataset import options
from ablate.dataset.queries import WHY
from ablate.review.incident import LAYERS

FLAGS = ("query", "case", "id", "critical", "layer", "owner", "principals", "as_of", "why", "note")


def arguments(parser: argparse.ArgumentParser) -> None:
    """What the action takes."""
    parser.add_argument("--dataset", required=True, metavar="DIR", help="the version that it is added to")
    parser.add_argument("--to", required=True, type=Path, metavar="NEWDIR", help="a new folder for the next version")
    parser.add_argument("--version", metavar="NAME", help="its name (default: the number after the old version's)")
    parser.add_argument("--who", required=True, metavar="NAME", help="who adds it")
    parser.add_argument("--when", type=day, default=today(), metavar="DATE", help="when (default today)")
    told = parser.add_mutually_exclusive_group(required=True)
    told.add_argument("--query", metavar="TEXT", help="the question as it was asked")
    told.add_argument("--file", type=Path, metavar="FILE", help="a JSON file that tells the incident")
    parser.add_argument("--case", metavar="ID", help="the id of the incident where it is kept")
    parser.add_argument("--id", help="the id of the query (default incident-CASE)")
    parser.add_argument("--critical", action="store_true", help="losing it again stops a release")
    parser.add_argument("--layer", choices=LAYERS, help="where the evidence was lost")
    parser.add_argument("--owner", metavar="NAME", help="who answers for that layer")
    parser.add_argument("--principals", nargs="+", default=[], metavar="NAME", help="who asked, as user:x group:y")
    parser.add_argument("--as-of", metavar="DATE", help="the day for which it was asked")
    parser.add_argument("--unit", action="append", default=[], metavar="DOCUMENT:QUOTE", help="a fact that is needed")
    parser.add_argument(
        "--alternative", dest="unit", action="append_const", const=None, help="what follows is enough by itself"
    )
    parser.add_argument("--why", choices=WHY, help="why nobody can answer it")
    parser.add_argument("--note", metavar="TEXT", help="what happened")
    options.add(parser)


def main(args: argparse.Namespace) -> int:
    """Write the new version; say which question is new in it."""
    from ablate.errors import ConfigError
    from ablate.review import incident

    flags = {name: getattr(args, name) for name in FLAGS}
    if args.file and (given := [name for name, value in {**flags, "unit": args.unit}.items() if value]):
        raise ConfigError(f"--{given[0]}: found it beside --file, expected one of the two; write it into the file")
    told = incident.read(args.file) if args.file else incident.told(flags, args.unit)
    folder = options.folder(args, args.dataset)
    made = incident.add(told, folder, args.to, args.version, args.who, args.when)
    dataset = made.dataset
    query = next(query for query in dataset.queries if query.id == told.id)
    what = "with evidence" if dataset.truths[query.id].alternatives else f"unanswerable ({query.why})"
    print(f"{args.to}: {len(dataset.queries)} queries, new: {query.id}, {what}")
    print(made)
    print(f"a run on this version: {shlex.join(['python', '-m', 'ablate', f'dataset.dir={args.to}'])}")
    return 0
