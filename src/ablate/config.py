"""From composed YAML to checked objects: the class that `_target_` names is the schema of its node."""

from __future__ import annotations

import copy
import dataclasses
import difflib
import functools
import importlib
import inspect
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any

from omegaconf import DictConfig, OmegaConf, open_dict
from omegaconf.errors import OmegaConfBaseException

from ablate.conf import options
from ablate.earlier import filled
from ablate.errors import AblateError, ConfigError
from ablate.pipeline import STAGES as STAGES
from ablate.pipeline import Line

Node = dict[str, Any]

MODULES = "ABLATE_MODULES"
"""The environment variable that names the user's own modules, comma separated, for configs that come as data."""

LARGEST = 10_000
"""Values that such a config may hold: aliases of YAML could otherwise stand for more than anybody can read."""


@dataclass(frozen=True)
class Settings:
    """One checked config: a component an attribute. Everything that is not a stage is shared by all variants."""

    dataset: Any
    tokens: Any
    chunker: Any
    embedder: Any
    retriever: Any
    filter: Any
    access: Any
    reranker: Any
    packer: Any
    score: Any
    verdict: Any
    latency: Any
    cache: Any
    tracking: Any
    k: int
    depth: int
    budget: int
    seed: int
    dry_run: bool
    rerun: bool

    def __post_init__(self) -> None:
        if not 1 <= self.k <= self.depth:
            raise ConfigError(
                f"k: found {self.k} with depth {self.depth}, expected 1 <= k <= depth; set k or depth accordingly"
            )
        if self.budget < 1:
            raise ConfigError(f"budget: found {self.budget}, expected at least 1 token; raise it")

    @cached_property
    def line(self) -> Line:
        """The stages alone."""
        return Line(**{stage: getattr(self, stage) for stage in STAGES})


def resolve(cfg: DictConfig) -> Node:
    """The composed config as plain data, interpolations resolved, Hydra's own node left out.

    Raises:
        ConfigError: an interpolation or a mandatory value (`???`) is missing.

    """
    cfg = cfg.copy()
    with open_dict(cfg):
        cfg.pop("hydra", None)
    try:
        plain = OmegaConf.to_container(cfg, resolve=True, throw_on_missing=True)
    except OmegaConfBaseException as error:
        raise ConfigError(f"config: {first_line(error)}, expected a value; set it on the command line") from error
    assert isinstance(plain, dict)
    return {str(key): value for key, value in plain.items()}


def settings(node: Mapping[str, Any]) -> Settings:
    """A resolved config as checked objects.

    Raises:
        ConfigError: an unknown key, a wrong type, or a value that a component refuses; the message names the key.

    """
    for field in fields(Settings):
        value = node.get(field.name, {"_target_": None})
        if field.type == "Any" and not (isinstance(value, dict) and "_target_" in value):
            raise ConfigError(
                f"{field.name}: found {value!r}, expected a component; choose an option of its group, such as "
                f"{field.name}={', '.join(options()[field.name])}"
            )
    built: Settings = instance(Settings, dict(node), "")
    return built


def trusted(node: Any, where: str = "config") -> None:
    """Let a config that comes as data, from a record or a server, make components and nothing else.

    A `_target_` must name a dataclass that is defined in this package's module of its group, or in a module that
    `ABLATE_MODULES` names; no other module is imported to find out. Nothing in it may ask to be resolved (`${...}`) or
    be read from a package of others (`pkg://`).

    Raises:
        ConfigError: it would do something else, or it is too large; the message names the key.

    """
    for count, (place, value) in enumerate(walked(node, where)):
        if count == LARGEST:
            raise ConfigError(f"{where}: found more than {LARGEST} values, expected a config; check where it is from")
        if place.endswith("._target_") and not makes(value, place.split(".")[1]):
            raise ConfigError(
                f"{place}: found {value!r:.200}, expected a dataclass of this package's module for that group or of a "
                f"module that {MODULES} names; if it is yours and you trust it, set {MODULES}=its.module"
            )
        if isinstance(value, str):
            plain(value, place)


def plain(text: str, place: str) -> None:
    """Refuse text that is more than itself.

    Raises:
        ConfigError: it asks to be resolved, or names data in a package of others, which would be imported.

    """
    if "${" in text:
        raise ConfigError(
            f"{place}: found {text!r:.200}, expected a value and nothing to be resolved; write what it should be"
        )
    package = text.removeprefix("pkg://").partition("/")[0]
    if text.startswith("pkg://") and package != "ablate" and not granted(package, "data"):
        raise ConfigError(
            f"{place}: found {text!r:.200}, expected data of this package or of one that {MODULES} names; if you trust "
            f"it, set {MODULES} to its name"
        )


def walked(node: Any, where: str) -> Iterator[tuple[str, Any]]:
    """Every value within plain data, keys of mappings too, and the dotted path to it."""
    waiting = [(where, node)]
    while waiting:
        place, value = waiting.pop()
        yield place, value
        items = value.items() if isinstance(value, Mapping) else enumerate(value) if isinstance(value, list) else ()
        for key, inner in items:
            yield place, key
            waiting.append((f"{place}.{key}", inner))


def makes(target: Any, group: str) -> bool:
    """Whether a dotted path names a dataclass in a module that may make components of `group`."""
    module, _, name = target.rpartition(".") if isinstance(target, str) else ("", "", "")
    if not granted(module, group):
        return False
    try:
        found = vars(importlib.import_module(module)).get(name)
    except ImportError:
        return False
    return isinstance(found, type) and dataclasses.is_dataclass(found) and granted(found.__module__, group)


