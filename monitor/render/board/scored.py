"""The models of a board that have a score, for the shapes that hold one number a model."""

from collections.abc import Iterator
from typing import NamedTuple

from monitor.render.board.exporters import Context
from monitor.render.board.standings import Board, Standing
from monitor.words.counts import counted
from monitor.words.kinds import words_of
from monitor.words.numbers import safe
from schemas.results.report import BenchmarkReport


class Scored(NamedTuple):
    """A model with its score from 0 to 1, and the interval of it where there is one."""

    report: BenchmarkReport
    ranked: Standing
    mean: float
    interval: tuple[float, float] | None

    @property
    def benchmark(self) -> str:
        """The name of the benchmark, printable."""
        return safe(self.report.benchmark)

    @property
    def name(self) -> str:
        """The name of the model, printable."""
        return safe(self.ranked.model.model)

    @property
    def metric(self) -> str:
        """What the score is: scores may be of any metric, and only those that are 0 or 1 are known to be an accuracy."""
        return "score" if self.report.mixture == "graded grid" else "accuracy"


def scored_models(board: Board) -> Iterator[Scored]:
    """Yield the models that have a score, by rank; a board of battles has ratings, and no scores."""
    for each in board.standings:
        model = each.model
        if model.mean is not None and words_of(board.document.report).unscored is None:
            known = model.mean_low is not None and model.mean_high is not None
            interval = (model.mean_low, model.mean_high) if known else None
            yield Scored(board.document.report, each, model.mean, interval)  # type: ignore[arg-type]


def omitted(board: Board, context: Context) -> None:
    """Note what of a board has no score."""
    name = safe(board.document.report.benchmark)
    without = sum(each.model.mean is None for each in board.standings)
    if unscored := words_of(board.document.report).unscored:
        context.note(f"{name}: {unscored}")
    elif without:
        context.note(f"{name}: {counted(without, 'model')} without a score omitted")


def summary(each: Scored, context: Context) -> str:
    """Return the interval and the ties in a line, for shapes that have no field for them."""
    level = f"{100 * confidence(each.report):g} % interval"
    interval = "" if each.interval is None else "{} {:g} to {:g}; ".format(level, *map(context.scaled, each.interval))
    return f"{interval}{counted(each.ranked.model.items, 'item')}; {each.ranked.place}; {each.ranked.tie}"


def confidence(report: BenchmarkReport) -> float:
    """Return the level of the intervals of the means."""
    return round(1 - report.alpha, 6)


def method(report: BenchmarkReport) -> str:
    """Return how the interval of a mean is computed."""
    return "normal, weighted clusters" if report.weights is not None else "Wilson, at the number of items read"
