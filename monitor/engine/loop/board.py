"""The arrays that the loops over events go through, for one benchmark of 0/1 scores under an order policy."""

from functools import lru_cache
from math import nan
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from monitor.engine.latch.base import Closed, Trajectory
from monitor.engine.loop import kernels
from monitor.engine.state.codes import Codes
from schemas.results.changes import CLAIMS
from stats.evidence.mixtures import parse_mixture
from stats.numerics.pairs import Index

_POLICIES: Final = {"trusted": kernels.TRUSTED, "completion": kernels.COMPLETION, "committed": kernels.COMMITTED}
_ROWS: Final = 4_096
_SPARE: Final = 1 / 16
_LEAST: Final = 10
"""Power of two of the counts in the smallest table."""


class _Output(NamedTuple):
    """Rows of changes; see `kernels.fold`."""

    whole: NDArray[np.int64]
    real: NDArray[np.float64]

    @classmethod
    def of(cls, rows: int) -> "_Output":
        """Return so many rows."""
        return cls(np.empty((rows, 9), np.int64), np.empty((rows, 2)))


class Loop:
    """Folds new scores into the pairs of a benchmark.

    What it holds follows from the state of the benchmark, and is made again where something else has closed latches: drop it then.
    """

    def __init__(self, benchmark: Any) -> None:  # noqa: ANN401 - a `Benchmark`, which the state may not import from here
        self._benchmark = benchmark
        self._calm, self._raised = np.zeros((2, 0), np.int32)
        self._mark, self._near = np.zeros(0, np.uint8), np.zeros(0, np.float32)
        self._joins = np.zeros(0, np.bool_)
        self._models = np.zeros((2, 0), np.int64)
        self._epochs: dict[int, int] = {}
        self._joined = np.empty(_ROWS, np.int32)
        self._out = _Output.of(_ROWS)
        self._score, self._link = np.empty(_ROWS), np.zeros((3, _ROWS), np.int32)
        self._count = np.zeros(kernels.FIRST + 1, np.int64)
        self._families: Any = self._open_families(0)
        self._filled = False
        self._cells: Codes = np.zeros((0, 0), np.uint8)

    def fold(self, cells: Codes, item: Index, model: Index, code: NDArray[Any], when: Index) -> tuple[Closed, Index]:
        """Fold new scores in the order of the log; return what closes, and the pairs that join their families, in order."""
        benchmark, count = self._benchmark, self._count
        rule, state = self._rule(len(cells)), self._state(self._narrow(cells))
        if not self._filled:
            state = self._fill(rule, state)
        count[[kernels.AT, kernels.OUT, kernels.JOINED, kernels.RAISED, kernels.MET]] = 0
        # Arrays of another kind would be compiled for again.
        items, models, times = (np.ascontiguousarray(x, np.int64) for x in (item, model, when))
        events = items, models, code.astype(np.uint8), times
        while True:
            kernels.fold(rule, state, *events, self._out)
            if count[kernels.AT] == item.size:
                break
            state = self._with_room(state)
        if rule.policy == kernels.COMPLETION:
            touched = np.zeros(len(benchmark.contestants), np.bool_)
            touched[model] = True
            kernels.refresh(rule, state, touched)
        self._take_over()
        return self._closed(), self._joined[: count[kernels.JOINED]].astype(np.int64)

    def advance(self, item: Index, model: Index, code: NDArray[Any]) -> None:
        """Move the prefixes of a committed order past new scores, where nothing decides."""
        committed = self._benchmark.committed
        assert committed is not None
        rule, state = self._rule(0), self._state(_NO_CELLS)
        events = np.ascontiguousarray(model, np.int64), committed.rank[item], np.minimum(code, 255).astype(np.uint8)
        kernels.advance(rule, state, *events, self._out)

    def rebuild(self, cells: Codes) -> None:
        """Follow the prefixes of a committed order again, and bet again on what is not settled."""
        benchmark, committed = self._benchmark, self._benchmark.committed
        assert committed is not None
        rule, state = self._rule(len(cells)), self._state(_NO_CELLS)
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

    def _rule(self, items: int) -> kernels.Rule:
        """Return what is declared, with tables for at least so many items."""
        benchmark, spec = self._benchmark, self._benchmark.spec
        policy = _POLICIES[spec.order.policy]
        mixture = parse_mixture("beta(1,1)" if policy == kernels.COMPLETION else spec.mixture)
        atoms = np.log(2 * np.stack([mixture.theta, 1 - mixture.theta])) if mixture.beta is None else np.zeros((2, 0))
        a, b = mixture.beta or (1.0, 1.0)
        return kernels.Rule(
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
        )

    def _state(self, cells: Codes) -> kernels.State:
        """Return the arrays, with room for all pairs."""
        benchmark = self._benchmark
        alone, family, settled = (benchmark.claims[claim] for claim in CLAIMS)
        self._grow(benchmark.pairs, len(benchmark.contestants))
        committed = benchmark.committed
        prefix = _NO_PREFIX
        if committed is not None:
            committed.grow(benchmark.item_keys, len(benchmark.contestants))
            capital = benchmark.settling.grown(benchmark.pairs)
            step = np.zeros((len(benchmark.contestants), 11))
            prefix = kernels.Prefix(
                committed.rank, committed.column, committed.reached, committed.table, capital,
                step, np.zeros(5, np.int32),
            )  # fmt: skip
        registered, left, need, floor, root = self._families
        return kernels.State(
            cells, self._models, benchmark.n, benchmark.b, benchmark.c, self._calm, benchmark.closed, self._joins,
            benchmark.family_index, alone.side, family.side, settled.side, family.own_peak(),
            np.zeros(0) if committed is None else settled.own_peak(), self._near, self._mark, self._raised, self._joined,
            registered, left, need, floor, root, self._score, self._link, self._count, prefix,
        )  # fmt: skip

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
            self._models = np.array([epochs, [self._epochs[epoch] for epoch in epochs]], np.int64)
            if benchmark.spec.family.models is not None or benchmark.spec.family.pairs is not None:
                self._joins = benchmark.in_family(np.arange(pairs))
            fresh = self._open_families(2 * len(self._epochs) - self._families[0].size)
            self._families = [np.concatenate(x, axis=-1) for x in zip(self._families, fresh, strict=True)]

    def _family_ids(self) -> list[int]:
        """Return the number of each family in the state."""
        return [2 * epoch + mixed for epoch in self._epochs for mixed in (0, 1)]

    def _open_families(self, families: int) -> list[Any]:
        """Return the arrays of families that are wholly open; see `kernels.State`."""
        whole = np.full((3, families), kernels.WHOLE, np.int64)
        need = np.log(whole.astype(np.float64))
        return [np.zeros(families, np.int64), whole, need, need - kernels.MARGIN, np.zeros((3, families), np.int32)]

    def _fill(self, rule: kernels.Rule, state: kernels.State) -> kernels.State:
        """Compute what follows from the state of the benchmark."""
        self._calm[:], self._near[:] = 0, 0
        for place, family in enumerate(self._family_ids()):
            state.registered[place] = self._benchmark.registered[family]
        while not kernels.fill(rule, state):
            state = self._with_room(state)
        self._filled = True
        return state

    def _with_room(self, state: kernels.State) -> kernels.State:
        """Make room where the loop has stopped for it."""
        count, models = self._count, self._models.shape[1]
        if (short := count[kernels.OUT] + 4 * models + 4 - self._out.whole.shape[0]) > 0:
            more = _Output.of(self._out.whole.shape[0] + int(short))
            self._out = _Output(*(np.concatenate(x) for x in zip(self._out, more, strict=True)))
        if (short := count[kernels.JOINED] + models - self._joined.size) > 0:
            self._joined = np.concatenate([self._joined, np.empty(self._joined.size + int(short), np.int32)])
        if count[kernels.WANTED] >= self._score.size:
            size = int(count[kernels.WANTED]) * 5 // 4 + _ROWS
            self._score = _longer(self._score, size)
            self._link = np.concatenate([self._link, np.zeros((3, size - self._link.shape[1]), np.int32)], axis=1)
        return state._replace(joined=self._joined, score=self._score, link=self._link)

    def _take_over(self) -> None:
        """Let the benchmark have what others read of it."""
        benchmark, count = self._benchmark, self._count
        benchmark.met += int(count[kernels.MET])
        registered, left = self._families[0].tolist(), self._families[1].tolist()
        for place, family in enumerate(self._family_ids()):
            if registered[place]:
                benchmark.registered[family] = registered[place]
            for claim in (kernels.FAMILY, kernels.SETTLED):
                benchmark.claims[CLAIMS[claim]].leave_open(family, left[claim][place])
        raised = self._raised[: count[kernels.RAISED]]
        self._mark[raised] = 0
        benchmark.claims["anytime_family"].note_peaks(raised.astype(np.int64))

    def _closed(self) -> Closed:
        """Return what has closed, in the order of the log, and by pair within one event."""
        size = self._count[kernels.OUT]
        whole, real = self._out.whole[:size], self._out.real[:size]
        order = np.lexsort((whole[:, 1], whole[:, 0]))
        when, pair, claim, kind, side, n, b, c, missing = whole[order].T
        evidence, threshold = real[order].T
        n, b, c, lead, missing = (x.astype(np.int32) for x in (n, b, c, b - c, missing))
        steps = Trajectory(pair, when, n, b, c, lead, missing, evidence, side, np.zeros_like(pair))
        return Closed(claim.astype(np.int8), kind.astype(np.int8), steps, threshold)


_NO_CELLS: Final = np.zeros((0, 0), np.uint8)
_NO_PREFIX: Final = kernels.Prefix(
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
    """Return ln (a)_k, ln (b)_k and ln (a + b)_k - k ln 2 by k, for 2^bits counts; (x)_k = x (x + 1) ... (x + k - 1)."""
    k = np.arange(1 << bits, dtype=np.longdouble)
    rising = np.zeros((3, k.size), np.longdouble)
    for row, x in zip(rising, (a, b, a + b), strict=True):
        np.cumsum(np.log(x + k[:-1]), out=row[1:])
    rising[2] -= k * np.log(np.longdouble(2))
    return rising.astype(np.float64)
