"""What queries share goes in, the cluster of each comes out: queries of one cluster flip together in every test."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping

from ablate.types import Dataset, Query, Truth, Unit

Key = tuple[str, str]
"""The kind of thing that is shared (`document`, `text`, `cluster`), and which one."""


def shared(query: Query, truth: Truth | None) -> frozenset[Key]:
    """What ties a query to others: the documents of its evidence, its text, the cluster it declares.

    Evidence is what its alternatives name; without alternatives, whatever is judged of grade 1 or more. Texts are
    equal whatever their case and spaces.
    """
    documents = {("document", document) for document in (_evidence(truth) if truth else ())}
    text = " ".join(query.text.casefold().split())
    declared = {("cluster", query.cluster)} if query.cluster is not None else set()
    return frozenset(documents | declared | ({("text", text)} if text else set()))


def _evidence(truth: Truth) -> set[str]:
    units: list[Unit] = [unit for alternative in truth.alternatives for fact in alternative for unit in fact]
    if units:
        return {unit.document for unit in units}
    judged = {judgment.unit.document for judgment in truth.judged if judgment.grade >= 1}
    return judged | {document for document, grade in truth.documents.items() if grade >= 1}


def clustered(dataset: Dataset) -> dict[str, str]:
    """Query -> its cluster, of all queries of a dataset."""
    return clusters({query.id: shared(query, dataset.truths.get(query.id)) for query in dataset.queries})


def clusters(keys: Mapping[str, Iterable[Hashable]]) -> dict[str, str]:
    """Query -> its cluster, named by the least id in it; `keys` is what each query shares with others.

    Two queries with a key in common are in one cluster, and so are two that a third ties together, in whatever order
    they are given.
    """
    parent = {query: query for query in keys}
    first: dict[Hashable, str] = {}
    for query, mine in keys.items():
        for key in mine:
            one, other = _root(parent, first.setdefault(key, query)), _root(parent, query)
            parent[max(one, other)] = min(one, other)
    return {query: _root(parent, query) for query in keys}


def _root(parent: dict[str, str], query: str) -> str:
    while parent[query] != query:
        parent[query] = query = parent[parent[query]]
    return query
