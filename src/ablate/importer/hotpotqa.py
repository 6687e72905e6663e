"""HotpotQA, official or from Hugging Face: questions with evidence in several paragraphs

SOURCE is a JSON file (a list) or JSON Lines, plain or gzip, of
  {"_id", "question", "answer", "supporting_facts": [[title, sentence], ...], "context": [[title, [sentences]], ...]}
or, as it is on Hugging Face,
  {"id", "question", "answer", "supporting_facts": {"title", "sent_id"}, "context": {"title", "sentences"}}

Every paragraph is a document: its id is its title, with a number where one title has several texts. A question has
one alternative: its supporting sentences, each a fact of its own. A sentence number that the paragraph does not have is
left out, and so is a question of which no supporting sentence is left or a supporting paragraph is not there. "type"
and "level" become cohorts.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

from ablate.dataset.lines import Entry, described
from ablate.importer import Imported, Report, Row
from ablate.importer.sentences import Sentences, joined
from ablate.importer.source import chosen, identity, records, short, words

_WHOLE = "a whole number of 0 or more"


def read(source: Path, _: argparse.Namespace) -> Imported:
    """Paragraphs, questions and their supporting sentences.

    Raises:
        DatasetError: the file cannot be read, or a record lacks a key or has a wrong type.

    """
    paragraphs, report = Paragraphs(), Report()
    asked, truths = [], []
    for entry in records(source):
        key = identity(entry, chosen(entry, ("_id", "id"), "an id"))
        known = [(title, paragraphs.add(entry.where, title, text)) for title, text in context(entry)]
        evidence = units(entry, key, known, paragraphs, report)
        if evidence is None:
            continue
        row = {"_id": key, "text": entry.string("question")}
        cohorts = short(entry.value, "type", "level")
        asked.append(Row(entry.where, row | ({"cohorts": cohorts} if cohorts else {})))
        answer = {"answer": {"text": entry.string("answer")}} if entry.has("answer") else {}
        truths.append(Row(entry.where, {"query_id": key, "alternatives": [evidence]} | answer))
    return Imported(corpus=paragraphs.rows, queries=asked, ground_truth=truths, report=report)


@dataclass
class Paragraphs:
    """Documents by title: equal texts are one document, other texts of the title get a number."""

    rows: list[Row] = field(default_factory=list)
    texts: dict[str, Sentences] = field(default_factory=dict)
    ids: dict[tuple[str, str], str] = field(default_factory=dict)

    def add(self, where: str, title: str, text: Sentences) -> str:
        """The id of the paragraph, which becomes a document unless it is one already."""
        known = self.ids.get((title, text.text))
        if known is not None:
            return known
        key, number = title, 1
        while key in self.texts:
            number += 1
            key = f"{title} ({number})"
        self.ids[title, text.text], self.texts[key] = key, text
        self.rows.append(Row(where, {"_id": key, "title": title, "text": text.text}))
        return key


def context(entry: Entry) -> Iterator[tuple[str, Sentences]]:
    """Title and sentences of every paragraph, in either form."""
    for number, (title, sentences) in enumerate(pairs(entry, "context", "title", "sentences")):
        key = f"context[{number}]"
        if not isinstance(title, str) or not title:
            entry.fault(key, described(title), "a title", "give every paragraph one")
        if not isinstance(sentences, list) or not all(isinstance(sentence, str) for sentence in sentences):
            entry.fault(key, described(sentences), "a list of sentences", "write each sentence as a string")
        yield title, joined(sentences, separator(sentences))


def separator(sentences: list[str]) -> str:
    """Nothing where the sentences carry the white space between them, as the official ones do; else a blank."""
    spaced = any(left[-1:].isspace() or right[:1].isspace() for left, right in pairwise(sentences))
    return "" if spaced else " "


def pairs(entry: Entry, key: str, left: str, right: str) -> list[tuple[Any, Any]]:
    """A list of pairs, or two lists of one length under `left` and `right`.

    Raises:
        DatasetError: the key is missing, or holds neither.

    """
    found = entry.value.get(key)
    if isinstance(found, dict):
        inner = entry.inner(key, found)
        sides = [inner.items(side) for side in (left, right)]
        if len(sides[0]) != len(sides[1]):
            inner.fault(right, f"{len(sides[1])} of them", f"{len(sides[0])} as in {left}", "correct the record")
        return list(zip(*sides, strict=True))
    if not isinstance(found, list):
        shown = described(found) if key in entry.value else "nothing"
        entry.fault(key, shown, f"a list of [{left}, {right}]", "check that this split has evidence")
    for number, pair in enumerate(found):
        if not isinstance(pair, list) or len(pair) != 2:
            entry.fault(f"{key}[{number}]", described(pair), f"[{left}, {right}]", "correct the record")
    return [(first, second) for first, second in found]


def units(
    entry: Entry, key: str, known: list[tuple[str, str]], paragraphs: Paragraphs, report: Report
) -> list[dict[str, Any]] | None:
    """A unit a supporting sentence; None, said in the report, where the question cannot be judged."""
    found: dict[tuple[str, int], dict[str, Any]] = {}
    for title, number in pairs(entry, "supporting_facts", "title", "sent_id"):
        if type(number) is not int or number < 0:
            entry.fault("supporting_facts", described(number), _WHOLE, "sentences are counted from 0")
        documents = {document for name, document in known if name == title}
        where = f'{entry.where}, query "{key}", {words(str(title))} sentence {number}'
        if len(documents) != 1:
            several = "stands there with several texts" if documents else "is not there"
            report.add(f"questions with a supporting paragraph that {several}, left out", where)
            return None
        document = documents.pop()
        if paragraphs.texts[document].readable(number):
            found[document, number] = paragraphs.texts[document].unit(document, [number])
        else:
            report.add("supporting sentences that the paragraph does not have, left out", where)
    if not found:
        report.add("questions without any supporting sentence, left out", f'{entry.where}, query "{key}"')
        return None
    return list(found.values())
