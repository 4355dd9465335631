"""The state of one benchmark: the score matrix, the sums of its pairs, and what has been latched."""

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from monitor.engine.state.arrival import Arrival, describe_finding
from monitor.engine.state.committed import Committed
from monitor.engine.state.counts import ABSENT, ONE, SKIPPED, ZERO, Codes, matrix_counts
from monitor.engine.state.delta import BenchmarkDelta, Contestant, PairSnapshot, RowKey, StoredBenchmark
from monitor.engine.state.graded import GradedPairs, capital_of
from monitor.engine.state.keys import benchmark_key
from monitor.engine.state.pairs import Index, all_pairs, pair_count, pair_members
from monitor.engine.state.repeats import Repeats
from schemas.changes import VerdictChange
from schemas.events import Spec

MILLION: Final = 1_000_000
"""Scores are kept in millionths, so that sums are exact integers whatever the order of adding."""

NARROW: Final = 254
"""How many different scores fit beside `absent` and `skipped` in one byte."""

COUNTERS: Final = ("events", "duplicates", "conflicts", "rejected")
PROCEDURES: Final = ("anytime", "anytime_family")


def _grown(array: NDArray[Any], *shape: int) -> NDArray[Any]:
    """Return an array of at least this shape that begins with the given one; grows by a sixteenth, so that appending is cheap."""
    if all(have >= need for have, need in zip(array.shape, shape, strict=True)):
        return array
    target = [
        have if have >= need else max(need, have + have // 16 + 2)
        for have, need in zip(array.shape, shape, strict=True)
    ]
    result = np.zeros(target, array.dtype)
    result[tuple(slice(0, have) for have in array.shape)] = array
    return result


class Benchmark:
    """Everything one benchmark's verdicts are made of.

    Rows are (item, repeat), in the order of their first event; contestants are (model, epoch), likewise. Pair arrays follow
    `monitor.engine.state.pairs`.
    """

    repeats: Repeats | None = None
    """The items, where several repeats make one; None where repeat 0 is the item."""
    graded_pairs: GradedPairs | None = None
    """Capital of every pair, where graded scores bet."""
    mixed = False
    """Whether a score that counts was neither 0 nor 1 although none but these was declared."""

    def __init__(self, name: str, spec: Spec | None = None) -> None:
        self.name = name
        self.key = benchmark_key(name)
        self.spec = Spec()
        self.declared = False
        self.listed: dict[str, int] | None = None
        """Place of each item in the declared list; None without one."""
        self.arrival = Arrival()
        self.committed: Committed | None = None
        """Prefixes along the committed order; None under another policy."""
        self.off = 0

        self.rows: list[RowKey] = []
        self.row_of: dict[str, int] = {}
        """Row of (item, repeat 0)."""
        self.repeat_row_of: dict[tuple[str, int], int] = {}
        self.items = 0
        self.counts_row = np.zeros(0, bool)
        """Which rows bet: repeat 0."""

        self.contestants: list[Contestant] = []
        self.contestant_of: dict[str, int] = {}
        """Contestant of (model, epoch 0)."""
        self.epoch_contestant_of: dict[Contestant, int] = {}
        self.latest_epoch: dict[str, int] = {}

        self.values: list[int] = [0, MILLION]
        self.value_code: dict[int, int] = {0: ZERO, MILLION: ONE}
        self.width = 1
        self.scores: Codes = np.zeros((0, 0), np.uint8)

        self.scored = np.zeros(0, np.int64)
        """Items scored, per contestant."""
        self.skipped = np.zeros(0, np.int64)
        self.total = np.zeros(0, np.int64)
        """Sum of scores in units, per contestant."""

        self.n = np.zeros(0, np.int32)
        self.b = np.zeros(0, np.int32)
        self.c = np.zeros(0, np.int32)
        self.family_index = np.zeros(0, np.int32)
        """1-based place of a pair in its family; 0 for a pair outside it."""
        self.registered = 0
        self.latched = {procedure: np.zeros(0, np.int8) for procedure in PROCEDURES}
        """+1: contestant i was decided to be better; -1: contestant j; 0: undecided; +2 and -2 once the lead has turned since."""
        self.changes: dict[str, VerdictChange] = {}
        self.counters = dict.fromkeys(COUNTERS, 0)
        if spec is not None:
            self.declare(spec)

    def declare(self, spec: Spec) -> None:
        """Take a declaration; whether it may still come is for the caller to say."""
        self.spec, self.declared = spec, True
        self.listed = None if spec.item_ids is None else {item: place for place, item in enumerate(spec.item_ids)}
        self.repeats = Repeats(spec.repeats, MILLION) if spec.repeats > 1 else None
        self.graded_pairs = GradedPairs() if self.graded and spec.order.policy != "none" else None
        self.committed = None
        if spec.order.policy == "committed":
            assert spec.order.seed is not None
            assert spec.item_ids is not None
            self.committed = Committed(spec.order.seed, spec.item_ids)

    # --- sizes ------------------------------------------------------------------------------------------------------------------------

    @property
    def pairs(self) -> int:
        """How many pairs of contestants there are."""
        return pair_count(len(self.contestants))

    @property
    def graded(self) -> bool:
        """Whether pairs bet on graded scores: declared, or means of several repeats."""
        return self.spec.scores == "graded" or self.spec.repeats > 1

    @property
    def binary(self) -> bool:
        """Whether every score that counts was 0 or 1, and pairs are described by b and c."""
        return not self.graded and not self.mixed

    @property
    def unit(self) -> int:
        """What stands for a score of 1 in `item_values` and `total`."""
        return MILLION * self.spec.repeats

    @property
    def overfull(self) -> bool:
        """Whether more items have come than were declared: what `completion` rests on is then wrong."""
        return self.spec.order.policy == "completion" and self.spec.items is not None and self.items > self.spec.items

    @property
    def refuted(self) -> bool:
        """Whether the order was trusted and has proved not to deserve it: nothing is decided any more, for good."""
        return self.spec.order.policy == "trusted" and self.arrival.finding is not None

    @property
    def suspicion(self) -> str | None:
        """What was found in the arrival order, or None."""
        finding = self.arrival.finding
        return None if finding is None else describe_finding(finding, self.contestants[finding.model].model)

    @property
    def broken(self) -> str:
        """What took the verdicts back, in words that do not change as more comes; empty while nothing did."""
        if self.refuted:
            return self.suspicion or ""
        if self.overfull:
            return f"more items have come than the {self.spec.items:,} declared, so the declared item count was wrong"
        return ""

    @property
    def standing(self) -> bool:
        """Whether anytime decisions count: an order policy is declared, and what it rests on has not proved wrong."""
        declared = self.spec.order.policy in {"completion", "committed", "trusted"}
        return declared and not self.overfull and not self.refuted

    @property
    def betting(self) -> bool:
        """Whether pairs may be decided by an anytime procedure now."""
        return self.standing and not self.mixed

    def missing(self, n: NDArray[np.int32]) -> NDArray[np.int32]:
        """How many items of the declared benchmark a pair does not share yet; skipped ones are missing for good."""
        assert self.spec.items is not None
        return np.asarray(self.spec.items - n, np.int32)

    def grow(self) -> None:
        """Make room for all rows and contestants that have been named."""
        rows, contestants, pairs = len(self.rows), len(self.contestants), self.pairs
        self.scores = _grown(self.scores, rows, contestants)
        self.counts_row = _grown(self.counts_row, rows)
        for name in ("scored", "skipped", "total"):
            setattr(self, name, _grown(getattr(self, name), contestants))
        if self.n.size < pairs:
            for name in ("n", "b", "c", "family_index"):
                setattr(self, name, _grown(getattr(self, name), pairs))
            for procedure in PROCEDURES:
                self.latched[procedure] = _grown(self.latched[procedure], pairs)
        if self.repeats is not None:
            self.repeats.grow(contestants)
        if self.graded_pairs is not None:
            self.graded_pairs.grow(contestants)

    # --- names ------------------------------------------------------------------------------------------------------------------------

    def add_row(self, item: str, repeat: int, cluster: str | None) -> int:
        """Name a new row; its scores follow at the next `grow`."""
        index = len(self.rows)
        self.rows.append(RowKey(item, repeat, cluster))
        if repeat == 0:
            self.row_of[item] = index
            self.items += self.repeats is None
        else:
            self.repeat_row_of[item, repeat] = index
        if self.repeats is not None:
            self.repeats.add_row(item, repeat, cluster)
            self.items = self.repeats.items
        return index

    def add_contestant(self, model: str, epoch: int) -> int:
        """Name a new contestant; its scores follow at the next `grow`."""
        index = len(self.contestants)
        self.contestants.append(Contestant(model, epoch))
        if epoch == 0:
            self.contestant_of[model] = index
        self.epoch_contestant_of[Contestant(model, epoch)] = index
        self.latest_epoch[model] = max(epoch, self.latest_epoch.get(model, 0))
        return index

    def add_value(self, millionths: int) -> int:
        """Name a new score; return its code."""
        self.values.append(millionths)
        code = self.value_code[millionths] = len(self.values) + 1
        if len(self.values) > NARROW and self.width == 1:
            self.width = 4
            self.scores = self.scores.astype(np.uint32)
        return code

    def current(self) -> NDArray[np.bool_]:
        """Say for each contestant whether it is the latest epoch of its model."""
        return np.array([c.epoch == self.latest_epoch[c.model] for c in self.contestants], bool)

    def comparable(self, pair: Index) -> NDArray[np.bool_]:
        """Say for each pair whether its members are different models: two epochs of one model are no hypothesis."""
        if len(self.latest_epoch) == len(self.contestants):
            return np.ones(pair.shape, bool)
        ids = {model: k for k, model in enumerate(self.latest_epoch)}
        model = np.array([ids[c.model] for c in self.contestants], np.int64)
        i, j = pair_members(pair)
        return np.asarray(model[i] != model[j])

    def matrix(self) -> Codes:
        """Return the score matrix without its spare room, shape (rows, contestants)."""
        return self.scores[: len(self.rows), : len(self.contestants)]

    def item_codes(self) -> Codes:
        """Return the scores that count, shape (items, contestants): of repeat 0, or of the repeats together."""
        if self.repeats is not None:
            return self.repeats.matrix(len(self.contestants))
        return self.matrix()[self.counts_row[: len(self.rows)]]

    @property
    def item_values(self) -> NDArray[np.int64]:
        """Score of each code of `item_codes`, in units; 0 for absent and skipped."""
        values = self.values if self.repeats is None else self.repeats.values
        return np.array([0, 0, *values], np.int64)

    def item_clusters(self) -> list[str | None]:
        """Return the cluster of each item, in the order of `item_codes`."""
        if self.repeats is not None:
            return self.repeats.clusters
        return [row.cluster for row, counts in zip(self.rows, self.counts_row, strict=False) if counts]

    # --- persistence ------------------------------------------------------------------------------------------------------------------

    def snapshot(self) -> PairSnapshot:
        """Return the pair arrays as they stand, so that a restart need not rebuild them."""
        pairs, contestants = self.pairs, len(self.contestants)
        return PairSnapshot(
            off=self.off,
            arrays={"n": self.n[:pairs].copy(), "b": self.b[:pairs].copy(), "c": self.c[:pairs].copy()}
            | {name: getattr(self, name)[:contestants].copy() for name in ("scored", "skipped", "total")},
        )

    @classmethod
    def restore(cls, stored: StoredBenchmark) -> "Benchmark":
        """Build the state from what the store holds; pair sums come from the snapshot if it is of the same offset, else from the rows."""
        self = cls(stored.name, Spec.model_validate_json(stored.spec) if stored.spec else None)
        self.off = stored.off
        for row in stored.rows:
            self.add_row(*row)
        for contestant in stored.contestants:
            self.add_contestant(*contestant)
        for millionths in stored.values[2:]:
            self.add_value(millionths)
        self.grow()
        self.counts_row[: len(self.rows)] = [row.repeat == 0 for row in self.rows]
        for k, column in enumerate(stored.columns):
            self.scores[: column.size, k] = column
        self.counters |= stored.counters
        self.registered = stored.registered.size
        self.family_index[stored.registered] = np.arange(1, self.registered + 1)
        self.changes = dict(stored.changes)
        self.arrival = Arrival.restore(stored.arrival, stored.finding)
        for field in self.changes:
            pair, procedure, kind = field.split(":")
            if kind == "decided":
                turned = f"{pair}:{procedure}:reversed" in self.changes
                self.latched[procedure][int(pair)] = (1 + turned) * self._side(int(pair), self.changes[field])
        self._restore_items()
        self._restore_sums(stored.pairs)
        if self.committed is not None:
            self.committed.rebuild(self.rows, self.matrix())
        return self

    def _side(self, pair: int, change: VerdictChange) -> int:
        i, _ = pair_members(np.array([pair]))
        first = self.contestants[int(i[0])]
        better = (change.model_a, change.epoch_a) if change.after == "a" else (change.model_b, change.epoch_b)
        return 1 if (first.model, first.epoch) == better else -1

    def _restore_items(self) -> None:
        """Bring what graded scores and repeats keep beside the rows to where the rows stand."""
        if self.repeats is not None:
            row, contestant = np.nonzero(self.matrix())
            item, contestant, code, _ = self.repeats.completed(self.matrix(), self.values, row, contestant, row)
            self.repeats.codes[item, contestant] = code
        self.mixed = not self.graded and len(self.values) > 2 and bool((self.item_codes() > ONE).any())
        if self.graded_pairs is not None and self.pairs:
            sums = capital_of(self.item_codes(), self.item_values, self.unit, *all_pairs(len(self.contestants)))
            self.graded_pairs.capital, self.graded_pairs.lead = sums

    def _restore_sums(self, snapshot: PairSnapshot | None) -> None:
        arrays = snapshot.arrays if snapshot is not None else self._sums_from_rows()
        for name, array in arrays.items():
            if name in {"n", "b", "c", "scored", "skipped", "total"}:
                getattr(self, name)[: array.size] = array

    def _sums_from_rows(self) -> dict[str, NDArray[Any]]:
        counting = self.item_codes()
        n, b, c = matrix_counts(counting)
        table = self.item_values
        contestants = range(counting.shape[1])
        return {
            "n": n,
            "b": b,
            "c": c,
            "scored": (counting >= ZERO).sum(axis=0),
            "skipped": (counting == SKIPPED).sum(axis=0),
            "total": np.array([table[counting[:, k]].sum() for k in contestants], np.int64),
        }

    def delta(self) -> BenchmarkDelta:
        """Begin the record of what a chunk changes here."""
        return BenchmarkDelta(key=self.key, name=self.name, off=self.off)


__all__ = ["ABSENT", "COUNTERS", "MILLION", "PROCEDURES", "Benchmark"]
