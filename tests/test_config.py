"""A composed config is checked before anything is built: keys by the class, values by the types of its fields."""

import copy

import pytest
from fakes import HashEmbedder
from hydra import initialize_config_dir
from omegaconf import OmegaConf

from ablate.chunker import Fixed
from ablate.conf import conf, options
from ablate.config import STAGES, build, canonical, resolve, settings
from ablate.errors import AblateError, ConfigError
from ablate.retriever import Bm25, Dense, Hybrid
from ablate.variant import plan

BM25 = {"_target_": "ablate.retriever.Bm25", "k1": 1.5, "b": 0.75, "languages": []}


@pytest.fixture(scope="module")
def shipped():
    with initialize_config_dir(version_base="1.3", config_dir=str(conf())):
        return plan(["retriever=hybrid", "latency=off"]).config


@pytest.fixture
def node(shipped):
    return copy.deepcopy(shipped)


@pytest.fixture
def own(tmp_path, monkeypatch):
    """A function that makes a module of the user's own, in a folder on Python's path."""
    monkeypatch.syspath_prepend(tmp_path)

    def write(name, text):
        (tmp_path / f"{name}.py").write_text(text, encoding="utf-8")

    return write


def bm25(**values):
    return build(BM25 | values, "retriever")


def test_a_checked_config_holds_the_components_themselves(node):
    built = settings(node)
    assert isinstance(built.chunker, Fixed)
    assert isinstance(built.retriever, Hybrid)
    assert built.retriever.parts == {"dense": Dense(), "bm25": Bm25(1.5, 0.75, [])}
    assert type(built.retriever.parts["bm25"].languages) is list
    assert (built.k, built.depth) == (5, 50)


def test_the_line_holds_the_stages_and_nothing_that_is_shared(node):
    built = settings(node)
    assert [getattr(built.line, stage) is getattr(built, stage) for stage in STAGES] == [True] * len(STAGES)
    assert {"dataset", "tokens", "score", "tracking", "k"}.isdisjoint(STAGES)


@pytest.mark.parametrize(
    ("where", "key", "near"),
    [
        ((), "dept", "depth"),
        ((), "rerank", "reranker"),
        (("chunker",), "siez", "size"),
        (("retriever",), "rff_k", "rrf_k"),
        (("retriever", "parts", "bm25"), "k2", "k1"),
        (("retriever", "parts", "bm25"), "kk", "k1"),
    ],
)
def test_an_unknown_key_is_refused_with_its_full_path_and_the_nearest_name(node, where, key, near):
    inner = node
    for part in where:
        inner = inner[part]
    inner[key] = 7
    with pytest.raises(ConfigError) as refused:
        settings(node)
    assert str(refused.value).startswith(f"{'.'.join([*where, key])}: found an unknown setting, expected one of ")
    assert str(refused.value).endswith(f"did you mean {near}?")


def test_a_component_without_settings_says_so():
    with pytest.raises(ConfigError, match=r"^retriever\.kk: found an unknown setting, expected no settings here; rem"):
        build({"_target_": "ablate.retriever.Dense", "kk": 7}, "retriever")


@pytest.mark.parametrize("missing", ["k", "depth", "reranker", "tokens"])
def test_a_missing_part_is_named(node, missing):
    del node[missing]
    with pytest.raises(ConfigError, match=f"^{missing}: found nothing, expected a value; add it to the config$"):
        settings(node)


@pytest.mark.parametrize("value", [60, None, "keep", {"size": 60}, []])
def test_a_stage_that_is_no_component_is_refused(node, value):
    with pytest.raises(ConfigError) as refused:
        settings(node | {"chunker": value})
    assert str(refused.value).startswith(f"chunker: found {value!r}, expected a component; ")
    assert str(refused.value).endswith(f"chunker={', '.join(options()['chunker'])}")


def test_a_missing_setting_is_named(node):
    del node["retriever"]["parts"]["bm25"]["b"]
    with pytest.raises(ConfigError, match=r"^retriever\.parts\.bm25\.b: found nothing"):
        settings(node)


