"""A folder in, every file in it out: those to read, and those that are not, with the reason."""

from __future__ import annotations

import os
import stat
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from ablate.extraction import KINDS

READ, UNSUPPORTED, HIDDEN, LINK, FAILED = "", "unsupported", "hidden", "link", "failed"

CONVERT = {
    ".doc": "save it as DOCX",
    ".epub": "convert it to HTML",
    ".odt": "save it as DOCX",
    ".ppt": "save it as PDF",
    ".pptx": "save it as PDF",
    ".rtf": "save it as DOCX",
    ".xls": "save it as HTML or PDF",
    ".xlsx": "save it as HTML or PDF",
}


@dataclass(frozen=True, slots=True)
class File:
    """A file of a folder: its path from there with forward slashes, in composed Unicode, so that it is the same on
    every system; what is not to be read has a status and a reason.
    """

    id: str
    path: Path
    status: str = READ
    reason: str = ""

    @property
    def ending(self) -> str:
        return self.path.suffix.lower()

    @property
    def size(self) -> int | str:
        """In bytes; nothing where it is no file, as what a folder or a link takes differs between systems."""
        try:
            found = self.path.lstat()
        except OSError:
            return ""
        return found.st_size if stat.S_ISREG(found.st_mode) else ""


def walk(source: Path) -> list[File]:
    """Every file below a folder, in the order of ids; folders that are not entered stand for what is in them."""
    return sorted(below(source, source), key=lambda file: file.id)


def below(source: Path, folder: Path) -> Iterator[File]:
    try:
        entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
    except OSError as error:
        yield File(identity(source, folder) + "/", folder, FAILED, f"found {error.strerror}, expected a folder to read")
        return
    for entry in entries:
        path = Path(entry.path)
        if entry.is_dir(follow_symlinks=False) and not entry.name.startswith("."):
            yield from below(source, path)
        else:
            status, reason = judged(source, path)
            slash = "/" if entry.is_dir(follow_symlinks=False) else ""
            yield File(identity(source, path) + slash, path, status, reason)


def identity(source: Path, path: Path) -> str:
    return unicodedata.normalize("NFC", path.relative_to(source).as_posix())


def judged(source: Path, path: Path) -> tuple[str, str]:
    """The status of what a folder holds, and the reason where it is not to be read."""
    if path.name.startswith((".", "~$")):
        return HIDDEN, "hidden, or the lock of an open document; not read"
    reason = misnamed(identity(source, path))
    if reason:
        return FAILED, reason
    reason = astray(source, path) if path.is_symlink() else ""
    if reason:
        return LINK, reason
    if path.suffix.lower() not in KINDS:
        known = ", ".join(KINDS)
        return UNSUPPORTED, f"expected one of {known}; {CONVERT.get(path.suffix.lower(), 'convert it')}"
    try:
        regular = stat.S_ISREG(path.stat().st_mode)
    except OSError as error:
        return FAILED, f"found {error.strerror}, expected a file to read; check it"
    return (READ, "") if regular else (UNSUPPORTED, "a pipe, socket or device")


def misnamed(name: str) -> str:
    """Why a name can be no id: half a character, or one that ends a line or a cell in other files."""
    kinds = set(map(unicodedata.category, name))
    if "Cs" in kinds:
        return "found a name that is not UTF-8, expected one; rename the file or folder"
    if kinds & {"Cc", "Zl", "Zp"}:
        return "found a name with a line break or a tab, expected one without; rename the file or folder"
    return ""


def astray(source: Path, link: Path) -> str:
    """Why a link does not lead to a file of the folder."""
    try:
        target = link.resolve()
    except (OSError, RuntimeError):  # as Python 3.12 and before call a loop
        return "a link that leads back to itself; remove it"
    if not target.is_relative_to(source.resolve()):
        return "a link that leads out of the folder; put the file itself here"
    if target.is_dir():
        return "a link to a folder, the files of which are read where they are"
    return "" if target.exists() else "a link that leads to nothing; remove it"
