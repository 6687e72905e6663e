"""A proved plan goes in, run records come out: what is already recorded is shown, what is missing is run."""

from __future__ import annotations

import itertools
import logging
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from filelock import FileLock

from ablate import archive, lineage, records, table
from ablate.config import Node, settings
from ablate.dataset.once import read_once
from ablate.errors import AblateError, NotInstalled, Unwritten, unwritable
from ablate.evaluate import Evaluation, audited, evaluate
from ablate.identity import Side, digest, sides
from ablate.latency import Timing
from ablate.pipeline import Line, Pieces, Ready, chunked, ready, views
from ablate.progress import computed
from ablate.quotation import told
from ablate.records import RunRecord
from ablate.store import live, stored
from ablate.types import Dataset
from ablate.variant import Plan
from ablate.workspace import Workspace

log = logging.getLogger(__name__)

SWEEP = "ABLATE_SWEEP"
"""The environment variable that names one command to all its jobs, whatever process they run in."""


LINES: dict[tuple[str, str, int, str], Ready] = {}
"""Lines made ready: the baseline's, for all jobs of a sweep, and the last variant's; by side, dataset and cache."""

TRUSTED: dict[str, str] = {}
"""The runs whose kept work was compared with what their models give, and the command that last did so."""


PIECES: dict[str, tuple[Dataset, Pieces]] = {}
"""The chunks of a corpus by the two chunkers that were asked for last, most often the baseline's and a variant's."""


@dataclass(frozen=True)
class Outcome:
    """What came of one job: the folders of its runs, baseline first, and why it stopped, with its exit code.

    `skipped` says why its variant was left out: it needs a package that is not installed.
    """

    runs: list[str] = field(default_factory=list)
    error: str | None = None
    code: int = 0
    skipped: str | None = None


def check(plans: Sequence[Plan]) -> None:
    """Read every dataset, and ask every component for its mistakes, before any work starts.

    Raises:
        NotInstalled: the only variant needs a package that is not installed; of several such a one is left out later.

    """
    for plan in plans:
        for node in (plan.baseline, plan.config):
            chosen = settings(node)
            dataset = read_once(chosen.dataset)
            _, filter = views(chosen.line, dataset)
            filter.check(dataset.queries)
        if plan.component and len(plans) == 1:
            installed(getattr(chosen, plan.component))


def installed(component: Any) -> None:
    """Let a component look for its model's package; whatever else is wrong with it is recorded when it runs.

    Raises:
        NotInstalled: it needs one that is not there.

    """
    try:
        getattr(component, "revision", None)
    except NotInstalled:
        raise
    except Exception as error:
        log.debug("%s", error)


def run(plan: Plan, place: Workspace) -> Outcome:
    """The runs of one job. A failure is recorded and told, never raised: other jobs go on."""
    made: list[str] = []
    try:
        for record in runs(plan, place):
            made.append(str(record.folder))
            if not record.finished:
                return Outcome(made, f"{record.variant} failed: {record.error}", 1)
    except AblateError as error:
        if made and isinstance(error, NotInstalled):  # its baseline ran, so it is the variant that lacks something
            log.warning("%s: skipped: %s", plan.variant, error)
            return Outcome(made, skipped=f"{plan.variant}: skipped: {error}")
        log.error("%s: %s", plan.variant or "baseline", error)
        return Outcome(made, str(error), error.code)
    except OSError as error:  # a component's own is recorded where it is raised; here it is the place itself
        said_so = unwritable(error)
        log.error("%s", said_so)
        return Outcome(made, said_so, 2)
    except Exception as error:
        said = told(error, read_once(settings(plan.baseline).dataset))
        log.error("%s", said.trace)
        return Outcome(made, f"{plan.variant or 'baseline'} failed: {said.reason}", 1)
    return Outcome(made)


