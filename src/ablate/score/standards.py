"""What the reader is handed goes in; how much of it is out of date, or of too little authority, comes out."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ablate.moment import moment
from ablate.types import Chunk, Context, Dataset, Document, Query

DATES = ("valid_from", "valid_to")

Judge = Callable[[Document], bool | None]
"""Whether a document falls short of a standard; None where nothing is known of it."""


@dataclass(frozen=True)
class Standards:
    """What a dataset says of its documents: whether any carries dates, and the order of their authority.

    `ranks` has the place of every kind of source in the contract's order, `floor` the last place that may stand before
    evidence; without an order nothing is said of authority.
    """

    dated: bool
    field: str
    ranks: Mapping[str, int]
    floor: int

    def __call__(
        self,
        query: Query,
        ranking: Sequence[Chunk],
        handed: Context,
        completion: float | None,
        k: int,
        length: Callable[[Chunk], int],
    ) -> dict[str, float | None]:
        """The `freshness/` and `authority/` values of one query; None is not applicable.

        Whether they apply is decided by the question (`as_of`), the corpus and the contract alone. `completion` is the
        rank that completes the evidence, infinite if none does, None where no evidence is known.
        """
        stale = self.stale(query.as_of) if self.dated and query.as_of else None
        below = self.below if self.ranks else None
        return {
            **_shares("freshness", "stale", stale, ranking, handed, completion, k, length),
            **_shares("authority", "below", below, ranking, handed, completion, k, length),
        }

    def stale(self, as_of: str) -> Judge:
        """Whether a document is not valid on a date: half-open, a missing end is open, without dates nobody knows."""
        asked = moment(as_of)

        def judge(document: Document) -> bool | None:
            begin, end = (document.metadata.get(key) for key in DATES)
            if asked is None or (begin is None and end is None):
                return None
            started, ended = (moment(str(value)) if value is not None else None for value in (begin, end))
            return bool((started and asked < started) or (ended and asked >= ended))

        return judge

    def below(self, document: Document) -> bool | None:
        """Whether a document stands below the floor; None for a kind of source that the order does not name."""
        place = self.ranks.get(str(document.metadata.get(self.field)))
        return None if place is None else place > self.floor


def standards(dataset: Dataset) -> Standards:
    """What a dataset and its contract say."""
    said: Mapping[str, Any] = dataset.contract.get("authority") or {}
    order = [str(kind) for kind in said.get("order", ())]
    ranks = {kind: place for place, kind in enumerate(order)}
    floor = ranks.get(str(said.get("floor")), len(order) - 1)
    dated = any(document.metadata.get(key) is not None for document in dataset.documents for key in DATES)
    return Standards(dated, str(said.get("field", "authority")), ranks, floor)


def _shares(
    group: str,
    word: str,
    judge: Judge | None,
    ranking: Sequence[Chunk],
    handed: Context,
    completion: float | None,
    k: int,
    length: Callable[[Chunk], int],
) -> dict[str, float | None]:
    """Of the first k chunks and of the tokens handed over the shares that fall short, and that are unknown."""
    names = [f"{group}/{word}_at_{k}", f"{group}/unknown_at_{k}", f"{group}/{word}_tokens", f"{group}/unknown_tokens"]
    first = f"{group}/{word}_first"
    if judge is None:
        return dict.fromkeys([*names, first])
    head = [judge(chunk.document) for chunk in ranking[:k]]
    sizes = [(judge(chunk.document), length(chunk)) for chunk in handed.passages]
    whole = sum(size for _, size in sizes) or 1
    shares = (
        head.count(True) / max(len(head), 1),
        head.count(None) / max(len(head), 1),
        sum(size for short, size in sizes if short) / whole,
        sum(size for short, size in sizes if short is None) / whole,
    )
    before = None if completion is None else float(_precedes(judge, ranking, completion))
    return {**dict(zip(names, shares, strict=True)), first: before}


def _precedes(judge: Judge, ranking: Sequence[Chunk], completion: float) -> bool:
    """Whether what falls short stands before the chunk that completes the evidence."""
    end = len(ranking) if completion > len(ranking) else int(completion) - 1
    return any(judge(chunk.document) for chunk in ranking[:end])
