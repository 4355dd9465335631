"""The arrival-order test, live: per model, to the event that refutes the order.

It reads no score. The state of a model is four integers that depend on the order of the log, never on the chunking. The items of each
cluster are counted from the score matrix at a look, which is rare. The tests, their looks and corrections are those of `stats.order`.

The place of an item is its place in the natural order of the declared ids, and not in their list: a list may itself be in random run order,
and then arrival as listed is random. Without a list that test does not run: the place of an item's first event is no substitute, since for
the first model it is the arrival itself, and a second model may follow the same random order.
"""

from collections.abc import Callable, Sequence
from operator import attrgetter
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from schemas.records.scores import RowKey
from stats.numerics.pairs import Index
from stats.order import FIRST_LOOK, OrderFinding, arrival_correlation, inverse_share, order_test, succession_p

ALPHA: Final = 0.01  # probability of ever suspecting a good order, over the whole life of a benchmark

_CLUSTER = attrgetter("cluster")

SEEN, LAST, SAME, MOMENT = range(4)
"""Columns of the state: items seen, cluster label + 1 of the last one, same-cluster successions, sum of arrival x place."""

_UNPLACED: Final = -(2**62)  # sum of arrival x place of a model whose items came before their places were known

_NOTHING: Final = np.zeros((0, 4), np.int64)
_SLACK: Final = 1e-9  # rounding must not rule a test out


class _Look(NamedTuple):
    """A model at a look: the range of its new cells among those sorted by contestant, and its sums up to there."""

    contestant: int
    items: int
    same: int
    moment: int
    start: int
    end: int


