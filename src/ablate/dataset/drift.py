"""A dataset and a newer corpus in, what has become of every piece of its evidence out."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

from ablate.dataset import manifest
from ablate.dataset.anchor import alone, anchored
from ablate.dataset.form import Text
from ablate.dataset.likeness import closest
from ablate.dataset.lines import Entry
from ablate.dataset.truth import located
from ablate.dataset.written import CORPUS, TRUTH, UnitPath, documents, rows, units
from ablate.errors import DatasetError
from ablate.types import Span

UNCHANGED, MOVED, CHANGED, GONE, DOCUMENT_GONE = "unchanged", "moved", "changed", "gone", "document gone"
STATES = (UNCHANGED, MOVED, CHANGED, GONE, DOCUMENT_GONE)
CERTAIN = (UNCHANGED, MOVED)
_WORD = re.compile(r"\w+")
BETWEEN = " … "
"""What parts the texts of several spans where they are written as one quote."""


@dataclass(frozen=True, slots=True)
class Passage:
    """A span of a unit, its text, and where it stands now if that is certain.

    Where it is not, `near` is the piece of the new text most like it, if any is, and `similarity` says how much, 0 to
    1. `span` is None where only the text is known; `now` is the text at `place` or at `near`; `alone` says that the new
    text holds `now` only there.
    """

    span: Span | None
    text: str
    place: Span | None = None
    near: Span | None = None
    now: str = ""
    similarity: float | None = None
    remark: str = ""
    alone: bool = True

    @property
    def state(self) -> str:
        if self.place is None:
            return GONE if self.near is None else CHANGED
        return UNCHANGED if self.place == self.span and self.now == self.text else MOVED


@dataclass(frozen=True, slots=True)
class Unit:
    """A unit of the old ground truth: where it stands there, and what has become of it.

    `path` are the keys that lead to it in the line of its query; it has no passages if it is the whole document. `now`
    is the document that holds it now, None if there is none.
    """

    query: str
    path: UnitPath
    document: str
    now: str | None
    passages: tuple[Passage, ...]
    remark: str = ""

    @property
    def state(self) -> str:
        """The worst of the states of its passages; a document under another id has moved."""
        if self.now is None:
            return DOCUMENT_GONE
        states = [passage.state for passage in self.passages] + [UNCHANGED if self.now == self.document else MOVED]
        return max(states, key=STATES.index)

    @property
    def key(self) -> str:
        """The path as error messages write it: alternatives[0][1]."""
        return str(self.path[0]) + "".join(f"[{index}]" for index in self.path[1:])


@dataclass(frozen=True)
class Corpus:
    """The documents of a folder: a digest of every text by id, and the texts that were asked for."""

    digests: Mapping[str, bytes]
    texts: Mapping[str, Text]


@dataclass(frozen=True)
class Drift:
    """What has become of every unit of `old`, in the order of its ground truth, in the corpus of `new`."""

    old: Path
    new: Path
    units: tuple[Unit, ...]
    documents: Mapping[str, int]

    @property
    def counts(self) -> dict[str, int]:
        """Units by state, all states."""
        found = Counter(unit.state for unit in self.units)
        return {state: found[state] for state in STATES}

    @property
    def unresolved(self) -> tuple[Unit, ...]:
        """Units whose place is not certain: a person has to look."""
        return tuple(unit for unit in self.units if unit.state not in CERTAIN)


def drift(old: Path, new: Path) -> Drift:
    """Compare a dataset with a folder that holds a newer corpus.

    Raises:
        DatasetError: a folder lacks a file, is frozen and has changed, or a unit of `old` does not fit its own corpus.

    """
    if old.resolve() == new.resolve():
        raise DatasetError(f"{new}: found the old folder again, expected another one; name the one with the new corpus")
    for folder, name in ((old, CORPUS), (old, TRUTH), (new, CORPUS)):
        if not (folder / name).is_file():
            raise DatasetError(f"{folder}: found no {name}, expected one; check the folder")
    for folder in (old, new):
        frozen = manifest.known(folder)
        if frozen is not None:
            manifest.same(frozen, manifest.hashed(folder))
    written = list(units(rows(old)))
    cited = {entry.name("doc_id") for _, _, entry in written}
    before, after = corpus(old, cited), corpus(new, cited)
    known = manifest.known(old)
    reader = Reader(before, after, renamed(before, after), known.excluded if known else {})
    found = distinct([reader.unit(query, path, entry) for query, path, entry in written])
    return Drift(old, new, tuple(elsewhere(found, new)), changes(before, after))


def corpus(folder: Path, wanted: Collection[str]) -> Corpus:
    digests: dict[str, bytes] = {}
    texts: dict[str, Text] = {}
    for key, text in documents(folder):
        digests[key] = hashlib.sha256(text.encode()).digest()
        if key in wanted:
            texts[key] = Text(text)
    return Corpus(digests, texts)


def renamed(before: Corpus, after: Corpus) -> dict[str, str]:
    """The new id of every cited document that is gone: the one new document that has its very text."""
    fresh: dict[bytes, list[str]] = {}
    for key, digest in after.digests.items():
        if key not in before.digests:
            fresh.setdefault(digest, []).append(key)
    lost = {key: before.digests[key] for key, text in before.texts.items() if key not in after.digests and text.raw}
    twins = Counter(lost.values())
    return {
        key: fresh[digest][0] for key, digest in lost.items() if twins[digest] == 1 and len(fresh.get(digest, ())) == 1
    }


def changes(before: Corpus, after: Corpus) -> dict[str, int]:
    """How many documents are the same, have another text, have gone and have come."""
    both = before.digests.keys() & after.digests.keys()
    same = sum(before.digests[key] == after.digests[key] for key in both)
    return {
        "same": same,
        "changed": len(both) - same,
        "gone": len(before.digests) - len(both),
        "new": len(after.digests) - len(both),
    }


@dataclass(frozen=True)
class Reader:
    """Finds units of the old ground truth in the new corpus. `excluded` are queries whose units may not fit."""

    before: Corpus
    after: Corpus
    renamed: Mapping[str, str]
    excluded: Collection[str]
    seen: dict[tuple[str, Span], Passage] = field(default_factory=dict)

    @cached_property
    def holders(self) -> Mapping[bytes, Sequence[str]]:
        """The new documents by the digest of their text."""
        found: dict[bytes, list[str]] = {}
        for key, digest in self.after.digests.items():
            found.setdefault(digest, []).append(key)
        return found

    def unit(self, query: str, path: UnitPath, entry: Entry) -> Unit:
        key = entry.name("doc_id")
        now = self.renamed.get(key, key if key in self.after.digests else None)
        spans = self.spans(query, entry)
        remark = self.known_as(key, now)
        if spans is None:
            passages = tuple(self.known_by_text(text, key, now) for text in quotes(entry))
            return Unit(query, path, key, now, passages, remark)
        if not spans and now == key and self.before.digests[key] != self.after.digests[key]:
            remark = "the document's text has changed"
        for span in spans:
            if (key, span) not in self.seen:  # the same passage is often judged and evidence of several queries
                self.seen[key, span] = self.passage(key, span, now)
        return Unit(query, path, key, now, tuple(self.seen[key, span] for span in spans), remark)

    def known_as(self, document: str, now: str | None) -> str:
        """What a document is called now; or, where that is not certain, which documents have its very text."""
        if now is not None:
            return "" if now == document else f'the document\'s id is now "{now}"'
        return standing(self.holders.get(self.before.digests.get(document, b""), ()))

    def spans(self, query: str, entry: Entry) -> list[Span] | None:
        """The spans of a unit as written; None where nothing but its quote may be trusted.

        Raises:
            DatasetError: the unit does not fit its document and nothing says that this is known.

        """
        if "unresolved" in entry.value:
            return None
        key = entry.name("doc_id")
        try:
            if key not in self.before.texts:
                entry.fault("doc_id", f'"{key}"', "an id of corpus.jsonl", "correct the old dataset first")
            return located(entry, self.before.texts[key].raw)
        except DatasetError:
            if query in self.excluded:
                return None
            raise

    def passage(self, document: str, span: Span, now: str | None) -> Passage:
        old = self.before.texts[document]
        found = Passage(span, old.raw[span.start : span.end])
        if now is None:
            return found
        new = self.text(document, now)
        place = anchored(old, span, new)
        return settled(found, new, place.span, place.doubles)

    def known_by_text(self, text: str, document: str, now: str | None) -> Passage:
        found = Passage(None, text)
        if now is None or not text:
            return found
        new = self.text(document, now)
        place = alone(text, new)
        return settled(found, new, place.span, place.doubles)

    def text(self, document: str, now: str) -> Text:
        """The new text of a document, which is the very old one if only its id has changed."""
        return self.after.texts[document] if now == document else self.before.texts[document]


def quotes(entry: Entry) -> list[str]:
    """The texts of a unit whose spans no longer count, "" if it tells none; none where it is the whole document."""
    value, spans = entry.value.get("quote"), entry.value.get("spans")
    if not isinstance(value, str) or not value:
        return [] if {"start", "end", "spans", "quote"}.isdisjoint(entry.value) else [""]
    texts = value.split(BETWEEN)
    return texts if isinstance(spans, list) and len(texts) == len(spans) else [value]


def settled(passage: Passage, new: Text, place: Span | None, doubles: Sequence[Span]) -> Passage:
    """The passage at its certain place, or beside the text that is closest to it."""
    if place is not None:
        now = new.raw[place.start : place.end]
        remark = "" if now == passage.text else "other white space or Unicode form, the same letters and digits"
        return replace(passage, place=place, now=now, remark=remark, alone=new.raw.find(now) == new.raw.rfind(now))
    if doubles:
        start = passage.span.start if passage.span else 0
        near, similarity = min(doubles, key=lambda span: (abs(span.start - start), span)), 1.0
        remark = f"the same text at {len(doubles)} places, and what stands around it does not tell which is meant"
        if len(doubles) == 1:
            remark = "the same text, but it may be another passage: what stands around it has changed"
    else:
        found = closest(passage.text, new.raw)
        if found is None:
            return passage
        (near, similarity), remark = found, ""
    return replace(
        passage, near=near, now=new.raw[near.start : near.end], similarity=round(similarity, 4), remark=remark
    )


def distinct(found: Sequence[Unit]) -> list[Unit]:
    """The units, without a certain place where passages that stood apart would stand in one place."""
    places: dict[str, dict[tuple[Span, Span], None]] = {}
    for unit in found:
        for passage in unit.passages:
            if passage.place is not None and passage.span is not None and unit.now is not None:
                places.setdefault(unit.now, {})[passage.place, passage.span] = None
    joined = {(document, pair) for document, pairs in places.items() for pair in joining(sorted(pairs))}
    return [
        replace(unit, passages=tuple(doubted(passage, unit.now, joined) for passage in unit.passages)) for unit in found
    ]


def joining(pairs: Sequence[tuple[Span, Span]]) -> Iterator[tuple[Span, Span]]:
    """Place and old span of passages that have moved onto another one."""
    for number, (place, span) in enumerate(pairs):
        for other, origin in pairs[number + 1 :]:
            if other.start >= place.end:
                break
            if not (span.start < origin.end and origin.start < span.end):
                yield from ((at, was) for at, was in ((place, span), (other, origin)) if at != was)


def doubted(passage: Passage, now: str | None, joined: Collection[tuple[str, tuple[Span, Span]]]) -> Passage:
    if passage.place is None or passage.span is None or (str(now), (passage.place, passage.span)) not in joined:
        return passage
    remark = "another passage of the ground truth now stands in the same place"
    return replace(passage, place=None, near=passage.place, similarity=1.0, remark=remark)


def elsewhere(found: Sequence[Unit], new: Path) -> Iterator[Unit]:
    """The units; those of which nothing is left in their document say which other documents hold the same text."""
    lost = {
        texts_of(unit): list[str]()
        for unit in found
        if any(passage.text for passage in unit.passages) and unit.state in (GONE, DOCUMENT_GONE)
    }
    signs = signposts(lost)
    for key, text in documents(new) if lost else ():
        for word in signs.keys() & {"", *_WORD.findall(text)}:
            for texts in signs[word]:
                if all(each in text for each in texts):
                    lost[texts].append(key)
    for unit in found:
        names = lost.get(texts_of(unit), []) if unit.state in (GONE, DOCUMENT_GONE) else []
        yield replace(unit, remark=standing(names)) if names else unit


def texts_of(unit: Unit) -> tuple[str, ...]:
    return tuple(passage.text for passage in unit.passages)


def signposts(sought: Collection[tuple[str, ...]]) -> Mapping[str, Sequence[tuple[str, ...]]]:
    """What is sought by the one of its words that is rarest in all of it; by "" where it has no whole word.

    Only a text with that word need be searched, so that many texts are not compared with many. The first and last word
    of a passage may be a part of one.
    """
    words = {texts: {word for text in texts for word in _WORD.findall(text)[1:-1]} for texts in sought}
    often = Counter(word for found in words.values() for word in found)
    posts: dict[str, list[tuple[str, ...]]] = {}
    for texts, found in words.items():
        rarest = min(found, key=lambda word: (often[word], -len(word), word), default="")
        posts.setdefault(rarest, []).append(texts)
    return posts


def standing(names: Sequence[str]) -> str:
    shown = ", ".join(f'"{name}"' for name in names[:3]) + (", …" if len(names) > 3 else "")
    return f"the same text stands in {shown}" if names else ""
