"""A query's declared filter in, a mask of the documents that meet it out, to be applied inside the search."""

from __future__ import annotations

import difflib
import json
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt

from ablate.errors import AblateError
from ablate.moment import moment
from ablate.types import Document, Query

Mask = npt.NDArray[np.bool_]
# In this order, because True is an int.
_KINDS: dict[str, Any] = {"boolean": bool, "number": (int, float), "text": str, "list": list}


@dataclass(frozen=True)
class Open:
    """Lets every document through, whatever a query declares."""

    def over(self, documents: Sequence[Document]) -> _Everything:
        return _Everything(_sealed(np.ones(len(documents), bool)))


@dataclass(frozen=True)
class Declared:
    """Lets through the documents whose metadata meet every condition of the query's own filter.

    A filter maps fields to a value, or to operators that must all hold:
    `{"product": "cloud", "year": {"gte": 2020, "lt": 2024}, "tags": {"contains": "tax"}}`. Operators: `eq` (a bare
    value is short for it), `in`, `lt`, `lte`, `gt`, `gte`, `exists`, and for lists `contains`. A missing value (no key,
    or null) meets no operator but `exists: false`; `or_missing: true` beside operators lets it through:
    `{"valid_to": {"gt": "2025-06-01", "or_missing": true}}`.

    Values compare by the type of the field: numbers, ISO dates, text by code points, true and false only by equality.
    A field holds dates if all its values are ISO dates; a date is its first moment, in UTC unless an offset is given.
    """

    def over(self, documents: Sequence[Document]) -> _Declared:
        return _Declared(tuple(documents))


@dataclass(frozen=True, eq=False)
class _Everything:
    mask: Mask

    def check(self, queries: Iterable[Query]) -> None:
        """Nothing can be wrong with filters that are not applied."""

    def allowed(self, query: Query) -> Mask:
        """True for every document, `(documents,)`, read-only."""
        return self.mask


@dataclass(frozen=True, eq=False)
class _Declared:
    documents: tuple[Document, ...]
    columns: dict[str, _Column] = field(default_factory=dict, repr=False)
    masks: dict[str, Mask] = field(default_factory=dict, repr=False)

    def check(self, queries: Iterable[Query]) -> None:
        """Apply every filter once, so that a wrong one is met before any work starts.

        Raises:
            AblateError: as in `allowed`.

        """
        for query in queries:
            self.allowed(query)

    def allowed(self, query: Query) -> Mask:
        """The documents that meet the query's filter, `(documents,)`, read-only; found once a distinct filter.

        Raises:
            AblateError: a field that no document carries, an unknown operator, a value of another type than the
                field's, or a field whose values are of several types. The message names query and field.

        """
        key = json.dumps(query.filter, sort_keys=True)
        if key not in self.masks:
            mask = np.ones(len(self.documents), bool)
            for name, wanted in query.filter.items():
                mask &= _condition(self._column(query, name), wanted, _Place(query.id, name))
            self.masks[key] = _sealed(mask)
        return self.masks[key]

    def _column(self, query: Query, name: str) -> _Column:
        if name not in self.columns:
            self.columns[name] = _column(self.documents, self._known, _Place(query.id, name))
        return self.columns[name]

    @cached_property
    def _known(self) -> frozenset[str]:
        return frozenset(key for document in self.documents for key in document.metadata)


@dataclass(frozen=True)
class _Place:
    """Where a filter went wrong."""

    query: str
    field: str

    def fault(self, found: str, expected: str, advice: str) -> NoReturn:
        raise AblateError(
            f'query "{self.query}": filter field "{self.field}": found {found}, expected {expected}; {advice}'
        )


@dataclass(frozen=True, eq=False)
class _Column:
    """One field of all documents: document `rows[i]` holds `values[codes[i]]`, or has it in its list.

    `values` are distinct and in order, `missing` is a mask `(documents,)`, `odd` the first text that is no date in a
    field of text.
    """

    kind: str
    listed: bool
    values: tuple[Any, ...]
    codes: npt.NDArray[np.intp]
    rows: npt.NDArray[np.intp]
    missing: Mask
    odd: str | None

    def between(self, low: int, high: int) -> Mask:
        """The documents that hold one of `values[low:high]`."""
        mask = np.zeros(len(self.missing), bool)
        mask[self.rows[(self.codes >= low) & (self.codes < high)]] = True
        return mask

    def equal(self, value: Any) -> Mask:
        return self.between(bisect_left(self.values, value), bisect_right(self.values, value))


def _column(documents: Sequence[Document], known: frozenset[str], place: _Place) -> _Column:
    """The field as a column.

    Raises:
        AblateError: no document carries it, or its values are of several types.

    """
    if place.field not in known:
        near = difflib.get_close_matches(place.field, sorted(known), 1)
        advice = f'did you mean "{near[0]}"?' if near else "correct the name, or add the field to the documents"
        place.fault("no document that carries it", f"one of {', '.join(sorted(known)) or 'none'}", advice)
    every = [(row, document.metadata.get(place.field)) for row, document in enumerate(documents)]
    present: list[tuple[int, Any]] = [(row, value) for row, value in every if value is not None]
    missing = np.ones(len(documents), bool)
    missing[[row for row, _ in present]] = False
    listed = _one([(isinstance(value, list), row) for row, value in present], documents, place) is True
    items = [(row, item) for row, value in present for item in (value if listed else [value]) if item is not None]
    kind = _one([(_kind(item), row) for row, item in items], documents, place) or "nothing"
    if kind == "object":
        place.fault("objects", "numbers, dates, text, true and false, or lists of them", "use another field")
    read: dict[Any, Any] = {item: item for _, item in items}
    odd = None
    if kind == "text":
        odd = next((text for text in read if moment(text) is None), None)
        if odd is None:
            kind, read = "date", {text: moment(text) for text in read}
    values = sorted(set(read.values()))
    position = {value: code for code, value in enumerate(values)}
    codes = np.array([position[read[item]] for _, item in items], np.intp)
    return _Column(kind, listed, tuple(values), codes, np.array([row for row, _ in items], np.intp), missing, odd)