@pytest.mark.parametrize("value", ["five", 5.5, "5.5", True, None, [5], {"five": 5}, float("nan"), ""])
def test_what_is_no_whole_number_is_refused(node, value):
    node["chunker"]["size"] = value
    with pytest.raises(ConfigError) as refused:
        settings(node)
    assert str(refused.value).startswith(f"chunker.size: found {value!r}, expected int (")


@pytest.mark.parametrize("value", ["viel", None, [0.5], True])
def test_what_is_no_number_is_refused(value):
    with pytest.raises(ConfigError) as refused:
        bm25(b=value)
    assert str(refused.value).startswith(f"retriever.b: found {value!r}, expected float (")


@pytest.mark.parametrize(
    ("value", "error"), [("nan", "b: found nan, expected a number from 0 to 1"), (-1, "b: found -1")]
)
def test_a_number_out_of_range_is_refused_by_the_component_under_its_own_key(value, error):
    with pytest.raises(ConfigError, match=rf"^retriever\.{error}"):
        bm25(b=value)


@pytest.mark.parametrize("value", ["english", 1, None, {"english": 1}])
def test_what_is_no_list_is_refused(value):
    with pytest.raises(ConfigError, match=r"^retriever\.languages: found "):
        bm25(languages=value)


def test_values_take_the_type_of_their_field():
    built = bm25(k1="2", b="0.75")
    assert (built.k1, built.b) == (2.0, 0.75)
    assert type(built.k1) is float
    assert type(build({"_target_": "ablate.chunker.Fixed", "size": "60", "overlap": 0}, "chunker").size) is int
    prompted = build(
        {"_target_": "ablate.embedder.SentenceTransformer", "model": 7, "max_tokens": None,
         "query_prompt": "запрос: ", "document_prompt": "${not:an interpolation}",
         "dtype": "float32"},
        "embedder",
    )  # fmt: skip
    assert (prompted.model, prompted.max_tokens) == ("7", None)
    assert (prompted.query_prompt, prompted.document_prompt) == ("запрос: ", "${not:an interpolation}")


@pytest.mark.parametrize(("k", "depth"), [(51, 50), (0, 50), (-1, 5), (1, 0)])
def test_k_lies_between_one_and_the_candidate_depth(node, k, depth):
    with pytest.raises(ConfigError, match=f"^k: found {k} with depth {depth}, expected 1 <= k <= depth"):
        settings(node | {"k": k, "depth": depth})


def test_k_may_be_the_candidate_depth(node):
    assert settings(node | {"k": 50}).k == 50


def test_a_dataclass_of_the_users_own_is_checked_like_ours(own):
    own("моё", "from dataclasses import dataclass\n@dataclass\nclass Sieve:\n    holes: int\n    name: str = 'сито'\n")
    built = build({"_target_": "моё.Sieve", "holes": "3"}, "reranker")
    assert (built.holes, built.name) == (3, "сито")
    with pytest.raises(ConfigError, match=r"^reranker\.holes: found 'viele', expected int \("):
        build({"_target_": "моё.Sieve", "holes": "viele"}, "reranker")
    with pytest.raises(ConfigError, match=r"^reranker\.hole: .*did you mean holes\?"):
        build({"_target_": "моё.Sieve", "hole": 3}, "reranker")


def test_a_plain_class_of_the_users_own_gets_its_keys_checked(own):
    own("plain", "class Sieve:\n    def __init__(self, holes, *, name='сито'):\n        self.made = holes, name\n")
    assert build({"_target_": "plain.Sieve", "holes": 3}, "reranker").made == (3, "сито")
    with pytest.raises(ConfigError, match=r"^reranker\.holes: found nothing, expected a value"):
        build({"_target_": "plain.Sieve"}, "reranker")
    with pytest.raises(ConfigError, match=r"^reranker\.nane: .*did you mean name\?"):
        build({"_target_": "plain.Sieve", "holes": 3, "nane": "решето"}, "reranker")


def test_a_class_that_takes_any_key_gets_any_key(own):
    own("open_", "class Sieve:\n    def __init__(self, *args, **kwargs):\n        self.made = args, kwargs\n")
    assert build({"_target_": "open_.Sieve", "holes": 3}, "reranker").made == ((), {"holes": 3})