def runs(plan: Plan, place: Workspace) -> Iterator[RunRecord]:
    """The baseline's record and then the variant's, each made if it is not recorded yet."""
    session = Session(read_once(settings(plan.baseline).dataset), place)
    base, *variants = sides(plan, session.dataset)
    baseline = session.record(base, [base], None)
    yield baseline
    for side in variants:
        yield session.record(side, [base, side], baseline)


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
            self.trusted(side)
            known = recorded(side, self.place, baseline)
            if known is not None:
                log.info("%s: already %s as %s", side.variant, "recorded" if known.finished else "failed", known.id)
                return tracked(known, baseline, side.settings.tracking, self.place)
            return self.made(side, together, baseline, unused(folder, side.run))

    def trusted(self, side: Side) -> None:
        """Where it is asked for, compare what is kept for a side with what its models give now, once a command.

        Raises:
            CacheDiffers: it is not the same.

        """
        sweep = os.environ.get(SWEEP, "")
        if side.settings.cache.audit and TRUSTED.get(side.run) != sweep:
            log.info("%s: %s", side.variant, side.settings.cache.compared(self.ready(side), side.settings.seed))
            TRUSTED[side.run] = sweep

    def made(self, side: Side, together: Sequence[Side], baseline: RunRecord | None, folder: Path) -> RunRecord:
        """A run from start to record; one that breaks is recorded as failed."""
        log.info("%s: running", side.variant)
        facts, start = about(side, self.dataset, folder.name, baseline), records.Start()
        try:
            before = computed()
            evaluation, timings = self.measured(side, together)
            facts |= {"computing": round(computed() - before, 3)}
            content = archive.finished(side, facts, start, evaluation, timings, self.place.root)
            content = lineage.added(content, side, self.dataset, self.place)
            record = records.write(folder, content)
        except (AblateError, Unwritten):
            raise
        except (Exception, SystemExit) as error:  # a component that exits must not end the other jobs
            said = told(error, self.dataset)
            log.error("%s", said.trace)
            record = records.write(folder, archive.failed(side, facts, start, said.reason))
        return tracked(record, baseline, side.settings.tracking, self.place)

    def measured(self, side: Side, together: Sequence[Side]) -> tuple[Evaluation, list[Timing]]:
        line = self.ready(side)
        audit = audited(self.dataset)
        evaluation = evaluate(line, audit, side.settings.score)
        names = ["baseline", "variant"]
        chosen = {name: self.ready(other) for name, other in zip(names, together, strict=False)}
        for line in chosen.values():
            line.build(self.dataset.queries)  # otherwise an index would be built while a query is timed
        with live():
            return evaluation, side.settings.latency(chosen, self.dataset.queries, side.settings.seed)

    def ready(self, side: Side) -> Ready:
        """The side's line over the corpus, its model work kept in `indexes/`; a sweep's jobs share their baseline's."""
        key = side.variant, side.run, id(self.dataset), str(side.settings.cache.folder(self.place.indexes))
        if key not in LINES:
            for other in [known for known in LINES if (known[0] == "baseline") == (side.variant == "baseline")]:
                del LINES[other]  # a corpus is large
            chosen, line, cut = side.settings, kept(side, self.dataset, self.place), pieces(side, self.dataset)
            LINES[key] = ready(line, self.dataset, chosen.tokens, chosen.k, chosen.depth, chosen.budget, cut)
        return LINES[key]


def tracked(record: RunRecord, baseline: RunRecord | None, tracking: Any, place: Workspace) -> RunRecord:
    """The record, its comparison beside it, sent to the tracker; a tracker that is away costs a warning only."""
    comparison = table.compare([known for known in (baseline, record) if known])
    records.note(record.folder, "comparison.md", comparison.markdown())
    warning = tracking.log(record, comparison, place)
    if warning:
        log.warning("%s", warning)
    return record


def kept(side: Side, dataset: Dataset, place: Workspace) -> Line:
    """The side's components, those whose work can be kept with a folder to keep it in."""
    chosen, folder = side.settings, side.settings.cache.folder(place.indexes)
    return replace(
        chosen.line,
        embedder=stored(chosen.embedder, folder, [query.text for query in dataset.queries]),
        reranker=stored(chosen.reranker, folder),
    )


def pieces(side: Side, dataset: Dataset) -> Pieces:
    """The dataset's documents in the side's chunks, cut once for the estimate and for all sides that share them."""
    key = digest([dataset.fingerprints, side.config["chunker"], side.config["tokens"]])
    known, found = PIECES.pop(key, (None, []))
    if known is not dataset:
        found = chunked(side.settings.chunker, dataset, side.settings.tokens)
    for oldest in list(PIECES)[:-1]:
        del PIECES[oldest]
    PIECES[key] = dataset, found
    return found


def recorded(side: Side, place: Workspace, baseline: RunRecord | None) -> RunRecord | None:
    """The newest record of this very run: same config, code, models and baseline, timed if this one is to be timed.

    What failed is tried again, but not by every job of one sweep. What was scored again did not run: it has no chunks
    to measure, and its times are another run's.
    """
    sweep = os.environ.get(SWEEP)
    equal = [
        record
        for record in records.find(place, side.study)
        if (record.finished or record.facts.get("sweep") == sweep)
        and record.variant == side.variant
        and record.rescored_from is None
        and all(record.fingerprints.get(name) == side.fingerprints[name] for name in ("config", "code", "own"))
        and record.baseline == (baseline.id if baseline else None)
        and (not side.settings.latency.measured or record.config.get("latency") == side.config["latency"])
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


def about(side: Side, dataset: Dataset, name: str, baseline: RunRecord | None) -> Node:
    """What `run.json` says before the run: who it is and what it is measured against."""
    return {
        "run": name,
        "study": side.study,
        "dataset": dataset.name,
        "dataset_version": dataset.version,
        "variant": side.variant,
        "component": side.component,
        "baseline": baseline.id if baseline else None,
        "sweep": os.environ.get(SWEEP, ""),
        "fingerprints": dict(side.fingerprints),
        "latency": side.settings.latency.measured,
        "critical_cohorts": list((dataset.contract.get("critical") or {}).get("cohorts") or ()),
    }