def _one(kinds: Sequence[tuple[Any, int]], documents: Sequence[Document], place: _Place) -> Any:
    """The one kind of a field's values, None if it has none."""
    for kind, row in kinds[1:]:
        if kind != kinds[0][0]:
            first, other = documents[kinds[0][1]], documents[row]
            place.fault(
                f'{_shown(first.metadata[place.field])} in document "{first.id}" and '
                f'{_shown(other.metadata[place.field])} in document "{other.id}"',
                "values of one type",
                "correct the metadata",
            )
    return kinds[0][0] if kinds else None


def _condition(column: _Column, wanted: Any, place: _Place) -> Mask:
    """The documents that meet all operators on one field."""
    operators = wanted if isinstance(wanted, dict) else {"eq": wanted}
    or_missing = operators.get("or_missing", False)
    named = [name for name in operators if name != "or_missing"]
    if not isinstance(or_missing, bool) or not named or (or_missing and "exists" in named):
        place.fault(
            _shown(wanted),
            "at least one operator, and or_missing only as true or false beside one that is not exists",
            'as in {"gt": 3, "or_missing": true}',
        )
    mask = np.ones(len(column.missing), bool)
    for name in named:
        if name not in _OPERATORS:
            near = difflib.get_close_matches(name, _OPERATORS, 1)
            advice = f'did you mean "{near[0]}"?' if near else "correct the operator"
            place.fault(f'the operator "{name}"', f"one of {', '.join(_OPERATORS)}, or_missing", advice)
        mask &= _OPERATORS[name](column, operators[name], place)
    return mask | column.missing if or_missing else mask


def _exists(column: _Column, wanted: Any, place: _Place) -> Mask:
    if not isinstance(wanted, bool):
        place.fault(_shown(wanted), "exists: true or false", "correct the value")
    return ~column.missing if wanted else column.missing


def _eq(column: _Column, wanted: Any, place: _Place) -> Mask:
    _scalar(column, place)
    return column.equal(_operand(column, wanted, place))


def _in(column: _Column, wanted: Any, place: _Place) -> Mask:
    _scalar(column, place)
    if not isinstance(wanted, list) or not wanted:
        place.fault(_shown(wanted), "a list of at least one value after in", "write the values in square brackets")
    masks = [column.equal(_operand(column, value, place)) for value in wanted]
    found: Mask = np.logical_or.reduce(masks)
    return found


def _contains(column: _Column, wanted: Any, place: _Place) -> Mask:
    if column.kind != "nothing" and not column.listed:
        place.fault(f"contains on a field of {column.kind}", "a field of lists", "use eq or in")
    return column.equal(_operand(column, wanted, place))


def _ordered(bounds: Callable[[Sequence[Any], Any], tuple[int, int]]) -> Callable[[_Column, Any, _Place], Mask]:
    """An operator that lets through the values in the range of positions that `bounds` finds."""

    def operator(column: _Column, wanted: Any, place: _Place) -> Mask:
        _scalar(column, place)
        value = _operand(column, wanted, place)
        if column.kind == "boolean":
            place.fault("an order on true and false", "eq or in", "correct the operator")
        if column.odd is not None and moment(wanted):
            found = f"the date {_shown(wanted)} on a field that holds {_shown(column.odd)}"
            place.fault(found, "only ISO dates in the field", "correct the metadata")
        return column.between(*bounds(column.values, value))

    return operator


_OPERATORS: Mapping[str, Callable[[_Column, Any, _Place], Mask]] = {
    "eq": _eq,
    "in": _in,
    "lt": _ordered(lambda values, value: (0, bisect_left(values, value))),
    "lte": _ordered(lambda values, value: (0, bisect_right(values, value))),
    "gt": _ordered(lambda values, value: (bisect_right(values, value), len(values))),
    "gte": _ordered(lambda values, value: (bisect_left(values, value), len(values))),
    "exists": _exists,
    "contains": _contains,
}


def _scalar(column: _Column, place: _Place) -> None:
    if column.listed:
        place.fault("a field of lists", "contains", 'as in {"contains": "value"}')


def _operand(column: _Column, wanted: Any, place: _Place) -> Any:
    """The filter's value in the type of the field."""
    kind = _kind(wanted)
    if wanted is None or kind in ("list", "object"):
        place.fault(_shown(wanted), "one value", "use in for several values, contains for lists and exists for null")
    if column.kind == "date" and kind == "text" and (found := moment(wanted)):
        return found
    if column.kind not in (kind, "nothing"):
        place.fault(_shown(wanted), f"a {column.kind} as in the documents", "write the value in the type of the field")
    return wanted


def _kind(value: Any) -> str:
    return next((kind for kind, types in _KINDS.items() if isinstance(value, types)), "object")


def _shown(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, default=str)


def _sealed(mask: Mask) -> Mask:
    mask.setflags(write=False)
    return mask
