"""Fold: decode, check and fold lines in memory, in chunks, as a worker does; and the size of the state.

Models arrive one after another, each with all items. Without an order policy pairs are counted and there are no verdicts. Under the
other policies every pair is tested for its latches, and each verdict is a change that is written out. Generated models differ much, so
most pairs get two. Speeds are per second of processor time. A pair update is a score that meets the score of another model on the same
item. Bytes are the bytes of the arrays of the state.
"""

import statistics
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from benchmarks.events import CLUSTERS, made_lines
from benchmarks.folding import Folded, declaration, fold
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
    """Fold generated events at many numbers of models, and at several sizes of chunk."""
    table = Table(
        f"Fold, chunks of {CHUNK:,} events",
        ["models", "items", "order", "verdicts", "events/s", "pair updates/s", "B a pair", "B an (item, model)"],
    )
    for policy, models in CASES:
        items = max(20, options.size(EVENTS, 10_000) // models)
        folds = folded(models, items, CHUNK, options.runs, policy)
        (benchmark,) = folds[0].partition.benchmarks.values()
        pairs = models * (models - 1) // 2
        table.rows.append(
            (
                models,
                items,
                policy,
                len(benchmark.changes),
                round(statistics.median(each.events / each.seconds for each in folds)),
                round(statistics.median(each.pair_updates / each.seconds for each in folds)),
                round(pair_bytes(benchmark) / pairs, 2),
                round(benchmark.scores.nbytes / models / items, 2),
            )
        )
    yield table
    sizes = Table("Chunk size, no order policy", ["models", "chunk", "events/s", "pair updates/s"])
    for models in (29, 1_000):
        items = max(20, options.size(EVENTS, 10_000) // models)
        for chunk in (200, 2_000, 6_000):
            folds = folded(models, items, chunk, options.runs)
            sizes.rows.append(
                (
                    models,
                    chunk,
                    round(statistics.median(each.events / each.seconds for each in folds)),
                    round(statistics.median(each.pair_updates / each.seconds for each in folds)),
                )
            )
    yield sizes


def folded(models: int, items: int, chunk: int, runs: int, policy: str = "none") -> list[Folded]:
    """Fold the same events several times."""
    made = made_lines(models, items, graded="graded" in policy)
    lines = [declaration("made", **POLICIES[policy](items)), *made]
    return [fold(lines, chunk) for _ in range(runs)]


def pair_bytes(benchmark: Benchmark) -> int:
    """Return the bytes of the arrays that hold one value a pair, spare capacity included."""

    def arrays(value: Any) -> Iterator[np.ndarray]:  # noqa: ANN401
        if isinstance(value, np.ndarray):
            yield value
        elif isinstance(value, dict):
            for each in value.values():
                yield from arrays(each)

    return sum(each.nbytes for each in arrays(vars(benchmark)) if each.shape == benchmark.n.shape)
