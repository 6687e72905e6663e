"""What a query spends and the price of each go in, its cost comes out."""

from __future__ import annotations

from collections.abc import Mapping


def cost(spent: Mapping[str, float], prices: Mapping[str, float]) -> float | None:
    """The sum of what is spent times the price of one, in the unit of the prices; without prices not applicable."""
    return sum(spent[name] * price for name, price in prices.items()) if prices else None
