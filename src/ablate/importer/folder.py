"""Markdown, HTML, text, PDF and DOCX files of a folder, as the corpus of a dataset

SOURCE is a folder; files in folders below it count too. Each file that can be read is a document: its id is its path
from SOURCE, with forward slashes; its title that of the front matter, or its first heading, or what HTML, PDF and DOCX
state, or its name. Headings, lists and tables become Markdown. PDF and DOCX need more packages:
  pip install "ablate-retrieval[documents]"

Who may read a document, its title and its metadata stand in YAML front matter of a Markdown file (title, acl: {allow,
deny}, all else is metadata) or in SOURCE/metadata.csv: a row a file, with the columns path, title, allow and deny
(names with ; between them), all else is metadata. The import itself adds source_path, source_type, source_bytes and
source_pages.

Text files are UTF-8, or what a byte order mark or the page itself says, or what --encoding names.

import-report.csv tells of every file of SOURCE what became of it. imported; partial: pages of pictures have no text;
empty: no text at all, a document without text is kept; failed: it cannot be read, no document; unsupported, hidden,
link, sidecar: not read. Exit code 1 if a file failed; what could be read is written all the same, and with --strict
nothing is, unless every file but hidden ones is imported. A file that takes longer than --seconds, or more memory than
4 GiB, fails.
"""

from __future__ import annotations

import argparse
import csv
import io
import shlex
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ablate.dataset.documents import document
from ablate.dataset.lines import Entry, described, parsed
from ablate.dataset.problems import FIRST
from ablate.dataset.write import line
from ablate.errors import AblateError, ConfigError, DatasetError, NotInstalled, first_line
from ablate.extraction import Extraction, Unreadable
from ablate.extraction.apart import Reader, reader
from ablate.extraction.encoding import known
from ablate.extraction.markdown import MISPLACED
from ablate.extraction.sidecar import NAME, Sidecar, sidecar
from ablate.extraction.walk import FAILED, HIDDEN, LINK, UNSUPPORTED, File, walk
from ablate.importer import Imported, Report, Row
from ablate.importer.source import folder
from ablate.page import clean
from ablate.progress import followed

IMPORTED, PARTIAL, EMPTY, SIDECAR = "imported", "partial", "empty", "sidecar"
STRICT = (IMPORTED, HIDDEN, SIDECAR)
"""What a strict import allows."""

OWN = ("source_path", "source_type", "source_bytes", "source_pages")
REPORT = "import-report.csv"
COLUMNS = ("path", "type", "bytes", "status", "characters", "headings", "tables", "pages", "pages_empty", "pages_ocr",
           "encoding", "reason")  # fmt: skip


LISTED = 20
"""How many files are printed; the report has all."""

KINDS = {
    FAILED: "files that cannot be read, left out",
    EMPTY: "files without text, kept as documents without text",
    PARTIAL: "files with pages that have to go through character recognition (OCR), imported without these",
    UNSUPPORTED: "files of other types, left out",
    LINK: "symbolic links, left out",
    HIDDEN: "hidden files and folders, left out",
}


class NotImported(DatasetError):
    """Files that a strict import does not allow: the answer is no, exit code 1."""

    code = 1


@dataclass(frozen=True)
class Outcome:
    """What became of a file; `row` is the line of the corpus, without one where there is no document."""

    file: File
    status: str
    reason: str
    row: Row | None = None
    found: Extraction | None = None

    @property
    def line(self) -> list[str | int]:
        """The line of the report; what does not apply is empty."""
        head = [self.file.id, self.file.ending.removeprefix("."), self.file.size, self.status]
        if not self.found:
            return [*head, *[""] * 7, self.reason]
        found = self.found
        pages = [len(found.pages), len(found.blank), len(found.scanned)] if found.pages else [""] * 3
        return [*head, len(found.text), len(found.headings), found.tables, *pages, found.encoding, self.reason]


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--encoding", default="", help="of text files that are not UTF-8, such as cp1251")
    parser.add_argument("--sidecar", type=Path, help=f"table with a row a file (default SOURCE/{NAME}, if it is there)")
    parser.add_argument("--strict", action="store_true", help="write nothing unless every file is imported")
    parser.add_argument(
        "--seconds", type=int, default=600, metavar="S", help="how long one file may take before it fails (default 600)"
    )
    parser.add_argument("--sample", type=int, default=0, metavar="N", help="also write sample.csv, to mark N parts")
    parser.add_argument("--seed", type=int, default=0, help="which parts (default 0)")


