"""A Markdown file in, its text without the front matter out, and the front matter as values; tables as Markdown."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any, ClassVar

import yaml

from ablate.errors import first_line
from ablate.extraction import Extraction, Unreadable
from ablate.extraction.encoding import decoded

OPENING = re.compile(r"---[ \t]*(?:\n|\Z)")
CLOSING = re.compile(r"^(?:---|\.\.\.)[ \t]*(?:\n|\Z)", re.MULTILINE)
WHOLE, DECIMAL = r"-?(?:0|[1-9][0-9]*)", r"-?(?:0|[1-9][0-9]*)\.[0-9]+"
"""Numbers as they stand in metadata: what begins with zeros, like a postcode, is none."""

ACL = ("acl", "allow", "deny")
MISPLACED = re.compile(
    r"""[\s\ufeff\u200b]*(---|\+\+\+|\{|<!--)(?:(?!\1).){0,4096}?\bacl["'\]]?\s*[:={\n]""", re.DOTALL | re.IGNORECASE
)
"""Front matter that names an ACL, at the beginning of a text in which it is not read: of another kind, or indented."""


def read(data: bytes, encoding: str) -> Extraction:
    text, found = decoded(data, encoding)
    front, text = split(text)
    return Extraction(text, encoding=found, front=front)


def split(text: str) -> tuple[dict[str, Any], str]:
    """The front matter and what stands behind it.

    Raises:
        Unreadable: it is not closed, no YAML or no mapping. It may say who reads the file, so it is never passed over.

    """
    opening = OPENING.match(text)
    if not opening:
        return {}, text
    closing = CLOSING.search(text, opening.end())
    advice = "correct it, or begin the file with an empty line if it has none"
    if not closing:
        raise Unreadable(f"front matter: found no line --- that ends it, expected one; {advice}")
    return values(text[opening.end() : closing.start()], advice), text[closing.end() :].lstrip("\n")


def values(text: str, advice: str) -> dict[str, Any]:
    try:
        found = yaml.load(text, Plain) if text.strip() else {}
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        line = getattr(getattr(error, "problem_mark", None), "line", None)
        where = "" if line is None else f" in line {line + 2} of the file"
        said = getattr(error, "problem", None) or first_line(error)
        raise Unreadable(f"front matter: found {said}{where}, expected YAML; {advice}") from error
    if found is None:
        return {}
    if not isinstance(found, dict) or not all(isinstance(key, str) for key in found):
        raise Unreadable(f"front matter: found no mapping with text for keys, expected `key: value` lines; {advice}")
    if "acl" in found and found["acl"] is None:
        raise Unreadable(
            "front matter: found nothing as acl, expected {allow, deny}; say who reads it or remove the key"
        )
    for key in misplaced(found):
        raise Unreadable(
            f'front matter: found the key "{key}", expected acl: {{allow: [names], deny: [names]}}, not within another '
            "key; write it so, or rename it"
        )
    return {key: value for key, value in found.items() if value is not None}


def misplaced(found: dict[str, Any]) -> Iterator[str]:
    """Keys that would say who reads the file, were they spelt or placed otherwise."""
    yield from (key for key in found if key != "acl" and key.strip().casefold() in ACL)
    inner = [value for key, value in found.items() if key != "acl"]
    while inner:
        value = inner.pop()
        if isinstance(value, dict):
            yield from (key for key in map(str, value) if key.strip().casefold() == "acl")
            inner += value.values()
        elif isinstance(value, list):
            inner += value


class Plain(yaml.SafeLoader):
    """YAML of plain values: dates and `no` are text, as in JSON; no aliases, which can unfold into gigabytes."""

    yaml_implicit_resolvers: ClassVar[dict[str, Any]] = {}  # type: ignore[misc]

    def compose_node(self, parent: Any, index: Any) -> Any:
        if self.check_event(yaml.AliasEvent):
            raise yaml.composer.ComposerError(None, None, "an alias", self.peek_event().start_mark)  # type: ignore[no-untyped-call]
        return super().compose_node(parent, index)

    def construct_mapping(self, node: Any, deep: bool = False) -> dict[Any, Any]:
        seen: set[str] = set()
        for key, _ in node.value:
            if str(key.value) in seen:
                raise yaml.constructor.ConstructorError(None, None, f'the key "{key.value}" twice', key.start_mark)
            seen.add(str(key.value))
        return super().construct_mapping(node, deep)


for tag, expression, first in (
    ("null", "~|null|Null|NULL|", ["~", "n", "N", ""]),
    ("bool", "true|True|TRUE|false|False|FALSE", list("tTfF")),
    ("int", WHOLE, list("-0123456789")),
    ("float", DECIMAL, list("-0123456789")),
):
    Plain.add_implicit_resolver(f"tag:yaml.org,2002:{tag}", re.compile(f"(?:{expression})$"), first)


def table(rows: Sequence[Sequence[str]]) -> str:
    """Rows of cells as a Markdown table; the first row is its head, short rows are filled up with empty cells."""
    width = max(len(row) for row in rows)
    lines = [[*row, *[""] * (width - len(row))] for row in rows]
    lines.insert(1, ["---"] * width)
    return "\n".join(f"| {' | '.join(map(cell, line))} |" for line in lines)


def cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")
