"""describe a dataset: lengths, languages, evidence, cohorts, and who may read what

Lengths are in study tokens (words and single punctuation marks). Nothing is written.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING

from ablate.dataset import options
from ablate.page import clean

if TYPE_CHECKING:
    from ablate.dataset.stats import Spread, Stats

ROWS = 30
"""Rows of a table of people or names; --json has all."""


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("dir", metavar="DIR", help="folder of the dataset")
    parser.add_argument("--json", action="store_true", help="print JSON")
    options.add(parser)


def main(args: argparse.Namespace) -> int:
    """Read the dataset and print what it is made of.

    Raises:
        DatasetError: it is not valid.

    """
    from ablate.dataset.stats import stats
    from ablate.tokens import Words

    found = stats(options.folder(args, args.dir).read(), Words().count)
    print(json.dumps(asdict(found), ensure_ascii=False, indent=1) if args.json else "\n\n".join(blocks(found)))
    return 0


def blocks(found: Stats) -> list[str]:
    """The parts that say something about this dataset, each a sentence or a table."""
    numbers = [f"{number} {name.replace('_', ' ')}" for name, number in found.counts.items() if number]
    spreads = {
        "tokens per document": found.tokens,
        "tokens per query": found.query_tokens,
        "alternatives per query": found.alternatives,
        "facts per alternative": found.facts,
        "units per query": found.units,
    }
    parts = [
        ", ".join(numbers),
        table(["", "n", "min", "median", "p95", "max"], [[name, *cells(row)] for name, row in spreads.items()]),
        f"letters of documents: {shares(found.scripts)}; documents by script: {listed(found.main_scripts)}\n"
        f"letters of queries: {shares(found.query_scripts)}; queries by script: {listed(found.query_main_scripts)}",
        evidence(found),
    ]
    if found.cohorts:
        rows = [
            [f"{cohort.key}={cohort.value}", str(cohort.queries), "" if cohort.averaged else "too small to average"]
            for cohort in found.cohorts
        ]
        parts.append(table(["cohort", "queries", ""], rows))
    return parts + access(found)


def evidence(found: Stats) -> str:
    share = f" ({found.confirmed / found.alternatives_in_all:.0%})" if found.alternatives_in_all else ""
    return "\n".join(
        [
            f"units without a span: {found.units_without_span}; judged spans: {found.judgments}",
            f"alternatives that an expert confirmed: {found.confirmed} of {found.alternatives_in_all}{share}",
            f"unanswerable queries: {listed(found.unanswerable) or 'none'}",
        ]
    )


def access(found: Stats) -> list[str]:
    if not found.groups:
        return ["no document carries an ACL: everybody reads everything"]
    askers = [
        [clean(", ".join(asker.principals)) or "public", *map(str, (asker.asked, asker.documents, asker.answerable))]
        for asker in found.askers
    ]
    names = [[clean(group.name), str(group.allows), str(group.denies)] for group in found.groups]
    return [
        table(["who asks", "queries asked", "documents read", "queries that can be answered"], askers),
        table(["name in ACLs", "documents that allow", "documents that deny"], names),
    ]


def cells(found: Spread) -> list[str]:
    return [f"{number:g}" for number in (found.n, found.min, found.median, found.p95, found.max)]


def shares(found: Mapping[str, float]) -> str:
    return ", ".join(f"{name} {share:.1%}" for name, share in found.items() if share >= 0.0005) or "none"


def listed(found: Mapping[str, int]) -> str:
    return ", ".join(f"{name} {number}" for name, number in found.items())


def table(headers: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    from tabulate import tabulate

    aligned = ("left", *["right"] * (len(headers) - 1))
    drawn = str(tabulate(rows[:ROWS], headers, disable_numparse=True, colalign=aligned))
    return drawn + (f"\nand {len(rows) - ROWS} more; --json has all" if len(rows) > ROWS else "")
