"""Run directories, written whole and read back: from files on disk to `RunRecord`."""

from __future__ import annotations

import difflib
import logging
import os
import shutil
import time
import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import Any

from ablate.errors import AblateError, Unwritten
from ablate.files import BrokenRecord, encoded, read_json, read_lines, read_rows, read_yaml
from ablate.workspace import Workspace

log = logging.getLogger(__name__)

COMPACT = "compact.jsonl"

REQUIRED = ("run", "study", "variant", "status", "started", "fingerprints")
"""Keys without which a run directory says nothing."""


class RunNotFound(AblateError):
    """An id that no run directory carries, or that several could mean."""


@dataclass(frozen=True)
class Start:
    """When something began: its date, and the ticks of a clock that nobody sets back."""

    date: datetime = field(default_factory=lambda: datetime.now(UTC))
    ticks: float = field(default_factory=time.monotonic)

    def told(self) -> dict[str, Any]:
        """What a record says of it once it has ended: the date and how many seconds it took."""
        return {"started": self.date.isoformat(), "seconds": round(time.monotonic() - self.ticks, 3)}


@dataclass(frozen=True)
class RunRecord:
    """One run directory. `run.json` is in memory, every other file is read when it is first asked for."""

    folder: Path
    facts: Mapping[str, Any]
    kept: dict[str, dict[str, float]] = field(default_factory=dict, repr=False, compare=False)

    @property
    def id(self) -> str:
        return str(self.facts["run"])

    @property
    def study(self) -> str:
        return str(self.facts["study"])

    @property
    def dataset(self) -> str:
        return str(self.facts.get("dataset") or self.study.rpartition("-")[0])

    @property
    def variant(self) -> str:
        return str(self.facts["variant"])

    @property
    def component(self) -> str | None:
        return self.facts.get("component")

    @property
    def baseline(self) -> str | None:
        """The run id of the baseline that a variant is measured against; None for a baseline."""
        return self.facts.get("baseline")

    @property
    def rescored_from(self) -> str | None:
        """The id of the run whose rankings were scored again on another ground truth; None for a run that ran."""
        return self.facts.get("rescored_from")

    @property
    def is_baseline(self) -> bool:
        return self.component is None

    @property
    def finished(self) -> bool:
        return bool(self.facts["status"] == "finished")

    @property
    def error(self) -> str | None:
        return self.facts.get("error")

    @property
    def started(self) -> datetime:
        """When the run began, in UTC; a time without a zone is read as UTC."""
        moment = datetime.fromisoformat(self.facts["started"])
        return moment.astimezone(UTC) if moment.tzinfo else moment.replace(tzinfo=UTC)

    @property
    def seconds(self) -> float:
        return float(self.facts.get("seconds") or 0.0)

    @property
    def computing(self) -> float | None:
        """How many of the run's seconds went into texts and pairs that were not kept; None if that was not recorded."""
        return self.facts.get("computing")

    @property
    def fingerprints(self) -> Mapping[str, str]:
        return {name: value for name, value in self.facts["fingerprints"].items() if value is not None}

    @property
    def latency(self) -> bool:
        """Whether this run was timed."""
        return bool(self.facts.get("latency"))

    @cached_property
    def label(self) -> str:
        """The variant, and how it was tuned on the command line: `reranker first=40`."""
        own = f"{self.component}."
        tuning = [text.lstrip("+").removeprefix(own) for text in self.overrides if text.lstrip("+").startswith(own)]
        return " ".join([self.variant, *tuning])

    @cached_property
    def overrides(self) -> tuple[str, ...]:
        """The Hydra overrides that the run was started with; empty where none were recorded."""
        path = self.folder / "overrides.yaml"
        found = read_yaml(path, list)
        if not all(isinstance(word, str) for word in found):
            raise BrokenRecord(f"{path}: found {found!r:.40}, expected a list of texts; check where the folder is from")
        return tuple(found)

    @cached_property
    def config(self) -> Mapping[str, Any]:
        """The resolved config."""
        return read_yaml(self.folder / "config.yaml", dict)

    @cached_property
    def changes(self) -> Mapping[str, tuple[Any, Any]]:
        """Key of the config -> (value in the baseline, value in this variant)."""
        path = self.folder / "changes.json"
        return {key: (pair[0], pair[1]) for key, pair in (read_json(path) if path.exists() else {}).items()}

    @cached_property
    def metrics(self) -> Mapping[str, Any]:
        """`metrics.json`; empty for a failed run that has none."""
        path = self.folder / "metrics.json"
        return read_json(path) if self.finished or path.exists() else {}

    @property
    def measures(self) -> Mapping[str, Mapping[str, Any]]:
        """Measure -> its mean, n, not_applicable, distribution, cohorts."""
        measures: Mapping[str, Mapping[str, Any]] = self.metrics.get("measures", {})
        return measures

    def mean(self, measure: str) -> float | None:
        """The mean over the queries to which `measure` applies; None if there are none."""
        value = self.means.get(measure, {}).get("mean")
        return None if value is None else float(value)

    @cached_property
    def compact(self) -> Mapping[str, Any]:
        """What comparisons read of a run, in one small file; empty for a run from before it was kept."""
        path = self.folder / COMPACT
        return read_lines(path) if os.path.lexists(path) else {}

    @cached_property
    def means(self) -> Mapping[str, Mapping[str, Any]]:
        """Measure -> its mean and n."""
        return self.compact.get("means") or self.measures

    @property
    def counts(self) -> Mapping[str, Any]:
        """What happened, in whole numbers."""
        return self.compact.get("counts") or self.metrics.get("counts") or {}

    @property
    def losses(self) -> Mapping[str, float]:
        """The mass of queries at every stage of the ledger; empty where a run kept none."""
        return self.compact.get("ledger") or self.metrics.get("ledger") or {}

    @property
    def size(self) -> int:
        """How many queries there are."""
        return len(self.compact.get("queries") or self.queries)

    @cached_property
    def pools(self) -> Mapping[str, tuple[Any, Any]]:
        """Query id -> how much its search could choose from: chunks and documents."""
        if self.compact:
            columns = zip(self.compact["queries"], self.compact["pools"], strict=True)
            return {query: (pool[0], pool[1]) for query, pool in columns}
        sizes = {query: row.get("pool") or {} for query, row in self.queries.items()}
        return {query: (size.get("chunks"), size.get("documents")) for query, size in sizes.items()}

    @cached_property
    def groups(self) -> Mapping[str, frozenset[str]]:
        """Cohort or intent, as `key=value`, -> its queries."""
        found: dict[str, set[str]] = {}
        for query, row in self.queries.items():
            for label in labels(row):
                found.setdefault(label, set()).add(query)
        return {label: frozenset(queries) for label, queries in found.items()}

    @cached_property
    def clusters(self) -> Mapping[str, str]:
        """Query id -> its cluster; in a run that was recorded without, every query stands alone."""
        return {query: str(row.get("cluster") or query) for query, row in self.queries.items()}

    @cached_property
    def queries(self) -> Mapping[str, Mapping[str, Any]]:
        """Query id -> its line of `queries.jsonl`; empty for a failed run that has none."""
        path = self.folder / "queries.jsonl"
        rows = read_rows(path) if self.finished or path.exists() else ()
        return {row["query_id"]: row for row in rows}

    def values(self, measure: str) -> dict[str, float]:
        """Query id -> value, of the queries to which `measure` applies."""
        if measure not in self.kept:
            self.kept[measure] = {query: float(value) for query, value in self._valued(measure) if value is not None}
        return self.kept[measure]

    def _valued(self, measure: str) -> Iterable[tuple[str, float | None]]:
        if measure in self.compact:
            return zip(self.compact["queries"], self.compact[measure], strict=True)
        if self.compact and (measure not in self.means or measure in self.compact["overall"]):
            return ()
        return ((query, row["values"].get(measure)) for query, row in self.queries.items())

    @cached_property
    def hashes(self) -> Mapping[str, str]:
        """Query id -> hash of its ranking and context."""
        return {query: row["ranking_hash"] for query, row in self.queries.items()}

    @cached_property
    def ranking(self) -> Mapping[str, Mapping[str, Any]]:
        """Query id -> its line of `ranking.jsonl`: hits, best first, and context, as document ids and offsets."""
        return {row["query_id"]: row for row in read_rows(self.folder / "ranking.jsonl")}

    @cached_property
    def ledger(self) -> Mapping[str, Mapping[str, Any]]:
        """Query id -> its line of `ledger.jsonl`, where its evidence was lost; empty for a run that kept none."""
        path = self.folder / "ledger.jsonl"
        return {row["query_id"]: row for row in read_rows(path)} if path.exists() else {}

    @cached_property
    def environment(self) -> Mapping[str, Any]:
        """What the run was made with; empty where that was not kept."""
        path = self.folder / "environment.json"
        return read_json(path) if path.exists() else {}

    @property
    def commit(self) -> str | None:
        """The git commit of the checkout that the run was made in."""
        return (self.environment.get("git") or {}).get("commit")

    @property
    def lineage(self) -> Mapping[str, Any]:
        """What the run came from, beside what its fingerprints name; empty for one from before that was kept."""
        return self.facts.get("lineage") or {}

    @cached_property
    def inputs(self) -> Mapping[str, Any]:
        """The digests of everything that the run was made of; empty for one from before they were kept."""
        path = self.folder / "inputs.json"
        return read_json(path) if path.exists() else {}

    @property
    def tracking(self) -> Mapping[str, str]:
        """Where MLflow holds this run (uri, experiment_id, run_id); empty if it was not sent."""
        path = self.folder / "tracking.json"
        try:
            return read_json(path) if path.exists() else {}
        except BrokenRecord:  # it can be made again by sending the run, so it must not hide the result
            return {}

    @property
    def files(self) -> list[Path]:
        """Every file of the directory, sorted; links and the note on where it was sent are not part of the run."""
        found = (path for path in self.folder.rglob("*") if path.is_file() and not path.is_symlink())
        return sorted(path for path in found if path.name != "tracking.json")


