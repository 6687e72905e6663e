"""Times of scoring 100 queries, beside a literal loop and beside pytrec_eval: python scripts/bench_scores.py"""

from __future__ import annotations

import random
import statistics
import time
from collections.abc import Callable

import pytrec_eval

from ablate.score import Scoring
from ablate.score.doc import doc
from ablate.score.evidence import lay_out
from ablate.score.retrieval import retrieval
from ablate.types import Chunk, Document, Span, Truth, Unit

QUERIES, DEPTH, ROUNDS = 100, 50, 5
SCORING = Scoring(cutoffs=[1, 5, 10], span_threshold=1.0, cost={})


def corpus(draw: random.Random) -> list[Document]:
    words = ["срок", "возврата", "refund", "договор", "guide", "оплата", "exception", "term"]
    return [Document(f"d{n}", " ".join(draw.choices(words, k=400))) for n in range(200)]


def span(draw: random.Random, document: Document, size: int) -> tuple[int, int]:
    start = draw.randrange(len(document.text) - size)
    return start, start + size


def truth(draw: random.Random, documents: list[Document]) -> Truth:
    def fact() -> tuple[Unit, ...]:
        document = draw.choice(documents)
        return (Unit(document.id, (Span(*span(draw, document, 60)),)),)

    grades = {document.id: draw.randint(0, 3) for document in draw.sample(documents, 10)} | {"d0": 1}
    return Truth("q", tuple((fact(), fact()) for _ in range(2)), documents=grades)


def literal(needed: Truth, ranking: list[Chunk], documents: dict[str, Document]) -> list[float]:
    """Coverage and sufficient as the contract words them: sets of letters, gathered anew at every cut-off."""
    values = []
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
        values += [max(shares), float(max(shares) == 1)]
    return values


def seconds(work: Callable[[], object]) -> float:
    """The median of several rounds."""
    taken = []
    for _ in range(ROUNDS):
        start = time.perf_counter()
        work()
        taken.append(time.perf_counter() - start)
    return statistics.median(taken)


def main() -> None:
    draw = random.Random(0)
    documents = corpus(draw)
    by_id = {document.id: document for document in documents}
    truths = [truth(draw, documents) for _ in range(QUERIES)]
    rankings = [[Chunk(d, *span(draw, d, 300)) for d in draw.choices(documents, k=DEPTH)] for _ in range(QUERIES)]
    orders = [list(dict.fromkeys(chunk.document.id for chunk in ranking)) for ranking in rankings]
    qrels = {str(n): dict(each.documents) for n, each in enumerate(truths)}
    run = {str(n): {name: float(-place) for place, name in enumerate(order)} for n, order in enumerate(orders)}
    wanted = {f"{name}.1,5,10" for name in ("recall", "P", "ndcg_cut")} | {"recip_rank", "map"}
    pairs = list(zip(truths, rankings, strict=True))

    def spans() -> None:
        lay_out.cache_clear()
        for needed, ranking in pairs:
            retrieval(needed, ranking, by_id, frozenset(), SCORING)

    measures = len(retrieval(*pairs[0], by_id, frozenset(), SCORING))
    ours = seconds(spans)
    loop = seconds(lambda: [literal(needed, ranking, by_id) for needed, ranking in pairs])
    classical = seconds(lambda: [doc(t.documents, o, SCORING.cutoffs) for t, o in zip(truths, orders, strict=True)])
    trec = seconds(lambda: pytrec_eval.RelevanceEvaluator(qrels, wanted).evaluate(run))
    print(f"{QUERIES} queries, {measures} retrieval/ measures: {ours:.4f} s")
    print(f"literal loop, 8 of them: {loop:.4f} s, {loop / ours:.1f} times as long")
    print(
        f"{QUERIES} queries, 11 doc/ measures: {classical:.4f} s, {classical / trec:.1f} times as long as pytrec_eval"
    )


if __name__ == "__main__":
    main()
