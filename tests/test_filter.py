"""Filters let through exactly the documents that meet them, and refuse what can never be met."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ablate.errors import AblateError
from ablate.filter import Declared, Open
from ablate.moment import moment
from ablate.types import Document, Query


def documents(*values: Any, name: str = "поле") -> list[Document]:
    """One document a value, which stands under `name`; `...` leaves the key out."""
    return [Document(f"d{i}", "текст", "", {} if v is ... else {name: v}) for i, v in enumerate(values)]


def allowed(values: list[Any], wanted: Any) -> list[bool]:
    return Declared().over(documents(*values)).allowed(Query("q1", "?", filter={"поле": wanted})).tolist()


def refusal(values: list[Any], filter: dict[str, Any]) -> str:
    with pytest.raises(AblateError) as error:
        Declared().over(documents(*values)).check([Query("q1", "?", filter=filter)])
    message = str(error.value)
    assert message.startswith(f'query "q1": filter field "{next(iter(filter))}": found ')
    return message


@pytest.mark.parametrize(
    ("values", "wanted", "expected"),
    [
        (["облако", "сервер"], "облако", [True, False]),
        (["Облако"], "облако", [False]),
        (["a", "b", "c"], {"eq": "b"}, [False, True, False]),
        (["a", "b", "c"], {"in": ["c", "a", "z"]}, [True, False, True]),
        ([1, 2, 3], {"lt": 2}, [True, False, False]),
        ([1, 2, 3], {"lte": 2}, [True, True, False]),
        ([1, 2, 3], {"gt": 2}, [False, False, True]),
        ([1, 2, 3], {"gte": 2}, [False, True, True]),
        ([1, 2, 3], {"gt": 1, "lt": 3}, [False, True, False]),
        ([9, 10], {"lt": 10}, [True, False]),
        (["9", "10"], {"lt": "9"}, [False, True]),
        ([1, 1.5, 2.0], {"gte": 1.25}, [False, True, True]),
        ([2, 2.0], 2, [True, True]),
        ([2**53, 2**53 + 1], {"gt": 2**53}, [False, True]),
        ([True, False], True, [True, False]),
        ([["налог", "НДС"], ["отпуск"], []], {"contains": "НДС"}, [True, False, False]),
        ([[1, None], [2]], {"contains": 1}, [True, False]),
        ([["a"], None], {"exists": True}, [True, False]),
    ],
)
def test_each_operator_means_what_it_says(values, wanted, expected):
    assert allowed(values, wanted) == expected


def test_conditions_on_several_fields_must_all_hold():
    corpus = [Document("d", "", "", {"a": 1, "b": 1}), Document("e", "", "", {"a": 1, "b": 2})]
    assert Declared().over(corpus).allowed(Query("q", "?", filter={"a": 1, "b": 2})).tolist() == [False, True]


@pytest.mark.parametrize("missing", [None, ...])
@pytest.mark.parametrize(
    "wanted", [3, {"in": [3]}, {"lt": 9}, {"gte": 0}, {"exists": True}, {"lt": 9, "or_missing": False}]
)
def test_a_missing_value_meets_no_operator(missing, wanted):
    assert allowed([3, missing], wanted) == [True, False]


@pytest.mark.parametrize("missing", [None, ...])
def test_a_missing_value_is_let_through_only_on_request(missing):
    assert allowed([3, 5, missing], {"exists": False}) == [False, False, True]
    assert allowed([3, 5, missing], {"gt": 4, "or_missing": True}) == [False, True, True]
    assert allowed([["a"], ["b"], missing], {"contains": "a", "or_missing": True}) == [True, False, True]


def test_a_field_that_is_null_everywhere_is_known_and_missing():
    assert allowed([None, None], {"gt": 4}) == [False, False]
    assert allowed([None, None], {"gt": 4, "or_missing": True}) == [True, True]


def test_dates_compare_as_moments_whatever_their_form():
    values = [
        "2025-06-01",
        "2025-06-01T00:00:00Z",
        "2025-06-01 03:00+03:00",
        "2025-06-01T00:00:01",
        "2025-05-31T23:59:59",
    ]
    assert allowed(values, "2025-06-01") == [True, True, True, False, False]
    assert allowed(values, {"lte": "2025-06-01"}) == [True, True, True, False, True]
    assert allowed(values, {"gt": "2025-06-01T02:00+02:00"}) == [False, False, False, True, False]


def test_a_field_is_text_as_soon_as_one_value_is_no_date():
    values = ["2025-06-01", "2025-06-01T00:00", "черновик"]
    assert allowed(values, "2025-06-01") == [True, False, False]
    assert "черновик" in refusal(values, {"поле": {"lt": "2026-01-01"}})


@pytest.mark.parametrize(
    ("values", "filter", "words"),
    [
        (["a"], {"пол": "a"}, ["no document that carries it", 'did you mean "поле"?']),
        (["a"], {"поле": {"ge": "a"}}, ['the operator "ge"', 'did you mean "gte"?']),
        (["a"], {"поле": 5}, ["5", "a text"]),
        ([5], {"поле": "5"}, ['"5"', "a number"]),
        ([5], {"поле": True}, ["true", "a number"]),
        ([True], {"поле": 1}, ["1", "a boolean"]),
        ([5], {"поле": {"in": [5, "6"]}}, ['"6"', "a number"]),
        (["2025-06-01"], {"поле": {"lt": "завтра"}}, ['"завтра"', "a date"]),
        (["2025-06-01"], {"поле": {"lt": "2025-02-30"}}, ["2025-02-30", "a date"]),
        ([5, "6"], {"поле": 5}, ['5 in document "d0" and "6" in document "d1"', "one type"]),
        ([5, True], {"поле": 5}, ['true in document "d1"']),
        ([["a"], "a"], {"поле": {"contains": "a"}}, ['"a" in document "d1"', "one type"]),
        ([["a", 1]], {"поле": {"contains": "a"}}, ["one type"]),
        ([["a"]], {"поле": "a"}, ["a field of lists", "contains"]),
        ([["a"]], {"поле": {"lt": "a"}}, ["a field of lists", "contains"]),
        ([["a"]], {"поле": {"contains": 1}}, ["a text"]),
        (["ab"], {"поле": {"contains": "a"}}, ["a field of text", "use eq or in"]),
        (["a"], {"поле": ["a"]}, ["use in for several values"]),
        (["a"], {"поле": None}, ["null", "exists for null"]),
        (["a"], {"поле": {"in": []}}, ["at least one value"]),
        (["a"], {"поле": {"in": "a"}}, ["a list of at least one value"]),
        (["a"], {"поле": {"exists": 1}}, ["true or false"]),
        (["a"], {"поле": {}}, ["at least one operator"]),
        (["a"], {"поле": {"or_missing": True}}, ["at least one operator"]),
        (["a"], {"поле": {"eq": "a", "or_missing": 1}}, ["or_missing"]),
        (["a"], {"поле": {"exists": True, "or_missing": True}}, ["not exists"]),
        ([True], {"поле": {"lt": True}}, ["an order on true and false"]),
        ([{"a": 1}], {"поле": 1}, ["objects"]),
    ],
)
def test_what_can_never_be_met_is_refused(values, filter, words):
    message = refusal(values, filter)
    assert [word for word in words if word not in message] == []


def test_equal_filters_share_one_sealed_mask_and_leave_no_trace_of_another():
    view = Declared().over(documents(1, 2))
    first = view.allowed(Query("a", "?", filter={"поле": 1}))
    assert view.allowed(Query("b", "?", filter={"поле": 1})) is first
    with pytest.raises(ValueError, match="read-only"):
        first[1] = True
    with pytest.raises(AblateError):
        view.allowed(Query("c", "?", filter={"поле": True}))


def test_no_filter_lets_everything_through():
    assert Declared().over(documents(1, ...)).allowed(Query("q", "?")).tolist() == [True, True]


def test_open_ignores_even_a_wrong_filter():
    view = Open().over(documents(1, 2))
    wrong = Query("q", "?", filter={"нет": {"такого": 1}})
    view.check([wrong])
    assert view.allowed(wrong).tolist() == [True, True]


@given(
    st.lists(st.none() | st.integers(-3, 3) | st.floats(-3, 3), min_size=1),
    st.integers(-3, 3) | st.floats(-3, 3),
    st.booleans(),
)
def test_an_order_and_its_complement_share_out_all_present_values(values, bound, or_missing):
    present = np.array([value is not None for value in values])
    masks = [np.array(allowed(values, {name: bound, "or_missing": or_missing})) for name in ("lt", "eq", "gt")]
    assert (np.sum(masks, axis=0) == np.where(present, 1, 3 * or_missing)).all()
    expected = [or_missing if value is None else value <= bound for value in values]
    assert allowed(values, {"lte": bound, "or_missing": or_missing}) == expected


@pytest.mark.parametrize(
    "text", ["", "2025", "20250601", "2025-W01-1", "2025-02-30", "2025-06-01T", "２０２５-06-01", "1.6.2025"]
)
def test_what_is_no_extended_iso_date_is_no_moment(text):
    assert moment(text) is None


def test_moments_stand_in_one_order():
    texts = ["0001-01-01", "2025-05-31T23:59:59.999999", "2025-06-01", "2025-06-01T03:00:01+03:00", "9999-12-31"]
    assert all(moment(a) < moment(b) for a, b in pairwise(texts))
    assert moment("0001-01-01T00:00+03:00") is None
