"""Let pairs follow what comes, and announce what closes."""

from typing import TYPE_CHECKING, cast

import numpy as np

from monitor.engine.chunk import EventBatch
from monitor.engine.latch.base import Closed
from monitor.engine.latch.changes import announce
from monitor.engine.state.benchmark import Benchmark
from monitor.engine.state.changes import BenchmarkDelta
from schemas.results.changes import CLAIMS
from stats.numerics.pairs import Index

if TYPE_CHECKING:
    from monitor.engine.loop.board import Loop


def loop_of(benchmark: Benchmark) -> "Loop":
    """Return the loop that follows the pairs of a benchmark."""
    if benchmark.loop is None:
        from monitor.engine.loop.board import Loop  # noqa: PLC0415 - what declares no order needs no compiled code

        benchmark.loop = Loop(benchmark)
    return cast("Loop", benchmark.loop)


def announce_closed(
    benchmark: Benchmark,
    batch: EventBatch,
    found: tuple[Closed, Index],
    delta: BenchmarkDelta,
    *,
    ignored: bool = False,
) -> None:
    """Record what a loop has found: the latches that closed, and the pairs that joined their families."""
    closed, joined = found
    if joined.size:
        delta.registered.append(joined.astype(np.uint32))
    settled = closed.claim == CLAIMS.index("settled")
    for some in (np.flatnonzero(~settled), np.flatnonzero(settled)):
        announce(benchmark, batch, closed.rows(some), delta, ignored=ignored)
