"""A dataset in, numbers that describe it out: lengths, languages, evidence, cohorts, and who may read what."""

from __future__ import annotations

import math
import statistics
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from ablate.dataset.documents import Readers
from ablate.score.summary import PER_VALUE
from ablate.tokens import script
from ablate.types import Acl, Dataset, Query, Truth, Unit

Need = frozenset[frozenset[frozenset[Acl | None]]]
"""The ACLs of a query's evidence: of its alternatives, of their facts, of the sources of each."""


@dataclass(frozen=True)
class Spread:
    """How `n` numbers are spread. `p95` is the least of them that 95 % do not exceed; without any all are 0."""

    n: int
    min: float
    median: float
    p95: float
    max: float


@dataclass(frozen=True)
class Cohort:
    """The queries with `key=value`; a key is not averaged where its values have fewer than 5 queries on average."""

    key: str
    value: str
    queries: int
    averaged: bool


@dataclass(frozen=True)
class Asker:
    """Who asks: `principals` as one person holds them.

    `answerable` counts the queries of the dataset, whoever asks them, of which an alternative can be read by them.
    """

    principals: tuple[str, ...]
    asked: int
    documents: int
    answerable: int


@dataclass(frozen=True)
class Group:
    """A name that ACLs hold, with the number of documents that allow it and that deny it."""

    name: str
    allows: int
    denies: int


@dataclass(frozen=True)
class Stats:
    """What a dataset is made of.

    `scripts` of documents and queries give the share of the letters written in each, `main_scripts` the number of texts
    by the script of most of their letters. Facts are counted per alternative, units (different ones) and alternatives
    per query. `confirmed` counts the alternatives that an expert confirmed or added.
    """

    counts: Mapping[str, int]
    tokens: Spread
    query_tokens: Spread
    scripts: Mapping[str, float]
    main_scripts: Mapping[str, int]
    query_scripts: Mapping[str, float]
    query_main_scripts: Mapping[str, int]
    alternatives: Spread
    facts: Spread
    units: Spread
    units_without_span: int
    alternatives_in_all: int
    confirmed: int
    judgments: int
    unanswerable: Mapping[str, int]
    cohorts: tuple[Cohort, ...]
    askers: tuple[Asker, ...]
    groups: tuple[Group, ...]


def stats(dataset: Dataset, count: Callable[[str], int]) -> Stats:
    """The numbers of a dataset; `count` gives the study tokens of a text."""
    known = [truth for truth in dataset.truths.values() if truth.alternatives]
    units = [different(truth) for truth in known]
    texts, questions = Scripts(), Scripts()
    lengths = [texts.take(document.text, count) for document in dataset.documents]
    asked = [questions.take(query.text, count) for query in dataset.queries]
    return Stats(
        counts=dataset.counts,
        tokens=spread(lengths),
        query_tokens=spread(asked),
        scripts=texts.shares,
        main_scripts=dict(texts.main.most_common()),
        query_scripts=questions.shares,
        query_main_scripts=dict(questions.main.most_common()),
        alternatives=spread([len(truth.alternatives) for truth in known]),
        facts=spread([len(alternative) for truth in known for alternative in truth.alternatives]),
        units=spread([len(found) for found in units]),
        units_without_span=sum(not unit.spans for found in units for unit in found),
        alternatives_in_all=sum(len(truth.alternatives) for truth in known),
        confirmed=sum(len(truth.confirmed) for truth in known),
        judgments=sum(len(truth.judged) for truth in dataset.truths.values()),
        unanswerable=dict(Counter(str(query.why) for query in dataset.queries if not query.answerable).most_common()),
        cohorts=cohorts(dataset.queries),
        askers=askers(dataset, known),
        groups=groups(dataset),
    )


