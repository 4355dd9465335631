"""The arrays that the loops over events go through, for one benchmark under an order policy."""

from functools import cache, lru_cache
from math import inf, log, log1p, nan
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from monitor.engine.kinds.bets import bets_of
from monitor.engine.latch.base import Closed
from monitor.engine.loop import bets, kernels, layout
from monitor.engine.state.codes import Codes
from schemas.records.scores import ONE, SCORE_UNIT, ZERO
from schemas.results.changes import CLAIMS
from stats.evidence.graded import LAMBDAS, log_increments
from stats.numerics.mixtures import parse_mixture
from stats.numerics.pairs import Index

_POLICIES: Final = {"trusted": layout.TRUSTED, "completion": layout.COMPLETION, "committed": layout.COMMITTED}
_ROWS: Final = 4_096
_SPARE: Final = 1 / 16
_LEAST: Final = 10
"""Power of two of the counts in the smallest table."""
_DIFFERENCES: Final = 8_192
"""Rows of the table of differences: 7 MB."""
_SLOTS: Final = 4
"""Slots of its hash table for each, at least: a power of two in all."""


class _Output(NamedTuple):
    """Rows of changes; see `kernels.fold`."""

    whole: NDArray[np.int64]
    real: NDArray[np.float64]

    @classmethod
    def of(cls, rows: int) -> "_Output":
        """Return so many rows."""
        return cls(np.empty((rows, 9), np.int64), np.empty((rows, 2)))


Values = tuple[NDArray[np.int64], Index]
"""Graded scores of some items in units, shape (items, models), negative for none; and the cluster of each, where clusters have weights."""


Found = tuple[Closed, Index]
"""What closes, and the pairs that join their families, in the order of the log."""


