"""A year of daily runs of one model, which another version of it replaces one day, and what limits around a baseline make of it.

The two versions are the first and the fourth of MMLU-Pro's printed ranking, both calme. A run has `ITEMS` items, which keep the shares of
the four pairs of answers. On each of them a version is right with a probability of its own, Beta(1.4, 0.6): temperature 1, where 28 % of
the items differ between two runs. The answer that was recorded is the more frequent one, and where both have the same answer the
probability stays.
"""

import json
from dataclasses import dataclass
from datetime import date, timedelta
from math import sqrt
from typing import Final

import numpy as np
import numpy.typing as npt

from monitor.paper.demo import top_ten
from monitor.paper.demo.simulate import published_scores

SENTINEL: Final = "mmlu-pro-daily"
MODEL: Final = "calme"
ITEMS: Final = 500
DAYS: Final = 365
CHANGE: Final = 240  # runs before the other version answers
HISTORY: Final = 30  # runs of the baseline of limits
WINDOWS: Final = (1, 7, 30)  # days whose mean is held against the limits

_OLD, _NEW = 0, 3
_SURE = (1.4, 0.6)
_LIMIT = 1.96
_DRAWS = 64

Scores = npt.NDArray[np.uint8]
Means = npt.NDArray[np.float64]
Alarms = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Year:
    """The records that the demo replays, and the same results as a table."""

    declaration: bytes
    days: tuple[str, ...]
    runs: tuple[list[bytes], ...]  # the scores of each day
    scores: Scores  # shape (days, items)
    change: int | None  # runs before the other version; None: there is none

    @property
    def means(self) -> Means:
        """The mean score of each day."""
        return np.asarray(self.scores.mean(1))


def demo_year(*, null: bool = False, seed: int = 0) -> Year:
    """Simulate a year of daily runs; with `null`, no other version answers.

    >>> year = demo_year()
    >>> len(year.runs), len(year.runs[0]), year.days[year.change]
    (365, 500, '2025-08-29')
    """
    rng = np.random.default_rng([DAYS, 1 + seed])
    asked = _asked(published_scores(rng)[:, [_OLD, _NEW]], rng)
    old = _chances(asked[:, 0], rng)
    new = np.where(asked[:, 0] == asked[:, 1], old, _chances(asked[:, 1], rng))
    replaced = (np.arange(DAYS) >= CHANGE) & (not null)
    scores = (rng.random((DAYS, ITEMS)) < np.where(replaced[:, None], new, old)).astype(np.uint8)
    days = tuple(str(date(2025, 1, 1) + timedelta(days=day)) for day in range(DAYS))
    declaration = {"declare": SENTINEL, "items": ITEMS, "drift": {"runs_per_year": 365, "years": 5, "seed": str(seed)}}
    return Year(
        declaration=json.dumps(declaration).encode(),
        days=days,
        runs=tuple(_events(day, row) for day, row in zip(days, scores.tolist(), strict=True)),
        scores=scores,
        change=None if null else CHANGE,
    )


def _asked(recorded: Scores, rng: np.random.Generator) -> Scores:
    """Draw items so that each of the four pairs of answers has its share of the whole benchmark, rounded."""
    shuffled = recorded[rng.permutation(len(recorded))]
    sorted_by_kind = shuffled[np.argsort(2 * shuffled[:, 0] + shuffled[:, 1], kind="stable")]
    return sorted_by_kind[(np.arange(ITEMS) * 2 + 1) * len(recorded) // (2 * ITEMS)]


def _chances(recorded: Scores, rng: np.random.Generator) -> Means:
    """Draw how often each item is answered right, where the recorded answer is the more frequent one."""
    drawn = rng.beta(*_SURE, (_DRAWS, recorded.size))
    first = ((drawn > 0.5) == recorded).argmax(0)
    return np.asarray(drawn[first, np.arange(recorded.size)])


def _events(day: str, row: list[int]) -> list[bytes]:
    start = f'{{"benchmark": "{SENTINEL}", "model": "{MODEL}", "run": "{day}", "item_id": '
    return [f'{start}"q{item + 1:03d}", "score": {score}}}'.encode() for item, score in enumerate(row)]


def below_limits(means: Means, items: int, window: int) -> Alarms:
    """Return on which days the mean of the last `window` days is below the baseline by 1.96 binomial standard errors.

    The baseline is the mean of the first `HISTORY` days, and no window reaches into it.

    >>> below_limits(np.array([.7] * 30 + [.7, .5, .7]), 100, 1).tolist()[-3:]
    [False, True, False]
    """
    baseline = float(means[:HISTORY].mean())
    limit = baseline - _LIMIT * sqrt(baseline * (1 - baseline) / (items * window))
    sums = np.concatenate([[0.0], np.cumsum(means)])
    below = np.zeros(means.size, np.bool_)
    below[HISTORY + window - 1 :] = (sums[HISTORY + window :] - sums[HISTORY:-window]) / window < limit
    return below


def first_days(alarms: Alarms) -> Alarms:
    """Return the days on which an alarm begins.

    >>> first_days(np.array([True, True, False, True])).tolist()
    [True, False, False, True]
    """
    return np.asarray(alarms & ~np.concatenate([[False], alarms[:-1]]))


VERSIONS: Final = (top_ten.MODELS[_OLD], top_ten.MODELS[_NEW])  # what answers before the change, and since
