"""Broken rules go in one after another while files are read, all of them in order come out."""

from __future__ import annotations

from collections.abc import Callable
from types import TracebackType
from typing import TypeVar

from ablate.errors import DatasetError, Problem

S = TypeVar("S")
T = TypeVar("T")

ORDER = ("manifest.json", "corpus.jsonl", "queries.jsonl", "groups.jsonl", "contract.yaml", "GUIDE.md", "qrels")
"""Files in the order in which their problems are told: what others rest on first, and the ground truth last."""


class Problems:
    """Gathers what is wrong: a rule broken inside `with problems:` is noted, and reading goes on after the block.

    If only the first is asked for, nothing is gathered: it is raised.
    """

    def __init__(self, first: bool = False) -> None:
        self.first = first
        self.found: list[Problem] = []

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, trace: TracebackType | None) -> bool:
        if self.first or not isinstance(error, DatasetError):
            return False
        self.found.extend(error.problems)
        return True

    def __len__(self) -> int:
        return len(self.found)

    def tried(self, default: S, read: Callable[..., T], *args: object) -> S | T:
        """What `read` returns, or `default` where it breaks a rule."""
        with self:
            return read(*args)
        return default

    @property
    def ordered(self) -> tuple[Problem, ...]:
        """Each problem once, by file and line."""
        return tuple(sorted(dict.fromkeys(self.found), key=lambda found: (rank(found.file), found.line or 0)))


FIRST = Problems(first=True)


def rank(file: str) -> int:
    """The folder itself comes before its files."""
    name = file.partition("/")[0]
    return ORDER.index(name) if name in ORDER else len(ORDER) if name == "ground_truth.jsonl" else -1


def unknowable() -> DatasetError:
    """Stops a check that rests on a line which is broken itself, and adds no problem of its own."""
    return DatasetError(())
