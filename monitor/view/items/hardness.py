"""The items of a benchmark: how hard each one is, whether it agrees with the ranking, and where two models differ."""

from dataclasses import dataclass
from typing import Final, Literal

import numpy as np
from numpy.typing import NDArray

from monitor.view.board import BoardView, Flags, Floats
from schemas.records.scores import SCORE_UNIT, ZERO
from stats.clusters.noise import NoiseSplit, noise_split, rerun_p
from stats.numerics.pairs import Index

Show = Literal["all", "differ", "only_a", "only_b", "both_right", "both_wrong", "all_wrong", "all_right", "suspicious"]
ItemSort = Literal["item", "hardest", "easiest", "informative", "suspicious"]

SUSPICIOUS: Final = -0.3
"""Correlation with the mean scores of the models below which an item is suspicious: the better models fail it."""

FEW_MODELS: Final = 8  # models with a score of an item below which its correlation is not computed

_SLICE_CELLS: Final = 2_000_000


@dataclass(frozen=True)
class ItemColumns:
    """Every item of a benchmark, over the models of the ranking."""

    scored: Index
    right: Index
    mean: Floats
    correlation: Floats
    best_alone_wrong: Flags

    @property
    def suspicious(self) -> Flags:
        """Which items to check: their scores contradict the ranking."""
        with np.errstate(invalid="ignore"):
            return np.asarray((self.correlation < SUSPICIOUS) | self.best_alone_wrong)


