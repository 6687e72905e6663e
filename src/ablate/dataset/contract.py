"""contract.yaml in, the success contract out: what counts as success, said before anything is measured."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from ablate.dataset.lines import Entry, near
from ablate.errors import DatasetError

_KEYS = ("use_case", "intents", "authority", "grades", "critical", "service_levels", "prices", "owners")


def contract(data: bytes) -> Mapping[str, Any]:
    """The keys of the contract, checked by name; what they hold is read by the parts that use them.

    Raises:
        DatasetError: no YAML mapping, a key twice, or an unknown key.

    """
    from omegaconf import OmegaConf

    try:
        value = OmegaConf.to_container(OmegaConf.create(data.decode("utf-8-sig")))
    except Exception as error:
        line = " ".join(str(error).split())
        raise DatasetError(f"contract.yaml: found {line}, expected a YAML mapping; correct the file") from error
    if not isinstance(value, dict):
        raise DatasetError("contract.yaml: found a list, expected a mapping; write `key: value` lines")
    found = {str(key): item for key, item in value.items()}
    Entry("contract.yaml", found).only(_KEYS)
    return found


def critical(contract: Mapping[str, Any], queries: Collection[str]) -> frozenset[str]:
    """The ids under `critical.queries`; an id that no judged query has would guard nothing.

    Raises:
        DatasetError: such an id, or no list of ids.

    """
    named = Entry("contract.yaml", contract)
    if not named.has("critical"):
        return frozenset()
    inner = named.inner("critical", contract["critical"])
    inner.only(("queries", "cohorts"))
    inner.names("cohorts")
    for key in inner.names("queries"):
        if key not in queries:
            advice = near(key, queries) or "correct the id"
            inner.fault("queries", f'"{key}"', "ids of judged queries", advice)
    return frozenset(inner.names("queries"))
