"""The ids of a file, those of its broken lines too, so that one mistake is not told twice."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from ablate.dataset.lines import Entry, near

_STRING = re.compile(r'(?="((?:[^"\\]|\\.){1,200})")')  # from any quote to the next: the line is broken
_ENDS = 4096
"""Characters at the start and at the end of a line without sense in which ids and fields are looked for."""
_HINTS = 20
"""Unknown ids for which the nearest known one is sought: that takes a while where there are many."""


@dataclass
class Known(Collection[str]):
    """Ids with the number of their first line, and what lines that are no JSON may have named.

    `key` holds the id of a line; lines of the ids in `left_out` are not looked at, but counted in `skipped`. Where not
    one id could be read every id counts as known: what is wrong is then the file, not who refers to it.
    """

    file: str
    key: str
    left_out: Collection[str] = ()
    lines: dict[str, int] = field(default_factory=dict)
    mentioned: set[str] = field(default_factory=set)
    hints: int = _HINTS
    skipped: int = 0

    def __contains__(self, key: object) -> bool:
        return not self.lines or key in self.lines or key in self.mentioned

    def __iter__(self) -> Iterator[str]:
        return iter(self.lines)

    def __len__(self) -> int:
        return len(self.lines)

    def add(self, entry: Entry) -> None:
        """Remember the id of a line.

        Raises:
            DatasetError: there is none, or an earlier line has it.

        """
        key, number = entry.name(self.key), int(entry.where.rpartition(":")[2])
        first = self.lines.setdefault(key, number)
        if first != number:
            entry.fault(
                self.key,
                f'"{key}" a second time (first in {self.file}:{first})',
                "ids that differ",
                "remove one of the lines or give it an id of its own",
            )

    def leaves(self, line: Mapping[str, Any]) -> bool:
        """Whether the line is one that is left out."""
        key = line.get(self.key)
        left = isinstance(key, str) and key in self.left_out
        self.skipped += left
        return left

    def lost(self, line: str) -> bool:
        """Whether a line that cannot be read is one that is left out; if not, what it may have named is remembered."""
        named = strings(line)
        if not named.isdisjoint(self.left_out):
            self.skipped += 1
            return True
        self.mentioned |= named
        return False

    def missed(self, entry: Entry) -> None:
        """Remember what a broken line may have named where its id cannot be read."""
        key = entry.value.get(self.key)
        if not isinstance(key, str):
            self.mentioned |= strings(json.dumps(entry.value, ensure_ascii=False)) if key is None else {str(key)}

    def hint(self, key: str) -> str:
        """A hint that names the nearest id, or nothing."""
        self.hints -= 1
        return near(key, self.lines) if self.hints >= 0 else ""


def strings(line: str) -> set[str]:
    """Every short text in quotes near the ends of a line."""
    return {*_STRING.findall(line[:_ENDS]), *_STRING.findall(line[-_ENDS:])}


def hint(key: str, ids: Collection[str]) -> str:
    return ids.hint(key) if isinstance(ids, Known) else near(key, ids)
