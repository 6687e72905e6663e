"""what has become of the evidence in a newer corpus; with --fix, the ground truth for it

Every piece of evidence of OLD is looked for in the corpus of NEW: unchanged, moved (its place is certain), changed,
gone, or its document is gone. --fix writes NEW/ground_truth.jsonl with what moved at its new place; the rest keeps its
old values, its text, and a key "unresolved" for a person to correct. Exit code 1 if there is something to correct.
"""

from __future__ import annotations

import argparse
import json
import shlex
from typing import Any

from ablate.dataset import manifest, path
from ablate.dataset.drift import CERTAIN, MOVED, UNCHANGED, Drift, Passage, Unit, drift
from ablate.dataset.renewal import renew, shortened, strangers
from ablate.types import Span


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("old", metavar="OLD", help="folder of a dataset with ground_truth.jsonl")
    parser.add_argument("new", metavar="NEW", help="folder with the new corpus.jsonl")
    parser.add_argument("--fix", action="store_true", help="write NEW/ground_truth.jsonl, and copy what else NEW lacks")
    parser.add_argument("--json", action="store_true", help="print every unit as JSON")


def main(args: argparse.Namespace) -> int:
    """Print the difference, and write what is certain if asked to; 1 if something is left for a person."""
    found = drift(path(args.old), path(args.new))
    written = renew(found) if args.fix else ()
    judged = {name: (count, first) for name, count, first in strangers(found.new)} if args.fix else {}
    if args.json:
        print(json.dumps(data(found, written) | {"judgments_without_document": judged}, ensure_ascii=False, indent=1))
        return int(bool(found.unresolved))
    print("\n".join([*summary(found), *(line for unit in found.units for line in shown(unit))]))
    if args.fix:
        print(f"written to {found.new}: {', '.join(written) or 'nothing, it is all there already'}")
        for name, (count, first) in judged.items():
            print(f'{name}: {count} judgments of documents that the new corpus lacks (first "{first}"): remove them')
        print(advice(found))
    return int(bool(found.unresolved))


def summary(found: Drift) -> list[str]:
    """The documents and the units, counted by what has become of them."""
    documents = ", ".join(f"{count} {state}" for state, count in found.documents.items())
    queries = len({unit.query for unit in found.units})
    counts = [f"  {state:<14}{count:>7}" for state, count in found.counts.items()]
    return [f"documents: {documents}", f"evidence: {len(found.units)} units of {queries} queries", *counts]


def shown(unit: Unit) -> list[str]:
    """A unit that is not as it was: where it stood, and each of its passages before and now."""
    if unit.state == UNCHANGED and not unit.remark:
        return []
    remark = f" ({unit.remark})" if unit.remark else ""
    lines = [f'\nquery "{unit.query}", {unit.key}, document "{unit.document}": {unit.state}{remark}']
    for passage in unit.passages:
        if passage.state == UNCHANGED and unit.state != MOVED:
            continue
        lines.append(f"  was {spot(passage.span)} {json.dumps(shortened(passage.text), ensure_ascii=False)}")
        if passage.place is not None:
            lines.append(f"  now {spot(passage.place)}{said(passage)}")
        elif passage.near is not None:
            like = f"{passage.similarity:.0%} alike" if passage.similarity is not None else ""
            lines.append(f"  closest {spot(passage.near)} {like}{said(passage)}")
            lines.append(f"      {json.dumps(shortened(passage.now), ensure_ascii=False)}")
    return lines


def spot(span: Span | None) -> str:
    return f"[{span.start}:{span.end}]" if span else "[?]"


def said(passage: Passage) -> str:
    return f": {passage.remark}" if passage.remark else ""


def advice(found: Drift) -> str:
    """What to do next."""
    parent = f" --parent {shlex.quote(str(found.old))}" if manifest.known(found.old) else ""
    freeze = f"python -m ablate dataset freeze {shlex.quote(str(found.new))}{parent}"
    if not found.unresolved:
        return f"nothing is left to correct; next: {freeze}"
    queries = len({unit.query for unit in found.unresolved})
    return (
        f'{len(found.unresolved)} units of {queries} queries carry the key "unresolved": correct each and delete the '
        f"key, or leave these queries out: {freeze} --exclude-unresolved"
    )


def data(found: Drift, written: tuple[str, ...]) -> dict[str, Any]:
    """Everything as plain data; offsets are null where no place is certain."""
    return {
        "old": str(found.old),
        "new": str(found.new),
        "documents": dict(found.documents),
        "counts": found.counts,
        "unresolved": len(found.unresolved),
        "written": list(written),
        "units": [
            {
                "query": unit.query,
                "unit": unit.key,
                "document": unit.document,
                "new_document": unit.now,
                "state": unit.state,
                "certain": unit.state in CERTAIN,
                "remark": unit.remark,
                "spans": [row(passage) for passage in unit.passages],
            }
            for unit in found.units
        ],
    }


def row(passage: Passage) -> dict[str, Any]:
    return {
        "state": passage.state,
        "old": list(passage.span) if passage.span else None,
        "text": passage.text,
        "new": list(passage.place) if passage.place else None,
        "closest": list(passage.near) if passage.near else None,
        "new_text": passage.now,
        "similarity": passage.similarity,
        "remark": passage.remark,
    }
