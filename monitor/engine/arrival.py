"""The diagnostic of the arrival order, live: per model, and to the event at which the order was refuted.

It reads no score. What it keeps of a model is a handful of integers that hang on the order of the log alone, never on the
chunking: how many items came, the cluster of the last one, how often two of one cluster followed each other, and the sum of (arrival
x place in the declared list). What does not hang on the order (how many items of each cluster a model has) is counted from the score
matrix when a model stands at a look, which is rare. The tests, their looks and their corrections are those of `stats.order`.

The place of an item is its place in the declared list of items. Without a list that test does not run: where an item was first seen says
nothing, since for the first model it is its arrival, and a second model may well follow the same random order.
"""

from collections.abc import Sequence
from typing import Final, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from monitor.engine.counts import ABSENT, Codes
from monitor.engine.delta import RowKey
from monitor.engine.pairs import Index
from stats.order import FIRST_LOOK, OrderFinding, arrival_correlation, order_test

ALPHA: Final = 0.01
"""Probability of ever suspecting a good order, over the whole life of a benchmark."""

SEEN, LAST, SAME, MOMENT = range(4)
"""Columns of the state: items seen, cluster label + 1 of the last one, same-cluster successions, sum of arrival x place."""


class Seen(NamedTuple):
    """New cells of rows that count, in the order of the log within each contestant, and contestants in order."""

    row: Index
    contestant: Index
    position: Index


class _Look(NamedTuple):
    """A model at a look: the event that brought it there, and what is tested."""

    position: int
    contestant: int
    items: int
    same: int
    like_pairs: int
    correlation: float