def test_a_function_of_the_users_own_may_make_the_component(own):
    own("maker", "def sieve(holes):\n    return lambda query, hits: hits[:holes]\n")
    assert build({"_target_": "maker.sieve", "holes": 1}, "reranker")(None, [1, 2]) == [1]


def test_a_users_component_that_refuses_its_values_is_a_sentence_with_its_place(own):
    own(
        "strict",
        "class Sieve:\n    def __init__(self, holes):\n        raise TypeError('дыр слишком много')\n"
        "class Modest:\n    def __init__(self, holes):\n        from ablate.errors import ConfigError\n"
        "        raise ConfigError('holes: found 9, expected fewer; take some away')\n",
    )
    with pytest.raises(ConfigError, match=r"^reranker: found .*TypeError: дыр слишком много"):
        build({"_target_": "strict.Sieve", "holes": 9}, "reranker")
    with pytest.raises(ConfigError, match=r"^reranker\.holes: found 9, expected fewer; take some away$"):
        build({"_target_": "strict.Modest", "holes": 9}, "reranker")


def test_parts_are_built_wherever_they_are_nested(own):
    own("nest", "class Box:\n    def __init__(self, inside):\n        self.inside = inside\n")
    deep = {"_target_": "nest.Box", "inside": [{"first": {"_target_": "fakes.HashEmbedder", "dimension": "4"}}, 5]}
    assert build(deep, "embedder").inside == [{"first": HashEmbedder(4)}, 5]
    deep["inside"][0]["first"]["dimention"] = 4
    with pytest.raises(ConfigError, match=r"^embedder\.inside\[0\]\.first\.dimention: .*did you mean dimension\?"):
        build(deep, "embedder")


@pytest.mark.parametrize(
    "target",
    ["ablate.retriever.Desne", "no.where.At", "Dense", "", ".", None, 5, ["a"], "ablate.retriever", "builtins.dict"],
)
def test_a_target_that_is_no_class_is_a_sentence(target):
    with pytest.raises(ConfigError) as refused:
        build({"_target_": target}, "retriever")
    assert str(refused.value).startswith(f"retriever._target_: found {target!r} (")
    assert "expected the dotted path of a class that Python can import" in str(refused.value)


def test_a_module_of_the_users_own_that_cannot_be_imported_says_why(own):
    own("broken", "import нет_такого\n")
    with pytest.raises(ConfigError, match=r"found 'broken\.Sieve' \(.*expected the dotted path"):
        build({"_target_": "broken.Sieve"}, "reranker")


def test_resolving_leaves_no_interpolation_and_nothing_of_hydra():
    cfg = OmegaConf.create({"hydra": {"run": "${now:%H}"}, "depth": 50, "k": "${depth}", "path": "${oc.env:HOME,x}"})
    plain = resolve(cfg)
    assert plain["k"] == 50
    assert set(plain) == {"depth", "k", "path"}
    assert "${" not in str(plain)
    assert "hydra" in cfg, "the composed config itself must stay as it is"


@pytest.mark.parametrize("text", ["???", "${nowhere}", "${oc.env:ABLATE_NO_SUCH_VARIABLE}"])
def test_a_value_that_is_not_given_is_a_sentence(text):
    with pytest.raises(ConfigError, match=r"^config: .*expected a value; set it on the command line$"):
        resolve(OmegaConf.create({"chunker": {"size": text}}))


def test_every_refusal_ends_the_program_with_a_sentence(node):
    node["chunker"]["overlap"] = 500
    with pytest.raises(AblateError, match=r"^chunker\.overlap: found 500 with size 128, expected 0 <= overlap < size"):
        settings(node)


def test_a_canonical_config_has_every_value_in_its_field_s_type():
    node = {"_target_": "ablate.retriever.Bm25", "k1": 2, "b": "0.75", "languages": []}
    assert canonical({"retriever": node, "k": 5}) == {
        "retriever": {"_target_": "ablate.retriever.Bm25", "k1": 2.0, "b": 0.75, "languages": []},
        "k": 5,
    }
