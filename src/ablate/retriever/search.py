"""What an index answers: a query, the chunks it may see and a depth go in, candidates come out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from ablate.types import Candidates, Query

Mask = npt.NDArray[np.bool_]


class Search(Protocol):
    """An index that answers queries; its answer to one query depends on no other query.

    It may also offer `batch`, the same answers to many queries at once, and `exact`, a search that leaves nothing out:
    one whose own answers are exact has none, or None.
    """

    def __call__(self, query: Query, allowed: Mask, depth: int) -> Candidates:
        """The best `depth` of what the allowed chunks hand out, in the one total order; fewer if there are no more.

        `allowed` is a mask over the indexed chunks, `(chunks,)`.
        """

    @property
    def silent_chunks(self) -> int:
        """The number of chunks that have a text but can never be found, because nothing in them is a term."""

    def silent(self, query: Query) -> bool:
        """True where the query has a text but can find nothing, because nothing in it is a term."""


def together(
    search: Callable[[Query, Mask, int], Candidates], queries: Sequence[Query], allowed: Mask, depth: int
) -> list[Candidates]:
    """The candidates of each query, all of which may see the same chunks: at once, if the search can do that."""
    batch: Any = getattr(search, "batch", None)
    return list(batch(queries, allowed, depth)) if batch else [search(query, allowed, depth) for query in queries]