class Loop:
    """Folds new scores into the pairs of a benchmark.

    What it holds follows from the state of the benchmark, and is made again where something else has closed latches: drop it then.
    """

    def __init__(self, benchmark: Any) -> None:  # noqa: ANN401 - a `Benchmark`, which the state may not import from here
        self._benchmark = benchmark
        self._calm, self._raised = np.zeros((2, 0), np.int32)
        self._mark, self._near = np.zeros(0, np.uint8), np.zeros(0, np.float32)
        self._joins = np.zeros(0, np.bool_)
        self._models = np.zeros((3, 0), np.int64)
        self._tally = np.zeros((2, 0), np.int64)
        self._epochs: dict[int, int] = {}
        self._joined = np.empty(_ROWS, np.int32)
        self._out = _Output.of(_ROWS)
        self._score, self._link = np.empty(_ROWS), np.zeros((3, _ROWS), np.int32)
        self._count = np.zeros(layout.IGNORES + 1, np.int64)
        self._families: Any = self._open_families(0)
        self._filled = False
        self._cells: Codes = np.zeros((0, 0), np.uint8)
        self._bets = _NO_BETS
        self._clusters: Index = np.zeros(0, np.int64)

    def fold(self, cells: Codes, item: Index, model: Index, code: NDArray[Any], when: Index) -> Found:
        """Fold new scores of 0 and 1 in the order of the log; return what closes, and the pairs that join their families, in order."""
        rule, state = self._begin(len(cells), cells=self._narrow(cells))
        self._follow(rule, state, (item, model, code, when))
        return self._end(rule, state, model)

    def fold_values(
        self, values: Values, item: Index, model: Index, value: Index, when: Index, *, decides: bool
    ) -> Found:
        """Fold new graded scores as `fold` does those of 0 and 1; `item` is the place of each in `values`."""
        scores, self._clusters = values
        rule, state = self._begin(0, values=scores, decides=decides)
        self._follow(rule, state, (item, model, value, when))
        self._filled &= decides
        return self._end(rule, state, model)

    def fold_units(self, pair: Index, difference: Index, when: Index) -> Found:
        """Fold units of battles in the order of the log."""
        rule, state = self._begin(int(self._benchmark.n.max(initial=0)) + pair.size)
        self._follow(rule, state, (pair, np.full(pair.size, layout.UNIT_OF), difference, when))
        return self._end(rule, state, None)

    def judge(self, models: NDArray[np.bool_], *, ignored: bool) -> Found:
        """Judge the pairs of some models as they are now; `ignored`: what is missing does not count against the leader."""
        rule, state = self._begin(len(self._benchmark.item_keys))
        state.models[2], self._count[layout.IGNORES] = models, ignored
        while not kernels.judge(rule, state, self._out):
            state = self._with_room(state)
        state.models[2], self._count[layout.IGNORES] = 0, 0
        return self._end(rule, state, None)

    def _begin(
        self, items: int, cells: Codes | None = None, values: NDArray[np.int64] | None = None, *, decides: bool = True
    ) -> tuple[layout.Rule, layout.State]:
        """Return the arrays before new scores of so many items."""
        rule = self._rule(items)._replace(decides=decides)
        state = self._state(_NO_CELLS if cells is None else cells, _NO_VALUES if values is None else values)
        if not self._filled:
            state = self._fill(rule, state)
        self._count[[layout.AT, layout.OUT, layout.JOINED, layout.RAISED, layout.MET]] = 0
        return rule, state

    def _follow(self, rule: layout.Rule, state: layout.State, events: tuple[NDArray[Any], ...]) -> None:
        """Take pairs along events, with as much room as that needs."""
        # Arrays of another kind would be compiled for again.
        item, model, value, when = (np.ascontiguousarray(x, np.int64) for x in events)
        count, at = self._count, 0
        while at < item.size:
            until = self._listed(state, item, model, value, at) if rule.graded else item.size
            kernels.fold(rule, state, item, model, value, when, until, self._out)
            at = int(count[layout.AT])
            if at < until:
                state = self._with_room(state)

    def _listed(self, state: layout.State, item: Index, model: Index, value: Index, at: int) -> int:
        """List the differences of the next events, and compute what they add to the bets; return the event up to which they are listed."""
        count, table = self._count, self._bets
        begin = int(count[layout.KNOWN])
        if begin + self._models.shape[1] > table.known.size:
            table.row[:], begin = -1, 0
            count[layout.KNOWN] = 0
        until = bets.list_differences(state, item, model, value, at)
        fresh = table.known[begin : count[layout.KNOWN]]
        table.step[begin : count[layout.KNOWN]] = log_increments(fresh / SCORE_UNIT).reshape(-1, 2 * len(LAMBDAS))
        return until

    def _end(self, rule: layout.Rule, state: layout.State, model: Index | None) -> Found:
        """Return what has closed and joined; under completion, compute the peaks of the waiting pairs of some models."""
        if rule.policy == layout.COMPLETION and model is not None and rule.decides:
            touched = np.zeros(len(self._benchmark.contestants), np.bool_)
            touched[model] = True
            kernels.refresh(rule, state, touched)
        self._take_over()
        return self._closed(graded=rule.graded), self._joined[: self._count[layout.JOINED]].astype(np.int64)

    def advance(self, item: Index, model: Index, code: NDArray[Any]) -> None:
        """Move the prefixes of a committed order past new scores, where nothing decides."""
        committed = self._benchmark.committed
        assert committed is not None
        rule, state = self._rule(0), self._state(_NO_CELLS, _NO_VALUES)
        events = np.ascontiguousarray(model, np.int64), committed.rank[item], np.minimum(code, 255).astype(np.uint8)
        kernels.advance(rule, state, *events, self._out)

    def rebuild(self, cells: Codes) -> None:
        """Follow the prefixes of a committed order again, and bet again on what is not settled."""
        benchmark, committed = self._benchmark, self._benchmark.committed
        assert committed is not None
        rule, state = self._rule(len(cells)), self._state(_NO_CELLS, _NO_VALUES)
        models = len(benchmark.contestants)
        committed.column[:models, committed.rank] = np.minimum(cells[:, :models], 255).T
        state.floor[:] = nan  # nothing waits yet
        kernels.rebuild(rule, state, self._out, benchmark.can_decide)
        self._filled = False

    def _narrow(self, cells: Codes) -> Codes:
        """Return scores in bytes: a copy of its own where they take more, as all that count are 0 or 1."""
        if cells.dtype == np.uint8:
            return cells
        if self._cells.shape != cells.shape:
            self._cells = np.minimum(cells, 255).astype(np.uint8)
        return self._cells

    # --- the arrays -------------------------------------------------------------------------------------------------------------------

    def _rule(self, items: int) -> layout.Rule:
        """Return what is declared, with tables for at least so many items."""
        benchmark, spec = self._benchmark, self._benchmark.spec
        graded = benchmark.graded_pairs
        of_pairs = bets_of(differences=graded is not None)
        policy = _POLICIES[of_pairs.followed.get(spec.order.policy, spec.order.policy)]
        mixture = parse_mixture("beta(1,1)" if policy == layout.COMPLETION else spec.mixture)
        atoms = np.log(2 * np.stack([mixture.theta, 1 - mixture.theta])) if mixture.beta is None else np.zeros((2, 0))
        a, b = mixture.beta or (1.0, 1.0)
        return layout.Rule(
            policy,
            benchmark.limit,
            int(spec.items or 0) if benchmark.has_fixed_items else 0,
            spec.family.capacity or 0,
            # A model leads by at most the items that came, and then at most as many are against it.
            _table(float(a), float(b), max(_LEAST, (2 * items + 2).bit_length())),
            atoms,
            float(a),
            float(b),
            0.0 if mixture.beta is None else mixture.log_scaled_norm,
            mixture.symmetric,
            graded is not None,
            of_pairs.unit,
            0 if graded is None else graded.ROUNDING,
            True,
            policy == layout.COMPLETION and spec.known and graded is None and benchmark.has_fixed_items,
            log1p(-(spec.look or 0.0)),
            log(spec.look) if spec.look and policy == layout.COMMITTED else -inf,
        )

    def _state(self, cells: Codes, values: NDArray[np.int64]) -> layout.State:
        """Return the arrays, with room for all pairs."""
        benchmark = self._benchmark
        alone, family, settled = (benchmark.claims[claim] for claim in CLAIMS)
        self._grow(benchmark.pairs, len(benchmark.contestants))
        committed = None if benchmark.graded_pairs else benchmark.committed
        prefix = _NO_PREFIX
        if committed is not None:
            committed.grow(benchmark.item_keys, len(benchmark.contestants))
            capital = benchmark.settling.grown(benchmark.pairs)
            step = np.zeros((len(benchmark.contestants), 11))
            prefix = layout.Prefix(
                committed.rank, committed.column, committed.reached, committed.table, capital,
                step, np.zeros(5, np.int32),
            )  # fmt: skip
        registered, left, need, floor, root = self._families
        return layout.State(
            cells, self._tally, values, self._models, benchmark.n, benchmark.b, benchmark.c, self._calm, benchmark.closed, self._joins,
            benchmark.family_index, alone.side, family.side, settled.side, family.own_peak(),
            np.zeros(0) if committed is None else settled.own_peak(), self._near, self._mark, self._raised, self._joined,
            registered, left, need, floor, root, self._score, self._link, self._count, prefix, self._with_bets(),
        )  # fmt: skip

    def _with_bets(self) -> layout.Bets:
        """Return the arrays of bets on differences of any size."""
        graded = self._benchmark.graded_pairs
        if graded is None:
            return _NO_BETS
        rows = max(_DIFFERENCES, 2 * len(self._benchmark.contestants))
        if self._bets.known.size < rows:
            self._count[layout.KNOWN], slots = 0, 1 << (_SLOTS * rows - 1).bit_length()
            self._bets = self._bets._replace(
                step=np.zeros((rows, 2 * len(LAMBDAS)), np.int64), known=np.zeros(rows, np.int64),
                key=np.zeros(slots, np.int64), row=np.full(slots, -1, np.int32),
            )  # fmt: skip
        worst, best = _extremes()
        completion = self._benchmark.spec.order.policy == "completion"
        return self._bets._replace(
            capital=graded.capital.reshape(-1, 2 * len(LAMBDAS)),
            lead=graded.lead,
            **({"worst": worst, "cluster": self._clusters} | graded.bets()),
            rise=best - worst[0] if completion else best,
            missing=np.zeros(len(LAMBDAS), np.int64),
        )

    def _grow(self, pairs: int, models: int) -> None:
        """Make room for pairs and models."""
        benchmark = self._benchmark
        if self._calm.size < pairs:
            size = pairs + int(pairs * _SPARE)
            self._calm, self._raised = (_longer(x, size) for x in (self._calm, self._raised))
            self._mark, self._near = _longer(self._mark, size), _longer(self._near, size)
        if self._models.shape[1] < models:
            for contestant in benchmark.contestants:
                self._epochs.setdefault(contestant.epoch, len(self._epochs))
            epochs = [contestant.epoch for contestant in benchmark.contestants]
            rows = epochs, [self._epochs[epoch] for epoch in epochs], [0] * models
            self._models = np.array(rows, np.int64)
            self._tally = np.pad(self._tally, ((0, 0), (0, models - self._tally.shape[1])))
            if benchmark.spec.family.models is not None or benchmark.spec.family.pairs is not None:
                self._joins = benchmark.in_family(np.arange(pairs))
            fresh = self._open_families(2 * len(self._epochs) - self._families[0].size)
            self._families = [np.concatenate(x, axis=-1) for x in zip(self._families, fresh, strict=True)]

    def _family_ids(self) -> list[int]:
        """Return the number of each family in the state."""
        return [2 * epoch + mixed for epoch in self._epochs for mixed in (0, 1)]

    def _open_families(self, families: int) -> list[Any]:
        """Return the arrays of families that are wholly open; see `layout.State`."""
        whole = np.full((3, families), layout.WHOLE, np.int64)
        need = np.log(whole.astype(np.float64))
        return [np.zeros(families, np.int64), whole, need, need - layout.MARGIN, np.zeros((3, families), np.int32)]

    def _fill(self, rule: layout.Rule, state: layout.State) -> layout.State:
        """Compute what follows from the state of the benchmark."""
        self._calm[:], self._near[:] = 0, 0
        if rule.known:  # without the scores that come
            codes = self._benchmark.item_codes()
            self._tally[:] = (codes == ZERO).sum(axis=0), (codes == ONE).sum(axis=0)
        for place, family in enumerate(self._family_ids()):
            state.registered[place] = self._benchmark.registered[family]
        while not kernels.fill(rule, state):
            state = self._with_room(state)
        self._filled = True
        return state

    def _with_room(self, state: layout.State) -> layout.State:
        """Make room where the loop has stopped for it."""
        count, models = self._count, self._models.shape[1]
        if (short := count[layout.OUT] + 4 * models + 4 - self._out.whole.shape[0]) > 0:
            more = _Output.of(self._out.whole.shape[0] + int(short))
            self._out = _Output(*(np.concatenate(x) for x in zip(self._out, more, strict=True)))
        if (short := count[layout.JOINED] + models - self._joined.size) > 0:
            self._joined = np.concatenate([self._joined, np.empty(self._joined.size + int(short), np.int32)])
        if count[layout.WANTED] >= self._score.size:
            size = int(count[layout.WANTED]) * 5 // 4 + _ROWS
            self._score = _longer(self._score, size)
            self._link = np.concatenate([self._link, np.zeros((3, size - self._link.shape[1]), np.int32)], axis=1)
        return state._replace(joined=self._joined, score=self._score, link=self._link)

    def _take_over(self) -> None:
        """Let the benchmark have what others read of it."""
        benchmark, count = self._benchmark, self._count
        benchmark.met += int(count[layout.MET])
        registered, left = self._families[0].tolist(), self._families[1].tolist()
        for place, family in enumerate(self._family_ids()):
            if registered[place]:
                benchmark.registered[family] = registered[place]
            for claim in (layout.FAMILY, layout.SETTLED):
                benchmark.claims[CLAIMS[claim]].leave_open(family, left[claim][place])
        raised = self._raised[: count[layout.RAISED]]
        self._mark[raised] = 0
        benchmark.claims["anytime_family"].note_peaks(raised.astype(np.int64))

    def _closed(self, *, graded: bool) -> Closed:
        """Return what has closed, in the order of the log, and by pair within one event."""
        size = self._count[layout.OUT]
        whole, real = self._out.whole[:size], self._out.real[:size]
        order = np.lexsort((whole[:, 1], whole[:, 0]))
        when, pair, claim, kind, side, n, b, c, missing = whole[order].T
        evidence, threshold = real[order].T
        lead = b - c
        if graded:
            b = c = np.zeros_like(b)
        n, b, c, missing = (x.astype(np.int32) for x in (n, b, c, missing))
        return Closed(
            claim.astype(np.int8), kind.astype(np.int8), pair, when, n, b, c, lead, missing, evidence, side, threshold
        )


