"""Choose the boards whose models and pairs have series, so that the series of a process stay within a budget."""

from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from monitor.serve.metrics import catalogue
from monitor.serve.metrics.catalogue import CATALOGUE
from monitor.view.board import BoardView
from monitor.view.metrics_view import PAIR_CAP

MODEL_CAP: Final = 500  # models with series of their own, per benchmark

ALWAYS: Final = (catalogue.ADJACENT_UNDECIDED, "anytime_family")
"""The one procedure of a metric of details that every board has."""

_OF_GOAL: Final = (
    catalogue.GOAL_MET,
    catalogue.GOAL_OPEN_PAIRS,
    catalogue.GOAL_MODELS_NEEDED,
    catalogue.SAVED_RATIO,
    catalogue.RUN_COST,
    catalogue.SAVED_COST,
)
_OF_GOAL_MODEL: Final = (catalogue.MODEL_SCORES_RUN, catalogue.MODEL_SAVED_RATIO)  # metrics of boards with a goal


def _series_each(labels: tuple[str, ...], *, detail: bool = False) -> int:
    """Return how many series the metrics of a benchmark, a model or a pair have for each."""
    others = {"model", "model_a", "model_b"} - set(labels)
    return sum(
        metric.per_label
        for metric in CATALOGUE
        if metric.labels[: len(labels)] == labels
        and others.isdisjoint(metric.labels)
        and metric.detail == detail
        and metric not in (*_OF_GOAL, *_OF_GOAL_MODEL, catalogue.SENTINEL_MEAN)
    )


_AGGREGATES: Final = _series_each(catalogue.BENCHMARK) + 1
_DETAILS: Final = _series_each(catalogue.BENCHMARK, detail=True) - 1
_MODEL: Final = _series_each(catalogue.MODEL)
_PAIR: Final = _series_each(catalogue.PAIR)


class Size(NamedTuple):
    """What determines the series of a board: nothing here changes with the scores, so no board comes and goes with them."""

    name: str
    models: int
    declared_pairs: int = 0
    goal: bool = False
    means: int = 0  # of the models of a sentinel, and of their judges


class Shown(NamedTuple):
    """What a board has beyond its aggregates: series of its models and procedures, and of up to so many pairs."""

    models: bool = False
    pairs: int = 0


class Allotment(NamedTuple):
    """What each board has, by name, and the series that the budget omits, at most."""

    shown: dict[str, Shown]
    omitted: int


def size_of(benchmark: BoardView) -> Size:
    """Return what determines the series of a benchmark."""
    spec = benchmark.spec
    models = len({contestant.model for contestant in benchmark.contestants})
    watched = 0 if benchmark.drift is None else len(benchmark.drift().sentinels)
    means = catalogue.SENTINEL_MEAN.per_label * min(MODEL_CAP, watched)
    return Size(benchmark.name, models, len(spec.family.pairs or ()), spec.goal is not None, means)


def allot(boards: Sequence[Size], budget: int, first: Callable[[str], bool]) -> Allotment:
    """Share the budget: aggregates of all boards, always; then models, then neighbours and declared pairs, then other decided pairs."""
    # Boards that come first get all of theirs ahead of the others. Among equals the order is by name. A board that does not fit is passed
    # over, and the next that fits is taken. Each board is counted with the most that it can have.
    left = budget - sum(_AGGREGATES + len(_OF_GOAL) * board.goal for board in boards)
    shown = {board.name: Shown() for board in boards}
    omitted = 0
    for group in (True, False):
        members = sorted(board for board in boards if first(board.name) == group)
        for level in range(3):
            for board in members:
                each = _MODEL + len(_OF_GOAL_MODEL) * board.goal
                near = min(PAIR_CAP, max(0, board.models - 1) + board.declared_pairs)
                most = max(near, min(PAIR_CAP, board.models * (board.models - 1) // 2))
                cost, grown, needed = (
                    (_DETAILS + each * min(MODEL_CAP, board.models) + board.means, Shown(models=True), Shown()),
                    (_PAIR * near, Shown(models=True, pairs=near), Shown(models=True)),
                    (_PAIR * (most - near), Shown(models=True, pairs=most), Shown(models=True, pairs=near)),
                )[level]
                if cost <= left and shown[board.name] == needed:
                    left -= cost
                    shown[board.name] = grown
                else:
                    omitted += cost
    return Allotment(shown, omitted)
