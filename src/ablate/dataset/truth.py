"""ground_truth.jsonl in, one truth a query out: alternatives, judged spans and grades of documents."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import takewhile
from typing import Any
from unicodedata import normalize

from ablate.dataset import reviewed
from ablate.dataset.corpus import Corpus
from ablate.dataset.known import Known
from ablate.dataset.lines import Entry, described, quoted
from ablate.dataset.problems import Problems
from ablate.dataset.qrels import Grades
from ablate.dataset.queries import Rows
from ablate.types import Alternative, Judgment, Query, Span, Truth, Unit

_KEYS = ("query_id", "alternatives", "relevant", "complete", "facts", "answer", "reviewed")
_UNIT = ("doc_id", "start", "end", "quote", "spans", "fact", "unresolved")
_SHORT = 20


@dataclass
class Remarks:
    """What is odd but allowed, gathered into one warning a kind: how often, and where first."""

    found: dict[str, list[str]] = field(default_factory=dict)

    def add(self, kind: str, example: str) -> None:
        self.found.setdefault(kind, []).append(example)

    @property
    def sentences(self) -> tuple[str, ...]:
        return tuple(f"{kind}: {len(examples)} (first {examples[0]})" for kind, examples in self.found.items())


@dataclass(frozen=True)
class Reader:
    """Reads ground truth against the documents and queries that it speaks of; broken rules go to `problems`.

    `known` are the ids of all queries, `rows` those whose line breaks no rule.
    """

    corpus: Corpus
    known: Known
    rows: Rows
    remarks: Remarks
    problems: Problems

    def truths(self, entries: Iterable[Entry], lines: Known, qrels: Grades | None) -> dict[str, tuple[Truth, str]]:
        """Truths by query with file and line of each; `lines` learns the ids of broken ones too.

        Grades of documents are those of the whole-document entries of `relevant`; without one, those of the qrels file;
        without the file, 1 for every document of an alternative.
        """
        found: dict[str, tuple[Truth, str]] = {}
        for entry in entries:
            before = len(self.problems)
            meant = entry.spelt(_KEYS, self.problems)
            query = self.problems.tried(None, self.query, meant, lines)
            truth = self.truth(meant, query, qrels)
            if query and truth and len(self.problems) == before:
                found[query.id] = truth, entry.where
        return found

    def query(self, entry: Entry, lines: Known) -> Query | None:
        """The query of a line; None if its own line is broken."""
        key = entry.name("query_id")
        if key in lines.lines:
            entry.fault("query_id", f'"{key}" a second time', "one line a query", "join the two lines")
        lines.lines[key] = int(entry.where.rpartition(":")[2])
        if key not in self.known:
            advice = self.known.hint(key) or "add it there or remove the line"
            entry.fault("query_id", described(key), "an id of queries.jsonl", advice)
        return self.rows[key][0] if key in self.rows else None

    def truth(self, entry: Entry, query: Query | None, qrels: Grades | None) -> Truth | None:
        """What the line says, checked as far as what it speaks of can be read; None if that is not all of it."""
        tried = self.problems.tried
        tried({}, entry.mapping, "facts")
        tried({}, entry.mapping, "answer")
        complete = tried(False, entry.flag, "complete", False)
        alternatives = tried(None, self.alternatives, entry, query)
        judged = tried(None, self.judgments, entry)
        reviewed.check(entry, self.problems)
        if query is None or alternatives is None or judged is None:
            return None
        grades = {unit.document: grade for unit, grade in judged.items() if not unit.spans}
        if not grades:
            grades = qrels.get(query.id, {}) if qrels is not None else documents_of(alternatives)
        spans = tuple(Judgment(unit, grade) for unit, grade in judged.items() if unit.spans)
        confirmed = reviewed.confirmed(entry.value.get("reviewed"))
        return Truth(query.id, alternatives, spans, grades, complete, confirmed)

    def alternatives(self, entry: Entry, query: Query | None) -> tuple[Alternative, ...] | None:
        if not entry.has("alternatives"):
            return ()
        groups = entry.items("alternatives")
        if query and groups and not query.answerable:
            entry.fault("alternatives", "evidence for an unanswerable query", "none", "remove it, or set answerable")
        if query and not groups and query.answerable:
            entry.fault(
                "alternatives",
                "an empty list on an answerable query",
                "at least one alternative",
                "remove the key if evidence is not known, or set answerable to false and say why",
            )
        read = [
            self.problems.tried(None, self.alternative, entry, f"alternatives[{number}]", group)
            for number, group in enumerate(groups)
        ]
        found = tuple(alternative for alternative in read if alternative is not None)
        if len(found) < len(groups):
            return None
        minimal(entry, found)
        self.spans(entry, found)
        return found

    def alternative(self, entry: Entry, key: str, group: Any) -> Alternative | None:
        """Facts in the order of their first unit. Equal units count once, and so do facts of equal units."""
        if not isinstance(group, list) or not group:
            found = "an empty group" if group == [] else described(group)
            entry.fault(key, found, "a list of at least one unit", "name what this alternative needs or remove it")
        facts: dict[str | Unit, dict[Unit, None]] = {}
        read = 0
        for number, value in enumerate(group):
            with self.problems:
                inner = entry.inner(f"{key}[{number}]", value).spelt(_UNIT, self.problems)
                fact = self.problems.tried("", inner.name, "fact") if "fact" in inner.value else None
                unit = self.unit(inner)
                units = facts.setdefault(unit if fact is None else fact, {})
                if unit in units:
                    self.remarks.add("equal units of one alternative were merged", inner.where)
                units[unit] = None
                read += 1
        if read < len(group):
            return None
        return tuple({frozenset(fact): tuple(fact) for fact in facts.values()}.values())

    def judgments(self, entry: Entry) -> dict[Unit, int] | None:
        found: dict[Unit, int] = {}
        read, values = 0, entry.items("relevant")
        for number, value in enumerate(values):
            with self.problems:
                inner = entry.inner(f"relevant[{number}]", value).spelt((*_UNIT, "grade"), self.problems)
                grade = self.problems.tried(None, graded, inner)
                unit = self.unit(inner)
                if grade is not None and found.setdefault(unit, grade) != grade:
                    advice = "keep one of the two"
                    inner.fault("grade", described(grade), f"{found[unit]} as before for this unit", advice)
                read += 1
        return found if read == len(values) else None

    def unit(self, entry: Entry) -> Unit:
        """A unit whose spans are sorted, and united where they touch or overlap."""
        if "unresolved" in entry.value:
            entry.fault(
                "unresolved",
                described(entry.value["unresolved"]),
                "a unit whose place was found",
                "correct the unit and delete this key, or freeze with --exclude-unresolved",
            )
        key = entry.name("doc_id")
        if key not in self.corpus.known:
            advice = self.corpus.known.hint(key) or "add the document or remove the unit"
            entry.fault("doc_id", described(key), "an id of corpus.jsonl", advice)
        text = self.corpus.document(key).text
        spans = located(entry, text)
        if spans and not any(any(map(str.isalnum, text[start:end])) for start, end in spans):
            shown = quoted("".join(text[start:end] for start, end in spans))
            entry.fault("doc_id", f"spans without any letter or digit ({shown})", "evidence to read", "correct them")
        return Unit(key, united(spans))

    def spans(self, entry: Entry, alternatives: Sequence[Alternative]) -> None:
        """Remark on spans that are short, and on spans inside another span of the query's evidence."""
        query = entry.value.get("query_id")
        units = dict.fromkeys(unit for alternative in alternatives for fact in alternative for unit in fact)
        spans: dict[tuple[str, Span], None] = {(unit.document, span): None for unit in units for span in unit.spans}
        for document, span in spans:
            shown = f'{entry.where}, query "{query}", "{document}"[{span.start}:{span.end}]'
            if span.end - span.start < _SHORT:
                self.remarks.add(f"spans under {_SHORT} characters", shown)
            if any(document == other and inside(span, outer) for other, outer in spans):
                self.remarks.add("spans inside another span of the same query", shown)


