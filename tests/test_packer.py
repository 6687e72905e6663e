"""What is handed over: never more than the budget, no text twice, nothing that was not found, as it stands in its
document."""

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import pytest
from fakes import chunks, query
from hypothesis import given, settings
from hypothesis import strategies as st

from ablate.errors import ConfigError
from ablate.packer import Mmr, TokenBudget, TopK
from ablate.packer.mmr import cosines, term_counts
from ablate.tokens import Words, terms
from ablate.types import Chunk, Context, Document, Hit

HITS = [Hit(chunk, -rank) for rank, chunk in enumerate(chunks("да", "28 дней.", "нет", title="Кадры"))]
BLANK = TokenBudget("score", "\n\n", False)


def ranked(pieces):
    return [Hit(chunk, -float(rank)) for rank, chunk in enumerate(pieces)]


def packed(packer, pieces, budget=640, k=5):
    return packer(query(), ranked(pieces), k, budget, Words())


def texts(context):
    return [passage.text for passage in context.passages]


# The first k.


def test_the_first_k_are_handed_over_as_they_are():
    context = TopK()(query(), HITS, 2, 640, Words())
    assert context == Context((HITS[0].chunk, HITS[1].chunk), 4)


def test_fewer_hits_than_k_are_all_handed_over():
    assert len(TopK()(query(), HITS, 9, 640, Words()).passages) == 3


@pytest.mark.parametrize("packer", [TopK(), BLANK, TokenBudget("ends", "***", True), Mmr(0.5, [])])
def test_nothing_in_nothing_out(packer):
    assert packer(query(), [], 5, 640, Words()) == Context((), 0)


# A budget of tokens.

LEAVE = Document("отпуск", "Отпуск длится 28 дней. Его переносят по заявлению.\n\nБольничный оплачивают.")
#                           1      2      3  4   5 6   7         8  9        10     11         12        13
SICK = Document("sick", "Sick leave lasts 14 days.")


def piece(document, text, *headings):
    start = document.text.index(text)
    return Chunk(document, start, start + len(text), headings)


TERM, MOVED, ILL = (
    piece(LEAVE, text) for text in ("Отпуск длится 28 дней.", "Его переносят по заявлению.", "Больничный оплачивают.")
)
DAYS = piece(SICK, SICK.text)


def test_the_budget_is_filled_from_the_top_of_the_ranking_whatever_k_is():
    context = packed(BLANK, [DAYS, TERM, ILL], budget=14, k=1)
    assert (texts(context), context.tokens) == ([DAYS.text, TERM.text, ILL.text], 14)


def test_the_last_passage_is_cut_after_a_token_and_its_span_says_so():
    context = packed(BLANK, [DAYS, TERM, ILL], budget=8)
    assert (texts(context), context.tokens) == ([DAYS.text, "Отпуск длится"], 8)
    assert (context.passages[1].start, context.passages[1].end) == (0, 13)


def test_what_is_cut_ends_the_walk():
    assert texts(packed(BLANK, [DAYS, ILL, TERM], budget=6)) == [DAYS.text]
    assert texts(packed(BLANK, [TERM, DAYS, ILL], budget=3)) == ["Отпуск длится 28"]


def test_text_that_was_handed_over_is_not_handed_over_again():
    window = piece(LEAVE, "28 дней. Его переносят")
    context = packed(BLANK, [TERM, DAYS, window])
    assert (texts(context), context.tokens) == (["Отпуск длится 28 дней. Его переносят", DAYS.text], 13)
    assert packed(BLANK, [TERM, DAYS, piece(LEAVE, "28 дней"), TERM]) == packed(BLANK, [TERM, DAYS])


def test_only_the_new_part_of_an_overlapping_chunk_takes_from_the_budget():
    window = piece(LEAVE, "28 дней. Его переносят по заявлению.")
    context = packed(BLANK, [TERM, window, DAYS], budget=11)  # 5 and 5 new ones
    assert (texts(context), context.tokens) == ([f"{TERM.text} {MOVED.text}", "Sick"], 11)


