"""Run directories, written whole and read back: from files on disk to `RunRecord`."""

from __future__ import annotations

import difflib
import json
import logging
import math
import os
import shutil
import stat
import time
import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property, partial
from pathlib import Path
from typing import Any, TextIO, TypeVar

import yaml

from ablate.errors import AblateError, Unwritten
from ablate.workspace import Workspace

log = logging.getLogger(__name__)

SAFE = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

COMPACT = "compact.json"

VALUES = 50_000
"""How many values a file of settings may stand for."""

UNREADABLE = (OSError, ValueError, RecursionError)
"""What is wrong with a file that is missing, no text, no JSON, or too deep."""

Kind = TypeVar("Kind", dict[str, Any], list[Any])

REQUIRED = ("run", "study", "variant", "status", "started", "fingerprints")
"""Keys without which a run directory says nothing."""


class RunNotFound(AblateError):
    """An id that no run directory carries, or that several could mean."""


class BrokenRecord(AblateError):
    """A run directory whose files are missing or cannot be read."""


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
        found = _yaml(path, list)
        if not all(isinstance(word, str) for word in found):
            raise BrokenRecord(f"{path}: found {found!r:.40}, expected a list of texts; check where the folder is from")
        return tuple(found)

    @cached_property
    def config(self) -> Mapping[str, Any]:
        """The resolved config."""
        return _yaml(self.folder / "config.yaml", dict)

    @cached_property
    def changes(self) -> Mapping[str, tuple[Any, Any]]:
        """Key of the config -> (value in the baseline, value in this variant)."""
        path = self.folder / "changes.json"
        return {key: (pair[0], pair[1]) for key, pair in (_json(path) if path.exists() else {}).items()}

    @cached_property
    def metrics(self) -> Mapping[str, Any]:
        """`metrics.json`; empty for a failed run that has none."""
        path = self.folder / "metrics.json"
        return _json(path) if self.finished or path.exists() else {}

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
        return _json(path) if path.exists() else {}

    @property
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
            return {query: (pool[0], pool[1]) for query, pool in zip(*self._columns("pools"), strict=True)}
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

    def _columns(self, name: str) -> tuple[list[str], list[Any]]:
        return self.compact["queries"], self.compact[name]

    @cached_property
    def queries(self) -> Mapping[str, Mapping[str, Any]]:
        """Query id -> its line of `queries.jsonl`; empty for a failed run that has none."""
        path = self.folder / "queries.jsonl"
        rows = _rows(path) if self.finished or path.exists() else ()
        return {row["query_id"]: row for row in rows}

    def values(self, measure: str) -> dict[str, float]:
        """Query id -> value, of the queries to which `measure` applies."""
        if measure not in self.kept:
            self.kept[measure] = {query: float(value) for query, value in self._valued(measure) if value is not None}
        return self.kept[measure]

    def _valued(self, measure: str) -> Iterable[tuple[str, float | None]]:
        if measure in self.compact.get("values", ()):
            return zip(self.compact["queries"], self.compact["values"][measure], strict=True)
        if self.compact and (measure not in self.compact["means"] or measure in self.compact.get("overall", ())):
            return ()
        return ((query, row["values"].get(measure)) for query, row in self.queries.items())

    @cached_property
    def hashes(self) -> Mapping[str, str]:
        """Query id -> hash of its ranking and context."""
        return {query: row["ranking_hash"] for query, row in self.queries.items()}

    @cached_property
    def ranking(self) -> Mapping[str, Mapping[str, Any]]:
        """Query id -> its line of `ranking.jsonl`: hits, best first, and context, as document ids and offsets."""
        return {row["query_id"]: row for row in _rows(self.folder / "ranking.jsonl")}

    @cached_property
    def ledger(self) -> Mapping[str, Mapping[str, Any]]:
        """Query id -> its line of `ledger.jsonl`, where its evidence was lost; empty for a run that kept none."""
        path = self.folder / "ledger.jsonl"
        return {row["query_id"]: row for row in _rows(path)} if path.exists() else {}

    @cached_property
    def environment(self) -> Mapping[str, Any]:
        """What the run was made with; empty where that was not kept."""
        path = self.folder / "environment.json"
        return _json(path) if path.exists() else {}

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
        return _json(path) if path.exists() else {}

    @property
    def tracking(self) -> Mapping[str, str]:
        """Where MLflow holds this run (uri, experiment_id, run_id); empty if it was not sent."""
        path = self.folder / "tracking.json"
        try:
            return _json(path) if path.exists() else {}
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
    facts = _json(folder / "run.json")
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
            path.write_bytes(_encoded(name, content))
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
    fresh.write_bytes(_encoded(name, content))
    os.replace(fresh, folder / name)


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


