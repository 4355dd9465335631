"""Which kind of score a board has, and how often its items are scored."""

from monitor.view.board import BoardView
from monitor.view.kinds.battles import BinaryBattles, GradedBattles
from monitor.view.kinds.binary import Binary
from monitor.view.kinds.graded import Graded
from monitor.view.kinds.kind import Kind
from monitor.view.kinds.weighted import Members, Weighted
from monitor.view.pairs.weights import weighted_scores
from schemas.results.report import RepeatsReport


def kind_of(benchmark: BoardView) -> type[Kind]:
    """Return the kind of the scores that a board is described with."""
    described = benchmark.described()
    if described.battles is not None:
        return BinaryBattles if described.binary else GradedBattles
    if described.suite is not None:
        return Members
    if described.once(weighted_scores) is not None:
        return Weighted
    return Binary if described.binary else Graded


def repeats_of(benchmark: BoardView) -> RepeatsReport | None:
    """Return how many scored repeats the items have that describe a board; None without a score."""
    described = benchmark.described()
    return kind_of(described).repeats_of(described, slice(len(described.contestants)))


def has_repeats(benchmark: BoardView) -> bool:
    """Return whether a score is, or may be, the mean of several repeats."""
    counts = repeats_of(benchmark)
    return benchmark.spec.repeats != 1 or (counts is not None and counts.max > 1)
