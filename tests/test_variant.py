"""A variant is what a command runs beside its baseline, and differs from it in exactly one stage."""

import pytest
from cli import put, variant
from hypothesis import given
from hypothesis import strategies as st

from ablate.commands.run import composing
from ablate.conf import options
from ablate.errors import ConfigError, NotOneChange
from ablate.variant import diff, flat, one_stage, plan


@pytest.fixture(autouse=True)
def own(tmp_path):
    """A function that adds a variant of the user's own, where Hydra finds it beside the shipped ones."""
    (tmp_path / "conf").mkdir()
    with composing(str(tmp_path / "conf")):
        yield lambda name, text: variant(tmp_path, name, text)


def test_a_command_without_a_variant_is_a_baseline_alone():
    found = plan(["retriever=hybrid", "k=3"])
    assert (found.variant, found.component, found.changes) == (None, None, {})
    assert found.baseline == found.config
    assert found.config["k"] == 3
    assert found.shared == found.overrides == ("retriever=hybrid", "k=3")


def test_the_proof_lists_every_changed_key_with_both_values():
    found = plan(["+variant=chunking_small"])
    assert (found.variant, found.component) == ("chunking_small", "chunker")
    assert found.changes == {"chunker.overlap": (24, 12), "chunker.size": (128, 60)}
    assert found.baseline["chunker"]["size"] == 128
    assert found.config["chunker"]["size"] == 60


def test_a_shared_value_that_is_no_number_is_no_change():
    """What is wrong with it is said by the setting."""
    assert plan(["+variant=chunking_small", "verdict.margin=nan"]).component == "chunker"


@pytest.mark.parametrize("name", options()["variant"])
def test_baseline_and_variant_share_everything_but_the_stage(name):
    found = plan([f"+variant={name}", "depth=30"])
    assert found.baseline.keys() == found.config.keys()
    differing = [key for key in found.config if found.config[key] != found.baseline[key]]
    assert differing == [found.component]
    assert found.baseline["depth"] == found.config["depth"] == 30


def test_overrides_of_other_stages_are_shared_and_those_of_its_own_belong_to_the_variant():
    found = plan(["retriever=hybrid", "+variant=reranker", "reranker.first=7", "k=4"])
    assert found.component == "reranker"
    assert found.baseline["retriever"]["_target_"] == found.config["retriever"]["_target_"] == "ablate.retriever.Hybrid"
    assert found.baseline["reranker"] == {"_target_": "ablate.reranker.Keep"}
    assert found.config["reranker"]["first"] == 7
    assert found.shared == ("retriever=hybrid", "k=4")
    assert found.overrides == ("retriever=hybrid", "+variant=reranker", "reranker.first=7", "k=4")


def test_a_stage_whose_name_begins_like_the_variants_is_not_its_own(own):
    own("fresh", "chunker:\n  size: 30\n  overlap: 3")
    found = plan(["+variant=fresh", "++chunkers.x=1"])
    assert found.shared == ("++chunkers.x=1",)


@pytest.mark.parametrize(
    "overrides",
    [
        ["+variant=reranker", "reranker=keep"],
        ["retriever=hybrid", "+variant=bm25"],
        ["retriever=hybrid", "+variant=hybrid"],
        ["retriever=bm25", "+variant=bm25"],
        ["retriever=bm25", "+variant=hybrid", "retriever.b=0.5"],
        ["+variant=chunking_small", "chunker.size=128", "chunker.overlap=24"],
    ],
    ids=" ".join,
)
def test_a_label_that_would_lie_is_refused(overrides):
    name = next(word for word in overrides if word.startswith("+variant=")).partition("=")[2]
    with pytest.raises(
        NotOneChange, match=rf"^variant {name}: found no difference from its baseline, expected exactly"
    ):
        plan(overrides)


def test_tuning_a_variant_leaves_its_baseline_alone():
    found = plan(["chunker.size=61", "+variant=chunking_small"])
    assert found.changes == {"chunker.overlap": (24, 12), "chunker.size": (128, 61)}


def test_a_variant_of_two_stages_is_refused_with_every_key_and_both_values(own):
    own("two", "defaults:\n  - override /filter: declared\nchunker:\n  size: 9")
    with pytest.raises(NotOneChange) as refused:
        plan(["+variant=two"])
    assert "found changes in 2 stages" in str(refused.value)
    assert "chunker.size: 128 -> 9" in str(refused.value)
    assert "filter._target_: 'ablate.filter.Open' -> 'ablate.filter.Declared'" in str(refused.value)


