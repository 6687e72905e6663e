import importlib.util
import sys
from types import SimpleNamespace

import pytest
import tiny_models

from ablate import onnx_model, weights
from ablate.errors import AblateError, ModelNotFound

with_onnx = pytest.mark.skipif(
    not (importlib.util.find_spec("onnx") and importlib.util.find_spec("onnxruntime")), reason="onnx is not installed"
)


def tokens(*ids):
    return SimpleNamespace(ids=[*ids], attention_mask=[1] * len(ids), type_ids=[0] * len(ids))


@pytest.fixture
def found(tmp_path) -> weights.Weights:
    return weights.find(str(tiny_models.onnx_encoder(tmp_path / "модель")), "onnx")


@with_onnx
def test_an_answer_is_the_output_of_one_text(found):
    assert onnx_model.answer(found, tokens(5, 6, 7)).shape == (3, 16)


@with_onnx
def test_tokens_that_a_model_cannot_run_are_one_sentence(found):
    message = r"модель: found InvalidArgument .* for 2 tokens, expected an answer; lower max_tokens to what the model"
    with pytest.raises(AblateError, match=message) as caught:
        onnx_model.answer(found, tokens(5, 10**6))
    assert "\n" not in str(caught.value)


@with_onnx
def test_a_file_that_is_no_model_is_one_sentence(tmp_path):
    (tmp_path / "model.onnx").write_bytes(b"weights")

    with pytest.raises(ModelNotFound, match=r"model\.onnx: found .*, expected a model that onnxruntime can run; check"):
        onnx_model.session(tmp_path / "model.onnx")


def test_the_files_own_padding_and_limit_are_not_used(tmp_path):
    made = tiny_models.tokenizer(tmp_path).backend_tokenizer
    made.enable_padding(length=40)
    made.enable_truncation(3)
    made.save(str(tmp_path / "tokenizer.json"))
    read = onnx_model.tokenizer(tmp_path, 5)

    assert len(read.encode("the refund policy возврат товара")) == 5
    assert len(read.encode("the")) == 3


@with_onnx
def test_a_model_runs_on_one_thread(found, monkeypatch):
    asked = []
    made = SimpleNamespace(
        SessionOptions=SimpleNamespace, InferenceSession=lambda file, options, providers: asked.append(options)
    )
    monkeypatch.setitem(sys.modules, "onnxruntime", made)
    onnx_model.session(found.path / "another.onnx")

    assert asked[0].intra_op_num_threads == 1
