"""Bytes of a text file in, its characters out, and the encoding that they were in; none is guessed."""

from __future__ import annotations

import codecs

from ablate.errors import ConfigError
from ablate.extraction import Unreadable

MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),  # before UTF-16: its mark begins with the same two bytes
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)


def decoded(data: bytes, otherwise: str, declared: str = "") -> tuple[str, str]:
    """The text, its lines ending in a line feed, and its encoding.

    A byte order mark decides; without one what the file declares; else it is UTF-8, and `otherwise` where it is not.

    Raises:
        Unreadable: the bytes are not in that encoding, or are no text.

    """
    marked = next(((mark, name) for mark, name in MARKS if data.startswith(mark)), None)
    if marked:
        return text(data[len(marked[0]) :], marked[1]), marked[1]
    if declared:
        return text(data, declared), declared
    try:
        return text(data, "utf-8"), "utf-8"
    except Unreadable:
        if not otherwise:
            raise
    return text(data, otherwise), otherwise


def text(data: bytes, encoding: str) -> str:
    try:
        found = data.decode(encoding)
    except UnicodeDecodeError as error:
        raise Unreadable(
            f"found the byte 0x{data[error.start]:02x} at {error.start} that is not {encoding}, expected {encoding} "
            "text; save the file in UTF-8, or name its encoding with --encoding"
        ) from error
    except UnicodeError as error:  # encodings of host names say no place
        raise Unreadable(f"found bytes that are not {encoding}, expected text; save the file in UTF-8") from error
    except LookupError as error:
        raise Unreadable(f'found "{encoding}" declared, expected a known encoding; save the file in UTF-8') from error
    if "\0" in found:
        raise Unreadable(
            f"found a NUL at character {found.index(chr(0))}, expected {encoding} text; save the file in UTF-8, or "
            "name its encoding with --encoding"
        )
    return found.replace("\r\n", "\n").replace("\r", "\n")


def known(name: str) -> None:
    """Refuse a name that is no encoding of text.

    Raises:
        ConfigError: there is no such encoding.

    """
    try:
        "a".encode(name)
    except (LookupError, UnicodeError) as error:
        raise ConfigError(
            f'--encoding: found "{name}", expected the name of an encoding; write one like cp1251 or utf-16-le'
        ) from error
