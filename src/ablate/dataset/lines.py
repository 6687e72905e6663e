"""Bytes of a JSON Lines file in, checked objects that know their file, line and key out."""

from __future__ import annotations

import codecs
import difflib
import json
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from io import BytesIO
from itertools import islice
from typing import TYPE_CHECKING, Any, NoReturn

from ablate.dataset.problems import FIRST, Problems
from ablate.errors import DatasetError, Problem, problem

if TYPE_CHECKING:
    from ablate.dataset.known import Known

DEPTH = 100
"""How deep lists and objects of a line may stand in each other: what reads or writes a value may be recursive."""

_DEEP = "lists or objects too deep in each other"


_WIDE = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE, codecs.BOM_UTF32_BE)
_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")
_WORDS = {str: "a string", bool: "true or false", int: "a whole number", list: "a list", dict: "an object"}
_ADVICE = {
    str: "write it in quotes",
    bool: "write it without quotes",
    int: "write it without quotes and without a decimal point",
    list: "write it in square brackets",
    dict: "write it in curly braces",
}


@dataclass(frozen=True, slots=True)
class Entry:
    """A JSON object and the place where it stands. null is a missing value.

    `where` is file and line, `path` the keys that lead to this object, each followed by a dot.
    """

    where: str
    value: Mapping[str, Any]
    path: str = ""

    def only(self, keys: Sequence[str]) -> None:
        """Refuse every key but these, naming the nearest.

        Raises:
            DatasetError: there are others.

        """
        unknown = [key for key in self.value if key not in keys]
        if unknown:
            expected = f"one of {', '.join(keys)}"
            hints = [did_you_mean(nearest(key, tuple(keys))) or "remove it" for key in unknown]
            raise DatasetError(
                [self.problem(key, "an unknown key", expected, hint) for key, hint in zip(unknown, hints, strict=True)]
            )

    def spelt(self, keys: Sequence[str], problems: Problems) -> Entry:
        """The object as it was probably meant: unknown keys are noted, and stand for the missing key they resemble."""
        with problems:
            self.only(keys)
            return self
        meant = {nearest(key, tuple(keys)) or key: value for key, value in self.value.items() if key not in keys}
        return Entry(self.where, meant | {key: self.value[key] for key in self.value if key in keys}, self.path)

    def string(self, key: str) -> str:
        """A required string; it may be empty."""
        found: str = self._take(key, str)
        return found

    def name(self, key: str) -> str:
        """A required id, taken as written: a string that is not empty."""
        found = self.string(key)
        if not found:
            self.fault(key, "an empty string", "a name", "give every id at least one character")
        return found

    def maybe(self, key: str) -> str | None:
        return self.name(key) if self.has(key) else None

    def flag(self, key: str, default: bool) -> bool:
        found: bool = self._take(key, bool) if self.has(key) else default
        return found

    def whole(self, key: str) -> int:
        found: int = self._take(key, int)
        return found

    def mapping(self, key: str) -> Mapping[str, Any]:
        found: Mapping[str, Any] = self._take(key, dict) if self.has(key) else {}
        return found

    def items(self, key: str) -> list[Any]:
        found: list[Any] = self._take(key, list) if self.has(key) else []
        return found

    def names(self, key: str) -> tuple[str, ...]:
        """A list of strings, none of them empty."""
        found = self.items(key)
        wrong = [number for number, item in enumerate(found) if not isinstance(item, str) or not item]
        if wrong:
            expected = "a string that is not empty"
            raise DatasetError(
                [self.problem(f"{key}[{at}]", described(found[at]), expected, _ADVICE[str]) for at in wrong]
            )
        return tuple(found)

    def inner(self, key: str, value: Any) -> Entry:
        """The object `value` that stands under `key`.

        Raises:
            DatasetError: it is no object.

        """
        if not isinstance(value, dict):
            self.fault(key, described(value), _WORDS[dict], _ADVICE[dict])
        return Entry(self.where, value, f"{self.path}{key}.")

    def has(self, key: str) -> bool:
        return self.value.get(key) is not None

    def fault(self, key: str, found: str, expected: str, advice: str) -> NoReturn:
        """Raise the sentence that names file, line, key, what was found, what was expected and the next step."""
        raise DatasetError([self.problem(key, found, expected, advice)])

    def problem(self, key: str, found: str, expected: str, advice: str) -> Problem:
        return problem(self.where, self.path + key, found, expected, advice)

    def _take(self, key: str, kind: type) -> Any:
        if key not in self.value:
            self.fault(key, "nothing", _WORDS[kind], "add the key")
        found = self.value[key]
        if type(found) is not kind:
            self.fault(key, described(found), _WORDS[kind], _ADVICE[kind])
        return found


def entries(
    name: str, data: bytes | Iterable[bytes], problems: Problems = FIRST, known: Known | None = None
) -> Iterator[Entry]:
    """The objects of a JSON Lines file, one a line; blank lines and a byte order mark at the start are skipped.

    A line that is broken goes to `problems`, and so does what it may have named to `known`, whose left out ids are
    skipped without a look.

    Raises:
        DatasetError: a line is not UTF-8, not JSON, no object, or holds a key twice, NaN or half a surrogate pair.

    """
    for number, line in lines(name, data, problems, known):
        where = f"{name}:{number}"
        try:
            found = Entry(where, parsed(where, line))
        except DatasetError as error:
            broken(error, line, problems, known)
        else:
            if known is None or not known.leaves(found.value):
                yield found


