"""What the reader is handed goes in; how much of it is out of date, or of too little authority, comes out."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ablate.dataset.documents import when
from ablate.score.evidence import units
from ablate.types import Chunk, Context, Dataset, Document, Query, Truth

DATES = ("valid_from", "valid_to")

Values = dict[str, float | None]
Judge = Callable[[Document], bool | None]
"""Whether a document falls short of a standard; None where nothing is known of it."""


@dataclass(frozen=True)
class Standards:
    """What a dataset says of its documents: whether any carries dates, and the order of their authority.

    `ranks` has the place of every kind of source in the contract's order, `floor` the last place that may stand before
    evidence; without a floor nothing is said of authority.
    """

    dated: bool
    field: str
    ranks: Mapping[str, int]
    floor: int | None

    def __call__(
        self,
        query: Query,
        truth: Truth,
        ranking: Sequence[Chunk],
        completion: float | None,
        handed: Context,
        k: int,
        length: Callable[[Chunk], int],
    ) -> Values:
        """The `freshness/` and `authority/` values of one query; None is not applicable.

        Whether they apply is decided by the question (`as_of`, `compares`), the corpus and the contract alone.
        `completion` is the rank that completes the evidence, infinite if none does, None where no evidence is known.
        """
        return {
            **self.of_ranking(query, truth, ranking, completion, [k]),
            **self.of_context(query, handed, length),
        }

    def of_ranking(
        self, query: Query, truth: Truth, ranking: Sequence[Chunk], completion: float | None, cutoffs: Sequence[int]
    ) -> Values:
        """Those that a ranking alone decides: of the first k chunks, and of what stands before the evidence."""
        values: Values = {}
        for group, word, judge in self.judges(query):
            found = None if judge is None else [judge(chunk.document) for chunk in ranking]
            for k in cutoffs:
                values[f"{group}/{word}_at_{k}"] = None if found is None else _share(found[:k], True)
                values[f"{group}/unknown_at_{k}"] = None if found is None else _share(found[:k], None)
            values[f"{group}/{word}_first"] = (
                None if found is None or completion is None else float(_precedes(found, truth, ranking, completion))
            )
        return values

    def of_context(self, query: Query, handed: Context, length: Callable[[Chunk], int]) -> Values:
        """Those of the tokens that were handed over."""
        values: Values = {}
        for group, word, judge in self.judges(query):
            sizes = [length(chunk) for chunk in handed.passages]
            found = None if judge is None else [judge(chunk.document) for chunk in handed.passages]
            values[f"{group}/{word}_tokens"] = None if found is None else _share(found, True, sizes)
            values[f"{group}/unknown_tokens"] = None if found is None else _share(found, None, sizes)
        return values

    def judges(self, query: Query) -> Iterator[tuple[str, str, Judge | None]]:
        """Group, word and judge of each standard; no judge where it does not apply.

        A question that compares by date or by kind of source asks for what else would fall short.
        """
        dated = self.dated and set(query.compares).isdisjoint(("as_of", *DATES))
        yield "freshness", "stale", self.stale(query.as_of) if dated and query.as_of else None
        yield "authority", "below", self.below if self.floor is not None and self.field not in query.compares else None

    def stale(self, as_of: str) -> Judge:
        """Whether a document is not valid on a date: half-open, a missing end is open, without dates nobody knows."""
        asked = when(as_of)

        def judge(document: Document) -> bool | None:
            begin, end = (document.metadata.get(key) for key in DATES)
            if asked is None or (begin is None and end is None):
                return None
            started, ended = (when(str(value)) if value is not None else None for value in (begin, end))
            return bool((started and asked < started) or (ended and asked >= ended))

        return judge

    def below(self, document: Document) -> bool | None:
        """Whether a document stands below the floor; None for a kind of source that the order does not name."""
        kind = document.metadata.get(self.field)
        place = None if kind is None else self.ranks.get(str(kind))
        return None if place is None or self.floor is None else place > self.floor


def standards(dataset: Dataset) -> Standards:
    """What a dataset and its contract say."""
    said: Mapping[str, Any] = dataset.contract.get("authority") or {}
    order = [str(kind) for kind in said.get("order", ())]
    ranks = {kind: place for place, kind in enumerate(order)}
    floor = None if said.get("floor") is None else ranks[str(said["floor"])]
    dated = any(document.metadata.get(key) is not None for document in dataset.documents for key in DATES)
    return Standards(dated, str(said.get("field", "authority")), ranks, floor)


def _share(found: Sequence[bool | None], wanted: bool | None, sizes: Sequence[int] | None = None) -> float:
    """Of what was found the share that is as `wanted`, by number or by size; 0 of nothing."""
    sizes = sizes or [1] * len(found)
    return sum(size for short, size in zip(found, sizes, strict=True) if short is wanted) / (sum(sizes) or 1)


def _precedes(found: Sequence[bool | None], truth: Truth, ranking: Sequence[Chunk], completion: float) -> bool:
    """Whether a chunk that falls short, and is of no document of the evidence, stands before what completes that."""
    end = len(ranking) if completion > len(ranking) else int(completion) - 1
    short = {chunk.document.id for chunk, short in zip(ranking[:end], found, strict=False) if short}
    return not short <= {unit.document for unit in units([truth])}
