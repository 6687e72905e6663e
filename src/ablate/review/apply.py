"""A filled sheet and the dataset it is about go in, the next version of the dataset comes out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ablate.dataset import Folder
from ablate.dataset.lines import lines, parsed
from ablate.dataset.write import absent
from ablate.errors import DatasetError
from ablate.evaluate import audited
from ablate.review.changes import Changes, changes
from ablate.review.sheet import SOURCES, BadSheet, read
from ablate.review.sources import reader
from ablate.review.verdicts import Reading, Verdict
from ablate.review.version import TRUTHS, Published, Version, merged, version


@dataclass(frozen=True)
class Applied:
    """What became of a sheet: the new version, verdicts by word, and what else was done or left alone.

    `joined` sources became one more of a known fact, `opened` alternatives are new, `whole` sources of either are the
    whole text of a row; `graded` queries have their evidence among the judged sources now; `silent` rows had no verdict
    and changed nothing; `runs` are those that found the sources.
    """

    version: Published
    verdicts: Mapping[str, int]
    queries: int
    joined: int
    opened: int
    whole: int
    graded: int
    silent: int
    converted: bool
    runs: Sequence[str]


def apply(sheet: Path, folder: Folder, to: Path, name: str | None, who: str, when: str) -> Applied:
    """Write the verdicts of a sheet into a new version of a dataset, called `name`, or nothing at all.

    Raises:
        BadSheet: rows that cannot be used; the message has a line for each.
        DatasetError: the dataset cannot be read, or something is at `to`.

    """
    absent(to)
    rows, key = read(sheet, SOURCES)
    old = version(folder)
    readable = reader(audited(old.dataset), key.made.get("principals", ()))
    reading = Reading(old, readable, who.strip(), [])
    verdicts = reading.verdicts(rows)
    if not verdicts and not reading.problems:
        raise BadSheet(f"{sheet}: found no verdict, expected one or more; fill in the column verdict")
    found = changes(old, verdicts, when)
    if problems := [*reading.problems, *found.problems]:
        raise BadSheet("\n".join(problems))
    return Applied(
        version=published(old, to, name, found, verdicts),
        verdicts=Counter(verdict.word for verdict in verdicts),
        queries=len(found.rows),
        joined=sum(verdict.joins is not None for verdict in verdicts),
        opened=len({(verdict.query, verdict.opens) for verdict in verdicts if verdict.opens is not None}),
        whole=sum(verdict.is_evidence and not verdict.row.said("quote") for verdict in verdicts),
        graded=found.graded,
        silent=len(key.rows) - len(verdicts),
        converted=old.converted,
        runs=key.made["runs"],
    )


def published(old: Version, to: Path, name: str | None, found: Changes, verdicts: Sequence[Verdict]) -> Published:
    """Write the new version; what it breaks is told by the rows that broke it."""
    try:
        return old.publish(to, name, found.rows)
    except DatasetError as error:
        data = merged(TRUTHS, old.content[TRUTHS], "query_id", found.rows)
        queries = {number: parsed(TRUTHS, text)["query_id"] for number, text in lines(TRUTHS, data)}
        told = []
        for problem in error.problems:
            query = queries.get(problem.line or 0) if problem.file == TRUTHS else None
            rows = ", ".join(blamed(str(problem), [verdict for verdict in verdicts if verdict.query == query]))
            told.append(f"{rows}: with this the ground truth would be wrong: {problem}" if rows else str(problem))
        raise BadSheet("\n".join(told)) from error


def blamed(problem: str, verdicts: Sequence[Verdict]) -> list[str]:
    """The rows of a query that a problem is about: those of the document that it names, of evidence if there is any."""
    named = [verdict for verdict in verdicts if f'"{verdict.row["doc_id"]}"' in problem] or verdicts
    evidence = [verdict for verdict in named if verdict.is_evidence] or named
    return [verdict.row.where for verdict in evidence]
