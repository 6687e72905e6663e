"""A proved plan goes in, run records come out: what is already recorded is shown, what is missing is run."""

from __future__ import annotations

import itertools
import logging
import os
import sys
import traceback
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from filelock import FileLock

from ablate import archive, records, table
from ablate.audit import Audit
from ablate.config import Node, Settings, canonical, settings
from ablate.errors import AblateError
from ablate.evaluate import Evaluation, evaluate
from ablate.identity import fingerprints, run_name, study_name
from ablate.latency import Timing
from ablate.pipeline import Ready, ready, views
from ablate.records import RunRecord
from ablate.store import live, stored
from ablate.types import Dataset
from ablate.variant import Changes, Plan
from ablate.workspace import Workspace

log = logging.getLogger(__name__)

Stamp = list[tuple[str, int, int]]

SWEEP = "ABLATE_SWEEP"
"""The environment variable that names one command to all its jobs, whatever process they run in."""


@dataclass(frozen=True)
class Outcome:
    """What came of one job: the folders of its runs, baseline first, and why it stopped, with its exit code."""

    runs: list[str] = field(default_factory=list)
    error: str | None = None
    code: int = 0


@dataclass(frozen=True)
class Side:
    """One run to be made: the baseline, or a variant with what it changes."""

    variant: str
    component: str | None
    config: Node
    settings: Settings
    changes: Changes
    overrides: Sequence[str]
    study: str
    fingerprints: Mapping[str, str]

    @property
    def run(self) -> str:
        return run_name(self.variant, self.study, self.fingerprints)


def check(plans: Iterable[Plan]) -> None:
    """Read every dataset, and ask every component for its mistakes, before any work starts."""
    for plan in plans:
        for node in (plan.baseline, plan.config):
            chosen = settings(node)
            dataset = read(chosen.dataset)
            _, filter = views(chosen.line, dataset)
            filter.check(dataset.queries)


def run(plan: Plan, place: Workspace) -> Outcome:
    """The runs of one job. A failure is recorded and told, never raised: other jobs go on."""
    made: list[str] = []
    try:
        for record in runs(plan, place):
            made.append(str(record.folder))
            if not record.finished:
                return Outcome(made, f"{record.variant} failed: {record.error}", 1)
    except AblateError as error:
        log.error("%s: %s", plan.variant or "baseline", error)
        return Outcome(made, str(error), 2)
    except Exception as error:
        log.error("%s", traceback.format_exc())
        return Outcome(made, f"{plan.variant or 'baseline'} failed: {type(error).__name__}: {error}", 1)
    return Outcome(made)


def runs(plan: Plan, place: Workspace) -> Iterator[RunRecord]:
    """The baseline's record and then the variant's, each made if it is not recorded yet."""
    session = Session(read(settings(plan.baseline).dataset), place)
    base, *variants = sides(plan, session.dataset)
    baseline = session.record(base, [base], None)
    yield baseline
    for side in variants:
        yield session.record(side, [base, side], baseline)


def sides(plan: Plan, dataset: Dataset) -> list[Side]:
    """The baseline and, where the plan has one, the variant."""
    shared, config = canonical(plan.baseline), canonical(plan.config)
    prints = fingerprints(dataset, shared, shared)
    study = study_name(dataset, prints)
    base = Side("baseline", None, shared, settings(shared), {}, plan.shared, study, prints)
    if plan.variant is None:
        return [base]
    prints = fingerprints(dataset, config, shared)
    return [
        base,
        Side(plan.variant, plan.component, config, settings(config), plan.changes, plan.overrides, study, prints),
    ]


@dataclass(frozen=True)
class Session:
    """One job: its dataset is read once, its lines are made ready once, its latencies are measured side by side."""

    dataset: Dataset
    place: Workspace

    def record(self, side: Side, together: Sequence[Side], baseline: RunRecord | None) -> RunRecord:
        """The record of `side`, made now unless an equal one is there; `together` are timed in turn, baseline first."""
        folder = self.place.runs / side.study
        folder.mkdir(parents=True, exist_ok=True)
        with FileLock(folder / f".{side.run}.making"):
            known = recorded(side, self.place, baseline)
            if known is not None:
                log.info("%s: already %s as %s", side.variant, "recorded" if known.finished else "failed", known.id)
                return known if known.tracking else self.tracked(known, side, baseline)
            return self.made(side, together, baseline, unused(folder, side.run))

    def made(self, side: Side, together: Sequence[Side], baseline: RunRecord | None, folder: Path) -> RunRecord:
        """A run from start to record; one that breaks is recorded as failed."""
        log.info("%s: running", side.variant)
        facts = about(side, self.dataset.name, folder.name, baseline)
        try:
            evaluation, timings = self.measured(side, together)
        except AblateError:
            raise
        except (Exception, SystemExit) as error:  # a component that exits must not end the other jobs
            log.error("%s", traceback.format_exc())
            reason = f"{type(error).__name__}: {error}"
            return self.tracked(records.write(folder, archive.failed(side, facts, reason)), side, baseline)
        content = archive.finished(side, facts, evaluation, timings, self.place.root)
        return self.tracked(records.write(folder, content), side, baseline)

    def measured(self, side: Side, together: Sequence[Side]) -> tuple[Evaluation, list[Timing]]:
        line = self.ready(side)
        audit = Audit.read(Path(self.dataset.folder), self.dataset.acl_default)
        evaluation = evaluate(line, audit, side.settings.score)
        names = ["baseline", "variant"]
        chosen = {name: self.ready(other) for name, other in zip(names, together, strict=False)}
        with live():
            return evaluation, side.settings.latency(chosen, self.dataset.queries, side.settings.seed)

    def ready(self, side: Side) -> Ready:
        """The side's line over the corpus, its model work kept in `indexes/`; a sweep's jobs share their baseline's."""
        key = side.variant, side.run, id(self.dataset), str(self.place.root)
        if key not in LINES:
            for other in [known for known in LINES if known[0] == side.variant or known[0] != "baseline"]:
                del LINES[other]  # a corpus is large
            chosen, indexes = side.settings, self.place.indexes
            line = replace(
                chosen.line,
                embedder=stored(chosen.embedder, indexes, [query.text for query in self.dataset.queries]),
                reranker=stored(chosen.reranker, indexes),
            )
            LINES[key] = ready(line, self.dataset, chosen.tokens, chosen.k, chosen.depth)
        return LINES[key]

    def tracked(self, record: RunRecord, side: Side, baseline: RunRecord | None) -> RunRecord:
        """The record, its comparison beside it, sent to the tracker; a tracker that is away costs a warning only."""
        comparison = table.compare([known for known in (baseline, record) if known])
        records.note(record.folder, "comparison.md", comparison.markdown())
        warning = side.settings.tracking.log(record, comparison, self.place)
        if warning:
            log.warning("%s", warning)
        return record


