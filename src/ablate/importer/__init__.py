"""Collections in other layouts: a file or folder in, the rows of a dataset out. A module here with `read` is a format.

A format is a module: its docstring says in the first line what it reads (the help) and then what SOURCE must look like
and what becomes of it; `arguments(parser)`, if there is one, adds flags of its own; `read(source, args)` gives what was
found as `Imported`. Importing the module must be cheap: large libraries are imported inside functions.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple


class Row(NamedTuple):
    """One line of a file of the dataset, as it will be written, and the place in the source that it came from.

    `where` stands at the start of error sentences: `claims.jsonl:17`, or the path of a file.
    """

    where: str
    value: Mapping[str, Any]


class Grade(NamedTuple):
    """One line of qrels and the place in the source that it came from."""

    where: str
    query: str
    document: str
    grade: int


@dataclass
class Report:
    """What was left out or changed, by kind: how often, and where first. It fills while the rows are taken."""

    found: dict[str, tuple[int, str]] = field(default_factory=dict)

    def add(self, what: str, where: str) -> None:
        """Remember one case of `what`: a short phrase that says what became of it ("pages without text, left out")."""
        number, first = self.found.get(what, (0, where))
        self.found[what] = number + 1, first

    @property
    def rows(self) -> list[dict[str, Any]]:
        """A row a kind, in the order in which they were met."""
        return [{"what": what, "count": number, "first": first} for what, (number, first) in self.found.items()]

    @property
    def sentences(self) -> list[str]:
        return [f"{what}: {number} (first {first})" for what, (number, first) in self.found.items()]


@dataclass(frozen=True)
class Imported:
    """What a source holds, as rows of the files of a dataset.

    All iterables are taken once, `corpus` first, so that it may stream; `queries` and `ground_truth` are None where the
    source has none (the file is not written), `qrels` go by split, and `files` are written as they are (`GUIDE.md`).
    Rules of the dataset (ids given twice, spans, unknown documents) need not be checked: the finished folder is read
    before it gets its name, and its errors are told by the `where` of the row. `said` is printed at the end, line by
    line; `failed` says that something of the source could not be read, and the exit code is 1.
    """

    corpus: Iterable[Row]
    report: Report
    queries: Iterable[Row] | None = None
    ground_truth: Iterable[Row] | None = None
    qrels: Mapping[str, Iterable[Grade]] = field(default_factory=dict)
    files: Mapping[str, bytes] = field(default_factory=dict)
    said: Sequence[str] = ()
    failed: bool = False
