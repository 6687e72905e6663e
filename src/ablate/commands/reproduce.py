"""run a recorded run again and say whether its rankings are the same, or which input moved"""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from ablate.commands.run import stoppable, told_on_stderr
from ablate.distant import finished
from ablate.errors import AblateError
from ablate.logged import logged
from ablate.page import clean, say
from ablate.records import RunNotFound, RunRecord, of_study
from ablate.reproduce import GAP, Reproduction, Verdict
from ablate.tracking import Mlflow
from ablate.workspace import Workspace, workspace

EPILOG = """\
The logged config is what runs. It may make components of this package alone, and of the modules that ABLATE_MODULES
names (comma separated); of the disk it reads the data and the models that it names. No record is changed or made. Exit
code 0: reproduced, or equal up to near-ties; 1: not; 2: the question was wrong, or the config is not to be trusted.
"""


def main(argv: list[str]) -> int:
    """Print a verdict for each run; the worst one decides the exit code."""
    args = arguments(argv)
    place = workspace()
    with told_on_stderr(), stoppable():
        if args.study:
            return every(args, place)
        with logged(args.run, place, args.uri) as record:
            verdict = reproduction(args, home(record, place))(record)
    say(json.dumps(verdict.data(), ensure_ascii=False, indent=1) if args.json else "\n".join(verdict.lines()))
    return verdict.code


def arguments(argv: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m ablate reproduce", description=__doc__, epilog=EPILOG)
    parser.add_argument(
        "run", nargs="?", metavar="RUN", help="a run id, the beginning of one, an MLflow run id, a folder"
    )
    parser.add_argument(
        "--study", metavar="S", help="all runs of this study, each baseline first; with --uri, as that store has them"
    )
    parser.add_argument("--dataset", metavar="DIR", help="where the data are now (default: where they were)")
    parser.add_argument("--uri", help="the MLflow store that has the run (default: the workspace, then its own store)")
    parser.add_argument(
        "--anyway", action="store_true", help="run though an input differs, and judge the numbers alone"
    )
    parser.add_argument("--fresh", action="store_true", help="compute everything, take nothing from indexes/")
    parser.add_argument("--gap", type=float, default=GAP, help=f"scores closer than this are near-ties ({GAP:g})")
    parser.add_argument("--json", action="store_true", help="print JSON")
    args = parser.parse_args(argv)
    if bool(args.run) == bool(args.study):
        parser.error("give a run or --study, one of them")
    return args


def reproduction(args: argparse.Namespace, place: Workspace) -> Reproduction:
    dir = args.dataset and str(Path(args.dataset).expanduser().absolute())
    return Reproduction(place, dir, args.fresh, args.anyway, args.gap)


def home(record: RunRecord, place: Workspace) -> Workspace:
    """The workspace that a run directory lies in, however it was named; otherwise the current one."""
    runs = record.folder.parents[1]
    inside = (runs.parent.name, runs.name) == ("experiments", "runs")
    return Workspace(runs.parents[1]) if inside else place


def every(args: argparse.Namespace, place: Workspace) -> int:
    """A line for each run of a study; what failed, or was scored again, has nothing to reproduce."""
    verdicts, codes = [], [0]
    for name, verdict in judged(args, place):
        if isinstance(verdict, AblateError):
            data, line = {"run": name, "error": str(verdict)}, clean(f"{name}: {verdict}")
        else:
            data, line = verdict.data(), verdict.line()
        verdicts.append(data)
        codes.append(verdict.code)
        if not args.json:
            say(line)
    if args.json:
        say(json.dumps(verdicts, ensure_ascii=False, indent=1))
    return max(codes)


def judged(args: argparse.Namespace, place: Workspace) -> Iterator[tuple[str, Verdict | AblateError]]:
    """Each run that ran, by its id, with its verdict or what was wrong with the question."""
    for name in wanted(args, place):
        known = Path(name).name
        try:
            with logged(name, place, args.uri) as record:
                known = record.id
                if record.finished and not record.rescored_from:
                    yield known, reproduction(args, place)(record)
        except AblateError as error:
            yield known, error


def wanted(args: argparse.Namespace, place: Workspace) -> list[str]:
    """The folders of a study's runs, or their MLflow ids in the store that is named: here, or for want of a record."""
    if args.uri is None:
        try:
            return [str(record.folder) for record in of_study(place, args.study)]
        except RunNotFound:
            if not os.environ.get("MLFLOW_TRACKING_URI"):
                raise
    return finished(Mlflow(args.uri, False).store(place), args.study)
