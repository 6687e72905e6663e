"""A ranking and the grades of documents go in, trec_eval's classical measures come out under `doc/`."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from ablate.score.retrieval import discounted


def doc(grades: Mapping[str, int], ranking: Sequence[str], cutoffs: Sequence[int]) -> dict[str, float | None]:
    """Values of one ranking of document ids, best first; a document counts where it stands first.

    A document of grade 1 or more is relevant, one without a grade is not. Without any relevant document every value
    is None, not applicable.
    """
    gains = [max(grades.get(document, 0), 0) for document in dict.fromkeys(ranking)]
    ideal = sorted((grade for grade in grades.values() if grade >= 1), reverse=True)
    places = [place for place, gain in enumerate(gains, start=1) if gain]
    values: dict[str, float | None] = {}
    for k in cutoffs:
        found = sum(place <= k for place in places)
        values[f"doc/recall_at_{k}"] = found / len(ideal) if ideal else None
        values[f"doc/precision_at_{k}"] = found / k if ideal else None
        values[f"doc/ndcg_at_{k}"] = discounted(gains[:k]) / discounted(ideal[:k]) if ideal else None
    values["doc/mrr"] = (1 / places[0] if places else 0.0) if ideal else None
    precisions = math.fsum(number / place for number, place in enumerate(places, start=1))
    values["doc/map"] = precisions / len(ideal) if ideal else None
    return values
