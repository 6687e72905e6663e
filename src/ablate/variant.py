"""The proof of one change: what a command would run with and without its variant, compared before anything runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from hydra import compose
from hydra.core.global_hydra import GlobalHydra
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import Override
from omegaconf import DictConfig, OmegaConf

from ablate.config import STAGES, Node, resolve
from ablate.errors import ConfigError, NotOneChange

Changes = dict[str, tuple[Any, Any]]

PLUGINS = "hydra._internal.core_plugins"
BASIC = f"{PLUGINS}.basic_launcher.BasicLauncher", f"{PLUGINS}.basic_sweeper.BasicSweeper"
"""The launcher and the sweeper that Hydra has by default."""


@dataclass(frozen=True)
class Plan:
    """What one command asks for: a baseline and, unless it is studied alone, a variant that differs in one stage."""

    variant: str | None
    component: str | None
    baseline: Node
    config: Node
    changes: Changes
    overrides: tuple[str, ...]
    shared: tuple[str, ...]
    launched: bool = False
    """Whether Hydra is asked for more than to run the jobs here, one after another: a launcher, say, or a callback."""


def plan(overrides: Sequence[str], config_name: str = "config") -> Plan:
    """Compose a command's baseline and variant and prove that one stage, and nothing shared, differs.

    Needs a running Hydra (a job, or `hydra.initialize_config_dir`).

    Raises:
        ConfigError: the command names a variant in a way that cannot mean one.
        NotOneChange: the two configs differ in no stage, in several, or in something shared.

    """
    parsed = OverridesParser.create().parse_overrides(list(overrides))
    named = [override for override in parsed if override.key_or_group == "variant"]
    search_path = str(GlobalHydra.instance().config_loader().get_search_path())

    def composed(*words: str) -> Node:
        return composition(search_path, config_name, *words)[0]

    config, launched = composition(search_path, config_name, *overrides)
    if not named:
        return Plan(None, None, config, config, {}, tuple(overrides), tuple(overrides), launched)
    name, added = variant_name(named), str(named[0].input_line)
    tuning = [override for override in parsed if any(belongs(override, stage) for stage in STAGES)]
    # Which stage the variant changes by itself matters only where something may be its tuning: composing is slow.
    component = one_stage(name, diff(composed(), composed(added))) if len(tuning) > 1 else ""
    shared = [text for text, override in zip(overrides, parsed, strict=True) if not belongs(override, component)]
    baseline = composed(*shared)
    if len(shared) + 1 < len(overrides):
        # First without the tuning: a group override beside the variant would win over it, and the label would lie.
        one_stage(name, diff(baseline, composed(*shared, added)))
    changes = diff(baseline, config)
    if not changes:
        composed(added)  # an override of the command may have hidden that the variant itself does not compose
    return Plan(name, one_stage(name, changes), baseline, config, changes, tuple(overrides), tuple(shared), launched)


def together(overrides: Sequence[str], names: Sequence[str], config_name: str = "config") -> list[Plan]:
    """Two variants, each alone and both at once, beside the baseline that the three plans share.

    An override of a key of either one's stage belongs to that variant, wherever it is; all others are shared.

    Raises:
        NotOneChange: a variant does not change one stage, both change the same one, or together they change more.

    """
    added = [f"+variant={name}" for name in names]
    stages = [str(plan([word], config_name).component) for word in added]
    if len(set(stages)) < len(stages):
        raise NotOneChange(
            f"{' and '.join(names)}: found two variants of the stage {stages[0]}, expected two stages; only what can "
            "be there at once can act together"
        )
    parsed = OverridesParser.create().parse_overrides(list(overrides))
    owners = [next((stage for stage in stages if belongs(each, stage)), "") for each in parsed]
    own = {stage: [text for text, owner in zip(overrides, owners, strict=True) if owner == stage] for stage in stages}
    shared = [text for text, owner in zip(overrides, owners, strict=True) if not owner]
    alone = [plan([*shared, word, *own[stage]], config_name) for word, stage in zip(added, stages, strict=True)]
    words = [*shared, f"+variant=[{','.join(names)}]", *(text for stage in stages for text in own[stage])]
    search_path = str(GlobalHydra.instance().config_loader().get_search_path())
    config, launched = composition(search_path, config_name, *words)
    changes = diff(alone[0].baseline, config)
    if changes != {key: pair for each in alone for key, pair in each.changes.items()}:
        raise NotOneChange(
            f"{' and '.join(names)}: found other changes together than alone, expected both and nothing else: "
            f"{listed(changes)}; let each variant set its own stage alone"
        )
    ordered = sorted(zip(stages, names, strict=True), key=lambda each: STAGES.index(each[0]))  # one name either way
    stage, name = ("+".join(parts) for parts in zip(*ordered, strict=True))
    both = Plan(name, stage, alone[0].baseline, config, changes, tuple(words), tuple(shared), launched)
    return [*alone, both]


@lru_cache(maxsize=256)  # the jobs of a sweep share their baseline and much else, and composing is slow
def composition(search_path: str, config_name: str, *overrides: str) -> tuple[Node, bool]:
    """The resolved config of a command whose files are found on `search_path`, and whether Hydra has more to do."""
    cfg = compose(config_name, list(overrides), return_hydra_config=True)
    OmegaConf.set_struct(cfg, False)
    launched = launching(cfg.pop("hydra"))
    return resolve(cfg), launched


def launching(hydra: DictConfig) -> bool:
    """Whether Hydra's own config differs from its defaults in how jobs are run."""
    kinds = hydra.launcher._target_, hydra.sweeper._target_
    return kinds != BASIC or bool(hydra.callbacks or hydra.job.chdir or hydra.job.env_set)


