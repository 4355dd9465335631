"""What a gate can know before it runs: its flips, what its items can show, and its flaky cases."""

from collections.abc import Mapping, Sequence
from math import isfinite
from typing import Final, NamedTuple

import numpy as np

from monitor.view.board import Floats
from monitor.view.gates.margin import equal_answers, items_of_bets
from schemas.results.gate_check import Attainable, EqualItems, FlakyCase, Flips, GateCheck, Shown, Source
from stats.gates.attainable import best_items, gate_rates, least_discordant, mean_rates
from stats.gates.flips import answers_for_flip, case_variances, flip

SIZES: Final = (20, 50, 100, 200, 500, 1_319)
ASSUMED: Final = (0.04, 0.13)
"""Discordances that are shown where none is known: models of one family, and different models."""

_MARGINS: Final = (0.01, 0.02, 0.03, 0.05)
_LEVEL: Final = 0.05
_LARGEST: Final = 2_000  # a suite of more items is not small, and its outcomes take long to enumerate

Answers = Mapping[str, Sequence[float]]  # the scores of each case, one a run and repeat


class Known(NamedTuple):
    """What is known of a suite before its gate runs."""

    benchmark: str
    baseline: str
    answers: Answers
    repeats: int  # of one run
    others: Sequence[Answers] = ()  # of other models


class _ExactTest:
    """One repeat of each case, right or wrong: the exact tests."""

    name: Final = "exact test"

    def __init__(self, known: Known | None, means: Floats | None) -> None:
        self._known = known
        self._wrong = 1.0 if means is None else float(np.clip(1 - means.mean(), 0, 1))

    def equal_items(self, margin: float, alpha: float) -> int:
        """Return the items from which on equal answers pass."""
        return equal_answers(margin, alpha, self.name)

    def best_items(self, margin: float, alpha: float) -> int:
        """Return the items from which on a candidate passes that is right everywhere."""
        return min(self.equal_items(margin, alpha), best_items(margin, self._wrong, alpha))

    def shown(self, sizes: Sequence[int], flips: Flips | None, margin: float, alpha: float) -> tuple[Shown, ...]:
        """Return how often gates of some sizes pass and fail."""
        found: list[tuple[float, Source]] = []
        if (between := _between(self._known)) is not None:
            found.append((between, "models"))
        elif flips is not None:
            found.append((2 * flips.variance, "noise"))
        rows = []
        for discordance, source in found or [(each, "assumed") for each in ASSUMED]:
            for size in sizes:
                # A model that is worse by the margin differs on as many items at least.
                rates = [gate_rates(size, gap, max(discordance, -gap), margin, alpha) for gap in (0.0, -margin)]
                rows.append(_row(size, discordance, source, rates))
        return tuple(rows)


class _Bets:
    """Scores between 0 and 1, as means of repeats are: the bets, whose capital grows alike with every item."""

    name: Final = "bets"

    def __init__(self, table: Floats | None, means: Floats | None, repeats: int) -> None:
        self._table, self._number = table, repeats
        self._won = np.ones(1) if means is None else 1 - means

    def equal_items(self, margin: float, alpha: float) -> int:
        """Return the items from which on equal answers pass."""
        return equal_answers(margin, alpha, self.name)

    def best_items(self, margin: float, alpha: float) -> int:
        """Return the items from which on a candidate passes that is right everywhere."""
        return items_of_bets(self._won, margin, alpha)

    def shown(self, sizes: Sequence[int], flips: Flips | None, margin: float, alpha: float) -> tuple[Shown, ...]:
        """Return how often gates of some sizes pass and fail, from the answers to cases that were run twice."""
        if self._table is None or flips is None or (1 - self._won).mean() < margin:  # no model is worse by the margin
            return ()
        rows = []
        for size in sizes:
            rates = [mean_rates(self._table, size, self._number, gap, margin, alpha) for gap in (0.0, -margin)]
            rows.append(_row(size, 2 * flips.variance, "noise", rates))
        return tuple(rows)


