"""Times of scoring, each beside what else does it, in turns in one process: python scripts/bench_scores.py [DOC2DIAL]

Equal values are asserted first. DOC2DIAL is a folder with that collection, whose questions are scored on spans. Where
ranx is not installed, what it takes is left out.
"""

from __future__ import annotations

import json
import math
import random
import statistics
import sys
import time
from collections.abc import Callable, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytrec_eval

from ablate.chunker import Fixed
from ablate.dataset import Folder
from ablate.dataset.qrels import qrels
from ablate.score import Scoring, of_ranking
from ablate.score.documents import Ragged, graded, mean, measured
from ablate.score.evidence import lay_out
from ablate.score.retrieval import retrieval
from ablate.score.trec import hits
from ablate.tokens import Words
from ablate.types import Chunk, Document, Span, Truth, Unit

CUTOFFS = [1, 3, 5, 10]
QUERIES, HITS, DOCUMENTS, JUDGED = 10_000, 100, 20_000, 10
SPANS, DEPTH = 100, 50
ROUNDS = 3
SCORING = Scoring(cutoffs=[1, 5, 10], span_threshold=1.0, cost={}, false_answer_cost=1.0)
OURS = {
    **{f"{theirs}_{k}": f"doc/{ours}_at_{k}" for k in CUTOFFS for theirs, ours in
       (("recall", "recall"), ("P", "precision"), ("ndcg_cut", "ndcg"))},
    "recip_rank": "doc/mrr",
    "map": "doc/map",
}  # fmt: skip
"""The names of trec_eval and of this program."""

Grades = dict[str, dict[str, int]]
Run = dict[str, dict[str, float]]


def in_turns(works: Mapping[str, Callable[[], object]], rounds: int = ROUNDS) -> dict[str, float]:
    """The median seconds of each work, done in turns, so that what else the machine does meets all of them."""
    taken: dict[str, list[float]] = {name: [] for name in works}
    for _ in range(rounds):
        for name, work in works.items():
            start = time.perf_counter()
            work()
            taken[name].append(time.perf_counter() - start)
    return {name: statistics.median(times) for name, times in taken.items()}


def told(title: str, taken: Mapping[str, float]) -> None:
    """The seconds of each, and how many times the first's the others are."""
    first = next(iter(taken.values()))
    print(title)
    for name, seconds in taken.items():
        print(f"  {name}: {seconds:.3f} s" + (f", {seconds / first:.2f} times as long" if seconds != first else ""))


def ranked_documents() -> tuple[list[str], Grades, Run]:
    """Documents, their grades and a run without ties, in two scripts."""
    draw = random.Random(0)
    names = [f"док-{number}" if number % 2 else f"doc{number}" for number in range(DOCUMENTS)]
    grades = {
        f"q{number}": {name: draw.randint(0, 3) for name in draw.sample(names, JUDGED)} for number in range(QUERIES)
    }
    run = {}
    for query, known in grades.items():
        listed = list(dict.fromkeys([*list(known)[: draw.randint(0, JUDGED)], *draw.sample(names, HITS)]))[:HITS]
        scores = draw.sample(range(1 << 20), HITS)
        run[query] = {name: score / 64 for name, score in zip(listed, scores, strict=True)}
    return names, grades, run


def trec(run: Run) -> bytes:
    lines = []
    for query, scores in run.items():
        order = sorted(scores.items(), key=lambda hit: -hit[1])
        lines += [f"{query} Q0 {name} {rank} {score} run\n" for rank, (name, score) in enumerate(order, 1)]
    return "".join(lines).encode()


def judged(grades: Grades, queries: list[str], numbers: Mapping[str, int]) -> tuple[Ragged, Any]:
    """The judged documents of each query as numbers, and their grades."""
    rows = [grades.get(query, {}) for query in queries]
    documents = Ragged.of([[numbers[name] for name in row] for row in rows])
    return documents, np.array([grade for row in rows for grade in row.values()], np.int64)