class Arrival:
    """The arrival order of one benchmark, from its stored state; no test runs after the first finding at level `ALPHA`."""

    def __init__(self, state: NDArray[np.int64] = _NOTHING, finding: OrderFinding | None = None) -> None:
        self.state = (state if finding is None else _NOTHING).reshape(-1, 4).copy()
        self.finding = finding
        self._touched: set[int] = set()
        self._label = np.zeros(0, np.int64)  # cluster label + 1 of each item
        self._place = np.zeros(0, np.int64)
        self._labels: dict[str | None, int] = {}
        self._labelled = 0

    def changed(self) -> tuple[Index, NDArray[np.int64]]:
        """Return the contestants whose state has changed since the last call, and their state."""
        touched = np.array(sorted(self._touched), np.int64)
        self._touched.clear()
        return touched, self.state[touched]

    def restarted(self, items: Index) -> "Arrival":
        """Return the test after arrivals that it did not see, or under another list of items; `items` are those each contestant has."""
        # What is not known counts for a good order: the state has no same-cluster successions, and no places.
        if self.finding is not None:
            return self
        state = np.zeros((items.size, 4), np.int64)
        state[:, SEEN], state[:, MOMENT] = items, np.where(items > 0, _UNPLACED, 0)
        new = Arrival(state)
        new._touched = set(range(items.size))
        return new

    def observe(
        self,
        items: Sequence[RowKey],
        places: dict[str, int] | None,
        present: Callable[[int], NDArray[np.bool_]],
        cells: tuple[Index, Index, Index],
    ) -> int | None:
        """Add new cells, and test the order at the looks they reach; return the position of the event that first refutes it, or None."""
        # `items` are all items, `places` the place of each if a list is declared, `present` returns which of them a contestant had before,
        # `cells` are the (item, contestant, position) of the first cell of each item, skipped ones included.
        if self.finding is not None or cells[0].size == 0:
            return None
        self._enter(items, places)
        item, contestant, position = cells
        if len(self._labels) == 1 and not self._place.size:
            self._advance_in_one_cluster(contestant)
            return None
        order = np.argsort(contestant * (int(position.max()) + 1) + position)  # by contestant, then by arrival
        item = item[order]
        looks = self._worth_testing(self._advance(item, contestant[order]))
        if not looks:
            return None
        looks.sort(key=lambda look: int(position[order[look.end - 1]]))
        suspect = self._test(looks, item, present)
        return None if suspect is None else int(position[order[suspect.end - 1]])

    def _enter(self, items: Sequence[RowKey], places: dict[str, int] | None) -> None:
        """Label new items with their cluster and place."""
        if len(items) == self._labelled:
            return
        fresh = items[self._labelled :]
        self._labelled = len(items)
        clusters = list(map(_CLUSTER, fresh))
        for cluster in dict.fromkeys(clusters):
            self._labels.setdefault(cluster, len(self._labels) + 1)
        label = np.array(list(map(self._labels.__getitem__, clusters)), np.int64)
        self._label = np.concatenate([self._label, label])
        if places is not None:
            self._place = np.concatenate([self._place, np.array([places[key.item] for key in fresh], np.int64)])

    def _advance_in_one_cluster(self, contestant: Index) -> None:
        """Do the work of `_advance` where every item has the same label and no place: all orders look alike."""
        new = np.bincount(contestant, minlength=self.state.shape[0])
        self._make_room(new.size)
        who = np.flatnonzero(new)
        seen, last, same, _ = self.state.T
        seen[who] += new[who]
        same[who] += new[who] - (last[who] == 0)
        last[who] = 1
        self._touched.update(who.tolist())

    def _make_room(self, contestants: int) -> None:
        if (missing := contestants - self.state.shape[0]) > 0:
            self.state = np.concatenate([self.state, np.zeros((missing, 4), np.int64)])

    def _advance(self, item: Index, contestant: Index) -> list[_Look]:
        """Add cells, sorted by contestant, to the state, and return the looks they reach."""
        self._make_room(int(contestant[-1]) + 1)
        label = self._label[item]
        first = np.ones(contestant.size, bool)
        np.not_equal(contestant[1:], contestant[:-1], out=first[1:])
        start = np.flatnonzero(first)
        who = contestant[start]
        end = np.append(start[1:], label.size)
        before = self.state[who]
        seen = before[:, SEEN]
        previous = np.empty_like(label)
        previous[1:] = label[:-1]
        previous[start] = before[:, LAST]
        alike = label == previous
        moments = None
        if self._place.size:
            arrival = np.arange(label.size) + np.repeat(seen + 1 - start, end - start)
            moments = arrival * self._place[item]

        looks = []
        for g in np.flatnonzero(_next_look(seen) <= seen + end - start).tolist():
            had, same, moment, low = int(seen[g]), int(before[g, SAME]), int(before[g, MOMENT]), int(start[g])
            items = int(_next_look(seen[g]))
            while items <= had + int(end[g]) - low:
                high = low + items - had
                looks.append(
                    _Look(
                        int(who[g]),
                        items,
                        same + int(np.count_nonzero(alike[low:high])),
                        moment + (0 if moments is None else int(moments[low:high].sum())),
                        low,
                        high,
                    )
                )
                items *= 2
        before[:, SEEN] += end - start
        before[:, LAST] = label[end - 1]
        before[:, SAME] += np.add.reduceat(alike, start, dtype=np.int64)
        if moments is not None:
            before[:, MOMENT] += np.add.reduceat(moments, start)
        self.state[who] = before
        self._touched.update(who.tolist())
        return looks

    def _worth_testing(self, looks: list[_Look]) -> list[_Look]:
        """Omit the looks that cannot refute the order for any clusters of their items."""
        # Successions surprise most when clusters are equally large, so that case rules most looks out without counting their clusters.
        # Where an item has a place, the count is needed anyway.
        if self._place.size:
            return looks
        if not looks:
            return looks
        contestant, items, same = np.array([look[:3] for look in looks]).T
        p = succession_p(items - 1, same, self._least_alike(items)) * inverse_share(contestant, items)
        return [looks[k] for k in np.flatnonzero(p <= ALPHA * (1 + _SLACK)).tolist()]

    def _least_alike(self, items: Index) -> Index:
        """Return the pairs of items of one cluster if the items are spread evenly over all clusters."""
        each, rest = np.divmod(items, len(self._labels))
        return np.asarray(len(self._labels) * (each * (each - 1) // 2) + rest * each)

    def _counted(self, look: _Look, item: Index, present: Callable[[int], NDArray[np.bool_]]) -> tuple[int, float]:
        """Count the pairs of items of one cluster at a look, and correlate arrival with place."""
        had = present(look.contestant)[: self._labelled]
        fresh = item[look.start : look.end]
        size = len(self._labels) + 1
        counts = np.bincount(self._label[had], minlength=size) + np.bincount(self._label[fresh], minlength=size)
        counts = counts[1:]
        like_pairs = int((counts * (counts - 1) // 2).sum())
        if not self._place.size or look.moment < 0:
            return like_pairs, 0.0
        place = np.concatenate([self._place[had], self._place[fresh]])
        return like_pairs, float(arrival_correlation(look.items, place.sum(), (place * place).sum(), look.moment))

    def _test(self, looks: list[_Look], item: Index, present: Callable[[int], NDArray[np.bool_]]) -> _Look | None:
        """Test looks in the order of the log; keep the first finding, and return its look."""
        contestant, items, same = np.array([look[:3] for look in looks]).T
        like_pairs, correlation = np.array([self._counted(look, item, present) for look in looks]).T
        p = np.stack(order_test(contestant, items, same, like_pairs, correlation))
        suspects = np.flatnonzero(p.min(axis=0) <= ALPHA)
        if suspects.size == 0:
            return None
        at = int(suspects[0])
        look, which = looks[at], int(p[:, at].argmin())
        statistic, observed, expected = (
            ("cluster successions", float(look.same), float(2 * like_pairs[at] / look.items)),
            ("item position", float(correlation[at]), 0.0),
        )[which]
        self.finding = OrderFinding(
            float(p[which, at]), True, statistic, look.contestant, look.items, observed, expected
        )
        self.state = self.state[:0]  # depends on the chunking now, and no test reads it
        self._touched.clear()
        return look


def _next_look(seen: Index) -> Index:
    """Return the items at the first look after some."""
    return FIRST_LOOK << np.maximum(np.frexp(seen / FIRST_LOOK)[1], 0).astype(np.int64)
