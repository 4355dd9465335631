"""The sentences of a gate: what a verdict on one benchmark means, and what it would take."""

from collections.abc import Mapping, Sequence
from math import ceil

from monitor.view.gates.margin import Margin
from monitor.words.changes import level
from monitor.words.points import points
from schemas.records.text import shorten
from schemas.results.gate import ConflictRule, GateComparison


def conflict_sentence(counts: Mapping[str, int], models: Sequence[str], rule: ConflictRule = "worst") -> str | None:
    """Return which of two models have scores that contradict earlier ones, and what to do; None without any.

    Parameters
    ----------
    counts : mapping of str to int
        Contradicting scores by model.
    models : sequence of str
        Candidate and baseline.
    rule : str
        Which score counts: worst, first or last.
    """
    mine = {model: counts[model] for model in models if model in counts}
    if not mine:
        return None
    total = sum(mine.values())
    scores = "1 score contradicts" if total == 1 else f"{total:,} scores contradict"
    which = {
        "worst": f"Each counts at its worst for {shorten(models[0])} (--conflicts first or last changes that).",
        "first": "The score that was read first counts (--conflicts first).",
        "last": "The score that was read last counts (--conflicts last).",
    }
    names = ", ".join(f"{shorten(model)} ({count:,})" for model, count in mine.items())
    return (
        f"{scores} an earlier score of the same model and item: {names}. {which[rule]} If these are two runs, name each one "
        "(NAME=PATH): --margin with --rerun checks their noise."
    )


def reason(c: GateComparison, margin: Margin, held: str | None) -> str:
    """Return what the verdict on this benchmark means, or what it would take."""
    if held is not None:
        return f"Held: {held}."
    if c.gap is None:
        return "The models share no items."
    if c.verdict == "pass":
        at = f", decided at item {c.decided_at_n:,}" if c.decided_at_n else ""
        also = "; it is worse, by less than the margin" if c.p_worse <= c.alpha else ""
        return f"Not worse by more than {margin.text} {level(c.alpha)}{at}{also}."
    if c.verdict == "fail":
        beyond = _points(c, margin)
        return f"Worse than the baseline {level(c.alpha)}{beyond}."
    return f"Undecided: {_what_it_takes(c, margin)}"


def _points(c: GateComparison, margin: Margin) -> str:
    """Return whether the observed gap is beyond the margin."""
    assert c.gap is not None
    assert c.mean_baseline is not None
    allowed = margin.size * (c.mean_baseline if margin.relative else 1)
    return (
        ", and the observed gap is beyond the margin" if c.gap < -allowed else "; the observed gap is within the margin"
    )


def _two_digits(items: float) -> int:
    """Return an estimated number of items with two significant digits, rounded up: no fewer than it takes.

    Examples
    --------
    >>> _two_digits(5_807_759), _two_digits(1_320.4), _two_digits(8.2)
    (5900000, 1400, 9)
    """
    whole = ceil(items)
    digit = int(10 ** max(len(str(whole)) - 2, 0))
    return -(-whole // digit) * digit


def _what_it_takes(c: GateComparison, margin: Margin) -> str:
    """Return what would decide a comparison that is undecided."""
    assert c.gap is not None
    assert c.mean_baseline is not None
    allowed = margin.size * (c.mean_baseline if margin.relative else 1)
    if c.gap <= -allowed:
        return f"the observed gap, {points(c.gap)} points, is not inside the margin, so more items like these would not make it pass."
    lost = (
        f"{c.missing:,} missing items count against the candidate; " if c.missing and c.policy == "completion" else ""
    )
    if c.items_needed is None:
        return f"{lost}more items like these would not make it pass."
    if lost and c.items_needed <= c.n + (c.missing or 0):
        return f"{lost}score them too."
    room = (
        "a test of this many has a power of .8"
        if c.rule == "exact test"
        else "the expected path reaches the threshold there"
    )
    shared = f"{c.n:,} {'is' if c.n == 1 else 'are'} shared"
    return f"{lost}it takes about {_two_digits(c.items_needed):,} items in all ({room}), or a larger margin; {shared}."
