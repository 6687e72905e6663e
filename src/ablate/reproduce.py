"""A recorded run goes in; its line runs again, and whether its rankings are the same, or what moved, comes out."""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import chdir, contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from ablate import archive
from ablate.comparison import headline
from ablate.config import Node, canonical, settings
from ablate.differences import Difference, Source, Today, differences, listed, source
from ablate.earlier import filled
from ablate.environment import checkout, processor
from ablate.errors import AblateError, ConfigError, first_line
from ablate.evaluate import Evaluation, audited, evaluate
from ablate.files import BrokenRecord
from ablate.identity import Side
from ablate.identity import fingerprints as named
from ablate.logged import config
from ablate.page import clean
from ablate.records import RunRecord
from ablate.study import Session
from ablate.types import Chunk, Dataset, Trace
from ablate.workspace import Workspace

log = logging.getLogger(__name__)

REPRODUCED, NEARLY, NOT = "reproduced", "equal up to near-ties", "not reproduced"

GAP = 1e-5
"""Scores that are closer may change places where another processor adds up in another order; a cosine is up to 1."""

NAMED = 5

Place = tuple[str, int, int]
"""A chunk: its document's id, where it starts and where it ends."""


class LineBroke(AblateError):
    """A recorded line that does not run any more: the answer is no, exit code 1."""

    code = 1


@dataclass(frozen=True)
class Reproduction:
    """Runs again what a workspace has recorded, and changes no record.

    `dir` (None: as recorded) is where the data lie; with `fresh` nothing is taken from what is kept; with `anyway` the
    line runs and its numbers decide although an input differs; scores less than `gap` apart are nearly tied.
    """

    place: Workspace
    dir: str | None = None
    fresh: bool = False
    anyway: bool = False
    gap: float = GAP

    def __call__(self, record: RunRecord) -> Verdict:
        """What came of one run.

        Raises:
            ConfigError: the run has no rankings of its own, or its config cannot be trusted, or names data that are
                not there.
            BrokenRecord: its files do not hold what a record holds.
            LineBroke: a component fails.

        """
        ran(record)
        logged = config(record)
        with chdir(started_in(record, self.place)):
            whole = filled(logged)
            chosen = settings(self.quiet(whole, record))
            today = Today(canonical(whole), canonical(logged), chosen, source(chosen.dataset))
            with readable(record):
                found = differences(record, today)
            verdict = Verdict(record, found, None, self.gap, today.source, self.place.root)
            if today.source.dataset is None or (found and not self.anyway):
                return verdict
            evaluation = self.evaluated(record, today, today.source.dataset)
        with readable(record):
            return replace(verdict, outcome=outcome(record, evaluation, self.gap))

    def quiet(self, logged: Node, record: RunRecord) -> Node:
        """The config of a run that is neither timed nor sent, and whose data are found from here."""
        kept = "Off" if self.fresh or not self.place.indexes.is_dir() else "Kept"
        data = logged.get("dataset")
        if isinstance(data, Mapping) and "dir" in data:
            data = {**data, "dir": self.data(str(data["dir"]), record)}
        return {
            **logged,
            "dataset": data,
            "latency": {"_target_": "ablate.latency.Off"},
            "tracking": {"_target_": "ablate.tracking.Off"},
            "cache": {"_target_": f"ablate.cache.{kept}", **({"audit": False, "sample": 1} if kept == "Kept" else {})},
        }

    def data(self, dir: str, record: RunRecord) -> str:
        """Where the data lie today.

        Raises:
            ConfigError: nowhere.

        """
        if self.dir is None and dir.startswith("pkg://"):
            log.info("reading the data in %s", dir)
            return dir
        recorded = record.lineage.get("folder")
        tried = [Path(self.dir or dir).expanduser().absolute()]
        if self.dir is None and isinstance(recorded, str):  # it may have been started from outside the workspace
            tried.append(self.place.root / recorded)
        found = next((each for each in tried if each.is_dir()), None)
        if found is None:
            raise ConfigError(
                f"dataset: found no folder {tried[0]}, expected the data of run {record.id}; "
                "say where they are with --dataset DIR"
            )
        log.info("reading the data in %s", found)
        return os.path.abspath(found)

    def evaluated(self, record: RunRecord, today: Today, dataset: Dataset) -> Evaluation:
        prints = named(dataset, today.config, today.config)
        side = Side(
            record.variant, record.component, today.config, today.settings, {}, record.overrides, record.study, prints
        )
        try:
            line = Session(dataset, self.place).ready(side)
            return evaluate(line, audited(dataset), today.settings.score)
        except AblateError:
            raise
        except Exception as error:  # a component may raise anything
            raise LineBroke(
                f"run {record.id}: found {type(error).__name__}: {first_line(error)}, expected a line that runs as it "
                "did; correct the component or the config"
            ) from error


