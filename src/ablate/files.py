"""The files of a run directory: content goes in and bytes come out; bytes go in and plain data comes out."""

from __future__ import annotations

import json
import math
import os
import stat
from collections.abc import Iterator, Mapping
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, BinaryIO, TypeVar

import yaml

from ablate.errors import AblateError

SAFE = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

VALUES = 50_000
"""How many values a file of settings may stand for."""

UNREADABLE = (OSError, ValueError, RecursionError)
"""What is wrong with a file that is missing, no text, no JSON, or too deep."""

Kind = TypeVar("Kind", dict[str, Any], list[Any])


class BrokenRecord(AblateError):
    """A run directory whose files are missing or cannot be read."""


def encoded(name: str, content: Any) -> bytes:
    if isinstance(content, bytes):
        return content
    if isinstance(content, str):
        return content.encode()
    if name.endswith(".jsonl"):
        return "".join(f"{_dumps(row)}\n" for row in content).encode()
    if isinstance(content, Mapping):  # a line a key: quick to write, and still to read
        return (
            "{\n" + ",\n".join(f" {_dumps(str(key))}: {_dumps(content[key])}" for key in content) + "\n}\n"
        ).encode()
    return f"{_dumps(content)}\n".encode()


def _dumps(value: Any) -> str:
    written = partial(json.dumps, ensure_ascii=False, allow_nan=False)
    try:
        return written(value)
    except (TypeError, ValueError):  # it holds what JSON has no type for
        return written(_plain(value))


def _plain(value: Any) -> Any:
    """JSON's own types: infinity is null, numpy's numbers are Python's."""
    if isinstance(value, float) and math.isinf(value):
        return None
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, set | frozenset):
        return [_plain(item) for item in sorted(value)]
    return _plain(value.item()) if hasattr(value, "item") else value


def read_json(path: Path) -> dict[str, Any]:
    try:
        found = json.loads(_text(path))
    except UNREADABLE as error:
        raise BrokenRecord(f"{path}: found {_why(error)}, expected JSON; delete the folder") from error
    if not isinstance(found, dict):
        raise BrokenRecord(f"{path}: found {found!r:.40}, expected a JSON object; delete the folder")
    return found


def read_rows(path: Path) -> list[dict[str, Any]]:
    try:
        with _opened(path) as lines:
            found = [json.loads(line.decode()) for line in lines]
    except UNREADABLE as error:
        raise BrokenRecord(f"{path}: found {_why(error)}, expected one JSON object a line; run it again") from error
    for row in found:
        if not isinstance(row, dict) or "query_id" not in row:
            raise BrokenRecord(f"{path}: found {row!r:.40}, expected the object of a query a line; run it again")
    return found


class Lines(Mapping[str, Any]):
    """Named values, a line of JSON each: parsed when they are asked for, and once what many runs have in common."""

    def __init__(self, path: Path, texts: Mapping[str, str]) -> None:
        self.path = path
        self.texts = texts

    def __getitem__(self, name: str) -> Any:
        try:
            return _parsed(self.texts[name])
        except UNREADABLE as error:
            raise BrokenRecord(f"{self.path}: found {_why(error)}, expected JSON a line; delete the file") from error

    def __iter__(self) -> Iterator[str]:
        return iter(self.texts)

    def __len__(self) -> int:
        return len(self.texts)


def read_lines(path: Path) -> Lines:
    """The values of a file whose first line names the others."""
    try:
        names, *texts = _text(path).removesuffix("\n").split("\n")
        return Lines(path, dict(zip(_parsed(names), texts, strict=True)))
    except (*UNREADABLE, TypeError) as error:
        raise BrokenRecord(f"{path}: found {_why(error)}, expected names and a line each; delete the file") from error


@lru_cache(maxsize=64)
def _parsed(text: str) -> Any:
    return json.loads(text)


def read_yaml(path: Path, kind: type[Kind]) -> Kind:
    """The plain data in a YAML file; nothing if there is no such file, or nothing in it."""
    if not os.path.lexists(path):
        return kind()
    try:
        found = yaml.load(_text(path), Loader=SAFE)  # the safe loader, in C
    except (*UNREADABLE, yaml.YAMLError) as error:
        raise BrokenRecord(f"{path}: found {_why(error)}, expected YAML; run it again") from error
    if found is None:
        return kind()
    if _many(found) or not isinstance(found, kind):
        what = f"more than {VALUES} values" if _many(found) else f"a {type(found).__name__}"
        raise BrokenRecord(f"{path}: found {what}, expected settings; check where the folder is from")
    return found


def _many(found: Any) -> bool:
    """Whether there are more values than settings have: aliases may stand for more than any memory holds."""
    count, waiting = 0, [found]
    while waiting and count <= VALUES:
        value = waiting.pop()
        count += 1
        waiting += value if isinstance(value, list) else value.values() if isinstance(value, dict) else ()
    return count > VALUES


def _text(path: Path) -> str:
    with _opened(path) as file:
        return file.read().decode()


def _opened(path: Path) -> BinaryIO:
    """A file that is one: a link may lead anywhere, and a pipe never ends.

    Raises:
        OSError: it is none, or cannot be opened.

    """
    state = path.lstat()
    if not stat.S_ISREG(state.st_mode):
        raise OSError("a link" if stat.S_ISLNK(state.st_mode) else "what is no file")
    return path.open("rb")


def _why(error: Exception) -> str:
    return "no file" if isinstance(error, FileNotFoundError) else (str(error) or repr(error)).splitlines()[0]
