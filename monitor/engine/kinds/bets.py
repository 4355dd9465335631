"""What pairs bet on: items that exactly one of two models has right, or differences of any size."""

import sys
from collections.abc import Mapping
from typing import ClassVar, Final

import numpy as np
from numpy.typing import NDArray

from schemas.records.scores import SCORE_UNIT
from schemas.results.changes import Proof
from stats.evidence.graded import MAX_ITEMS
from stats.fixed_n.resolution import required_n, resolution_ratio
from stats.numerics.pairs import Index

CERTAIN: Final[Proof] = "certain"  # what settles pairs where only the missing items count
GRADED_MIXTURE: Final[Proof] = "graded grid"  # the bets on differences, in place of the declared mixture


class Bets:
    """Bets of 0/1 scores."""

    unit: ClassVar = 1  # of leads
    most_items: ClassVar = sys.maxsize
    mixture: ClassVar[Proof | None] = None  # the name of the bets; None: as declared
    settling: ClassVar[Mapping[str, Proof]] = {"committed": "without replacement"}  # by order policy; else `CERTAIN`
    followed: ClassVar[Mapping[str, str]] = {}  # the order policies under which a loop takes what comes; else the same

    @staticmethod
    def counts(wins: int, losses: int) -> tuple[int | None, int | None]:
        """Return the items that only one of two models has right, where these are all that counts."""
        return wins, losses

    @staticmethod
    def resolution_ratios(n: Index, b: Index, lead: Index, alpha: float, power: float) -> NDArray[np.float64]:
        """Return q = n / N* of pairs; nan where there are no such counts."""
        return np.asarray(resolution_ratio(n, required_n(n, b, b - lead, alpha, power)))


class DifferenceBets(Bets):
    """Bets of any other scores, of means of repeats, and of weighted clusters."""

    unit: ClassVar = SCORE_UNIT
    most_items: ClassVar = MAX_ITEMS
    mixture: ClassVar = GRADED_MIXTURE
    settling: ClassVar = {}
    followed: ClassVar = {"committed": "trusted"}  # the units come in their turn already

    @staticmethod
    def counts(wins: int, losses: int) -> tuple[None, None]:
        return None, None

    @staticmethod
    def resolution_ratios(n: Index, b: Index, lead: Index, alpha: float, power: float) -> NDArray[np.float64]:
        return np.full(n.size, np.nan)


def bets_of(*, differences: bool) -> type[Bets]:
    """Return what pairs bet on."""
    return DifferenceBets if differences else Bets
