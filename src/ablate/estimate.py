"""Plans go in; what their runs will cost comes out before any of it is spent: texts, pairs, time and disk."""

from __future__ import annotations

import itertools
import logging
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from statistics import fmean
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ablate import records
from ablate.config import settings
from ablate.dataset.once import read_once
from ablate.errors import AblateError, first_line
from ablate.identity import Side, digest, sides
from ablate.progress import draw, erase
from ablate.quotation import told
from ablate.records import RunRecord
from ablate.reranker import Pair
from ablate.store import Stored, StoredEmbedder, StoredReranker, length, named, offers
from ablate.study import kept, pieces, recorded
from ablate.types import Chunk, Dataset, Hit, Query
from ablate.variant import Plan
from ablate.workspace import Workspace

log = logging.getLogger(__name__)

FEW = 200
"""So many texts or pairs take seconds: nobody needs to be told before, and no model is tried out for them."""

TRIED = 16
"""How many texts or pairs a model is tried out on."""

FULL = 1.3
"""By how much a file of vectors is larger than they are."""

SCORE = 72
"""Bytes of a kept score, with its key and checksum."""

BEFORE_RERANKER = ("tokens", "chunker", "embedder", "retriever", "filter", "access", "depth")
"""The keys of a config that decide which pairs a reranker is given."""


@dataclass(frozen=True)
class Task:
    """What one model has to compute: `todo` of `total` texts, or at most so many pairs, for a search comes before them.

    `kept` rows are there already; of pairs nobody knows whether they are the ones that will be asked for. `seconds` is
    None where nobody knows how fast the model is on this machine; `size` is bytes on disk, None where nobody knows how
    large its vectors are.
    """

    model: str
    todo: int
    total: int | None
    kept: int
    seconds: float | None
    size: float | None

    def __str__(self) -> str:
        if self.total is None:
            text = f"{self.model}: at most {self.todo:,} pairs to score"
            text += f", less those among the {self.kept:,} that are kept" if self.kept else ""
        else:
            text = f"{self.model}: {self.todo:,} of {self.total:,} texts to encode"
        return f"{text}; {duration(self.seconds, self.total is None)}" if self.todo else text

    @property
    def large(self) -> bool:
        """Whether it is worth a word; pairs are taken to be among the kept ones."""
        return self.todo - (self.kept if self.total is None else 0) > FEW


@dataclass(frozen=True)
class Estimate:
    """What a command costs: how many runs it makes and how many it only shows, and what the models have to compute.

    `timing` are the seconds in which models are asked for the sake of latency, `besides` those of a run in which none
    is asked (None: no run has shown it), `size` the bytes of a run's files. `problems` say what could not be told.
    """

    runs: int
    recorded: int
    tasks: Sequence[Task]
    timing: float
    besides: float | None
    size: int
    problems: Sequence[str]

    @property
    def seconds(self) -> float | None:
        """Of all runs together, where every model's are known."""
        spent = [task.seconds for task in self.tasks if task.todo]
        known = [seconds for seconds in spent if seconds is not None]
        return sum(known) + self.timing + self.runs * (self.besides or 0.0) if len(known) == len(spent) else None

    @property
    def large(self) -> bool:
        """Whether a run should begin with it."""
        return any(task.large for task in self.tasks)

    def lines(self) -> Iterator[str]:
        """What is told."""
        yield f"runs to make: {self.runs}; recorded already: {self.recorded}"
        yield from map(str, self.tasks)
        if self.runs:
            rest = "" if self.besides is not None else ", and what searching and scoring take"
            size = sum(task.size or 0.0 for task in self.tasks) + self.runs * self.size
            at_most = any(task.total is None for task in self.tasks)
            yield f"in all {duration(self.seconds, at_most)}{rest}; {max(1, round(size / 1e6)):,} MB of disk"
        yield from self.problems


def duration(seconds: float | None, at_most: bool) -> str:
    """A time as it is told before it has passed."""
    if seconds is None:
        return "an unknown time, for nothing was computed on this machine yet (dry_run=true tries it out)"
    told = f"{max(1, round(seconds))} s"
    for size, unit in ((60, "min"), (3600, "h")):
        told = f"{seconds / size:.1f} {unit}" if seconds >= 1.5 * size else told
    return f"{'at most' if at_most else 'about'} {told}"


