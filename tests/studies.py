"""Studies by lot: what is true of them is known, so that it can be counted how often their words are not."""

import math
import random
from collections import Counter
from dataclasses import dataclass
from fractions import Fraction

from ablate.statistics import Differences, Word, interval, needed, not_worse, sign_flip, spread, verdict, verdicts

ALPHA = 0.05
MARGIN = 0.05
THIRDS = (Fraction(0), Fraction(1, 3), Fraction(2, 3), Fraction(1))
FALSE = (Word.BETTER, Word.WORSE, Word.MIXED)


def error(share, of):
    """The standard error of a share of so many studies."""
    return math.sqrt(share * (1 - share) / of)


@dataclass(frozen=True)
class Null:
    """Variants that do nothing: each query's value is a draw of its own for `redrawn` of them, for all sides alike.

    `size` queries are one cluster; of these the share `together` goes with the cluster.
    """

    n: int
    values: tuple = (Fraction(0), Fraction(1))
    redrawn: float = 0.3
    size: int = 1
    together: float = 1.0
    variants: int = 10

    def family(self, chosen):
        sides = self.side(chosen, latent := self.latent(chosen)), *(self.side(chosen, latent) for _ in self.names)
        return {name: self.pair(sides[0], side) for name, side in zip(self.names, sides[1:], strict=True)}

    @property
    def names(self):
        return [f"вариант-{number}" for number in range(self.variants)]

    def latent(self, chosen):
        return [chosen.choice(self.values) for _ in range(self.n)]

    def side(self, chosen, latent):
        drawn = []
        for start in range(0, self.n, self.size):
            moved, value = chosen.random() < self.redrawn, chosen.choice(self.values)
            for place in range(start, min(start + self.size, self.n)):
                if chosen.random() >= self.together:
                    drawn.append(chosen.choice(self.values) if chosen.random() < self.redrawn else latent[place])
                else:
                    drawn.append(value if moved else latent[place])
        return drawn

    def pair(self, before, after):
        each = tuple(new - old for old, new in zip(before, after, strict=True))
        return Differences(each, tuple(place // self.size for place in range(self.n)), 1, set(self.values) <= {0, 1})

    def false_families(self, studies, seed=1):
        """In how many studies any variant has a word that claims a difference."""
        chosen = random.Random(seed)
        found = (verdicts(family := self.family(chosen), MARGIN, family) for _ in range(studies))
        return sum(any(seen.word in FALSE for seen in words.values()) for words in found)


NULLS = {
    "binary, 258 queries": Null(258),
    "binary, few move": Null(120, redrawn=0.05),
    "thirds, 258 queries": Null(258, THIRDS),
    "binary, clusters of 3": Null(240, size=3),
    "thirds, clusters of 4, partly": Null(240, THIRDS, size=4, together=0.7),
}


@dataclass(frozen=True)
class Change:
    """A variant that moves a query by each of `moves` with its chance; the queries of a cluster move as one."""

    n: int
    moves: tuple
    size: int = 1

    @property
    def mean(self):
        return sum(Fraction(move) * Fraction(chance).limit_denominator(10**6) for move, chance in self.moves)

    def draw(self, chosen):
        moves = [*(Fraction(move) for move, _ in self.moves), Fraction(0)]
        chances = [chance for _, chance in self.moves]
        drawn = chosen.choices(moves, [*chances, 1 - sum(chances)], k=self.n // self.size)
        each = tuple(move for move in drawn for _ in range(self.size))
        labels = tuple(place // self.size for place in range(len(each)))
        return Differences(each, labels, 1, {abs(move) for move in moves} <= {0, 1})

    def drawn(self, studies, seed=2):
        chosen = random.Random(seed)
        return (self.draw(chosen) for _ in range(studies))

    def words(self, studies, seed=2):
        """How often each word falls, that of the gate too."""
        return Counter(
            word
            for pair in self.drawn(studies, seed)
            for word in (verdict(pair, MARGIN).word, not_worse(pair, MARGIN).word)
        )

    def held(self, studies, seed=4):
        """In how many studies the true mean lies in the interval that is shown, and in that of the inverted test."""
        shown = inverted = 0
        for pair in self.drawn(studies, seed):
            test = sign_flip(pair)
            shown += within(self.mean, interval(pair, test, ALPHA))
            inverted += within(self.mean, test.interval(ALPHA))
        return shown, inverted


def within(mean, ends):
    low, high = ends
    return (low is None or low <= float(mean) + 1e-9) and (high is None or high >= float(mean) - 1e-9)


third, half = Fraction(1, 3), Fraction(1, 2)

INTERVALS = {
    "60 queries, 1 in 20 lost": Change(60, ((-1, 0.05),)),
    "60 queries, 1 in 10 lost": Change(60, ((-1, 0.1),)),
    "258 queries, 1 in 50 lost": Change(258, ((-1, 0.02),)),
    "258 queries, usual": Change(258, ((1, 0.13), (-1, 0.07))),
    "60 queries, half of 1 in 20 lost": Change(60, ((-half, 0.05),)),
    "60 queries, thirds, rare": Change(60, ((-third, 0.04), (-2 * third, 0.02), (-1, 0.01))),
    "258 queries, thirds": Change(258, ((third, 0.08), (-third, 0.04), (2 * third, 0.05), (-1, 0.02))),
    "180 queries, clusters of 3, 1 in 20 lost": Change(180, ((-1, 0.05),), 3),
    "240 queries, clusters of 3": Change(240, ((1, 0.15), (-1, 0.05)), 3),
    "60 queries, nothing on balance": Change(60, ((1, 0.1), (-1, 0.1))),
}

SAME = {
    "60 queries, rare losses": Change(60, ((-1, 0.05),)),
    "300 queries, both ways": Change(300, ((1, 0.05), (-1, 0.1))),
    "500 queries, gains": Change(500, ((1, 0.08), (-1, 0.03))),
    "240 queries, halves": Change(240, ((-half, 0.1),)),
    "300 queries, thirds": Change(300, ((third, 0.06), (-third, 0.09), (-1, 0.04))),
    "300 queries, clusters of 3": Change(300, ((1, 0.02), (-1, 0.07)), 3),
    "60 queries, small gains hide large losses": Change(60, ((third, 0.06), (-1, 0.07))),
}
"""Variants that gain or lose just the margin on average: neither `equivalent` nor, where they lose, `not worse`."""

EFFECTS = {
    "binary": (((1, 0.2), (-1, 0.1)), 1),
    "thirds": (((third, 0.15), (-third, 0.05), (2 * third, 0.1), (-1, 0.04)), 1),
    "clusters of 3": (((1, 0.2), (-1, 0.1)), 3),
}
"""What moves, and how many queries move as one."""


def enough(moves, size, alpha=ALPHA):
    """A study of as many queries as are promised to find the mean of `moves` in 80 of 100."""
    large = Change(30_000, moves, size)
    seen = spread(next(large.drawn(1)))
    count = needed(seen, float(large.mean), alpha)
    return Change(count + -count % size, moves, size)


def found(change, studies, variants=1, seed=3):
    """In how many studies the change is called better, beside variants that do nothing."""
    chosen, better = random.Random(seed), 0
    for _ in range(studies):
        idle = Null(change.n, redrawn=0.1, size=change.size, variants=variants - 1).family(chosen)
        better += verdicts({"true": change.draw(chosen), **idle}, MARGIN)["true"].word == Word.BETTER
    return better