def granted(module: str, group: str) -> bool:
    """Whether a module is this package's for `group`, or one of the user's."""
    named = [name.strip() for name in os.environ.get(MODULES, "").split(",")]
    return any(f"{module}.".startswith(f"{name}.") for name in (f"ablate.{group}", *filter(None, named)))


def canonical(node: Any) -> Any:
    """A checked config with every value in its field's type, so that "128" and 128, or 2 and 2.0, are one config."""
    if isinstance(node, list):
        return [canonical(item) for item in node]
    if not isinstance(node, dict):
        return node
    values = {key: canonical(value) for key, value in node.items() if key != "_target_"}
    if "_target_" not in node:
        return values
    kind = located(node["_target_"], "config")
    return {"_target_": node["_target_"], **(typed(kind, values, "") if dataclasses.is_dataclass(kind) else values)}


def recorded(config: Mapping[str, Any], key: str) -> Any:
    """The value or component of a key in a recorded config: data, until it is found to be nothing but that.

    Raises:
        ConfigError: as in `trusted`, and where it is not there or its settings are wrong.

    """
    if key in config:
        trusted({key: config[key]})
    found = filled(config, key)
    if key not in found:
        raise ConfigError(f"{key}: found nothing in the recorded config, expected a value; run it again")
    return build(found[key], key)


def build(node: Any, where: str) -> Any:
    """The object that a node describes; a node without `_target_` is plain data that may hold such objects."""
    if isinstance(node, list):
        return [build(item, f"{where}[{number}]") for number, item in enumerate(node)]
    if not isinstance(node, dict):
        return node
    if "_target_" in node:
        values = {key: value for key, value in node.items() if key != "_target_"}
        return instance(located(node["_target_"], where), values, f"{where}.")
    return {key: build(value, f"{where}.{key}") for key, value in node.items()}


def located(target: Any, where: str) -> Any:
    """The class or function that a dotted path names.

    Raises:
        ConfigError: there is none.

    """
    from hydra.utils import get_object

    try:
        found = get_object(target)
        inspect.signature(found)  # what has none is no class or function, or does not say what it takes
        return found
    except Exception as error:
        raise ConfigError(
            f"{where}._target_: found {target!r} ({first_line(error)}), expected the dotted path of a class that "
            "Python can import, such as mymodule.MyRetriever; check its spelling and that its folder is on PYTHONPATH"
        ) from error


def instance(kind: Any, values: Node, prefix: str) -> Any:
    """An instance of `kind`: keys checked by its signature, values converted to the types of its fields."""
    known_keys(values, list(inspect.signature(kind).parameters.values()), prefix)
    if dataclasses.is_dataclass(kind):
        values = typed(kind, values, prefix)
    values = {key: build(value, f"{prefix}{key}") for key, value in values.items()}
    try:
        return kind(**values)
    except AblateError as error:
        raise type(error)(f"{prefix}{error}") from error
    except Exception as error:
        what = f"{type(error).__name__}: {first_line(error)}"
        raise ConfigError(
            f"{prefix.rstrip('.')}: found {values}, expected what it accepts ({what}); correct it"
        ) from error


def known_keys(values: Node, parameters: list[inspect.Parameter], prefix: str) -> None:
    """Refuse keys that a component does not take, and components whose keys are missing."""
    named = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    names = [parameter.name for parameter in parameters if parameter.kind in named]
    unknown = [key for key in values if key not in names]
    if unknown and not any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters):
        near = difflib.get_close_matches(unknown[0], names, 1, 0.5)
        hint = f"did you mean {near[0]}?" if near else "remove it"
        expected = f"one of {', '.join(names)}" if names else "no settings here"
        raise ConfigError(f"{prefix}{unknown[0]}: found an unknown setting, expected {expected}; {hint}")
    for parameter in parameters:
        if parameter.default is parameter.empty and parameter.name in names and parameter.name not in values:
            raise ConfigError(f"{prefix}{parameter.name}: found nothing, expected a value; add it to the config")


def typed(kind: Any, values: Node, prefix: str) -> Node:
    """Values converted by OmegaConf's rules for the fields of `kind`: "0.75" is a float, "five" and 5.5 are no ints.

    Raises:
        ConfigError: a value that cannot be converted.

    """
    known = kind, repr(values)
    if known not in TYPED:
        schema = structured(kind)
        try:
            TYPED[known] = OmegaConf.to_container(OmegaConf.merge(schema, values))
        except OmegaConfBaseException:
            for key, value in values.items():
                fitting(schema, key, value, prefix)  # one by one is slow, but tells which
            raise
    return {key: copy.deepcopy(TYPED[known][key]) for key in values}


TYPED: dict[tuple[Any, str], Any] = {}
"""What OmegaConf has converted: the jobs of a sweep share most of their components, and converting is slow."""


structured = functools.cache(OmegaConf.structured)
"""What OmegaConf knows of a class; it is only ever merged into something else."""


def fitting(schema: DictConfig, key: str, value: Any, prefix: str) -> None:
    """Refuse a value that is not of its field's type."""
    try:
        OmegaConf.merge(schema, {key: value})
    except OmegaConfBaseException as error:
        kind: Any = OmegaConf.get_type(schema)
        annotation = next(field.type for field in fields(kind) if field.name == key)
        expected = annotation if isinstance(annotation, str) else inspect.formatannotation(annotation)
        raise ConfigError(
            f"{prefix}{key}: found {value!r}, expected {expected} ({first_line(error)}); correct the value"
        ) from error


def first_line(error: BaseException) -> str:
    return (str(error).strip() or type(error).__name__).splitlines()[0]