def read(source: Path, args: argparse.Namespace) -> Imported:
    """The documents of a folder, and the report.

    Raises:
        DatasetError: no folder, a sidecar that cannot be trusted, or nothing to import; with --strict, a file that is
            not imported.
        ConfigError: there is no such encoding, or a sample of less than nothing.
        NotInstalled: a PDF or DOCX file, and no package that reads it.

    """
    if args.encoding:
        known(args.encoding)
    if args.sample < 0:
        raise ConfigError(f"--sample: found {args.sample}, expected 1 or more; leave it out for no sample")
    if args.seconds < 1:
        raise ConfigError(f"--seconds: found {args.seconds}, expected 1 or more; give each file some time")
    outside(folder(source, "folder"), args.dir)
    files = walk(source)
    beside = table(source, args, files)
    with reader(args.seconds) as read_file:
        outcomes = unique([outcome(f, beside, args.encoding, read_file) for f in followed("reading", files, "files")])
    listed = listing(outcomes)
    if args.strict and listed:
        raise NotImported("\n  ".join([f"{source}: found files, expected none; correct or remove them:", *listed]))
    rows = [outcome.row for outcome in outcomes if outcome.row]
    if not rows:
        raise DatasetError(
            "\n  ".join([f"{source}: found no file to import, expected at least one; check it", *listed])
        )
    extra = sample(outcomes, args) if args.sample else {}
    said = [*listed, counted(outcomes), *advice(args.dir, rows, bool(extra))]
    failed = any(outcome.status == FAILED for outcome in outcomes)
    return Imported(rows, kinds(outcomes), files={REPORT: report(outcomes), **extra}, said=said, failed=failed)


def outside(source: Path, dir: Path) -> None:
    if dir.resolve().is_relative_to(source.resolve()):
        raise DatasetError(f"{dir}: found a folder in SOURCE, expected one elsewhere; its files would be imported, too")


def table(source: Path, args: argparse.Namespace, files: Sequence[File]) -> Sidecar | None:
    """The sidecar that is named, or the one of SOURCE."""
    path: Path = args.sidecar or source / NAME
    if not args.sidecar and not path.is_file():
        return None
    return sidecar(path, {file.id for file in files}, args.encoding, OWN)


def outcome(file: File, beside: Sidecar | None, encoding: str, read_file: Reader) -> Outcome:
    """Read one file, and put to it what its front matter and the sidecar say."""
    if beside and not file.path.is_symlink() and file.path.resolve() == beside.path.resolve():
        return Outcome(file, SIDECAR, "tells of the other files")
    if file.status:
        return Outcome(file, file.status, file.reason)
    try:
        data = file.path.read_bytes()
        found = read_file(data, file.ending, encoding)
        row = row_of(file, len(data), found, beside)
    except OSError as error:
        return Outcome(file, FAILED, f"found {error.strerror}, expected a file to read; check it")
    except NotInstalled as error:
        raise NotInstalled(f"{file.id}: {error}") from error
    except AblateError as error:
        return Outcome(file, FAILED, str(error).removeprefix(f"{file.id}: "))
    status = EMPTY if not found.text.strip() else PARTIAL if found.scanned else IMPORTED
    return Outcome(file, status, "; ".join(reasons(found)), row, found)


def reasons(found: Extraction) -> list[str]:
    said = ["no text"] if not found.text.strip() else []
    for what, pages in (
        ("pages of pictures without text, to be recognised (OCR)", found.scanned),
        ("empty pages", found.blank),
    ):
        if pages:
            said.append(f"{what}: {', '.join(map(str, pages))}")
    return [*said, *found.remarks]


def row_of(file: File, size: int, found: Extraction, beside: Sidecar | None) -> Row:
    """The line of the corpus.

    Raises:
        DatasetError: what front matter or sidecar say is no metadata or ACL.
        Unreadable: they contradict each other.

    """
    from ablate.extraction.parts import title

    own: dict[str, Any] = {"source_path": file.id, "source_type": file.ending.removeprefix("."), "source_bytes": size}
    if found.pages:
        own["source_pages"] = len(found.pages)
    said = merged(found.front, beside.rows.get(file.id, {}) if beside else {}, beside.path.name if beside else "")
    if "acl" not in said and MISPLACED.match(found.text):
        raise Unreadable(
            "found front matter with an ACL in a place or form in which it is not read, expected YAML from the first "
            f"character of a Markdown file on; write it so, or say in {NAME} who reads the file"
        )
    name = title(found.headings) or found.title or file.path.stem
    value: dict[str, Any] = {"_id": file.id, "title": said.pop("title", name), "text": found.text}
    acl = said.pop("acl", None)
    value |= {"metadata": own | said} | ({"acl": acl} if acl is not None else {})
    try:
        written = line(value).decode()
    except (TypeError, ValueError, RecursionError) as error:
        raise Unreadable(f"found {first_line(error)}, expected text, numbers and lists of them; correct it") from error
    document(Entry(file.id, parsed(file.id, written)), True, FIRST)
    return Row(file.id, value)


