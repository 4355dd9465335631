"""The verdicts in force at an earlier moment, from the changes that are kept; scores and ranks of then are not kept."""

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from monitor.view.board import Sides
from monitor.view.pairs.table import PairTable
from stats.evidence.settled import TIE
from stats.numerics.pairs import Index

NEVER: Final = np.iinfo(np.int64).max  # offset of what has not happened

MOST_MOMENTS: Final = 400
"""Moments that are listed: where there are more, every one of the verdicts that ended, and of the others some at equal distances."""


@dataclass(frozen=True)
class VerdictTimes:
    """When the verdicts of the pairs of a table fell: the offset of the record, `NEVER` where they did not."""

    fields: list[str]
    offsets: Index
    decided: Index
    settled: Index
    undecided: Index
    unsettled: Index
    turned: Index
    omitted: int

    @classmethod
    def of(cls, table: PairTable) -> "VerdictTimes":
        """Read the verdict changes of a benchmark."""
        benchmark = table.benchmark
        place = np.full(max(benchmark.pairs, 1), -1, np.int64)
        place[table.pairs.pair] = np.arange(table.pairs.size)
        version = [] if benchmark.spec.version == 1 else [str(benchmark.spec.version)]
        columns = {key: np.full(table.pairs.size, NEVER, np.int64) for key in _COLUMNS.values()}
        listed, omitted = [], 0
        changes = benchmark.changes
        for field, order in zip(changes, changes.orders(changes), strict=True):
            number, claim, kind, *under = field.split(":")
            column = _COLUMNS.get((claim, kind))
            if column is None:
                continue
            at = place[int(number)]
            if at < 0 or under != version:
                omitted += 1
                continue
            columns[column][at] = order[0]
            listed.append((order, field))
        listed.sort()
        offsets = np.array([order[0] for order, _ in listed], np.int64)
        return cls([field for _, field in listed], offsets, omitted=omitted, **columns)

    def in_force(self, offset: int) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """Return which pairs were decided, and which were settled, after the record at an offset."""
        return (
            (self.decided <= offset) & (self.undecided > offset),
            (self.settled <= offset) & (self.unsettled > offset),
        )

    def moments(self) -> Index:
        """Return the offsets at which verdicts fell or ended, `MOST_MOMENTS` and the ends at most."""
        moments = np.unique(self.offsets)
        if moments.size <= MOST_MOMENTS:
            return moments
        spread = moments[np.linspace(0, moments.size - 1, MOST_MOMENTS).astype(np.int64)]
        ends = np.unique(np.concatenate((self.undecided, self.unsettled, self.turned)))
        return np.unique(np.concatenate((spread, ends[ends < NEVER][:MOST_MOMENTS])))

    def changes_at(self, offset: int) -> list[str]:
        """Return the fields of the changes of one record."""
        start, end = np.searchsorted(self.offsets, (offset, offset + 1)).tolist()
        return self.fields[start:end]


_COLUMNS: Final = {
    ("anytime_family", "decided"): "decided",
    ("anytime_family", "invalidated"): "undecided",
    ("anytime_family", "superseded"): "undecided",
    ("anytime_family", "reversed"): "turned",
    ("settled", "settled"): "settled",
    ("settled", "invalidated"): "unsettled",
    ("settled", "superseded"): "unsettled",
}


def sides_at(table: PairTable, times: VerdictTimes, offset: int) -> tuple[Sides, Sides]:
    """Return who was decided to be better in each pair, and who led it for certain, after the record at an offset."""
    # A decision names the same model as long as it is in force, so the latches have the sides.
    decided, settled = times.in_force(offset)
    side = table.benchmark.claims["settled"]().side[table.pairs.pair]
    leads = np.where(table.pairs.flip & (side != TIE), -side, side)
    return (
        np.where(decided, table.anytime_decisions["anytime_family"], 0).astype(np.int8),
        np.where(settled, leads, 0).astype(np.int8),
    )
