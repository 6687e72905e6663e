"""send what nobody has judged to a person, and bring the answers back as a new version"""

from __future__ import annotations

from ablate.actions import run


def main(argv: list[str]) -> int:
    """Do one action; its exit code."""
    return run(__name__, argv)
