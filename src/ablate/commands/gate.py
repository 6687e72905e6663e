"""decide whether a run may ship: hard rules first, then statistics, by a policy file"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from ablate.commands.run import stoppable, told_on_stderr
from ablate.commands.sync import configured
from ablate.errors import AblateError, ConfigError
from ablate.gate import decided, junit, kept, lines, markdown, outcomes, policy, tagged
from ablate.gate.rules import Case
from ablate.page import Terminal, columns_shown, say
from ablate.records import RunNotFound, RunRecord, find, named
from ablate.reproduce import GAP, Reproduction
from ablate.table import compare
from ablate.workspace import Workspace, workspace

EPILOG = """\
Exit code 0: ship or canary; 1: stop, a rule failed; 2: a rule cannot be judged, or the question was wrong. Each
decision is kept beside the run as decision.json and decision.md and appended to experiments/decisions.jsonl.
"""


def main(argv: list[str]) -> int:
    """Print the decision and what every rule says."""
    parser = argparse.ArgumentParser(prog="python -m ablate gate", description=__doc__, epilog=EPILOG)
    parser.add_argument("run", metavar="RUN", help="a run id, the beginning of one, or an MLflow run id")
    parser.add_argument("--policy", default="strict", metavar="FILE", help="a policy file, strict (default) or lenient")
    parser.add_argument("--against", metavar="RUN", help="the released run (default: the baseline it was run beside)")
    parser.add_argument("--junit", type=Path, metavar="FILE", help="write JUnit XML for a CI")
    parser.add_argument("--markdown", type=Path, metavar="FILE", help="write Markdown for a pull request")
    parser.add_argument("--json", action="store_true", help="print the decision record as JSON")
    args = parser.parse_args(argv)
    place, rules = workspace(), policy(args.policy)
    run, base = chosen(place, args.run, args.against)
    with told_on_stderr(), stoppable():
        found = outcomes(Case(run, base, rules, lambda record: again(record, place)))
    decision = decided(found, rules.doubt)
    content = kept(run, base, rules, decision, found, place)
    if warning := tagged(run, decision, configured(run, None, False), place):
        print(f"ablate: {warning}", file=sys.stderr)
    said = "\n\n".join(lines(Terminal(columns_shown()), run, decision, found))
    written = (junit(run, decision, found), markdown(run, decision, found).encode())
    reports = zip((args.junit, args.markdown), written, strict=True)
    try:
        for path, report in reports:
            if path:
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(report)
    finally:  # the decision is taken and kept, and must be seen where a report has no place
        say(json.dumps(content, ensure_ascii=False, indent=1) if args.json else said)
    return decision.code


def chosen(place: Workspace, wanted: str, against: str | None) -> tuple[RunRecord, RunRecord]:
    """The run and the one that it is measured against.

    Raises:
        RunNotFound: one of them is not recorded.
        ConfigError: one of them failed, or both are one, which is never worse than itself.
        NotComparable: they were measured on different corpora or ground truths, or scored differently.

    """
    known = find(place)
    run = named(known, wanted)
    if against is None and run.baseline is None:
        raise ConfigError(f"run {run.id}: found a baseline, expected a variant; name the released run with --against")
    try:
        base = named(known, against or str(run.baseline))
    except RunNotFound as error:
        raise RunNotFound(f"what {run.id} is measured against: {error}") from error
    if base.folder == run.folder:
        raise ConfigError(f"--against: found {base.id} itself, expected the run that it would replace; name that one")
    for record in (run, base):
        if not record.finished:
            raise ConfigError(f"run {record.id}: found one that failed, expected a finished one; run it again")
    compare([base, run])
    return run, base


def again(record: RunRecord, place: Workspace) -> tuple[bool | None, str]:
    """Whether a run gives the same rankings today; None where it cannot be run again."""
    try:
        verdict = Reproduction(place, None, False, False, GAP)(record)
    except AblateError as error:
        return False if error.code == 1 else None, str(error)
    return verdict.code == 0, verdict.lines()[0]
