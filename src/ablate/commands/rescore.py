"""score the stored rankings of runs on another version of their ground truth; nothing runs again"""

from __future__ import annotations

import argparse
import json
import shlex
from collections.abc import Iterable, Sequence
from typing import Any

from ablate import records, rescore
from ablate.comparison import headline, paired, short
from ablate.config import recorded
from ablate.courier import waiting
from ablate.errors import ConfigError
from ablate.page import clean, signed
from ablate.records import RunRecord, find, named
from ablate.rescore import Rescoring
from ablate.table import SAME, Comparison, compare
from ablate.workspace import Workspace, workspace

EPILOG = """\
The texts, titles, metadata and access lists of DIR must be those that the runs searched, and it must hold no query that
they were not asked, in the same words, by the same people; with --common such queries are left out. A variant brings
its baseline along. What the runs measured of themselves (times, chunks, what an approximate index missed) is carried
over; chunking/units_whole, chunking/alternatives_whole and ingestion/units_verbatim are not had without the chunks, and
so only by running again.
"""


def main(argv: list[str]) -> int:
    """Print the runs as they were scored and, below, as they are scored now."""
    args = arguments(argv)
    place = workspace()
    runs = chosen(place, args.runs, args.study)
    scoring = named(find(place), args.score_as) if args.score_as else None
    tracking = [recorded(run.config, "tracking") for run in runs]
    with waiting(next(filter(None, (each.errand(place) for each in tracking)), None)):
        made = Rescoring(place, args.dataset, args.common, scoring)(runs)
    known = find(place)
    before, after = comparisons(runs, known), comparisons(made, known)
    rows = [change(old, new, before, after) for old, new in zip(runs, made, strict=True)]
    if args.json:
        data = {"before": [each.data() for each in before], "after": [each.data() for each in after], "rescored": rows}
        print(json.dumps(data, ensure_ascii=False, indent=1))
        return 0
    print("\n".join([each.short() for each in (*before, *after)]))
    print("\n".join(map(said, rows)))
    for study in dict.fromkeys(run.study for run in made):
        print(f"all of it: {shlex.join(['python', '-m', 'ablate', 'compare', '--study', study])}")
    return 0


def arguments(argv: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m ablate rescore", description=__doc__, epilog=EPILOG)
    parser.add_argument("runs", nargs="*", metavar="RUN", help="run ids, beginnings of them, or MLflow run ids")
    parser.add_argument("--study", metavar="S", help="all runs of this study that finished")
    parser.add_argument("--dataset", required=True, metavar="DIR", help="the folder with the new version")
    parser.add_argument(
        "--common", action="store_true", help="score the queries alone of which every run has a ranking"
    )
    parser.add_argument("--score-as", metavar="RUN", help="with the cut-offs, threshold and prices of this run")
    parser.add_argument("--json", action="store_true", help="print JSON; null is not applicable")
    args = parser.parse_args(argv)
    if bool(args.runs) == bool(args.study):
        parser.error("give runs or --study, one of them")
    return args


def chosen(place: Workspace, wanted: Sequence[str], study: str | None) -> list[RunRecord]:
    """The runs that are meant, with their baselines: of a study those that finished.

    Raises:
        ConfigError: there is no ranking to score, because a run that was named failed, or all runs of the study did.

    """
    known = find(place)
    runs = [named(known, name) for name in wanted] if wanted else records.of_study(place, study)
    runs = rescore.with_baselines(known, runs)
    for run in runs:
        if not run.finished and wanted:
            raise ConfigError(f"run {run.id}: found a run that failed, expected one with rankings; run it again")
    finished = [run for run in runs if run.finished]
    if not finished:
        raise ConfigError(f"study {study}: found failed runs alone, expected one with rankings; run it again")
    return finished


def comparisons(runs: Iterable[RunRecord], known: Sequence[RunRecord]) -> list[Comparison]:
    """The runs in tables of those that may stand side by side, with the words that all `known` runs give them."""
    tables: dict[tuple[str, ...], list[RunRecord]] = {}
    for run in {run.id: run for run in runs}.values():
        tables.setdefault(tuple(run.fingerprints.get(name, "") for name in SAME), []).append(run)
    return [compare(rows, [record for record in known if record.study == rows[0].study]) for rows in tables.values()]


def change(old: RunRecord, new: RunRecord, before: Iterable[Comparison], after: Iterable[Comparison]) -> dict[str, Any]:
    """What the new version made of one run: its headline, and its difference from its baseline."""
    return {
        "label": old.label,
        "run": new.id,
        "rescored_from": old.id,
        "before": figures(old, before),
        "after": figures(new, after),
        **{name: new.metrics.get("counts", {}).get(name, 0) for name in ("queries_without_ranking", "queries_removed")},
    }


def figures(run: RunRecord, tables: Iterable[Comparison]) -> dict[str, Any]:
    """The headline of a run, its mean, over how many queries, and the mean difference from its baseline."""
    measure = headline(run)
    baseline = next((table.baseline(run) for table in tables if run in table.records), None)
    pair = paired(baseline, run, measure) if baseline else None
    found = {"measure": measure, "mean": run.mean(measure), "n": len(run.values(measure))}
    return {**found, "difference": pair.difference if pair else None}


def said(row: dict[str, Any]) -> str:
    """The change as one line."""
    if row["run"] == row["rescored_from"]:
        return clean(f"{row['label']}: {row['run']} is scored on this ground truth already")
    before, after = row["before"], row["after"]
    name = "" if before["measure"] == after["measure"] else f"{short(after['measure'])} "
    text = f"{row['label']}: {short(before['measure'])} {shown(before)} -> {name}{shown(after)}"
    return clean(f"{text}; {row['run']} from {row['rescored_from']}")


def shown(found: dict[str, Any]) -> str:
    """`0.612 (+0.083) of 40`."""
    if found["mean"] is None:
        return "n/a"
    difference = "" if found["difference"] is None else f" ({signed(found['difference'])})"
    return f"{found['mean']:.3f}{difference} of {found['n']}"
