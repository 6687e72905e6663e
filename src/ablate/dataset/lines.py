"""Bytes of a JSON Lines file in, checked objects that know their file, line and key out."""

from __future__ import annotations

import codecs
import difflib
import json
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, NoReturn

from ablate.errors import DatasetError

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
            DatasetError: there is another key.

        """
        for key in self.value:
            if key not in keys:
                advice = near(key, keys) or "remove it"
                raise DatasetError(
                    f'{self.where}: key "{self.path}{key}": found an unknown key, expected one of {", ".join(keys)}; '
                    f"{advice}"
                )

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
        for number, item in enumerate(found):
            if not isinstance(item, str) or not item:
                self.fault(f"{key}[{number}]", described(item), "a string that is not empty", _ADVICE[str])
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
        raise DatasetError(f'{self.where}: key "{self.path}{key}": found {found}, expected {expected}; {advice}')

    def _take(self, key: str, kind: type) -> Any:
        if key not in self.value:
            self.fault(key, "nothing", _WORDS[kind], "add the key")
        found = self.value[key]
        if type(found) is not kind:
            self.fault(key, described(found), _WORDS[kind], _ADVICE[kind])
        return found


def entries(name: str, data: bytes) -> Iterator[Entry]:
    """The objects of a JSON Lines file, one a line; blank lines and a byte order mark at the start are skipped.

    Raises:
        DatasetError: a line is not UTF-8, not JSON, no object, or holds a key twice, NaN or half a surrogate pair.

    """
    for number, line in lines(name, data):
        yield Entry(f"{name}:{number}", parsed(f"{name}:{number}", line))


def lines(name: str, data: bytes) -> Iterator[tuple[int, str]]:
    """Numbered lines that are not blank; only a line feed ends a line.

    Raises:
        DatasetError: the file is not UTF-8.

    """
    data = data.removeprefix(codecs.BOM_UTF8)
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        number = data.count(b"\n", 0, error.start) + 1
        raise DatasetError(
            f"{name}:{number}: found the byte 0x{data[error.start]:02x} that is not UTF-8, expected UTF-8 text; save "
            "the file in UTF-8"
        ) from error
    for number, line in enumerate(text.split("\n"), 1):
        if line.strip(" \t\r"):
            yield number, line.removesuffix("\r")


def parsed(where: str, text: str) -> dict[str, Any]:
    """One JSON object.

    Raises:
        DatasetError: the text is not exactly one object, or holds a key twice, NaN or half a surrogate pair.

    """
    try:
        value = json.loads(text, object_pairs_hook=_unique, parse_constant=_finite, parse_float=_finite)
    except json.JSONDecodeError as error:
        raise DatasetError(
            f"{where}: found no JSON from column {error.colno} ({error.msg}), expected one object; correct the line"
        ) from error
    except (ValueError, RecursionError) as error:
        raise DatasetError(f"{where}: found {error}, expected plain JSON; correct the line") from error
    if not isinstance(value, dict):
        raise DatasetError(f"{where}: found {described(value)}, expected one JSON object a line; correct the line")
    if _SURROGATE.search(text):
        try:
            json.dumps(value, ensure_ascii=False).encode()
        except UnicodeEncodeError as error:
            half = f"\\u{ord(error.object[error.start]):04x}"
            raise DatasetError(
                f"{where}: found half of a surrogate pair ({half}), expected a character; write the character itself"
            ) from error
    return value


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
    return f'did you mean "{found[0]}"?' if found else ""


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        keys = [key for key, _ in pairs]
        raise ValueError(f'the key "{next(key for key in keys if keys.count(key) > 1)}" twice in one object')
    return found


def _finite(number: str) -> float:
    found = float(number)
    if not math.isfinite(found):
        raise ValueError(f"{number}, which is no finite number")
    return found
