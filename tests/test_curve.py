"""Coverage by tokens read: by hand, against the slow reference, and the laws that make it fair between chunk sizes."""

import re
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
import reference
from fakes import reader
from hypothesis import example, given, settings
from hypothesis import strategies as st
from reference import Case
from test_reference import cases_and_rankings, chunks_of, documents_of, scoring_of, span, truth_of

from ablate.score import Reader
from ablate.score.curve import curve
from ablate.score.retrieval import retrieval
from ablate.tokens import Words
from ablate.types import Context


@dataclass(frozen=True)
class Pattern:
    """Tokens by another rule than the study's: every match of an expression, and what lies between is nobody's."""

    expression: str

    def count(self, text):
        return len(self.spans(text))

    def spans(self, text):
        found = [match.span() for match in re.finditer(self.expression, text, re.DOTALL)]
        return np.array(found, dtype=np.int64).reshape(-1, 2)


COUNTERS = st.sampled_from((Words(), Pattern("."), Pattern(r"\w+"), Pattern("..?"), Pattern("[a-zа-я]")))


def curved(case, ranking, budget, tokens=None, passages=(), length=None):
    """The values of a context of these passages, without the group of their names."""
    documents, tokens = documents_of(case), tokens or Words()
    handed = chunks_of(documents, passages)
    length = sum(tokens.count(chunk.text) for chunk in handed) if length is None else length
    values = curve(
        truth_of(case),
        Context(handed, length),
        chunks_of(documents, ranking),
        documents,
        case.denied,
        scoring_of(case),
        reader(budget, tokens),
    )
    return {name.removeprefix("retrieval/coverage_"): value for name, value in values.items()}


def by_token(case, ranking, most, tokens=None, **context):
    """Coverage after 1, 2, ... `most` tokens."""
    return [curved(case, ranking, t, tokens, **context)[f"at_{t}_tokens"] for t in range(1, most + 1)]


LEAVE = {
    "отпуск": "Отпуск длится 28 дней. Его переносят по заявлению.",
    "sick": "Sick leave lasts 14 days.",
}
# Отпуск длится 28 дней . Его переносят по заявлению .      Sick leave lasts 14 days .
# 1      2      3  4    5 6   7         8  9         10     1    2     3     4  5    6
TWO_FACTS = Case(LEAVE, (((span("отпуск", 0, 21),), (span("sick", 0, 24),)),))


def test_a_fact_counts_with_the_token_that_completes_it():
    whole = [("sick", 0, 25), ("отпуск", 0, 50)]
    # 14 days is complete with token 5, 28 дней with token 6 + 4.
    assert by_token(TWO_FACTS, whole, 12) == [0, 0, 0, 0, 0.5, 0.5, 0.5, 0.5, 0.5, 1, 1, 1]


def test_the_area_is_the_mean_over_the_tokens_read():
    # 0 at 1 to 4 tokens, a half at 5 to 9, all at 10 to 12: (5 / 2 + 3) / 12.
    assert curved(TWO_FACTS, [("sick", 0, 25), ("отпуск", 0, 50)], 12)["area_12_tokens"] == pytest.approx(5.5 / 12)
    assert curved(TWO_FACTS, [("sick", 0, 25), ("отпуск", 0, 50)], 4)["area_4_tokens"] == 0


def test_coverage_is_told_at_a_quarter_a_half_all_and_twice_the_budget():
    ranking = [("sick", 0, 25), ("отпуск", 0, 50)]
    found = curved(TWO_FACTS, ranking, 8)
    assert found == {
        "at_2_tokens": 0,
        "at_4_tokens": 0,
        "at_8_tokens": 0.5,
        "at_16_tokens": 1,
        "area_8_tokens": pytest.approx(4 * 0.5 / 8),
    }
    assert curved(TWO_FACTS, ranking, 5)["at_10_tokens"] == 1  # its second chunk begins beyond the budget
    assert list(curved(TWO_FACTS, ranking, 1)) == ["at_1_tokens", "at_2_tokens", "area_1_tokens"]


def test_a_fact_torn_between_two_chunks_counts_with_the_last_letter_it_lacks():
    # The second half comes first: "Его переносят" is tokens 1 and 2, then 28 дней is the fourth of its own chunk.
    case = Case(LEAVE, (((span("отпуск", 14, 36),),),))
    assert by_token(case, [("отпуск", 23, 36), ("sick", 0, 25), ("отпуск", 0, 22)], 13) == [0] * 11 + [1, 1]


