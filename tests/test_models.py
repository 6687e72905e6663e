from pathlib import Path

import pytest
import tiny_models

from ablate import models
from ablate.errors import ConfigError, ModelNotFound, first_line


def test_a_broken_folder_is_one_sentence(tmp_path):
    folder = tmp_path / "сломано"
    folder.mkdir()
    (folder / "model.safetensors").write_bytes(b"weights")
    (folder / "config.json").write_text("{}")

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
