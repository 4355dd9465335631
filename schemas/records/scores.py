"""Scores as small integers: one code for each distinct score, and fixed point."""

from typing import Final, NamedTuple

import numpy as np

ABSENT, SKIPPED, ZERO, ONE = 0, 1, 2, 3  # code 2 + k is entry k of the score table, which starts with 0 and 1


SCORE_UNIT: Final = 10**12
"""Scores are kept in fixed point, in multiples of 1e-12: sums are then exact integers in any order of adding."""


class RowKey(NamedTuple):
    """A row of the score matrix: one repeat of one item, and the cluster the item belongs to."""

    item: str
    repeat: int
    cluster: str | None


class Contestant(NamedTuple):
    """A column of the score matrix: one epoch of one model."""

    model: str
    epoch: int


RUN_SCORE: Final = np.dtype([("run", "<u4"), ("item", "<u4"), ("repeat", "<i4"), ("anchor", "<i4"), ("score", "<f8")])
"""A score of the journal: numbers of its run and item, its repeat, whether the answer was frozen, and the score."""
