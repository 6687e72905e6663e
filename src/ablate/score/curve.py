"""What is read and what the query needs go in, coverage by the number of tokens read comes out."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import pairwise

from ablate.score.evidence import NOWHERE, Evidence, Found, placed_finder, ranks, unique
from ablate.score.settings import Scoring
from ablate.tokens import Tokens
from ablate.types import Chunk, Context, Document, Truth


@dataclass(frozen=True)
class Reader:
    """Who reads what is handed over, token by token of the study, with a budget of them; `length` counts a chunk."""

    tokens: Tokens
    budget: int
    length: Callable[[Chunk], int]
    ends: dict[Chunk, Sequence[int]] = field(default_factory=dict, repr=False)

    @property
    def stops(self) -> list[int]:
        """The numbers of tokens at which coverage is told: a quarter and half of the budget, all of it, and twice."""
        return sorted({max(self.budget // 4, 1), max(self.budget // 2, 1), self.budget, 2 * self.budget})

    def until(self, chunk: Chunk, place: int) -> int:
        """How many first tokens of a chunk must be read for the character at `place` of its document."""
        if chunk not in self.ends:
            self.ends[chunk] = self.tokens.spans(chunk.text)[: 2 * self.budget, 1].tolist()
        return min(bisect_right(self.ends[chunk], place - chunk.start) + 1, self.length(chunk))


def curve(
    truth: Truth,
    handed: Context,
    ranking: Sequence[Chunk],
    documents: Mapping[str, Document],
    denied: Container[str],
    scoring: Scoring,
    reader: Reader,
) -> dict[str, float | None]:
    """Coverage of the text that the first T tokens hold, at every stop, and the area under it up to the budget.

    The last passage is cut after a token. What is read are the passages of the context in their order and then the
    rest of the ranking. None is not applicable: the truth has no alternatives.
    """
    names = [f"retrieval/coverage_at_{stop}_tokens" for stop in reader.stops]
    area = f"retrieval/coverage_area_{reader.budget}_tokens"
    if not truth.alternatives:
        return dict.fromkeys([*names, area])
    placed = _placed(handed, unique(ranking), reader)
    alternatives = ranks(truth, placed_finder(placed, documents, denied, scoring.span_threshold, _Walk(reader)))
    values = [_coverage(alternatives, stop) for stop in reader.stops]
    return {**dict(zip(names, map(float, values), strict=True)), area: _area(alternatives, reader.budget)}


def _placed(handed: Context, ranking: Sequence[Chunk], reader: Reader) -> Iterator[tuple[int, Chunk]]:
    """What is read, each piece with the number of tokens before it, as far as coverage is told.

    Tokens that are no passage's (separators, headings) are read before all passages, so that they flatter no packer.
    """
    before = max(handed.tokens - sum(map(reader.length, handed.passages)), 0)
    for chunk in [*handed.passages, *_rest(handed.passages, ranking)]:
        if before > reader.stops[-1]:
            return
        yield before, chunk
        before += reader.length(chunk)


def _rest(passages: Sequence[Chunk], ranking: Sequence[Chunk]) -> Iterator[Chunk]:
    """The chunks of the ranking that no passage holds whole."""
    read: dict[str, list[Chunk]] = defaultdict(list)
    for passage in passages:
        read[passage.document.id].append(passage)
    for chunk in ranking:
        if not any(held.start <= chunk.start and chunk.end <= held.end for held in read.get(chunk.document.id, ())):
            yield chunk


@dataclass(frozen=True)
class _Walk:
    """Looks for the token with which the letters of a unit are enough: its number stands for the rank."""

    reader: Reader

    def __call__(self, evidence: Evidence, chunks: Sequence[tuple[int, Chunk]]) -> Found:
        covered = 0
        for before, chunk in chunks:
            new, missing = evidence.seen(chunk) & ~covered, evidence.need - covered.bit_count()
            if new.bit_count() >= missing:
                # The first token is enough for a whole document, of which no letter is missing.
                last = evidence.start + _nth(new, missing) if missing else chunk.start
                return Found(before + self.reader.until(chunk, last), ())
            covered |= new
        return NOWHERE


def _nth(bits: int, n: int) -> int:
    """The place of the n-th bit that is set, counted from 1."""
    return bisect_left(range(bits.bit_length()), n, key=lambda place: (bits & (2 << place) - 1).bit_count())


def _coverage(alternatives: Sequence[Sequence[float]], read: float) -> Fraction:
    return max(Fraction(sum(number <= read for number in facts), len(facts)) for facts in alternatives)


def _area(alternatives: Sequence[Sequence[float]], budget: int) -> float:
    """The mean of the coverage after each of the first `budget` tokens: it changes only where a fact is complete."""
    changes = {max(number, 1) for facts in alternatives for number in facts if number <= budget}
    steps = [*sorted(int(change) for change in changes), budget + 1]
    total = sum((after - step) * _coverage(alternatives, step) for step, after in pairwise(steps))
    return float(Fraction(total, budget))
