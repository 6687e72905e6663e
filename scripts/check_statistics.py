"""How often words and intervals are wrong in studies of which the truth is known, and whether that is as promised.

    python scripts/check_statistics.py                                   # 1,000 studies of every kind
    python scripts/check_statistics.py --studies 200 --dataset path/to/folder

(a) Ten variants that do nothing: in what share of studies any of them is called better, worse or mixed.
(b) Variants that gain or lose just the margin: what share is called equivalent or, where they lose, not worse.
(c) As many queries as are promised to find an effect in 80 of 100 studies, alone and among ten: what share finds it.
(d) The truth: in what share of studies it lies in the interval that is shown, and in that of the inverted test alone.
(e) Variants that do nothing, but move queries with the documents and texts that these share, in a dataset as it is:
what share is called better or worse where every query stands alone, in clusters as they are made, and were all that
share anything one cluster. The effect of a document makes up the share that is named of what moves a query.

Behind every share stands its standard error; with more than two of them beyond what is promised the exit code is 1.
"""

import argparse
import random
import sys
from collections import Counter
from fractions import Fraction
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parents[1] / folder) for folder in ("src", "tests")]

from studies import ALPHA, EFFECTS, INTERVALS, NULLS, SAME, enough, error, found  # noqa: E402

from ablate.dataset import Folder  # noqa: E402
from ablate.statistics import Differences, Word, clustered, shared, sign_flip  # noqa: E402
from ablate.statistics.power import POWER  # noqa: E402

DEMO = "pkg://ablate/data/demo"
SHARES = ((0.0, 0.0), (0.3, 0.0), (0.6, 0.0), (0.9, 0.0), (0.3, 0.3))
"""How much of what moves a query goes with its documents, and how much with its text."""

LARGEST = 600


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--studies", type=int, default=1000, help="of every kind (default: 1000)")
    parser.add_argument("--dataset", default=DEMO, help="a folder for (e) (default: the demo)")
    args = parser.parse_args()
    kept = [*errors(args.studies), *same(args.studies), *effects(args.studies), *intervals(args.studies)]
    ties(args.dataset, args.studies)
    print(f"{kept.count(False)} of {len(kept)} promises are not kept")
    sys.exit(not all(kept))


def rare(what, count, of, share=ALPHA):
    return told(what, count / of, of, share, count / of <= share + 2 * error(share, of), "at most")


def often(what, count, of, share):
    return told(what, count / of, of, share, count / of >= share - 2 * error(share, of), "at least")


def told(what, seen, of, share, kept, how):
    line = f"    {what:<66} {seen:.3f} +- {error(seen, of):.3f}, {how} {share:g}"
    print(line if kept else f"{line}   NOT KEPT", flush=True)
    return kept


def errors(studies):
    print("(a) studies of ten variants that do nothing, with a false word")
    for name, null in NULLS.items():
        yield rare(name, null.false_families(studies), studies)


def same(studies):
    print("(b) variants that gain or lose just the margin, called the same")
    for name, change in SAME.items():
        words = change.words(studies)
        yield rare(f"equivalent: {name}", words[Word.EQUIVALENT], studies)
        if change.mean < 0:
            yield rare(f"not worse: {name}", words[Word.NOT_WORSE], studies)


def effects(studies):
    print("(c) effects that are found")
    for name, (moves, size) in EFFECTS.items():
        for variants in (1, 10):
            change = enough(moves, size, ALPHA / variants)
            what = f"{name}, {change.n} queries, {float(change.mean):+.3f}, one of {variants}"
            yield often(what, found(change, studies, variants), studies, POWER)


def intervals(studies):
    print("(d) intervals that hold the truth")
    for name, change in INTERVALS.items():
        shown, inverted = change.held(studies)
        yield often(f"{name} (inverted test alone: {inverted / studies:.3f})", shown, studies, 1 - ALPHA)


def ties(folder, studies):
    """Nothing is promised where an effect of all documents of a query counts; it is shown what clusters are worth."""
    data = Folder(folder, "test", "none", 1, "nobody", title=True, subset=None).read()
    asked = [query for query in data.queries if query.id in data.truths and data.truths[query.id].alternatives]
    asked = asked[:: -(-len(asked) // LARGEST)]
    keys = {query.id: shared(query, data.truths[query.id]) for query in asked}
    kinds = {"alone": {query: query for query in keys}, "as they are": clustered(data), "all that share": chained(keys)}
    counts = ", ".join(f"{len({labels[query] for query in keys})} {name}" for name, labels in kinds.items())
    print(f"(e) {data.name}: {len(keys)} queries; clusters: {counts}; false words of variants that do nothing")
    for documents, texts in SHARES:
        false = Counter()
        for seed in range(studies):
            moved = moves(keys, documents, texts, random.Random(seed))
            for name, labels in kinds.items():
                pair = Differences(tuple(moved.values()), tuple(labels[query] for query in moved), 1)
                false[name] += sign_flip(pair, draws=999, work=20_000).p() <= ALPHA
        rates = {name: false[name] / studies for name in kinds}
        said = ", ".join(f"{name} {rate:.3f} +- {error(rate, studies):.3f}" for name, rate in rates.items())
        print(f"    documents {documents:.1f}, texts {texts:.1f}: {said}", flush=True)


def moves(keys, documents, texts, chosen):
    """Query -> gain, loss or nothing, about a third of all: by lots of its documents, of its text, and of its own."""
    lots = {key: chosen.gauss(0, 1) for key in sorted({key for held in keys.values() for key in held})}
    found = {}
    for query, held in keys.items():
        mine = [lots[key] for key in sorted(held) if key[0] == "document"] or [chosen.gauss(0, 1)]
        text = sum(lots[key] for key in sorted(held) if key[0] == "text")
        own = (1 - documents - texts) ** 0.5 * chosen.gauss(0, 1)
        pull = documents**0.5 * sum(mine) / len(mine) ** 0.5 + texts**0.5 * text + own
        found[query] = Fraction((pull > 1) - (pull < -1))
    return found


def chained(keys):
    """Query -> its cluster, were all that share anything tied together, and those that share anything with these."""
    first, above = {}, {query: query for query in keys}

    def top(query):
        while above[query] != query:
            query = above[query]
        return query

    for query, held in keys.items():
        for key in held:
            above[top(query)] = top(first.setdefault(key, query))
    return {query: top(query) for query in keys}


if __name__ == "__main__":
    main()
