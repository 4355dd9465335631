"""Fold: decode, check and fold lines in memory, in chunks, as a worker does; and the size of the state.

Models arrive one after another, each with all items. Without an order policy pairs are counted and there are no verdicts. Under the
other policies every pair is tested for its latches, and each verdict is a change that is written out. Generated models differ much, so
most pairs get two. Speeds are per second of processor time. A pair update is a score that meets the score of another model on the same
item. Bytes are the bytes of the arrays of the state.
"""

import statistics
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from benchmarks.events import CLUSTERS, made_lines
from benchmarks.folding import declaration, fold
from benchmarks.harness import Options, Table
from monitor.engine.state.benchmark import Benchmark

EVENTS = 300_000
CHUNK = 6_000
"""Events that a worker folds at a time, where there are as many."""


def _weights(items: int) -> dict[str, Any]:
    """Return equal weights for the categories of generated items."""
    sizes = np.bincount(np.arange(items) % CLUSTERS, minlength=CLUSTERS).tolist()
    return {"weights": "equal-clusters", "clusters": {f"category {k}": size for k, size in enumerate(sizes)}}


POLICIES: dict[str, Callable[[int], dict[str, Any]]] = {
    "none": lambda _: {},
    "trusted": lambda _: {"order": "trusted"},
    "completion": lambda items: {"items": items},
    "committed": lambda items: {
        "order": {"policy": "committed", "seed": "made"},
        "item_ids": [str(item) for item in range(items)],
    },
    "trusted, graded": lambda _: {"order": "trusted", "scores": "graded"},
    "trusted, weighted": lambda items: {"order": "trusted", **_weights(items)},
    "completion, weighted": _weights,
}
"""The declaration of a benchmark with this many items."""

CASES = [
    *(("none", models) for models in (10, 29, 100, 300, 1_000, 2_000)),
    *(("trusted", models) for models in (10, 29, 100, 300, 1_000)),
    *((policy, models) for policy in POLICIES if policy not in {"none", "trusted"} for models in (29, 100)),
]


def measure(options: Options) -> Iterator[Table]:
    """Fold generated events at many numbers of models, and at several sizes of chunk.

    Each run folds all of them in turn: where the machine becomes slower for some time, all become slower.
    """
    table = Table(
        f"Fold, chunks of {CHUNK:,} events",
        ["models", "items", "order", "verdicts", "events/s", "pair updates/s", "B a pair", "B an (item, model)"],
    )
    events = options.size(EVENTS, 10_000)
    cases = [Case(policy, models, max(20, events // models), CHUNK) for policy, models in CASES]
    for case, folds in in_turn(cases, options.runs).items():
        table.rows.append((case.models, case.items, case.policy, folds[0].changes, *speeds(folds), *folds[0].sizes))
    yield table
    sizes = Table("Chunk size, no order policy", ["models", "chunk", "events/s", "pair updates/s"])
    chunks = (200, 2_000, 6_000)
    cases = [Case("none", models, max(20, events // models), chunk) for models in (29, 1_000) for chunk in chunks]
    for case, folds in in_turn(cases, options.runs).items():
        sizes.rows.append((case.models, case.chunk, *speeds(folds)))
    yield sizes


class Case(NamedTuple):
    """What is folded."""

    policy: str
    models: int
    items: int
    chunk: int


class One(NamedTuple):
    """One fold: its speeds a second, its verdict changes, and bytes a pair and a cell."""

    events: float
    pair_updates: float
    changes: int
    sizes: tuple[float, float]


def in_turn(cases: Sequence[Case], runs: int) -> dict[Case, list[One]]:
    """Fold all cases, and all of them again in each run."""
    done: dict[Case, list[One]] = {case: [] for case in cases}
    for _ in range(runs):
        for case in cases:
            done[case].append(folded(case))
    return done


def folded(case: Case) -> One:
    """Fold a case."""
    made = made_lines(case.models, case.items, graded="graded" in case.policy)
    fold_of = fold([declaration("made", **POLICIES[case.policy](case.items)), *made], case.chunk)
    (benchmark,) = fold_of.partition.benchmarks.values()
    pairs = case.models * (case.models - 1) // 2
    sizes = pair_bytes(benchmark) / pairs, benchmark.scores.nbytes / case.models / case.items
    return One(
        fold_of.events / fold_of.seconds,
        fold_of.pair_updates / fold_of.seconds,
        len(benchmark.changes),
        (round(sizes[0], 2), round(sizes[1], 2)),
    )


def speeds(folds: Sequence[One]) -> tuple[int, int]:
    """Return the medians of both speeds."""
    return round(statistics.median(each.events for each in folds)), round(
        statistics.median(each.pair_updates for each in folds)
    )


def pair_bytes(benchmark: Benchmark) -> int:
    """Return the bytes of the arrays that hold one value a pair, spare capacity included."""

    def arrays(value: Any) -> Iterator[np.ndarray]:  # noqa: ANN401
        if isinstance(value, np.ndarray):
            yield value
        elif isinstance(value, dict):
            for each in value.values():
                yield from arrays(each)

    return sum(each.nbytes for each in arrays(vars(benchmark)) if each.shape == benchmark.n.shape)
