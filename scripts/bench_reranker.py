"""How much longer a reranker takes than the bare loop around its model: python scripts/bench_reranker.py

The bare loop makes one call a pair and gives each call all processors, as onnxruntime does by itself. Ours gives a call
one thread and makes as many calls at once as there are processors. Both include the tokenizer; loading the model does
not count. The scores must be equal before anything is said about time. Exit code 1 above the limit.
"""

import json
import os
import random
import statistics
import sys
import time
from importlib.resources import files
from pathlib import Path

import numpy as np
import onnxruntime
import tokenizers

from ablate import weights
from ablate.reranker import OnnxCrossEncoder

PAIRS, ROUNDS, LIMIT = 200, 5, 1.1
LETTERS = 700  # of a text; about the length of a chunk of 128 tokens
RERANKER = OnnxCrossEncoder("cross-encoder/ms-marco-MiniLM-L-12-v2", 20, 512)


def main():
    pairs = drawn(random.Random(0))
    bare = bare_loop()
    assert bare(pairs) == ours(pairs), "the bare scores differ from ours"
    ratios = [seconds(ours, pairs) / seconds(bare, pairs) for _ in range(ROUNDS)]
    ratio = statistics.median(ratios)
    print(f"pairs {PAIRS}, processors {os.cpu_count()}, scores equal")
    print(f"ratio {ratio:.3f} (of {', '.join(f'{each:.3f}' for each in ratios)}), at most {LIMIT}")
    sys.exit(ratio > LIMIT)


def drawn(draw):
    """Queries of the demo with pieces of its documents."""
    folder = Path(str(files("ablate") / "data" / "demo"))
    texts = [document["text"] for document in rows(folder / "corpus.jsonl")]
    queries = [query["text"] for query in rows(folder / "queries.jsonl")]
    pairs = []
    for text in draw.choices(texts, k=PAIRS):
        start = draw.randrange(max(1, len(text) - LETTERS))
        pairs.append((draw.choice(queries), text[start : start + LETTERS]))
    return pairs


def rows(file):
    return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]


def ours(pairs):
    return RERANKER.read(pairs)[0].tolist()


def bare_loop():
    found = weights.find(RERANKER.model, "onnx")
    tokenizer = tokenizers.Tokenizer.from_file(str(found.path / "tokenizer.json"))
    tokenizer.no_padding()
    tokenizer.enable_truncation(RERANKER.max_tokens)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = os.cpu_count() or 1
    session = onnxruntime.InferenceSession(str(found.file), options, providers=["CPUExecutionProvider"])

    def loop(pairs):
        scores = []
        for pair in pairs:
            tokens = tokenizer.encode(*pair)
            inputs = {
                "input_ids": np.array([tokens.ids], np.int64),
                "attention_mask": np.array([tokens.attention_mask], np.int64),
                "token_type_ids": np.array([tokens.type_ids], np.int64),
            }
            scores.append(float(session.run(None, inputs)[0][0, 0]))
        return scores

    return loop


def seconds(work, pairs):
    start = time.perf_counter()
    work(pairs)
    return time.perf_counter() - start


if __name__ == "__main__":
    main()
