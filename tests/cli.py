"""The command line without models: a folder to work in, what a command said, and components that count or break."""

import contextlib
import io
import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from fakes import HashEmbedder

from ablate import __main__
from ablate.types import ranking

QUIET = ("--config-dir", "conf", "dataset=sample", "embedder=hash", "tracking=off", "latency=off")
"""What replaces the model, sends nothing and times nothing."""

ENCODED: list[str] = []
"""Every text that `Counted` encoded, in order."""

CONF = {
    "embedder/hash.yaml": "_target_: fakes.HashEmbedder\ndimension: 16\n",
    "embedder/counted.yaml": "_target_: cli.Counted\ndimension: 16\n",
    "reranker/reverse.yaml": "_target_: cli.Reverse\nfirst: 20\n",
    "reranker/broken.yaml": "_target_: cli.Broken\n",
    "reranker/stop.yaml": "_target_: cli.Stop\n",
    "reranker/leave.yaml": "_target_: cli.Leave\n",
}
"""A user's own configs."""


@dataclass(frozen=True)
class Said:
    """How a command ended and what it printed."""

    code: int
    out: str
    err: str


@dataclass(frozen=True)
class Counted(HashEmbedder):
    """Notes what it encodes, and says what it is, so that its vectors are kept."""

    revision = "one"

    def read(self, texts, as_queries=False):
        return self.documents(texts), np.array([len(text) for text in texts])

    def documents(self, texts):
        ENCODED.extend(texts)
        return super().documents(texts)

    queries = documents


@dataclass(frozen=True)
class Reverse:
    """A reranker that scores a pair by its letters, and turns many rankings round."""

    first: int

    def __call__(self, query, hits):
        head = [hit._replace(score=float(len(hit.chunk.text))) for hit in hits[: self.first]]
        return [*ranking(head), *hits[self.first :]]


@dataclass(frozen=True)
class Broken:
    """A reranker that fails on its first query."""

    def __call__(self, query, hits):
        raise ValueError("весы сломаны")


@dataclass(frozen=True)
class Unknown:
    """A reranker that cannot say what it is."""

    first = 20

    @property
    def revision(self):
        raise ValueError("ревизия неизвестна")

    def read(self, pairs):
        return np.zeros(len(pairs)), np.zeros(len(pairs), np.bool_)


@dataclass(frozen=True)
class Stop:
    """A reranker during whose work the user presses Ctrl-C."""

    def __call__(self, query, hits):
        raise KeyboardInterrupt


@dataclass(frozen=True)
class Leave:
    """A reranker that ends the process instead of raising an error."""

    def __call__(self, query, hits):
        raise SystemExit(3)


def workshop(folder, monkeypatch):
    """`folder` as the place where commands run, with the user's own configs in `conf`."""
    monkeypatch.chdir(folder)
    monkeypatch.delenv("ABLATE_WORKSPACE", raising=False)
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    put(folder / "conf", CONF)
    return folder


def put(folder, files):
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


def variant(folder, name, text, question="Станет ли лучше?"):
    put(folder / "conf/variant", {f"{name}.yaml": f"# @package _global_\n# {question}\n{text}\n"})


def ablate(*argv):
    """The command line as typed, run in this process and in the current folder."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = __main__.main(list(argv))
    return Said(code, out.getvalue(), err.getvalue())


def quiet(*overrides):
    return ablate(*QUIET, *overrides)


def dataset(folder, documents, queries, truths=()):
    """A data set of three documents or so: rows of JSON, ids and texts as they are."""
    rows = {"corpus.jsonl": documents, "queries.jsonl": queries, "ground_truth.jsonl": truths}
    put(folder, {name: "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows[name]) for name in rows})
    return folder


def small(folder):
    """A data set that runs in no time: two people, three documents, one of them for the boss alone."""
    return dataset(
        folder,
        [
            {
                "_id": "отпуск",
                "title": "Правила",
                "text": "Отпуск длится 28 календарных дней в году.",
                "acl": {"allow": ["public"]},
            },
            {"_id": "remote", "text": "Remote work is allowed on two days a week.", "acl": {"allow": ["user:anna"]}},
            {"_id": "salaries", "text": "KANARIENVOGEL: the salaries of the board.", "acl": {"allow": ["user:boss"]}},
        ],
        [
            {"_id": "q-отпуск", "text": "сколько длится отпуск", "principals": ["user:anna"]},
            {"_id": "q-remote", "text": "remote work days", "principals": ["user:anna"]},
        ],
        [
            {"query_id": "q-отпуск", "alternatives": [[{"doc_id": "отпуск", "quote": "28 календарных дней в году"}]]},
            {"query_id": "q-remote", "alternatives": [[{"doc_id": "remote", "quote": "allowed on two days a week"}]]},
        ],
    )


def runs(folder="."):
    """The recorded runs, by variant; of several the one that started last."""
    found = [path.parent for path in Path(folder).glob("experiments/runs/*/*/run.json")]
    found.sort(key=lambda run: facts(run)["started"])
    return {facts(run)["variant"]: run for run in found}


def facts(run):
    return json.loads((run / "run.json").read_text(encoding="utf-8"))


def means(run):
    measures = json.loads((run / "metrics.json").read_text(encoding="utf-8"))["measures"]
    return {name: row["mean"] for name, row in measures.items()}


def everything(folder):
    """Every file and folder below `folder`, hidden ones too."""
    return sorted(path.relative_to(folder).as_posix() for path in Path(folder).rglob("*"))
