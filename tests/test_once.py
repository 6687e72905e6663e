"""Work is done once: a text is encoded once a model, a pair scored once, and only what changed is done again."""

import json
import os
import subprocess
import sys
from pathlib import Path

import counting
import pytest
import tiny_models
from cli import ablate, facts, put, runs, small, workshop

from ablate import study

QUIET = ("--config-dir", "conf", "embedder=encoder", "tracking=off", "latency=off")
ROOT = Path(__file__).parents[1]
HEAVY = ("torch", "transformers", "sentence_transformers", "onnxruntime")

VARIANTS = {
    "words": "defaults:\n  - override /retriever: bm25",
    "both": "defaults:\n  - override /retriever: hybrid",
    "halves": "chunker:\n  size: 5\n  overlap: 1",
    "pairs": "defaults:\n  - override /reranker: scorer",
    "fewer": "defaults:\n  - override /reranker: scorer\nreranker:\n  first: 3",
    "late": "defaults:\n  - override /access: postfilter",
    "other": "embedder:\n  model: other",
}


@pytest.fixture
def work(tmp_path, monkeypatch):
    folder = tmp_path / "отчёты и база"
    folder.mkdir()
    monkeypatch.setenv("JOURNAL", str(tmp_path / "journal"))
    workshop(folder, monkeypatch)
    put(folder / "conf", counting.CONF)
    for name, text in VARIANTS.items():
        put(folder / "conf/variant", {f"{name}.yaml": f"# @package _global_\n# ?\n{text}\n"})
    small(folder / "data")
    return folder


def run(*words):
    """One command as in a process of its own, and what it computed."""
    study.LINES.clear()
    before = len(counting.noted())
    said = ablate(*QUIET, f"dataset.dir={Path('data').absolute()}", *words)
    assert said.code == 0, said
    return counting.noted()[before:]


@pytest.mark.slow
def test_over_a_sweep_each_text_is_encoded_once_a_model_and_each_pair_scored_once(work):
    run("-m", "+variant=words,both,halves,pairs,fewer,late")
    texts, pairs = [*counting.noted("document"), *counting.noted("query")], counting.noted("pair")
    assert len(texts) == len(set(texts))
    assert len(pairs) == len(set(pairs)) == 4
    assert len(counting.noted("query")) == 2
    assert set(counting.noted("document")) == set(needed())
    assert run("-m", "+variant=words,both,halves,pairs,fewer,late", "rerun=true") == []
    assert run("+variant=other") == [*whole(), *counting.noted("query")[:2]], "another model has to read everything"


def whole():
    """What the baseline encodes: each document is one chunk."""
    rows = [json.loads(line) for line in Path("data/corpus.jsonl").read_text(encoding="utf-8").splitlines()]
    return [f"{row['title']}\n{row['text']}" if "title" in row else row["text"] for row in rows]


def needed():
    """The readings of all chunks, cut by hand: windows of 5 tokens that share one; a full stop is a token."""
    return [
        *whole(),
        "Правила\nОтпуск длится 28 календарных дней",
        "Правила\nдней в году.",
        "Remote work is allowed on",
        "on two days a week",
        "week.",
        "KANARIENVOGEL: the salaries of",
        "of the board.",
    ]


def test_after_one_document_was_edited_only_its_chunks_are_encoded_again(work):
    run("chunker.size=5", "chunker.overlap=1")
    corpus = work / "data/corpus.jsonl"
    text = corpus.read_text(encoding="utf-8")
    corpus.write_text(text.replace("two days a week.", "three days a week."), encoding="utf-8")
    truth = work / "data/ground_truth.jsonl"
    truth.write_text(truth.read_text(encoding="utf-8").replace("two days", "three days"), encoding="utf-8")
    assert run("chunker.size=5", "chunker.overlap=1") == ["on three days a week"]


