"""send every run to MLflow that is not there yet"""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from typing import Any

from ablate.records import RunRecord, current, find, within
from ablate.table import compare
from ablate.tracking import Mlflow
from ablate.workspace import workspace


def main(argv: list[str]) -> int:
    """Send what is missing, oldest first; 1 if something could not be sent."""
    parser = argparse.ArgumentParser(prog="python -m ablate sync", description=__doc__)
    parser.add_argument("--study", metavar="S", help="the runs of this study only")
    parser.add_argument("--uri", help="the store to send to (default: the one that each run was configured with)")
    parser.add_argument("--log-text", action="store_true", help="send files that hold texts to a server too")
    args = parser.parse_args(argv)
    place = workspace()
    records = find(place)
    if args.study:
        records = within(records, args.study)
    known = {record.id: record for record in records}
    sent = there = failed = 0
    for record in records:
        tracker = configured(record, args.uri, args.log_text)
        if tracker.has(record, place):
            there += 1
            continue
        baseline = known.get(record.baseline or "")
        warning = tracker.send(record, compare([baseline, record] if baseline else [record]), place)
        print(warning or f"{record.label}: sent ({record.study})")
        sent, failed = sent + (warning is None), failed + (warning is not None)
    for study in dict.fromkeys(record.study for record in records):
        everything = [record for record in find(place) if record.study == study]
        tracker = configured(everything[-1], args.uri, args.log_text)
        warning = tracker.rename(compare(current(everything), everything), place)
        print(warning or "", end="\n" if warning else "")
        failed += warning is not None
    print(f"{sent} sent, {there} already there, {failed} could not be sent")
    return int(failed > 0)


def configured(record: RunRecord, uri: str | None, log_text: bool) -> Mlflow:
    """The tracker of the run's own config, as far as the command line does not say otherwise."""
    node = record.config.get("tracking")
    own: Mapping[str, Any] = node if isinstance(node, Mapping) else {}
    return Mlflow(uri or own.get("uri"), log_text or bool(own.get("log_text")))