def ran(record: RunRecord) -> None:
    """Refuse a run that has no rankings of its own.

    Raises:
        ConfigError: it failed, or it was scored again and did not run.

    """
    if not record.finished:
        raise ConfigError(f"run {record.id}: found a run that failed, expected one with rankings; run it again")
    if record.rescored_from:
        raise ConfigError(
            f"run {record.id}: found one that was scored again, expected one that ran; give {record.rescored_from}, "
            "whose rankings it has"
        )


def started_in(record: RunRecord, place: Workspace) -> Path:
    """The folder in the workspace where a run was started, as far as it is there: models may be named from it on."""
    root = place.root.resolve()
    folder = (root / str(record.lineage.get("started_in", "."))).resolve()
    return folder if folder.is_relative_to(root) and folder.is_dir() else root


@contextmanager
def readable(record: RunRecord) -> Iterator[None]:
    """Within it a record that holds something else than records hold is a sentence.

    Raises:
        BrokenRecord: it does.

    """
    try:
        yield
    except (AttributeError, IndexError, KeyError, RecursionError, TypeError, ValueError) as error:
        raise BrokenRecord(
            f"{record.folder}: found {type(error).__name__}: {first_line(error)}, expected the files of a run; check "
            "where they are from"
        ) from error


@dataclass(frozen=True)
class Outcome:
    """How the rankings and values of today compare with the recorded ones.

    `moved` are the queries whose ranking or context is another, each with the largest difference of scores that may
    explain it; None where only more than a near-tie does. `values` has, for each measure, the queries that have the
    same ranking and another value. `primary` is a measure with its recorded mean and today's.
    """

    queries: int
    moved: Mapping[str, float | None]
    values: Mapping[str, Sequence[str]]
    primary: tuple[str, float | None, float | None]

    @property
    def word(self) -> str:
        if self.values or None in self.moved.values():
            return NOT
        return NEARLY if self.moved else REPRODUCED


def outcome(record: RunRecord, evaluation: Evaluation, gap: float) -> Outcome:
    """What the line gives today beside what is recorded."""
    today = {trace.query.id: trace for trace in evaluation.traces}
    rows = {name: json.loads(json.dumps(archive.row(trace, evaluation)["values"])) for name, trace in today.items()}
    moved: dict[str, float | None] = {}
    values: dict[str, list[str]] = {}
    for name in sorted(record.queries.keys() | today.keys()):
        known, trace = record.queries.get(name), today.get(name)
        if known is None or trace is None:
            moved[name] = None
        elif known["ranking_hash"] != archive.fingerprint(trace):
            distance = swapped(record.ranking.get(name, {}), trace)
            moved[name] = distance if distance is not None and distance < gap else None
        else:
            for measure, value in known["values"].items():
                if rows[name].get(measure) != value:
                    values.setdefault(measure, []).append(name)
    primary = headline(record)
    return Outcome(len(today), moved, values, (primary, record.mean(primary), mean(rows, primary)))


def mean(rows: Mapping[str, Mapping[str, float | None]], measure: str) -> float | None:
    found = [value for row in rows.values() if (value := row.get(measure)) is not None]
    return sum(found) / len(found) if found else None


def swapped(known: Mapping[str, Any], trace: Trace) -> float | None:
    """How far apart the scores of hits are that have changed places; None where more than an order has changed.

    Scores are today's, because they are all known; a hit that is gone has its recorded one, if it has any.
    """
    recorded = {at(hit): hit.get("score") for hit in known.get("hits", ())}
    before, after = list(recorded), [place(hit.chunk) for hit in trace.ranked]
    if before == after or len(before) != len(after):  # the order is the same, so the packer did something else
        return None
    scores: dict[Place, float | None] = {
        **recorded,
        **dict(zip(after, (hit.score for hit in trace.ranked), strict=True)),
    }
    pairs = [(scores[one], scores[other]) for one, other in zip(before, after, strict=True) if one != other]
    gaps = [abs(one - other) for one, other in pairs if one is not None and other is not None]
    return max(gaps) if len(gaps) == len(pairs) else None


def at(hit: Mapping[str, Any]) -> Place:
    return hit["doc_id"], hit["start"], hit["end"]


def place(chunk: Chunk) -> Place:
    return chunk.document.id, chunk.start, chunk.end


