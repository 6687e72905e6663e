"""Documents, queries and truths in, content hashes that name them out; the order of lines does not matter."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import fields
from functools import lru_cache
from typing import Any

from ablate.errors import DatasetError, problem
from ablate.types import Acl, Document, Judgment, Query, Truth, Unit

_PIECE = 2**20
"""Characters of a text that are encoded at a time: a document may be large."""


def corpus(documents: Iterable[bytes]) -> str:
    """SHA-256 of the sorted digests of all documents."""
    return hashlib.sha256(b"".join(sorted(documents))).hexdigest()


def document(document: Document) -> bytes:
    """SHA-256 of a document as it is used: id, title, metadata and ACL as a line of JSON, and after it the text."""
    metadata = "".join(_compact(document.metadata, 0)) if document.metadata else "{}"
    head = f"[{_encode(document.id)},{_encode(document.title)},{metadata},{rights(document.acl)}]\n"
    text = document.text
    found = hashlib.sha256((head + text[:_PIECE]).encode())
    for start in range(_PIECE, len(text), _PIECE):
        found.update(text[start : start + _PIECE].encode())
    return found.digest()


@lru_cache(maxsize=2**14)  # a corpus repeats its rights
def rights(acl: Acl | None) -> str:
    return _encode(acl and {"allow": sorted(acl.allow), "deny": sorted(acl.deny)})


def ground_truth(queries: Iterable[Query], truths: Mapping[str, Truth], rest: Mapping[str, Any]) -> str:
    """SHA-256 of the queries, of what they need, and of `rest`: groups, contract and whatever else moves a number."""
    rows = [[query_row(query), truth_row(truths[query.id])] for query in sorted(queries, key=lambda query: query.id)]
    return digest([*rows, rest])


def digest(rows: Iterable[Any]) -> str:
    found = hashlib.sha256()
    for row in rows:
        found.update(canonical(row).encode() + b"\n")
    return found.hexdigest()


def canonical(value: Any) -> str:
    """JSON with sorted keys and without white space.

    Raises:
        DatasetError: a value that JSON cannot hold, such as NaN in contract.yaml.

    """
    try:
        return _encode(value)
    except (ValueError, TypeError) as error:
        raise DatasetError([problem("contract.yaml", None, str(error), "plain values", "correct the file")]) from error


def query_row(query: Query) -> dict[str, Any]:
    row = {field.name: getattr(query, field.name) for field in fields(query)}
    return row | {"principals": sorted(query.principals), "compares": sorted(query.compares)}


def truth_row(truth: Truth) -> dict[str, Any]:
    alternatives = [
        sorted(sorted(unit_row(unit) for unit in fact) for fact in alternative) for alternative in truth.alternatives
    ]
    return {
        "alternatives": sorted(alternatives),
        "judged": sorted(judgment_row(judgment) for judgment in truth.judged),
        "documents": dict(truth.documents),
        "complete": truth.complete,
    }


def unit_row(unit: Unit) -> list[Any]:
    return [unit.document, [list(span) for span in unit.spans]]


def judgment_row(judgment: Judgment) -> list[Any]:
    return [*unit_row(judgment.unit), judgment.grade]


_canonical = json.JSONEncoder(ensure_ascii=False, sort_keys=True, separators=(",", ":"), allow_nan=False)
_encode = _canonical.encode

# What `encode` makes anew for every value: a corpus has many.
_compact = json.encoder.c_make_encoder(  # type: ignore[attr-defined]
    {}, _canonical.default, json.encoder.encode_basestring, None, ":", ",", True, False, False
)
