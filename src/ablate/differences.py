"""A record and what its config means today go in, the inputs that are not what they were come out, upstream first."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from ablate import identity
from ablate.config import Node, Settings
from ablate.dataset import Folder, corpus, manifest, path
from ablate.dataset.content import Content
from ablate.dataset.once import read_once
from ablate.dataset.problems import Problems
from ablate.errors import AblateError, DatasetError
from ablate.identity import digest
from ablate.inputs import data, documents, files, own, settled, tokenizer
from ablate.lineage import versions
from ablate.records import RunRecord
from ablate.types import Dataset, Document, Truth

SAID = {
    "corpus": "corpus {}",
    "document": 'document "{}"',
    "access rule": 'access rule of document "{}"',
    "groups": "access rules of {}",
    "query": 'query "{}"',
    "filter": 'filter of query "{}"',
    "setting": "{}",
    "model weights": "model weights of {}",
    "tokenizer": "tokenizer of {}",
    "library": "library {}",
    "code": "code {}",
    "ground truth": 'ground truth of query "{}"',
    "shared": "{}",
    "dataset": "{}",
    "scoring setting": "{}",
}
"""What can differ, the most upstream first, and how its name is told."""

PARTS = ("query", "filter", "ground truth")
"""What the digests of a query are of."""

APART = ("dataset.dir",)
"""Settings that move nothing: where the data lie."""


@dataclass(frozen=True, slots=True)
class Difference:
    """One input that is not what the run had: what it is, its name, what became of it, and both values as text.

    A value is None where there is none.
    """

    what: str
    name: str
    how: str
    recorded: str | None = None
    found: str | None = None

    def __str__(self) -> str:
        return f"{SAID[self.what].format(self.name)} {self.how}"


def changed(what: str, name: str, recorded: str | None, found: str | None) -> Difference:
    """A difference between values that only say whether two are the same."""
    how = "is new" if recorded is None else "is gone" if found is None else "changed"
    return Difference(what, name, how, recorded, found)


def valued(what: str, name: str, recorded: str | None, found: str | None) -> Difference:
    """A difference between values that mean something."""
    return Difference(what, name, f"was {recorded or 'not there'} and is {found or 'not there'}", recorded, found)


@dataclass(frozen=True)
class Source:
    """A data set as its files are today.

    `dataset` is None where they cannot be read as a whole, and `documents` where not even they can; `problem` says why,
    or in what a frozen data set is not what it was.
    """

    dataset: Dataset | None
    documents: tuple[Document, ...] | None
    problem: str | None = None


def source(folder: Any) -> Source:
    """What the files of a data set hold; of one that is frozen, what they hold today."""
    try:
        dataset = read_once(folder)
        return Source(dataset, dataset.documents)
    except DatasetError as error:
        problem = str(error)
    if isinstance(folder, Folder):
        with suppress(DatasetError):
            dataset = thawed(folder)
            return Source(dataset, dataset.documents, problem)
        with suppress(DatasetError):
            found = corpus.read(Content(path(folder.dir), Problems()).open().lines(), folder.title)
            return Source(None, tuple(found.documents.values()), problem)
    return Source(None, None, problem)


def thawed(folder: Folder) -> Dataset:
    """The data set as if it were not frozen.

    Raises:
        DatasetError: it cannot be read all the same.

    """
    place = path(folder.dir)
    frozen = manifest.known(place)
    with TemporaryDirectory(prefix="ablate-") as scratch:
        copy = Path(scratch) / place.name
        copy.mkdir()
        for file in place.iterdir():
            if file.name != manifest.NAME:
                (copy / file.name).symlink_to(file)
        dataset = replace(folder, dir=str(copy)).read(frozen.excluded if frozen else None)
    return replace(dataset, folder=str(place))


@dataclass(frozen=True)
class Today:
    """What a logged config means here and now: its values in their types, its components, its data.

    `logged` is without the settings that are from after the run, `config` has all.
    """

    config: Node
    logged: Node
    settings: Settings
    source: Source

    def marks(self, name: str) -> tuple[str, str]:
        """A fingerprint of the config as it was logged, and with all that it lacks."""
        of = {"scoring": lambda config: config.get("score"), "config": identity.moving}[name]
        return digest(of(self.logged)), digest(of(self.config))

    @cached_property
    def fingerprints(self) -> dict[str, str]:
        """Those of what runs."""
        return {
            "code": identity.code(),
            "own": identity.own(sorted(set(identity.targets(self.config)))),
        }


def differences(record: RunRecord, today: Today) -> list[Difference]:
    """Every input that is not what the run had; what only follows from another one is left out."""
    settings = list(of_settings(record, today))
    read_otherwise = any(each.name.startswith("dataset.") for each in settings)
    stages = {each.name.partition(".")[0] for each in settings}
    found = [
        *settings,
        *([] if read_otherwise else of_data(record, today.source)),
        *of_models(record, today, stages),
        *of_libraries(record),
        *of_code(record, today),
    ]
    return sorted(dict.fromkeys(found), key=lambda each: list(SAID).index(each.what))


def of_settings(record: RunRecord, today: Today) -> Iterator[Difference]:
    """The settings in which the logged config is not the one that ran, as its digests and its fingerprints tell."""
    known, prints = record.inputs.get("config"), record.fingerprints
    if known is not None:
        before, now = ({key: written(value) for key, value in side.items()} for side in (known, settled(today.config)))
        for key in sorted((before.keys() | settled(today.logged).keys()).difference(APART)):
            if before.get(key) != now.get(key):
                kind = "scoring setting" if key.startswith("score.") else "setting"
                yield valued(kind, key, before.get(key), now.get(key))
        return
    for name, what in (("config", "setting"), ("scoring", "scoring setting")):
        if prints.get(name) not in today.marks(name):
            yield changed(what, "config.yaml", prints.get(name), today.marks(name)[0])


def written(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, default=str)


def of_data(record: RunRecord, source: Source) -> Iterator[Difference]:
    """Documents, access rules and queries that are not what they were."""
    prints, dataset = record.fingerprints, source.dataset
    now = dataset.fingerprints if dataset else {}
    moved: set[str] = set()
    known = record.inputs.get("documents")
    if source.documents is not None and prints.get("corpus") != now.get("corpus"):
        found = list(of_documents(known, documents(source.documents))) if known is not None else []
        moved = {each.name for each in found}
        yield from found
        if not found and dataset:
            yield changed("corpus", dataset.name, prints.get("corpus"), now["corpus"])
    if dataset is None:
        if not moved:
            yield Difference("dataset", "the data", f"cannot be read: {source.problem}", None, source.problem)
    elif prints.get("ground_truth") != now["ground_truth"]:
        yield from of_queries(record, dataset, moved)


def of_documents(known: Mapping[str, str], now: Mapping[str, str]) -> Iterator[Difference]:
    for name in sorted(known.keys() | now.keys()):
        (before, rights), (after, allowed) = (side.get(name, " ").split(" ") for side in (known, now))
        if before != after:
            yield changed("document", name, before or None, after or None)
        elif rights != allowed:
            yield changed("access rule", name, rights, allowed)


def of_queries(record: RunRecord, dataset: Dataset, moved: Collection[str]) -> Iterator[Difference]:
    """Where evidence lies in a document that moved, its place may move too: that is no difference of its own."""
    known, now = record.inputs, data(dataset)
    found = []
    if "queries" in known:
        found = list(of_asked(known["queries"], now["queries"]))
        lying = {query for query, truth in dataset.truths.items() if not cited(truth).isdisjoint(moved)}
        rest = [each for each in found if each.what != "ground truth" or each.name not in lying]
        for name, mark in now["shared"].items():
            if known["shared"].get(name) != mark:
                what = "groups" if name == "groups.jsonl" else "shared"
                rest.append(changed(what, name, known["shared"].get(name), mark))
        yield from rest
        found += rest
    if not found:
        prints = record.fingerprints.get("ground_truth"), dataset.fingerprints["ground_truth"]
        yield changed("shared", "ground truth", *prints)


def of_asked(known: Mapping[str, str], now: Mapping[str, str]) -> Iterator[Difference]:
    for name in sorted(known.keys() | now.keys()):
        if name not in known or name not in now:
            yield changed("query", name, known.get(name), now.get(name))
            continue
        for what, before, after in zip(PARTS, known[name].split(" "), now[name].split(" "), strict=True):
            if before != after:
                yield changed(what, name, before, after)


def cited(truth: Truth) -> set[str]:
    """The documents that a truth speaks of."""
    units = [unit for alternative in truth.alternatives for fact in alternative for unit in fact]
    return {unit.document for unit in (*units, *(judgment.unit for judgment in truth.judged))} | {*truth.documents}


def of_models(record: RunRecord, today: Today, others: Collection[str]) -> Iterator[Difference]:
    """Models that are not what they were, unless the settings of their stage name another."""
    kept = record.inputs.get("models", {})
    for stage, recorded in record.facts.get("models", {}).items():
        if stage in others:
            continue
        component = getattr(today.settings, stage)
        name = f"{stage} {getattr(component, 'model', '')}".strip()
        try:
            revision = str(getattr(component, "revision", ""))
            yield from of_files(name, kept.get(stage), files(component))
        except AblateError as error:
            yield Difference("model weights", name, f"cannot be found: {error}", recorded)
            continue
        before, after = (dict(parts(text)) for text in (recorded, revision))
        for library in sorted(before.keys() | after.keys()):
            if library and before.get(library) != after.get(library):
                yield valued("library", library, before.get(library), after.get(library))
        if before[""] != after[""] and kept.get(stage) in (None, files(component)):
            yield changed("model weights", name, before[""], after[""])


def of_files(name: str, known: Mapping[str, str] | None, now: Mapping[str, str]) -> Iterator[Difference]:
    for file in sorted({**(known or {}), **now} if known else ()):
        if (known or {}).get(file) != now.get(file):
            what = "tokenizer" if tokenizer(file) else "model weights"
            yield changed(what, f"{name}: {file}", (known or {}).get(file), now.get(file))


def parts(revision: str) -> Iterator[tuple[str, str]]:
    """The versions of libraries in a revision by their names and, by no name, the rest; code is told by its files."""
    words = revision.split(" ")
    rest = [word for word in words if "==" not in word and not word.startswith("code=")]
    yield "", " ".join(rest)
    for word in words:
        library, equals, version = word.partition("==")
        if equals and library:
            yield library, version


def of_libraries(record: RunRecord) -> Iterator[Difference]:
    now = identity.libraries()
    for name, version in versions(record).items():
        if name in now and version != now[name]:
            yield valued("library", name, version, now[name])


def of_code(record: RunRecord, today: Today) -> Iterator[Difference]:
    """Source files that are not what they were, of this package and of the user's own modules."""
    prints, kept = record.fingerprints, record.inputs
    if prints.get("code") != today.fingerprints["code"]:
        if "code" in kept:
            yield from of_source(kept["code"], identity.package())
        elif not any(True for _ in of_libraries(record)):
            yield changed("code", "of this program", prints.get("code"), today.fingerprints["code"])
    if prints.get("own") != today.fingerprints["own"]:
        found = list(of_source(kept.get("own", {}), own(today.config))) if "own" in kept else []
        yield from found or [changed("code", "of your own modules", prints.get("own"), today.fingerprints["own"])]


def of_source(known: Mapping[str, str], now: Mapping[str, str]) -> Iterator[Difference]:
    for name in sorted(known.keys() | now.keys()):
        before, after = known.get(name), now.get(name)
        if before is None or after is None or not after.startswith(before):
            yield changed("code", name, before, after)


def listed(found: Iterable[Difference], most: int = 5) -> list[str]:
    """The differences in words, of each kind at most so many."""
    by_kind: dict[str, list[str]] = {}
    for each in found:
        by_kind.setdefault(each.what, []).append(str(each))
    lines = []
    for what, texts in by_kind.items():
        lines += texts[:most] + ([f"{what}: {len(texts) - most} more"] if len(texts) > most else [])
    return lines
