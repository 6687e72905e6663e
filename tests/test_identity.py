"""Who a run is: everything that moves its numbers is in its fingerprints, and nothing else is."""

import json
import shutil
from pathlib import Path

import pytest
from cli import put, small
from hypothesis import given
from hypothesis import strategies as st

import ablate
from ablate import identity
from ablate.commands.run import composing
from ablate.config import settings
from ablate.identity import code, digest, fingerprints, own, run_name, study_name, targets
from ablate.variant import plan


@pytest.fixture
def folder(tmp_path):
    put(tmp_path / "data", {"groups.jsonl": '{"_id": "group:b", "members": ["user:anna"]}\n'})
    small(tmp_path / "data")
    with composing(None):
        yield tmp_path / "data"


def prints(folder, *overrides):
    """The fingerprints of the command's baseline over the data set in `folder`, and the name of its study."""
    node = plan([f"dataset.dir='{folder}'", *overrides]).baseline
    dataset = settings(node).dataset.read()
    found = fingerprints(dataset, node, node)
    return found, study_name(dataset, found)


@pytest.mark.parametrize(
    ("override", "moved"),
    [
        ("chunker.size=64", {"config", "baseline"}),
        ("retriever=bm25", {"config", "baseline"}),
        ("reranker=onnx_cross_encoder", {"config", "baseline"}),
        ("filter=declared", {"config", "baseline"}),
        ("embedder.query_prompt='запрос: '", {"config", "baseline"}),
        ("access.statistics=readable", {"config", "baseline"}),
        ("k=1", {"config", "baseline"}),
        ("depth=9", {"config", "baseline"}),
        ("score.span_threshold=0.5", {"scoring"}),
        ("score.cutoffs=[1]", {"scoring"}),
        ("dataset.title=false", {"corpus"}),
        ("dataset.acl_default=public", {"ground_truth"}),
    ],
)
def test_what_moves_a_number_moves_its_fingerprint_and_the_study(folder, override, moved):
    (before, study), (after, other) = prints(folder), prints(folder, override)
    assert {name for name in before if before[name] != after[name]} == moved
    assert study != other


@pytest.mark.parametrize("override", ["seed=7", "latency=off", "latency.queries=3", "tracking=off", "rerun=true"])
def test_what_moves_no_number_moves_nothing(folder, override):
    assert prints(folder) == prints(folder, override)


@pytest.mark.parametrize(
    ("file", "before", "after", "moved"),
    [
        ("corpus.jsonl", "two days a week.", "two days a week!", {"corpus"}),
        ("corpus.jsonl", "user:boss", "user:anna", {"corpus"}),
        ("corpus.jsonl", "Правила", "Правило", {"corpus"}),
        ("groups.jsonl", "user:anna", "user:boss", {"ground_truth"}),
        ("queries.jsonl", "remote work days", "remote work", {"ground_truth"}),
        ("ground_truth.jsonl", "28 календарных", "календарных", {"ground_truth"}),
    ],
)
def test_every_file_of_a_data_set_is_in_a_fingerprint(folder, file, before, after, moved):
    old, study = prints(folder)
    text = (folder / file).read_text(encoding="utf-8")
    assert before in text
    (folder / file).write_text(text.replace(before, after), encoding="utf-8")
    new, other = prints(folder)
    assert {name for name in old if old[name] != new[name]} == moved
    assert study != other


def test_where_a_data_set_lies_is_in_no_fingerprint(folder):
    moved = shutil.copytree(folder, folder.parent / "другое место/data")
    assert prints(folder) == prints(moved)


def test_a_variant_shares_its_baselines_study_and_has_a_config_of_its_own(folder):
    found = plan([f"dataset.dir='{folder}'", "+variant=bm25"])
    dataset = settings(found.config).dataset.read()
    base, other = (fingerprints(dataset, node, found.baseline) for node in (found.baseline, found.config))
    assert {name for name in base if base[name] != other[name]} == {"config"}
    assert study_name(dataset, base) == study_name(dataset, other)
    assert base["config"] == base["baseline"]


def test_the_code_of_the_package_is_one_fingerprint(tmp_path, monkeypatch):
    copy = shutil.copytree(Path(ablate.__file__).parent, tmp_path / "ablate", ignore=shutil.ignore_patterns("data"))
    monkeypatch.setattr(identity, "__file__", str(copy / "identity.py"))
    found = []
    for text in ("", "", "# Иначе.\n"):
        with (copy / "packer.py").open("a", encoding="utf-8") as file:
            file.write(text)
        identity.package.cache_clear()
        identity.source.cache_clear()
        found.append(code())
    identity.package.cache_clear()
    identity.source.cache_clear()
    assert found[0] == found[1] != found[2]


def test_a_users_own_module_is_code_and_a_component_of_ours_is_not_counted_twice(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    put(tmp_path, {"meins.py": "class Sieb: ...\n"})
    first = own(["ablate.packer.TopK", "meins.Sieb"])
    assert own(["ablate.packer.TopK"]) == own([]) != first
    put(tmp_path, {"meins.py": "class Sieb: ...\nclass Netz: ...\n"})
    assert own(["meins.Sieb"]) == first, "what runs is what was imported"
    identity.source.cache_clear()
    assert own(["meins.Sieb"]) != first


def test_another_version_of_a_library_is_other_code(monkeypatch):
    before = code()
    monkeypatch.setattr(identity, "installed", lambda name: "0.0")
    assert code() != before


def test_every_target_is_found_however_deep():
    node = {"a": {"_target_": "x.A", "parts": {"p": [{"_target_": "y.B"}, {"q": {"_target_": "z.C"}}]}}, "k": 5}
    assert sorted(targets(node)) == ["x.A", "y.B", "z.C"]


leaves = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5)
nodes = st.recursive(leaves, lambda inner: st.lists(inner) | st.dictionaries(st.text(max_size=3), inner), max_leaves=9)


@given(nodes)
def test_a_digest_depends_on_the_value_and_not_on_the_order_of_its_keys(node):
    assert digest(node) == digest(json.loads(json.dumps(node)))
    assert digest({"а": node, "б": 1}) == digest({"б": 1, "а": node})
    assert digest([node, 0, 1]) != digest([node, 1, 0])
    assert digest({"а": node}) != digest({"б": node})


def test_names_of_studies_and_runs_are_names_of_folders():
    facts = {"corpus": "1", "ground_truth": "2", "scoring": "3", "baseline": "4", "config": "5", "code": "6", "own": ""}
    name = run_name("моё/мелко", "учёба-1", facts)
    assert name.startswith("моё-мелко-")
    assert "/" not in name
    assert name != run_name("моё/мелко", "учёба-2", facts)
    assert name != run_name("моё/мелко", "учёба-1", facts | {"code": "7", "own": ""})
    assert name == run_name("моё/мелко", "учёба-1", facts | {"corpus": "7"}), "the study stands for the corpus"