@dataclass
class Encoding:
    """The texts that a model has to turn into vectors, by whether they are queries, for these variants."""

    embedder: StoredEmbedder
    variants: set[str] = field(default_factory=set)
    texts: dict[bool, set[str]] = field(default_factory=lambda: {False: set(), True: set()})

    def kept(self, texts: Sequence[str], as_queries: bool) -> tuple[NDArray[np.float32], None]:
        """Vectors that are kept; of queries too, for whoever times them asks the model itself."""
        return (self.embedder.queries if as_queries else self.embedder.documents)(texts), None

    def task(self, trying: bool) -> Task:
        """What is left of them; a model whose pace nobody knows is tried out, for it has to be loaded anyway."""
        left, glance = {}, self.embedder.glance([])[1]
        for as_queries, texts in self.texts.items():
            left[as_queries] = self.embedder.glance(sorted(texts), as_queries)[0]
        todo, row = sum(map(len, left.values())), glance.size / glance.rows if glance.rows > FEW else None
        documents, queries = glance.paces.get("document"), glance.paces.get("query")
        if todo and not glance.paces and (trying or todo > FEW):
            kind = not left[False]
            read = self.embedder.embedder.read if trying else self.kept  # a run that follows needs what was tried
            documents, answer = tried(partial(read, as_queries=kind), spread(left[kind]))
            row = row or (FULL * answer[0][0].nbytes if answer else None)
        documents, queries = documents or queries, queries or documents
        seconds = None
        if documents and queries:
            seconds = documents * sum(map(weight, left[False])) + queries * sum(map(weight, left[True]))
        name = labelled(f"embedder {self.embedder.model}", self.variants)
        return Task(name, todo, sum(map(len, self.texts.values())), glance.rows, seconds, row and row * todo)


@dataclass
class Judging:
    """The pairs that a model has to score at most, for these variants.

    `pairs` are their number and characters, by what decides which pairs they are; `live` the characters of those that
    are scored for the sake of latency; `chunks`, by what is read of them, and `queries` some of what there is to pair.
    """

    reranker: StoredReranker
    variants: set[str] = field(default_factory=set)
    pairs: dict[str, tuple[int, float]] = field(default_factory=dict)
    live: float = 0.0
    chunks: dict[str, Chunk] = field(default_factory=dict)
    queries: Sequence[Query] = ()

    def task(self, trying: bool) -> tuple[Task, float]:
        """How many they are, and the seconds of those that are scored live.

        A model is tried out only where nothing of it is kept: else it may be that it need not be loaded at all.
        """
        glance, todo = self.reranker.glance(), sum(number for number, _ in self.pairs.values())
        pace, ahead = glance.paces.get("pair"), 0.0
        if todo and pace is None and (trying or (todo > FEW and not glance.rows)):
            pace, ahead = self.tried()
        seconds = None if pace is None else ahead + pace * sum(characters for _, characters in self.pairs.values())
        name = labelled(f"reranker {self.reranker.model}", self.variants)
        return Task(name, todo, None, glance.rows, seconds, todo * SCORE), self.live * (pace or 0.0)

    def tried(self) -> tuple[float | None, float]:
        """Seconds a character of pairs, and the seconds of what is computed of all chunks once, ahead of the pairs."""
        reranker, texts, ahead = self.reranker.reranker, spread(self.chunks), 0.0
        if offers(reranker, "prepare"):
            texts = texts[: reranker.first]  # of more it prepares none
            pace, _ = tried(lambda part: reranker.prepare([Hit(self.chunks[text], 0.0) for text in part]), texts)
            ahead = (pace or 0.0) * sum(map(weight, self.chunks))
        asked = itertools.cycle(spread(query.text for query in self.queries))
        pace, _ = tried(reranker.read, list(zip(asked, texts, strict=False)))
        return pace, ahead