def test_a_chunk_around_a_passage_gives_both_its_sides():
    around = piece(LEAVE, "длится 28 дней. Его")
    assert texts(packed(BLANK, [piece(LEAVE, "28 дней"), DAYS, around])) == [around.text, DAYS.text]
    assert texts(packed(BLANK, [piece(LEAVE, "28 дней"), around], budget=4)) == ["длится 28 дней."]


def test_a_chunk_around_two_passages_gives_what_is_between_them():
    found = [
        piece(LEAVE, "переносят"),
        piece(LEAVE, "длится"),
        TERM,
        piece(LEAVE, "28 дней. Его переносят по заявлению."),
    ]
    assert texts(packed(BLANK, found)) == [f"{TERM.text} {MOVED.text}"]
    assert texts(packed(BLANK, [*found[:2], piece(LEAVE, LEAVE.text)], budget=7)) == [
        "Отпуск длится 28 дней. Его переносят"
    ]


def test_the_part_before_a_passage_is_cut_from_its_start():
    late, whole = piece(LEAVE, "дней."), TERM
    assert texts(packed(BLANK, [late, whole], budget=4)) == ["дней.", "Отпуск длится"]


def test_neighbours_with_nothing_but_white_space_between_them_are_one_passage():
    assert texts(packed(BLANK, [MOVED, DAYS, ILL])) == [f"{MOVED.text}\n\n{ILL.text}", DAYS.text]
    assert texts(packed(BLANK, [TERM, ILL])) == [TERM.text, ILL.text]  # a sentence between them was not found
    assert texts(packed(BLANK, [TERM, ILL, MOVED])) == [LEAVE.text]


def test_a_mark_between_two_chunks_was_not_found_and_is_not_handed_over():
    assert texts(packed(BLANK, [piece(LEAVE, "28 дней"), MOVED])) == ["28 дней", MOVED.text]


def test_neighbours_are_of_one_document():
    other = Document("копия", LEAVE.text)
    assert texts(packed(BLANK, [TERM, piece(other, MOVED.text)])) == [TERM.text, MOVED.text]


def test_a_blank_chunk_is_not_handed_over():
    assert texts(packed(BLANK, [piece(LEAVE, "\n\n"), DAYS])) == [DAYS.text]


def test_separators_take_from_the_budget():
    ruled = TokenBudget("score", "\n***\n", False)  # three tokens
    assert packed(ruled, [DAYS, TERM]).tokens == 6 + 3 + 5
    assert (texts(packed(ruled, [DAYS, TERM], budget=10)), packed(ruled, [DAYS, TERM], budget=10).tokens) == (
        [DAYS.text, "Отпуск"],
        10,
    )
    assert texts(packed(ruled, [DAYS, TERM], budget=9)) == [DAYS.text]
    assert packed(ruled, [TERM, MOVED]).tokens == 10  # neighbours have none


def test_a_gap_that_is_filled_frees_its_separator():
    found = [piece(LEAVE, "Отпуск длится"), piece(LEAVE, "."), piece(LEAVE, "28 дней"), DAYS]
    context = packed(TokenBudget("score", "***", False), found, budget=6)
    assert (texts(context), context.tokens) == ([TERM.text], 5)


def test_headings_take_from_the_budget_if_they_are_handed_over():
    term, moved = (piece(LEAVE, text, "Кадры", "Отпуск") for text in (TERM.text, MOVED.text))
    headed = TokenBudget("score", "\n\n", True)
    assert packed(headed, [term, DAYS]).tokens == 5 + 6 + 3  # Кадры > Отпуск
    assert packed(headed, [term, moved]).tokens == 10 + 3
    assert texts(packed(headed, [DAYS, term], budget=10)) == [DAYS.text, "Отпуск"]
    assert texts(packed(headed, [DAYS, term], budget=9)) == [DAYS.text]
    assert packed(BLANK, [term, DAYS]).tokens == 5 + 6


