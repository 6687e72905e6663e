"""Who a run is: fingerprints of everything that moves its numbers, and the names made of them."""

from __future__ import annotations

import functools
import hashlib
import inspect
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from ablate.config import STAGES, Node, Settings, canonical, located, settings
from ablate.types import Dataset
from ablate.variant import Changes, Plan

MOVING = (*STAGES, "tokens", "k", "depth", "budget")
"""The keys of a config that move a ranking or a context; where data lie, timing and tracking do not."""

LIBRARIES = ("bm25s", "faiss-cpu", "markdown-it-py", "numpy", "onnxruntime", "PyStemmer", "rank-bm25", "regex",
             "sentence-transformers", "torch", "transformers")  # fmt: skip


@dataclass(frozen=True)
class Side:
    """One run to be made: the baseline, or a variant with what it changes."""

    variant: str
    component: str | None
    config: Node
    settings: Settings
    changes: Changes
    overrides: Sequence[str]
    study: str
    fingerprints: Mapping[str, str]

    @property
    def run(self) -> str:
        return run_name(self.variant, self.study, self.fingerprints)


def sides(plan: Plan, dataset: Dataset) -> list[Side]:
    """The baseline and, where the plan has one, the variant."""
    shared, config = canonical(plan.baseline), canonical(plan.config)
    prints = fingerprints(dataset, shared, shared)
    study = study_name(dataset, prints)
    base = Side("baseline", None, shared, settings(shared), {}, plan.shared, study, prints)
    if plan.variant is None:
        return [base]
    prints = fingerprints(dataset, config, shared)
    return [
        base,
        Side(plan.variant, plan.component, config, settings(config), plan.changes, plan.overrides, study, prints),
    ]


def fingerprints(dataset: Dataset, config: Node, baseline: Node) -> dict[str, str]:
    """Content hashes by name: corpus, ground truth, scoring settings, what was declared, both configs, and the
    code that ran them.
    """
    return {
        **dataset.fingerprints,
        "scoring": digest(config["score"]),
        "verdict": digest(config["verdict"]),
        "config": digest(moving(config)),
        "baseline": digest(moving(baseline)),
        "code": code(),
        "own": own(sorted(set(targets(config)))),
    }


def study_name(dataset: Dataset, prints: Mapping[str, str]) -> str:
    """A study is its dataset and what its runs share: corpus, ground truth, scoring, what was declared, baseline."""
    shared = [prints[name] for name in ("corpus", "ground_truth", "scoring", "verdict", "baseline") if name in prints]
    return f"{dataset.name}-{digest(shared)[:8]}"


def run_name(variant: str, study: str, prints: Mapping[str, str]) -> str:
    return f"{variant.replace('/', '-')}-{digest([study, prints['config'], prints['code'], prints['own']])[:8]}"


def moving(config: Node) -> Node:
    """What of a config moves a ranking or a context; a recorded one may be from before some of it existed."""
    return {key: config[key] for key in MOVING if key in config}


def digest(value: Any) -> str:
    """SHA-256 of plain data, whatever the order of its keys."""
    return hashlib.sha256(json.dumps(value, sort_keys=True, ensure_ascii=False).encode()).hexdigest()


def targets(node: Any) -> Iterable[str]:
    """Every `_target_` of a config, nested ones too."""
    if isinstance(node, Mapping):
        yield from (value for key, value in node.items() if key == "_target_")
        node = list(node.values())
    if isinstance(node, list):
        for item in node:
            yield from targets(item)


def code() -> str:
    """One hash of this package's source and of the libraries that move a number."""
    return digest({"package": package(), "libraries": libraries()})


def libraries() -> dict[str, str | None]:
    """The version of every library that moves a number; None for one that is not installed."""
    return {name: installed(name) for name in LIBRARIES}


def own(classes: Iterable[str]) -> str:
    """One hash of the modules that hold the user's own classes."""
    return digest({name: beside(Path(inspect.getfile(located(name, "config")))) for name in classes if not ours(name)})


def ours(target: str) -> bool:
    return target.startswith("ablate.")


@functools.cache  # what runs is what was imported: an edit while a sweep runs must not part its runs
def package() -> dict[str, str]:
    """The hash of every source file of this package."""
    folder = Path(__file__).parent
    return {path.relative_to(folder).as_posix(): source(path) for path in sorted(folder.rglob("*.py"))}


def beside(path: Path) -> dict[str, str]:
    """The hash of a user's module and of every module beside it, which it may import."""
    return {other.name: source(other) for other in sorted(path.parent.glob("*.py"))}


@functools.cache
def source(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


@functools.cache
def installed(distribution: str) -> str | None:
    try:
        return version(distribution)
    except PackageNotFoundError:
        return None
