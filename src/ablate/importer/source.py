"""Files of a source in, their lines and JSON records out, each with the place where it stands; gzip is opened."""

from __future__ import annotations

import codecs
import gzip
import io
import json
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, cast

from ablate.dataset.lines import Entry, described, parsed, quoted
from ablate.errors import DatasetError

_GZIP = b"\x1f\x8b"
_ID_ADVICE = "write it as a string or a whole number"

UNPACKED_BYTES, BLOWN_UP = 64 * 2**20, 30
"""The most that a gzip file may unpack to, beyond so many times its size; texts and rankings become 3 to 10 times."""


class Unpacked(io.RawIOBase):
    """The bytes of a gzip file, as far as they may be those of a text."""

    def __init__(self, packed: BinaryIO, size: int) -> None:
        self.file, self.left = gzip.GzipFile(fileobj=packed), UNPACKED_BYTES + BLOWN_UP * size

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        """Fill `buffer`, as `io.RawIOBase` says.

        Raises:
            OSError: there is more than an honest file would hold.

        """
        found = self.file.read(len(buffer))
        self.left -= len(found)
        if self.left < 0:
            raise OSError(f"a gzip file that unpacks to more than {BLOWN_UP} times its size")
        buffer[: len(found)] = found
        return len(found)


@contextmanager
def opened(path: Path) -> Iterator[BinaryIO]:
    """The bytes of a file, unpacked where they are gzip, whatever the name.

    Raises:
        DatasetError: the file cannot be read, or its gzip is broken.

    """
    try:
        with path.open("rb") as raw:
            packed = raw.peek(2)[:2] == _GZIP
            size = path.stat().st_size
            with io.BufferedReader(Unpacked(raw, size), 2**16) if packed else raw as file:
                yield cast(BinaryIO, file)
    except (OSError, EOFError, zlib.error) as error:
        found = getattr(error, "strerror", None) or str(error)
        raise DatasetError(f"{path}: found {found}, expected a file to read; check it") from error


def lines(path: Path, encoding: str | None = None) -> Iterator[tuple[int, str]]:
    """Numbered lines without their ends, blank ones too. Only a line feed ends one; a byte order mark is no text.

    Without an encoding they are UTF-8, and there is no flag that says otherwise.

    Raises:
        DatasetError: the file cannot be read, or a line is not in the encoding.

    """
    with opened(path) as file:
        for number, line in enumerate(file, 1):
            data = line.removeprefix(codecs.BOM_UTF8) if number == 1 else line
            yield number, decoded(path, number, data, encoding).removesuffix("\n").removesuffix("\r")


def text(path: Path, encoding: str | None = None) -> str:
    """A whole file, for formats in which a line means nothing; line ends are line feeds."""
    return "\n".join(line for _, line in lines(path, encoding))


def decoded(path: Path, line: int, data: bytes, encoding: str | None) -> str:
    try:
        return data.decode(encoding or "utf-8")
    except UnicodeDecodeError as error:
        name = (encoding or "utf-8").upper()
        flag = "" if encoding is None else ", or name its encoding with --encoding"
        raise DatasetError(
            f"{path}:{line}: found the byte 0x{data[error.start]:02x} that is not {name}, expected text in {name}; "
            f"save the file in UTF-8{flag}"
        ) from error


def objects(path: Path) -> Iterator[Entry]:
    """The objects of a JSON Lines file, one after another.

    Raises:
        DatasetError: the file cannot be read, or a line is no JSON object.

    """
    for number, line in lines(path):
        if line.strip():
            yield Entry(f"{path}:{number}", parsed(f"{path}:{number}", line))


def document(path: Path) -> Entry:
    """A JSON file that holds one object.

    Raises:
        DatasetError: the file cannot be read, is no JSON, or holds something else.

    """
    found = loaded(path, text(path))
    if not isinstance(found, dict):
        raise DatasetError(f"{path}: found {described(found)}, expected one JSON object; check the format")
    return Entry(str(path), found)


def records(path: Path) -> Iterator[Entry]:
    """The objects of a JSON list, or of a JSON Lines file.

    Raises:
        DatasetError: the file cannot be read, is neither, or an element of the list is no object.

    """
    if first(path) != "[":
        yield from objects(path)
        return
    for number, value in enumerate(loaded(path, text(path))):
        if not isinstance(value, dict):
            raise DatasetError(f"{path}[{number}]: found {described(value)}, expected an object; correct the list")
        yield Entry(f"{path}[{number}]", value)