@dataclass(frozen=True)
class Verdict:
    """What is said of one run: `differences` are inputs that moved, `outcome` is None where nothing ran."""

    record: RunRecord
    differences: Sequence[Difference]
    outcome: Outcome | None
    gap: float
    source: Source
    root: Path
    processor: str = field(default_factory=processor)

    @cached_property
    def word(self) -> str:
        """`reproduced`, `equal up to near-ties` or `not reproduced`."""
        return self.outcome.word if self.outcome else NOT

    @property
    def code(self) -> int:
        return int(self.word == NOT)

    def line(self) -> str:
        """The verdict in one line."""
        return clean(f"{self.record.label} {self.record.id}: {self.word}{self.why}")

    @property
    def why(self) -> str:
        if self.outcome is None or (self.differences and self.word == NOT):
            rest = len(self.differences) - 1
            return f": {self.differences[0]}{f' (and {rest} more)' if rest else ''}"
        found = self.outcome
        if self.word == REPRODUCED:
            return f" ({found.queries} rankings and contexts, and every value, are equal)"
        if self.word == NEARLY:
            gaps = [distance for distance in found.moved.values() if distance is not None]
            return (
                f" ({len(found.moved)} of {found.queries} queries differ, by hits alone whose scores are less than "
                f"{self.gap:g} apart, at most {max(gaps):.2g}; {self.range})"
            )
        return ": no recorded input differs" if not self.differences else ""

    @property
    def range(self) -> str:
        """The primary measure, recorded and today."""
        measure, before, after = self.outcome.primary if self.outcome else ("", None, None)
        if before is None or after is None:
            return f"{measure} does not apply"
        low, high = sorted((before, after))
        return f"{measure} {before:.4f} as recorded" if low == high else f"{measure} between {low:.4f} and {high:.4f}"

    def lines(self) -> list[str]:
        """All that is to be said, the verdict first."""
        found = [f"- {text}" for text in listed(self.differences)] if len(self.differences) > 1 or self.outcome else []
        if self.outcome is None and self.differences:
            advice = "; --anyway runs the line all the same and lets its numbers decide" if self.source.dataset else ""
            found.append(f"nothing was run{advice}")
        if any(each.what == "code" for each in self.differences):
            was = committed(self.record.environment.get("git") or self.record.lineage)  # a server has the latter alone
            found.append(f"it was recorded at {was}, and this is {committed(checkout(self.root))}")
        if self.outcome:
            found += self.moves(self.outcome)
        if self.source.problem and not any(each.what == "dataset" for each in self.differences):
            found.append(f"who reads its data is told: {self.source.problem}")
        return [self.line(), *(clean(text) for text in found)]

    def moves(self, outcome: Outcome) -> list[str]:
        """What is not as it was recorded among rankings and values."""
        found = []
        far = [name for name, distance in outcome.moved.items() if distance is None]
        if far:
            found.append(f"{len(far)} of {outcome.queries} rankings or contexts differ: {some(far)}; {self.range}")
        for measure, names in list(outcome.values.items())[:NAMED]:
            found.append(f"{measure} differs on {len(names)} queries whose rankings are equal: {some(names)}")
        cpu = self.record.environment.get("cpu") or self.record.lineage.get("cpu")
        if outcome.word != REPRODUCED and cpu != self.processor:
            found.append(f"it ran on another processor: {cpu or 'not recorded'}, now {self.processor}")
        return found

    def data(self) -> dict[str, Any]:
        """The verdict as plain data."""
        found = self.outcome
        return {
            "run": self.record.id,
            "study": self.record.study,
            "variant": self.record.variant,
            "verdict": self.word,
            "differences": [
                {"what": e.what, "name": e.name, "how": e.how, "recorded": e.recorded, "found": e.found}
                for e in self.differences
            ],
            "ran": found is not None,
            "queries": found.queries if found else None,
            "moved": dict(found.moved) if found else {},
            "values": {measure: list(names) for measure, names in found.values.items()} if found else {},
            "primary": dict(zip(("measure", "recorded", "found"), found.primary, strict=True)) if found else None,
            "gap": self.gap,
            "problem": self.source.problem,
        }


def committed(git: Mapping[str, Any] | None) -> str:
    """The state of a checkout: its commit, and whether something is not committed."""
    if not git or not git.get("commit"):
        return "no checkout"
    return f"commit {git['commit']}{' with uncommitted changes' if git.get('diff') else ''}"


def some(names: Sequence[str]) -> str:
    return ", ".join(names[:NAMED]) + (", ..." if len(names) > NAMED else "")
