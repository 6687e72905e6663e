"""The bytes of a TREC run file go in, the documents of every query as numbers, best first, come out."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple
from urllib.parse import unquote

import numpy as np
import numpy.typing as npt

from ablate.dataset.lines import lines
from ablate.errors import DatasetError
from ablate.score.documents import Numbers, Ragged

LARGE = 1 << 20
"""Bytes from which a file is worth the import of what reads it at once."""

INK = bytes(byte for byte in range(256) if byte not in b" \t\n\r\f\v")
LINE = b"     \n"
"""What is left of a line of six columns without its ink."""

ENCODED = "ablate-pct"
"""The tag that says that white space and % in ids are percent-encoded."""


class Coded(NamedTuple):
    """A column of ids: hit i has `ids[codes[i]]`; no id is there twice."""

    ids: Sequence[str]
    codes: Numbers

    @classmethod
    def of(cls, ids: Sequence[str], codes: Sequence[int] | Numbers) -> Coded:
        places: dict[str, int] = {}
        merged = [places.setdefault(name, len(places)) for name in ids]
        return cls(list(places), np.array(merged, np.int64)[np.asarray(codes, np.int64)])


class Columns(NamedTuple):
    """What a file says: of every hit its line, query, document and score."""

    lines: Numbers
    queries: Coded
    documents: Coded
    scores: npt.NDArray[np.float64]


class Hits(NamedTuple):
    """The queries of a file, the first line of each, and the numbers of their documents, best first."""

    queries: Sequence[str]
    where: Sequence[int]
    documents: Ragged


def hits(name: str, data: bytes, numbers: Mapping[str, int]) -> Hits:
    """What a file ranks: score descending, ties by document id descending; the column of ranks is not read.

    As trec_eval does, scores are compared in single precision: what it takes for a tie is one here too. `numbers` has
    the number of each document that there is, by its id.

    Raises:
        DatasetError: a line that cannot be read, or a document without a number.

    """
    found = (at_once(data) if len(data) >= LARGE else None) or line_by_line(name, data)
    if not len(found.lines):
        return Hits([], [], Ragged.of([]))
    for code, document in enumerate(found.documents.ids):
        if document not in numbers:
            raise unknown(document, f"{name}:{found.lines[found.documents.codes == code].min()}")
    order = ranked(found)
    rows = found.queries.codes[order]
    bounds = np.searchsorted(rows, np.arange(len(found.queries.ids) + 1))
    documents = np.array([numbers[name] for name in found.documents.ids], np.int64)[found.documents.codes[order]]
    first = np.minimum.reduceat(found.lines[order], bounds[:-1])
    return Hits(found.queries.ids, first.tolist(), Ragged(documents, bounds))


def ranked(found: Columns) -> Numbers:
    """The order of all hits: by query, score descending, document id descending."""
    with np.errstate(over="ignore"):
        scores, rows = found.scores.astype(np.float32), found.queries.codes
    if ((rows[1:] > rows[:-1]) | (rows[1:] == rows[:-1]) & (scores[1:] < scores[:-1])).all():
        return np.arange(len(rows))  # most files are in order, and to see that is quicker than to sort
    ids, codes = found.documents
    by_id = np.empty(len(ids), np.int64)
    by_id[sorted(range(len(ids)), key=ids.__getitem__)] = np.arange(len(ids))
    return np.asarray(np.lexsort((-by_id[codes], -scores, rows)), np.int64)


def line_by_line(name: str, data: bytes) -> Columns:
    """The columns of any file.

    Raises:
        DatasetError: a line that is not UTF-8, has not six columns, or whose score is no finite number.

    """
    rows = []
    for count, line in lines(name, data):
        # Only ASCII white space parts columns: a no-break space may belong to an id.
        words = re.split(r"[ \t\r\f\v]+", line.strip(" \t\r\f\v"))
        if len(words) != 6:
            raise DatasetError(
                f"{name}:{count}: found {len(words)} columns, expected 6 (query Q0 document rank score tag); "
                "percent-encode white space in ids and tag the run ablate-pct, or write JSONL"
            )
        query, document = (unquote(word) if words[5] == ENCODED else word for word in (words[0], words[2]))
        rows.append((count, query, document, number(words[4], f"{name}:{count}")))
    numbers, queries, documents, scores = zip(*rows, strict=True) if rows else ((),) * 4
    every = range(len(rows))
    return Columns(
        np.array(numbers, np.int64), Coded.of(queries, every), Coded.of(documents, every), np.array(scores, np.float64)
    )


def at_once(data: bytes) -> Columns | None:
    """The columns of a file whose lines have one blank between two columns; None for what needs a closer look."""
    from pyarrow import ArrowInvalid, BufferReader, csv, dictionary, float64, int32, string

    rows = data.count(b"\n") + (not data.endswith(b"\n"))
    bare = data.translate(None, INK).removesuffix(b"\n") + b"\n"
    blank = np.frombuffer(data, np.uint8) <= ord(" ")
    empty = blank[0] or (blank[1:] & blank[:-1]).any()
    if bare != LINE * rows or empty or data.startswith(b"\xef\xbb\xbf"):
        return None
    types = {name: dictionary(int32(), string()) for name in ("query", "document", "tag")} | {"score": float64()}
    try:
        table = csv.read_csv(
            BufferReader(data),
            csv.ReadOptions(column_names=["query", "q0", "document", "rank", "score", "tag"]),
            csv.ParseOptions(delimiter=" ", quote_char=False),
            csv.ConvertOptions(column_types=types, include_columns=list(types), null_values=[]),
        )
    except ArrowInvalid:
        return None
    coded = {name: column.combine_chunks() for name, column in zip(types, table.unify_dictionaries(), strict=True)}
    ids = {name: coded[name].dictionary.to_pylist() for name in ("query", "document", "tag")}
    scores = coded["score"].to_numpy()
    if not np.isfinite(scores).all() or (ENCODED in ids["tag"] and len(ids["tag"]) > 1):
        return None
    meant = unquote if ENCODED in ids["tag"] else str
    queries, documents = (
        Coded.of(list(map(meant, ids[name])), coded[name].indices.to_numpy()) for name in ("query", "document")
    )
    return Columns(np.arange(1, rows + 1), queries, documents, scores)


def unknown(document: str, where: str) -> DatasetError:
    return DatasetError(
        f"{where}: found the document {document!r} that corpus.jsonl does not have, expected ids of the corpus; "
        "check that the run belongs to it"
    )


def number(value: float | str, where: str) -> float:
    """A score that can be ranked.

    Raises:
        DatasetError: it is no number, or not a finite one.

    """
    try:
        found = float(value)
    except (ValueError, OverflowError):
        found = math.nan
    if not math.isfinite(found):
        raise DatasetError(f"{where}: found the score {value}, expected a finite number; leave out what has none")
    return found
