"""Two run ids in, the two records and the dataset that both ran on out; refused where they do not belong together."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from ablate.audit import Audit
from ablate.errors import NotComparable
from ablate.evaluate import audited
from ablate.files import BrokenRecord
from ablate.records import RunRecord, find, named
from ablate.types import Chunk, Dataset, Document, Query
from ablate.workspace import Workspace

SAME = ("corpus", "ground_truth")
"""The fingerprints that two runs share whose results one person can judge."""


@dataclass(frozen=True)
class Sides:
    """Two runs and their dataset. The order of the runs is that of their ids: which was named first is not told."""

    runs: tuple[RunRecord, RunRecord]
    dataset: Dataset

    @cached_property
    def documents(self) -> Mapping[str, Document]:
        return {document.id: document for document in self.dataset.documents}

    @cached_property
    def queries(self) -> Mapping[str, Query]:
        return {query.id: query for query in self.dataset.queries}

    @cached_property
    def audit(self) -> Audit:
        return audited(self.dataset)

    def ranked(self, record: RunRecord, query: str, depth: int) -> list[Chunk]:
        """The first `depth` chunks of a side, best first."""
        return chunks(record, record.ranking.get(query, {}).get("hits", [])[:depth], self.documents)

    def context(self, record: RunRecord, query: str) -> list[Chunk]:
        """The passages that a side handed over, in reading order."""
        return chunks(record, record.ranking.get(query, {}).get("context", []), self.documents)

    def depth(self, wanted: int | None) -> int:
        """The one depth to which both sides are looked through: `wanted`, else the k that both ran with.

        Raises:
            NotComparable: they ran with different k, or a side was not recorded so deep.

        """
        found = {int(record.config["k"]) for record in self.runs if "k" in record.config}
        if wanted is None and len(found) != 1:
            raise NotComparable(
                f"k: found {' and '.join(map(str, sorted(found))) or 'none recorded'}, expected the same k on both "
                "sides; give --depth, which holds for both"
            )
        depth = found.pop() if wanted is None else wanted
        for record in self.runs:
            deepest = int(record.config.get("depth", depth))
            if not 1 <= depth <= deepest:
                raise NotComparable(
                    f"--depth: found {depth}, expected 1 to {deepest}, the depth to which run {record.id} was recorded"
                )
        return depth


def sides(place: Workspace, wanted: Sequence[str], dir: str | None = None) -> Sides:
    """The two runs that `wanted` names, with the dataset of their config, or the one in `dir`.

    Raises:
        RunNotFound: an id names no run, or several.
        NotComparable: the runs, or the runs and the dataset, do not belong together.
        DatasetError: the dataset cannot be read.

    """
    known = find(place)
    first, second = sorted((named(known, name) for name in wanted), key=lambda record: record.id)
    agreeing(first, second)
    return Sides((first, second), recorded(first, dir))


def agreeing(first: RunRecord, second: RunRecord) -> None:
    """Refuse one run twice, a run that did not finish, and runs on different texts or ground truths."""
    if first.id == second.id:
        raise NotComparable(f"run {first.id}: found it twice, expected two runs; name the other one")
    for record in (first, second):
        if not record.finished:
            raise NotComparable(f"run {record.id}: found a run that failed, expected one that finished; run it again")
    for name in SAME:
        left, right = (record.fingerprints.get(name) for record in (first, second))
        if left != right:
            advice = {"ground_truth": "; `python -m ablate rescore` brings both to one ground truth"}.get(name, "")
            raise NotComparable(
                f"runs {first.id} and {second.id}: found the {name} fingerprints {short(left)} and {short(right)}, "
                f"expected one; choose two runs of one study{advice}"
            )


def recorded(record: RunRecord, dir: str | None) -> Dataset:
    """The dataset that a run was made on.

    Raises:
        NotComparable: what lies there now is not what the run was made on.

    """
    from ablate import config

    folder = config.recorded(record.config, "dataset")
    if dir is not None:
        folder = replace(folder, dir=dir)
    dataset: Dataset = folder.read()
    for name in SAME:
        ran, lies = record.fingerprints.get(name), dataset.fingerprints[name]
        if ran != lies:
            raise NotComparable(
                f"{dataset.folder}: found the {name} fingerprint {short(lies)}, expected {short(ran)} of run "
                f"{record.id}; give the folder that it ran on with --dataset, or run it again"
            )
    return dataset


def chunks(record: RunRecord, rows: Iterable[Mapping[str, Any]], documents: Mapping[str, Document]) -> list[Chunk]:
    """Places that a run recorded as chunks of the documents that they name.

    Raises:
        BrokenRecord: a place without one of its keys, or in a document that there is not.

    """
    try:
        return [Chunk(documents[row["doc_id"]], row["start"], row["end"]) for row in rows]
    except KeyError as error:
        raise BrokenRecord(
            f"{record.folder / 'ranking.jsonl'}: found no {error}, expected places in documents of the dataset; "
            "run it again"
        ) from error


def short(fingerprint: str | None) -> str:
    return fingerprint[:8] if fingerprint else "(none)"
