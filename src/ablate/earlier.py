"""A config that an earlier version recorded goes in, one that this version reads comes out, and what it lacked is said.

A setting that did not exist when a run was recorded is taken as it is shipped. What was recorded stays as it is: who
the run is, and what was declared before it, do not change. A component of the line must be there, for it is what ran;
a setting that it has been given since is taken as shipped too, and the numbers of a run that is made again tell whether
that is what it did before.
"""

from __future__ import annotations

import copy
import json
import logging
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

import yaml

from ablate.conf import conf, options
from ablate.pipeline import STAGES

log = logging.getLogger(__name__)

ALWAYS = ("dataset", "tokens", *STAGES, "k", "depth")
"""What every record has had from the first on: without it there is no run to speak of."""

HYDRAS = ("_target_", "defaults")


def filled(config: Mapping[str, Any], *wanted: str) -> dict[str, Any]:
    """A recorded config, or what is `wanted` of it, with the settings that it lacks; each is named once a command."""
    found = {key: value for key, value in config.items() if not wanted or key in wanted}
    for key in wanted or baseline():
        if key in found:
            found[key] = completed(found[key], key, key)
        elif key in baseline() and key not in ALWAYS:
            found[key] = taken(key, baseline()[key])
    return found


def completed(node: Any, group: str, where: str) -> Any:
    """A component, and those in it, with the settings that they lack."""
    if isinstance(node, list):
        return [completed(item, group, f"{where}.{number}") for number, item in enumerate(node)]
    if not isinstance(node, Mapping):
        return node
    known = {key: completed(value, group, f"{where}.{key}") for key, value in node.items()}
    lacking = shipped(group, str(node.get("_target_"))).items()
    return known | {key: taken(f"{where}.{key}", value) for key, value in lacking if key not in node}


def taken(key: str, value: Any) -> Any:
    """A copy of a shipped value, once it is said where it is from."""
    told(key, json.dumps(value, ensure_ascii=False))
    return copy.deepcopy(value)


@cache
def told(key: str, value: str) -> None:
    log.warning("recorded before `%s` existed; taken as %s, the shipped value", key, value)


@cache
def shipped(group: str, target: str) -> dict[str, Any]:
    """The settings that are shipped for a class: those on which all options agree that make it."""
    found = [node for node in nodes(group).values() if node.get("_target_") == target]
    return {key: value for key, value in settings(found) if all(node.get(key, found) == value for node in found)}


def settings(found: list[dict[str, Any]]) -> Iterator[tuple[str, Any]]:
    for node in found:
        yield from ((key, value) for key, value in node.items() if key not in HYDRAS)


@cache
def baseline() -> dict[str, Any]:
    """The shipped baseline by its keys, each group as the option of it that is the default."""
    main = yaml.safe_load((conf() / "config.yaml").read_text(encoding="utf-8"))
    entries = [item for entry in main["defaults"] if isinstance(entry, dict) for item in entry.items()]
    chosen = {group: nodes(group)[option] for group, option in entries if group in options()}
    return chosen | {key: value for key, value in main.items() if key not in ("defaults", "hydra")}


@cache
def nodes(group: str) -> dict[str, dict[str, Any]]:
    """The shipped options of a group by their names, as they are written."""
    paths = (conf() / group / f"{option}.yaml" for option in options().get(group, ()))
    return {path.stem: yaml.safe_load(path.read_text(encoding="utf-8")) for path in paths}
