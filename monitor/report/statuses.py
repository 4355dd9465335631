"""The status of pairs: the one place where it is said which status comes before which."""

from typing import Final

import numpy as np
from numpy.typing import NDArray

from monitor.engine.state.pairs import Index
from monitor.report.pair_table import Floats, PairTable
from schemas.report import Status

STATUSES: Final[tuple[Status, ...]] = (
    "superseded",
    "invalidated",
    "decided",
    "equivalent",
    "held",
    "exhausted",
    "collecting",
)
"""What a status code stands for, in order of precedence: a pair has the first that holds of it."""


def status_codes(table: PairTable, listed: Index, held: str | None, low: Floats, high: Floats) -> NDArray[np.int8]:
    """Index into `STATUSES` of each listed pair.

    Parameters
    ----------
    table : PairTable
    listed : array of int64, shape (pairs,)
        Places in the table.
    held : str or None
        Why no further anytime verdict is given.
    low, high : arrays of float64, shape (pairs,)
        Bounds of the gap at alpha_j; nan where there are none. They are looked at only where `settled` says so.
    """
    spec = table.benchmark.spec
    decided = table.decided_anytime["anytime_family"][listed] != 0
    void = held is not None and not table.benchmark.standing
    missing = table.missing
    none_left = np.zeros(listed.size, bool) if missing is None else missing[listed] == 0
    equivalent = np.zeros(listed.size, bool)
    if spec.margin is not None and held is None:  # what holds verdicts back makes the interval worth nothing
        equivalent = settled(table, listed) & (-spec.margin < low) & (high < spec.margin)
    holds: dict[Status, NDArray[np.bool_] | bool] = {
        "superseded": table.superseded is not None,
        "invalidated": decided & void,
        "decided": decided,
        "equivalent": equivalent,
        "held": held is not None,
        "exhausted": none_left,
        "collecting": True,
    }
    rows = [np.broadcast_to(holds[status], listed.shape) for status in STATUSES]
    return np.asarray(np.stack(rows).argmax(axis=0), np.int8)


def settled(table: PairTable, listed: Index) -> NDArray[np.bool_]:
    """Say for which pairs an interval of the gap holds whatever may still come, and may show them to be equivalent."""
    if table.assumed_items is None and table.benchmark.spec.order.policy in {"committed", "trusted"}:
        return np.ones(listed.size, bool)
    return np.zeros(listed.size, bool) if table.missing is None else table.missing[listed] == 0
