"""Formulas of retrieval scores, slow and literal: plain tuples in, exact values out; shares no code with `ablate`.

A chunk is `(document, start, end)`; a unit is `(document, ((start, end), ...))`, without spans the whole document; a
fact is a tuple of units, an alternative a tuple of facts. Every function asks again from the beginning: `k` is walked
up from 1 and every set of letters is built anew, so that no shortcut can be wrong in the same way as the program's.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from fractions import Fraction
from typing import NamedTuple

Chunk = tuple[str, int, int]
Unit = tuple[str, tuple[tuple[int, int], ...]]
Fact = tuple[Unit, ...]
Alternative = tuple[Fact, ...]
Letter = tuple[str, int]
Goals = list[tuple[Fact, int]]
Spans = Callable[[str], Iterable[tuple[int, int]]]


class Case(NamedTuple):
    """One query: the texts, what it needs, what its principals may not read, and the threshold as it was written."""

    texts: Mapping[str, str]
    alternatives: tuple[Alternative, ...] = ()
    judged: tuple[tuple[Unit, int], ...] = ()
    grades: Mapping[str, int] = {}
    denied: frozenset[str] = frozenset()
    threshold: float = 1.0


def letters(case: Case, document: str, start: int, end: int) -> set[Letter]:
    # Letters and digits are the characters that str.isalnum accepts; marks, spaces and punctuation are neither.
    return {(document, i) for i in range(start, end) if case.texts[document][i].isalnum()}


def wanted(case: Case, unit: Unit) -> set[Letter]:
    # A unit asks for the letters of all its spans together; without spans it is the document as a whole.
    document, spans = unit
    spans = spans or ((0, len(case.texts[document])),)
    return set().union(*(letters(case, document, start, end) for start, end in spans))


def given(case: Case, chunks: Iterable[Chunk]) -> set[Letter]:
    # What the chunks bring, taken together; a chunk of an unreadable document brings nothing.
    return set().union(*(letters(case, *chunk) for chunk in chunks if chunk[0] not in case.denied))


def supports(case: Case, chunks: Sequence[Chunk], unit: Unit) -> bool:
    # The share of the unit's letters that the union of the chunks covers reaches the threshold. A whole document
    # needs only one readable chunk of its own. The threshold means the decimal that was written, 0.55 is 11/20.
    document, spans = unit
    if not spans:
        return any(chunk[0] == document and document not in case.denied for chunk in chunks)
    need = wanted(case, unit)
    covered = need & given(case, [chunk for chunk in chunks if chunk[0] == document])
    return Fraction(len(covered), len(need)) >= Fraction(str(case.threshold))


def rank(case: Case, ranking: Sequence[Chunk], unit: Unit) -> float:
    # The smallest number of first chunks that together support the unit; infinite when even all of them do not.
    return next((r for r in range(1, len(ranking) + 1) if supports(case, ranking[:r], unit)), math.inf)


def fact_rank(case: Case, ranking: Sequence[Chunk], fact: Fact) -> float:
    # The units of a fact are interchangeable: the earliest one settles it.
    return min(rank(case, ranking, unit) for unit in fact)


def coverage(case: Case, ranking: Sequence[Chunk], k: int) -> Fraction | None:
    # The best alternative's share of facts that are found within k; alternatives are never mixed.
    return max(
        (
            Fraction(sum(fact_rank(case, ranking, fact) <= k for fact in alternative), len(alternative))
            for alternative in case.alternatives
        ),
        default=None,
    )


def sufficient(case: Case, ranking: Sequence[Chunk], k: int) -> int | None:
    # One when an alternative has every fact within k.
    if not case.alternatives:
        return None
    found = [[fact_rank(case, ranking, fact) <= k for fact in alternative] for alternative in case.alternatives]
    return int(any(all(facts) for facts in found))


def completion_rank(case: Case, ranking: Sequence[Chunk]) -> float | None:
    # The least k at which the ranking is sufficient; infinite is never.
    if not case.alternatives:
        return None
    return next((k for k in range(1, len(ranking) + 1) if sufficient(case, ranking, k)), math.inf)


def completion_rr(case: Case, ranking: Sequence[Chunk]) -> Fraction | None:
    # Its mean is taken of the reciprocal, which is 0 for never.
    k = completion_rank(case, ranking)
    return None if k is None else Fraction(0) if k == math.inf else Fraction(1, int(k))


def reading(passages: Sequence[Chunk], ranking: Sequence[Chunk]) -> list[Chunk]:
    # What is read: the passages that were handed over, as they are, then every chunk of the ranking that does not lie
    # within one of them. A chunk of the ranking that comes again is read once.
    def within(chunk: Chunk, passage: Chunk) -> bool:
        return chunk[0] == passage[0] and set(range(*chunk[1:])) <= set(range(*passage[1:]))

    rest = list(dict.fromkeys(ranking))
    return [*passages, *(chunk for chunk in rest if not any(within(chunk, passage) for passage in passages))]


def first_tokens(case: Case, read: Sequence[Chunk], t: int, spans: Spans) -> list[Chunk]:
    # The text that fits into the first t tokens: whole pieces while they fit, then the next one cut after a token.
    fitting = []
    for document, start, end in read:
        ends = [stop for _, stop in spans(case.texts[document][start:end])]
        if len(ends) > t:
            return [*fitting, (document, start, start + ends[t - 1])] if t > 0 else fitting
        fitting.append((document, start, end))
        t -= len(ends)
    return fitting


def coverage_of_tokens(case: Case, read: Sequence[Chunk], t: int, spans: Spans, before: int = 0) -> Fraction | None:
    # The same as coverage at k, on the text that fits into the first t tokens, of which `before` are no passage's.
    text = first_tokens(case, read, t - before, spans)
    return coverage(case, text, len(text))


def coverage_area(case: Case, read: Sequence[Chunk], t: int, spans: Spans, before: int = 0) -> Fraction | None:
    # The area under coverage over 1, 2, ... t tokens, as a share of the whole: their mean.
    if not case.alternatives:
        return None
    return sum((coverage_of_tokens(case, read, n, spans, before) for n in range(1, t + 1)), Fraction(0)) / t


def goals(case: Case) -> list[Goals]:
    # What unit measures look for: the judged spans of grade 1 and more, where there are any; else the facts of each
    # alternative on their own, all of grade 1.
    judged: Goals = [((unit,), grade) for unit, grade in case.judged if grade >= 1]
    return [judged] if judged else [[(fact, 1) for fact in alternative] for alternative in case.alternatives]


def recall(case: Case, ranking: Sequence[Chunk], k: int) -> Fraction | None:
    # Found by k, divided by all.
    return max((Fraction(len(found(case, ranking, k, goal)), len(goal)) for goal in goals(case)), default=None)


def hit(case: Case, ranking: Sequence[Chunk], k: int) -> int | None:
    # At least one found by k.
    return max((int(bool(found(case, ranking, k, goal))) for goal in goals(case)), default=None)


def found(case: Case, ranking: Sequence[Chunk], k: int, goal: Goals) -> list[Fact]:
    return [fact for fact, _ in goal if fact_rank(case, ranking, fact) <= k]


def mrr(case: Case, ranking: Sequence[Chunk]) -> Fraction | None:
    # One over the rank of what is found first; 0 when nothing is.
    values = []
    for goal in goals(case):
        first = min(fact_rank(case, ranking, fact) for fact, _ in goal)
        values.append(Fraction(0) if first == math.inf else Fraction(1, int(first)))
    return max(values, default=None)


def precision(case: Case, ranking: Sequence[Chunk], k: int) -> Fraction | None:
    # Units of a fact that are completed by the same chunk are equally the first: here the first written one counts.
    return next(iter(precisions(case, ranking, k)), None)


def precisions(case: Case, ranking: Sequence[Chunk], k: int) -> list[Fraction]:
    """Every value of precision at k that the contract allows, which depends on the choice among equally first units."""
    by_goal = []
    for goal in goals(case):
        facts = found(case, ranking, k, goal)
        firsts = [[u for u in fact if rank(case, ranking, u) == fact_rank(case, ranking, fact)] for fact in facts]
        by_goal.append([precision_of(case, ranking, k, units) for units in itertools.product(*firsts)])
    return [max(values) for values in itertools.product(*by_goal) if values]


def precision_of(case: Case, ranking: Sequence[Chunk], k: int, units: Iterable[Unit]) -> Fraction:
    # Of the first k chunks, those that bring a letter of the completed units that no chunk before them brought; over k,
    # however few were returned.
    useful = set().union(*(wanted(case, unit) for unit in units))
    adding = [useful & given(case, [chunk]) - given(case, ranking[:i]) for i, chunk in enumerate(ranking[:k])]
    return Fraction(sum(map(bool, adding)), k)


def ndcg(case: Case, ranking: Sequence[Chunk], k: int) -> float | None:
    # Each chunk writes down what it completes, best grade first, or one empty place; the places are then scored as
    # usual against the best order of all grades (Järvelin and Kekäläinen 2002, gain = grade, discount log2(1 + i)).
    values = []
    for goal in goals(case):
        places: list[int] = []
        for r in range(1, len(ranking) + 1):
            completed = [grade for fact, grade in goal if fact_rank(case, ranking, fact) == r]
            places += sorted(completed, reverse=True) or [0]
        values.append(gain(places, k) / gain(sorted((grade for _, grade in goal), reverse=True), k))
    return max(values, default=None)


def gain(grades: Sequence[int], k: int) -> float:
    return math.fsum(grade / math.log2(1 + i) for i, grade in enumerate(grades[:k], start=1))


def retrieval(case: Case, ranking: Sequence[Chunk], cutoffs: Iterable[int]) -> dict[str, float | None]:
    """Every `retrieval/` value of one query, by the names of the contract; None is not applicable.

    A chunk that comes again has no second rank: repeats are gone before anything is ranked.
    """
    ranking = list(dict.fromkeys(ranking))
    at_k = {
        "coverage": coverage,
        "sufficient": sufficient,
        "recall": recall,
        "hit": hit,
        "precision": precision,
        "ndcg": ndcg,
    }
    values = {f"retrieval/{name}_at_{k}": at(case, ranking, k) for k in cutoffs for name, at in at_k.items()}
    values["retrieval/completion_rank"] = completion_rank(case, ranking)
    values["retrieval/completion_rr"] = completion_rr(case, ranking)
    values["retrieval/mrr"] = mrr(case, ranking)
    return {name: None if value is None else float(value) for name, value in values.items()}


def density(case: Case, passages: Sequence[Chunk]) -> Fraction | None:
    # Evidence letters handed over, each counted once, among all letters handed over, repeats and unreadable ones
    # included; the evidence is every unit of every alternative.
    if not case.alternatives:
        return None
    units = [unit for alternative in case.alternatives for fact in alternative for unit in fact]
    evidence = set().union(*(wanted(case, unit) for unit in units))
    handed_over = sum(len(letters(case, *passage)) for passage in passages)
    return Fraction(len(evidence & given(case, passages)), handed_over or 1)


def best_facts(case: Case, passages: Sequence[Chunk]) -> tuple[int, int] | None:
    # How many facts the best alternative has supported and how many it has: the highest share, then the fewest facts.
    counts = []
    for alternative in case.alternatives:
        ranks = [fact_rank(case, passages, fact) for fact in alternative]
        counts.append((sum(r <= len(passages) for r in ranks), len(ranks)))
    return min(counts, key=lambda count: (-Fraction(*count), count[1]), default=None)


def context(case: Case, passages: Sequence[Chunk], tokens: int) -> dict[str, float | None]:
    """Every `context/` value of one query: the whole context counts, whatever its order."""
    names = ("coverage", "sufficient", "part", "part_one_fact_missing", "nothing", "facts", "density")
    values: dict[str, Fraction | int | None] = dict.fromkeys(names)
    best = best_facts(case, passages)
    if best:
        supported, facts = best
        values["coverage"] = coverage(case, passages, len(passages))
        values["sufficient"] = sufficient(case, passages, len(passages))
        values["nothing"] = supported == 0
        values["part"] = 0 < supported < facts
        values["part_one_fact_missing"] = 0 < supported == facts - 1
        values["facts"] = supported
        values["density"] = density(case, passages)
    values["tokens"] = tokens
    return {f"context/{name}": None if value is None else float(value) for name, value in values.items()}


def doc(case: Case, ranking: Sequence[Chunk], cutoffs: Iterable[int]) -> dict[str, float | None]:
    """The `doc/` values, as trec_eval defines them, on the documents in the order of their first chunks."""
    order = list(dict.fromkeys(document for document, _, _ in ranking))
    relevant = {document for document, grade in case.grades.items() if grade >= 1}
    ideal = sorted((max(0, grade) for grade in case.grades.values()), reverse=True)
    gains = [max(0, case.grades.get(document, 0)) for document in order]
    places = [i for i, document in enumerate(order, start=1) if document in relevant]
    # The n-th relevant document stands at place i: precision there is n / i; missing ones add 0.
    precisions = [Fraction(n, i) for n, i in enumerate(places, start=1)]
    values: dict[str, float | Fraction] = {}
    if relevant:
        values["doc/mrr"] = Fraction(1, places[0]) if places else Fraction(0)
        values["doc/map"] = sum(precisions, Fraction(0)) / len(relevant)
    for k in cutoffs if relevant else ():
        values[f"doc/recall_at_{k}"] = Fraction(len(relevant.intersection(order[:k])), len(relevant))
        values[f"doc/precision_at_{k}"] = Fraction(len(relevant.intersection(order[:k])), k)
        values[f"doc/ndcg_at_{k}"] = gain(gains, k) / gain(ideal, k)
    names = ["doc/mrr", "doc/map", *(f"doc/{name}_at_{k}" for name in ("recall", "precision", "ndcg") for k in cutoffs)]
    return {name: float(values[name]) if name in values else None for name in names}
