"""Two runs go in, what either found and nobody has judged comes out as rows of a blind sheet."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from ablate.audit import Audit
from ablate.dataset.lines import entries
from ablate.review.known import told
from ablate.review.sheet import FACTS, SOURCES, Cells, lot
from ablate.review.sides import Sides
from ablate.score.judged import judged
from ablate.types import Chunk, Dataset, Query

Readable = Callable[[str], bool]
T = TypeVar("T", Chunk, tuple[Chunk, ...])


@dataclass(frozen=True)
class Blind:
    """What goes to a person: rows in an order that tells nothing, and how many were left out, by reason."""

    rows: Sequence[Cells]
    left_out: Mapping[str, int]


def blind(sides: Sides, depth: int, size: int | None, seed: int, principals: Sequence[str]) -> Blind:
    """The unjudged chunks among the first `depth` of either side, those that both found once.

    Left out are chunks that who asks may not read, since they support nothing whatever they say, chunks that the
    reviewer (`principals`, if any are named) may not read, and chunks without a letter. The order and, where `size`
    cuts, the choice are drawn by `seed`; every query gets its fair share.
    """
    readable = reader(sides.audit, principals)
    found, left_out = _found(sides, depth, readable)
    chosen, cut = drawn(found, size, seed)
    lines = raw(sides.dataset)
    rows = [
        _row(number, sides, query, chunk, told(lines.get(query, {}), sides.documents, readable))
        for number, (query, chunk) in enumerate(chosen, 1)
    ]
    return Blind(rows, {**left_out, "beyond --size": cut})


def _found(sides: Sides, depth: int, readable: Readable) -> tuple[dict[str, list[Chunk]], dict[str, int]]:
    found: dict[str, list[Chunk]] = {}
    unread, forbidden, empty = 0, 0, 0
    for query in sides.dataset.queries:
        about, denied = judged(sides.dataset.truths[query.id]), sides.audit.denied(query.principals)
        ranked = [chunk for record in sides.runs for chunk in sides.ranked(record, query.id, depth)]
        chunks = [chunk for chunk in dict.fromkeys(ranked) if not about(chunk)]
        written = [chunk for chunk in chunks if any(map(str.isalnum, chunk.text))]
        useful = [chunk for chunk in written if chunk.document.id not in denied]
        found[query.id] = [chunk for chunk in useful if readable(chunk.document.id)]
        empty += len(chunks) - len(written)
        forbidden += len(written) - len(useful)
        unread += len(useful) - len(found[query.id])
    return found, {"forbidden to who asks": forbidden, "forbidden to the reviewer": unread, "without a letter": empty}


def drawn(found: Mapping[str, Sequence[T]], size: int | None, seed: int) -> tuple[list[tuple[str, T]], int]:
    """At most `size` items with their queries, and how many more there are; the items of a query stand together.

    Queries and the items of each stand in orders that are drawn; every query's first item is taken before any second.
    """
    turns: list[tuple[int, str, str, T]] = []
    for query, items in found.items():
        in_order = sorted(items, key=lambda item: lot(seed, query, name(item)))
        turns += [(turn, lot(seed, query), query, item) for turn, item in enumerate(in_order)]
    turns.sort(key=lambda place: place[:2])
    kept = turns if size is None else turns[:size]
    kept.sort(key=lambda place: (place[1], place[0]))
    return [(query, item) for _, _, query, item in kept], len(turns) - len(kept)


def name(item: Chunk | tuple[Chunk, ...]) -> str:
    return item.id if isinstance(item, Chunk) else "\0".join(chunk.id for chunk in item)


def _row(number: int, sides: Sides, query: str, chunk: Chunk, facts: str) -> Cells:
    return {
        **asked(number, sides.queries[query]),
        FACTS: facts,
        "title": chunk.document.title,
        "doc_id": chunk.document.id,
        "start": str(chunk.start),
        "end": str(chunk.end),
        "text": chunk.text,
        **dict.fromkeys(SOURCES.filled, ""),
    }


def asked(number: int, query: Query) -> Cells:
    """The columns that tell the question."""
    return {"item": f"i{number:04}", "query_id": query.id, "question": query.text, "as_of": query.as_of or ""}


def reader(audit: Audit, principals: Sequence[str]) -> Readable:
    """Whether a reviewer may read a document; without principals, who reviews is trusted with every text."""
    denied = audit.denied(principals) if principals else frozenset()
    return lambda document: document not in denied


def raw(dataset: Dataset) -> dict[str, Mapping[str, Any]]:
    """The lines of a dataset's ground_truth.jsonl by query, as they are written; none where there is no such file."""
    path = Path(dataset.folder) / "ground_truth.jsonl"
    data = path.read_bytes() if path.is_file() else b""
    return {entry.name("query_id"): entry.value for entry in entries(path.name, data)}
