"""`dataset validate` beside a bare `json.loads` of every line: how many times as long, and how much memory.

    python scripts/bench_validate.py [--megabytes 500] [--kilobytes 2] [--huge 20] [--rounds 3] [--frozen]

A corpus is written to a temporary folder, half of it Cyrillic: documents of `--kilobytes` on average, with metadata,
dates and an ACL, and then some of `--huge` megabytes, which are a tenth of it. Both sides run in processes of their
own, in turns; the median of a round's ratios is shown, and the most memory that a validation took. It fails if the
count of documents that is printed is wrong, or if a limit is broken: 4 times the bare loop, 1 GB.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
RATIO, BYTES = 4.0, 10**9
ASKED = 200
"""Queries, each with a passage of one document as its evidence."""

RUSSIAN = "поставка договор возврат товара срок склад клиент правила оплата доставка не позднее чем за пять дней"
ENGLISH = "policy within days customer order price refund item shipping rule exception contract not later than five"

BARE = "import json, sys\nprint(sum(json.loads(line) is not None for line in open(sys.argv[1], 'rb')))"
VALIDATE = (
    "import sys\nfrom ablate.__main__ import main\nsys.exit(main(['dataset', 'validate', sys.argv[1], '--json']))"
)


def documents(megabytes: float, kilobytes: float, huge: float) -> Iterator[dict[str, Any]]:
    """Documents until their texts have so many megabytes."""
    rng, written, number = random.Random(1), 0.0, 0
    while written < megabytes:
        large = huge if written > 0.9 * megabytes else 0.0
        size = large * 1e6 if large else kilobytes * 1000 * (0.5 + rng.random())
        russian = number % 2 == 0
        words = (RUSSIAN if russian else ENGLISH).split()
        mean = len(" ".join(words).encode()) / len(words)
        yield {
            "_id": f"doc-{number:07}",
            "title": f"{words[number % len(words)]} {number}",
            "text": " ".join(rng.choices(words, k=max(8, int(size / mean)))) + ".\n",
            "metadata": {
                "lang": "ru" if russian else "en",
                "page": number % 90,
                "valid_from": f"20{number % 9 + 10}-03-01",
            },
            "acl": {"allow": ["public", f"group:{number % 50}"], "deny": []},
        }
        written += size / 1e6
        number += 1


def write(folder: Path, megabytes: float, kilobytes: float, huge: float, frozen: bool) -> int:
    """A valid dataset; the number of its documents."""
    count = 0
    with (folder / "corpus.jsonl").open("w", encoding="utf-8", newline="\n") as file:
        for row in documents(megabytes, kilobytes, huge):
            file.write(json.dumps(row, ensure_ascii=False) + "\n")
            count += 1
    units = [{"doc_id": f"doc-{count * n // ASKED:07}", "start": 0, "end": 30} for n in range(ASKED)]
    queries = [{"_id": f"q{n}", "text": "Какой срок?"} for n in range(ASKED)]
    truths = [{"query_id": f"q{n}", "alternatives": [[unit]]} for n, unit in enumerate(units)]
    for name, rows in (("queries.jsonl", queries), ("ground_truth.jsonl", truths)):
        text = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
        (folder / name).write_text(text, encoding="utf-8")
    if frozen:
        digests = {}
        for path in sorted(folder.iterdir()):
            with path.open("rb") as opened:
                digests[path.name] = hashlib.file_digest(opened, "sha256").hexdigest()
        manifest = {"version": "1", "files": digests, "counts": {}, "created": "2025-06-01", "parent": None}
        (folder / "manifest.json").write_text(json.dumps(manifest), encoding="utf-8")
    return count


def timed(code: str, argument: Path) -> tuple[str, float, int]:
    """What a process printed, its seconds, and its peak memory in bytes."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src"), "PYTHONUTF8": "1"}
    started = time.perf_counter()
    process = subprocess.Popen([sys.executable, "-c", code, str(argument)], stdout=subprocess.PIPE, env=environment)
    assert process.stdout is not None
    out = process.stdout.read().decode()
    _, status, usage = os.wait4(process.pid, 0)
    seconds = time.perf_counter() - started
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        sys.exit(f"a process ended with {process.returncode}:\n{out}")
    return out, seconds, usage.ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--megabytes", type=float, default=500)
    parser.add_argument("--kilobytes", type=float, default=2)
    parser.add_argument("--huge", type=float, default=20)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--frozen", action="store_true", help="with a manifest, so that every file is hashed")
    options = parser.parse_args()
    ratios, peak = [], 0
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        count = write(folder, options.megabytes, options.kilobytes, options.huge, options.frozen)
        size = (folder / "corpus.jsonl").stat().st_size / 1e6
        print(f"corpus.jsonl: {count} documents, {size:.0f} MB{', frozen' * options.frozen}")
        for _ in range(options.rounds):
            printed, bare, _ = timed(BARE, folder / "corpus.jsonl")
            said, seconds, memory = timed(VALIDATE, folder)
            found = json.loads(said)["counts"]["documents"]
            if not int(printed) == found == count:
                sys.exit(f"{count} documents were written, {printed.strip()} lines read, {found} validated")
            ratios.append(seconds / bare)
            peak = max(peak, memory)
            print(f"  validate {seconds:6.2f} s, bare {bare:6.2f} s, {ratios[-1]:4.2f} times, {memory / 1e6:5.0f} MB")
    ratio = statistics.median(ratios)
    print(f"validate: {ratio:.2f} times a bare json.loads (at most {RATIO:g}), {peak / 1e6:.0f} MB at most (1000)")
    if ratio > RATIO or peak > BYTES:
        sys.exit("a limit is broken")


if __name__ == "__main__":
    main()