def recorded(side: Side, place: Workspace, baseline: RunRecord | None) -> RunRecord | None:
    """The newest record of this very run: same config, code, models and baseline, timed if this one is to be timed.

    What failed is tried again, but not by every job of one sweep.
    """
    sweep = os.environ.get(SWEEP)
    equal = [
        record
        for record in records.find(place, side.study)
        if (record.finished or record.facts.get("sweep") == sweep)
        and record.variant == side.variant
        and all(record.fingerprints.get(name) == side.fingerprints[name] for name in ("config", "code"))
        and record.baseline == (baseline.id if baseline else None)
        and (record.latency or not side.settings.latency.measured)
        and all(revision(side, stage) == known for stage, known in record.facts.get("models", {}).items())
        and (not side.settings.rerun or record.facts.get("sweep") == sweep)
    ]
    return equal[-1] if equal else None


def revision(side: Side, stage: str) -> str:
    return str(getattr(getattr(side.settings, stage), "revision", ""))


def unused(folder: Path, run: str) -> Path:
    """A name for the record beside earlier ones of the same run, which are kept."""
    names = (run if number == 1 else f"{run}-{number}" for number in itertools.count(1))
    return next(folder / name for name in names if not (folder / name).exists())


def about(side: Side, dataset: str, name: str, baseline: RunRecord | None) -> Node:
    """What `run.json` says before the run: who it is and what it is measured against."""
    return {
        "run": name,
        "study": side.study,
        "dataset": dataset,
        "variant": side.variant,
        "component": side.component,
        "baseline": baseline.id if baseline else None,
        "sweep": os.environ.get(SWEEP, ""),
        "started": datetime.now(UTC).isoformat(),
        "fingerprints": dict(side.fingerprints),
        "latency": side.settings.latency.measured,
    }


LINES: dict[tuple[str, str, int, str], Ready] = {}
READ: dict[str, tuple[Stamp, Dataset]] = {}


def read(folder: Any) -> Dataset:
    """The dataset that a config names, read again only if a file of its folder has changed meanwhile."""
    key = repr(folder)
    if key not in READ or READ[key][0] != stamp(READ[key][1].folder):
        dataset: Dataset = folder.read()
        for warning in dataset.warnings:
            log.warning("%s", warning)
        READ.clear()  # one is enough, and a corpus is large
        READ[key] = stamp(dataset.folder), dataset
    return READ[key][1]


def stamp(folder: str) -> Stamp:
    """What changes when a file of a dataset does: names, times and sizes."""
    paths = sorted([*Path(folder).glob("*"), *Path(folder).glob("qrels/*")])
    return [(str(path), path.stat().st_mtime_ns, path.stat().st_size) for path in paths]


def show(outcomes: Sequence[Outcome], jobs: int, place: Workspace) -> int:
    """Print the table of every study that was touched, then what failed; the exit code of the whole command."""
    found: dict[str, dict[Path, RunRecord]] = {}
    for path in (Path(name) for outcome in outcomes for name in outcome.runs):
        found.setdefault(path.parent.name, {})[path] = records.read(path)
    for study in found.values():
        sys.stdout.write(table.compare(list(study.values())).text() + "\n")
    sys.stdout.flush()
    failures = [outcome for outcome in outcomes if outcome.code]
    if jobs > 1:  # a single job has told its failure already
        for error in dict.fromkeys(failure.error for failure in failures):
            sys.stderr.write(f"ablate: {error}\n")
    if len(outcomes) < jobs:
        sys.stderr.write(f"ablate: {jobs - len(outcomes)} of {jobs} jobs left no result; run the command again\n")
    codes = {failure.code for failure in failures} | ({1} if len(outcomes) < jobs else set())
    return min(codes) if len(failures) == jobs else int(bool(codes))