@pytest.mark.parametrize(
    ("text", "key", "change"),
    [
        ("depth: 99", "depth", "depth: 50 -> 99"),
        ("k: 3", "k", "k: 5 -> 3"),
        ("seed: 1", "seed", "seed: 0 -> 1"),
        ("dataset:\n  split: dev", "dataset", "dataset.split: 'test' -> 'dev'"),
        ("score:\n  span_threshold: 0.5", "score", "score.span_threshold: 1.0 -> 0.5"),
        ("defaults:\n  - override /tracking: 'off'", "tracking", "'ablate.tracking.Mlflow' -> 'ablate.tracking.Off'"),
        ("defaults:\n  - override /latency: 'off'", "latency", "'ablate.latency.Sample' -> 'ablate.latency.Off'"),
        ("новое: 1", "новое", "новое: None -> 1"),
    ],
)
def test_a_variant_that_touches_what_all_share_is_refused(own, text, key, change):
    own("shared", text)
    with pytest.raises(NotOneChange) as refused:
        plan(["+variant=shared"])
    assert f"found changes in shared settings ({key}), expected exactly one of chunker, " in str(refused.value)
    assert change in str(refused.value)


def test_a_shared_key_beside_a_stage_is_refused_too(own):
    own("deeper", "depth: 99\ndefaults:\n  - override /reranker: onnx_cross_encoder")
    with pytest.raises(NotOneChange, match="depth: 50 -> 99; reranker"):
        plan(["+variant=deeper"])


def test_a_variant_that_changes_nothing_is_refused(own):
    own("nothing", "chunker:\n  size: 128")
    with pytest.raises(NotOneChange, match=r"^variant nothing: found no difference from its baseline"):
        plan(["+variant=nothing"])


def test_a_variant_may_change_a_stage_by_what_it_computes_from_a_shared_key(own):
    own("computed", "chunker:\n  size: ${depth}")
    found = plan(["+variant=computed", "depth=40"])
    assert found.changes == {"chunker.size": (128, 40)}


def test_several_variants_in_one_run_are_refused_with_the_way_to_run_them(own):
    with pytest.raises(ConfigError, match=r"found '\+variant=\[bm25,hybrid\]', expected the name of one variant"):
        plan(["+variant=[bm25,hybrid]"])


def test_no_variant_may_call_itself_the_baseline(own):
    own("baseline", "chunker:\n  size: 9")
    with pytest.raises(ConfigError, match=r"^variant: found 'baseline', the name of the command without a variant"):
        plan(["+variant=baseline"])


@pytest.mark.parametrize("name", ["мельче", "mine/small", "v2.1", "a-b"])
def test_a_variant_of_the_users_own_may_have_any_name_of_a_file(own, name):
    own(name, "chunker:\n  size: 30\n  overlap: 3")
    assert plan([f"+variant='{name}'"]).variant == name


def test_the_config_of_the_users_own_is_the_baseline_of_its_variants(own, tmp_path):
    put(tmp_path / "conf", {"mine.yaml": "defaults:\n  - config\n  - override retriever: hybrid\n  - _self_\nk: 3\n"})
    found = plan(["+variant=chunking_small"], "mine")
    assert found.baseline["retriever"]["rrf_k"] == found.config["retriever"]["rrf_k"] == 60
    assert found.config["k"] == 3
    with pytest.raises(NotOneChange):
        plan(["+variant=hybrid"], "mine")


def test_an_override_in_the_users_config_that_beats_the_variant_is_seen(own, tmp_path):
    text = "defaults:\n  - config\n  - _self_\n  - override retriever: bm25\n"
    put(tmp_path / "conf", {"mine.yaml": text})
    with pytest.raises(NotOneChange, match=r"^variant bm25: found no difference"):
        plan(["+variant=bm25"], "mine")


leaves = st.none() | st.integers(-3, 3) | st.sampled_from(["", "а", "b"])
nodes = st.recursive(
    leaves,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["ключ", "k"]), inner, max_size=3),
    max_leaves=8,
)
mappings = st.dictionaries(st.sampled_from(["chunker", "k", "reranker"]), nodes, max_size=3)


@given(mappings, mappings)
def test_only_equal_configs_have_no_difference_and_each_key_of_one_differs(one, other):
    found = diff(one, other)
    assert (found == {}) == (one == other)
    assert all(flat(one).get(key, "нет") != flat(other).get(key, "нет") for key in found)


@given(mappings, mappings)
def test_a_difference_is_mirrored_the_other_way(one, other):
    assert diff(one, other) == {key: (after, before) for key, (before, after) in diff(other, one).items()}


@given(mappings)
def test_a_change_in_one_key_names_that_key_alone(node):
    node = {**node, "k": 1}
    assert diff(node, {**node, "k": 2}) == {"k": (1, 2)}


@pytest.mark.parametrize(
    ("changes", "stage"),
    [({"chunker.size": (1, 2)}, "chunker"), ({"reranker": (None, {}), "reranker.first": (None, 2)}, "reranker")],
)
def test_one_stage_is_the_first_part_of_the_keys(changes, stage):
    assert one_stage("v", changes) == stage


@pytest.mark.parametrize("changes", [{}, {"k": (1, 2)}, {"chunker.size": (1, 2), "embedder.x": (1, 2)}])
def test_anything_but_one_stage_is_refused(changes):
    with pytest.raises(NotOneChange, match=r"^variant v: found .*expected exactly one"):
        one_stage("v", changes)
