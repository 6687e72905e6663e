"""What a run was made of, one by one, as short digests: so that what has moved since can be named."""

from __future__ import annotations

import hashlib
import inspect
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

from ablate import identity, weights
from ablate.config import Node, located
from ablate.dataset import fingerprint
from ablate.display import flat
from ablate.errors import AblateError
from ablate.identity import Side, digest
from ablate.page import public
from ablate.types import Dataset, Document, Query, Truth

LENGTH = 16
"""Hexadecimal digits of a digest: enough to tell that something changed, few enough for a line a document."""

TOKENIZER = ("tokenizer", "vocab", "merges", "special_tokens", "added_tokens", "sentencepiece", "spiece")
"""How the names of the files begin that make tokens of a text."""

DATA: dict[tuple[tuple[str, str], ...], Node] = {}
"""The digests of the data set that was asked for last: the runs of a sweep share it."""


def inputs(side: Side, dataset: Dataset, models: Iterable[str]) -> Node:
    """`inputs.json`: the config that ran, and a digest of each document, query, model file and source file.

    `models` are the stages that asked one.
    """
    return {
        "config": settled(side.config),
        **data(dataset),
        "models": {stage: files(getattr(side.settings, stage)) for stage in models},
        "code": {name: found[:LENGTH] for name, found in identity.package().items()},
        "own": own(side.config),
    }


def settled(config: Mapping[str, Any]) -> Node:
    """Every setting by its dotted key, without passwords."""
    return {key: public(value) if isinstance(value, str) else value for key, value in flat(config)}


def data(dataset: Dataset) -> Node:
    """The digests of a data set: of each document `content acl`, of each query `query filter truth`."""
    key = tuple(sorted(dataset.fingerprints.items()))
    if key not in DATA:
        found = {
            "documents": documents(dataset.documents),
            "queries": {query.id: asked(query, dataset.truths[query.id]) for query in dataset.queries},
            "shared": shared(dataset),
        }
        DATA.clear()
        DATA[key] = found
    return DATA[key]


def documents(found: Iterable[Document]) -> dict[str, str]:
    return {document.id: f"{content(document)} {rights(document)}" for document in found}


def content(document: Document) -> str:
    """A digest of id, title, text and metadata."""
    return fingerprint.document(replace(document, acl=None)).hex()[:LENGTH]


def rights(document: Document) -> str:
    return hashlib.sha256(fingerprint.rights(document.acl).encode()).hexdigest()[:LENGTH]


def asked(query: Query, truth: Truth) -> str:
    rows = [fingerprint.query_row(replace(query, filter={})), dict(query.filter), fingerprint.truth_row(truth)]
    return " ".join(fingerprint.digest([row])[:LENGTH] for row in rows)


def shared(dataset: Dataset) -> dict[str, str | None]:
    """What all queries share beside documents: who is in which group, the contract, the guide."""
    groups = {group: sorted(names) for group, names in dataset.groups.items()}
    guide = Path(dataset.folder) / "GUIDE.md"
    return {
        "groups.jsonl": digest(groups)[:LENGTH],
        "contract.yaml": fingerprint.digest([dataset.contract])[:LENGTH],
        "GUIDE.md": hashed(guide)[:LENGTH] if guide.is_file() else None,
    }


def files(component: Any) -> dict[str, str]:
    """The digest of every file that shapes a component's model, by its name in the model's folder."""
    found = model(component)
    if found is None:
        return {}
    paths = {path for pattern in weights.SETTINGS for path in found.path.rglob(pattern)} | {found.file}
    return {path.relative_to(found.path).as_posix(): hashed(path)[:LENGTH] for path in sorted(paths)}


def model(component: Any) -> weights.Weights | None:
    """Where the weights are that a component reads; None for one that reads none of a known format."""
    revision = str(component.revision)
    kind = next((kind for kind, module in weights.RUNTIMES.items() if f" {module}==" in revision), None)
    if kind is not None:  # a revision names the version of what runs the weights
        with suppress(AblateError, AttributeError):
            return weights.find(component.model, kind)
    return None


def tokenizer(file: str) -> bool:
    """Whether a file of a model makes tokens of a text."""
    name = file.rpartition("/")[2].lower()
    return name.startswith(TOKENIZER) or name.endswith(".model")


def own(config: Node) -> dict[str, str]:
    """The digest of the user's own modules, and of every module beside them."""
    targets = sorted({target for target in identity.targets(config) if not identity.ours(target)})
    paths = [Path(inspect.getfile(located(target, "config"))) for target in targets]
    return {name: found[:LENGTH] for path in paths for name, found in identity.beside(path).items()}


def hashed(path: Path) -> str:
    stat = path.stat()
    return _hashed(path, stat.st_size, stat.st_mtime_ns)


@cache
def _hashed(path: Path, size: int, mtime_ns: int) -> str:
    """SHA-256 of a file; size and time are arguments so that a changed file is hashed again."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