def lines(
    name: str, data: bytes | Iterable[bytes], problems: Problems = FIRST, known: Known | None = None
) -> Iterator[tuple[int, str]]:
    """Numbered lines that are not blank, of the bytes of a file or of its lines; only a line feed ends a line.

    Raises:
        DatasetError: a line is not UTF-8.

    """
    number = 0
    for raw in BytesIO(data) if isinstance(data, bytes) else data:
        number += 1
        if number == 1 and raw.startswith(_WIDE):
            wide = problem(name, None, "UTF-16 or UTF-32", "UTF-8 text", "save the file in UTF-8")
            with problems:
                raise DatasetError([wide])
            return
        try:
            text = raw.decode()
        except UnicodeDecodeError as error:
            found = f"the byte 0x{raw[error.start]:02x} that is not UTF-8"
            fault = problem(f"{name}:{number}", None, found, "UTF-8 text", "save the file in UTF-8")
            broken(DatasetError([fault]), raw.decode(errors="replace"), problems, known)
            continue
        del raw  # no line is held while it is parsed or the next is read: it may be large
        text = text.removesuffix("\n").removesuffix("\r")
        if number == 1:
            text = text.removeprefix("\ufeff")
        if text.strip(" \t\r"):
            yield number, text
        del text


def broken(error: DatasetError, line: str, problems: Problems, known: Known | None) -> None:
    """Note a line that cannot be read, unless it is one that is left out."""
    if known is None or not known.lost(line):
        with problems:
            raise error


def parsed(where: str, text: str) -> dict[str, Any]:
    """One JSON object.

    Raises:
        DatasetError: the text is not exactly one object, or holds a key twice, NaN or half a surrogate pair.

    """

    def fault(found: str, expected: str, advice: str = "correct the line") -> DatasetError:
        return DatasetError([problem(where, None, found, expected, advice)])

    try:
        value = _DECODER.decode(text)
    except json.JSONDecodeError as error:
        if text.startswith("\ufeff"):
            raise fault("a byte order mark", "none but at the start of the file", "remove it") from error
        raise fault(f"no JSON from column {error.colno} ({error.msg})", "one object") from error
    except RecursionError as error:
        raise fault(_DEEP, f"plain JSON of at most {DEPTH} levels") from error
    except ValueError as error:
        raise fault(str(error), "plain JSON") from error
    if not isinstance(value, dict):
        raise fault(described(value), "one JSON object a line")
    if deep(value):
        raise fault(_DEEP, f"plain JSON of at most {DEPTH} levels")
    half = half_pair(value) if _SURROGATE.search(text) else None
    if half:
        raise fault(f"half of a surrogate pair ({half})", "a character", "write the character itself")
    return value


def half_pair(value: Any) -> str | None:
    """The first half of a surrogate pair without its other half, as JSON writes it."""
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError as error:
        return f"\\u{ord(error.object[error.start]):04x}"
    return None


def deep(value: Any) -> bool:
    """Whether lists and objects stand in each other deeper than `DEPTH`."""
    level = [value]
    for _ in range(DEPTH):
        level = [inner for outer in level if isinstance(outer, (dict, list)) for inner in contained(outer)]
        if not level:
            return False
    return any(isinstance(inner, (dict, list)) for inner in level)


def contained(value: dict[str, Any] | list[Any]) -> Iterable[Any]:
    return value.values() if isinstance(value, dict) else value


def described(value: Any) -> str:
    """A JSON value in words, short enough for a sentence."""
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, (int, float)):
        return f"a number ({value})"
    if isinstance(value, str):
        return f"a string ({quoted(value)})"
    return "a list" if isinstance(value, (list, tuple)) else "an object"


def quoted(text: str, limit: int = 60) -> str:
    """The text in quotes with its line breaks made visible, shortened to `limit` characters."""
    return json.dumps(text if len(text) <= limit else text[:limit] + "…", ensure_ascii=False)


def near(word: str, known: Iterable[str]) -> str:
    """A hint that names the nearest known word, or nothing; of very many words only the first are compared."""
    found = difflib.get_close_matches(word, list(islice(known, 20_000)), 1)
    return did_you_mean(found[0] if found else None)


def did_you_mean(word: str | None) -> str:
    return f'did you mean "{word}"?' if word is not None else ""


@lru_cache
def nearest(key: str, keys: tuple[str, ...]) -> str | None:
    """The key that is spelt most like this one; kept, as a wrong key stands in every line."""
    return next(iter(difflib.get_close_matches(key, keys, 1)), None)


def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """A JSON object, in which a key may stand once."""
    found = dict(pairs)
    if len(found) < len(pairs):
        keys = [key for key, _ in pairs]
        raise ValueError(f'the key "{next(key for key in keys if keys.count(key) > 1)}" twice in one object')
    return found


def finite(number: str) -> float:
    found = float(number)
    if not math.isfinite(found):
        raise ValueError(f"{number}, which is no finite number")
    return found


# Made once: a decoder with hooks costs more to make than a line to read.
_DECODER = json.JSONDecoder(object_pairs_hook=unique, parse_constant=finite, parse_float=finite)
