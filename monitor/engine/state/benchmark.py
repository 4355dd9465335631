"""The state of one benchmark: its score matrix, and what the pairs, the arrival order and the order policy add to it."""

import numpy as np
from numpy.typing import NDArray

from monitor.engine.state.arrival import Arrival, describe_finding
from monitor.engine.state.codes import NARROW, Codes, ScoreTable
from monitor.engine.state.committed import Committed
from monitor.engine.state.conflicts import Conflicts
from monitor.engine.state.delta import BenchmarkDelta, PairSnapshot, RowKey
from monitor.engine.state.graded import GradedPairs
from monitor.engine.state.keys import benchmark_key
from monitor.engine.state.pair_state import PairState, grown
from monitor.engine.state.repeats import Repeats
from schemas.events import Spec

_COUNTERS = ("events", "duplicates", "conflicts", "rejected")
_PAIR_SUMS, _MODEL_SUMS = ("n", "b", "c"), ("scored", "skipped", "total")


class Benchmark(PairState):
    """Everything that the verdicts of one benchmark are made of.

    Rows are (item, repeat), in the order of their first event; columns are contestants.
    """

    def __init__(self, name: str, spec: Spec | None = None) -> None:
        super().__init__(name)
        self.key = benchmark_key(name)
        self.off = 0
        self.rows: list[RowKey] = []
        self.row_of: dict[str, int] = {}  # of repeat 0
        self.repeat_row_of: dict[tuple[str, int], int] = {}
        self.items = 0
        self.counts_row = np.zeros(0, bool)  # rows of repeat 0
        self.table = ScoreTable()
        self.width = 1
        self.scores: Codes = np.zeros((0, 0), np.uint8)  # shape (rows or more, contestants or more)
        self.scored = np.zeros(0, np.int64)  # items that count, by contestant
        self.skipped = np.zeros(0, np.int64)
        self.total = np.zeros(0, np.int64)  # sums of their scores, in units of `SCORE_UNIT`
        self.arrival = Arrival()
        self.conflicts = Conflicts()
        self.mixed = False
        """Whether a score that counts was neither 0 nor 1, although graded scores were not declared."""
        self.counters = dict.fromkeys(_COUNTERS, 0)
        self.declared = False
        self.declare(spec or Spec())
        self.declared = spec is not None

    def declare(self, spec: Spec) -> None:
        """Apply a declaration; the caller decides whether it is still allowed."""
        self.spec, self.declared = spec, True
        for index in range(len(self.contestants)):
            self.name_contestant(index)
        if self.counters["events"]:
            return  # what has been built from the scores stays: after them only fields on which nothing rests may change
        self.declared_items = None if spec.item_ids is None else {item: k for k, item in enumerate(spec.item_ids)}
        """Place of each item in the declared list."""
        self.repeats = Repeats(spec.repeats) if spec.repeats > 1 else None
        self.graded_pairs = GradedPairs() if self.graded and spec.order.policy != "none" else None
        self.committed = None
        if spec.order.policy == "committed":
            assert spec.order.seed is not None
            assert spec.item_ids is not None
            self.committed = Committed(spec.order.seed, spec.item_ids)

    # --- what holds ---

    @property
    def binary(self) -> bool:
        """Whether every score that counts was 0 or 1, so that b and c describe pairs."""
        return not self.graded and not self.mixed

    @property
    def too_many_items(self) -> bool:
        """Whether more items have arrived than declared, which refutes the assumption of policy completion."""
        return self.spec.order.policy == "completion" and self.spec.items is not None and self.items > self.spec.items

    @property
    def order_refuted(self) -> bool:
        """Whether the arrival order was declared trusted and a test has refuted it; this is permanent."""
        return self.spec.order.policy == "trusted" and self.arrival.finding is not None

    @property
    def suspicion(self) -> str | None:
        """Describe the finding against the arrival order, or return None."""
        finding = self.arrival.finding
        return None if finding is None else describe_finding(finding, self.contestants[finding.model].model)

    @property
    def invalidation_reason(self) -> str:
        """Reason why no decision counts any more, in words that later events do not change; empty without one."""
        if self.order_refuted:
            return self.suspicion or ""
        if self.too_many_items:
            return (
                f"more items have arrived than the {self.spec.items:,} declared, so the declared item count was wrong"
            )
        return ""

    @property
    def assumption_holds(self) -> bool:
        """Whether an order policy is declared and nothing has refuted its assumption: anytime decisions count."""
        return self.spec.order.policy != "none" and not self.too_many_items and not self.order_refuted

    @property
    def can_decide(self) -> bool:
        """Whether an anytime procedure may decide pairs now."""
        return self.assumption_holds and not self.mixed

    # --- names and sizes ---

    def add_row(self, item: str, repeat: int, cluster: str | None) -> int:
        """Add a row and return its index; call `grow` before its scores are written."""
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

    def add_value(self, score: int) -> int:
        """Add a distinct score, in units, and return its code."""
        code = self.table.add(score)
        if len(self.table) > NARROW and self.width == 1:
            self.width = 4
            self.scores = self.scores.astype(np.uint32)
        return code

    def grow(self) -> None:
        """Make room for all rows and contestants."""
        rows, contestants = len(self.rows), len(self.contestants)
        self.scores = grown(self.scores, rows, contestants)
        self.counts_row = grown(self.counts_row, rows)
        for name in _MODEL_SUMS:
            setattr(self, name, grown(getattr(self, name), contestants))
        self.grow_pairs()
        if self.repeats is not None:
            self.repeats.grow(contestants)
        if self.graded_pairs is not None:
            self.graded_pairs.grow(contestants)

    # --- scores ---

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
        return (self.table if self.repeats is None else self.repeats.table).by_code

    def item_clusters(self) -> list[str | None]:
        """Return the cluster of each item, in the order of `item_codes`."""
        if self.repeats is not None:
            return self.repeats.clusters
        return [row.cluster for row, counts in zip(self.rows, self.counts_row, strict=False) if counts]

    def snapshot(self) -> PairSnapshot:
        """Copy the pair sums, so that a restart need not compute them."""
        sizes = dict.fromkeys(_PAIR_SUMS, self.pairs) | dict.fromkeys(_MODEL_SUMS, len(self.contestants))
        return PairSnapshot(self.off, {name: getattr(self, name)[:size].copy() for name, size in sizes.items()})

    def delta(self) -> BenchmarkDelta:
        """Return an empty record of the changes of a chunk."""
        return BenchmarkDelta(key=self.key, name=self.name, off=self.off)
