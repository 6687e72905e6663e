"""Verdicts go in, the lines of ground truth that hold them come out, with who said what in `reviewed`."""

from __future__ import annotations

import copy
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ablate.dataset.lines import quoted
from ablate.review.known import unit, units
from ablate.review.verdicts import Verdict
from ablate.review.version import Version
from ablate.types import Document, Truth, Unit

EVIDENCE_GRADE = 2
"""What evidence counts for where it has to be graded beside judged sources."""


@dataclass
class Line:
    """One line of ground truth while verdicts are written into it; what cannot be goes to `problems`."""

    row: dict[str, Any]
    truth: Truth
    documents: Mapping[str, Document]
    problems: list[str] = field(default_factory=list)
    touched: dict[int, list[Verdict]] = field(default_factory=dict)
    facts: dict[str, str] = field(default_factory=dict)
    regraded: bool = False

    def take(self, verdicts: Sequence[Verdict], when: str) -> None:
        """Write every verdict into the line."""
        self.row |= {key: self.row.get(key) or [] for key in ("alternatives", "relevant", "reviewed")}
        self.judge([verdict for verdict in verdicts if verdict.grade is not None])
        for verdict in verdicts:
            if verdict.joins is not None:
                self.join(verdict, verdict.joins)
        for label in dict.fromkeys(verdict.opens for verdict in verdicts if verdict.opens is not None):
            self.open([verdict for verdict in verdicts if verdict.opens == label])
        self.problems += [*self.contained(), *self.contradicted(verdicts)]
        self.row["reviewed"].extend(self.entry(verdict, when) for verdict in verdicts)

    @property
    def by_document(self) -> bool:
        """Whether documents are graded here, and no span: then a useful source makes its document one that is."""
        evidence = [u for alternative in self.truth.alternatives for fact in alternative for u in fact]
        spans = [u for u in evidence if u.spans] + [j for j in self.truth.judged if j.grade]
        return bool(self.truth.documents) and not spans

    def judge(self, verdicts: Sequence[Verdict]) -> None:
        """Grade what was judged. Useful sources of a line that grades documents grade theirs, with the best grade."""
        entries: list[dict[str, Any]] = self.row["relevant"]
        useful = [verdict for verdict in verdicts if verdict.grade]
        if useful and self.by_document:
            whole = [entry for entry in entries if len(entry.keys() - {"doc_id", "grade", "fact"}) == 0]
            if not whole:  # the first such entry would put all other grades out of force
                entries += [{"doc_id": key, "grade": grade} for key, grade in self.truth.documents.items()]
            for verdict in sorted(useful, key=lambda verdict: -(verdict.grade or 0)):
                self.grade(verdict, {"doc_id": verdict.unit["doc_id"]}, best=True)
            verdicts = [verdict for verdict in verdicts if not verdict.grade]
        elif useful and not any(judgment.grade for judgment in self.truth.judged):
            added = self.evidence(entries)
            entries += added
            self.regraded = bool(added)
        for verdict in verdicts:
            self.grade(verdict, verdict.unit, best=False)

    def grade(self, verdict: Verdict, value: Mapping[str, Any], best: bool) -> None:
        """Add a grade, unless the unit has one already; another one is a contradiction unless the `best` counts."""
        entries = self.row["relevant"]
        wanted = unit(value, self.documents)
        held = next((entry for entry in entries if unit(ungraded(entry), self.documents) == wanted), None)
        if held is None:
            entries.append({**value, "grade": verdict.grade})
        elif best:
            held["grade"] = max(held["grade"], verdict.grade or 0)
        elif held["grade"] != verdict.grade:
            self.problems.append(
                verdict.row.problem(
                    "verdict",
                    f"{verdict.word!r}, which is grade {verdict.grade}, where this source has grade {held['grade']}",
                    "one grade",
                    "settle it between those who judged",
                )
            )

    def evidence(self, entries: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
        """The spans of the alternatives as judgments.

        Recall and its kin are of the judged sources as soon as there is a useful one: without these they would be of
        what a system happened to find.
        """
        held = units(map(ungraded, entries), self.documents)
        found: dict[Unit, dict[str, Any]] = {}
        for alternative in self.row["alternatives"]:
            for value in alternative:
                bare = {key: item for key, item in value.items() if key != "fact"}
                if len(bare) > 1 and (this := unit(bare, self.documents)) not in held:
                    found.setdefault(this, {**bare, "grade": EVIDENCE_GRADE})
        return list(found.values())

    def join(self, verdict: Verdict, index: int) -> None:
        """Make a source one of several of a fact, any of which is enough; a fact without a name gets one."""
        alternative = self.row["alternatives"][index]
        facts = [alternative[position] for position in verdict.positions]
        fact = facts[0].get("fact") or free(f"fact {verdict.fact.removeprefix('#') or 1}", alternative)
        for value in facts:
            value["fact"] = fact
        if unit(verdict.unit, self.documents) not in units(facts, self.documents):
            alternative.append({**verdict.unit, "fact": fact})
        self.touched.setdefault(index, []).append(verdict)
        self.facts[verdict.row["item"]] = fact

    def open(self, verdicts: Sequence[Verdict]) -> None:
        """Make the sources that were named together a new alternative; two people name one by its label alone."""
        alternatives = self.row["alternatives"]
        if not verdicts[0].opens and len(who := sorted({verdict.who for verdict in verdicts})) > 1:
            self.problems.append(
                verdicts[0].row.problem(
                    "alternative",
                    f"a new one without a label by {' and by '.join(who)}",
                    "a label in rows of several people",
                    "write new A in those that are enough together, and new B in the others",
                )
            )
        self.touched[len(alternatives)] = list(verdicts)
        alternatives.append([{**v.unit, **({"fact": v.fact} if v.fact else {})} for v in verdicts])

    def contained(self) -> Iterator[str]:
        """Alternatives that were written to and now contain another, or are contained in one."""
        sets = [frozenset(units(values, self.documents)) for values in self.row["alternatives"]]
        for larger, smaller in ((a, b) for a in range(len(sets)) for b in range(len(sets)) if a != b):
            rows = self.touched.get(larger) or self.touched.get(smaller)
            if rows and sets[smaller] <= sets[larger] and (sets[smaller] < sets[larger] or smaller < larger):
                yield rows[0].row.problem(
                    "alternative",
                    f"all units of alternative {smaller + 1} in alternative {larger + 1} as it would be",
                    "alternatives of which none contains another, as A or (A and B) is A",
                    "correct the rows of this question that name one of them",
                )

    def contradicted(self, verdicts: Sequence[Verdict]) -> Iterator[str]:
        """Verdicts by which a text is not relevant as a whole and a passage of it is."""
        said = {unit(verdict.unit, self.documents): verdict for verdict in verdicts if verdict.grade is not None}
        graded = [(unit(ungraded(entry), self.documents), entry["grade"]) for entry in self.row["relevant"]]
        evidence = [u for alternative in self.row["alternatives"] for u in units(alternative, self.documents)]
        useful = dict.fromkeys([*evidence, *(u for u, grade in graded if grade)])
        for text in (u for u, grade in graded if not grade):
            for passage in (u for u in useful if within(u, text)):
                verdict = said.get(text) or said.get(passage)
                if verdict:
                    words = " … ".join(self.documents[passage.document].text[a:b] for a, b in passage.spans)
                    yield verdict.row.problem(
                        "verdict",
                        f"{verdict.word!r}, where {quoted(words)} is relevant and a text that holds it is not",
                        "a text with a relevant passage to be relevant or partly so",
                        "settle it between those who judged",
                    )

    def entry(self, verdict: Verdict, when: str) -> dict[str, Any]:
        """What `reviewed` keeps of a verdict: an alternative that is new was added, everything else was judged."""
        index = verdict.joins if verdict.opens is None else self.opened(verdict)
        source = verdict.unit if verdict.grade is None else {**verdict.unit, "grade": verdict.grade}
        note = ": ".join(filter(None, ("" if verdict.grade is not None else verdict.word, verdict.note)))
        found = {
            "who": verdict.who,
            "when": when,
            "action": "judged" if verdict.opens is None else "added",
            "alternative": index,
            "fact": self.facts.get(verdict.row["item"]) or verdict.fact or None,
            "unit": source,
            "note": note or None,
        }
        return {key: value for key, value in found.items() if value is not None}

    def opened(self, verdict: Verdict) -> int:
        return next(index for index, rows in self.touched.items() if verdict.joins is None and verdict in rows)


@dataclass(frozen=True)
class Changes:
    """The lines that change by query, how many of them grade evidence for the first time, and what cannot be."""

    rows: Mapping[str, Mapping[str, Any]]
    graded: int
    problems: Sequence[str]


def changes(version: Version, verdicts: Sequence[Verdict], when: str) -> Changes:
    """Every query's verdicts, written into its line; a query that has none gets one."""
    rows, problems, graded = {}, [], 0
    by_query: dict[str, list[Verdict]] = defaultdict(list)
    for verdict in verdicts:
        by_query[verdict.query].append(verdict)
    for query, said in by_query.items():
        row = copy.deepcopy(dict(version.rows.get(query, {"query_id": query})))
        truth = version.dataset.truths[query]
        line = Line(row, truth, version.documents)
        line.take(said, when)
        rows[query] = {key: value for key, value in row.items() if value != []}
        problems += line.problems
        graded += line.regraded
    return Changes(rows, graded, problems)


def within(passage: Unit, text: Unit) -> bool:
    """Whether all spans of a passage lie in those of a text; neither is a whole document."""
    inside = (any(a.start <= b.start and b.end <= a.end for a in text.spans) for b in passage.spans)
    return passage.document == text.document and bool(passage.spans) and all(inside)


def free(name: str, alternative: Sequence[Mapping[str, Any]]) -> str:
    """A name that no fact of the alternative has yet."""
    taken = {value.get("fact") for value in alternative}
    return next(each for each in (name, *(f"{name} ({n})" for n in range(2, len(taken) + 3))) if each not in taken)


def ungraded(value: Mapping[str, Any]) -> dict[str, Any]:
    return {key: item for key, item in value.items() if key != "grade"}
