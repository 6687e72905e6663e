"""begin a dataset: a success contract, an annotation guide and a small example, in English or Russian

No file that exists is touched. The example (corpus, queries, ground truth) is valid as it is; put your own in its
place.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from ablate.dataset.starter import LANGUAGES, start


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("folder", metavar="DIR", type=Path, help="a new folder, or one that lacks some of the files")
    parser.add_argument("--lang", choices=LANGUAGES, default="en", help="language of the texts (default en)")


def main(args: argparse.Namespace) -> int:
    """Write what is missing and say what became of each file."""
    folder = args.folder.expanduser()
    for name, became in start(folder, args.lang).items():
        print(f"{folder / name}: {became}")
    print(f"next: read {folder / 'GUIDE.md'}, then `python -m ablate dataset validate {folder}`")
    return 0
