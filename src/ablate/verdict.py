"""What was declared before a study and what its runs gave go in, one word a variant comes out."""

from __future__ import annotations

import math
from dataclasses import dataclass

from ablate.errors import ConfigError


@dataclass(frozen=True)
class Declared:
    """What a study is judged by, declared before it runs and part of its name.

    `primary` is the measure that the words are about; None stands for the one that fits what a variant changes.
    `margin` is the least difference that matters, in the measure's unit.

    Raises:
        ConfigError: the margin is no finite number above 0, or no measure is named `primary`.

    """

    primary: str | None
    margin: float

    def __post_init__(self) -> None:
        if not math.isfinite(self.margin) or self.margin <= 0:
            raise ConfigError(f"margin: found {self.margin}, expected a number above 0; say what difference matters")
        if self.primary is not None:
            _known(self.primary)


def _known(measure: str) -> None:
    from ablate.measures import HIGHER, LOWER, describe

    try:
        better = describe(measure).better
    except KeyError:
        better = ""
    if better not in (HIGHER, LOWER):
        raise ConfigError(
            f"primary: found {measure!r}, expected a measure that is better when higher or lower, such as "
            "context/sufficient; metrics.json lists those of a run"
        )
