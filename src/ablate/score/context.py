"""What the packer handed over and what the query needs go in, the `context/` values come out."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Container, Mapping, Sequence

from ablate.score.evidence import NEVER, best, finder, lay_out, ranks, units
from ablate.score.settings import Scoring
from ablate.types import Chunk, Context, Document, Truth


def context(
    truth: Truth, handed: Context, documents: Mapping[str, Document], denied: Container[str], scoring: Scoring
) -> dict[str, float | None]:
    """Values of one context; None is not applicable, an empty context scores 0.

    `nothing`, `part` and `sufficient` are 0 or 1 and sum to 1, so that their means are the three shares;
    `part_one_fact_missing` is the piece of `part` whose best alternative lacks one fact. `facts` counts the supported
    facts of the best alternative: the highest share, then the fewest facts.
    """
    values: dict[str, float | None] = {"context/tokens": float(handed.tokens)}
    names = ("coverage", "sufficient", "part", "part_one_fact_missing", "nothing", "facts", "density")
    if not truth.alternatives:
        return {**{f"context/{name}": None for name in names}, **values}
    find = finder(handed.passages, documents, denied, scoring.span_threshold)
    facts = best([[rank < NEVER for rank in alternative] for alternative in ranks(truth, find)])
    supported, missing = sum(facts), len(facts) - sum(facts)
    measured = (
        supported / len(facts),
        float(not missing),
        float(bool(supported and missing)),
        float(bool(supported) and missing == 1),
        float(not supported),
        float(supported),
        _density(truth, handed.passages, documents, denied),
    )
    return {**{f"context/{name}": value for name, value in zip(names, measured, strict=True)}, **values}


def _density(
    truth: Truth, passages: Sequence[Chunk], documents: Mapping[str, Document], denied: Container[str]
) -> float:
    """Distinct letters of evidence over all letters handed over: text that is repeated or forbidden only dilutes."""
    evidence: dict[str, int] = defaultdict(int)
    for unit in (unit for unit in units([truth]) if unit.document in documents):
        laid = lay_out(documents[unit.document], unit, 1.0)
        evidence[unit.document] |= laid.letters << laid.start
    handed: dict[str, int] = defaultdict(int)
    for passage in passages:
        if passage.document.id not in denied:
            handed[passage.document.id] |= (1 << passage.end) - (1 << passage.start)
    letters = sum(sum(map(str.isalnum, passage.text)) for passage in passages)
    return sum((handed[name] & bits).bit_count() for name, bits in evidence.items()) / letters if letters else 0.0