def test_a_fact_torn_into_three_counts_with_the_last_of_them():
    case = Case(LEAVE, (((span("отпуск", 0, 21),),),))
    assert by_token(case, [("отпуск", 0, 7), ("отпуск", 14, 22), ("отпуск", 5, 13)], 6) == [0] * 5 + [1]


def test_a_chunk_that_comes_again_is_read_once():
    again = [("sick", 0, 25), ("sick", 0, 25), ("отпуск", 0, 22)]
    assert by_token(TWO_FACTS, again, 11) == by_token(TWO_FACTS, again[1:], 11) == [0] * 4 + [0.5] * 5 + [1] * 2


def test_overlaps_and_forbidden_chunks_are_read_and_bring_nothing_new():
    case = Case(LEAVE, (((span("отпуск", 0, 36),),),), denied=frozenset({"sick"}))
    read = [("sick", 0, 25), ("отпуск", 0, 22), ("отпуск", 7, 36)]  # 6 tokens, 5, and 6 of which 4 repeat
    assert by_token(case, read, 18) == [0] * 16 + [1, 1]


def test_any_token_of_a_whole_document_is_enough():
    case = Case(LEAVE, (((("sick", ()),),),))
    assert by_token(case, [("отпуск", 0, 22), ("sick", 5, 25)], 7) == [0] * 5 + [1, 1]


def test_text_without_a_token_is_read_with_what_stands_before_it():
    case = Case({"§": "§ 1"}, (((("§", ()),),),))
    assert set(curved(case, [("§", 0, 3)], 4, Pattern("[a-z]")).values()) == {1}
    case = Case({"abж": "abж", "ж": "ж"}, (((span("abж", 2, 3),), (span("ж", 0, 1),)),))
    assert by_token(case, [("abж", 0, 3), ("ж", 0, 1)], 3, Pattern("[a-z]")) == [0, 1, 1]
    assert curved(case, [("abж", 0, 3), ("ж", 0, 1)], 1, Pattern("[a-z]"))["at_2_tokens"] == 1


def test_a_share_of_the_letters_is_enough_where_the_threshold_says_so():
    case = Case({"а": "один два"}, (((span("а", 0, 8),),),), threshold=0.5)  # 7 letters, of which 4 are enough
    assert by_token(case, [("а", 0, 8)], 2) == [1, 1]


def test_nothing_read_covers_nothing_and_no_alternative_is_not_applicable():
    assert set(curved(TWO_FACTS, [], 8).values()) == {0}
    assert set(curved(Case(LEAVE), [("sick", 0, 25)], 8).values()) == {None}


# What is read of a context.

PASSAGE, REST = ("отпуск", 0, 22), ("sick", 0, 25)


def test_the_passages_are_read_in_their_order_before_the_rest_of_the_ranking():
    ranking = [REST, PASSAGE]
    assert by_token(TWO_FACTS, ranking, 10, passages=[PASSAGE]) == [0] * 3 + [0.5] * 6 + [1]
    assert by_token(TWO_FACTS, ranking, 10, passages=[PASSAGE, REST]) == by_token(TWO_FACTS, [PASSAGE, REST], 10)


def test_what_a_passage_holds_whole_is_not_read_again_and_what_was_cut_is():
    merged, halves = ("отпуск", 0, 50), [("отпуск", 0, 22), ("отпуск", 23, 50)]
    assert by_token(TWO_FACTS, [*halves, REST], 15, passages=[merged]) == [0] * 3 + [0.5] * 11 + [1]
    cut = ("отпуск", 0, 13)  # two tokens
    assert by_token(TWO_FACTS, [halves[0], REST], 12, passages=[cut]) == [0] * 5 + [0.5] * 6 + [1]


def test_separators_and_headings_cost_a_packer_their_tokens():
    found = by_token(TWO_FACTS, [PASSAGE, REST], 13, passages=[PASSAGE], length=8)  # 3 of them are no passage's
    assert found == [0] * 6 + [0.5] * 6 + [1]


def test_a_context_that_does_not_reach_its_budget_is_followed_by_the_ranking():
    # A packer of one chunk against one that fills the budget: what they are compared on is equally much text.
    one = curved(TWO_FACTS, [PASSAGE, REST], 10, passages=[PASSAGE])
    two = curved(TWO_FACTS, [PASSAGE, REST], 10, passages=[PASSAGE, REST])
    assert one["at_10_tokens"] == two["at_10_tokens"] == 1


# Against the reference, and laws.

searched = settings(max_examples=100, deadline=None)


