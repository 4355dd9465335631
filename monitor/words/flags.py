"""The fields of a declaration in the reasons of a report, written as flags: a reader of JSON may have no command line."""

import re
from typing import Final

from schemas.results.report import BenchmarkReport, PairReport

_FIELD: Final = re.compile(r"\((items|order|scores|repeats|missing): (\w+)\)")
_FLAG: Final = r"(--\1 \2)"
_END: Final = "an ended record makes"


def with_flags(text: str) -> str:
    """Return a reason with `(field: value)` as `(--field value)`.

    >>> with_flags("declare the item count (items: N)")
    'declare the item count (--items N)'
    """
    return _FIELD.sub(_FLAG, text).replace(_END, "--ended makes")


def named_flags(report: BenchmarkReport) -> BenchmarkReport:
    """Return a report whose reasons name flags."""
    order = report.order
    if order.reason is not None:
        order = order.replace(reason=with_flags(order.reason))
    result = report.result
    if result is not None:
        lines = {name: getattr(result, name) for name in ("best", "decided")}
        worded = {name: line.replace(text=with_flags(line.text)) for name, line in lines.items()}
        result = result.replace(**worded)
    goal = report.goal
    if goal is not None:
        verified = goal.verified
        if verified is not None:
            verified = verified.replace(text=with_flags(verified.text))
        goal = goal.replace(reason=with_flags(goal.reason), verified=verified)
    pairs = [pair_with_flags(pair) for pair in report.pairs]
    return report.replace(order=order, result=result, goal=goal, pairs=pairs)


def pair_with_flags(pair: PairReport) -> PairReport:
    """Return a pair whose reason names flags."""
    reason, named = _FIELD.subn(_FLAG, pair.reason)
    return pair.replace(reason=reason) if named else pair