def check_gate(known: Known | None, margin: float, alpha: float, items: int | None, repeats: int | None) -> GateCheck:
    """Return what a gate can know; `items` and `repeats` replace what the runs have."""
    names = [] if known is None else sorted(known.answers)
    table = None if known is None else _table(known.answers, names)
    n = items if items is not None else (len(names) or None)
    r = repeats or (1 if known is None else known.repeats)
    means = None if table is None else np.nanmean(table, axis=1)
    whole = table is None or bool((np.isnan(table) | (table == 0) | (table == 1)).all())
    once = r == 1 and whole
    rule = _ExactTest(known, means) if once else _Bets(table, means, r)
    equal, best = rule.equal_items(margin, alpha), rule.best_items(margin, alpha)
    flips, flaky = (None, ()) if table is None else _noise(table, names, n or len(names), r, margin, whole=whole)
    attainable: Attainable | None = None
    if n is not None:
        attainable = "possible" if n >= equal else "only_wins" if n >= best else "impossible"
    sizes = sorted({*SIZES, *([] if n is None or n > _LARGEST else [n])})
    return GateCheck(
        benchmark=None if known is None else known.benchmark,
        baseline=None if known is None else known.baseline,
        items=n,
        repeats=r,
        rule=rule.name,
        mean=None if means is None else float(means.mean()),
        margin=margin,
        alpha=alpha,
        attainable=attainable,
        equal_items=equal,
        equal_items_once=None if once or not whole else equal_answers(margin, alpha, "exact test"),
        best_items=best,
        least_margin=None if n is None else _least_margin(n, alpha, rule),
        losses_needed=least_discordant(alpha) if once else None,
        margins=tuple(
            EqualItems(margin=each, items=rule.equal_items(each, alpha)) for each in sorted({*_MARGINS, margin})
        ),
        flips=flips,
        shown=rule.shown(sizes, flips, margin, alpha),
        flaky=flaky,
    )


def _table(answers: Answers, names: Sequence[str]) -> Floats:
    table = np.full((len(names), max(map(len, answers.values()))), np.nan)
    for row, name in enumerate(names):
        table[row, : len(answers[name])] = answers[name]
    return table


def _least_margin(items: int, alpha: float, rule: _ExactTest | _Bets) -> float | None:
    """Return the margin in whole points at which equal answers pass."""
    low, high = 0, 100
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if rule.equal_items(middle / 100, alpha) <= items else (middle, high)
    return high / 100 if high < 100 else None


# --- noise ----------------------------------------------------------------------------------------------------------------------------


def _noise(
    table: Floats, names: Sequence[str], items: int, repeats: int, margin: float, *, whole: bool
) -> tuple[Flips | None, tuple[FlakyCase, ...]]:
    variances = case_variances(table)
    seen = ~np.isnan(variances)
    if not seen.any():
        return None, ()
    variance = float(variances[seen].mean())
    red = flip(items, repeats, margin, variance, whole=whole)

    def needed(each: int) -> float | None:
        answers = answers_for_flip(margin, variance, _LEVEL, each=each, whole=whole)
        return answers / each if isfinite(answers) else None

    flips = Flips(
        variance=variance,
        answers=int((~np.isnan(table[seen])).sum()),
        red=red,
        disagree=2 * red * (1 - red),
        level=_LEVEL,
        answers_needed=needed(1),
        repeats_needed=needed(items),
        items_needed=needed(repeats),
    )
    total = float(np.nansum(variances))
    flaky = [
        FlakyCase(
            case=names[row],
            right=float(np.nansum(table[row])),
            of=int((~np.isnan(table[row])).sum()),
            flakiness=float(4 * np.nanmean(table[row]) * (1 - np.nanmean(table[row]))),
            share=float(variances[row]) / total,
        )
        for row in np.flatnonzero(seen & (variances > 0)).tolist()
    ]
    return flips, tuple(sorted(flaky, key=lambda each: (-each.share, each.case)))


# --- what so many items show ----------------------------------------------------------------------------------------------------------


def _row(size: int, discordance: float, source: Source, rates: Sequence[tuple[float, float]]) -> Shown:
    (equal_passed, equal_failed), (worse_passed, worse_failed) = rates
    return Shown(
        items=size,
        discordance=discordance,
        source=source,
        equal_passed=equal_passed,
        equal_failed=equal_failed,
        worse_passed=worse_passed,
        worse_failed=worse_failed,
    )


def _between(known: Known | None) -> float | None:
    """Return how many items the baseline and another model differ on, in the mean over the other models."""
    shares = []
    for other in [] if known is None else known.others:
        assert known is not None
        common = sorted(known.answers.keys() & other.keys())
        if common:
            x, y = (np.array([np.mean(of[name]) for name in common]) for of in (known.answers, other))
            shares.append(float((x * (1 - y) + y * (1 - x)).mean()))
    return float(np.mean(shares)) if shares else None
