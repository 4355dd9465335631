"""Restore a benchmark from the stored state."""

import numpy as np

from monitor.engine.state.arrival import Arrival
from monitor.engine.state.benchmark import Benchmark
from monitor.engine.state.changes import Conflicts
from monitor.engine.state.pairs.counts import sums_of_items
from monitor.engine.state.stored import StoredBenchmark
from schemas.records.declaration import Spec
from schemas.records.scores import ONE
from schemas.results.changes import Claim, VerdictChange
from stats.evidence.settled import TIE
from stats.numerics.pairs import all_pairs, pair_members


def restore_benchmark(stored: StoredBenchmark) -> Benchmark:
    """Return the state of a stored benchmark; without a snapshot of the same offset, pair sums are computed from the rows."""
    benchmark = Benchmark(stored.name, Spec.model_validate_json(stored.spec) if stored.spec else None)
    benchmark.off = stored.off
    if benchmark.sentinel is not None:
        benchmark.sentinel.restore(stored.run_lines, stored.run_scores, stored.run_state)
    _restore_records(benchmark, stored)
    benchmark.counters |= stored.counters
    for index in range(len(benchmark.contestants)):
        benchmark.supersede(index)
    benchmark.register(stored.registered.astype(np.int64))
    benchmark.adopt(stored.changes)
    benchmark.arrival = Arrival(stored.arrival, stored.finding)
    benchmark.conflicts = Conflicts(stored.listed, stored.again)
    benchmark.ended = set(stored.ended)
    benchmark.gaps = stored.gaps
    benchmark.exceeded = benchmark.too_many_items
    benchmark.unknown_units = stored.unknown_units
    benchmark.seed = stored.seed
    benchmark.claims["anytime_family"].load_peaks(stored.peaks)
    _restore_latches(benchmark)
    if stored.undeclared:
        benchmark.hold_repeats(stored.undeclared)
        benchmark.mixed = stored.mixed
        return benchmark
    if benchmark.holds_battles:
        benchmark.add_units(benchmark.betting_units())
        return benchmark
    _restore_items(benchmark)
    sums = sums_of_items(benchmark.item_codes(), benchmark.item_values) if stored.pairs is None else stored.pairs.arrays
    for name in ("n", "b", "c", "scored", "skipped", "total"):
        getattr(benchmark, name)[: sums[name].size] = sums[name]
    benchmark.met = int(np.count_nonzero(benchmark.n))
    if benchmark.committed is not None and not benchmark.graded:
        from monitor.engine.loop.board import Loop  # noqa: PLC0415 - what declares no order needs no compiled code

        benchmark.loop = Loop(benchmark)
        benchmark.loop.rebuild(benchmark.item_codes())
    return benchmark


def _restore_records(benchmark: Benchmark, stored: StoredBenchmark) -> None:
    """Add the rows and contestants, and the scores or votes."""
    if len(stored.votes):
        benchmark.begin_battles(stored.votes, stored.judges)
        benchmark.add_items({row.item: None for row in stored.rows})
    else:
        for row in stored.rows:
            benchmark.add_row(*row)
    for contestant in stored.contestants:
        benchmark.add_contestant(*contestant)
    for score in stored.values[2:]:
        benchmark.add_value(score)
    benchmark.grow()
    for k, column in enumerate(stored.columns):
        benchmark.scores[: column.size, k] = column[: len(benchmark.scores)]  # prompts have none


def _restore_latches(benchmark: Benchmark) -> None:
    latched: dict[Claim, tuple[list[int], list[int]]] = {claim: ([], []) for claim in benchmark.claims}
    for pair, claim, field in benchmark.decisions():
        located = benchmark.changes.locate(field)
        if located is None:
            side = _side(benchmark, pair, benchmark.changes.verdict(field))
        else:
            columns, place = located
            side = int(columns.records["side"][place])
        has_reversed = benchmark.change_field(pair, claim, "reversed") in benchmark.changes
        latched[claim][0].append(pair)
        latched[claim][1].append((1 + has_reversed) * side)
    for claim, (pairs, sides) in latched.items():
        benchmark.latch(claim, np.array(pairs, np.int64), np.array(sides, np.int8))


def _side(benchmark: Benchmark, pair: int, change: VerdictChange) -> int:
    """Return for which contestant of a pair a change is that an earlier version has stored whole."""
    if change.after == "tie":
        return TIE
    i, _ = pair_members(np.array([pair]))
    first = benchmark.contestants[int(i[0])]
    better = (change.model_a, change.epoch_a) if change.after == "a" else (change.model_b, change.epoch_b)
    return 1 if (first.model, first.epoch) == better else -1


def _restore_items(benchmark: Benchmark) -> None:
    """Compute the items of several repeats, and the capital of graded pairs, from the rows."""
    benchmark.by_item.rebuild(benchmark.matrix(), benchmark.table.by_code, benchmark.ended_flags())
    benchmark.mixed = (
        not benchmark.graded and benchmark.item_values.size > 4 and bool((benchmark.item_codes() > ONE).any())
    )
    if benchmark.graded_pairs is not None and benchmark.pairs:
        pairs = all_pairs(len(benchmark.contestants))
        benchmark.graded_pairs.rebuild(benchmark.item_codes(), benchmark.item_values, *pairs)
