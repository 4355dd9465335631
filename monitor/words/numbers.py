"""One place for number formats: gaps, items, ratios, p-values and names as text."""

from collections.abc import Callable, Iterable, Sequence
from math import ceil, exp, isclose, isfinite
from typing import Final

from monitor.words.counts import two_digits
from monitor.words.points import points as signed_points

MISSING: Final = "-"
Q_IS_NO_EVIDENCE: Final = "q is computed from the observed gap, so it adds no evidence"
_MILLION: Final = 10**6
_LARGEST_LOG: Final = 700  # exp() of more overflows
_ROUNDING: Final = 1e-11
_MOST_DIGITS: Final = 12


def safe(text: str) -> str:
    r"""Return text with every character that cannot be printed as an escape.

    Names are checked on input; this is the last defence of the terminal.

    >>> safe("a\x1b[31mb")
    'a\\x1b[31mb'
    """
    return text if text.isprintable() else "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text)


def points(gap: float | None, digits: int = 2) -> str:
    """Format a difference of scores in percentage points, with its sign.

    >>> points(0.0118), points(None)
    ('+1.18', '-')
    """
    return MISSING if gap is None else signed_points(gap, digits)


def interval(low: float | None, high: float | None) -> str:
    """Format an interval of gaps in percentage points."""
    return MISSING if low is None or high is None else f"[{points(low)}, {points(high)}]"


def percent(share: float | None) -> str:
    """Format a score, or a gap without its sign, in percent and without a unit."""
    return MISSING if share is None else f"{100 * share:.2f}"


def percent_range(low: float | None, high: float | None) -> str:
    """Format an interval of scores in percent."""
    return MISSING if low is None or high is None else f"{percent(low)} to {percent(high)}"


def items(count: float | None) -> str:
    """Format a number of items needed: rounded up, and only its order of magnitude from a million on.

    >>> items(5786.2), items(2727127.0), items(float("inf")), items(None)
    ('5,787', '>= 10^6', '>= 10^6', '-')
    """
    if count is None:
        return MISSING
    return ">= 10^6" if count >= _MILLION else f"{ceil(count):,}"


def needs(count: float) -> str:
    """Format the items in all that a gap needs, in a table: two significant digits.

    >>> needs(152.3), needs(220_767), needs(2e6)
    ('needs 150', 'needs 220,000', 'needs > 1 million')
    """
    return f"needs {'> ' if count >= _MILLION else ''}{estimate(count)}"


def estimate(count: float) -> str:
    """Format the same without a word after it.

    >>> estimate(114.6), estimate(40.2), estimate(2e6)
    ('110', '41', '1 million')
    """
    return "1 million" if count >= _MILLION else f"{two_digits(count):,}"


def needed(count: float | None) -> str:
    """Format a number of items needed for a document; see `items`.

    >>> needed(5786.2), needed(float("inf"))
    ('5,787', '≥ 1,000,000')
    """
    return items(count).replace(">= 10^6", "≥ 1,000,000")


def needed_range(low: float | None, high: float | None) -> str:
    """Format an interval of items needed for a document."""
    if low is None and high is None:
        return MISSING
    return f"{needed(low)} to {needed(high)}"


def planned_items(count: float) -> str:
    """Format the items of a plan, all digits: rounded up; three digits from a thousand million on.

    >>> planned_items(4806.2), planned_items(12_345_678_901), planned_items(float("inf"))
    ('4,807', '1.23e+10', 'no number')
    """
    if not isfinite(count):
        return "no number"
    return f"{ceil(count):,}" if count < _MILLION * 1000 else f"{count:.3g}"


def p_value(p: float | None, more: int = 0) -> str:
    """Format a p-value, with `more` digits than usual.

    >>> p_value(0.04858), p_value(5.8e-05), p_value(0.0), p_value(None), p_value(9.99e-4)
    ('0.0486', '5.8e-05', '< 1e-300', '-', '0.000999')
    """
    if p is None:
        return MISSING
    if p < 1e-300:
        return "< 1e-300"
    short = f"{p:.{1 + more}e}"
    return short if float(short) < 1e-3 else f"{p:.{3 + more}g}"


def equals(name: str, text: str) -> str:
    """Write what a number is, or below what.

    >>> equals("p", "0.04"), equals("p", "< 1e-300")
    ('p = 0.04', 'p < 1e-300')
    """
    return f"{name} {text}" if text.startswith("<") else f"{name} = {text}"


def e_value(log_e: float, more: int = 0) -> str:
    """Format an e-value from its natural logarithm, with `more` digits than usual.

    >>> e_value(3.0), e_value(3.0, 2), e_value(800)
    ('20.09', '20.0855', 'beyond 1e304')
    """
    return f"{exp(log_e):.{4 + more}g}" if log_e < _LARGEST_LOG else "beyond 1e304"


def digits_apart(form: Callable[[float, int], str], values: Iterable[float], limits: Sequence[float]) -> int:
    """Return how many digits more than usual show which of each value and limit is the smaller one."""
    close = [(x, limit) for x in values for limit in limits if not isclose(x, limit, rel_tol=_ROUNDING)]
    return next(
        (more for more in range(_MOST_DIGITS) if all(form(x, more) != form(limit, more) for x, limit in close)),
        _MOST_DIGITS,
    )


def apart(form: Callable[[float, int], str], value: float, limit: float) -> tuple[str, str]:
    """Format a number next to its threshold, with the digits that show which is the smaller one; a number above it has as many as it.

    >>> apart(p_value, 3.5e-5, 2.45e-5), apart(p_value, 0.05004, 0.05), apart(p_value, 0.05, 0.05)
    (('3.5e-05', '2.4e-05'), ('0.05004', '0.05000'), ('0.05', '0.05'))
    """
    more = digits_apart(form, [value], [limit])
    texts = form(value, more), form(limit, more)
    if value <= limit or not all(text.replace(".", "").isdigit() for text in texts):
        return texts
    places = max(len(text.partition(".")[2]) for text in texts)
    first, second = (text if places == len(text.partition(".")[2]) else f"{float(text):.{places}f}" for text in texts)
    return first, second


def rank_list(places: Sequence[int], dash: str = "–") -> str:
    """Format ranks, neighbouring ones as a range.

    >>> rank_list([1, 4, 5, 6, 9], "-"), rank_list([2, 3]), rank_list([])
    ('1, 4-6, 9', '2, 3', 'none')
    """
    runs: list[list[int]] = []
    for place in places:
        if runs and place == runs[-1][-1] + 1:
            runs[-1].append(place)
        else:
            runs.append([place])
    parts = [f"{run[0]}{dash}{run[-1]}" if len(run) > 2 else ", ".join(map(str, run)) for run in runs]
    return ", ".join(parts) or "none"


def decimal(value: float | None, digits: int = 2) -> str:
    """Format a plain number; infinite values as `inf`."""
    if value is None:
        return MISSING
    return f"{round(value, digits) + 0.0:.{digits}f}" if isfinite(value) else str(value)


def ratio(q: float | None) -> str:
    """Format a resolution ratio; it never rounds up to 1.

    >>> ratio(2.079), ratio(0.9996), ratio(27.78), ratio(0.0044)
    ('2.08', '0.99', '27.8', '0.00')
    """
    if q is None:
        return MISSING
    if 0.99 < q < 1:
        return "0.99"
    return decimal(q, 1 if q >= 10 else 2)


def money(amount: float) -> str:
    """Format an amount in the currency of the prices.

    >>> money(1234.5), money(0.1234)
    ('1,234.50', '0.123')
    """
    return f"{amount:,.2f}" if amount >= 1 or not amount else f"{amount:.3g}"