def graded(entry: Entry) -> int:
    grade = entry.whole("grade")
    if grade < 0:
        entry.fault("grade", described(grade), "0 or more", "0 says judged and not relevant")
    return grade


def located(entry: Entry, text: str) -> list[Span]:
    """The spans of a unit: `start` and `end`, `spans`, or where its `quote` stands; none for the whole document.

    Raises:
        DatasetError: two ways at once, offsets outside the text, a quote that differs, is absent or is not unique.

    """
    for key in entry.value:
        if entry.value[key] is None:
            entry.fault(key, "null", "a value", "leave the key out if the unit is the whole document")
    if "spans" in entry.value:
        return listed(entry, text)
    if "start" in entry.value or "end" in entry.value:
        span = bounded(entry, "end", entry.whole("start"), entry.whole("end"), text)
        if "quote" in entry.value and entry.string("quote") != text[span.start : span.end]:
            differs(entry, span, text)
        return [span]
    return [cited(entry, text)] if "quote" in entry.value else []


def listed(entry: Entry, text: str) -> list[Span]:
    for key in ("start", "end", "quote"):
        if key in entry.value:
            entry.fault(key, f'"{key}" beside "spans"', "one of the two", 'keep "spans", or "start", "end" and "quote"')
    pairs = entry.items("spans")
    if not pairs:
        entry.fault("spans", "an empty list", "at least one [start, end]", "leave it out to mean the whole document")
    found = []
    for number, pair in enumerate(pairs):
        key = f"spans[{number}]"
        if not isinstance(pair, list) or [type(bound) for bound in pair] != [int, int]:
            entry.fault(key, repr(pair), "[start, end] in whole numbers", "count characters from 0, end excluded")
        found.append(bounded(entry, key, pair[0], pair[1], text))
    return found


