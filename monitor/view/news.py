"""What a board adds to its latest verdict changes: which of them are between neighbours, the ranks, and what is complete now."""

from collections.abc import Collection

import numpy as np

from monitor.view.board import BoardView
from monitor.view.pairs.table import PairTable
from monitor.view.ranking.goal import GoalView, unscored_models
from monitor.view.ranking.standings import decisions_by_rank
from monitor.view.reasons import held
from monitor.view.values import BoardNews, BoardState, PairNames
from monitor.words.order import because
from schemas.records.goals import parse_goal
from schemas.results.report import GoalReport
from stats.families.ranks import rank_intervals
from stats.numerics.pairs import Index


def board_state(benchmark: BoardView, last_event: float) -> BoardState:
    """Describe a board for those who watch states."""
    current = [k for k, old in enumerate(benchmark.superseded) if not old]
    fewest = min((int(benchmark.scored[k]) for k in current if k not in benchmark.ended), default=None)
    items = benchmark.spec.items or benchmark.items
    return BoardState(
        benchmark=benchmark.name,
        key=benchmark.key,
        version=benchmark.spec.version,
        models=len(current),
        held=because(held(benchmark)),
        fewest=fewest or 0,
        items=items,
        complete=fewest is None or fewest >= items,
        last_event=last_event,
        offset=benchmark.off,
    )


def board_news(table: PairTable, pairs: Collection[PairNames]) -> BoardNews:
    """Describe a board for the changes of some pairs."""
    contestants = table.benchmark.contestants
    rank_of = {contestants[k].model: rank for rank, k in enumerate(table.ranking.tolist())}
    at = {pair: _place(rank_of[pair[0]], rank_of[pair[1]], len(rank_of)) for pair in pairs if set(pair) <= set(rank_of)}
    followed = table.pairs.adjacent | (table.in_family if table.benchmark.spec.family.pairs is not None else False)
    sides = table.decided("anytime_family")
    low, high = rank_intervals(decisions_by_rank(table))
    names = sorted({name for pair in at for name in pair})
    return BoardNews(
        ranks={name: _range(int(low[rank_of[name]]), int(high[rank_of[name]])) for name in names},
        followed=frozenset(pair for pair, place in at.items() if followed[place]),
        ranking_decided=sides is not None
        and bool(table.pairs.adjacent.any())
        and bool((sides[table.pairs.adjacent] != 0).all()),
        ranking_settled=table.pairs.size > 0 and bool((table.settled != 0).all()),
        goal_met=_goal_met_by(table, np.array(sorted(at.values()), np.int64)),
    )


def _goal_met_by(table: PairTable, at: Index) -> GoalReport | None:
    """Return the goal if it is met, and would not be without the decisions of some pairs."""
    declared = table.benchmark.spec.goal
    if declared is None or not at.size:
        return None
    goal, absent = parse_goal(declared), unscored_models(table)
    view = GoalView(table, goal, absent)
    if view.outcome != "met" or GoalView(table, goal, absent, undone=tuple(at.tolist())).outcome == "met":
        return None
    return view.report()


def _place(first: int, second: int, models: int) -> int:
    """Return the position of a pair of ranks in the table.

    >>> [_place(i, j, 4) for i in range(4) for j in range(i + 1, 4)], _place(3, 0, 4)
    ([0, 1, 2, 3, 4, 5], 2)
    """
    low, high = min(first, second), max(first, second)
    return low * (2 * models - low - 1) // 2 + high - low - 1


def _range(low: int, high: int) -> str:
    return f"{low:,}" if low == high else f"{low:,} to {high:,}"
