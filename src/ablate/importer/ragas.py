"""Ragas samples: questions with reference contexts, to be found in a corpus of your own

SOURCE is a file of samples, JSON Lines, a JSON list or CSV, plain or gzip, with
  user_input             the question
  reference              the answer (optional)
  reference_context_ids  ids of documents (optional)
  reference_contexts     texts from documents (optional)
--corpus names the documents: JSON Lines of {"_id", "text", "title"?, "metadata"?}; other keys become metadata.

The documents of reference_context_ids are one alternative: all are needed, or with --any each is enough. Where as many
reference_contexts stand beside them, a context that its document holds exactly once narrows the unit to that span.
Without ids a context is looked for in the whole corpus, and must stand there exactly once; "<1-hop>" before it is no
part of it. A sample without ids of which a context is not found has no alternatives. Samples get the ids q1, q2, ...
unless they have an "id"; persona_name, query_style, query_length and synthesizer_name become cohorts. What a system
retrieved or answered (retrieved_contexts, response, ...) is not kept, nor are conversations of several turns.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ablate.dataset.lines import Entry, described, near
from ablate.errors import DatasetError
from ablate.importer import Imported, Report, Row
from ablate.importer.beir import corpus
from ablate.importer.source import chosen, identities, identity, inside, words
from ablate.importer.table import rows

COHORTS = ("persona_name", "query_style", "query_length", "synthesizer_name")
_READ = ("user_input", "reference", "reference_context_ids", "reference_contexts", "id", "_id", *COHORTS)
_HOP = re.compile(r"^<\d+-hop>\s*")

Units = list[dict[str, Any]]


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--corpus", metavar="FILE", help="the documents, as JSON Lines (required)")
    parser.add_argument("--any", action="store_true", help="each document of a sample is enough (else all are needed)")


def read(source: Path, args: argparse.Namespace) -> Imported:
    """Samples, and where their contexts stand in the corpus.

    Raises:
        DatasetError: a file cannot be read, no corpus is named, or a sample is not as described above.

    """
    if args.corpus is None:
        raise DatasetError(
            f"{source}: found no corpus, expected one as samples hold only parts of it; name its file with --corpus"
        )
    documents = list(corpus(inside(source.parent, args.corpus, "--corpus")))
    samples = Samples({row.value["_id"]: row.value["text"] for row in documents}, args.any, Report())
    found = [sample for number, entry in enumerate(rows(source), 1) for sample in samples.sample(entry, number)]
    return Imported(
        corpus=documents,
        queries=[query for query, _ in found],
        ground_truth=[truth for _, truth in found],
        report=samples.report,
    )


@dataclass(frozen=True)
class Samples:
    """Reads samples against the texts of the corpus by document id."""

    texts: Mapping[str, str]
    any: bool
    report: Report

    def sample(self, entry: Entry, number: int) -> Iterator[tuple[Row, Row]]:
        """The query of a sample and its ground truth; nothing for a conversation."""
        if isinstance(entry.value.get("user_input"), list):
            self.report.add("conversations of several turns, left out", entry.where)
            return
        ids = [key for key in ("_id", "id") if entry.has(key)]
        key = identity(entry, chosen(entry, ids, "an id")) if ids else f"q{number}"
        for other in entry.value:
            if other not in _READ and entry.has(other):
                self.report.add(f"samples with {other}, which is not kept", entry.where)
        query: dict[str, Any] = {"_id": key, "text": entry.string("user_input")}
        cohorts = {name: str(entry.value[name]) for name in COHORTS if entry.has(name)}
        truth: dict[str, Any] = {"query_id": key}
        units = self.units(entry)
        if units:
            truth["alternatives"] = [[unit] for unit in units] if self.any else [units]
        else:
            self.report.add("samples without evidence, kept without alternatives", f'{entry.where}, query "{key}"')
        if entry.has("reference"):
            truth["answer"] = {"text": entry.string("reference")}
        yield Row(entry.where, query | ({"cohorts": cohorts} if cohorts else {})), Row(entry.where, truth)

    def units(self, entry: Entry) -> Units:
        ids, contexts = identities(entry, "reference_context_ids"), [*entry.names("reference_contexts")]
        for number, key in enumerate(ids):
            if key not in self.texts:
                advice = near(key, self.texts) or "add the document to the corpus"
                entry.fault(f"reference_context_ids[{number}]", described(key), "an id of the corpus", advice)
        if ids:
            return distinct(self.named(entry, ids, contexts))
        found = [self.searched(entry, context) for context in contexts]
        return distinct([unit for unit in found if unit]) if all(found) else []

    def named(self, entry: Entry, ids: list[str], contexts: list[str]) -> Units:
        """A unit an id: the context that stands at the same place of the list, or the whole document."""
        if contexts and len(contexts) != len(ids):
            what = "samples with more or fewer contexts than ids, evidence is whole documents"
            self.report.add(what, f"{entry.where}, {len(contexts)} contexts and {len(ids)} ids")
        if len(contexts) != len(ids):
            return [{"doc_id": key} for key in ids]
        units = []
        for key, context in zip(ids, contexts, strict=True):
            unit = self.span(entry, key, context)
            if unit is None:
                what = "contexts that their document does not hold exactly once, evidence is the whole document"
                self.report.add(what, f"{entry.where}, {words(context)} in {words(key)}")
            units.append(unit or {"doc_id": key})
        return units

    def searched(self, entry: Entry, context: str) -> dict[str, Any] | None:
        """The only place of a context in the corpus."""
        bare = _HOP.sub("", context)
        holders = [key for key, text in self.texts.items() if bare in text]
        unit = self.span(entry, holders[0], context) if len(holders) == 1 else None
        if unit is None:
            what = "contexts that the corpus does not hold exactly once, their samples have no alternatives"
            self.report.add(what, f"{entry.where}, {words(context)}")
        return unit

    def span(self, entry: Entry, key: str, context: str) -> dict[str, Any] | None:
        """The unit of a context in a document that holds it exactly once."""
        bare, text = _HOP.sub("", context), self.texts[key]
        start = text.find(bare)
        if start < 0 or text.find(bare, start + 1) >= 0 or not any(map(str.isalnum, bare)):
            return None
        if bare != context:
            self.report.add("contexts with <1-hop> or the like before them, taken off", entry.where)
        return {"doc_id": key, "start": start, "end": start + len(bare), "quote": bare}


def distinct(units: Units) -> Units:
    """The units without repetition; a whole document beside a span of it says nothing more."""
    return [unit for number, unit in enumerate(units) if unit not in units[:number]]