def labels(query: Mapping[str, Any]) -> set[str]:
    """The cohorts of a line of `queries.jsonl`, as `key=value`, and its intent."""
    intent = query.get("intent")
    found = {f"{key}={value}" for key, value in (query.get("cohorts") or {}).items()}
    return found if intent is None else found | {f"intent={intent}"}


def read(folder: Path) -> RunRecord:
    """The run in `folder`.

    Raises:
        BrokenRecord: `run.json` or, for a finished run, its results are missing or cannot be read.

    """
    facts = read_json(folder / "run.json")
    missing = [key for key in REQUIRED if not isinstance(facts, dict) or key not in facts]
    if missing:
        raise BrokenRecord(f"{folder / 'run.json'}: found no {missing[0]!r}, expected a run record; delete the folder")
    record = RunRecord(folder, facts)
    try:
        _ = record.started
    except (TypeError, ValueError) as error:
        raise BrokenRecord(
            f"{folder / 'run.json'}: found started {facts['started']!r}, expected an ISO time; delete the folder"
        ) from error
    for name in ("metrics.json", "queries.jsonl"):
        if record.finished and not (folder / name).is_file():
            raise BrokenRecord(f"{folder / name}: found no file, expected the results; delete the folder")
    return record


def write(folder: Path, files: Mapping[str, Any]) -> RunRecord:
    """Write a run directory whole: readers see all of `files` or none.

    `files` maps a name, which may contain folders, to its content: text and bytes as they are, the rows of a `.jsonl`,
    anything else as JSON. Infinity (a rank of "never") becomes null; NaN is refused.

    Raises:
        BrokenRecord: the files are no run.
        OSError: there is such a directory already.
        ValueError: a value is NaN.

    """
    fresh = folder.parent / f".{folder.name}.{uuid.uuid4().hex}"
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        fresh.mkdir()
        for name, content in files.items():
            path = fresh / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(encoded(name, content))
        record = read(fresh)
        os.rename(fresh, folder)
    except OSError as error:
        raise Unwritten(error.errno, error.strerror, error.filename or str(folder)) from error
    finally:
        shutil.rmtree(fresh, ignore_errors=True)
    return RunRecord(folder, record.facts)


