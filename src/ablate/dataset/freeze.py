"""A dataset folder in, the same folder with its manifest out: a version that is never changed again."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from ablate.dataset import Folder, manifest, path, write
from ablate.dataset.lines import Entry, quoted
from ablate.dataset.manifest import NAME, Manifest
from ablate.dataset.written import CORPUS, TRUTH, documents, rows, units
from ablate.errors import DatasetError, NotReviewed
from ablate.types import Dataset

_LISTED = 20


@dataclass(frozen=True)
class Frozen:
    """The manifest of a folder, whether it is new, and what reading the folder warned of if it was read."""

    manifest: Manifest
    fresh: bool
    warnings: Sequence[str]


@dataclass(frozen=True)
class Freezing:
    """How a folder is to be frozen.

    `version` is its name, by default the number after that of `parent`, which is a frozen folder or a version. With
    `exclude_unresolved`, queries whose evidence does not fit the documents are left out; otherwise they are refused.
    `require_review` refuses alternatives that no expert has confirmed.
    """

    version: str | None
    parent: str | None
    exclude_unresolved: bool
    require_review: bool

    def __call__(self, source: Folder) -> Frozen:
        """Check the folder and write its manifest; a frozen folder stays as it is.

        Raises:
            DatasetError: the folder is not valid, has changed since it was frozen, or cannot be frozen as asked.
            NotReviewed: an alternative is not confirmed by an expert.

        """
        folder = path(source.dir)
        known = manifest.known(folder)
        if known is not None:
            return Frozen(self.again(source, folder, known), False, ())
        parent = ancestor(self.parent)
        version = self.version or following(parent)
        named(version, parent)
        before = manifest.hashed(folder)
        found: dict[str, tuple[Entry, str]] = {}
        with suppress(DatasetError):  # reading tells all that is wrong, not only the first thing
            found = unresolved(folder)
        if found and not self.exclude_unresolved:
            unit, reason = next(iter(found.values()))
            raise DatasetError(
                f'{TRUTH}:{unit.where.rpartition(":")[2]}: key "{unit.path.removesuffix(".")}": found evidence of '
                f"{listed(found)} that does not fit the documents (first: {reason}), expected evidence that fits; "
                "correct it, or leave these queries out with --exclude-unresolved"
            )
        excluded = {query: reason for query, (_, reason) in found.items()}
        dataset = source.read(excluded)
        self.review(dataset)
        if manifest.hashed(folder) != before:
            raise DatasetError(f"{folder}: found files that changed while they were read, expected none; freeze again")
        created = datetime.now(UTC).isoformat(timespec="seconds")
        made = Manifest(version, before, dict(dataset.counts), created, parent, excluded)
        write.replace(folder / NAME, (json.dumps(made.row(), ensure_ascii=False, indent=1) + "\n").encode())
        return Frozen(made, True, dataset.warnings)

    def again(self, source: Folder, folder: Path, known: Manifest) -> Manifest:
        """The manifest of a frozen folder, which has not changed and is what is asked for."""
        manifest.same(known, manifest.hashed(folder))
        if self.version not in (None, known.version):
            raise DatasetError(
                f"{folder / NAME}: found version {quoted(known.version)} of {known.created}, expected none yet, as a "
                f"frozen version keeps its name; copy the folder without its {NAME} to freeze it as another one"
            )
        if self.require_review:
            self.review(source.read())
        return known

    def review(self, dataset: Dataset) -> None:
        found = unreviewed(dataset) if self.require_review else []
        if found:
            raise NotReviewed(
                f"{TRUTH}: found alternatives that no expert has confirmed, of {listed(found)}, expected every one "
                'confirmed or added by somebody under "reviewed"; have them reviewed (`python -m ablate review`)'
            )


def ancestor(parent: str | None) -> str | None:
    """The version that a parent names: that of a frozen folder, or itself.

    Raises:
        DatasetError: the folder is not frozen, or has changed, or there is no such folder.

    """
    if parent is None:
        return None
    folder = Path(parent).expanduser()
    if not folder.is_dir():
        if "/" in parent or "\\" in parent or not parent.strip():
            raise DatasetError(f"{parent}: found no such folder, expected a frozen one or the name of a version")
        return parent
    known = manifest.known(folder)
    if known is None:
        raise DatasetError(f"{folder}: found no {NAME}, expected a frozen folder; freeze the parent first")
    manifest.same(known, manifest.hashed(folder))
    return known.version


def following(parent: str | None) -> str:
    """The number after the parent's where that is a whole number, else 1."""
    return str(int(parent) + 1) if parent is not None and parent.isascii() and parent.isdigit() else "1"


