"""What every stage showed and what the frozen ACL denies go in, the `acl/` values of one query come out."""

from __future__ import annotations

from collections.abc import Container, Iterable, Sequence

from ablate.types import Chunk, Hit


def acl(
    denied: Container[str],
    context: Iterable[Chunk],
    stages: Sequence[Sequence[Hit]],
    unrestricted: Iterable[Hit],
    hits: int,
    readable: int,
) -> dict[str, float | None]:
    """Counts of (query, document) pairs that the ACL denies, and whether the query could have shown any.

    `stages` are the lists that any stage after access gave out. `unrestricted` is what a search without access finds
    within depth: without a forbidden chunk in it the query tests nothing. `hits` is the number of hits that access
    let through, `readable` how many the exact search over the readable documents gives.
    """
    shown = forbidden(context, denied)
    passed = forbidden((hit.chunk for stage in stages for hit in stage), denied) | shown
    return {
        "acl/violations": float(len(shown)),
        "acl/candidate_violations": float(len(passed)),
        "acl/exposure": float(any(hit.chunk.document.id in denied for hit in unrestricted)),
        "acl/starved": float(hits < readable),
    }


def unchecked() -> dict[str, float | None]:
    """The same names where no document carries an ACL: nothing was checked, so nothing applies."""
    return dict.fromkeys(acl((), (), (), (), 0, 0))


def forbidden(chunks: Iterable[Chunk], denied: Container[str]) -> set[str]:
    """The documents among those of the chunks that are denied, each once."""
    return {chunk.document.id for chunk in chunks if chunk.document.id in denied}
