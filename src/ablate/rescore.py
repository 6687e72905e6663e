"""Recorded runs and a new version of their ground truth go in, runs that are scored on it come out: nothing runs again.

A ranking depends on the corpus, on what is asked and by whom, and on the line. What a query needs is not among that, so
that rankings and contexts which are recorded can be scored on every later version of the ground truth.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import yaml
from filelock import FileLock

from ablate import archive, records
from ablate.audit import Audit
from ablate.config import Node, recorded
from ablate.errors import NotComparable
from ablate.evaluate import asked, at_all_cutoffs, audited, marked
from ablate.files import BrokenRecord
from ablate.identity import code, digest, study_name
from ablate.page import clean, public
from ablate.records import COMPACT, RunRecord
from ablate.review.sides import chunks
from ablate.score import Reader, Scoring, of_record, summarise, to_json
from ablate.score.abstention import abstention
from ablate.score.acl import forbidden
from ablate.score.judged import unjudged
from ablate.score.standards import Standards, standards
from ablate.statistics import clustered
from ablate.study import tracked
from ablate.types import Candidates, Chunk, Context, Dataset, Document, Hit, Query, Trace
from ablate.workspace import Workspace

NAMED = 5
"""How many queries a message names."""

KEPT = ("acl/candidate_violations", "acl/exposure", "acl/starved", "retrieval/ann_recall", "abstention/top_score")
"""Values of a query that rest on searches, not on what it needs: they stay as they are."""

LOST = ("ingestion/units_verbatim", "chunking/units_whole", "chunking/alternatives_whole")
"""Measures of what a query needs and of chunks that a run does not keep: they are had by running again."""

OF_THE_CORPUS = ("indexed_chunks", "silent_chunks")
"""Counts of a run that are about no query."""


@dataclass(frozen=True)
class Version:
    """A new version of a ground truth, read as the runs read theirs, and the second opinion on its access."""

    node: Node
    dataset: Dataset
    audit: Audit

    @cached_property
    def documents(self) -> Mapping[str, Document]:
        return {document.id: document for document in self.dataset.documents}

    @cached_property
    def queries(self) -> Mapping[str, Query]:
        """The queries by id, marked with what their evidence rests on."""
        return {query.id: marked(query, self.dataset.truths[query.id]) for query in self.dataset.queries}

    @cached_property
    def asked(self) -> Mapping[str, str]:
        """What identifies each query to a line, by its id."""
        return {name: asked(query, self.audit, self.dataset.acl_default) for name, query in self.queries.items()}

    def missing(self, record: RunRecord) -> list[str]:
        """The queries of which a run has no ranking: new ones, and those that were asked otherwise."""
        return [name for name, mark in self.asked.items() if record.queries.get(name, {}).get("asked") != mark]


def again(dir: str) -> str:
    """The command that runs on a dataset, as a shell takes it."""
    return shlex.join(["python", "-m", "ablate", f"dataset.dir={dir}"])


@dataclass(frozen=True)
class Rescoring:
    """Scores runs on the dataset in `dir`; with `common` on the queries alone of which every run has a ranking.

    `scoring` (None: each run's own) is the run whose cut-offs, threshold and prices are used.
    """

    place: Workspace
    dir: str
    common: bool = False
    scoring: RunRecord | None = None
    versions: dict[str, Version] = field(default_factory=dict, repr=False)

    def __call__(self, runs: Sequence[RunRecord]) -> list[RunRecord]:
        """A new run for each of `runs`, in which a baseline stands before its variants.

        Raises:
            NotComparable: another corpus, or queries of which a run has no ranking.
            BrokenRecord: a ranking that is not the one which the run recorded.

        """
        lacking = self.lacking(runs)
        made: dict[str, RunRecord] = {}
        for run in runs:
            chosen = [name for name in self.version(run).queries if name not in lacking]
            made[run.id] = self.made(run, chosen, made.get(run.baseline or ""))
        return list(made.values())

    def version(self, run: RunRecord) -> Version:
        """The dataset in `dir`, read with the settings of the run.

        Raises:
            NotComparable: its texts, titles, metadata or access lists are not those that the run searched.

        """
        node = {**(run.config.get("dataset") or {}), "dir": self.dir}
        key = digest(node)
        if key not in self.versions:
            dataset: Dataset = recorded({"dataset": node}, "dataset").read()
            self.versions[key] = Version(node, dataset, audited(dataset))
        ran, lies = run.fingerprints.get("corpus"), self.versions[key].dataset.fingerprints["corpus"]
        if ran != lies:
            raise NotComparable(
                f"{self.dir}: found the corpus {lies}, expected {ran} of run {run.id}, for its ranking is of other "
                f"texts; the runs must be run again: {again(self.dir)}"
            )
        return self.versions[key]

    def lacking(self, runs: Sequence[RunRecord]) -> set[str]:
        """The queries of which some run has no ranking.

        Raises:
            NotComparable: there are such, and they are not to be left out, or there are no others.

        """
        missing = {run.id: self.version(run).missing(run) for run in runs}
        lacking = {name for names in missing.values() for name in names}
        others = min(len(self.version(run).queries.keys() - lacking) for run in runs)
        if lacking and not (self.common and others):
            run, names = next((run, names) for run, names in missing.items() if names)
            rest = ", ..." if len(names) > NAMED else ""
            also = f", or score the other {others} alone with --common" if others else ""
            raise NotComparable(
                f"run {run}: found no ranking of {len(names)} queries of {self.dir} "
                f"({', '.join(json.dumps(name, ensure_ascii=False) for name in names[:NAMED])}{rest}), expected one of "
                "each: they are new, or their words, filter, date or readers are not those that were asked; run "
                f"again with {again(self.dir)}{also}"
            )
        return lacking

    def made(self, run: RunRecord, chosen: Sequence[str], baseline: RunRecord | None) -> RunRecord:
        """The run that stands for `run` on the new version: itself, the one that is recorded, or one made now."""
        start, found = records.Start(), Rescored(run, self.version(run), chosen, self.scoring or run)
        if found.fingerprints == run.fingerprints:
            return run
        folder = self.place.runs / found.study / found.name
        folder.parent.mkdir(parents=True, exist_ok=True)
        with FileLock(folder.parent / f".{folder.name}.making"):
            if folder.exists():
                record = records.read(folder)
            else:
                record = records.write(folder, found.files(start, baseline))
            return tracked(record, baseline, recorded(run.config, "tracking"), self.place)


@dataclass(frozen=True)
class Rescored:
    """One run on a new version: `chosen` are the queries, `scored` is the run whose scoring settings are used."""

    run: RunRecord
    version: Version
    chosen: Sequence[str]
    scored: RunRecord

    @cached_property
    def fingerprints(self) -> dict[str, str]:
        """Those of the run, with the new ground truth; what scored it counts as its code too."""
        ran, truth = self.run.fingerprints, self.version.dataset.fingerprints["ground_truth"]
        return {
            **ran,
            "ground_truth": truth
            if len(self.chosen) == len(self.version.queries)
            else digest([truth, *sorted(self.chosen)]),
            "scoring": self.scored.fingerprints["scoring"],
            "code": ran["code"] if ran["code"] == code() else digest([ran["code"], code()]),
            "ranking": digest([self.run.hashes[name] for name in sorted(self.chosen)]),
        }

    @property
    def study(self) -> str:
        return study_name(self.version.dataset, self.fingerprints)

    @property
    def name(self) -> str:
        return f"{clean(self.run.variant).replace('/', '-')}-{digest([self.study, self.run.id, code()])[:8]}"

    @cached_property
    def config(self) -> Node:
        scoring = {key: node for key, node in self.scored.config.items() if key == "score"}
        others = {key: node for key, node in self.run.config.items() if key != "score"}
        return {**others, "dataset": self.version.node, **scoring}

    @cached_property
    def clusters(self) -> dict[str, str]:
        return clustered(self.version.dataset)

    @cached_property
    def standards(self) -> Standards:
        return standards(self.version.dataset)

    @cached_property
    def measures(self) -> dict[str, dict[str, Any]]:
        """What the queries come to, and what was measured of the line."""
        queries = [trace.query for trace in self.traces]
        comparable = any(row.get("abstention/top_score") is not None for row in self.values.values())
        cost: float = recorded(self.config, "score").false_answer_cost
        return {
            **summarise(queries, self.values),
            **{name: dict(self.run.measures[name]) for name in self.run.measures if of_the_line(name)},
            **abstention(queries, self.values, self.clusters, cost, comparable),
        }

    @cached_property
    def traces(self) -> list[Trace]:
        return [self.trace(name) for name in sorted(self.chosen)]

    def trace(self, name: str) -> Trace:
        """As much of a query's way down the line as is recorded.

        Raises:
            BrokenRecord: its ranking is not the one whose hash was recorded with its values.

        """
        row, documents = self.run.queries[name], self.version.documents
        line = self.run.ranking.get(name, {"hits": (), "context": ()})
        hits = [Hit(chunk, 0.0) for chunk in chunks(self.run, line["hits"], documents)]
        context = Context(chunks(self.run, line["context"], documents), int(row["values"]["context/tokens"]))
        pool = row["pool"]
        trace = Trace(
            self.version.queries[name], Candidates({}, ()), (), hits, context, pool["chunks"], pool["documents"], {}
        )
        if archive.fingerprint(trace) != row["ranking_hash"]:
            raise BrokenRecord(
                f"{self.run.folder / 'ranking.jsonl'}: found another ranking of the query {name!r} than the one that "
                "was scored, expected the same; run it again"
            )
        return trace

    @cached_property
    def values(self) -> dict[str, dict[str, float | None]]:
        """Every value of every query; what rests on searches is as it was recorded."""
        tokens, budget, k, depth = (recorded(self.config, key) for key in ("tokens", "budget", "k", "depth"))
        scoring: Scoring = at_all_cutoffs(recorded(self.config, "score"), k, depth)
        lengths: dict[Chunk, int] = {}

        def length(chunk: Chunk) -> int:
            if chunk not in lengths:
                lengths[chunk] = tokens.count(chunk.text)
            return lengths[chunk]

        reader = Reader(tokens, budget, length)
        return {trace.query.id: self.scores(trace, scoring, reader) for trace in self.traces}

    def scores(self, trace: Trace, scoring: Scoring, reader: Reader) -> dict[str, float | None]:
        row, audit = self.run.queries[trace.query.id], self.version.audit
        denied = audit.denied(trace.query.principals) if audit.checked else frozenset()
        shown = float(len(forbidden(trace.context.passages, denied)))
        truth, ranking = self.version.dataset.truths[trace.query.id], [hit.chunk for hit in trace.ranked]
        documents, spent = self.version.documents, row["spent"]
        values = of_record(truth, ranking, trace.context, documents, denied, scoring, spent, reader)
        k, completion = self.config["k"], values["retrieval/completion_rank"]
        return {
            **values,
            "acl/violations": shown if audit.checked else None,
            **{name: row["values"][name] for name in KEPT if name in row["values"]},
            **self.standards(trace.query, truth, ranking, completion, trace.context, k, reader.length),
        }

    def files(self, start: records.Start, baseline: RunRecord | None) -> archive.Files:
        """The files of the new run; what was measured of the line and of the machine is copied."""
        run, queries = self.run, [trace.query for trace in self.traces]
        copied = [path for path in run.files if path.name in ("changes.json", "latency.jsonl", "environment.json")]
        metrics, rows = {"measures": self.measures, "counts": self.counts}, [self.row(t.query) for t in self.traces]
        return {
            "run.json": self.facts(start, baseline),
            "config.yaml": public(yaml.safe_dump(self.config, allow_unicode=True, sort_keys=False)),
            "overrides.yaml": yaml.safe_dump(list(run.overrides), allow_unicode=True),
            "metrics.json": metrics,
            "queries.jsonl": rows,
            COMPACT: archive.compact(metrics, rows, self.config),
            "ranking.jsonl": [run.ranking[query.id] for query in queries],
            "ranking.trec": "".join(line for trace in self.traces for line in archive.trec(trace)),
            **{path.name: path.read_bytes() for path in copied},
        }

    def facts(self, start: records.Start, baseline: RunRecord | None) -> Node:
        left_out = ("computing", *(() if len(self.chosen) == len(self.run.queries) else ("stages",)))
        return {
            **{key: value for key, value in self.run.facts.items() if key not in left_out},
            "run": self.name,
            "study": self.study,
            "dataset": self.version.dataset.name,
            "dataset_version": self.version.dataset.version,
            "baseline": baseline.id if baseline else None,
            "rescored_from": self.run.id,
            "sweep": "",
            **start.told(),
            "fingerprints": self.fingerprints,
        }

    def row(self, query: Query) -> Node:
        labels = archive.labels(query, self.clusters[query.id])
        return {
            **self.run.queries[query.id],
            **labels,
            "unjudged": archive.places(self.unjudged(query)),
            "values": to_json(self.values[query.id]),
        }

    def unjudged(self, query: Query) -> list[Chunk]:
        line, audit = self.run.ranking.get(query.id, {}), self.version.audit
        passages = chunks(self.run, line.get("context", ()), self.version.documents)
        denied = audit.denied(query.principals) if audit.checked else frozenset()
        return unjudged(self.version.dataset.truths[query.id], passages, denied)

    @property
    def counts(self) -> dict[str, int]:
        was, known = self.run.metrics.get("counts", {}), self.version.queries
        return {
            **{name: was[name] for name in OF_THE_CORPUS if name in was},
            **self.version.dataset.counts,
            "queries": len(self.chosen),
            "queries_without_hits": sum(not trace.ranked for trace in self.traces),
            "queries_without_ranking": len(known) - len(self.chosen),
            "queries_removed": sum(name not in known for name in self.run.queries),
        }


def of_the_line(measure: str) -> bool:
    """Whether a measure is about no query and can be had from no record: times, chunks, what was ingested."""
    return measure.startswith(("latency/", "ingestion/", "chunking/")) and measure not in LOST


def with_baselines(known: Iterable[RunRecord], runs: Iterable[RunRecord]) -> list[RunRecord]:
    """The runs and the baselines that they were measured against, where these are recorded; a baseline comes first."""
    chosen = {run.id: run for run in runs}
    bases = {run.baseline for run in chosen.values()}
    return records.families({**chosen, **{run.id: run for run in known if run.id in bases}}.values())
