"""Comparisons of a published number with the computed one."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

UNEXPLAINED = "differs for no known reason: the input was changed, or this is a defect"


@dataclass(frozen=True)
class Row:
    """One comparison; `same` is None where one of the two numbers is missing."""

    name: str
    published: str
    computed: float | str | None
    same: bool | None
    note: str = ""


@dataclass(frozen=True)
class Section:
    """A table of the paper, recomputed."""

    title: str
    source: str
    rows: tuple[Row, ...]


def _row(name: str, published: str, computed: float | str, same: bool, note: str, because: str) -> Row:  # noqa: FBT001
    if same:
        return Row(name, published, computed, True, note)
    return Row(name, published, computed, False, f"differs because {because}" if because else UNEXPLAINED)


def parse(published: str) -> tuple[float, float]:
    """Return the value, and half a unit of the last digit, of a printed number such as "1,697", ".049" or "9.9e-14"."""
    mantissa, _, exponent = published.replace(",", "").lstrip("<>").partition("e")
    scale = 10.0 ** int(exponent or 0)
    decimals = len(mantissa.partition(".")[2])
    return float(mantissa) * scale, 0.5 * 10.0**-decimals * scale


def number(name: str, published: str, computed: float, *, slack: float = 0.0, note: str = "", because: str = "") -> Row:
    """Compare within half a unit of the last printed digit, plus `slack` for rounded inputs.

    A published "<x" or ">x" agrees when the computed number is on that side.
    """
    value, half_unit = parse(published)
    if published.startswith("<"):
        same = computed < value
    elif published.startswith(">"):
        same = computed > value
    else:
        same = abs(computed - value) <= half_unit * (1 + 1e-9) + slack
    return _row(name, published, computed, same, note, because)


def items(name: str, published: str, computed: float, *, because: str = "") -> Row:
    """Compare item counts within one item (the paper rounds some up) or 0.01 % (its MMLU-Pro rows fit N = 12,031)."""
    value, _ = parse(published)
    same = math.isfinite(computed) and abs(computed - value) <= max(1.0, 1e-4 * value)
    return _row(name, published, computed, same, "", because)


def text(name: str, published: str, computed: str, *, note: str = "", because: str = "") -> Row:
    """Compare words and counts such as "4/9" exactly."""
    return _row(name, published, computed, published == computed, note, because)


def simulated(
    name: str, published: str, computed: float, standard_error: float, *, note: str = "", because: str = ""
) -> Row:
    """Compare simulated numbers within two standard errors of their difference."""
    return number(name, published, computed, slack=2 * standard_error, note=note, because=because)


def proportion(
    name: str, published: str, computed: float, trials: Sequence[int], *, note: str = "", because: str = ""
) -> Row:
    """Compare simulated proportions; `trials` are the sizes of the paper's simulation and of ours, if there is one."""
    p = min(max(parse(published)[0], 0.01), 0.99)
    return simulated(
        name, published, computed, math.sqrt(sum(p * (1 - p) / m for m in trials)), note=note, because=because
    )