def variant_name(named: Sequence[Override]) -> str:
    """The one variant that a command adds.

    Raises:
        ConfigError: a list of variants, or one with the baseline's own name.

    """
    value = named[0].value()
    if not isinstance(value, str):
        raise ConfigError(
            f"variant: found {named[0].input_line!r}, expected the name of one variant; run several one after another "
            "with -m '+variant=a,b'"
        )
    if value == "baseline":
        raise ConfigError(
            "variant: found 'baseline', the name of the command without a variant, expected another; rename its file"
        )
    return value


def belongs(override: Override, component: str) -> bool:
    """True for the variant itself and for settings of its own stage, such as `reranker.first=40`."""
    return override.key_or_group == "variant" or override.key_or_group.startswith(f"{component}.")


def one_stage(name: str, changes: Changes) -> str:
    """The single stage that `changes` touch.

    Raises:
        NotOneChange: none, several, or a key that all variants share; every key is listed with both values.

    """
    touched = {key.split(".")[0] for key in changes}
    if not touched:
        raise NotOneChange(
            f"variant {name}: found no difference from its baseline, expected exactly one changed stage; "
            "an override of its stage on the command line, or a baseline that already has it, makes it the same"
        )
    shared = touched.difference(STAGES)
    if shared or len(touched) > 1:
        what = f"shared settings ({', '.join(sorted(shared))})" if shared else f"{len(touched)} stages"
        raise NotOneChange(
            f"variant {name}: found changes in {what}, expected exactly one of {', '.join(STAGES)}: "
            f"{listed(changes)}; split it into variants that change one thing each"
        )
    return touched.pop()


def listed(changes: Changes) -> str:
    return "; ".join(f"{key}: {before!r} -> {after!r}" for key, (before, after) in changes.items())


def diff(before: Mapping[str, Any], after: Mapping[str, Any]) -> Changes:
    """Every dotted key whose value differs, with both values; a key that one side lacks has None there."""
    one, other = flat(before), flat(after)
    return {
        key: (one.get(key), other.get(key))
        for key in sorted(one.keys() | other.keys())
        if (key in one) != (key in other) or not same(one.get(key), other.get(key))
    }


def same(before: Any, after: Any) -> bool:
    """Whether two values are equal; NaN is what it is, and the setting that holds it says what is wrong with it."""
    return bool(before == after or (before != before and after != after))


def flat(node: Any, prefix: str = "") -> Node:
    """Nested data as dotted keys; an empty mapping or list is a value of its own."""
    items = dict(enumerate(node)) if isinstance(node, list) else node
    if not isinstance(items, Mapping) or not items:
        return {prefix: node}
    result: Node = {}
    for key, value in items.items():
        result |= flat(value, f"{prefix}.{key}" if prefix else str(key))
    return result
