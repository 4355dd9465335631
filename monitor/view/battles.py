"""The battles of a benchmark: ratings with intervals, islands, positions, judges, and where ratings and direct battles disagree."""

from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from monitor.engine.state.battles import JUDGE, ORDER, OUTCOME, PAIR, PROMPT
from monitor.view.board import json_numbers
from monitor.view.pairs.ratings import SMALLEST_ERROR, Ratings, ratings_of
from monitor.view.pairs.table import PairTable
from monitor.words.unavailable import UNRATED
from schemas.results.battles import BattlesReport, Disagreement, JudgeReport, PositionReport, RatingReport
from stats.battles.agreement import agreement
from stats.battles.bradley_terry import ELO, bradley_terry, groups_of
from stats.fixed_n.resolution import z_sum
from stats.numerics.pairs import Index, pair_members

JUDGES: Final = 20  # judges that are reported, those with the most votes

_NO_JUDGE: Final = "(none)"
_ANY: Final = 0.5  # the power at which `z_sum` is the quantile of the level alone


def battles_report(table: PairTable) -> BattlesReport | None:
    """Report the battles of a benchmark; None for scores of items."""
    benchmark = table.benchmark
    if benchmark.battles is None or not benchmark.battles.size:
        return None
    ratings = ratings_of(table.described_from)
    islands = ratings.groups.island
    names, votes = ratings.names, benchmark.battles.votes
    alpha, shared, share = _agreement(votes)
    return BattlesReport(
        votes=benchmark.battles.size,
        prompts=benchmark.rows,
        units=ratings.units.pair.size,
        pairs_met=np.unique(ratings.units.pair).size,
        ties=int(np.count_nonzero(votes[:, OUTCOME] == 0)),
        anchor=names[ratings.anchor] if ratings.anchor is not None and ratings.rated[ratings.anchor] else None,
        ratings=_ratings(ratings, benchmark.spec.alpha),
        islands=[
            [names[k] for k in ratings.order.tolist() if islands[k] == island] for island in np.unique(islands).tolist()
        ],
        position=_position(ratings, votes, benchmark.spec.alpha),
        judges=_judges(votes, benchmark.battles.judges, ratings, shared, share),
        judge_count=np.unique(votes[:, JUDGE]).size,
        agreement=alpha,
        disagreements=_disagreements(table, ratings),
    )


def _ratings(ratings: Ratings, alpha: float) -> list[RatingReport]:
    """Report the rating of each model, by rank."""
    rating, error = ratings.ratings
    z = float(z_sum(alpha, _ANY))
    size = len(ratings.names)
    points = ratings.points
    played = np.bincount(ratings.first, minlength=size) + np.bincount(ratings.second, minlength=size)
    gained = np.bincount(ratings.first, points, size) + np.bincount(ratings.second, 1 - points, size)
    columns = (
        json_numbers(x) for x in (rating, rating - z * error, rating + z * error, gained / np.maximum(played, 1))
    )
    value, low, high, share = (list(column) for column in columns)
    return [
        RatingReport(
            model=ratings.names[k],
            rating=value[k],
            rating_low=low[k],
            rating_high=high[k],
            prompts=int(played[k]),
            win_share=share[k] or 0.0,
            island=int(ratings.groups.island[k]) + 1,
            unrated=None if ratings.rated[k] else _unrated(ratings, k),
        )
        for k in ratings.order.tolist()
    ]


def _unrated(ratings: Ratings, model: int) -> str:
    """Return why a model has no finite rating."""
    points = np.concatenate([ratings.points[ratings.first == model], 1 - ratings.points[ratings.second == model]])
    if (points == 1).all():
        return UNRATED["won"]
    if (points == 0).all():
        return UNRATED["lost"]
    return UNRATED["apart"]


def _position(ratings: Ratings, votes: NDArray[np.int32], alpha: float) -> PositionReport | None:
    """Report how often the answer that was shown first wins; None where no order is known."""
    known = votes[votes[:, ORDER] != 0]
    if not len(known):
        return None
    first = known[:, OUTCOME] * known[:, ORDER]
    units = ratings.units
    position, variance = ratings.fit.position, ratings.fit.covariance[-1, -1]
    estimated = bool((units.order > 0).any() and (units.order < 0).any()) and np.isfinite(position)
    error = np.sqrt(max(variance, 0.0))
    margin = float(z_sum(alpha, _ANY)) * error if estimated and ELO * error >= SMALLEST_ERROR else np.nan
    effect = json_numbers(ELO * np.array([position, position - margin, position + margin]))
    return PositionReport(
        votes=len(known),
        first_wins=int(np.count_nonzero(first > 0)),
        second_wins=int(np.count_nonzero(first < 0)),
        swapped=int(np.count_nonzero(units.swapped)),
        fixed=int(np.count_nonzero(units.order != 0)),
        effect=effect[0] if estimated else None,
        effect_low=effect[1] if estimated else None,
        effect_high=effect[2] if estimated else None,
    )


