"""A policy file goes in, what a run must fulfil comes out, checked."""

from __future__ import annotations

import math
import sys
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, fields
from hashlib import sha256
from pathlib import Path
from typing import Any

import yaml

from ablate.dataset.lines import near
from ablate.errors import ConfigError
from ablate.gate.decision import Decision
from ablate.verdict import unfit

SHIPPED = Path(__file__).parents[1] / "data" / "policies"
DOUBT = (Decision.STOP, Decision.CANARY)


@dataclass(frozen=True)
class Policy:
    """What must hold. None leaves a rule out; `name` and `digest` say which policy it was."""

    name: str
    digest: str
    access_exposed: bool
    ingestion: float | None
    evidence: float | None
    reproducible: bool | None
    critical_queries: bool | None
    incidents: bool | None
    not_worse: Mapping[str, float]
    critical_cohorts: float | None
    judged: float | None
    tokens: float | None
    latency_p95_ms: float | None
    latency_times: float | None
    doubt: Decision


KEYS = tuple(field.name for field in fields(Policy) if field.name not in ("name", "digest"))
ALWAYS = "access_exposed"
"""Forbidden documents stop a run under every policy; this says whether it must have been put to the test."""

FLAGS = ("access_exposed", "reproducible", "critical_queries", "incidents")
SHARES = ("ingestion", "evidence", "judged")


class Once(yaml.SafeLoader):
    """Plain YAML in which a key stands once: of two margins nobody could say which one decided."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        """The mapping.

        Raises:
            ConstructorError: a key stands in it twice.

        """
        seen = set()
        for key in (key for key, _ in node.value if isinstance(key, yaml.ScalarNode)):
            if key.value in seen:
                raise yaml.constructor.ConstructorError(None, None, f"the key {key.value} twice", key.start_mark)
            seen.add(key.value)
        return super().construct_mapping(node, deep)


def policy(wanted: str) -> Policy:
    """The policy of that name among the shipped ones, or in a file.

    Raises:
        ConfigError: there is none, or something in it is no rule; the message names file and key.

    """
    path = Path(wanted).expanduser()
    shipped = sorted(known.stem for known in SHIPPED.glob("*.yaml"))
    path = SHIPPED / f"{wanted}.yaml" if wanted in shipped and not path.is_file() else path
    try:
        data = path.read_bytes()
        node = yaml.load(data.decode("utf-8-sig"), Once)
    except OSError as error:
        raise ConfigError(
            f"--policy: found no file {wanted!r}, expected one, or the name of a shipped policy: {', '.join(shipped)}"
        ) from error
    except (ValueError, yaml.YAMLError, RecursionError) as error:  # a ValueError: no UTF-8, or a date that is none
        said = " ".join(str(error).split())
        raise ConfigError(f"{path}: found {said:.300}, expected YAML; correct the file") from error
    if not isinstance(node, dict):
        raise ConfigError(f"{path}: found {node!r:.100}, expected `rule: value` lines; see the policy strict")
    return Policy(name=path.stem, digest=sha256(data).hexdigest(), **_rules(str(path), node))


def _rules(where: str, node: Mapping[Any, Any]) -> dict[str, Any]:
    for key in node:
        if key not in KEYS:
            raise ConfigError(f"{where}: {key}: found an unknown rule, expected some of {', '.join(KEYS)}{hint(key)}")
    for key in KEYS:
        if key not in node:
            raise ConfigError(f"{where}: {key}: found nothing, expected a value; null leaves the rule out")
    return {key: _value(f"{where}: {key}", key, node[key]) for key in KEYS}


def hint(key: Any) -> str:
    return f"; {said}" if (said := near(str(key), KEYS)) else ""


def _value(where: str, key: str, value: Any) -> Any:
    if key == "doubt":
        if value not in DOUBT:
            raise ConfigError(f"{where}: found {value!r}, expected {' or '.join(DOUBT)}; choose one")
        return Decision(value)
    if key == "not_worse":
        return _margins(where, value)
    if key == ALWAYS and value is None:
        raise ConfigError(f"{where}: found null, expected true or false; no gate leaves forbidden documents out")
    if value is None:
        return None
    if key in FLAGS:
        if not isinstance(value, bool):
            raise ConfigError(f"{where}: found {value!r}, expected true or false; null leaves the rule out")
        return value
    most = 1.0 if key in SHARES else math.inf
    if not _number(value) or not 0 < value <= most:
        wanted = "a share above 0 and at most 1" if key in SHARES else "a number above 0"
        raise ConfigError(f"{where}: found {value!r}, expected {wanted}; null leaves the rule out")
    return float(value)


def _margins(where: str, value: Any) -> dict[str, float]:
    if not isinstance(value, dict):
        raise ConfigError(f"{where}: found {value!r}, expected `measure: margin` lines; write {{}} for none")
    for measure, margin in value.items():
        if wrong := unfit(str(measure)):
            raise ConfigError(f"{where}: found {measure!r}, {wrong}")
        if not _number(margin) or not margin > 0:
            raise ConfigError(f"{where}: {measure}: found {margin!r}, expected a margin above 0; say what matters")
    return {str(measure): float(margin) for measure, margin in value.items()}


def _number(value: Any) -> bool:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return abs(value) <= sys.float_info.max  # neither infinite nor NaN, nor a whole number that no float holds
