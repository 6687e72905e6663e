"""SciFact: claims, and the sentences of abstracts that support or contradict them

SOURCE is a folder with corpus.jsonl, {"doc_id", "title", "abstract": [sentences]} a line, and a file of claims,
  {"id", "claim", "evidence": {doc_id: [{"sentences": [numbers], "label"}, ...]}, "cited_doc_ids": [...]} a line.
There are several such files: name the one to import with --claims (claims_dev.jsonl). The published claims_test.jsonl
has no evidence.

An abstract is its sentences with a blank between them. Each rationale (one list of sentences) is an alternative: any
one is enough; its sentences are needed together, so they are one unit. A rationale that holds all sentences of another
is left out. A claim without evidence is unanswerable (absent). Cited abstracts, and those with a rationale, are
relevant documents of grade 1, as BEIR has it. The labels of a claim become the cohort "label", NOT_ENOUGH_INFO where
it has none.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ablate.dataset.lines import Entry, described, near
from ablate.importer import Imported, Report, Row
from ablate.importer.sentences import Sentences, joined
from ablate.importer.source import folder, identities, identity, objects, one

_NONE = "NOT_ENOUGH_INFO"


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--claims", metavar="FILE", help="the file of claims, where SOURCE holds several")


def read(source: Path, args: argparse.Namespace) -> Imported:
    """Abstracts, claims and their rationales.

    Raises:
        DatasetError: a file is missing or cannot be read, or several hold claims and none is named.

    """
    folder(source, "scifact")
    claims = one(source, args.claims, sorted(source.glob("claims*.jsonl*")), "claims", "--claims")
    corpus = one(source, None, sorted(source.glob("corpus.jsonl*")), "abstracts", "the name corpus.jsonl")
    abstracts: dict[str, Sentences] = {}
    rows = []
    for entry in objects(corpus):
        row, text = abstract(entry)
        abstracts[row["_id"]] = text
        rows.append(Row(entry.where, row))
    reader = Claims(abstracts, Report())
    found = list(map(reader.claim, objects(claims)))
    return Imported(
        corpus=rows,
        queries=[query for query, _ in found],
        ground_truth=[truth for _, truth in found],
        report=reader.report,
    )


def abstract(entry: Entry) -> tuple[dict[str, Any], Sentences]:
    sentences = entry.items("abstract")
    if not entry.has("abstract") or not all(isinstance(sentence, str) for sentence in sentences):
        shown = described(entry.value.get("abstract")) if not sentences else "something else among the sentences"
        entry.fault("abstract", shown, "a list of sentences", "write each sentence as a string")
    text = joined(sentences, " ")
    return {"_id": identity(entry, "doc_id"), "title": entry.string("title"), "text": text.text}, text


class Claims:
    """Reads claims against the abstracts that they speak of."""

    def __init__(self, abstracts: dict[str, Sentences], report: Report) -> None:
        self.abstracts = abstracts
        self.report = report

    def claim(self, entry: Entry) -> tuple[Row, Row]:
        """The query of a claim, and its ground truth."""
        key = identity(entry, "id")
        rationales = list(self.rationales(entry))
        units = self.minimal(entry, [(document, numbers) for document, numbers, _ in rationales])
        label = " and ".join(sorted({label for _, _, label in rationales})) or _NONE
        query: dict[str, Any] = {"_id": key, "text": entry.string("claim"), "cohorts": {"label": label}}
        truth: dict[str, Any] = {"query_id": key}
        if units:
            truth["alternatives"] = [[unit] for unit in units]
        elif not rationales:
            query |= {"answerable": False, "why": "absent"}
        cited = dict.fromkeys([*identities(entry, "cited_doc_ids"), *(document for document, _, _ in rationales)])
        if cited:
            truth["relevant"] = [{"doc_id": document, "grade": 1} for document in cited]
        return Row(entry.where, query), Row(entry.where, truth)

    def rationales(self, entry: Entry) -> Iterator[tuple[str, frozenset[int], str]]:
        """Document, sentences and label of every rationale."""
        if not entry.has("evidence"):
            entry.fault("evidence", "nothing", "an object", "import a file of claims whose evidence is published")
        for document in entry.mapping("evidence"):
            inner = entry.inner("evidence", entry.value["evidence"])
            if document not in self.abstracts:
                advice = near(document, self.abstracts) or "add the abstract or remove the evidence"
                entry.fault("evidence", described(document), "ids of corpus.jsonl", advice)
            for number, value in enumerate(inner.items(document)):
                rationale = inner.inner(f"{document}[{number}]", value)
                yield document, self.sentences(rationale), rationale.name("label")

    def sentences(self, rationale: Entry) -> frozenset[int]:
        found = rationale.items("sentences")
        if not found or any(type(number) is not int or number < 0 for number in found):
            shown = described(rationale.value.get("sentences")) if not found else repr(found)
            rationale.fault("sentences", shown, "a list of sentence numbers", "sentences are counted from 0")
        return frozenset(found)

    def minimal(self, entry: Entry, rationales: list[tuple[str, frozenset[int]]]) -> list[dict[str, Any]]:
        """The units of the rationales that can be read and hold no other."""
        found: dict[tuple[str, frozenset[int]], dict[str, Any]] = {}
        for document, numbers in rationales:
            text = self.abstracts[document]
            if all(map(text.readable, numbers)):
                found[document, numbers] = text.unit(document, sorted(numbers))
            else:
                what = "rationales with a sentence that the abstract does not have, left out"
                self.report.add(what, shown(entry, document, numbers))
        for document, numbers in list(found):
            if any(other == document and rest < numbers for other, rest in found):
                what = "rationales that hold all sentences of another, left out"
                self.report.add(what, shown(entry, document, numbers))
                del found[document, numbers]
        return list(found.values())


def shown(entry: Entry, document: str, numbers: frozenset[int]) -> str:
    return f"{entry.where}, abstract {document}, sentences {', '.join(map(str, sorted(numbers)))}"