def note(folder: Path, name: str, content: Any) -> None:
    """Add or replace one small file of a run directory, whole."""
    fresh = folder.parent / f".{folder.name}.{uuid.uuid4().hex}"
    try:
        fresh.write_bytes(encoded(name, content))
        os.replace(fresh, folder / name)
    finally:
        fresh.unlink(missing_ok=True)


def find(workspace: Workspace, study: str | None = None) -> list[RunRecord]:
    """All runs that can be read, or those of one study, oldest first. One warning line names what cannot be read."""
    records, broken = [], []
    for run in sorted(workspace.runs.glob("*/*/")):
        if run.name.startswith(".") or study not in (None, run.parent.name):  # a hidden folder is still being written
            continue
        try:
            records.append(read(run))
        except BrokenRecord as error:
            broken.append(str(error))
    if broken:
        log.warning("ignored %d run directories that cannot be read, the first: %s", len(broken), broken[0])
    return sorted(records, key=lambda record: (record.started, record.id))


def of_study(
    workspace: Workspace, study: str | None = None, known: Sequence[RunRecord] | None = None
) -> list[RunRecord]:
    """The current runs of a study, or of the one in which something ran last; `known` are all, where they are at hand.

    Raises:
        RunNotFound: there is no such study, or no run at all.

    """
    records = find(workspace) if known is None else list(known)
    if not records:
        raise RunNotFound(f"{workspace.runs}: found no run, expected one or more; `python -m ablate` makes the first")
    return current(within(records, study or records[-1].study))


