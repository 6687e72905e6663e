"""What a sweep costs beside the model calls that it cannot avoid, and what it costs when all of them are kept.

    python scripts/bench_sweep.py                            # every variant on the demo
    python scripts/bench_sweep.py --variants bm25,hybrid dataset=sample

(a) A cold sweep, from an empty workspace to the printed table, latency=off and tracking=off, against the bare calls:
every unique text read once by its encoder and every unique pair once by its reranker, in a process of its own, timed
from call to call with the models loaded. What the bare calls give must be what the sweep has kept, bit for bit, and
the sweep must have kept nothing else; only then is anything said about time.
(b) The same sweep again, with the indexes of (a), no run recorded, and into an empty MLflow store.
(c) One variant of it again, with its baseline recorded and the store in place.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

BARE = "--bare"
TIMES = 3
"""How often (c) is repeated; the median counts."""


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("overrides", nargs="*", help="of the command, such as dataset.dir=path/to/folder")
    parser.add_argument("--variants", default="glob(*)", help="as Hydra reads them: a,b or glob(*) (default)")
    parser.add_argument("--single", default="hybrid", help="the variant of (c), one of those (default: hybrid)")
    parser.add_argument(BARE, type=Path, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.bare:
        print(json.dumps(bare(args.bare)))
        return
    sweep = ["-m", f"+variant={args.variants}", "latency=off", *args.overrides]
    with tempfile.TemporaryDirectory() as made:
        cold, warm = Path(made) / "cold", Path(made) / "warm"
        ours = timed(cold, *sweep, "tracking=off")
        calls = json.loads(run([__file__, BARE, str(cold)], os.environ).splitlines()[-1])
        warm.mkdir()
        (cold / "indexes").rename(warm / "indexes")
        again = timed(warm, *sweep)
        singles = sorted(single(warm, args.single, args.overrides) for _ in range(TIMES))
    for call in calls:
        print(f"    {call['what']}: {call['count']} in {call['seconds']:.1f} s, equal")
    unavoidable = sum(call["seconds"] for call in calls)
    print(f"(a) cold sweep {ours:.1f} s, bare model calls {unavoidable:.1f} s, ratio {ours / unavoidable:.3f}")
    print(f"(b) the same sweep again, into an empty MLflow store: {again:.1f} s")
    print(f"(c) {args.single} alone, all its model work kept: {singles[TIMES // 2]:.2f} s")


def timed(workspace, *words):
    """Seconds of one whole command."""
    workspace.mkdir(exist_ok=True)
    start = time.perf_counter()
    run(["-m", "ablate", *words], {**os.environ, "ABLATE_WORKSPACE": str(workspace)})
    return time.perf_counter() - start


def run(words, environment):
    """What a command prints; what it says on the way is shown."""
    return subprocess.run(
        [sys.executable, *words], env=environment, check=True, stdout=subprocess.PIPE, text=True
    ).stdout


def single(workspace, variant, overrides):
    """Seconds of one variant whose record was removed."""
    (record,) = workspace.glob(f"experiments/runs/*/{variant}-*")
    shutil.rmtree(record)
    return timed(workspace, f"+variant={variant}", "latency=off", *overrides)


def bare(workspace):
    """The bare calls that the runs of a workspace needed, each compared with what is kept there."""
    texts, pairs = needed(workspace)
    return [calls(workspace, *work) for work in (*texts.values(), *pairs.values())]


def needed(workspace):
    """By revision, an encoder and its unique texts as documents and as queries; and a reranker and its unique pairs."""
    from ablate.config import settings
    from ablate.dataset.once import read_once
    from ablate.pipeline import chunked
    from ablate.records import find
    from ablate.workspace import Workspace

    encoders, rerankers = {}, {}
    for record in find(Workspace(workspace)):
        chosen, models = settings(record.config), record.facts["models"]
        dataset = read_once(chosen.dataset)
        chunks = [chunk for piece in chunked(chosen.chunker, dataset, chosen.tokens) for chunk in piece]
        questions = {query.id: query.text for query in dataset.queries}
        if "embedder" in models:
            kinds = encoders.setdefault(models["embedder"], (chosen.embedder, {"documents": {}, "queries": {}}))[1]
            kinds["documents"] |= {chunk.reading: None for chunk in chunks}
            kinds["queries"] |= dict.fromkeys(questions.values())
        if "reranker" in models:
            handed = {located(chunk.handed): chunk.handed.reading for chunk in chunks}
            unique = rerankers.setdefault(models["reranker"], (chosen.reranker, {"pairs": {}}))[1]["pairs"]
            for line in (record.folder / "ranking.jsonl").read_text(encoding="utf-8").splitlines():
                row = json.loads(line)
                for hit in row["hits"][: chosen.reranker.first]:
                    unique[questions[row["query_id"]], handed[hit["doc_id"], hit["start"], hit["end"]]] = None
    return encoders, rerankers


def located(chunk):
    return chunk.document.id, chunk.start, chunk.end


def calls(workspace, component, kinds):
    """Time one model on all of its work; loading it is not counted."""
    from ablate.shelf import shelves
    from ablate.store import stored

    work = {kind: list(items) for kind, items in kinds.items() if items}
    component.read(next(iter(work.values()))[:1])
    given, start = {}, time.perf_counter()
    for kind, items in work.items():
        given[kind] = component.read(items, as_queries=True) if kind == "queries" else component.read(items)
    seconds = time.perf_counter() - start
    kept = stored(component, workspace / "indexes")
    for kind, items in work.items():
        found = {
            "documents": lambda texts: (kept.documents(texts), kept.seen(texts)),
            "queries": lambda texts: (kept.queries(texts), kept.seen(texts, as_queries=True)),
            "pairs": lambda pairs: (kept.scores(pairs), kept.truncated(pairs)),
        }[kind](items)
        same = [was.tobytes() == now.tobytes() for was, now in zip(found, given[kind], strict=True)]
        assert all(same), f"{kept.model}: {kind} differ from what is kept"
    count = sum(map(len, work.values()))
    assert kept.tally == {"computed": 0, "reused": count}, f"{kept.model}: {kept.tally}, needed {count}"
    (shelf,) = [shelf for shelf in shelves(workspace / "indexes") if shelf.revision == kept.revision]
    assert shelf.check() == (count, []), f"{kept.model}: {shelf.check()[0]} kept, {count} needed"
    return {"what": f"{type(component).__name__} {kept.model}", "count": count, "seconds": seconds}


if __name__ == "__main__":
    main()
