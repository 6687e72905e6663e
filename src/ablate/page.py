"""What stands on a page, written down: titles, lists and tables as text for a terminal or as GitHub's Markdown."""

from __future__ import annotations

import os
import re
import shutil
import sys
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

HEADINGS = (20, 12, 10, 8, 5)
"""Columns of a terminal that a heading may take before it is wrapped, tried in turn until a table fits."""

WORD = 10
"""Columns up to which a word of a heading is not torn."""

LIMITS = ((40, 40), (28, 28), (28, 11), (20, 11), (17, 11), (14, 11), (10, 10))
"""Widths of the first column of words and of the others, tried in turn until a table fits: names stay whole longest."""


def signed(value: float, digits: int = 3) -> str:
    """With its sign, which zero has too: +0.083, -0.100, +0.000."""
    return f"{round(value, digits) + 0.0:+.{digits}f}"


def milliseconds(value: float) -> str:
    """Two digits or more: 0.42, 4.2, 42, 421."""
    return f"{value:.0f}" if value >= 10 else f"{value:.1f}" if value >= 1 else f"{value:.2f}"


def clean(text: str) -> str:
    """On one line, without characters that move the cursor or turn the direction of writing."""
    if text.isprintable():  # then no character is of these kinds
        return text.strip()
    moving = ("Cc", "Cf", "Cs", "Zl", "Zp")
    return "".join(" " if unicodedata.category(char) in moving else char for char in text).strip()


def calm(text: str) -> str:
    """Every line as `clean` has it, where it stood."""
    return "\n".join(line[: len(line) - len(line.lstrip(" "))] + clean(line) for line in text.split("\n"))


def public(address: str) -> str:
    """An address, or a message that quotes one, without the password in it, whether it is written as it should be."""
    address = re.sub(r"(?<=://)(?:[^/\s'\",]*@|[^/@\s:]*:(?!\d+[/?#])[^\s'\"]*@)", "", address)
    return re.sub(r"(?<=[?&]password=)[^&\s'\"]*", "...", address)


def say(text: str) -> None:
    """Print what the exit code answers too: it stays what it is where the reader of a pipe (head, less) has gone."""
    try:
        sys.stdout.write(f"{text}\n")
        sys.stdout.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


class Page(Protocol):
    """How the parts of a comparison are written down."""

    def title(self, text: str) -> str: ...

    def items(self, texts: Sequence[str]) -> str: ...

    def table(self, headings: Sequence[str], rows: Sequence[Sequence[str]], words: Sequence[int] = (0,)) -> str:
        """`words` are the columns that hold words: they stand left and may be wrapped; the others hold numbers."""
        ...


def columns_shown() -> int:
    """The width of the terminal that stdout is, at least 80; 100 where it goes to a file or a pipe."""
    return max(80, shutil.get_terminal_size().columns) if sys.stdout.isatty() else 100


@dataclass(frozen=True)
class Terminal:
    """Text for a terminal of `width` columns."""

    width: int

    def title(self, text: str) -> str:
        from tabulate import tabulate

        return str(tabulate([[clean(text)]], tablefmt="plain", maxcolwidths=[self.width], disable_numparse=True))

    def items(self, texts: Sequence[str]) -> str:
        from tabulate import tabulate

        rows = [["-", clean(text)] for text in texts]
        return str(tabulate(rows, tablefmt="plain", maxcolwidths=[None, self.width - 3], disable_numparse=True))

    def table(self, headings: Sequence[str], rows: Sequence[Sequence[str]], words: Sequence[int] = (0,)) -> str:
        from wcwidth import wcswidth

        grid = [[clean(cell) for cell in row] for row in (headings, *rows)]
        widths = [max(map(wcswidth, column)) for column in zip(*grid[1:], strict=True)]
        titles = list(map(wcswidth, grid[0]))
        whole = [min(max(map(wcswidth, text.split()), default=0), WORD) for text in grid[0]]
        room, most = self.width - 2 * (len(grid[0]) - 1), list(widths)
        tried = [*((wide, LIMITS[0]) for wide in HEADINGS), *((HEADINGS[-1], narrow) for narrow in LIMITS[1:])]
        for heading, (first, other) in tried:
            limits = {number: other if number else first for number in words}
            cells = [min(limits.get(number, width), width) for number, width in enumerate(widths)]
            most = [max(width, heading, word) for width, word in zip(cells, whole, strict=True)]
            needed = (max(width, min(title, wide)) for width, title, wide in zip(cells, titles, most, strict=True))
            if sum(needed) <= room:
                break
        return _drawn(grid, most, words)


def _drawn(grid: Sequence[Sequence[str]], most: Sequence[int], words: Sequence[int]) -> str:
    """Headings and rows in columns of at most these widths. The headings are a row, because real ones are padded."""
    from tabulate import SEPARATING_LINE, tabulate

    rows = [grid[0], SEPARATING_LINE, *grid[1:]]
    aligned = alignment(len(most), words)
    drawn = str(tabulate(rows, tablefmt="simple", colalign=aligned, maxcolwidths=list(most), disable_numparse=True))
    return "\n".join(line.rstrip() for line in drawn.splitlines()[1:-1])


@dataclass(frozen=True)
class Markdown:
    """GitHub's Markdown."""

    def title(self, text: str) -> str:
        return f"**{escaped(text)}**"

    def items(self, texts: Sequence[str]) -> str:
        return "\n".join(f"- {escaped(text)}" for text in texts)

    def table(self, headings: Sequence[str], rows: Sequence[Sequence[str]], words: Sequence[int] = (0,)) -> str:
        from tabulate import tabulate

        drawn = tabulate(
            [[escaped(cell) for cell in row] for row in rows],
            [escaped(text) for text in headings],
            tablefmt="pipe",
            colalign=alignment(len(headings), words),
            disable_numparse=True,
        )
        return str(drawn)


def alignment(columns: int, words: Sequence[int]) -> list[str]:
    return ["left" if number in words else "right" for number in range(columns)]


def escaped(text: str) -> str:
    """Without anything that Markdown would take for its own marks; `_` and `#` are such only at the edge of a word."""
    return re.sub(r"[\\`*~\[\]<|]|(?<!\w)[_#]|_(?!\w)", lambda found: f"\\{found[0]}", clean(text))