def spread(texts: Iterable[str]) -> list[str]:
    """Some of these texts, of every length that there is, for a model to be tried out on."""
    ordered = sorted(texts, key=weight)
    return ordered[:: -(-len(ordered) // TRIED)] if ordered else []


def tried(read: Callable[[Any], Any], items: Sequence[Any]) -> tuple[float | None, Any]:
    """Seconds a character that a model takes for these texts or pairs, and its answer; None where it fails."""
    draw(f"trying a model on {len(items)} texts")
    try:
        read(items[:1])  # loads it
        began = time.perf_counter()
        answer = read(items)
    except AblateError as error:  # its run tells in full
        log.warning("%s", first_line(error))
        return None, None
    except Exception as error:  # its words may quote what the model was given, and its run tells those that may be told
        log.warning("a model that was tried out: found %s, expected an answer; its run says more", type(error).__name__)
        return None, None
    finally:
        erase()
    return (time.perf_counter() - began) / sum(map(weight, items)), answer


def weight(item: str | Pair) -> int:
    """By how much a text or pair counts where time is told by length."""
    return max(1, length("".join(item)))


def labelled(model: str, variants: set[str]) -> str:
    """A model, and the variant if only that one asks it."""
    return model if len(variants) > 1 or "baseline" in variants else f"{model} ({', '.join(variants)})"


@dataclass
class Demand:
    """What the runs to come ask of models.

    `runs` are those asked for, with the record of each that has one; `unkept` names models whose work is not kept.
    """

    place: Workspace
    runs: dict[str, RunRecord | None] = field(default_factory=dict)
    studies: set[str] = field(default_factory=set)
    problems: list[str] = field(default_factory=list)
    encodings: dict[str, Encoding] = field(default_factory=dict)
    judgings: dict[str, Judging] = field(default_factory=dict)
    unkept: set[str] = field(default_factory=set)

    def of(self, plan: Plan) -> None:
        """The runs of one plan, unless they were asked for already."""
        dataset = read_once(settings(plan.baseline).dataset)
        base, *variants = sides(plan, dataset)
        self.studies.add(base.study)
        for side in (base, *variants):
            if side.run in self.runs:
                continue
            try:
                baseline = self.runs.get(base.run)
                known = recorded(side, self.place, baseline) if baseline or side is base else None
                if known is None:
                    self.add(side, [base] if side is base else [base, side], dataset)
                self.runs[side.run] = known
            except Exception as error:
                said = str(error) if isinstance(error, AblateError) else told(error, dataset).reason
                self.problems.append(f"{side.variant}: {said.splitlines()[0]}")

    def add(self, side: Side, together: Sequence[Side], dataset: Dataset) -> None:
        """A run of `side`; all that are timed `together` are indexed for it."""
        for other in together:
            line = kept(other, dataset, self.place)
            chunks = [chunk for piece in pieces(other, dataset) for chunk in piece]
            if not chunks or not dataset.queries:
                continue
            if asks(line.retriever, chunks[0]):
                self.encode(line.embedder, other, chunks, dataset.queries if other is side else ())
            if isinstance(line.reranker, StoredReranker):
                handed = {chunk.handed.reading: chunk.handed for chunk in chunks}
                self.judge(line.reranker, other, side, dataset, handed)

    def encode(self, embedder: Any, side: Side, chunks: Sequence[Chunk], queries: Sequence[Query]) -> None:
        """The texts of an index, and of the queries whose vectors are kept."""
        if not isinstance(embedder, StoredEmbedder):
            self.unkept.add(named(embedder))
            return
        encoding = self.encodings.setdefault(where(embedder), Encoding(embedder))
        encoding.variants.add(side.variant)
        encoding.texts[False].update(chunk.reading for chunk in chunks)
        encoding.texts[True].update(query.text for query in queries)

    def judge(
        self, reranker: StoredReranker, side: Side, run: Side, dataset: Dataset, chunks: Mapping[str, Chunk]
    ) -> None:
        """The pairs of the queries that are timed for a run, and of all queries if it is the side's own."""
        judging = self.judgings.setdefault(where(reranker), Judging(reranker))
        judging.variants.add(side.variant)
        judging.chunks |= chunks
        judging.queries = dataset.queries
        first, queries = min(reranker.first, side.settings.depth, len(chunks)), len(dataset.queries)
        characters = fmean(map(weight, chunks)) + fmean(weight(query.text) for query in dataset.queries)
        judging.live += run.settings.latency.asked(queries) * first * characters
        if side is run:
            key = digest([dataset.fingerprints, {name: side.config[name] for name in BEFORE_RERANKER}])
            most = queries * first, queries * first * characters
            judging.pairs[key] = max(judging.pairs.get(key, most), most)


def where(component: Stored) -> str:
    """What parts one model's work from all others'."""
    return f"{component.folder} {component.revision}"


class Asked(Exception):
    """An embedder was."""


class Curious:
    """Stands in for an embedder, to find out whether it is needed."""

    def __getattr__(self, name: str) -> Any:
        raise Asked


def asks(retriever: Any, chunk: Chunk) -> bool:
    """Whether a retriever has chunks encoded."""
    try:
        retriever.index([chunk], Curious())
    except Asked:
        return True
    return False


def estimate(plans: Sequence[Plan], place: Workspace, trying: bool) -> Estimate:
    """What the runs of these plans will cost; with `trying`, any model whose pace nobody knows is tried out.

    With `trying` nothing is written. What goes wrong here goes wrong again, and is told in full, where it belongs: in
    its run.
    """
    demand = Demand(place)
    for plan in plans:
        demand.of(plan)
    judged = [judging.task(trying) for judging in demand.judgings.values()]
    tasks = [encoding.task(trying) for encoding in demand.encodings.values()] + [task for task, _ in judged]
    made = sum(record is None for record in demand.runs.values())
    done = [record for study in demand.studies for record in records.find(place, study) if record.finished and made]
    besides = [record.seconds - record.computing for record in done if record.computing is not None]
    return Estimate(
        made,
        len(demand.runs) - made,
        tasks,
        timing=sum(live for _, live in judged),
        besides=min(besides, default=None),
        size=sum(path.stat().st_size for record in done[-1:] for path in record.files),
        problems=[
            *demand.problems,
            *(f"{name}: nothing it encodes is kept, so that every run does it all" for name in sorted(demand.unkept)),
        ],
    )
