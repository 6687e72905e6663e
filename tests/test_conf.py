"""conf/ and the code say the same: every group is a module, every option a class, every key a field."""

import dataclasses
import importlib
import inspect
import re
import shutil
import typing
from dataclasses import MISSING, dataclass, fields
from types import NoneType

import pytest
import yaml
from hydra import initialize_config_dir

import ablate.chunker
from ablate.conf import comment, conf, names, options
from ablate.config import STAGES, Settings, located, settings
from ablate.errors import AblateError
from ablate.variant import plan

PRESETS = ("dataset", "variant")
"""Groups whose options are named for a content, not for a class."""


def groups(folder):
    return {path.name: sorted(path.glob("*.yaml")) for path in sorted(folder.iterdir()) if path.is_dir()}


def read(path):
    return yaml.safe_load(path.read_text(encoding="utf-8")) or {}


def camel(snake):
    return "".join(part.capitalize() for part in snake.split("_"))


def plain(annotation):
    """Whether a field can stand in YAML: numbers, text, true and false, null, and lists and mappings of them."""
    inner = typing.get_args(annotation)
    return all(map(plain, inner)) if inner else annotation in (str, int, float, bool, NoneType, typing.Any, list, dict)


def option_classes(group):
    """The public dataclasses of a group's module that a YAML file could fill: records hold other objects."""
    module = importlib.import_module(f"ablate.{group}")
    found = {
        name: kind
        for name, kind in vars(module).items()
        if inspect.isclass(kind) and dataclasses.is_dataclass(kind) and not name.startswith("_")
        and kind.__module__.startswith(module.__name__)
    }  # fmt: skip
    return {name: kind for name, kind in found.items() if all(map(plain, typing.get_type_hints(kind).values()))}


def without_partner(folder):
    """Options without a class, classes without an option, and targets that are not the class of that name."""
    for group, files in groups(folder).items():
        if group in PRESETS:
            continue
        expected = {camel(path.stem): path for path in files}
        for name in expected.keys() ^ option_classes(group).keys():
            yield f"{group}: {name}"
        for name, path in expected.items():
            if read(path).get("_target_") != f"ablate.{group}.{name}":
                yield f"{path.relative_to(folder)}: {read(path).get('_target_')}"


def without_module(folder):
    """Groups that no part of a checked config is named for."""
    wanted = {field.name for field in fields(Settings) if field.type == "Any"} | {"variant"}
    return groups(folder).keys() ^ wanted


def hidden(folder):
    """Fields that a YAML file does not show, and keys that are no field."""
    for group, files in groups(folder).items():
        for path in files:
            if group != "variant":
                node = read(path)
                nested = [re.search(r"@(\w+)", part) for part in node.get("defaults", []) if isinstance(part, str)]
                keys = {key for key in node if key not in ("_target_", "defaults")}
                keys |= {found[1] for found in nested if found}
                for key in keys ^ {field.name for field in fields(located(node["_target_"], group))}:
                    yield f"{group}/{path.stem}: {key}"


def defaults_in_code():
    """Fields with a default, which would move a result without standing in any YAML file."""
    for group in options():
        for kind in option_classes(group).values() if group not in PRESETS else []:
            for field in fields(kind):
                if field.default is not MISSING or field.default_factory is not MISSING:
                    yield f"{kind.__name__}.{field.name}"


def no_single_change(folder):
    """Variants that are refused."""
    with initialize_config_dir(version_base="1.3", config_dir=str(folder)):
        for path in groups(folder)["variant"]:
            try:
                found = plan([f"+variant={path.stem}"])
                settings(found.config)
            except AblateError as error:
                yield f"{path.stem}: {error}"


def no_question(folder):
    return [path.stem for path in groups(folder)["variant"] if not comment(path).endswith("?")]


def no_header(folder):
    return [path.stem for path in groups(folder)["variant"] if not read_text(path).startswith("# @package _global_\n")]


def read_text(path):
    return path.read_text(encoding="utf-8")


def wrong_defaults(folder):
    """What the baseline's list of defaults must not do: name a variant, or override a stage behind a variant's back."""
    entries = read(folder / "config.yaml")["defaults"]
    chosen = [key for entry in entries if isinstance(entry, dict) for key in entry if not key.startswith("override")]
    if chosen != [*groups_in_order()]:
        yield f"order: {chosen}"
    for entry in entries:
        key = next(iter(entry)) if isinstance(entry, dict) else entry
        if key == "variant" or (key.startswith("override") and not key.startswith("override hydra/")):
            yield key


def groups_in_order():
    return [field.name for field in fields(Settings) if field.type == "Any"]


CHECKS = [without_partner, without_module, hidden, no_single_change, no_question, no_header, wrong_defaults]


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_shipped_configs_pass(check):
    assert list(check(conf())) == []


def append(text):
    return lambda path: path.write_text(read_text(path) + text, encoding="utf-8")


def replace(before, after):
    def edit(path):
        assert before in read_text(path)
        path.write_text(read_text(path).replace(before, after), encoding="utf-8")

    return edit