def first(path: Path) -> str:
    """The first character that is no white space, or nothing."""
    return next((line.strip()[0] for _, line in lines(path) if line.strip()), "")


def loaded(path: Path, content: str) -> Any:
    """The JSON value of a whole file.

    Raises:
        DatasetError: no JSON (with the line), a key twice, NaN, or half a surrogate pair.

    """
    try:
        json.loads(content)
    except json.JSONDecodeError as error:
        raise DatasetError(
            f"{path}:{error.lineno}: found no JSON from column {error.colno} ({error.msg}), expected JSON; correct the "
            "file"
        ) from error
    except (ValueError, RecursionError) as error:
        raise DatasetError(f"{path}: found {error}, expected plain JSON; correct the file") from error
    # The checks of a line (keys given twice, numbers, characters) hold for a file as well.
    return parsed(str(path), f'{{"value": {content}}}')["value"]


def identity(entry: Entry, key: str) -> str:
    """An id: a string as written, or the digits of a whole number.

    Raises:
        DatasetError: there is none, or it is something else.

    """
    found = entry.value.get(key)
    return str(found) if type(found) is int else entry.name(key)


def identities(entry: Entry, key: str) -> list[str]:
    """A list of ids; none where the key is missing."""
    found = entry.items(key)
    for number, item in enumerate(found):
        if not (type(item) is int or (isinstance(item, str) and item)):
            entry.fault(f"{key}[{number}]", described(item), "an id", _ID_ADVICE)
    return [str(item) for item in found]


def chosen(entry: Entry, keys: Sequence[str], meaning: str) -> str:
    """The one key of several names for the same thing that the entry has.

    Raises:
        DatasetError: it has none of them, or two.

    """
    found = [key for key in keys if entry.has(key)]
    if len(found) == 1:
        return found[0]
    shown = "nothing" if not found else " and ".join(f'"{key}"' for key in found)
    raise DatasetError(
        f"{entry.where}: found {shown} as {meaning}, expected one of the keys {', '.join(keys)}; "
        f"{'add one' if not found else 'keep one of them'}"
    )


def metadata(entry: Entry, taken: Sequence[str]) -> dict[str, Any]:
    """What `metadata` holds, and every key of the row that has no meaning of its own.

    Raises:
        DatasetError: a key stands in both with different values.

    """
    own = dict(entry.mapping("metadata"))
    rest = {key: value for key, value in entry.value.items() if key not in (*taken, "metadata")}
    for key in own.keys() & rest.keys():
        if own[key] != rest[key]:
            entry.fault(key, described(rest[key]), f"{described(own[key])} as in metadata", "keep one of the two")
    return own | rest


def rewritten(entry: Entry, key: str, text: str, *more: str) -> dict[str, Any]:
    """A row of the dataset: its id and text, those of `more` that there are, and all else as metadata."""
    row = {"_id": identity(entry, key), "text": entry.string(text)}
    row |= {name: entry.string(name) for name in more if entry.has(name)}
    rest = metadata(entry, (key, text, *more))
    return row | ({"metadata": rest} if rest else {})


def one(source: Path, named: str | None, found: Sequence[Path], what: str, flag: str) -> Path:
    """The file that a flag names, beside SOURCE or inside it; without the flag the only one found.

    Raises:
        DatasetError: the named file is not there, or none or several were found.

    """
    if named is not None:
        return inside(source, named, flag)
    if len(found) == 1:
        return found[0]
    shown = ", ".join(str(path.relative_to(source)) for path in found) or "none"
    raise DatasetError(f"{source}: found {shown}, expected one file of {what}; name it with {flag}")


def inside(source: Path, named: str, flag: str) -> Path:
    """A path as given, or else below SOURCE."""
    for path in (source / named, Path(named).expanduser()):
        if path.exists():
            return path
    raise DatasetError(f"{named}: found no such file here or in {source}, expected one; check {flag}")


def folder(source: Path, format: str) -> Path:
    """Refuse a SOURCE that is no folder."""
    if not source.is_dir():
        found = "a file" if source.exists() else "nothing"
        raise DatasetError(f"{source}: found {found}, expected a folder; see `dataset import {format} --help`")
    return source


def short(value: Mapping[str, Any], *keys: str) -> dict[str, Any]:
    """The keys that hold something."""
    return {key: value[key] for key in keys if value.get(key) not in (None, "", [], {})}


def words(found: str) -> str:
    """A text in quotes, short enough for a sentence."""
    return quoted(found, 40)
