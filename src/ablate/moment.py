"""An ISO date or date-time in, a moment that can be compared out."""

from __future__ import annotations

import re
from datetime import UTC, datetime

_ISO = re.compile(r"\d{4}-\d{2}-\d{2}([T ]\d{2}:\d{2}(:\d{2}(\.\d{1,6})?)?(Z|[+-]\d{2}:?\d{2})?)?", re.ASCII)


def moment(text: str) -> datetime | None:
    """The moment in UTC that `2025-06-01` or `2025-06-01T12:30:00+03:00` names; None if the text is neither.

    A date is its first moment, as in SQL, and a time without offset is UTC, so that all of them stand in one order.
    """
    if not _ISO.fullmatch(text):
        return None
    try:
        named = datetime.fromisoformat(text)
        return named.replace(tzinfo=UTC) if named.tzinfo is None else named.astimezone(UTC)
    except (ValueError, OverflowError):
        return None
