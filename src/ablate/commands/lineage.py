"""say what a run came from, or in what two runs differ: data, models, settings, code, machine"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from contextlib import ExitStack

from ablate.lineage import Origin, moved, origins
from ablate.logged import logged
from ablate.page import Terminal, columns_shown
from ablate.workspace import workspace

SHORT = 16
"""Characters of a fingerprint that a table shows; JSON has them all."""


def main(argv: list[str]) -> int:
    """Print where one run comes from, or what differs between two."""
    parser = argparse.ArgumentParser(prog="python -m ablate lineage", description=__doc__)
    parser.add_argument("runs", nargs="+", metavar="RUN", help="one or two run ids, MLflow run ids, or folders")
    parser.add_argument("--uri", help="the MLflow store that has the runs")
    parser.add_argument("--json", action="store_true", help="print JSON, with whole fingerprints")
    args = parser.parse_args(argv)
    if len(args.runs) > 2:
        parser.error("give one run or two")
    place = workspace()
    with ExitStack() as stack:
        records = [stack.enter_context(logged(name, place, args.uri)) for name in args.runs]
        pairs = moved(records[0], records[1]) if len(records) == 2 else [(origin,) for origin in origins(records[0])]
        labels = [record.id for record in records]
    print(plain(pairs) if args.json else table(pairs, labels))
    return 0


def plain(pairs: Sequence[Sequence[Origin]]) -> str:
    found = {row[0].what: [{"name": each.name, "fingerprint": each.fingerprint} for each in row] for row in pairs}
    one = {what: sides[0] if len(sides) == 1 else sides for what, sides in found.items()}
    return json.dumps(one, ensure_ascii=False, indent=1)


def table(pairs: Sequence[Sequence[Origin]], labels: Sequence[str]) -> str:
    if not pairs:
        return "nothing differs"
    cells = [[row[0].what, *(text for each in row for text in (each.name, each.fingerprint[:SHORT]))] for row in pairs]
    names = ["name"] if len(labels) == 1 else labels
    headings = ["what", *(text for name in names for text in (name, "fingerprint"))]
    return Terminal(columns_shown()).table(headings, cells, words=tuple(range(len(headings))))
