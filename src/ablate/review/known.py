"""A line of ground_truth.jsonl in, its alternatives and facts as a person sees and names them out."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any

from ablate.dataset.lines import Entry
from ablate.dataset.truth import located, united
from ablate.types import Document, Unit

_LONG = 240


@dataclass(frozen=True)
class Known:
    """The alternatives of one query, numbered from 1: of each the facts by the name that a sheet gives them.

    A fact is the positions of its units. One without a name of its own is called by its number, `#2`, or, where another
    fact has that for a name, by the next.
    """

    alternatives: Sequence[Mapping[str, Sequence[int]]]

    def fact(self, alternative: int, name: str) -> Sequence[int] | None:
        """The units of a fact of an alternative; the only fact there is needs no name."""
        facts = self.alternatives[alternative - 1]
        if not name and len(facts) == 1:
            return next(iter(facts.values()))
        return facts.get(name)


def known(row: Mapping[str, Any]) -> Known:
    """What a line holds."""
    alternatives = []
    for units in row.get("alternatives") or ():
        facts: dict[str, list[int]] = {}
        named = {value.get("fact") for value in units}
        for position, value in enumerate(units):
            unused = (name for n in count(len(facts) + 1) if (name := f"#{n}") not in named | facts.keys())
            facts.setdefault(value.get("fact") or next(unused), []).append(position)
        alternatives.append(facts)
    return Known(alternatives)


def told(row: Mapping[str, Any], documents: Mapping[str, Document], readable: Callable[[str], bool]) -> str:
    """The alternatives in words, for a cell; of documents that may not be read only that there is one."""
    lines = []
    for number, facts in enumerate(known(row).alternatives, 1):
        lines.append(f"alternative {number}")
        for name, positions in facts.items():
            units = [row["alternatives"][number - 1][position] for position in positions]
            lines.append(f"  {name}: " + " | ".join(source(value, documents, readable) for value in units))
    return "\n".join(lines)


def source(value: Mapping[str, Any], documents: Mapping[str, Document], readable: Callable[[str], bool]) -> str:
    """One unit in words: what it quotes, and from where."""
    document = documents[value["doc_id"]]
    if not readable(document.id):
        return "(a document that the reviewer may not read)"
    text = " … ".join(document.text[start:end] for start, end in unit(value, documents).spans)
    text = text if len(text) <= _LONG else f"{text[:_LONG]}…"
    return f'"{text}" ({document.title or document.id})' if text else f"the whole of {document.title or document.id}"


def unit(value: Mapping[str, Any], documents: Mapping[str, Document]) -> Unit:
    """A unit as it is scored, of one as it is written."""
    return Unit(value["doc_id"], united(located(Entry("ground_truth.jsonl", value), documents[value["doc_id"]].text)))


def units(values: Iterable[Mapping[str, Any]], documents: Mapping[str, Document]) -> list[Unit]:
    return [unit(value, documents) for value in values]