def merged(front: Mapping[str, Any], beside: Mapping[str, Any], name: str) -> dict[str, Any]:
    """What front matter and sidecar say together."""
    for key in OWN:
        if key in front:
            raise Unreadable(f'front matter: found the key "{key}", which the import fills itself; rename it')
    for key in front.keys() & beside.keys():
        if comparable(front[key]) != comparable(beside[key]):
            raise Unreadable(
                f'found {described(beside[key])} as "{key}" in {name}, expected {described(front[key])} as in the '
                "front matter; correct one of them"
            )
    return {**front, **beside}


def comparable(value: Any) -> Any:
    """A value, of which the order of an ACL's names and an empty list of them are no part."""
    if not isinstance(value, dict):
        return value
    return {key: sorted(map(str, names)) if isinstance(names, list) else names for key, names in value.items() if names}


def unique(outcomes: Sequence[Outcome]) -> list[Outcome]:
    """Of files whose names differ only in how Unicode writes them, all but the first fail."""
    seen: set[str] = set()
    found = []
    for outcome in outcomes:
        if outcome.row and outcome.file.id in seen:
            reason = "found another file of this name, in other Unicode, expected one; rename it"
            found.append(Outcome(outcome.file, FAILED, reason))
        else:
            found.append(outcome)
        seen.add(outcome.file.id)
    return found


def kinds(outcomes: Sequence[Outcome]) -> Report:
    found = Report()
    for status, what in KINDS.items():
        for outcome in outcomes:
            if outcome.status == status:
                found.add(what, outcome.file.id)
    return found


def listing(outcomes: Sequence[Outcome]) -> list[str]:
    """The files that a person should look at, those that failed first."""
    order = [status for status in KINDS if status not in STRICT]
    found = sorted((o for o in outcomes if o.status in order), key=lambda outcome: order.index(outcome.status))
    lines = [clean(f"{outcome.file.id}: {outcome.status}: {outcome.reason}") for outcome in found[:LISTED]]
    return [*lines, f"and {len(found) - LISTED} more"] if len(found) > LISTED else lines


def counted(outcomes: Sequence[Outcome]) -> str:
    statuses = Counter(outcome.status for outcome in outcomes)
    extractions = [outcome.found for outcome in outcomes if outcome.found]
    parts = [f"{number} {status}" for status, number in sorted(statuses.items(), key=lambda row: (-row[1], row[0]))]
    pages = sum(len(found.pages) for found in extractions)
    text = f"{len(outcomes)} files: {', '.join(parts)}"
    if not pages:
        return text
    blank, scanned = (sum(map(len, lists)) for lists in zip(*((f.blank, f.scanned) for f in extractions), strict=True))
    return f"{text}; {pages} pages, {blank} of them empty, {scanned} to be recognised (OCR)"


def advice(dir: Path, rows: Sequence[Row], sampled: bool) -> list[str]:
    bare = sum("acl" not in row.value for row in rows)
    said = [f"{dir / REPORT} tells of every file"]
    if 0 < bare < len(rows):
        said.append(
            f"{bare} of {len(rows)} documents have no ACL: nobody reads them, or with acl_default: public all do"
        )
    if sampled:
        said.append(f"mark {dir / 'sample.csv'}, then: python -m ablate dataset parse-check {dir / 'sample.csv'}")
    command = shlex.join(["python", "-m", "ablate", "dataset", "init", str(dir)])
    return [*said, f"next: `{command}` says how to write queries and their ground truth"]


def report(outcomes: Sequence[Outcome]) -> bytes:
    """A row a file of SOURCE, in UTF-8; what a name has that is no character is written in hexadecimal."""
    from ablate.extraction.sheet import inert

    found = io.StringIO(newline="")
    writer = csv.writer(found, lineterminator="\n")
    writer.writerow(COLUMNS)
    writer.writerows([inert(str(cell)) for cell in outcome.line] for outcome in outcomes)
    return found.getvalue().encode(errors="backslashreplace")


def sample(outcomes: Sequence[Outcome], args: argparse.Namespace) -> dict[str, bytes]:
    """The sheet of a sample, and its pages."""
    from ablate.extraction.parts import parts
    from ablate.extraction.sheet import Item, drawn, files

    read = {outcome.file.id: outcome for outcome in outcomes if outcome.found}
    places = [
        Item(key, part.place, outcome.found.text[part.start : part.end])
        for key, outcome in read.items()
        if outcome.found
        for part in parts(outcome.found)
    ]
    sources = {key: outcome.file.path for key, outcome in read.items()}
    try:
        return files(drawn(places, args.sample, args.seed), sources, args.encoding)
    except OSError as error:
        raise DatasetError(
            f"{error.filename}: found {error.strerror} on reading it again for the sample, expected the file; import "
            "the folder once more"
        ) from error