class Arrival:
    """The arrival order of one benchmark.

    Attributes
    ----------
    state : array of int64, shape (contestants, 4)
        See `SEEN`, `LAST`, `SAME`, `MOMENT`; empty once there is a finding.
    finding : OrderFinding or None
        The first evidence against the order at level `ALPHA`; from then on nothing is looked at any more.
    """

    def __init__(self) -> None:
        self.state = np.zeros((0, 4), np.int64)
        self.finding: OrderFinding | None = None
        self._touched: set[int] = set()
        self._label = np.zeros(0, np.int32)
        self._place = np.zeros(0, np.int64)
        self._labels: dict[str | None, int] = {}
        self._labelled = 0

    @classmethod
    def restore(cls, state: NDArray[np.int64], finding: OrderFinding | None) -> Self:
        """Go on from what was stored."""
        self = cls()
        if finding is None:
            self.state = state.reshape(-1, 4).copy()
        self.finding = finding
        return self

    def changed(self) -> tuple[Index, NDArray[np.int64]]:
        """Return the contestants whose state has changed since the last call, and their state."""
        touched = np.array(sorted(self._touched), np.int64)
        self._touched.clear()
        return touched, self.state[touched]

    def observe(
        self,
        rows: Sequence[RowKey],
        listed: dict[str, int] | None,
        scores: Codes,
        cells: tuple[Index, Index, Index],
    ) -> int | None:
        """Take in new cells.

        Parameters
        ----------
        rows : sequence of RowKey
            All rows of the benchmark.
        listed : dict of str to int, optional
            Place of each item in the declared list.
        scores : array of codes
            The score matrix before these cells.
        cells : tuple of arrays of int64 (row, contestant, position), shape (cells,) each
            New cells of rows that count, skipped ones too; `position` is where each stands in the log.

        Returns
        -------
        int or None
            The position of the first event at which the order is refuted; None if it is not, or was before.
        """
        if self.finding is not None or cells[0].size == 0:
            return None
        self._enter(rows, listed)
        row, contestant, position = cells
        if len(self._labels) == 1 and not self._place.size:
            self._advance_in_one_cluster(contestant)
            return None
        # By arrival, then by contestant.
        place = np.full(int(position.max()) + 1, -1, np.int64)
        place[position] = np.arange(position.size)
        order = place[place >= 0]
        narrow = contestant.astype(np.uint16) if contestant.max() < 1 << 16 else contestant  # sorted by radix
        order = order[np.argsort(narrow[order], kind="stable")]
        seen = Seen(row[order], contestant[order], position[order])
        looks = self._advance(seen, scores)
        return self._test(looks) if looks else None

    def _enter(self, rows: Sequence[RowKey], listed: dict[str, int] | None) -> None:
        """Label new rows with their cluster and place."""
        fresh = rows[self._labelled :]
        if not fresh:
            return
        self._labelled = len(rows)
        labels = self._labels
        label = [labels.setdefault(row.cluster, len(labels)) if row.repeat == 0 else -1 for row in fresh]
        self._label = np.concatenate([self._label, np.array(label, np.int32)])
        if listed is not None:
            self._place = np.concatenate([self._place, np.array([listed[row.item] for row in fresh], np.int64)])

    def _advance_in_one_cluster(self, contestant: Index) -> None:
        """Do what `_advance` does where every item has the same label and no place: no order of them can be told from another."""
        new = np.bincount(contestant, minlength=self.state.shape[0])
        self.state = np.pad(self.state, ((0, new.size - self.state.shape[0]), (0, 0)))
        who = np.flatnonzero(new)
        before = self.state[who, SEEN]
        self.state[who, SEEN] += new[who]
        self.state[who, LAST] = 1
        self.state[who, SAME] += new[who] - (before == 0)
        self._touched.update(who.tolist())

    def _advance(self, seen: Seen, scores: Codes) -> list[_Look]:
        """Add cells to the state of their contestants, and return the looks that were reached."""
        contestants = int(seen.contestant[-1]) + 1
        if self.state.shape[0] < contestants:
            self.state = np.pad(self.state, ((0, contestants - self.state.shape[0]), (0, 0)))
        label = self._label[seen.row].astype(np.int64) + 1
        start = np.flatnonzero(np.diff(seen.contestant, prepend=-1))
        who = seen.contestant[start]
        size = np.diff(start, append=label.size)
        before = self.state[who]
        previous = np.empty_like(label)
        previous[1:] = label[:-1]
        previous[start] = before[:, LAST]
        same = np.cumsum(label == previous)
        same += np.repeat(before[:, SAME] - np.where(start > 0, same[start - 1], 0), size)
        moment = None
        if self._place.size:
            arrival = np.arange(label.size) + np.repeat(before[:, SEEN] + 1 - start, size)
            moment = np.cumsum(arrival * self._place[seen.row])
            moment += np.repeat(before[:, MOMENT] - np.where(start > 0, moment[start - 1], 0), size)

        looks = []
        following = _next_look(before[:, SEEN])
        for g in np.flatnonzero(following <= before[:, SEEN] + size).tolist():
            items = int(following[g])
            while items <= before[g, SEEN] + size[g]:
                end = start[g] + items - before[g, SEEN]
                cells = Seen(*(x[start[g] : end] for x in seen))
                tx = int(moment[end - 1]) if moment is not None else None
                looks.append(self._look(cells, scores, items, int(same[end - 1]), tx))
                items *= 2
        last = start + size - 1
        self.state[who] = np.stack(
            [before[:, SEEN] + size, label[last], same[last], before[:, MOMENT] if moment is None else moment[last]], 1
        )
        self._touched.update(who.tolist())
        return looks

    def _look(self, cells: Seen, scores: Codes, items: int, same: int, moment: int | None) -> _Look:
        """Count what a contestant has, with these new cells beside what it had before."""
        contestant = int(cells.contestant[0])
        had = np.flatnonzero(scores[: self._labelled, contestant] != ABSENT)
        had = had[self._label[had] >= 0]
        rows = np.concatenate([had, cells.row])
        counts = np.bincount(self._label[rows])
        correlation = 0.0
        if moment is not None:
            place = self._place[rows]
            correlation = float(arrival_correlation(items, place.sum(), (place * place).sum(), moment))
        like_pairs = int((counts * (counts - 1) // 2).sum())
        return _Look(int(cells.position[-1]), contestant, items, same, like_pairs, correlation)

    def _test(self, looks: list[_Look]) -> int | None:
        """Test looks in the order of the log; keep the first finding."""
        looks.sort()
        columns = np.array([look[1:] for look in looks]).T
        p = np.stack(order_test(*columns))
        suspects = np.flatnonzero(p.min(axis=0) <= ALPHA)
        if suspects.size == 0:
            return None
        at = int(suspects[0])
        look, which = looks[at], int(p[:, at].argmin())
        statistic, observed, expected = (
            ("cluster successions", float(look.same), 2 * look.like_pairs / look.items),
            ("item position", look.correlation, 0.0),
        )[which]
        self.finding = OrderFinding(
            float(p[which, at]), True, statistic, look.contestant, look.items, observed, expected
        )
        self.state = self.state[:0]  # where it stands now depends on the chunk, and nothing looks at it any more
        self._touched.clear()
        return look.position


def _next_look(seen: Index) -> Index:
    """Items at the first look after so many."""
    return FIRST_LOOK << np.maximum(np.frexp(seen / FIRST_LOOK)[1], 0).astype(np.int64)


def describe_finding(finding: OrderFinding, model: str) -> str:
    """Say in a sentence what was found in the order."""
    tail = f"a random order does so with probability {finding.p_value:.1g} at most"
    if finding.statistic == "cluster successions":
        return (
            f"the arrival order is suspect: of the first {finding.items:,} items of {model}, {finding.observed:,.0f} follow one of the "
            f"same cluster, where a random order has about {finding.expected:,.0f} ({tail})"
        )
    return (
        f"the arrival order is suspect: the first {finding.items:,} items of {model} follow their order in the declared list "
        f"(correlation {finding.observed:.2f}; {tail})"
    )
