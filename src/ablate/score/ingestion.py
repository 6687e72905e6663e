"""The corpus as it stands in its file and as it was ingested goes in, the `ingestion/` values of a run come out."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping

from ablate.score.evidence import units
from ablate.types import Document, Truth


def ingestion(
    expected: int,
    written: Mapping[str, str],
    ingested: Mapping[str, Document],
    indexed: Container[str],
    truths: Iterable[Truth],
) -> dict[str, float | None]:
    """Values of one corpus as it arrived.

    `expected` is the number of lines of the corpus file and `written` the text of each document in it, both read by
    someone else than the reader; `ingested` are the documents as the chunker got them, `indexed` the ids that have a
    chunk. A unit is verbatim where its document is indexed and the text of each of its spans stands at its place.
    """
    evidence = units(truths)
    verbatim = sum(
        unit.document in indexed
        and all(
            ingested[unit.document].text[span.start : span.end] == written[unit.document][span.start : span.end]
            for span in unit.spans
        )
        for unit in evidence
    )
    present = sum(name in indexed for name in ingested)
    return {
        "ingestion/documents_expected": float(expected),
        "ingestion/documents_indexed": float(present),
        "ingestion/coverage": present / expected if expected else None,
        "ingestion/empty_documents": float(sum(not document.text.strip() for document in ingested.values())),
        "ingestion/units_verbatim": verbatim / len(evidence) if evidence else None,
    }
