"""contract.yaml in, the success contract out: what counts as success, said before anything is measured."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from ablate.dataset import fingerprint
from ablate.dataset.known import Known
from ablate.dataset.lines import Entry, quoted
from ablate.errors import DatasetError, problem

NAME = "contract.yaml"

_KEYS = ("use_case", "intents", "authority", "grades", "critical", "service_levels", "prices", "owners")

VALUES = 50_000
"""How many values the contract may hold."""


def contract(data: bytes) -> Mapping[str, Any]:
    """The keys of the contract, checked by name; what they hold is read by the parts that use them.

    Raises:
        DatasetError: no YAML mapping, a key twice, an unknown key, or a value that JSON cannot hold.

    """
    if not data.strip():
        return {}
    from omegaconf import OmegaConf

    try:
        text = data.decode("utf-8-sig")
        readable(text)
        value = OmegaConf.to_container(OmegaConf.create(text))
    except Exception as error:
        mark = getattr(error, "problem_mark", None)
        where = f"{NAME}:{mark.line + 1}" if mark else NAME
        said = " ".join(str(error).split())
        raise DatasetError([problem(where, None, said, "a YAML mapping", "correct the file")]) from error
    if not isinstance(value, dict):
        raise DatasetError([problem(NAME, None, "a list", "a mapping", "write `key: value` lines")])
    found = {str(key): item for key, item in value.items()}
    Entry(NAME, found).only(_KEYS)
    authority(found)
    fingerprint.canonical(found)
    return found


def readable(text: str) -> None:
    """Refuse YAML whose aliases stand for more values than anybody can read, before they are written out.

    Raises:
        ValueError: they do.

    """
    import yaml

    waiting, count = [yaml.compose(text, yaml.SafeLoader)], 0
    while waiting:
        node, count = waiting.pop(), count + 1
        if count > VALUES:
            raise ValueError(f"aliases that stand for more than {VALUES} values")
        value = getattr(node, "value", None)
        if isinstance(value, list):
            waiting += [part for item in value for part in (item if isinstance(item, tuple) else (item,))]


def authority(contract: Mapping[str, Any]) -> None:
    """Check the order of authority: `field` of the metadata, `order` of its values, `floor` among them.

    Raises:
        DatasetError: something else stands there.

    """
    named = Entry(NAME, contract)
    if not named.has("authority"):
        return
    inner = named.inner("authority", contract["authority"])
    inner.only(("field", "order", "floor"))
    inner.name("field")
    order, floor = inner.names("order"), inner.maybe("floor")
    if not order:
        inner.fault("order", "no kind of source", "at least one, the one that counts most first", "name them")
    if len(set(order)) < len(order):
        raise DatasetError([inner.problem("order", quoted(", ".join(order)), "each once", "remove the repeated one")])
    if floor is not None and floor not in order:
        raise DatasetError([inner.problem("floor", quoted(floor), f"one of {', '.join(order)}", "name one of them")])


def critical(contract: Mapping[str, Any], queries: Known, unjudged: Collection[str]) -> frozenset[str]:
    """The ids under `critical.queries`; an id that no judged query has would guard nothing.

    Raises:
        DatasetError: such ids, or no list of ids.

    """
    named = Entry(NAME, contract)
    if not named.has("critical"):
        return frozenset()
    inner = named.inner("critical", contract["critical"])
    inner.only(("queries", "cohorts"))
    inner.names("cohorts")
    known = [key for key in inner.names("queries") if key in queries or key in queries.left_out]
    unknown = [key for key in inner.names("queries") if key in unjudged or key not in known]
    if unknown:
        expected = "ids of judged queries"
        raise DatasetError(
            [inner.problem("queries", f'"{key}"', expected, queries.hint(key) or "correct the id") for key in unknown]
        )
    return frozenset(inner.names("queries"))
