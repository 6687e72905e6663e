"""The file of any system's ranking and the dataset it is about go in, chunks per query, best first, come out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np

from ablate.dataset.lines import Entry, entries, lines
from ablate.errors import DatasetError
from ablate.score import trec
from ablate.score.evidence import unique
from ablate.types import Chunk, Dataset, Document

Rankings = dict[str, list[Chunk]]


@dataclass(frozen=True)
class Run:
    """Chunks per query id, best first and without duplicates, and what reading them left out."""

    rankings: Rankings
    counts: Mapping[str, int]


def read(path: Path, dataset: Dataset) -> Run:
    """A run file: JSONL, one object a query, or TREC, six columns a hit.

    Raises:
        DatasetError: a line that cannot be read, or an id that the dataset does not have.

    """
    try:
        data = path.read_bytes()
    except OSError as error:
        raise DatasetError(f"{path}: found {error.strerror}, expected a run file; check --run") from error
    opened = Opened(str(path), {document.id: document for document in dataset.documents})
    jsonl = path.suffix == ".jsonl" or next((line for _, line in lines(str(path), data)), "").lstrip().startswith("{")
    listed, where = (opened.jsonl if jsonl else opened.trec)(data)
    known = {query.id for query in dataset.queries}
    asked = _asked(dataset) if set(listed) - known else set()
    for query in listed:
        if query not in known | asked:
            raise DatasetError(
                f"{where[query]}: found the query {query!r} that queries.jsonl does not have, expected ids of the "
                "dataset; check that the run belongs to it"
            )
    rankings = {query: unique(chunks) for query, chunks in listed.items() if query in known}
    hits = sum(len(chunks) for query, chunks in listed.items() if query in known)
    return Run(
        rankings,
        {
            "queries_unjudged_in_run": len(listed) - len(rankings),
            "hits": hits,
            "duplicate_hits": hits - sum(map(len, rankings.values())),
        },
    )


def _asked(dataset: Dataset) -> set[str]:
    """Every query of the folder: a run may have those that the split does not judge, they are in no mean."""
    data = (Path(dataset.folder) / "queries.jsonl").read_bytes()
    return {entry.name("_id") for entry in entries("queries.jsonl", data)}


@dataclass(frozen=True)
class Opened:
    """A run file being read beside the documents it may name: both formats give chunks per query and its first line."""

    name: str
    documents: Mapping[str, Document]

    def jsonl(self, data: bytes) -> tuple[Rankings, dict[str, str]]:
        """Best first: by score where there are scores; equal scores keep the order of the file."""
        listed: Rankings = {}
        where: dict[str, str] = {}
        for entry in entries(self.name, data):
            # An own ranking.jsonl holds the context as well, which is no part of the ranking.
            entry.only(("query_id", "hits", "context"))
            query = entry.name("query_id")
            if query in where:
                entry.fault("query_id", f'"{query}" a second time', "one line a query", "put all hits into one line")
            if not entry.has("hits"):
                entry.fault("hits", "nothing", "a list", "write [] where nothing was found")
            hits = [self.hit(entry.inner(f"hits[{n}]", hit)) for n, hit in enumerate(entry.items("hits"))]
            scored = [score for _, score in hits if score is not None]
            if len(scored) not in (0, len(hits)):
                entry.fault("hits", f"a score for {len(scored)} of {len(hits)} hits", "all or none", "add the others")
            if scored:
                hits.sort(key=lambda hit: -(hit[1] or 0))
            listed[query], where[query] = [chunk for chunk, _ in hits], entry.where
        return listed, where

    def hit(self, entry: Entry) -> tuple[Chunk, float | None]:
        entry.only(("doc_id", "start", "end", "score"))
        document = self.document(entry.name("doc_id"), entry.where)
        size = len(document.text)
        start, end = (entry.whole(key) if entry.has(key) else None for key in ("start", "end"))
        if start is None and end is None:
            chunk = Chunk(document, 0, size)
        elif start is None or end is None:
            entry.fault("start, end", "one of them", "both or neither", "without both the hit is the whole document")
        elif not 0 <= start < end <= size:
            entry.fault("start, end", f"[{start}, {end})", f"a part of [0, {size})", "count code points of the text")
        else:
            chunk = Chunk(document, start, end)
        if not entry.has("score"):
            return chunk, None
        if isinstance(entry.value["score"], bool) or not isinstance(entry.value["score"], int | float):
            entry.fault("score", repr(entry.value["score"]), "a number", "write it without quotes")
        return chunk, trec.number(entry.value["score"], entry.where)

    def trec(self, data: bytes) -> tuple[Rankings, dict[str, str]]:
        """As `ablate.score.trec.hits` ranks them: a hit is a whole document."""
        ids = list(self.documents)
        found = trec.hits(self.name, data, {name: place for place, name in enumerate(ids)})
        used = np.unique(found.documents.values).tolist()
        whole = {place: Chunk(self.documents[ids[place]], 0, len(self.documents[ids[place]].text)) for place in used}
        chunks = [whole[place] for place in found.documents.values.tolist()]
        cuts = pairwise(found.documents.bounds.tolist())
        listed = {query: chunks[low:high] for query, (low, high) in zip(found.queries, cuts, strict=True)}
        return listed, {query: f"{self.name}:{line}" for query, line in zip(found.queries, found.where, strict=True)}

    def document(self, name: str, where: str) -> Document:
        if name not in self.documents:
            raise trec.unknown(name, where)
        return self.documents[name]
