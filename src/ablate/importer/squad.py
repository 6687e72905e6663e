"""SQuAD 1.1 or 2.0: questions whose answer is a part of a paragraph

SOURCE is a JSON file, plain or gzip, as SQuAD and XQuAD publish it:
  {"data": [{"title", "paragraphs": [{"context", "qas": [{"id", "question", "answers": [{"text", "answer_start"}],
  "is_impossible"?}]}]}]}

Every context is a document: its id is the title and its number in the article, from 0 (Amazon_rainforest-3); a context
that stands twice under a title is one document. Each distinct answer is an alternative. Of two answers of which one
contains the other the smaller is kept: who is shown the larger is shown the smaller too. An answer that does not stand
at its offset (in characters) is left out; a question that loses all its answers has no alternatives, and its paragraph
as relevant document. is_impossible makes a question unanswerable (absent).
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ablate.dataset.lines import Entry
from ablate.dataset.truth import inside
from ablate.importer import Imported, Report, Row
from ablate.importer.source import document, identity, words
from ablate.types import Span


def read(source: Path, _: argparse.Namespace) -> Imported:
    """Paragraphs, questions and answer spans.

    Raises:
        DatasetError: the file cannot be read, lacks a key or has a wrong type.

    """
    file = document(source)
    paragraphs, report = Paragraphs(), Report()
    asked, truths = [], []
    for article in objects(file, "data"):
        for paragraph in objects(article, "paragraphs"):
            key = paragraphs.add(paragraph, article.string("title"), report)
            for question in objects(paragraph, "qas"):
                query, truth = judged(question, key, paragraph.string("context"), report)
                asked.append(query)
                truths.append(truth)
    return Imported(corpus=paragraphs.rows, queries=asked, ground_truth=truths, report=report)


def objects(entry: Entry, key: str) -> Iterator[Entry]:
    """The objects of a list that has to be there."""
    if not entry.has(key):
        entry.fault(key, "nothing", "a list", "check that the file is of this format")
    for number, value in enumerate(entry.items(key)):
        yield entry.inner(f"{key}[{number}]", value)


def place(entry: Entry) -> str:
    """Where an object of the file stands: its path of keys."""
    return f"{entry.where} {entry.path.removesuffix('.')}"


@dataclass
class Paragraphs:
    """Documents by title and text, numbered within their title."""

    rows: list[Row] = field(default_factory=list)
    ids: dict[str, dict[str, str]] = field(default_factory=dict)

    def add(self, entry: Entry, title: str, report: Report) -> str:
        """The id of the paragraph, which becomes a document unless it is one already."""
        text, known = entry.string("context"), self.ids.setdefault(title, {})
        if text in known:
            report.add("paragraphs that their article holds twice, taken as one", place(entry))
            return known[text]
        known[text] = f"{title}-{len(known)}"
        self.rows.append(Row(place(entry), {"_id": known[text], "title": title, "text": text}))
        return known[text]


def judged(question: Entry, paragraph: str, text: str, report: Report) -> tuple[Row, Row]:
    """The query of a question, and its ground truth."""
    key = identity(question, "id")
    query: dict[str, Any] = {"_id": key, "text": question.string("question")}
    truth: dict[str, Any] = {"query_id": key}
    where = f'{place(question)}, query "{key}"'
    if question.flag("is_impossible", False):
        if question.items("plausible_answers"):
            report.add("plausible answers to unanswerable questions, left out", where)
        return Row(place(question), query | {"answerable": False, "why": "absent"}), Row(place(question), truth)
    spans = smallest(list(answers(question, text, where, report)), where, report)
    if spans:
        truth["alternatives"] = [[unit(paragraph, span, text)] for span in spans]
        truth["answer"] = {"text": text[spans[0].start : spans[0].end]}
    else:
        report.add("questions without an answer in the paragraph, kept with its document alone", where)
        truth["relevant"] = [{"doc_id": paragraph, "grade": 1}]
    return Row(place(question), query), Row(place(question), truth)


def answers(question: Entry, text: str, where: str, report: Report) -> Iterator[Span]:
    """The distinct spans of the answers that stand where they say."""
    seen = set()
    for answer in objects(question, "answers"):
        quote, start = answer.string("text"), answer.whole("answer_start")
        if start < 0 or text[start : start + len(quote)] != quote:
            report.add("answers that do not stand at their offset, left out", f"{where}, {words(quote)} at {start}")
        elif not any(map(str.isalnum, quote)):
            report.add("answers without any letter or digit, left out", f"{where}, {words(quote)} at {start}")
        elif (start, len(quote)) not in seen:
            seen.add((start, len(quote)))
            yield Span(start, start + len(quote))


def smallest(spans: list[Span], where: str, report: Report) -> list[Span]:
    """The spans that hold no other span."""
    found = []
    for span in spans:
        if any(inside(other, span) for other in spans):
            report.add("answers that hold a smaller answer, left out", f"{where}, [{span.start}:{span.end}]")
        else:
            found.append(span)
    return found


def unit(paragraph: str, span: Span, text: str) -> dict[str, Any]:
    return {"doc_id": paragraph, "start": span.start, "end": span.end, "quote": text[span.start : span.end]}