@st.composite
def read(draw):
    """A case, its ranking, a context of it or of anything else, and how its text is counted."""
    case, ranking = draw(cases_and_rankings())
    own = draw(st.integers(0, len(ranking)))
    passages = draw(st.one_of(st.just(ranking[:own]), cases_and_rankings().map(lambda drawn: drawn[1])))
    passages = [chunk for chunk in passages if chunk[0] in case.texts and chunk[2] <= len(case.texts[chunk[0]])]
    return case, ranking, passages, draw(COUNTERS), draw(st.integers(0, 3))


@searched
@given(read(), st.integers(1, 24))
def test_coverage_and_area_equal_the_reference(drawn, budget):
    case, ranking, passages, tokens, more = drawn
    length = more + sum(tokens.count(case.texts[name][start:end]) for name, start, end in passages)
    values = curved(case, ranking, budget, tokens, passages, length)
    sequence = reference.reading(passages, ranking)
    for stop in {max(budget // 4, 1), max(budget // 2, 1), budget, 2 * budget}:
        right = reference.coverage_of_tokens(case, sequence, stop, tokens.spans, more)
        assert values[f"at_{stop}_tokens"] == (None if right is None else float(right))
    right = reference.coverage_area(case, sequence, budget, tokens.spans, more)
    assert values[f"area_{budget}_tokens"] == (None if right is None else float(right))


@searched
@given(read())
def test_coverage_never_falls_and_the_area_lies_below_it(drawn):
    case, ranking, passages, tokens, _ = drawn
    if not case.alternatives:
        return
    steps = by_token(case, ranking, 30, tokens, passages=passages)
    assert all(before <= after for before, after in pairwise(steps))
    assert steps[0] <= curved(case, ranking, 30, tokens, passages)["area_30_tokens"] <= steps[-1]


@searched
@given(cases_and_rankings(), st.integers(1, 5))
def test_where_the_tokens_end_with_a_chunk_it_is_coverage_at_k(drawn, k):
    case, ranking = drawn
    documents, tokens = documents_of(case), Pattern(".")
    ranking = list(dict.fromkeys(ranking))
    t = sum(end - start for _, start, end in ranking[:k])
    if not t:
        return
    expected = retrieval(truth_of(case), chunks_of(documents, ranking[:k]), documents, case.denied, scoring_of(case))
    assert curved(case, ranking, t, tokens)[f"at_{t}_tokens"] == expected["retrieval/coverage_at_10"]


def test_cutting_a_ranking_finer_changes_nothing():
    # The same text in the same order: the size of chunks moves coverage at k, and not coverage at a number of tokens.
    whole = [("отпуск", 0, 50), ("sick", 0, 25)]
    cut = [("отпуск", 0, 13), ("отпуск", 14, 22), ("отпуск", 23, 50), ("sick", 0, 10), ("sick", 11, 25)]
    assert by_token(TWO_FACTS, whole, 18) == by_token(TWO_FACTS, cut, 18)


@searched
@given(cases_and_rankings(), st.integers(0, 8))
@example((TWO_FACTS, [PASSAGE, REST]), 1)
def test_a_context_of_the_first_k_chunks_is_read_like_the_ranking(drawn, k):
    case, ranking = drawn
    ranking = list(dict.fromkeys(ranking))
    within = [
        chunk
        for n, chunk in enumerate(ranking)
        if any(one[0] == chunk[0] and one[1] <= chunk[1] and chunk[2] <= one[2] for one in ranking[:n])
    ]
    ranking = [chunk for chunk in ranking if chunk not in within]
    assert curved(case, ranking, 9, passages=ranking[:k]) == curved(case, ranking, 9)


def test_a_chunk_is_cut_into_tokens_once_and_only_as_far_as_coverage_is_told():
    cuts = []

    @dataclass(frozen=True)
    class Counted(Words):
        def spans(self, text):
            cuts.append(text)
            return super().spans(text)

    documents, tokens = documents_of(TWO_FACTS), Counted()
    shared = Reader(tokens, 2, lambda chunk: tokens.count(chunk.text))
    ranking = chunks_of(documents, [PASSAGE, REST])
    for _ in range(3):
        curve(truth_of(TWO_FACTS), Context((), 0), ranking, documents, frozenset(), scoring_of(TWO_FACTS), shared)
    assert cuts == [LEAVE["отпуск"][:22]]  # after 4 tokens nothing is told, so that no other fact is looked for
    assert [len(ends) for ends in shared.ends.values()] == [4]


def test_values_are_rounded_once():
    thirds = Case({"а": "раз два три"}, (((span("а", 0, 3),), (span("а", 4, 7),), (span("а", 8, 11),)),))
    # 1/3, 2/3 and 1 over 3 tokens.
    assert curved(thirds, [("а", 0, 11)], 3)["area_3_tokens"] == float(Fraction(2, 3))
