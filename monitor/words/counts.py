"""Counts with their nouns, and estimates."""

from collections.abc import Sequence
from math import ceil, floor, log10
from typing import Final

EQUAL_RUNS: Final = "Files with equal contents count as runs of their own (--equal-runs)."


def probability(share: float) -> str:
    """Format a probability of a forecast in whole percent.

    >>> probability(0.413), probability(0.004), probability(0.9971)
    ('about 41 %', 'less than 1 %', 'more than 99 %')
    """
    percent = 100 * share
    if percent < 1:
        return "less than 1 %"
    return "more than 99 %" if percent > 99 else f"about {percent:.0f} %"


def about_items(items: float, noun: str = "item") -> str:
    """Format an estimated number of items, above 0.

    >>> about_items(114.6), about_items(220_767), about_items(1.2), about_items(2e6, "prompt")
    ('about 110 items', 'about 220,000 items', 'about 2 items', 'more than a million prompts')
    """
    return f"more than a million {noun}s" if items >= 1e6 else f"about {counted(two_digits(items), noun)}"


def two_digits(items: float) -> int:
    """Round an estimated number of items to two digits, the same on every surface; a part of an item takes a whole one."""
    digit = 10 ** max(floor(log10(max(items, 1))) - 1, 0)
    return max(floor(items / digit + 0.5) * digit if digit > 1 else ceil(items), 1)


def counted(count: int, noun: str) -> str:
    """Format a count with its noun.

    >>> counted(1, "pair"), counted(1_200, "item")
    ('1 pair', '1,200 items')
    """
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def listed(first: Sequence[str], count: int | None = None) -> str:
    """Name the first models, and count the others.

    >>> listed(["ash", "birch"]), listed(["ash", "birch", "cedar"], 8), listed([], 8)
    ('ash and birch', 'ash, birch, cedar and 5 more models', '8 models')
    """
    rest = 0 if count is None else count - len(first)
    if not first:
        return counted(rest, "model")
    if rest > 0:
        return f"{', '.join(first)} and {counted(rest, 'more model')}"
    *others, last = first
    return f"{', '.join(others)} and {last}" if others else last