def _encoded(name: str, content: Any) -> bytes:
    if isinstance(content, bytes):
        return content
    if isinstance(content, str):
        return content.encode()
    if name.endswith(".jsonl"):
        return "".join(f"{_dumps(row)}\n" for row in content).encode()
    if isinstance(content, Mapping):  # a line a key: quick to write, and still to read
        return (
            "{\n" + ",\n".join(f" {_dumps(str(key))}: {_dumps(content[key])}" for key in content) + "\n}\n"
        ).encode()
    return f"{_dumps(content)}\n".encode()


def _dumps(value: Any) -> str:
    written = partial(json.dumps, ensure_ascii=False, allow_nan=False)
    try:
        return written(value)
    except (TypeError, ValueError):  # it holds what JSON has no type for
        return written(_plain(value))


def _plain(value: Any) -> Any:
    """JSON's own types: infinity is null, numpy's numbers are Python's."""
    if isinstance(value, float) and math.isinf(value):
        return None
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, set | frozenset):
        return [_plain(item) for item in sorted(value)]
    return _plain(value.item()) if hasattr(value, "item") else value


def _json(path: Path) -> dict[str, Any]:
    try:
        found = json.loads(_text(path))
    except UNREADABLE as error:
        raise BrokenRecord(f"{path}: found {_why(error)}, expected JSON; delete the folder") from error
    if not isinstance(found, dict):
        raise BrokenRecord(f"{path}: found {found!r:.40}, expected a JSON object; delete the folder")
    return found


def _rows(path: Path) -> list[dict[str, Any]]:
    try:
        with _opened(path) as lines:  # not splitlines: U+2028 may stand inside a JSON string
            found = [json.loads(line) for line in lines]
    except UNREADABLE as error:
        raise BrokenRecord(f"{path}: found {_why(error)}, expected one JSON object a line; run it again") from error
    for row in found:
        if not isinstance(row, dict) or "query_id" not in row:
            raise BrokenRecord(f"{path}: found {row!r:.40}, expected the object of a query a line; run it again")
    return found


def _yaml(path: Path, kind: type[Kind]) -> Kind:
    """The plain data in a YAML file; nothing if there is no such file, or nothing in it."""
    if not os.path.lexists(path):
        return kind()
    try:
        found = yaml.load(_text(path), Loader=SAFE)  # the safe loader, in C
    except (*UNREADABLE, yaml.YAMLError) as error:
        raise BrokenRecord(f"{path}: found {_why(error)}, expected YAML; run it again") from error
    if found is None:
        return kind()
    if _many(found) or not isinstance(found, kind):
        what = f"more than {VALUES} values" if _many(found) else f"a {type(found).__name__}"
        raise BrokenRecord(f"{path}: found {what}, expected settings; check where the folder is from")
    return found


def _many(found: Any) -> bool:
    """Whether there are more values than settings have: aliases may stand for more than any memory holds."""
    count, waiting = 0, [found]
    while waiting and count <= VALUES:
        value = waiting.pop()
        count += 1
        waiting += value if isinstance(value, list) else value.values() if isinstance(value, dict) else ()
    return count > VALUES


def _text(path: Path) -> str:
    with _opened(path) as file:
        return file.read()


def _opened(path: Path) -> TextIO:
    """A file that is one: a link may lead anywhere, and a pipe never ends.

    Raises:
        OSError: it is none, or cannot be opened.

    """
    state = path.lstat()
    if not stat.S_ISREG(state.st_mode):
        raise OSError("a link" if stat.S_ISLNK(state.st_mode) else "what is no file")
    return path.open(encoding="utf-8")


def _why(error: Exception) -> str:
    return "no file" if isinstance(error, FileNotFoundError) else (str(error) or repr(error)).splitlines()[0]
