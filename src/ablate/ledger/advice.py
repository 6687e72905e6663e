"""A run's ledger goes in, one sentence on what to test next comes out."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from functools import cache
from pathlib import Path

import yaml

from ablate.conf import comment, conf
from ablate.ledger.flow import of_run
from ablate.ledger.stages import ACTING, DELIVERED, DENIED, INGESTION, STAGES
from ablate.records import RunRecord

ELSEWHERE = {
    INGESTION: "no variant acts on that: check how the documents are read",
    DENIED: "no variant acts on that: the access list lets the askers read no document that holds it",
}


def next_test(record: RunRecord, tried: Collection[str] = ()) -> str | None:
    """The largest loss of a run, and the shipped variants that act on it; `tried` are names to leave out.

    None for a run that kept no ledger.
    """
    cells = of_run(record)
    if not cells:
        return None
    lost = {stage: mass for stage, mass in cells.items() if stage != DELIVERED and mass}
    if not lost:
        return "what to test next: nothing, all evidence is delivered"
    stage = max(lost, key=lambda name: (lost[name], -STAGES.index(name)))
    share = f"{float(lost[stage]):.4g} of {sum(cells.values())} queries' evidence"
    return f"what to test next: {stage} loses most ({share}); {advice(stage, tried)}"


def advice(stage: str, tried: Collection[str]) -> str:
    """What acts on a stage: the variants of each component, the likeliest first."""
    if stage in ELSEWHERE:
        return ELSEWHERE[stage]
    acting = {component: [name for name in acts_on(component) if name not in tried] for component in ACTING[stage]}
    named = [f"{component} ({', '.join(names)})" for component, names in acting.items() if names]
    if not any(map(acts_on, ACTING[stage])):
        return f"no shipped variant of {', '.join(ACTING[stage])} gives it back: check its settings"
    if not named:
        return f"every shipped variant of {', '.join(ACTING[stage])} was tried: write one of your own"
    return f"variants that act on that: {', '.join(named)}"


def acts_on(component: str) -> list[str]:
    """The shipped variants that change a component, without those that ask what is lost by theirs."""
    return [name for name, changed in variants().items() if changed == component and not asks_for_loss(name)]


def asks_for_loss(variant: str) -> bool:
    """Whether a variant's own question is about what it loses, so that it gives nothing back."""
    return comment(conf() / "variant" / f"{variant}.yaml").startswith("What is lost")


@cache
def variants() -> Mapping[str, str]:
    """Every shipped variant and the component that it changes, read from its file."""
    return {path.stem: changed(path) for path in sorted((conf() / "variant").glob("*.yaml"))}


def changed(path: Path) -> str:
    """The group that a variant's file overrides, or whose keys it sets."""
    node = yaml.safe_load(path.read_text(encoding="utf-8"))
    overridden = [str(key) for entry in node.pop("defaults", ()) if isinstance(entry, dict) for key in entry]
    return next(iter([*(key.rpartition("/")[2] for key in overridden), *map(str, node)]))
