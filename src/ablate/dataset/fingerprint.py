"""Documents, queries and truths in, content hashes that name them out; the order of lines does not matter."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import fields
from typing import Any

from ablate.errors import DatasetError
from ablate.types import Document, Judgment, Query, Truth, Unit


def corpus(documents: Iterable[Document]) -> str:
    """SHA-256 of the documents as they are used: ids, titles, texts, metadata and ACLs."""
    return digest(sorted((document_row(document) for document in documents), key=lambda row: str(row["_id"])))


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
        return json.dumps(value, ensure_ascii=False, sort_keys=True, separators=(",", ":"), allow_nan=False)
    except (ValueError, TypeError) as error:
        raise DatasetError(f"contract.yaml: found {error}, expected plain values; correct the file") from error


def document_row(document: Document) -> dict[str, Any]:
    acl = document.acl and {"allow": sorted(document.acl.allow), "deny": sorted(document.acl.deny)}
    return {
        "_id": document.id,
        "title": document.title,
        "text": document.text,
        "metadata": document.metadata,
        "acl": acl,
    }


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
