"""The board as of an earlier moment, as the page shows it."""

from datetime import UTC, datetime
from typing import Final

import numpy as np

from monitor.store.layout import CommitTimes
from monitor.view.live_pairs import LivePairs
from monitor.view.ranking.moments import sides_at
from monitor.view.ranking.standings import bands_of, closed_by_rank
from monitor.view.values import TieBands
from schemas.results.api import Band, EarlierBoard, LackingModel, Moment, Ties
from stats.families.ranks import rank_intervals
from stats.numerics.pairs import Index


def tie_report(ties: TieBands) -> Ties:
    """Return the ties with ranks from 1 in place of positions."""
    return Ties(
        bands=None
        if ties.bands is None
        else [Band(members=[k + 1 for k in band.members], lane=band.lane) for band in ties.bands],
        lanes=ties.lanes,
        rules=[k + 1 for k in ties.rules],
        lacking=[LackingModel(rank=k + 1, tied=[j + 1 for j in tied]) for k, tied in ties.lacking.items()],
    )


_MOST_CHANGES: Final = 20


def earlier_board(live: LivePairs, at: int | None, low_coverage: float, commits: CommitTimes) -> EarlierBoard:
    """Return the verdicts that were in force after the record at an offset."""
    table, times = live.table, live.verdict_times
    moments = times.moments()
    offset = at if at is not None else int(moments[-1]) if moments.size else 0
    decided, settled = sides_at(table, times, offset)
    better = closed_by_rank(table, decided)
    low, high = rank_intervals(better)
    fields = times.changes_at(offset)
    return EarlierBoard(
        benchmark=live.benchmark.name,
        models=live.models,
        at=offset,
        time=_time(commits, fields),
        first_time=_time(commits, times.changes_at(int(moments[0])) if moments.size else []),
        last_time=_time(commits, times.changes_at(int(moments[-1])) if moments.size else []),
        pairs=table.pairs.size,
        decided=int((decided != 0).sum()),
        settled=int((settled != 0).sum()),
        rank_low=low.tolist(),
        rank_high=high.tolist(),
        ties=tie_report(bands_of(better, table.kind.lacking(table.ranking, low_coverage))),
        steps_decided=decided[table.pairs.adjacent].tolist(),
        steps_settled=settled[table.pairs.adjacent].tolist(),
        moments=_moments(live, moments),
        moments_total=int(np.unique(times.offsets).size),
        changes=[live.benchmark.changes.verdict(field) for field in fields[:_MOST_CHANGES]],
        changes_total=len(fields),
        omitted=times.omitted,
        kept=live.benchmark.suite is None,
    )


def _moments(live: LivePairs, offsets: Index) -> list[Moment]:
    """Return each moment with what had fallen by then, and what fell or ended since the moment listed before."""
    times, adjacent = live.verdict_times, live.table.pairs.adjacent

    def by(column: Index) -> list[int]:
        counts: list[int] = np.searchsorted(np.sort(column), offsets, side="right").tolist()
        return counts

    ended = np.concatenate((times.undecided, times.unsettled, times.turned))
    columns = zip(
        offsets.tolist(), by(times.decided), by(times.decided[adjacent]), by(times.settled), by(ended), strict=True
    )
    return [
        Moment(offset=offset, decided=decided, steps=steps, settled=settled, ended=ends)
        for offset, decided, steps, settled, ends in columns
    ]


def _time(commits: CommitTimes, fields: list[str]) -> datetime | None:
    """Return when the changes of a record were committed, if that is recorded."""
    known = [commits.changes[field] for field in fields if field in commits.changes]
    return datetime.fromtimestamp(min(known), UTC) if known else None
