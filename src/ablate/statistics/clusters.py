"""What queries share goes in, the cluster of each comes out: queries of one cluster flip together in every test."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from ablate.types import Dataset, Query, Truth, Unit

Key = tuple[str, str]
"""The kind of thing that is shared (`document`, `text`, `cluster`), and which one."""

DECLARED = "cluster"


def shared(query: Query, truth: Truth | None) -> frozenset[Key]:
    """What ties a query to others: the documents of its evidence, its text, the cluster it declares.

    Evidence is what its alternatives name; without alternatives, whatever is judged of grade 1 or more. Texts are
    equal whatever their case and spaces.
    """
    documents = {("document", document) for document in (_evidence(truth) if truth else ())}
    text = " ".join(query.text.casefold().split())
    declared = {(DECLARED, query.cluster)} if query.cluster is not None else set()
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


def clusters(keys: Mapping[str, Iterable[Key]]) -> dict[str, str]:
    """Query -> its cluster, named by the least id in it; `keys` is what each query shares with others.

    Of all its keys the one that most queries hold decides, and a declared cluster before any: a query with several
    sources stands with those that share its most common one. Were all that share anything tied together, chains would
    run through such queries from source to source until whole collections were one cluster, of which no test can tell
    anything; were none, most tests of nothing could find something (`scripts/check_statistics.py` shows both).
    """
    held = {query: sorted(mine) for query, mine in keys.items()}
    shares = Counter(key for mine in held.values() for key in mine)
    chosen = {query: max(mine, key=lambda key: _weight(key, shares), default=None) for query, mine in held.items()}
    first: dict[Key, str] = {}
    for query in sorted(chosen):
        if (key := chosen[query]) is not None:
            first.setdefault(key, query)
    return {query: query if key is None else first[key] for query, key in chosen.items()}


def _weight(key: Key, shares: Mapping[Key, int]) -> tuple[bool, int, Key]:
    return key[0] == DECLARED, shares[key], key
