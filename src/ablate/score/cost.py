"""What a query spends and the price of each go in, its cost comes out."""

from __future__ import annotations

from collections.abc import Mapping

from ablate.errors import ConfigError


def cost(spent: Mapping[str, float], prices: Mapping[str, float]) -> float | None:
    """The sum of what is spent times the price of one, in the unit of the prices; without prices not applicable.

    Raises:
        ConfigError: a price is set for something that nothing counts.

    """
    unknown = sorted(set(prices) - set(spent))
    if unknown:
        raise ConfigError(
            f"cost.{unknown[0]}: found a price for what no stage counts, expected some of {', '.join(sorted(spent))}; "
            "correct the key or remove it"
        )
    return sum(spent[name] * price for name, price in prices.items()) if prices else None
