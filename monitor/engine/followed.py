"""The pairs of a benchmark that are followed one by one, with what their series need; and counts over all pairs."""

from dataclasses import dataclass
from math import log
from typing import Final

import numpy as np
from numpy.typing import NDArray

from monitor.engine.benchmark import PROCEDURES, Benchmark
from monitor.engine.pair_table import Floats, PairTable
from monitor.engine.pairs import Index
from monitor.engine.report import view_of
from schemas.report import BenchmarkReport

PAIR_CAP: Final = 300
"""Most pairs of a benchmark with series of their own."""


@dataclass(frozen=True)
class Followed:
    """A benchmark as the metrics tell of it.

    Attributes
    ----------
    report : BenchmarkReport
        Its pairs are those that are followed.
    pair : array of int64, shape (followed,)
        Index of each in the state.
    omitted : int
        Pairs that should be followed, and are not for the cap.
    pairs : int
        Pairs of current models.
    decided : dict of str to int
        Pairs with a latched decision, by procedure.
    exhausted : int
        Pairs that share every item and are not decided family-wise.
    beyond_capacity : int
        Pairs that came when the declared family was full.
    single_threshold : float
        ln 1/alpha.
    log_threshold : array, shape (followed,)
        ln 1/alpha_j; infinite for a pair without a place in the family.
    resolution : dict of str to array, shape (followed,)
        q by procedure; not finite where it is not defined.
    """

    report: BenchmarkReport
    pair: Index
    omitted: int
    pairs: int
    decided: dict[str, int]
    exhausted: int
    beyond_capacity: int
    single_threshold: float
    log_threshold: Floats
    resolution: dict[str, Floats]


def follow(benchmark: Benchmark, cap: int = PAIR_CAP) -> Followed:
    """Choose the pairs to follow, and compute what is told of them and of all pairs."""
    omitted = 0

    def select(table: PairTable) -> Index:
        nonlocal omitted
        worth = _worth_following(table)
        omitted = max(0, worth.size - cap)
        return worth[:cap]

    view = view_of(benchmark, pairs=select)
    table, listed = view.table, view.listed
    latched = {name: np.count_nonzero(benchmark.latched[name][table.pair]) for name in PROCEDURES}
    open_family = benchmark.latched["anytime_family"][table.pair] == 0
    missing = table.missing
    capacity = benchmark.spec.family.capacity
    return Followed(
        report=view.report,
        pair=table.pair[listed],
        omitted=omitted,
        pairs=int(table.pair.size),
        decided={name: int(count) for name, count in latched.items()},
        exhausted=0 if missing is None else int(np.count_nonzero(open_family & (missing == 0) & (table.n > 0))),
        beyond_capacity=0 if capacity is None else max(0, benchmark.registered - capacity),
        single_threshold=-log(benchmark.spec.alpha),
        log_threshold=table.log_family_threshold[listed],
        resolution=_resolution(table, listed),
    )


def _worth_following(table: PairTable) -> Index:
    """Return adjacent pairs, then declared ones, then latched ones; by rank within each."""
    benchmark = table.benchmark
    declared = table.in_family if benchmark.spec.family.pairs is not None else np.zeros(table.pair.size, bool)
    latched = np.zeros(table.pair.size, bool)
    for name in PROCEDURES:
        latched |= benchmark.latched[name][table.pair] != 0
    order = np.select([table.adjacent, declared, latched], [0, 1, 2], 3)
    worth = np.flatnonzero(order < 3)
    return np.asarray(worth[np.argsort(order[worth], kind="stable")], np.int64)


def _resolution(table: PairTable, listed: NDArray[np.int64]) -> dict[str, Floats]:
    spec = table.benchmark.spec
    needed = {"fixed_n": table.n_star, "bonferroni": table.required_n(spec.alpha / table.family_size)}
    if table.benchmark.binary:
        needed["anytime"] = table.anytime_n_star
    with np.errstate(divide="ignore", invalid="ignore"):
        return {name: table.n[listed] / n_star[listed] for name, n_star in needed.items()}