def test_a_merged_passage_stands_under_the_headings_of_its_first_chunk():
    one, two = piece(LEAVE, MOVED.text, "Отпуск"), piece(LEAVE, ILL.text, "Отпуск", "Больничный")
    for found in ([one, two], [two, one]):
        assert [passage.headings for passage in packed(BLANK, found).passages] == [("Отпуск",)]


ORDERED = [ILL, DAYS, TERM, piece(Document("z", "Последнее."), "Последнее.")]


@pytest.mark.parametrize(
    ("order", "right"), [("score", [0, 1, 2, 3]), ("document", [2, 0, 1, 3]), ("ends", [0, 2, 3, 1])]
)
def test_passages_are_put_in_the_order_of_reading(order, right):
    context = packed(TokenBudget(order, "\n\n", False), ORDERED)
    assert texts(context) == [ORDERED[number].text for number in right]


def test_a_merged_passage_ranks_where_its_best_chunk_does():
    context = packed(BLANK, [MOVED, DAYS, TERM])
    assert texts(context) == [f"{TERM.text} {MOVED.text}", DAYS.text]


def test_the_order_changes_nothing_but_the_order():
    contexts = [packed(TokenBudget(order, "***", False), ORDERED, 14) for order in ("score", "document", "ends")]
    assert len({(frozenset(texts(context)), context.tokens) for context in contexts}) == 1


def test_an_unknown_order_is_refused():
    with pytest.raises(ConfigError, match=r"order: found 'rank', expected one of score, document, ends; choose"):
        TokenBudget("rank", "", False)


@dataclass(frozen=True)
class Letters:
    """A model's tokenizer, in small: pairs of characters, white space too, so that lengths do not add up."""

    def count(self, text):
        return len(self.spans(text))

    def spans(self, text):
        found = [(start, min(start + 2, len(text))) for start in range(0, len(text), 2)]
        return np.array(found, dtype=np.int64).reshape(-1, 2)


ALPHABET = "аб яz日ー_.\n\u0301\u00ad"
TEXT = st.text(ALPHABET, min_size=1, max_size=30)
HEADINGS = st.lists(st.sampled_from(("Раздел", "a b", "§")), max_size=2).map(tuple)


@st.composite
def found(draw):
    """Chunks of a few documents, in any order, overlapping as they like."""
    documents = [
        Document(f"d{number}", text) for number, text in enumerate(draw(st.lists(TEXT, min_size=1, max_size=3)))
    ]
    result = []
    for document in draw(st.lists(st.sampled_from(documents), max_size=8)):
        start = draw(st.integers(0, len(document.text) - 1))
        result.append(Chunk(document, start, draw(st.integers(start + 1, len(document.text))), draw(HEADINGS)))
    return result


PACKERS = st.builds(
    TokenBudget,
    st.sampled_from(("score", "document", "ends")),
    st.sampled_from(("", "\n\n", "---", "_")),
    st.booleans(),
)
COUNTERS = st.sampled_from((Words(), Letters()))
searched = settings(max_examples=150, deadline=None)


def handed_over(packer, passages):
    """What a reader gets, as one text."""
    lines = [
        " > ".join(passage.headings) + "\n" if packer.headings and passage.headings else "" for passage in passages
    ]
    return packer.separator.join(line + passage.text for line, passage in zip(lines, passages, strict=True))


@searched
@given(PACKERS, found(), st.integers(1, 30))
def test_the_budget_is_never_exceeded_with_separators_and_headings(packer, pieces, budget):
    context = packed(packer, pieces, budget)
    assert Words().count(handed_over(packer, context.passages)) <= context.tokens <= budget


@searched
@given(PACKERS, found(), st.integers(1, 30))
def test_the_budget_is_never_exceeded_where_lengths_do_not_add_up(packer, pieces, budget):
    context = packer(query(), ranked(pieces), 5, budget, Letters())
    assert sum(Letters().count(passage.text) for passage in context.passages) <= context.tokens <= budget


