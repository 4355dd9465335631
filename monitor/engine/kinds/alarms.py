"""What an alarm of a monitor is: when the change may have begun, how large it is, and which items moved most."""

from collections.abc import Sequence
from typing import Final

import numpy as np

from monitor.engine.kinds.monitors import Alarm, Monitor, Rows
from schemas.results.drift import DriftAlarm, FallenItem
from stats.drift.ranks import item_sums
from stats.drift.size import drift_size

_LISTED: Final = 10


def describe(monitor: Monitor, alarm: Alarm, last: int | None = None) -> DriftAlarm:
    """Return an alarm with its size, from its segment and the runs after it, up to an announced change and to before the place `last`."""
    runs, point, first = monitor.runs, alarm.point, alarm.first
    ends = [each for each in (*monitor.breaks, len(runs), last) if each is not None and each > alarm.place]
    places = range(first, min(ends))
    sign = 1.0 if alarm.side == "worse" else -1.0
    levels = monitor.scores.rows(places.start, places.stop)
    size = drift_size(sign * np.nanmean(levels, axis=1), point.start, point.starts)
    before = point.start - 1
    bag = monitor.bag(places.start, places.stop)
    moved, share = _moved(bag[:before], bag[before:], sign)
    # The model's rows are less the judge's mean; what is listed is on the scale of the scores.
    return DriftAlarm(
        side=alarm.side,
        run=runs[alarm.place],
        start=runs[first + point.start - 1],
        after_run=runs[first + point.first - 2],
        last_start=runs[first + point.last - 1],
        before=sign * size.before,
        since=sign * size.after,
        low=size.low,
        high=size.high,
        runs_since=size.runs,
        log_sum=alarm.log_sum,
        log_limit=monitor.limit,
        items=tuple(_item(monitor, levels, before, item) for item in moved),
        share_of_ten=share,
    )


def _moved(before: Rows, since: Rows, sign: float) -> tuple[Sequence[int], float | None]:
    """Return the items that moved most, and the share of the whole movement that ten of them carry."""
    fell = sign * (_means(before) - _means(since))
    fell = np.where(np.isnan(fell), -np.inf, fell)
    order = np.argsort(-fell, kind="stable")[:_LISTED]
    whole = float(fell[np.isfinite(fell)].sum())
    share = float(fell[order][fell[order] > 0].sum()) / whole if whole > 0 else None
    return [int(k) for k in order if fell[k] > 0], share


def _means(rows: Rows) -> Rows:
    sums = item_sums(rows)
    counts = np.asarray(sums.runs, float)
    return np.where(counts > 0, sums.total / np.maximum(counts, 1), np.nan)


def _item(monitor: Monitor, levels: Rows, before: int, item: int) -> FallenItem:
    column = levels[:, item]
    since = column[before:]
    held = since[~np.isnan(since)]
    return FallenItem(monitor.scores.items[item], float(np.nanmean(column[:before])), float(held.mean()), held.size)
