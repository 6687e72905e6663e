"""The documents that were expected and those that were indexed go in, the `ingestion/` values of a run come out."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping

from ablate.score.evidence import units
from ablate.types import Document, Truth


def ingestion(
    expected: int,
    documents: Mapping[str, Document],
    ingested: Mapping[str, str],
    indexed: Container[str],
    truths: Iterable[Truth],
) -> dict[str, float | None]:
    """Values of one corpus as it arrived.

    `expected` is the number of lines of the corpus, counted by someone else than the reader. `documents` are those
    that spans speak of, `ingested` the text of each as the chunker got it; `indexed` the ids that have a chunk.
    A unit is verbatim where the text of each of its spans stands at its place.
    """
    evidence = units(truths)
    verbatim = sum(
        unit.document in indexed
        and all(
            ingested[unit.document][span.start : span.end] == documents[unit.document].text[span.start : span.end]
            for span in unit.spans
        )
        for unit in evidence
    )
    present = sum(name in indexed for name in documents)
    return {
        "ingestion/documents_expected": float(expected),
        "ingestion/documents_indexed": float(present),
        "ingestion/coverage": present / expected if expected else None,
        "ingestion/empty_documents": float(sum(not text.strip() for text in ingested.values())),
        "ingestion/units_verbatim": verbatim / len(evidence) if evidence else None,
    }