_NO_CELLS: Final = np.zeros((0, 0), np.uint8)
_NO_VALUES: Final = np.zeros((0, 0), np.int64)
_NO_BETS: Final = layout.Bets(
    capital=np.zeros((0, 0), np.int64), lead=np.zeros(0, np.int64), shared=np.zeros((0, 0), np.int32),
    cluster=np.zeros(0, np.int64), share=np.zeros(0), size=np.zeros(0, np.int64), most=np.zeros(0, np.int64),
    worst=np.zeros((0, 0), np.int64), rise=np.zeros(0, np.int64), missing=np.zeros(0, np.int64),
    step=np.zeros((0, 0), np.int64), known=np.zeros(0, np.int64), key=np.zeros(0, np.int64), row=np.zeros(0, np.int32),
)  # fmt: skip
_NO_PREFIX: Final = layout.Prefix(
    np.zeros(0, np.int64), np.zeros((0, 0), np.uint8), np.zeros(0, np.int64), np.zeros((0, 6), np.int32),
    np.zeros((0, 2, 7)), np.zeros((0, 11)), np.zeros(5, np.int32),
)  # fmt: skip


def _longer(array: NDArray[Any], size: int) -> NDArray[Any]:
    """Return an array of this size that starts with the given one, and zeros after it."""
    result = np.zeros(size, array.dtype)
    result[: array.size] = array
    return result


