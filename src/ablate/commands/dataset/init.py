"""begin a dataset: a success contract, an annotation guide and a small example, in English or Russian

No file that exists is touched. The example (corpus, queries, ground truth) is valid as it is; put your own in its
place.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from ablate.dataset.starter import LANGUAGES, start

LINES = (
    "a question is a line of queries.jsonl, and what answers it a line of ground_truth.jsonl:",
    '  {"_id": "q1", "text": "How long is the warranty?", "principals": ["public"]}',
    '  {"query_id": "q1", "alternatives": [[{"doc_id": "an _id of corpus.jsonl", "quote": "words of its text"}]]}',
)


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("folder", metavar="DIR", type=Path, help="a new folder, or one that lacks some of the files")
    parser.add_argument("--lang", choices=LANGUAGES, default="en", help="language of the texts (default en)")


def main(args: argparse.Namespace) -> int:
    """Write what is missing and say what became of each file."""
    folder = args.folder.expanduser()
    for name, became in start(folder, args.lang).items():
        print(f"{folder / name}: {became}")
    lacking = not (folder / "queries.jsonl").exists()
    own = f"write your questions into {folder}, then " if lacking else ""
    if lacking:
        print("\n".join(LINES))
    print(f"next: read {folder / 'GUIDE.md'}, then {own}`python -m ablate dataset validate {folder}`")
    return 0
