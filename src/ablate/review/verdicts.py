"""Filled rows of a sheet of sources go in, what each says about the ground truth comes out, or what is wrong."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ablate.dataset.lines import quoted
from ablate.review.known import Known, known, told
from ablate.review.sheet import FACTS, Row, kept
from ablate.review.version import Version
from ablate.review.words import GRADES, NEW, PARTLY, RELEVANT, VERDICTS, meant, simple


@dataclass(frozen=True)
class Verdict:
    """What a person said of one source.

    `unit` is the source as a line of ground truth writes it. `joins` is the index of the alternative that has one more
    source with it, `positions` the units of the fact it is one more source of; `opens` is the label of the new
    alternative that it is part of. `grade` is None where the person cannot tell.
    """

    row: Row
    word: str
    unit: Mapping[str, Any]
    fact: str
    joins: int | None
    positions: Sequence[int]
    opens: str | None
    who: str
    note: str

    @property
    def query(self) -> str:
        return self.row["query_id"]

    @property
    def is_evidence(self) -> bool:
        """Whether the source belongs to an alternative."""
        return self.joins is not None or self.opens is not None

    @property
    def grade(self) -> int | None:
        return GRADES.get(self.word)


@dataclass(frozen=True)
class Reading:
    """Reads rows against the version that they are about; what is wrong goes to `problems`, a sentence each."""

    version: Version
    readable: Callable[[str], bool]
    who: str
    problems: list[str]

    def verdicts(self, rows: Sequence[Row]) -> list[Verdict]:
        """The rows that have a verdict, by item, so that how a person sorted the sheet changes nothing."""
        filled = sorted((row for row in rows if filled_in(row)), key=lambda row: row["item"])
        return [verdict for row in filled if (verdict := self.verdict(row))]

    def verdict(self, row: Row) -> Verdict | None:
        """One row; None if anything is wrong with it."""
        before = len(self.problems)
        word = meant(VERDICTS, row.said("verdict"))
        self.problems.extend([*self.strange(row), *self.incomplete(row, word)])
        if len(self.problems) > before or word is None:
            return None
        place = self.place(row)
        joins, positions, opens = self.alternative(row)
        if place is None or len(self.problems) > before:
            return None
        start, end = place
        text = self.version.documents[row["doc_id"]].text
        unit = {"doc_id": row["doc_id"], "start": start, "end": end, "quote": text[start:end]}
        who = row.said("who") or self.who
        return Verdict(row, word, unit, row.said("fact"), joins, positions, opens, who, row.said("note"))

    def strange(self, row: Row) -> Iterator[str]:
        """What does not belong to this dataset."""
        document = self.version.documents.get(row["doc_id"])
        found = document.text[int(row["start"]) : int(row["end"])] if document else ""
        if kept(found) != kept(row["text"]):
            yield row.problem(
                "text",
                "a text that this dataset does not have there",
                "the dataset that the sheet was made from, or a later version with the same documents",
                "check --dataset",
            )
        if row["query_id"] not in self.version.dataset.truths:
            yield row.problem("query_id", quoted(row["query_id"]), "a query of this dataset", "check --dataset")

    def incomplete(self, row: Row, word: str | None) -> Iterator[str]:
        """What a verdict lacks, or has too much."""
        written = row.said("verdict")
        if word is None:
            found = quoted(written) if written else "nothing in a row that is filled in otherwise"
            yield row.problem("verdict", found, f"one of {', '.join(VERDICTS)}", "correct the verdict")
        if not row.said("who") and not self.who:
            yield row.problem("who", "nothing", "the name of who judged", "write it there, or give --who")
        if word not in (None, RELEVANT, PARTLY) and row.said("quote"):
            yield row.problem("quote", f"a text beside {written!r}", "none", "clear it, or correct the verdict")
        if word not in (None, RELEVANT) and row.said("alternative"):
            yield row.problem(
                "alternative", f"{row.said('alternative')!r} beside {written!r}", f"none but beside {RELEVANT!r}",
                "clear it, or correct the verdict",
            )  # fmt: skip
        if row.said("fact") and not row.said("alternative"):
            yield row.problem(
                "alternative", "nothing beside a fact", "its number, or new", "write it there, or clear the fact"
            )

    def place(self, row: Row) -> tuple[int, int] | None:
        """Where in its document the source stands: what is quoted, else the whole text of the row."""
        start, end = int(row["start"]), int(row["end"])
        quote = row.said("quote")
        if not quote:
            return start, end
        text = self.version.documents[row["doc_id"]].text[start:end]
        wanted = re.compile(r"\s+".join(map(re.escape, quote.split())))
        found = [match.span() for match in wanted.finditer(text)]
        if len(found) == 1 and any(map(str.isalnum, quote)):
            return start + found[0][0], start + found[0][1]
        times = {0: "which the text does not have", 1: "without a letter"}.get(len(found), "more than once in the text")
        self.problems.append(
            row.problem("quote", f"{quoted(quote)}, {times}", "a passage that occurs once", "copy it from the text")
        )
        return None

    def alternative(self, row: Row) -> tuple[int | None, Sequence[int], str | None]:
        """The alternative that a row names: index and units of the fact it joins, or the label of a new one."""
        written = simple(row.said("alternative"))
        first, _, label = written.partition(" ")
        if not written:
            return None, (), None
        if first in NEW:
            self.problems.extend(self.closed(row))
            return None, (), label
        held = known(self.version.rows.get(row["query_id"], {}))
        number = int(written) if written.isdecimal() else 0
        if not 1 <= number <= len(held.alternatives):
            there = f"a number from 1 to {len(held.alternatives)}, or new" if held.alternatives else "new"
            self.problems.append(row.problem("alternative", repr(written), there, f"see the column {FACTS}"))
            return None, (), None
        return number - 1, self.fact(row, held, number), None

    def fact(self, row: Row, held: Known, number: int) -> Sequence[int]:
        """The units of the fact that a source is one more of."""
        now = told(self.version.rows[row["query_id"]], self.version.documents, self.readable)
        if not row[FACTS] or not kept(now).startswith(kept(row[FACTS])):
            self.problems.append(
                row.problem(
                    FACTS, "alternatives that have changed since", "those of this dataset", "export the sheet again"
                )
            )
        found = held.fact(number, row.said("fact"))
        if found is None:
            names = ", ".join(held.alternatives[number - 1])
            written = repr(row.said("fact")) if row.said("fact") else "nothing"
            self.problems.append(row.problem("fact", written, f"one of {names}", f"see the column {FACTS}"))
        return found or ()

    def closed(self, row: Row) -> Iterator[str]:
        """Why a query takes no new alternative."""
        query = self.version.queries[row["query_id"]]
        declared = self.version.dataset.truths[query.id].alternatives
        if not query.answerable:
            yield row.problem(
                "alternative",
                f"evidence for a query that is called unanswerable ({query.why})",
                "none",
                "set it answerable in queries.jsonl first, or clear the alternative",
            )
        elif declared and not self.version.rows.get(query.id, {}).get("alternatives"):
            yield row.problem(
                "alternative",
                "a new one beside evidence that follows from grades (--evidence)",
                "a grade alone",
                "clear the alternative",
            )


def filled_in(row: Row) -> bool:
    """Whether a person said anything of a row; a name alone, drawn down the column, says nothing."""
    return any(row.said(column) for column in ("verdict", "quote", "fact", "alternative", "note"))