def create(text):
    return lambda path: path.write_text(text, encoding="utf-8")


def remove(path):
    path.unlink()


VARIANT = "# @package _global_\n# Стало лучше?\n"

MUTATIONS = {
    "an option without a class": (without_partner, "chunker/clause.yaml", create("_target_: ablate.chunker.Clause\n")),
    "a class without an option": (without_partner, "chunker/whole.yaml", remove),
    "an option of another class": (without_partner, "chunker/whole.yaml", replace("Whole", "Fixed")),
    "a class of another module": (without_partner, "chunker/whole.yaml", replace("ablate.chunker", "ablate.types")),
    "a group that nothing reads": (without_module, "parser/off.yaml", create("{}\n")),
    "a key that is left out": (hidden, "retriever/bm25.yaml", replace("k1: 1.5", "# k1")),
    "a key that is no field": (hidden, "chunker/fixed.yaml", append("stride: 3\n")),
    "a part that is no field": (hidden, "retriever/hybrid.yaml", replace("@parts.", "@members.")),
    "a variant of two stages": (no_single_change, "variant/bm25.yaml", append("chunker: {size: 9}\n")),
    "a variant of a shared key": (no_single_change, "variant/bm25.yaml", append("depth: 9\n")),
    "a variant of nothing": (no_single_change, "variant/baseline.yaml", create(VARIANT)),
    "a typo in a variant": (no_single_change, "variant/chunking_small.yaml", replace("size", "siez")),
    "a baseline that beats variants": (
        no_single_change, "config.yaml", replace("  - _self_\n", "  - _self_\n  - override retriever: bm25\n"),
    ),
    "a variant that asks nothing": (no_question, "variant/bm25.yaml", replace("?", ".")),
    "a variant in a package": (no_header, "variant/bm25.yaml", replace("# @package _global_\n", "")),
    "a variant in the baseline": (wrong_defaults, "config.yaml", replace("ts:\n", "ts:\n  - variant: null\n")),
    "an override in the baseline": (
        wrong_defaults, "config.yaml", replace("  - _self_\n", "  - _self_\n  - override retriever: bm25\n"),
    ),
    "a stage that nobody chooses": (wrong_defaults, "config.yaml", replace("  - packer: top_k\n", "")),
}  # fmt: skip


@pytest.mark.parametrize("mutation", MUTATIONS)
def test_every_check_catches_what_it_is_for(mutation, tmp_path):
    check, name, edit = MUTATIONS[mutation]
    folder = shutil.copytree(conf(), tmp_path / "conf")
    for other in groups(folder)["variant"]:
        if other.stem not in ("bm25", "chunking_small"):  # fewer to prove: each is composed five times
            other.unlink()
    (folder / name).parent.mkdir(exist_ok=True)
    edit(folder / name)
    assert list(check(folder))


def test_a_class_that_no_option_names_is_caught(monkeypatch):
    @dataclass(frozen=True)
    class Clause:
        size: int

    Clause.__module__ = "ablate.chunker"
    monkeypatch.setattr(ablate.chunker, "Clause", Clause, raising=False)
    assert list(without_partner(conf())) == ["chunker: Clause"]


def test_components_hold_no_defaults(monkeypatch):
    assert list(defaults_in_code()) == []

    @dataclass(frozen=True)
    class Fixed:
        size: int = 128

    Fixed.__module__ = "ablate.chunker"
    monkeypatch.setattr(ablate.chunker, "Fixed", Fixed)
    assert list(defaults_in_code()) == ["Fixed.size"]


def test_the_groups_of_components_are_the_stages_of_the_line():
    assert set(STAGES) < groups(conf()).keys()


@pytest.mark.parametrize("option", [f"{group}={name}" for group in groups_in_order() for name in options()[group]])
def test_every_option_builds(option):
    with initialize_config_dir(version_base="1.3", config_dir=str(conf())):
        built = settings(plan([option]).config)
    group, _, name = option.partition("=")
    kind = type(getattr(built, group))
    assert kind.__module__.startswith(f"ablate.{group}")
    assert group in PRESETS or kind.__name__ == camel(name)


def test_every_variant_asks_a_question_of_its_own():
    questions = [comment(conf() / "variant" / f"{name}.yaml") for name in options()["variant"]]
    assert len(set(questions)) == len(questions) > 3


def test_the_first_comment_is_the_one_that_is_not_a_header(tmp_path):
    (tmp_path / "v.yaml").write_text("# @package _global_\n#   Где ответ?\n# Ещё.\nk: 1 # нет\n", encoding="utf-8")
    assert comment(tmp_path / "v.yaml") == "Где ответ?"
    (tmp_path / "v.yaml").write_text("# @package _global_\nk: 1\n", encoding="utf-8")
    assert comment(tmp_path / "v.yaml") == ""


def test_names_are_all_that_a_command_line_can_say():
    assert {"retriever", "retriever/hybrid", "retriever.rrf_k", "variant/bm25", "k", "depth"} <= set(names())
