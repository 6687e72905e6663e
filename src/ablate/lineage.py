"""What a run came from: from its record to one line for each thing that moved its numbers."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ablate import __version__
from ablate.archive import Files
from ablate.config import Node
from ablate.identity import Side, digest, libraries, ours, targets
from ablate.inputs import hashed, inputs, tokenizer
from ablate.records import RunRecord
from ablate.types import Dataset
from ablate.workspace import Workspace

REPORT = "import-report.csv"
"""What an import leaves beside the documents that it made."""

UNKNOWN = "not recorded"


@dataclass(frozen=True, slots=True)
class Origin:
    """One thing that a run came from: what it is, its name, and the fingerprint of its content, if it has one."""

    what: str
    name: str
    fingerprint: str = ""


def added(files: Files, side: Side, dataset: Dataset, place: Workspace) -> Files:
    """The files of a finished run, with the digests of its inputs, and in `run.json` what it came from."""
    facts = files["run.json"]
    digests = inputs(side, dataset, facts["models"])
    found = lineage(facts, digests, files["environment.json"], dataset, place)
    return {**files, "run.json": {**facts, "lineage": found}, "inputs.json": digests}


def lineage(facts: Node, digests: Node, environment: Node, dataset: Dataset, place: Workspace) -> Node:
    """What a record's fingerprints, models and stages do not say; folders are named from the workspace on."""
    report, git, here = Path(dataset.folder) / REPORT, environment["git"] or {}, Path.cwd()
    encoder = digests["models"].get("embedder", {})
    settings = {key: value for key, value in digests["config"].items() if key.startswith(("embedder.", "retriever."))}
    index = [facts["stages"]["chunker"], facts["models"].get("embedder"), settings]
    return {
        "folder": place.short(Path(dataset.folder)),
        "started_in": place.short(here) if here.is_relative_to(place.root) else ".",
        "parser": {"name": REPORT, "fingerprint": hashed(report)} if report.is_file() else {"name": "none"},
        "tokenizer": {name: found for name, found in encoder.items() if tokenizer(name)},
        "index": digest(index),
        "version": __version__,
        "commit": git.get("commit"),
        "diff": hashlib.sha256(git["diff"].encode()).hexdigest() if git.get("diff") else None,
        "libraries": libraries(),
        **{name: environment[name] for name in ("python", "platform", "cpu", "cores")},
    }


def origins(record: RunRecord) -> list[Origin]:
    """Everything that a run came from, in data-flow order; what an older record does not say is "not recorded"."""
    return [*of_data(record), *of_line(record), *of_program(record)]


def of_data(record: RunRecord) -> Iterator[Origin]:
    prints, known = record.fingerprints, record.lineage
    version = record.facts.get("dataset_version")
    name = f"{record.dataset} {version}" if version else record.dataset
    parser = known.get("parser") or {"name": UNKNOWN}
    yield Origin("corpus", name, prints.get("corpus", UNKNOWN))
    yield Origin("parser", parser["name"], parser.get("fingerprint", ""))
    yield Origin("ground truth", name, prints.get("ground_truth", UNKNOWN))
    yield Origin("scoring", described(record.config.get("score")), prints.get("scoring", UNKNOWN))


def of_line(record: RunRecord) -> Iterator[Origin]:
    """The components, with what came out of them where that is recorded, else with their settings."""
    stages, models, known = (record.facts.get(name) or {} for name in ("stages", "models", "lineage"))

    def stage(name: str) -> Origin:
        node = record.config.get(name)
        return Origin(name, described(node), stages.get(name) or (digest(node) if node else UNKNOWN))

    encoder = known.get("tokenizer")
    pieces = ", ".join(encoder) if encoder else "none" if known else UNKNOWN
    yield stage("tokens")
    yield stage("chunker")
    yield Origin("tokenizer", pieces, digest(encoder) if encoder else "")
    yield Origin("embedder", described(record.config.get("embedder")), weighed(models.get("embedder")))
    yield Origin("index", described(record.config.get("retriever"), alone=True), known.get("index", UNKNOWN))
    for name in ("retriever", "filter", "access", "reranker"):
        yield stage(name)
    if "reranker" in models:
        yield Origin("reranker model", described(record.config.get("reranker")), weighed(models["reranker"]))
    yield stage("packer")
    shared = {key: record.config.get(key) for key in ("k", "depth", "budget", "seed")}
    yield Origin("config", worded(shared), record.fingerprints.get("config", UNKNOWN))
    yield Origin("ranking", f"{len(record.queries)} queries", record.fingerprints.get("ranking", UNKNOWN))


def of_program(record: RunRecord) -> Iterator[Origin]:
    known, environment, prints = record.lineage, record.environment, record.fingerprints
    yield Origin("code", f"ablate {known.get('version', UNKNOWN)}", prints.get("code", UNKNOWN))
    others = sorted({target.rpartition(".")[0] for target in targets(record.config) if not ours(target)})
    yield Origin("own code", ", ".join(others) or "none", prints.get("own", UNKNOWN) if others else "")
    changed = known.get("diff") or digest_of(environment)
    yield Origin("commit", known.get("commit") or record.commit or ("no checkout" if known or environment else UNKNOWN))
    yield Origin("uncommitted changes", "some" if changed else "none" if known else UNKNOWN, changed or "")
    for name, version in versions(record).items():
        yield Origin(f"library {name}", version or "not installed")
    for name in ("python", "platform", "cpu", "cores"):
        yield Origin(name, str(known.get(name) or environment.get(name) or UNKNOWN))


def digest_of(environment: Mapping[str, Any]) -> str | None:
    """The digest of the uncommitted changes that an environment keeps."""
    diff = (environment.get("git") or {}).get("diff")
    return hashlib.sha256(diff.encode()).hexdigest() if diff else None


def versions(record: RunRecord) -> Mapping[str, str | None]:
    """The versions of the libraries that moved a number, as far as the record tells them."""
    packages = record.environment.get("packages") or {}
    return record.lineage.get("libraries") or {name: packages[name] for name in libraries() if name in packages}


def weighed(revision: str | None) -> str:
    """The hash of the weights in a model's revision, or one of the whole revision where it names none."""
    if revision is None:
        return "no model"
    found = re.search(r"(?:sha256|commit):([0-9a-f]+)", revision)
    return found[1] if found else digest(revision)


def described(node: Any, alone: bool = False) -> str:
    """A component by its class and, unless it is to stand `alone`, its settings."""
    if not isinstance(node, Mapping):
        return UNKNOWN
    name = str(node.get("_target_")).rpartition(".")[2]
    return name if alone else f"{name} {worded({key: node[key] for key in node if key != '_target_'})}".strip()


def worded(settings: Mapping[str, Any]) -> str:
    return " ".join(f"{key}={value}" for key, value in settings.items() if not isinstance(value, Mapping))


def moved(one: RunRecord, other: RunRecord) -> list[tuple[Origin, Origin]]:
    """What differs between the origins of two runs, with both."""
    left, right = ({origin.what: origin for origin in origins(record)} for record in (one, other))
    names = dict.fromkeys([*left, *right])
    pairs = [(left.get(name, Origin(name, "none")), right.get(name, Origin(name, "none"))) for name in names]
    return [pair for pair in pairs if pair[0] != pair[1]]