def within(records: Sequence[RunRecord], study: str) -> list[RunRecord]:
    """Those of `records` that belong to a study.

    Raises:
        RunNotFound: none does; the message names studies that come near.

    """
    chosen = [record for record in records if record.study == study]
    if not chosen:
        names = list(dict.fromkeys(record.study for record in reversed(records)))
        near = ", ".join(difflib.get_close_matches(study, names, 3, 0.4) or names[:3]) or "there is no run yet"
        raise RunNotFound(f"study {study!r}: found none, expected one that has runs; the nearest: {near}")
    return chosen


def named(records: Sequence[RunRecord], wanted: str) -> RunRecord:
    """The run that `wanted` names: its id, alone or after its study, MLflow's id, its variant, or how its id begins.

    Raises:
        RunNotFound: no run or several are meant; the message names those that come near.

    """
    same = [record for record in records if wanted in (record.id, f"{record.study}/{record.id}")]
    sent = [record for record in records if record.tracking.get("run_id") == wanted]
    begun = [record for record in records if wanted and record.id.startswith(wanted)]
    called = [record for record in begun if record.variant == wanted]
    for hits in (same, sent, called if len(called) == 1 else begun):
        if len(hits) == 1:
            return hits[0]
        if hits:
            names = ", ".join(f"{hit.study}/{hit.id}" for hit in hits[:5])
            raise RunNotFound(f"run {wanted!r}: found {len(hits)} runs ({names}), expected one; give more of its id")
    near = difflib.get_close_matches(wanted, [record.id for record in records], 3, 0.4)
    near = near or [record.id for record in records[-3:]]
    there = f"expected one such as {', '.join(near)}" if near else "nor any other run"
    raise RunNotFound(
        f"run {wanted!r}: found none, {there}; `python -m ablate compare` ends with the ids of the study that ran "
        "last, with --study NAME those of another"
    )


def current(records: Iterable[RunRecord]) -> list[RunRecord]:
    """What stands for a study today: of equal configs the newest run, a finished one before a failed one.

    A baseline that a variant was measured against stays, however old. The order is that of `families`.
    """
    everything = sorted(records, key=lambda record: (record.finished, record.started))
    newest_of = {(record.variant, record.fingerprints.get("config", record.id)): record.id for record in everything}
    kept = set(newest_of.values())
    kept |= {record.baseline for record in everything if record.id in kept and record.baseline}
    return families(record for record in everything if record.id in kept)


def families(records: Iterable[RunRecord]) -> list[RunRecord]:
    """Each baseline followed by its own variants, in the order in which they started; those without one come last."""
    chosen = sorted(records, key=lambda record: record.started)
    found: dict[str, list[RunRecord]] = {record.id: [record] for record in chosen if record.is_baseline}
    orphans: list[RunRecord] = []
    for record in chosen:
        if not record.is_baseline:
            found.get(record.baseline or "", orphans).append(record)
    return [*(record for family in found.values() for record in family), *orphans]
