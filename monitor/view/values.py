"""Values that are made of a board once, for what formats draw and notifications report."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from monitor.view.board import Floats
from schemas.results.report import GoalReport


@dataclass(frozen=True)
class TieBand:
    """A largest set of models none of which is decided against another, as positions in the ranking from 0, and its lane from the left."""

    members: tuple[int, ...]
    lane: int


@dataclass(frozen=True)
class TieBands:
    """The ties of a ranking."""

    bands: tuple[TieBand, ...] | None
    lanes: int
    rules: tuple[int, ...]
    lacking: dict[int, tuple[int, ...]]


@dataclass(frozen=True)
class EvidenceCurve:
    """Values of ln e of a pair after n shared items."""

    n: NDArray[np.int64]
    log_e: Floats


@dataclass(frozen=True)
class PairChart:
    """The chart of one adjacent pair, and N* with its uncertainty."""

    curve: EvidenceCurve
    log_threshold: float  # ln 1/alpha_j of the pair; infinite for a pair without a place in the family
    anytime_required_n: float
    required_n_low: float
    required_n_high: float


@dataclass(frozen=True)
class ChartData:
    """The charts of one benchmark."""

    matrix: NDArray[np.int8]
    """Family-wise decisions by rank, shape (models, models): +1 where the row's model is better, -1 where the column's is."""
    pairs: list[PairChart | None]
    """Charts of the adjacent pairs, by rank; None for a pair without 0/1 scores on shared items."""
    skipped: list[int]  # items without a score of each model, by rank


PairNames = tuple[str, str]  # the models of a pair in name order


class BoardNews(NamedTuple):
    """A board at the time of some verdict changes."""

    ranks: dict[str, str]
    followed: frozenset[PairNames]
    ranking_decided: bool
    ranking_settled: bool
    goal_met: GoalReport | None


class BoardState(NamedTuple):
    """What of a board lasts, and may need a person."""

    benchmark: str
    key: str
    version: int
    models: int
    held: str | None
    fewest: int
    items: int
    complete: bool
    last_event: float
    offset: int
