"""All traces of a run go in, the ledger of where its evidence was lost comes out, each blame tried again."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from ablate.ledger.blame import Restored, Trial
from ablate.ledger.corpus import Corpus
from ablate.ledger.course import Course, End
from ablate.ledger.entry import Entry, entry
from ablate.ledger.stages import CANDIDATES, CHUNKING, DELIVERED, INGESTION, TRUNCATION
from ablate.types import Fact, Trace


def ledger(corpus: Corpus, traces: Iterable[Trace], barred: Mapping[str, frozenset[str]]) -> list[Entry]:
    """An entry of every answerable query that has alternatives, in the order of the traces.

    `barred` has, by query, the documents among its evidence that its principals may not read.
    """
    truths = corpus.ready.dataset.truths
    courses = [
        Course(corpus, trace, truths[trace.query.id], barred[trace.query.id])
        for trace in traces
        if trace.query.answerable and truths[trace.query.id].alternatives
    ]
    fates = truncated(corpus, courses)
    entries = [entry(course.truth, known) for course, known in zip(courses, fates, strict=True)]
    return tried(corpus, courses, entries)


def truncated(corpus: Corpus, courses: Sequence[Course]) -> list[Mapping[Fact, str]]:
    """The fates of all facts, those told apart that no search could find because the encoder had not seen them."""
    unlisted = [end for course in courses for end in course.ends.values() if end.stage == CANDIDATES]
    sight = corpus.sight({unit for end in unlisted for unit in end.units})

    def stage(course: Course, end: End) -> str:
        if end.stage == CANDIDATES and sight is not None and course.unseen(end.units, sight):
            return TRUNCATION
        return end.stage

    return [{fact: stage(course, end) for fact, end in course.ends.items()} for course in courses]


def tried(corpus: Corpus, courses: Sequence[Course], entries: Sequence[Entry]) -> list[Entry]:
    """The entries with every blame tried: verified where the fact comes back once that stage alone is perfect."""
    lost: dict[str, list[tuple[Course, Fact]]] = {INGESTION: [], CHUNKING: []}
    for course, known in zip(courses, entries, strict=True):
        for fate in known.fates:
            if fate.stage in lost:
                lost[fate.stage].append((course, fate.fact))
    restored = Restored(corpus, lost)
    return [
        replace(
            known,
            fates=tuple(
                fate if fate.stage == DELIVERED else Trial(course, fate.fact, restored)(fate.stage)
                for fate in known.fates
            ),
        )
        for course, known in zip(courses, entries, strict=True)
    ]