def documents() -> None:
    """Measures from arrays beside ranx, and from files to means beside json.loads and pytrec_eval."""
    names, grades, run = ranked_documents()
    numbers, asked = {name: number for number, name in enumerate(names)}, set(grades)
    run_file, run_json = trec(run), json.dumps(run, ensure_ascii=False)
    rows = [f"{query}\t{name}\t{grade}\n" for query, known in grades.items() for name, grade in known.items()]
    qrels_file, qrels_json = "".join(["query-id\tcorpus-id\tscore\n", *rows]).encode(), json.dumps(grades)
    wanted = {f"{name}.{','.join(map(str, CUTOFFS))}" for name in ("recall", "P", "ndcg_cut")} | {"recip_rank", "map"}

    def by_file() -> dict[str, float | None]:
        found = hits("run.trec", run_file, numbers)
        known = qrels("qrels/test.tsv", qrels_file, asked, numbers)
        values = measured(*graded(found.documents.once, *judged(known, list(found.queries), numbers)), CUTOFFS)
        return {name: mean(column) for name, column in values.items()}

    def by_trec_eval() -> dict[str, float]:
        found = pytrec_eval.RelevanceEvaluator(json.loads(qrels_json), wanted).evaluate(json.loads(run_json))
        return {name: sum(row[name] for row in found.values()) / len(found) for name in OURS}

    ours, theirs = by_file(), by_trec_eval()
    relevant = sum(any(grade > 0 for grade in known.values()) for known in grades.values())
    for name, value in theirs.items():  # trec_eval counts a query without a relevant document as 0
        assert math.isclose(ours[OURS[name]] or 0, value * QUERIES / relevant, rel_tol=1e-9), name
    told(
        f"files to means, {QUERIES} queries x {HITS} hits",
        in_turns({"TREC run and qrels": by_file, "json.loads and pytrec_eval": by_trec_eval}),
    )
    found = hits("run.trec", run_file, numbers)
    known, order = judged(grades, list(found.queries), numbers), found.documents

    def by_arrays() -> object:
        return measured(*graded(order, *known), CUTOFFS)

    if find_spec("ranx") is None:
        told(
            "measures of arrays (ranx is not installed, so that there is nothing beside)", in_turns({"ours": by_arrays})
        )
        return
    import ranx

    short = {"recall": "recall", "precision": "precision", "ndcg": "ndcg"}
    metrics = [*(f"{name}@{k}" for name in short for k in CUTOFFS), "mrr", "map"]
    built = ranx.Qrels(grades), ranx.Run(run)
    compiled = ranx.evaluate(*built, metrics)
    for name in metrics:
        value = ours["doc/" + name.replace("@", "_at_")] or 0
        assert math.isclose(value, compiled[name] * QUERIES / relevant, rel_tol=1e-9), name
    both = in_turns({"ours": by_arrays, "ranx.evaluate": lambda: ranx.evaluate(*built, metrics)})
    told(f"measures of arrays, {len(metrics)} of them", both)


def span(draw: random.Random, document: Document, size: int) -> tuple[int, int]:
    start = draw.randrange(len(document.text) - size)
    return start, start + size


def truth(draw: random.Random, documents: list[Document]) -> Truth:
    def fact() -> tuple[Unit, ...]:
        document = draw.choice(documents)
        return (Unit(document.id, (Span(*span(draw, document, 60)),)),)

    return Truth("q", tuple((fact(), fact()) for _ in range(2)))


def literal(needed: Truth, ranking: list[Chunk], documents: dict[str, Document]) -> dict[str, float]:
    """Coverage and sufficient as the contract words them: sets of letters, gathered anew at every cut-off."""
    values = {}
    for k in (*SCORING.cutoffs, DEPTH):
        shares = []
        for facts in needed.alternatives:
            found = 0
            for (unit,) in facts:
                text = documents[unit.document].text
                letters = {n for low, high in unit.spans for n in range(low, high) if text[n].isalnum()}
                read = {n for c in ranking[:k] if c.document.id == unit.document for n in range(c.start, c.end)}
                found += letters <= read
            shares.append(found / len(facts))
        values[f"retrieval/coverage_at_{k}"] = max(shares)
        values[f"retrieval/sufficient_at_{k}"] = float(max(shares) == 1)
    return values


def spans() -> None:
    """Measures of spans beside a literal loop over letters."""
    draw = random.Random(0)
    words = ["срок", "возврата", "refund", "договор", "guide", "оплата", "exception", "term"]
    documents = [Document(f"d{number}", " ".join(draw.choices(words, k=400))) for number in range(200)]
    by_id = {document.id: document for document in documents}
    truths = [truth(draw, documents) for _ in range(SPANS)]
    rankings = [[Chunk(d, *span(draw, d, 300)) for d in draw.choices(documents, k=DEPTH)] for _ in range(SPANS)]
    pairs = list(zip(truths, rankings, strict=True))
    for needed, ranking in pairs:
        values = retrieval(needed, ranking, by_id, frozenset(), SCORING)
        wanted = literal(needed, ranking, by_id)
        assert {name: values[name] for name in wanted if name in values}.items() <= wanted.items()

    def ours() -> None:
        lay_out.cache_clear()
        for needed, ranking in pairs:
            retrieval(needed, ranking, by_id, frozenset(), SCORING)

    loop = {
        "ours, all measures": ours,
        "literal loop, two of them and at one more cut-off": lambda: [literal(*pair, by_id) for pair in pairs],
    }
    told(f"spans, {SPANS} queries x {DEPTH} hits", in_turns(loop))


def questions(folder: str) -> None:
    """All measures of a run of fixed chunks for the questions of a collection."""
    dataset = Folder(folder, "test", "none", 1, "nobody", True).read()
    chunks = [chunk for document in dataset.documents for chunk in Fixed(128, 0)(document, Words())]
    draw, by_id = random.Random(0), {document.id: document for document in dataset.documents}
    rankings = {query.id: draw.sample(chunks, HITS) for query in dataset.queries}
    scoring = Scoring(cutoffs=CUTOFFS, span_threshold=1.0, cost={}, false_answer_cost=1.0)

    def ours() -> None:
        lay_out.cache_clear()
        for query in dataset.queries:
            of_ranking(dataset.truths[query.id], rankings[query.id], by_id, frozenset(), scoring)

    told(f"{dataset.name}, {len(dataset.queries)} questions x {HITS} hits", in_turns({"spans and documents": ours}))


def main() -> None:
    spans()
    documents()
    for folder in sys.argv[1:]:
        if Path(folder).is_dir():
            questions(folder)


if __name__ == "__main__":
    main()
