"""The price of an item, by model; the empty name is that of all models without one of their own."""

from collections.abc import Iterable, Mapping
from math import isfinite

Prices = Mapping[str, float]

FORM = "MODEL=PRICE, or PRICE for all models"


def parse_price(text: str, tokens: str = "1") -> float:
    """Return the price of an item that takes so many tokens, from the price of one."""
    each, count = float(text), float(tokens)
    if not (min(each, count) >= 0 and isfinite(each * count)):
        raise ValueError("not a price")
    return each * count


def split_prices(texts: Iterable[str]) -> list[tuple[str, str]]:
    """Split ``MODEL=PRICE`` into names and prices; a name may hold an equals sign.

    >>> split_prices(["a=b=0.5", "0.1"])
    [('a=b', '0.5'), ('', '0.1')]
    """
    parts = (text.rpartition("=") for text in texts)
    return [(name.strip(), price.strip()) for name, _, price in parts]
