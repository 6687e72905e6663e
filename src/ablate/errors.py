"""The one kind of error a user meets: a sentence that says where, what was found and what to do next."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

_PLACE = re.compile(r"(.*):(\d+)", re.DOTALL)
_SENTENCE = re.compile(r'(.*?): (?:key "(.*?)": )?found (.*?), expected (.*?); (.*)', re.DOTALL)


@dataclass(frozen=True, slots=True)
class Problem:
    """One broken rule of a file; as text it is the sentence that a user reads.

    `line` counts from 1 and `key` is the path of keys to the value; null where the whole file or line is meant. Where
    the rule joins several lines, `query` is the query that it was broken for.
    """

    file: str
    line: int | None
    key: str | None
    found: str
    expected: str
    advice: str
    query: str | None = None

    def __str__(self) -> str:
        place = self.file if self.line is None else f"{self.file}:{self.line}"
        named = f'query "{self.query}": ' if self.query is not None else f'key "{self.key}": ' if self.key else ""
        return f"{place}: {named}found {self.found}, expected {self.expected}; {self.advice}"


def problem(where: str, key: str | None, found: str, expected: str, advice: str, query: str | None = None) -> Problem:
    """The problem at `where`, which is a file (`contract.yaml`) or a file and a line (`corpus.jsonl:17`)."""
    place = _PLACE.fullmatch(where)
    file, line = (place[1], int(place[2])) if place else (where, None)
    return Problem(file, line, key, found, expected, advice, query)


class AblateError(Exception):
    """A mistake in the question, not in the program: shown as one sentence, exit code 2, no traceback."""

    code = 2


class DatasetError(AblateError):
    """A dataset file that cannot be trusted: the message names file, line and key.

    It is made of a sentence or of problems, which it keeps in `problems`: its message is the first one's, and `rest`
    says in words where the others are listed.
    """

    def __init__(self, said: str | Sequence[Problem], rest: str = "") -> None:
        self.problems = (sentence(said),) if isinstance(said, str) else tuple(said)
        first = said if isinstance(said, str) else "".join(map(str, self.problems[:1]))
        more = len(self.problems) - 1
        super().__init__(f"{first} (and {more} more{rest})" if more > 0 else first)


class ConfigError(AblateError):
    """A setting that no component takes, or a value outside its range."""


class ModelNotFound(AblateError):
    """Weights that are neither on disk, nor in an installed package, nor on a hub that can be reached."""


class NotInstalled(AblateError):
    """A package that has to be installed first, where it can be: a sweep leaves out what needs it."""


class CacheDiffers(AblateError):
    """Something kept from earlier runs that is not what its model gives now: the answer is no, exit code 1."""

    code = 1


class NotReviewed(AblateError):
    """Ground truth that no expert has confirmed: the answer is no, exit code 1."""

    code = 1


class NotOneChange(AblateError):
    """A variant that changes no component, several, or something that all variants share."""


class NotComparable(AblateError):
    """Runs whose corpus, ground truth or scoring settings differ."""


def sentence(text: str) -> Problem:
    """The problem that a sentence `<where>: found X, expected Y; what to do` states."""
    parts = _SENTENCE.fullmatch(text)
    return problem(parts[1], *parts.groups()[1:]) if parts else Problem("", None, None, text, "", "")


def unwritable(error: OSError) -> str:
    """What stood in the way of reading or writing a file, as a sentence."""
    where = error.filename or "the workspace"
    return (
        f"{where}: found {(error.strerror or str(error)).lower()}, expected a place to write to; make room or check "
        "the path, then run the same command again: what had finished is kept"
    )


class Unwritten(OSError):
    """A record that could not be written: the place is at fault, not the run."""


def first_line(error: BaseException) -> str:
    """What an error says, on one line; the name of its class where it says nothing."""
    return (str(error).strip() or type(error).__name__).splitlines()[0]