def named(version: str, parent: str | None) -> None:
    if not version.strip() or not version.isprintable():
        raise DatasetError(f"--version: found {quoted(version)}, expected a name; write a number or a word")
    if version == parent:
        raise DatasetError(
            f"--version: found {quoted(version)}, the parent's own, expected a new name; choose another one"
        )


def unresolved(folder: Path) -> dict[str, tuple[Entry, str]]:
    """Queries with evidence that does not fit the documents: of each, the first such unit and the reason.

    A unit that is marked "unresolved" gives its own words; of others it is said what does not fit. What is wrong in
    other ways is left to the reading of the dataset.
    """
    if not (folder / TRUTH).is_file() or not (folder / CORPUS).is_file():
        return {}
    written = list(units(rows(folder)))
    wanted = {str(entry.value.get("doc_id")) for _, _, entry in written}
    texts = {key: text for key, text in documents(folder) if key in wanted}
    found: dict[str, tuple[Entry, str]] = {}
    for query, _, entry in written:
        reason = misfit(entry, texts)
        if reason and query not in found:
            found[query] = entry, reason
    return found


def misfit(entry: Entry, texts: Mapping[str, str]) -> str:
    """Why a unit does not fit its document; nothing if it does, or if it is no unit at all."""
    if "unresolved" in entry.value:
        return f"unresolved, {entry.value['unresolved']}"
    document, quote = entry.value.get("doc_id"), entry.value.get("quote")
    if not isinstance(document, str):
        return ""
    if document not in texts:
        return f"does not fit, document {quoted(document)} is not in the corpus"
    text = texts[document]
    if "start" not in entry.value and "spans" not in entry.value and isinstance(quote, str) and quote:
        count = text.count(quote)
        return "" if count == 1 else f"does not fit, the quote {quoted(quote)} occurs {count} times in its document"
    bounds = spans(entry)
    if any(not 0 <= start < end <= len(text) for start, end in bounds):
        return f"does not fit, a span reaches beyond the {len(text)} characters of document {quoted(document)}"
    if len(bounds) == 1 and isinstance(quote, str) and "spans" not in entry.value:
        found = text[bounds[0][0] : bounds[0][1]]
        return "" if found == quote else f"does not fit, {quoted(quote)} is {quoted(found)} in its document"
    return ""


def spans(entry: Entry) -> list[tuple[int, int]]:
    """The offsets of a unit, as far as they are whole numbers."""
    pairs = entry.value.get("spans", [[entry.value.get("start"), entry.value.get("end")]])
    pairs = pairs if isinstance(pairs, list) else []
    return [
        (pair[0], pair[1]) for pair in pairs if isinstance(pair, list) and [type(each) for each in pair] == [int, int]
    ]


def unreviewed(dataset: Dataset) -> list[str]:
    """Queries with an alternative that no expert confirmed; one that only qrels imply is confirmed by nobody."""
    return [key for key, truth in dataset.truths.items() if not truth.confirmed >= set(range(len(truth.alternatives)))]


def listed(queries: Iterable[str]) -> str:
    """How many queries, and the first of them by name."""
    names: Sequence[str] = list(queries)
    shown = ", ".join(quoted(name) for name in names[:_LISTED]) + (", …" if len(names) > _LISTED else "")
    return f"{len(names)} {'query' if len(names) == 1 else 'queries'} ({shown})"