@lru_cache(maxsize=4)
def _table(a: float, b: float, bits: int) -> NDArray[np.float64]:
    """Return tables by k for 2^bits counts, where (x)_k = x (x + 1) ... (x + k - 1).

    ln (a)_k, ln (b)_k, ln (a + b)_k - k ln 2, and ln k! - ((k + 1/2) ln k - k + ln(2 pi) / 2), by its series from 16 on.
    """
    k = np.arange(1 << bits, dtype=np.longdouble)
    rising = np.zeros((4, k.size), np.longdouble)
    for row, x in zip(rising[:3], (a, b, a + b), strict=True):
        np.cumsum(np.log(x + k[:-1]), out=row[1:])
    rising[2] -= k * np.log(np.longdouble(2))
    small, large = k[1:16], k[16:]
    rising[3, 1:16] = np.cumsum(np.log(small)) - (small + 0.5) * np.log(small) + small - np.log(layout.TAU) / 2
    terms = (1 / 12, -1 / 360, 1 / 1260, -1 / 1680, 1 / 1188, -691 / 360360)
    rising[3, 16:] = sum(term / large ** (2 * order + 1) for order, term in enumerate(terms))
    return rising.astype(np.float64)


@cache
def _extremes() -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return what an item adds to the bets on a model at its worst, shape (1, L), and at its best."""
    return log_increments(-1.0)[:1].copy(), log_increments(1.0)[0].copy()