class Scripts:
    """Gathers in which scripts the letters of texts are written."""

    def __init__(self) -> None:
        self.letters: Counter[str] = Counter()
        self.main: Counter[str] = Counter()

    def take(self, text: str, count: Callable[[str], int]) -> int:
        """Look at a text; the number of its tokens."""
        found: Counter[str] = Counter()
        for letter, times in Counter(text).items():
            if letter.isalpha():
                found[script(letter).capitalize()] += times
        self.letters += found
        self.main[min(found, key=lambda name: (-found[name], name)) if found else "none"] += 1
        return count(text)

    @property
    def shares(self) -> dict[str, float]:
        return {name: times / self.letters.total() for name, times in self.letters.most_common()}


def spread(numbers: Sequence[float]) -> Spread:
    if not numbers:
        return Spread(0, 0, 0, 0, 0)
    found = sorted(numbers)
    p95 = found[math.ceil(0.95 * len(found)) - 1]
    return Spread(len(found), found[0], statistics.median(found), p95, found[-1])


def different(truth: Truth) -> set[Unit]:
    return {unit for alternative in truth.alternatives for fact in alternative for unit in fact}


def cohorts(queries: Iterable[Query]) -> tuple[Cohort, ...]:
    """Every cohort, by key and value."""
    values: dict[str, Counter[str]] = {}
    for query in queries:
        for key, value in query.cohorts.items():
            values.setdefault(key, Counter())[value] += 1
    return tuple(
        Cohort(key, value, number, found.total() >= PER_VALUE * len(found))
        for key, found in sorted(values.items())
        for value, number in sorted(found.items())
    )


def askers(dataset: Dataset, truths: Sequence[Truth]) -> tuple[Asker, ...]:
    """Everyone who asks a query, those who ask most first."""
    readers = Readers(dataset.groups, dataset.acl_default)
    acls = {document.id: document.acl for document in dataset.documents}
    alike: Counter[Acl | None] = Counter(acls.values())
    public = alike.total() == alike[None]
    naming: dict[str, list[Acl]] = {}
    for acl in alike:
        if acl is not None:
            for name in acl.allow:
                naming.setdefault(name, []).append(acl)
    needs = Counter(needed(truth, acls) for truth in truths)
    holding: dict[Acl | None, set[Need]] = {}
    for need in needs:
        for acl in {acl for alternative in need for fact in alternative for acl in fact}:
            holding.setdefault(acl, set()).add(need)
    asked = Counter(query.principals for query in dataset.queries)
    found = []
    for principals, number in sorted(asked.items(), key=lambda pair: (-pair[1], sorted(pair[0]))):
        held = readers.names(principals)
        # Only what names somebody, as there may be as many of them as documents.
        open_: set[Acl | None] = {acl for name in held for acl in naming.get(name, ()) if readers.may(held, acl)}
        if None in alike and (public or readers.may(held, None)):
            open_.add(None)
        able = {need for acl in open_ for need in holding.get(acl, ()) if supported(need, open_)}
        reads = sum(alike[acl] for acl in open_)
        found.append(Asker(tuple(sorted(principals)), number, reads, sum(needs[need] for need in able)))
    return tuple(found)


def needed(truth: Truth, acls: Mapping[str, Acl | None]) -> Need:
    """Of each alternative, the ACLs of every fact's sources."""
    return frozenset(
        frozenset(frozenset(acls[unit.document] for unit in fact) for fact in alternative)
        for alternative in truth.alternatives
    )


def supported(need: Need, readable: set[Acl | None]) -> bool:
    """Whether every fact of some alternative has a source with one of the readable ACLs."""
    return any(all(not fact.isdisjoint(readable) for fact in alternative) for alternative in need)


def groups(dataset: Dataset) -> tuple[Group, ...]:
    """Every name in an ACL, those that most documents allow first."""
    acls = [document.acl for document in dataset.documents if document.acl]
    allows = Counter(name for acl in acls for name in acl.allow)
    denies = Counter(name for acl in acls for name in acl.deny)
    names = sorted(allows.keys() | denies.keys(), key=lambda name: (-allows[name], name))
    return tuple(Group(name, allows[name], denies[name]) for name in names)
