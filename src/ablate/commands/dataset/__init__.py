"""begin, import, validate, describe, freeze or compare datasets"""

from __future__ import annotations

from ablate.actions import run


def main(argv: list[str]) -> int:
    """Do one action; its exit code."""
    return run(__name__, argv)
