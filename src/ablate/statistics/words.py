"""The words of verdicts; each has one meaning, and it stands here."""

from __future__ import annotations

from enum import StrEnum


class Word(StrEnum):
    """What a comparison comes to."""

    BETTER = "better"
    """The mean difference is on the better side of 0, by the sign-flip test at its level in the family."""

    WORSE = "worse"
    """The same on the other side; of a gate: by more than the margin."""

    MIXED = "mixed"
    """Better, but `sufficient` fell by more than the margin."""

    EQUIVALENT = "equivalent"
    """Neither better nor worse, and both one-sided bounds lie inside the margin."""

    IDENTICAL = "identical"
    """Every query has the same value on both sides."""

    CANNOT_TELL = "cannot tell"
    """None of these: the queries do not say."""

    NOT_WORSE = "not worse"
    """Of a gate: the one-sided bound lies above minus the margin."""

    MAY_BE_WORSE = "may be worse"
    """Of a gate: there were queries enough to show that it is not worse, and they do not show it."""

    CANNOT_JUDGE = "cannot judge"
    """Of a gate: too few queries to show that it is not worse."""

    ADDITIVE = "additive"
    """Two changes together bring the sum of what each brings, to within the margin."""

    OVERLAPPING = "overlapping"
    """Together they bring less than the sum."""

    REINFORCING = "reinforcing"
    """Together they bring more than the sum."""