@searched
@given(PACKERS, found(), st.integers(1, 30), COUNTERS)
def test_no_character_is_handed_over_twice_and_none_but_white_space_that_was_not_found(packer, pieces, budget, tokens):
    passages = packer(query(), ranked(pieces), 5, budget, tokens).passages
    handed = [(passage.document.id, place) for passage in passages for place in range(passage.start, passage.end)]
    assert len(set(handed)) == len(handed)
    given_out = {(chunk.document.id, place) for chunk in pieces for place in range(chunk.start, chunk.end)}
    written = {chunk.document.id: chunk.document.text for chunk in pieces}
    assert all(written[name][place].isspace() for name, place in set(handed) - given_out)
    assert all(passage.text == written[passage.document.id][passage.start : passage.end] for passage in passages)


@searched
@given(PACKERS, found(), st.integers(1, 30), COUNTERS)
def test_no_two_passages_touch(packer, pieces, budget, tokens):
    passages = packer(query(), ranked(pieces), 5, budget, tokens).passages
    by_text = sorted(passages, key=lambda passage: (passage.document.id, passage.start))
    for before, after in pairwise(by_text):
        if before.document is after.document:
            assert before.document.text[before.end : after.start].strip()


@searched
@given(PACKERS, found())
def test_with_room_for_everything_everything_is_handed_over(packer, pieces):
    passages = packed(packer, pieces, 10_000).passages
    handed = {(passage.document.id, place) for passage in passages for place in range(passage.start, passage.end)}
    for chunk in pieces:
        if chunk.text.strip():
            lettered = {place for place in range(chunk.start, chunk.end) if not chunk.document.text[place].isspace()}
            assert {(chunk.document.id, place) for place in lettered} <= handed


@searched
@given(found(), st.integers(1, 30))
def test_a_budget_is_used_up_unless_everything_fits(pieces, budget):
    everything, context = packed(BLANK, pieces, 10_000), packed(BLANK, pieces, budget)
    assert context.tokens == budget or context == everything or "\u00ad" in "".join(chunk.text for chunk in pieces)


# Maximal marginal relevance.

TWICE = ["отпуск длится 28 дней", "отпуск длится 28 дней.", "дней отпуска 14", "больничный лист"]


def test_with_a_balance_of_one_the_first_k_are_picked():
    pieces = chunks(*TWICE)
    for k in (0, 1, 3, 9):
        assert packed(Mmr(1.0, []), pieces, k=k) == packed(TopK(), pieces, k=k)


@searched
@given(st.lists(TEXT, max_size=8), st.integers(1, 9))
def test_with_a_balance_of_one_it_is_the_ranking_whatever_the_texts_are(written, k):
    pieces = chunks(*written)
    assert packed(Mmr(1.0, []), pieces, k=k) == packed(TopK(), pieces, k=k)


def test_a_repetition_gives_way_to_what_says_something_else():
    # Relevance 1, 61/62, 61/63, 61/64. The second repeats the first, similarity 1: .5 * .984 - .5 = -.008; the third
    # shares 1 of its 3 terms with the 4 of the first: .5 * .968 - .5 / sqrt(12) = .340; the fourth none: .477.
    assert Mmr(0.5, []).picked(TWICE, 4) == [0, 3, 2, 1]
    # .984 * .9 - .1 = .786; .968 * .9 - .0289 = .843; .953 * .9 = .858. Then the third, .842, before the second.
    assert Mmr(0.9, []).picked(TWICE, 3) == [0, 3, 2]
    assert Mmr(0.99, []).picked(TWICE, 4) == [0, 1, 2, 3]


def test_the_most_similar_of_those_picked_counts_and_not_their_mean():
    written = ["альфа", "бета", "гамма", "альфа альфа", "бета гамма"]
    # The fourth is the first again: similarity 1, though the mean over three is a third. The fifth is .707 of two.
    assert Mmr(0.1, []).picked(written, 5) == [0, 1, 2, 4, 3]


