"""How old and how authoritative what the reader gets is: unknown is never fresh, and applies by the question alone."""

from __future__ import annotations

import math

import pytest

from ablate.dataset.contract import contract
from ablate.errors import DatasetError
from ablate.score.standards import standards
from ablate.types import Chunk, Context, Dataset, Document, Query, Truth, Unit

OLD = Document(
    "старый", "Срок 14 дней.", metadata={"valid_from": "2020-01-01", "valid_to": "2024-01-01", "kind": "policy"}
)
NEW = Document("новый", "Срок 30 дней.", metadata={"valid_from": "2024-01-01", "kind": "faq"})
BARE = Document("без дат", "Срок какой-то.", metadata={"kind": "слух"})
CONTRACT = {"authority": {"field": "kind", "order": ["policy", "guide", "faq"], "floor": "guide"}}


def standard(*documents, contract=None):
    return standards(Dataset("", "", documents, (), {}, {}, "nobody", contract or {}, {}, {}, ()))


def found(standard, *documents, as_of="2024-06-01", completion=None, k=2, compares=(), evidence=()):
    chunks = [Chunk(document, 0, len(document.text)) for document in documents]
    query = Query("q", "Какой срок?", as_of=as_of, compares=compares)
    truth = Truth("q", (tuple((Unit(document.id),) for document in evidence),) if evidence else ())
    return standard(query, truth, chunks, completion, Context(chunks, 0), k, lambda chunk: len(chunk.text.split()))


def test_shares_of_the_first_chunks_and_of_the_tokens():
    values = found(standard(OLD, NEW, BARE, contract=CONTRACT), OLD, BARE, NEW)
    assert values["freshness/stale_at_2"] == values["freshness/unknown_at_2"] == 1 / 2
    assert (values["freshness/stale_tokens"], values["freshness/unknown_tokens"]) == (3 / 8, 2 / 8)
    assert values["authority/below_at_2"] == 0
    assert values["authority/unknown_at_2"] == 1 / 2
    assert values["authority/below_tokens"] == 3 / 8


@pytest.mark.parametrize(
    ("as_of", "stale"), [("2023-12-31", 0.0), ("2024-01-01", 1.0), ("2019-12-31", 1.0), ("2020-01-01", 0.0)]
)
def test_validity_is_half_open(as_of, stale):
    assert found(standard(OLD), OLD, as_of=as_of)["freshness/stale_at_2"] == stale


def test_a_missing_end_is_open_and_without_dates_nobody_knows():
    assert found(standard(NEW), NEW, as_of="2999-01-01")["freshness/stale_at_2"] == 0
    values = found(standard(NEW, BARE), BARE)
    assert (values["freshness/stale_at_2"], values["freshness/unknown_at_2"]) == (0, 1)


@pytest.mark.parametrize(
    ("completion", "stale", "below"),
    [(1.0, 0.0, 0.0), (2.0, 0.0, 1.0), (3.0, 1.0, 1.0), (math.inf, 1.0, 1.0), (None, None, None)],
)
def test_what_stands_before_the_evidence_counts_and_what_completes_it_does_not(completion, stale, below):
    values = found(standard(OLD, NEW, contract=CONTRACT), NEW, OLD, BARE, completion=completion)
    assert values["freshness/stale_first"] == stale
    assert values["authority/below_first"] == below


def test_the_question_the_corpus_and_the_contract_decide_whether_it_applies():
    assert set(found(standard(OLD), OLD, as_of=None).values()) == {None}
    assert set(found(standard(BARE), BARE).values()) == {None}
    applies = found(standard(OLD, contract=CONTRACT))
    assert applies["freshness/stale_at_2"] == applies["authority/below_tokens"] == 0, "nothing found is nothing stale"


def test_a_ranking_of_nothing_but_evidence_has_nothing_before_it():
    """Two facts, each in a source below the floor: the first does not stand before the evidence, it is some of it."""
    more = Document("ещё", "И ещё.", metadata={"kind": "faq"})
    best = found(standard(contract=CONTRACT), NEW, more, completion=2.0, evidence=(NEW, more))
    assert (best["authority/below_first"], best["authority/below_at_2"]) == (0, 1)
    late = found(standard(contract=CONTRACT), more, NEW, completion=2.0, evidence=(NEW,))
    assert late["authority/below_first"] == 1


def test_a_question_that_compares_asks_for_what_else_falls_short():
    line = standard(OLD, contract=CONTRACT)
    by_date = found(line, OLD, compares=("valid_from",))
    assert {value for name, value in by_date.items() if name.startswith("freshness/")} == {None}
    assert by_date["authority/below_at_2"] == 0
    by_kind = found(line, OLD, compares=("kind",))
    assert {value for name, value in by_kind.items() if name.startswith("authority/")} == {None}
    assert by_kind["freshness/stale_at_2"] == 1


def test_a_missing_kind_is_unknown_whatever_the_order_is_called():
    odd = {"authority": {"field": "kind", "order": ["policy", "None"], "floor": "policy"}}
    assert found(standard(contract=odd), Document("d", "Текст"))["authority/unknown_at_2"] == 1


def test_without_a_floor_nothing_is_below_it_or_above():
    contract = {"authority": {**CONTRACT["authority"]}}
    del contract["authority"]["floor"]
    values = found(standard(NEW, contract=contract), NEW)
    assert {value for name, value in values.items() if name.startswith("authority/")} == {None}


@pytest.mark.parametrize(
    ("said", "found"),
    [
        ("authority: policy", "authority"),
        ("authority: {order: [a, b], flor: a}", "flor"),
        ("authority: {field: kind, order: [a, a]}", "order"),
        ("authority: {field: kind}", "order"),
        ("authority: {field: kind, order: [], floor: a}", "order"),
        ("authority: {field: '', order: [a]}", "field"),
        ("authority: {order: [a]}", "field"),
        ("authority: {field: kind, order: a}", "order"),
        ("authority: {field: kind, order: [a, b], floor: c}", "floor"),
    ],
)
def test_an_order_that_cannot_be_meant_is_refused_with_its_key(said, found):
    with pytest.raises(DatasetError, match=f"contract.yaml.*{found}"):
        contract(said.encode())


def test_an_order_that_can_be_meant_is_read():
    assert contract(b"authority: {field: kind, order: [a, b], floor: a}")["authority"]["floor"] == "a"