def bounded(entry: Entry, key: str, start: int, end: int, text: str) -> Span:
    if not 0 <= start < end <= len(text):
        entry.fault(
            key,
            f"the span [{start}:{end}]",
            f"0 <= start < end <= {len(text)}, the length of the document's text",
            "count Unicode characters from 0, end excluded",
        )
    return Span(start, end)


def cited(entry: Entry, text: str) -> Span:
    quote = entry.string("quote")
    start = text.find(quote)
    if start < 0 or not quote:
        advice = f"copy it from there{disguise(quote, text)}, or give offsets"
        entry.fault("quote", described(quote), "a part of the document's text", advice)
    second = text.find(quote, start + 1)
    if second >= 0:
        entry.fault(
            "quote",
            f"{described(quote)} at {start} and at {second} of the document",
            "a text that occurs once",
            "add start and end, or quote more of it",
        )
    return Span(start, start + len(quote))


def differs(entry: Entry, span: Span, text: str) -> None:
    """Refuse a quote that is not the text at its offsets, showing both from just before they part."""
    quote, found = entry.string("quote"), text[span.start : span.end]
    same = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(quote, found, strict=False)))
    cut = max(0, same - 20)
    other = text.find(quote)
    stands = f"the quote stands at [{other}:{other + len(quote)}]"
    advice = stands if other >= 0 and quote else f"copy it again{disguise(quote, text)}"
    entry.fault(
        "quote",
        f"{quoted(quote[cut:])} where text[{span.start}:{span.end}] is {quoted(found[cut:])}",
        "the same characters",
        f"correct the offsets or the quote ({advice})",
    )


def disguise(quote: str, text: str) -> str:
    """Says where a text looks as if it held a quote, which differs in what cannot be seen."""
    same = plain(quote) and plain(quote) in plain(text)
    return ", as it has other white space or another Unicode form there" if same else ""


def plain(text: str) -> str:
    return " ".join(normalize("NFC", text).split())


def united(spans: Sequence[Span]) -> tuple[Span, ...]:
    """Spans in order; those that touch or overlap become one."""
    found: list[Span] = []
    for span in sorted(spans):
        if found and span.start <= found[-1].end:
            found[-1] = Span(found[-1].start, max(found[-1].end, span.end))
        else:
            found.append(span)
    return tuple(found)


def inside(span: Span, outer: Span) -> bool:
    return span != outer and outer.start <= span.start and span.end <= outer.end


def minimal(entry: Entry, alternatives: Sequence[Alternative]) -> None:
    """Refuse an alternative whose units contain those of another.

    Raises:
        DatasetError: there is one; the message names both.

    """
    sets = [frozenset(unit for fact in alternative for unit in fact) for alternative in alternatives]
    for larger, units in enumerate(sets):
        for smaller, others in enumerate(sets):
            if smaller != larger and others <= units and (others != units or smaller < larger):
                entry.fault(
                    f"alternatives[{larger}]",
                    f"all units of alternatives[{smaller}]",
                    "alternatives of which none contains another, as A or (A and B) is A",
                    f"remove alternatives[{larger}] or correct its units",
                )


def documents_of(alternatives: Sequence[Alternative]) -> dict[str, int]:
    """Grade 1 for every document of any alternative."""
    return {unit.document: 1 for alternative in alternatives for fact in alternative for unit in fact}


def evidence(truth: Truth, mode: str, grade: int) -> tuple[Alternative, ...]:
    """Alternatives of whole documents by their grades: `any` of at least `grade` is enough, or `all` are needed."""
    needed = sorted(document for document, found in truth.documents.items() if found >= grade)
    if not needed or mode == "none":
        return ()
    facts = [(Unit(document),) for document in needed]
    return tuple((fact,) for fact in facts) if mode == "any" else (tuple(facts),)
