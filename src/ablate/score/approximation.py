"""What an exact search found and what an approximate one did go in, the share that was not lost comes out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ablate.types import Hit


def approximation(exact: Sequence[Hit], found: Sequence[Hit]) -> Mapping[str, float | None]:
    """The `retrieval/ann_recall` of one query; not applicable where there was nothing to find."""
    wanted = {hit.chunk for hit in exact}
    both = wanted.intersection(hit.chunk for hit in found)
    return {"retrieval/ann_recall": len(both) / len(wanted) if wanted else None}