def _judges(
    votes: NDArray[np.int32], names: Sequence[str], ratings: Ratings, shared: Index, share: NDArray[np.float64]
) -> list[JudgeReport]:
    """Report the judges with the most votes: how often they agree with others, and how each ranks the models."""
    judge = votes[:, JUDGE]
    if (judge < 0).all():
        return []
    numbers, counts = np.unique(judge, return_counts=True)
    most = np.lexsort((numbers, -counts))[:JUDGES]
    reports = []
    for number, count in zip(numbers[most].tolist(), counts[most].tolist(), strict=True):
        of = number + 1
        own = json_numbers(share[of : of + 1]) if of < share.size else [None]
        reports.append(
            JudgeReport(
                judge=names[number] if number >= 0 else _NO_JUDGE,
                votes=count,
                shared=int(shared[of]) if of < shared.size else 0,
                agrees=own[0],
                ranking=_ranking(votes[judge == number], ratings.names),
            )
        )
    return reports


def _ranking(votes: NDArray[np.int32], names: list[str]) -> list[str] | None:
    """Return the models in the order of one judge's votes; None where these do not connect them enough."""
    first, second = pair_members(votes[:, PAIR].astype(np.int64))
    points = (1 + votes[:, OUTCOME]) / 2
    met = np.unique(np.concatenate([first, second]))
    place = np.zeros(len(names), np.int64)
    place[met] = np.arange(met.size)
    first, second = place[first], place[second]
    groups = groups_of(first, second, points, met.size)
    if groups.island.any():
        return None
    strength = bradley_terry(first, second, points, met.size).strength
    keys = sorted(zip(groups.level, -strength, (names[k] for k in met.tolist()), strict=True))
    return [name for *_, name in keys]


def _agreement(votes: NDArray[np.int32]) -> tuple[float | None, Index, NDArray[np.float64]]:
    """Return Krippendorff's alpha of the judges, and of each judge (from -1) the shared units and the agreement there."""
    judged = votes[votes[:, JUDGE] >= 0]
    key = (judged[:, PROMPT].astype(np.int64) << 25) | judged[:, PAIR]
    judge = judged[:, JUDGE].astype(np.int64)
    # The sign of the sum of a judge's votes on a unit: both orders of one judge are one opinion.
    order = np.lexsort((judge, key))
    key, judge, outcome = key[order], judge[order], judged[order, OUTCOME]
    starts = np.flatnonzero((np.diff(key, prepend=-1) != 0) | (np.diff(judge, prepend=-1) != 0))
    if not starts.size:
        return None, np.zeros(0, np.int64), np.zeros(0)
    label = np.sign(np.add.reduceat(outcome.astype(np.int64), starts)) + 1
    agreed = agreement(key[starts], judge[starts] + 1, label)
    (alpha,) = json_numbers(np.array([agreed.alpha]))
    return alpha, agreed.units, agreed.share


def _disagreements(table: PairTable, ratings: Ratings) -> list[Disagreement]:
    """Report the pairs whose direct battles favour the model with the lower rating, strongest evidence first."""
    gap = table.kind.moments[0]
    at = np.flatnonzero((table.pairs.n > 0) & (gap < 0) & ratings.rated[table.pairs.a] & ratings.rated[table.pairs.b])
    rating, _ = ratings.ratings
    at = at[np.argsort(-table.kind.log_e[at], kind="stable")]
    decided = table.decided("anytime_family")
    return [
        Disagreement(
            higher=ratings.names[table.pairs.a[q]],
            lower=ratings.names[table.pairs.b[q]],
            rating_gap=float(rating[table.pairs.a[q]] - rating[table.pairs.b[q]]),
            prompts=int(table.pairs.n[q]),
            direct_gap=float(gap[q]),
            decided=decided is not None and bool(decided[q] < 0),
        )
        for q in at.tolist()
    ]
