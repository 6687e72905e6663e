"""How far long work is, told on stderr: on a terminal in one line that is rewritten in place, else once a minute."""

from __future__ import annotations

import logging
import shutil
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import TextIO, TypeVar

log = logging.getLogger(__name__)

DRAWN_SECONDS = 0.1
"""How long a line on a terminal stands at least before it is rewritten."""

PLAIN_SECONDS = 60.0
"""How far apart the lines are where stderr is no terminal."""

Item = TypeVar("Item")


@dataclass
class Pace:
    """How fast items get done. Its clock starts when the first is done, for before that a model may be loaded."""

    done: int = 0
    first: int = 0
    began: float = field(default_factory=lambda: time.monotonic())
    since: float | None = None
    last: float = 0.0

    def step(self, count: int = 1) -> None:
        """`count` more are done."""
        self.done, self.last = self.done + count, time.monotonic()
        if self.since is None and count:
            self.since, self.first = self.last, self.done

    @property
    def measured(self) -> tuple[int, float]:
        """A number of items and the seconds that they took; all of both where everything came at once."""
        if self.since is not None and self.done > self.first:
            return self.done - self.first, self.last - self.since
        return self.done, self.last - self.began if self.done else 0.0


@dataclass
class Meter:
    """One piece of work: `doing` so many of `total` `unit`, as in `encoding 1,234 of 5,000 texts, 2:10 left`.

    As a context it leaves nothing behind on the screen.
    """

    doing: str
    unit: str
    total: int = 0
    pace: Pace = field(default_factory=Pace)
    told: float = field(default_factory=lambda: time.monotonic())

    def __enter__(self) -> Meter:
        return self

    def __exit__(self, *error: object) -> None:
        erase()

    def expect(self, more: int) -> None:
        """So many are to be done from now on."""
        self.total = self.pace.done + more
        draw(str(self))

    def step(self, count: int = 1) -> None:
        """`count` more are done; it is told now and then."""
        self.pace.step(count)
        now, terminal = time.monotonic(), sys.stderr.isatty()
        if now - self.told < (DRAWN_SECONDS if terminal else PLAIN_SECONDS):
            return
        self.told = now
        if terminal:
            draw(str(self))
        else:
            log.info("%s", str(self))  # now, for it goes on

    def __str__(self) -> str:
        text = f"{self.doing} {self.pace.done:,} of {self.total:,} {self.unit}"
        if self.pace.done <= self.pace.first:
            return text
        count, seconds = self.pace.measured
        return f"{text}, {clock(seconds / count * (self.total - self.pace.done))} left"


def followed(doing: str, items: Sequence[Item], unit: str) -> Iterator[Item]:
    """The items one by one, with how far they are and the time left."""
    with Meter(doing, unit) as meter:
        meter.expect(len(items))
        for item in items:
            yield item
            meter.step()


STEP: ContextVar[Callable[[], None]] = ContextVar("step", default=lambda: None)
"""What is called each time that something which is computed beside others is done."""


def stepped(items: Iterable[Item]) -> Iterator[Item]:
    """The items as they get done, each of them counted."""
    for item in items:
        STEP.get()()
        yield item


@contextmanager
def counted(total: int, pace: Pace | Meter) -> Iterator[None]:
    """Within it everything that is `stepped` moves `pace`; at its end it has moved by `total`, whatever was stepped."""
    done = 0

    def move(count: int = 1) -> None:
        nonlocal done
        count = min(count, total - done)  # what is done may have more steps than results
        done += count
        pace.step(count)

    token, began = STEP.set(move), time.monotonic()
    try:
        yield
        move(total)
    finally:
        STEP.reset(token)
        spent.append(time.monotonic() - began)


spent: list[float] = []
"""Seconds of every piece of work that was counted in this process."""


def computed() -> float:
    """How many seconds this process has spent on work that is counted, the loading of its models included."""
    return sum(spent)


class Handler(logging.StreamHandler[TextIO]):
    """Writes log lines to stderr, each on a line of its own."""

    def emit(self, record: logging.LogRecord) -> None:
        erase()
        super().emit(record)


drawn = 0
"""How many characters of a line stand on the terminal now."""


def draw(text: str) -> None:
    """Put `text` in place of the line, where stderr is a terminal.

    The cursor stays at its start, so that what others print stands there too.
    """
    global drawn
    if not sys.stderr.isatty():
        return
    text = text[: shutil.get_terminal_size().columns - 1]
    sys.stderr.write(f"\r{text.ljust(drawn)}\r")
    sys.stderr.flush()
    drawn = len(text)


def erase() -> None:
    """Leave nothing of the line behind."""
    global drawn
    if drawn:
        sys.stderr.write(f"\r{' ' * drawn}\r")
        sys.stderr.flush()
        drawn = 0


def clock(seconds: float) -> str:
    """`2:10`, or `1:02:10` from an hour on."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