CHANGES = {
    "chunker.size=5 chunker.overlap=1": ("document", "pair"),
    "embedder.model=other": ("document", "query"),
    "embedder.dimension=32": ("document", "query", "pair"),
    "reranker.model=other": ("pair",),
    "reranker.first=1": (),
    "retriever=bm25": (),
    "retriever=hybrid retriever.rrf_k=9": (),
    "access=postfilter": (),
    "k=1": (),
    "depth=7": (),
    "budget=100": (),
    "seed=3": (),
    "score.cutoffs=[2]": (),
    "dataset.title=false": ("document", "pair"),
}


@pytest.mark.parametrize("words", CHANGES)
def test_a_change_makes_what_depends_on_it_be_done_again_and_nothing_else(work, words):
    run("reranker=scorer")
    counting.forget()
    run("reranker=scorer", *words.split())
    done = {kind for kind in ("document", "query", "pair") if counting.noted(kind)}
    assert done <= set(CHANGES[words])
    assert done or not CHANGES[words]


def test_a_file_that_was_cut_costs_one_line_and_its_texts_are_encoded_again(work):
    run()
    (path,) = work.glob("indexes/vectors/*.sqlite")
    path.write_bytes(path.read_bytes()[:1000])
    study.LINES.clear()
    counting.forget()
    said = ablate(*QUIET, f"dataset.dir={work / 'data'}", "rerun=true")
    assert said.code == 0
    assert said.err.count(".sqlite") == 2, "the name of the file, and what it is called from now on"
    assert said.err.count("set aside") == 1
    assert len(counting.noted()) == 5
    rankings = {facts(folder)["fingerprints"]["ranking"] for folder in work.glob("experiments/runs/*/*/")}
    assert len(rankings) == 1


def measured(folder, *words):
    """A command in a process of its own: how it ended, what it said, and which heavy modules it had imported."""
    code = (
        "import sys\nfrom ablate.__main__ import main\n"
        f"code = main({list(words)!r})\n"
        f"print(code, *[name for name in {HEAVY} if name in sys.modules], file=sys.stderr)"
    )
    path = os.pathsep.join(str(ROOT / part) for part in ("src", "tests"))
    environment = {**os.environ, "PYTHONPATH": path, "PYTHONUTF8": "1"}
    done = subprocess.run([sys.executable, "-c", code], cwd=folder, env=environment, capture_output=True, text=True)
    return done.stderr.splitlines()


@pytest.mark.slow
def test_a_run_whose_work_is_all_kept_imports_no_model_library(work, tmp_path):
    encoder, scorer = tiny_models.embedder(tmp_path / "модель"), tiny_models.cross_encoder(tmp_path / "пары")
    put(work / "conf/variant", {"torch.yaml": "# @package _global_\n# ?\ndefaults:\n  - override /reranker: torch\n"})
    put(
        work / "conf",
        {
            "reranker/torch.yaml": f"_target_: ablate.reranker.CrossEncoder\nmodel: {scorer}\nfirst: 3\n"
            "max_tokens: null\n"
        },
    )
    words = ["--config-dir", "conf", f"embedder.model={encoder}", "tracking=off", "latency=off", "dataset.dir=data"]
    first = measured(work, *words, "+variant=torch")
    assert first[-1] == "0 torch transformers sentence_transformers"
    again = measured(work, *words, "+variant=torch", "rerun=true")
    assert again[-1] == "0", again
    assert [line for line in again if line.endswith(": running")] == [
        "ablate: baseline: running",
        "ablate: torch: running",
    ]
    base = {facts(folder)["fingerprints"]["ranking"] for folder in work.glob("experiments/runs/*/torch-*/")}
    assert len(base) == 1


@pytest.mark.slow
def test_a_run_of_the_default_models_whose_work_is_all_kept_imports_no_model_library_and_is_sent(work):
    words = ["dataset=sample", "latency=off", "+variant=reranker"]
    assert measured(work, *words)[-1].startswith("0 torch")
    again = measured(work, *words, "rerun=true")
    assert again[-1] == "0", again
    assert all((folder / "tracking.json").exists() for folder in runs().values())
