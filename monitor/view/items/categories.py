"""The scores of each model by category, and one model against every other in each of them."""

from dataclasses import dataclass

import numpy as np

from monitor.view.board import Floats, Sides
from monitor.view.pairs.table import PairTable, labels
from monitor.words import unavailable
from schemas.records.text import Sentence
from stats.evidence.curtailed import curtailed_log_p
from stats.evidence.eprocess import log_e_value
from stats.numerics.checks import TOLERANCE
from stats.numerics.pairs import Index, pair_count, ranked_pairs


@dataclass(frozen=True)
class CategoryScores:
    """Scores by category, the largest category first."""

    names: list[str]
    items: Index
    scored: Index
    mean: Floats
    members: list[Index]


@dataclass(frozen=True)
class CategoryGaps:
    """Every model against one, in each category."""

    n: Index
    gap: Floats
    side: Sides | None
    why: Sentence | None
    comparisons: int


def category_scores(table: PairTable) -> CategoryScores:
    """Return the scores of every model in each category."""
    names, label = labels(table.benchmark)
    items = np.bincount(label[label >= 0], minlength=len(names)).astype(np.int64)
    order = np.argsort(-items, kind="stable")
    x, scored = table.kind.scores
    members = [np.flatnonzero(label == g) for g in order.tolist()]
    count, total = np.zeros((2, table.ranking.size, len(names)))
    for g, rows in enumerate(members):
        count[:, g] = scored[rows].sum(axis=0)[table.ranking]
        total[:, g] = x[rows].sum(axis=0)[table.ranking]
    with np.errstate(invalid="ignore"):
        mean = total / np.where(count > 0, count, np.nan)
    return CategoryScores([names[g] for g in order.tolist()], items[order], count.astype(np.int64), mean, members)


def category_gaps(table: PairTable, scores: CategoryScores, baseline: int) -> CategoryGaps:
    """Compare every model with the one at a 0-based rank, in each category."""
    x, scored = table.kind.scores
    ranking = table.ranking
    own = ranking[baseline]
    models, categories = scores.mean.shape
    n, wins, losses, gap = np.zeros((4, models, categories))
    for g, rows in enumerate(scores.members):
        values, present = x[rows][:, ranking], scored[rows][:, ranking]
        shared = present * scored[rows, own][:, None]
        difference = (values - x[rows, own][:, None]) * shared
        n[:, g], gap[:, g] = shared.sum(axis=0), difference.sum(axis=0)
        wins[:, g], losses[:, g] = (difference > 0).sum(axis=0), (difference < 0).sum(axis=0)
    with np.errstate(invalid="ignore"):
        gap = gap / np.where(n > 0, n, np.nan)
    comparisons = pair_count(models) * categories
    why = _why_none(table)
    side = None if why else _sides(table, scores, baseline, (n, wins, losses), comparisons)
    return CategoryGaps(n.astype(np.int64), gap, side, why, comparisons)


def _why_none(table: PairTable) -> str | None:
    """Return why no category gets a verdict, or None."""
    if table.hold_reason is not None or not table.in_force:
        return table.hold_reason or unavailable.HELD
    if not table.kind.by_category():
        return unavailable.GRADED_CATEGORIES
    if table.pairs.completes or table.benchmark.spec.order.policy == "trusted":
        return None
    return unavailable.categories_under(table.benchmark.spec.order.policy)


def _sides(
    table: PairTable, scores: CategoryScores, baseline: int, counts: tuple[Floats, Floats, Floats], comparisons: int
) -> Sides:
    n, wins, losses = counts
    if table.pairs.completes:
        better, worse = (-log_p for log_p in curtailed_log_p(wins, losses, _missing(table, scores, baseline, n)))
    else:
        log_e = log_e_value(wins, losses, table.benchmark.spec.mixture)
        better, worse = np.where(wins > losses, log_e, 0.0), np.where(wins < losses, log_e, 0.0)
    threshold = np.log(max(comparisons, 1) / table.benchmark.spec.alpha) - TOLERANCE
    side = np.where(better >= threshold, 1, np.where(worse >= threshold, -1, 0)).astype(np.int8)
    side[baseline] = 0
    return side


def _missing(table: PairTable, scores: CategoryScores, baseline: int, n: Floats) -> Floats:
    """Return the items of each category that a pair may still lack and that count, shape (models, categories)."""
    assert table.pairs.missing is not None
    assert table.pairs.counted_missing is not None
    first, second = ranked_pairs(table.ranking.size)
    counted = np.zeros(table.ranking.size)
    for place, other in ((first, second), (second, first)):
        at = place == baseline
        counted[other[at]] = table.pairs.counted_missing[at]
    # Items that have not been seen may belong to any category.
    unseen = max(int((table.pairs.missing + table.pairs.n).max(initial=0)) - table.benchmark.items, 0)
    return np.minimum(scores.items[None, :] - n + unseen, counted[:, None])
