"""score any system's ranking (a TREC run file or JSONL) against a dataset's ground truth"""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ablate.dataset import options
from ablate.evaluate import audited
from ablate.measures import describe, family
from ablate.score import Scoring, of_chunks, summarise, to_json
from ablate.score.acl import forbidden
from ablate.score.documents import of_rankings
from ablate.score.runfile import Run, read
from ablate.score.standards import standards
from ablate.types import Dataset

COMPLETION_RANK = "retrieval/completion_rank"
VIOLATIONS = "acl/candidate_violations"


def main(argv: list[str]) -> int:
    """Score one run and print a table, or JSON.

    Raises:
        AblateError: the dataset, the run or a setting cannot be used; the message names the file and line.

    """
    args = _arguments(argv)
    scoring = Scoring(cutoffs=args.k, span_threshold=args.span_threshold, cost={}, false_answer_cost=1.0)
    dataset = options.folder(args, args.dataset).read()
    result = score(dataset, read(args.run, dataset), scoring)
    print(
        json.dumps(result, ensure_ascii=False, allow_nan=False) if args.json else "\n\n".join(_blocks(result, args.k))
    )
    return 0


def score(dataset: Dataset, run: Run, scoring: Scoring) -> dict[str, Any]:
    """Means, values per query and counts. A query that the run lacks scores 0; null does not apply, or is never."""
    audit = audited(dataset)
    documents = {document.id: document for document in dataset.documents}
    rankings = [run.rankings.get(query.id, []) for query in dataset.queries]
    grades = [dataset.truths[query.id].documents for query in dataset.queries]
    ids = [[chunk.document.id for chunk in chunks] for chunks in rankings]
    standard = standards(dataset)
    values = {}
    for query, chunks, of_documents in zip(
        dataset.queries, rankings, of_rankings(grades, ids, scoring.cutoffs), strict=True
    ):
        denied = audit.denied(query.principals)
        found = of_chunks(dataset.truths[query.id], chunks, documents, denied, scoring)
        values[query.id] = {**found, **of_documents}
        if standard.dated or standard.ranks:
            completion = found[COMPLETION_RANK]
            values[query.id] |= standard.of_ranking(
                query, dataset.truths[query.id], chunks, completion, scoring.cutoffs
            )
        values[query.id][VIOLATIONS] = float(len(forbidden(chunks, denied))) if audit.checked else None
    measures = summarise(dataset.queries, values)
    ranks = measures.pop(COMPLETION_RANK, None)
    return {
        "metrics": {name: measure["mean"] for name, measure in measures.items()},
        "per_query": {query: to_json(found) for query, found in values.items()},
        "counts": {
            **dataset.counts,
            "queries_missing_in_run": sum(query.id not in run.rankings for query in dataset.queries),
            "queries_without_hits": sum(not run.rankings.get(query.id) for query in dataset.queries),
            **run.counts,
            "access_checked": audit.checked,
            "applicable": {name: measure["n"] for name, measure in measures.items()},
            "completion_rank": ranks["distribution"] if ranks else {},
        },
    }


def _blocks(result: Mapping[str, Any], cutoffs: Sequence[int]) -> list[str]:
    """A table with a row a measure and a column a cut-off, the completion ranks, what was counted, and the legend."""
    from tabulate import tabulate

    metrics, counts = result["metrics"], result["counts"]
    legend = {family(name).name: family(name).formula for name in metrics}
    rows = []
    for name in legend:
        at = [name.removesuffix("_k") + f"_{k}" if name.endswith("_at_k") else "" for k in cutoffs]
        shown = [describe(cell).show(metrics[cell]) if cell in metrics else "" for cell in (name, *at)]
        rows.append([name, *shown, counts["applicable"].get(name) or counts["applicable"].get(at[0], 0)])
    headers = ["measure", "", *(f"k={k}" for k in cutoffs), "n"]
    numbers = [f"{n} {name.replace('_', ' ')}" for name, n in counts.items() if type(n) is int and n]
    access = "" if counts["access_checked"] else "; access was not checked: no document carries an ACL"
    return [
        tabulate(rows, headers, disable_numparse=True, colalign=("left", *["right"] * (len(headers) - 1))),
        "completion rank: " + ", ".join(f"{rank} in {n}" for rank, n in counts["completion_rank"].items()),
        ", ".join(numbers) + access,
        "\n".join(f"{name}: {formula}" for name, formula in legend.items()),
    ]


def _arguments(argv: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m ablate score", description=__doc__)
    parser.add_argument("--dataset", required=True, help="folder with corpus.jsonl, queries.jsonl and a ground truth")
    parser.add_argument("--run", required=True, type=Path, help="TREC run file (documents) or JSONL (spans)")
    parser.add_argument("--k", type=_cutoffs, default=[1, 3, 5, 10], help="cut-offs (default 1,3,5,10)")
    parser.add_argument("--json", action="store_true", help="metrics, values per query and counts as JSON")
    options.add(parser)
    parser.add_argument("--span-threshold", type=float, default=1.0, help="share of a unit that must be covered")
    return parser.parse_args(argv)


def _cutoffs(text: str) -> list[int]:
    if not re.fullmatch(r"[0-9]+(,[0-9]+)*", text):
        raise argparse.ArgumentTypeError(f"found {text!r}, expected whole numbers like 1,5,10")
    return sorted({int(k) for k in text.split(",")})