def item_columns(benchmark: BoardView, ranking: Index) -> ItemColumns:
    """Describe every item of a benchmark by the models of its ranking."""
    codes, values = benchmark.item_codes(), benchmark.item_values / SCORE_UNIT
    items, models = codes.shape[0], ranking.size
    scored, right = np.zeros((2, items), np.int64)
    total, correlation = np.zeros(items), np.full(items, np.nan)
    alone = np.zeros(items, bool)
    with np.errstate(invalid="ignore", divide="ignore"):
        means = np.nan_to_num(benchmark.total[ranking] / benchmark.scored[ranking] / SCORE_UNIT)
        step = max(1, _SLICE_CELLS // max(models, 1))
        for start in range(0, items, step):
            part = slice(start, min(start + step, items))
            cells = codes[part][:, ranking]
            present = cells >= ZERO
            x = np.where(present, values[cells], 0.0)
            n = present.sum(axis=1)
            full = present & (x >= 1)
            scored[part], right[part], total[part] = n, full.sum(axis=1), x.sum(axis=1)
            sum_m, sum_mm, sum_xx = present @ means, present @ means**2, (x * x).sum(axis=1)
            covariance = x @ means - total[part] * sum_m / n
            spread = (sum_xx - total[part] ** 2 / n) * (sum_mm - sum_m**2 / n)
            known = (n >= FEW_MODELS) & (spread > 1e-12)
            correlation[part] = np.where(known, covariance / np.sqrt(np.maximum(spread, 1e-12)), np.nan)
            if models:
                alone[part] = (n >= FEW_MODELS) & (right[part] == n - 1) & present[:, 0] & (x[:, 0] == 0)
        mean = np.where(scored > 0, total / scored, np.nan)
    return ItemColumns(scored, right, mean, correlation, alone)


@dataclass(frozen=True)
class TwoModels:
    """The scores of two models on every item; nan without one."""

    a: Floats
    b: Floats

    @property
    def shared(self) -> Flags:
        """Which items both have."""
        return np.asarray(~(np.isnan(self.a) | np.isnan(self.b)))

    def where(self, show: Show) -> Flags:
        """Return which items of the two belong to a group."""
        with np.errstate(invalid="ignore"):
            groups = {
                "differ": self.a != self.b,
                "only_a": self.a > self.b,
                "only_b": self.b > self.a,
                "both_right": (self.a >= 1) & (self.b >= 1),
                "both_wrong": (self.a <= 0) & (self.b <= 0),
            }
        return np.asarray(self.shared & groups[show])


def two_models(benchmark: BoardView, first: int, second: int) -> TwoModels:
    """Return the scores of two contestants on every item."""
    codes = benchmark.item_codes()[:, [first, second]]
    scores = np.where(codes >= ZERO, benchmark.item_values[codes] / SCORE_UNIT, np.nan)
    return TwoModels(scores[:, 0], scores[:, 1])


SURPRISE: Final = 0.5  # by how much a score has to differ from the mean score of the other models to surprise


def surprises(benchmark: BoardView, columns: ItemColumns, contestant: int, most: int) -> tuple[Index, Index]:
    """Return the items whose score is most unlike the other models' scores: higher ones, and lower ones; at most `most` each."""
    # A description of the items, chosen after a look at them; it is no finding about the model.
    codes = benchmark.item_codes()[:, contestant]
    own = np.where(codes >= ZERO, benchmark.item_values[codes] / SCORE_UNIT, np.nan)
    compared = (codes >= ZERO) & (columns.scored >= FEW_MODELS)
    with np.errstate(invalid="ignore", divide="ignore"):
        others = (columns.mean * columns.scored - own) / (columns.scored - 1)
        apart = np.where(compared, own - others, 0.0)
    order = np.lexsort((np.arange(apart.size), -columns.scored, -apart))
    higher = order[apart[order] > SURPRISE][:most]
    order = np.lexsort((np.arange(apart.size), -columns.scored, apart))
    return higher, order[apart[order] < -SURPRISE][:most]


def selected(columns: ItemColumns, two: TwoModels | None, show: Show) -> Flags:
    """Return which items a filter keeps; a filter of two models needs them."""
    if show == "all":
        return np.ones(columns.scored.size, bool)
    if show == "all_wrong":
        return np.asarray((columns.scored > 0) & (columns.mean == 0))
    if show == "all_right":
        return np.asarray((columns.scored > 0) & (columns.right == columns.scored))
    if show == "suspicious":
        return columns.suspicious
    assert two is not None
    return two.where(show)


def in_order(columns: ItemColumns, at: Index, sort: ItemSort) -> Index:
    """Sort items; equal ones, and those without a value, come in the order of their arrival."""
    keys = {
        "item": np.arange(columns.mean.size, dtype=np.float64),
        "hardest": columns.mean,
        "easiest": -columns.mean,
        "informative": -columns.correlation,
        "suspicious": np.where(columns.best_alone_wrong, -1.0, columns.correlation),
    }
    return at[np.argsort(keys[sort][at], kind="stable")]


def scores_of(benchmark: BoardView, ranking: Index, at: Index) -> NDArray[np.float64]:
    """Return the scores of some items by all models in rank order; nan without one."""
    codes = benchmark.item_codes()[at][:, ranking]
    return np.where(codes >= ZERO, benchmark.item_values[codes] / SCORE_UNIT, np.nan)


def repeat_table(benchmark: BoardView, model: str, items: dict[str, int]) -> Floats:
    """Return the scores of a model's newest epoch by item and repeat, in the order of the rows; nan where there is none."""
    contestant = benchmark.newest(model)
    cells, rows = benchmark.cells(), benchmark.row_keys
    codes = cells.codes[:, contestant]
    scored = np.flatnonzero(codes >= ZERO)
    item = np.array([items[rows[row].item] for row in scored.tolist()], np.int64)
    order = np.argsort(item, kind="stable")
    item, codes = item[order], codes[scored[order]]
    place = np.arange(item.size) - np.searchsorted(item, item)
    table = np.full((len(items), int(place.max(initial=0)) + 1), np.nan)
    table[item, place] = cells.values[codes] / SCORE_UNIT
    return table


def rerun_difference(benchmark: BoardView, first: str, second: str) -> float:
    """Return the p-value that two runs of one model differ no more than their repeats do."""
    items = _items(benchmark)
    return rerun_p(repeat_table(benchmark, first, items), repeat_table(benchmark, second, items))


def noise_of_pair(benchmark: BoardView, one: str, other: str) -> NoiseSplit | None:
    """Return the components of the variance of the gap of two models; None where no item has repeats of both."""
    # The noise of a repeat comes from both models; the spread of the items comes from their difference.
    if benchmark.spec.units is not None:  # its items are no repeats, and not independent
        return None
    items = _items(benchmark)
    x, y = (repeat_table(benchmark, model, items) for model in (one, other))
    both = ~(np.isnan(x).all(axis=1) | np.isnan(y).all(axis=1))
    x, y = x[both], y[both]
    if x.shape[0] < 2 or min(x.shape[1], y.shape[1]) < 2:
        return None
    if not ((~np.isnan(x)).sum(axis=1) > 1).any() or not ((~np.isnan(y)).sum(axis=1) > 1).any():
        return None
    a, b = noise_split(x), noise_split(y)
    within = a.repeat_variance / a.repeats + b.repeat_variance / b.repeats
    d = np.nanmean(x, axis=1) - np.nanmean(y, axis=1)
    repeats = 2 / (1 / a.repeats + 1 / b.repeats)
    return NoiseSplit(d.size, repeats, max(0.0, float(d.var(ddof=1)) - within), within * repeats)


def _items(benchmark: BoardView) -> dict[str, int]:
    return {item: k for k, item in enumerate(dict.fromkeys(row.item for row in benchmark.row_keys))}
