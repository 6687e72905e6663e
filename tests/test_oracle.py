"""Whatever the chunker, all evidence can be found: a search that knows the answers reaches full coverage."""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hydra import compose, initialize_config_dir

from ablate.access import Prefilter
from ablate.conf import conf, options
from ablate.config import resolve, settings
from ablate.dataset import Folder
from ablate.evaluate import audited, evaluate
from ablate.filter import Open
from ablate.packer import TopK
from ablate.pipeline import Line, ready
from ablate.reranker import Keep
from ablate.score import Scoring
from ablate.score.context import context
from ablate.score.evidence import units
from ablate.tokens import Words
from ablate.types import Candidates, Chunk, Hit, Truth

OURS = Path(str(files("ablate") / "data"))
SHARED = Path(__file__).parents[2] / "shared" / "data"
FOLDERS = [OURS / "sample", OURS / "demo", *(sorted(SHARED.iterdir()) if SHARED.is_dir() else [])]
CHUNKERS = options()["chunker"]
SCORING = Scoring([1], 1.0, {}, 1.0)
EVERY = 100_000
"""More chunks than any evidence touches."""


COLLECTIONS = [
    pytest.param(folder, id=folder.name, marks=[] if folder.parent == OURS else [pytest.mark.slow])
    for folder in FOLDERS
]


@cache
def read(folder):
    return Folder(str(folder), "test", "none", 1, "nobody", True, None).read()


@cache
def chunker(name):
    """A shipped option with its shipped settings."""
    with initialize_config_dir(str(conf()), version_base="1.3"):
        return settings(resolve(compose("config", ["dataset=sample", f"chunker={name}"]))).chunker


@dataclass(frozen=True)
class Oracle:
    """Finds the chunks that touch the evidence of a query, and no others."""

    truths: Mapping[str, Truth]

    def index(self, chunks, embedder):
        rows = defaultdict(list)
        for row, chunk in enumerate(chunks):
            rows[chunk.document.id].append((row, chunk))

        def search(query, allowed, depth):
            touching = [
                chunk.handed
                for unit in units([self.truths[query.id]])
                for row, chunk in rows[unit.document]
                if allowed[row] and touches(chunk, unit)
            ]
            hits = [Hit(chunk, 1.0) for chunk in dict.fromkeys(touching)][:depth]
            return Candidates({"oracle": hits}, hits)

        return search


def touches(chunk, unit):
    return not unit.spans or any(chunk.start < span.end and span.start < chunk.end for span in unit.spans)


def line(dataset, chunker):
    parts = Line(chunker, None, Oracle(dataset.truths), Open(), Prefilter("global"), Keep(), TopK())
    return ready(parts, dataset, Words(), EVERY, EVERY, 640)


def answered(dataset):
    """Ids of the queries that some evidence answers."""
    return [query.id for query in dataset.queries if query.answerable and dataset.truths[query.id].alternatives]


@pytest.mark.parametrize("name", CHUNKERS)
@pytest.mark.parametrize("folder", COLLECTIONS)
def test_all_evidence_can_be_found_whatever_the_chunker(folder, name):
    dataset = read(folder)
    wanted = answered(dataset)
    if not wanted:
        pytest.skip("no query names its evidence")
    found = evaluate(line(dataset, chunker(name)), audited(dataset), SCORING).values
    assert {query: found[query]["context/coverage"] for query in wanted} == dict.fromkeys(wanted, 1.0)


@dataclass(frozen=True)
class Dropping:
    """A chunker that leaves out single characters: `places` of them, by document."""

    chunker: Any
    places: Mapping[str, frozenset[int]]

    def __call__(self, document, tokens):
        for chunk in self.chunker(document, tokens):
            parents = self.around(chunk.parent) if chunk.parent else [None]
            for piece in self.around(chunk):
                home = [parent for parent in parents if not parent or parent.start <= piece.start < parent.end]
                yield replace(piece, parent=home[0])

    def around(self, chunk):
        """What is left of a chunk."""
        inside = sorted(place for place in self.places.get(chunk.document.id, ()) if chunk.start <= place < chunk.end)
        edges = pairwise([chunk.start - 1, *inside, chunk.end])
        return [Chunk(chunk.document, before + 1, after) for before, after in edges if before + 1 < after]


def a_letter_of_every_alternative(dataset, truth):
    """Characters without which no alternative is complete, by document: the last letter or digit of one fact each."""
    texts = {document.id: document.text for document in dataset.documents}
    places = defaultdict(set)
    for alternative in truth.alternatives:
        for unit in alternative[0]:  # its sources replace one another: all have to go
            places[unit.document].add(
                max(at for span in unit.spans for at in range(*span) if texts[unit.document][at].isalnum())
            )
    return {document: frozenset(found) for document, found in places.items()}


def covered(dataset, chunker, query):
    """The coverage of one query in the documents of its evidence alone, which is enough for what knows the answers."""
    truth = dataset.truths[query.id]
    home = {unit.document for unit in units([truth])}
    documents = {document.id: document for document in dataset.documents if document.id in home}
    alone = replace(dataset, documents=tuple(documents.values()), queries=(query,), truths={query.id: truth})
    trace = line(alone, chunker)(query)
    return context(truth, trace.context, documents, (), SCORING)["context/coverage"]


@pytest.mark.parametrize("name", CHUNKERS)
@pytest.mark.parametrize("folder", COLLECTIONS)
def test_a_chunker_that_drops_one_letter_of_evidence_is_caught(folder, name):
    dataset = read(folder)
    wanted = {query for query in answered(dataset) if not dataset.truths[query].by_document}
    queries = [query for query in dataset.queries if query.id in wanted]
    if not queries:
        pytest.skip("no query names the spans of its evidence")
    for query in queries[:: len(queries) // 300 + 1]:
        places = a_letter_of_every_alternative(dataset, dataset.truths[query.id])
        assert covered(dataset, chunker(name), query) == 1, query.id
        assert covered(dataset, Dropping(chunker(name), places), query) < 1, query.id
