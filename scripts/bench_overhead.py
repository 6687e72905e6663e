"""How much longer a cold run of baseline and reranker takes than the model calls that it cannot avoid.

    python scripts/bench_overhead.py path/to/hotpot200

Ours is the whole process, from an empty workspace to the printed table, with latency=off and tracking=off. The bare
side is a loop around the models, in a process of its own and timed from the first call to the last: every unique text
encoded once in batches of equal token count, every unique pair scored once. Both run in turn, bare first and last.
The bare scores must equal ours before anything is said about time.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

OVERRIDES = ["chunker=whole", "latency=off", "tracking=off", "+variant=reranker"]
BARE = "--bare"
BATCH = 32  # the library's own default
CHECKED = 200  # pairs whose bare scores are held against ours


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("dataset", type=Path, help="a folder with corpus.jsonl and queries.jsonl")
    parser.add_argument(BARE, type=Path, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.bare:
        print(json.dumps(bare(args.bare)))
        return
    with tempfile.TemporaryDirectory() as made:
        warm = Path(made) / "warm"
        cold(args.dataset, warm)  # its rankings say which pairs are needed; it also warms the file cache
        work = Path(made) / "work.json"
        work.write_text(json.dumps(needed(warm)), encoding="utf-8")
        before = in_process(args.dataset, work)
        ours = cold(args.dataset, Path(made) / "cold")
        after = in_process(args.dataset, work)
    assert before["scores"] == after["scores"], "the bare scores differ from one process to the next"
    assert before["scores"][:CHECKED] == before["expected"], "the bare scores differ from ours"
    model_calls = (before["seconds"] + after["seconds"]) / 2
    print(f"texts {before['texts']}, pairs {before['pairs']}, scores equal")
    print(f"bare model calls {before['seconds']:.1f} s and {after['seconds']:.1f} s, cold run {ours:.1f} s")
    print(f"ratio {ours / model_calls:.3f}")


def cold(dataset, workspace):
    """Seconds of one whole command in an empty workspace."""
    workspace.mkdir()
    environment = {**os.environ, "ABLATE_WORKSPACE": str(workspace)}
    command = [sys.executable, "-m", "ablate", f"dataset.dir={dataset.resolve()}", *OVERRIDES]
    start = time.perf_counter()
    subprocess.run(command, env=environment, check=True, capture_output=True)
    return time.perf_counter() - start


def needed(workspace):
    """The unique texts and pairs of a run."""
    from ablate.chunker import Whole
    from ablate.dataset import Folder
    from ablate.tokens import Words

    records = {path.parent.name.split("-")[0]: path.parent for path in workspace.glob("experiments/runs/*/*/run.json")}
    settings = _config(records["reranker"])
    dataset = Folder(**{key: value for key, value in settings["dataset"].items() if key != "_target_"}).read()
    words, chunker = Words(), Whole()
    texts = {chunk.document.id: chunk.reading for document in dataset.documents for chunk in chunker(document, words)}
    queries = {query.id: query.text for query in dataset.queries}
    first = settings["reranker"]["first"]
    pairs = {}
    for line in (records["reranker"] / "ranking.jsonl").read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        for hit in row["hits"][:first]:
            pairs[queries[row["query_id"]], texts[hit["doc_id"]]] = None
    return {
        "documents": list(dict.fromkeys(texts.values())),
        "queries": list(dict.fromkeys(queries.values())),
        "pairs": list(pairs),
        "embedder": settings["embedder"],
        "reranker": settings["reranker"],
    }


def _config(folder):
    import yaml

    return yaml.safe_load((folder / "config.yaml").read_text(encoding="utf-8"))


def in_process(dataset, work):
    done = subprocess.run(
        [sys.executable, __file__, str(dataset), BARE, str(work)], check=True, capture_output=True, text=True
    )
    return json.loads(done.stdout.splitlines()[-1])


def bare(work):
    """Time the model calls alone; loading the models and sorting the texts by length are not counted."""
    import numpy as np
    import onnxruntime
    import sentence_transformers
    import tokenizers

    from ablate import weights
    from ablate.reranker import OnnxCrossEncoder

    wanted = json.loads(work.read_text(encoding="utf-8"))
    encoder = sentence_transformers.SentenceTransformer(
        str(weights.find(wanted["embedder"]["model"], "torch").path), device="cpu", local_files_only=True
    )
    groups = {}
    for text in [*wanted["documents"], *wanted["queries"]]:
        length = min(len(encoder.tokenizer(text, truncation=True)["input_ids"]), encoder.max_seq_length)
        groups.setdefault(length, []).append(text)
    batches = [group[start : start + BATCH] for group in groups.values() for start in range(0, len(group), BATCH)]

    folder = weights.find(wanted["reranker"]["model"], "onnx").path
    tokenizer = tokenizers.Tokenizer.from_file(str(next(folder.rglob("tokenizer.json"))))
    tokenizer.no_padding()
    tokenizer.enable_truncation(wanted["reranker"]["max_tokens"])
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = os.cpu_count() or 1
    session = onnxruntime.InferenceSession(
        str(next(folder.rglob("*.onnx"))), options, providers=["CPUExecutionProvider"]
    )

    start = time.perf_counter()
    for batch in batches:
        encoder.encode(batch, batch_size=BATCH, show_progress_bar=False)
    scores = []
    for question, text in wanted["pairs"]:
        tokens = tokenizer.encode(question, text)
        inputs = {"input_ids": tokens.ids, "attention_mask": tokens.attention_mask, "token_type_ids": tokens.type_ids}
        logits = session.run(None, {name: np.array([ids], np.int64) for name, ids in inputs.items()})[0]
        scores.append(float(logits.reshape(-1)[0]))
    seconds = time.perf_counter() - start
    settings = {key: value for key, value in wanted["reranker"].items() if key != "_target_"}
    return {
        "seconds": seconds,
        "texts": sum(map(len, batches)),
        "pairs": len(scores),
        "scores": scores,
        "expected": OnnxCrossEncoder(**settings).scores(wanted["pairs"][:CHECKED]).tolist(),
    }


if __name__ == "__main__":
    main()