def test_relevance_falls_with_the_rank_as_in_fusion_by_reciprocal_ranks():
    # From the second rank to the third it falls by 61/62 - 61/63 = .01562. A similarity of 1 / sqrt(63 * 64) = .01575
    # weighs more, one of 1 / sqrt(64 * 65) = .01550 less.
    def of(length, name):
        return " ".join(["отпуск", *(f"{name}{number}" for number in range(length - 1))])

    assert Mmr(0.5, []).picked([of(63, "а"), of(64, "б"), "в"], 2) == [0, 2]
    assert Mmr(0.5, []).picked([of(64, "а"), of(65, "б"), "в"], 2) == [0, 1]


def test_equals_go_by_rank():
    assert Mmr(0.0, []).picked(["а", "б", "в", "г"], 4) == [0, 1, 2, 3]
    assert Mmr(0.0, []).picked(["а", "а", "б", "б"], 4) == [0, 2, 1, 3]


def test_words_are_compared_by_their_stems_where_a_language_says_so():
    written = ["отпуск заявление", "отпуска заявления", "отпуску нет"]
    assert Mmr(0.5, []).picked(written, 2) == [0, 1]
    assert Mmr(0.5, ["russian"]).picked(written, 2) == [0, 2]


def test_texts_without_terms_resemble_nothing():
    assert Mmr(0.5, []).picked(["…", "!", "слово"], 3) == [0, 1, 2]


def test_scores_of_several_scales_do_not_matter():
    pieces = chunks(*TWICE)
    scales = [[9.5, -3.2, 0.7, 0.1], [1, 1, 1, 1], [-1e9, -2e9, 3.0, 0.0]]
    picks = {tuple(texts(Mmr(0.5, [])(query(), list(map(Hit, pieces, scores)), 3, 640, Words()))) for scores in scales}
    assert picks == {(TWICE[0], TWICE[3], TWICE[2])}


def literally(written, k, balance):
    """The definition, read aloud."""

    def similarity(one, other):
        a, b = terms(one), terms(other)
        dot = sum(a.count(term) * b.count(term) for term in set(a))
        norms = sum(a.count(term) ** 2 for term in set(a)) * sum(b.count(term) ** 2 for term in set(b))
        return dot / norms**0.5 if norms else 0.0

    picked = []
    while len(picked) < min(k, len(written)):
        worth = {
            number: balance * 61 / (61 + number)
            - (1 - balance) * max((similarity(text, written[other]) for other in picked), default=0.0)
            for number, text in enumerate(written)
            if number not in picked
        }
        picked.append(max(worth, key=lambda number: (round(worth[number], 12), -number)))
    return picked


SENTENCES = st.lists(st.sampled_from(("отпуск", "дней", "28", "sick", "CX-429", "—")), min_size=1, max_size=5).map(
    " ".join
)


@searched
@given(st.lists(SENTENCES, max_size=7), st.integers(1, 8), st.sampled_from((0.0, 0.3, 0.5, 0.7, 1.0)))
def test_it_picks_what_the_definition_says(written, k, balance):
    assert Mmr(balance, []).picked(written, k) == literally(written, k, balance)


@searched
@given(st.lists(SENTENCES, min_size=1, max_size=7))
def test_cosines_are_exact_for_equal_texts_and_between_zero_and_one(written):
    counts = term_counts(written, [])
    found = cosines(counts, np.square(counts).sum(axis=1), 0)
    assert ((found >= 0) & (found <= 1)).all()
    assert all(found[number] == 1.0 for number, text in enumerate(written) if text == written[0] and terms(text))


@pytest.mark.parametrize("balance", [-0.1, 1.1, float("nan")])
def test_a_balance_outside_its_range_is_refused(balance):
    with pytest.raises(ConfigError, match=r"balance: found .*, expected a number from 0 to 1"):
        Mmr(balance, [])


def test_unknown_languages_are_refused():
    with pytest.raises(ConfigError, match="languages: found 'russisch'"):
        Mmr(0.5, ["russisch"])
