"""Comparisons of a published number with the computed one."""

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

Verdict = Literal["equal", "compatible", "differs", "not_recomputable", "not_printed"]
"""How a row compares: `equal` in every printed digit; `compatible`, within what its note names; else it differs.

`not_recomputable` rows have no computed value, `not_printed` ones no published one.
"""

UNEXPLAINED = "for no known reason: the input was changed, or this is a defect"


@dataclass(frozen=True)
class Row:
    """One comparison; the note of a compatible row names the distance and the reason, that of one that differs the reason."""

    name: str
    published: str
    computed: float | str | None
    verdict: Verdict
    note: str = ""


@dataclass(frozen=True)
class Section:
    """A table of the paper, recomputed."""

    title: str
    source: str
    rows: tuple[Row, ...]


def differs(name: str, published: str, computed: float | str, because: str = "") -> Row:
    """Return a row that differs."""
    return Row(name, published, computed, "differs", because or UNEXPLAINED)


def parse(published: str) -> tuple[float, float]:
    """Return the value, and half a unit of the last digit, of a printed number such as "1,697", ".049" or "9.9e-14"."""
    mantissa, _, exponent = published.replace(",", "").lstrip("<>").partition("e")
    scale = 10.0 ** int(exponent or 0)
    decimals = len(mantissa.partition(".")[2])
    return float(mantissa) * scale, 0.5 * 10.0**-decimals * scale


def number(
    name: str,
    published: str,
    computed: float,
    *,
    slack: float = 0.0,
    why: str = "",
    reuses: str = "",
    note: str = "",
    because: str = "",
) -> Row:
    """Compare a number with a printed one."""
    value, half_unit = parse(published)
    if published.startswith(("<", ">")):
        inside = computed < value if published.startswith("<") else computed > value
        bound = "the paper prints a bound"
        return (
            Row(name, published, computed, "compatible", bound)
            if inside
            else differs(name, published, computed, because)
        )
    distance = computed - value
    if not abs(distance) <= half_unit * (1 + 1e-9) + slack:
        return differs(name, published, computed, because)
    off = f"off by {distance:+,.0f}" if abs(distance) >= 10 else f"off by {distance:+.2g}"
    if reuses:
        return Row(name, published, computed, "compatible", f"{off}; made of {reuses}")
    if abs(distance) <= half_unit * (1 + 1e-9):
        return Row(name, published, computed, "equal", note)
    return Row(name, published, computed, "compatible", f"{off}; {why}")


def items(name: str, published: str, computed: float, *, because: str = "") -> Row:
    """Compare item counts: rounded up within one item, or within 0.01 %, as the paper's MMLU-Pro rows fit N = 12,031."""
    value, _ = parse(published)
    if value - 1 < computed <= value:
        return number(name, published, computed, slack=1, why="the paper rounds up")
    return number(
        name,
        published,
        computed,
        slack=max(0.5, 1e-4 * value),
        why="the paper's counts fit N = 12,031",
        because=because,
    )


def figures(name: str, published: str, computed: str, *, because: str = "") -> Row:
    """Compare counts such as "4/9" or "3 of 3", figure by figure."""
    numbers = [re.findall(r"\d+", text) for text in (published, computed)]
    if numbers[0] and numbers[0] == numbers[1]:
        return Row(name, published, computed, "equal")
    return differs(name, published, computed, because)


def word(name: str, published: str, computed: str, *, note: str = "", because: str = "") -> Row:
    """Compare words, which have no digits: compatible at best."""
    if published != computed:
        return differs(name, published, computed, because)
    return Row(
        name, published, computed, "compatible", note or "a word; it follows from numbers with digits of their own"
    )


def simulated(
    name: str, published: str, computed: float, standard_error: float, *, note: str = "", because: str = ""
) -> Row:
    """Compare simulated numbers within two standard errors of their difference."""
    why = f"the paper's is simulated, two standard errors are {2 * standard_error:.2g}{f'; {note}' if note else ''}"
    return number(name, published, computed, slack=2 * standard_error, why=why, note=note, because=because)


def proportion(
    name: str, published: str, computed: float, trials: Sequence[int], *, note: str = "", because: str = ""
) -> Row:
    """Compare simulated proportions; `trials` are the sizes of the paper's simulation and of ours, if there is one."""
    p = min(max(parse(published)[0], 0.01), 0.99)
    return simulated(
        name, published, computed, math.sqrt(sum(p * (1 - p) / m for m in trials)), note=note, because=because
    )
