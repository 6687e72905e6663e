"""A decision goes in and is kept for good: beside the run, in the workspace's list of decisions, in MLflow."""

from __future__ import annotations

import itertools
import json
import os
from collections.abc import Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any, BinaryIO

from filelock import FileLock

from ablate import __version__
from ablate.gate.decision import Decided
from ablate.gate.outcome import Outcome
from ablate.gate.policy import Policy
from ablate.gate.report import markdown
from ablate.records import RunRecord, note
from ablate.tracking import Mlflow, reason
from ablate.workspace import Workspace

LIST = "decisions.jsonl"


def content(
    run: RunRecord, base: RunRecord, policy: Policy, decided: Decided, outcomes: Sequence[Outcome]
) -> dict[str, Any]:
    """All that a decision rests on, with the versions of everything."""
    return {
        "decision": decided.decision,
        "code": decided.code,
        "decided": datetime.now(UTC).isoformat(),
        "run": run.id,
        "study": run.study,
        "against": base.id,
        "policy": asdict(policy),
        "outcomes": [asdict(outcome) for outcome in outcomes],
        "fingerprints": dict(run.fingerprints),
        "fingerprints_against": dict(base.fingerprints),
        "dataset_version": run.facts.get("dataset_version"),
        "commit": run.commit,
        "ablate": __version__,
    }


def kept(
    run: RunRecord,
    base: RunRecord,
    policy: Policy,
    decided: Decided,
    outcomes: Sequence[Outcome],
    place: Workspace,
) -> dict[str, Any]:
    """Write a decision beside the run, under a name of its own, and append it to the workspace's list."""
    found = content(run, base, policy, decided, outcomes)
    place.experiments.mkdir(parents=True, exist_ok=True)
    with FileLock(place.experiments / f".{LIST}.lock"):
        name = unused(run)
        note(run.folder, f"{name}.json", found)
        note(run.folder, f"{name}.md", markdown(run, decided, outcomes))
        with (place.experiments / LIST).open("ab+") as file:
            file.write(b"\n" if torn(file) else b"")
            file.write((json.dumps(found, ensure_ascii=False) + "\n").encode())
            file.flush()
            os.fsync(file.fileno())
    return found


def torn(file: BinaryIO) -> bool:
    """Whether the last line was cut off, so that what is appended would be a part of it."""
    if not file.seek(0, os.SEEK_END):
        return False
    file.seek(-1, os.SEEK_END)
    return file.read(1) != b"\n"


def unused(run: RunRecord) -> str:
    """A name beside earlier decisions on the same run, which stay."""
    names = ("decision" if number == 1 else f"decision-{number}" for number in itertools.count(1))
    return next(name for name in names if not (run.folder / f"{name}.json").exists())


def tagged(run: RunRecord, decided: Decided, tracker: Mlflow, place: Workspace) -> str | None:
    """Tell MLflow, where it has the run; what goes wrong comes back as a sentence."""
    store = tracker.store(place)
    if not store.noted(run):
        return None
    try:
        store.client().set_tag(run.tracking["run_id"], "ablate.decision", str(decided.decision))
    except Exception as error:  # of MLflow, of the network, of a database: the decision on disk outlives them all
        return f"the decision could not be sent to MLflow at {store.shown} ({reason(error)}); it is kept on disk"
    return None
