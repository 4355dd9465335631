"""Streams of equal models, everything that may happen to them on their way, and what the engine and a naive monitor make of them.

Scores are arrays (items, models, repeats); -1 is a skipped score. A stream is the arrays item, model, repeat and score of its
events in the order of the log.
"""

import os

import msgspec
import numpy as np

from monitor.engine.chunk import Chunk
from monitor.engine.partition import Partition
from monitor.engine.state.pairs import all_pairs
from stats import exact_p

FULL = os.environ.get("RANKWATCH_SLOW") == "1"
ALPHA, ITEMS, MODELS, CLUSTERS = 0.05, 360, 10, 9
BLOCK = ITEMS // CLUSTERS
NAMES = [f"equal-{k}" for k in range(MODELS)]
LISTED = list(map(str, range(ITEMS)))
FAMILIES = {"spending": {"policy": "spending"}, "capacity": {"policy": "capacity", "size": 45}}


def assert_at_most(errors, level):
    """An error rate is at most the level, but for two standard errors."""
    rate = np.mean(errors)
    assert rate <= level + 2 * np.sqrt(level * (1 - level) / len(errors)), f"error rate {rate:.4f} at nominal {level}"


# --- scores of equal models ---------------------------------------------------------------------------------------------------------------


def exchangeable(rng):
    """Equal models that find the same items hard, items in random order."""
    easy = rng.beta(1.3, 0.7, (ITEMS, 1, 1))
    return (rng.random((ITEMS, MODELS, 1)) < easy).astype(int)


def _tilted(rng):
    """Chances of models of equal mean over the benchmark, each better in some clusters and worse in others; in blocks of a cluster."""
    tilt = np.linspace(-0.3, 0.3, CLUSTERS)
    by_cluster = np.stack([rng.permutation(tilt) for _ in range(MODELS)], axis=1)
    return 0.55 + np.repeat(by_cluster, BLOCK, axis=0)[:, :, None]


def clustered(rng):
    """Clusters with fixed effects that add up to 0 for every model; items in blocks of a cluster."""
    chance = _tilted(rng)
    return (rng.random(chance.shape) < chance).astype(int)


def random_effects(rng):
    """Clusters with random effects of mean 0: equal over all clusters there could be, not over these; items in blocks of a cluster."""
    effect = rng.normal(0, 0.1, (CLUSTERS, MODELS))
    chance = 0.55 + np.repeat(effect, BLOCK, axis=0)[:, :, None]
    return (rng.random(chance.shape) < chance).astype(int)


def graded_exchangeable(rng):
    """Scores in tenths, as `exchangeable`."""
    easy = rng.beta(1.3, 0.7, (ITEMS, 1, 1))
    return rng.binomial(10, np.broadcast_to(easy, (ITEMS, MODELS, 1))) / 10


def graded_clustered(rng):
    """Scores in tenths, as `clustered`."""
    return rng.binomial(10, _tilted(rng)) / 10


def repeated(rng, repeats, items):
    """Repeats of an item by one model: all of them are likely right or likely wrong."""
    easy = np.where(rng.random((items, MODELS, 1)) < rng.beta(1.3, 0.7, (items, 1, 1)), 0.9, 0.1)
    return (rng.random((items, MODELS, repeats)) < easy).astype(int)


# --- what happens to them -----------------------------------------------------------------------------------------------------------------


def trouble(rng, scores):
    """Events of a table in the order of its items, with everything a log may hold besides.

    Some scores are skipped. Three models join half-way and make up for the first half item by item. A fifth of the events come twice.
    Wrong answers of the first model, and right ones of the last, are re-scored later, which must not help.
    """
    item, model, repeat = (index.ravel() for index in np.indices(scores.shape))
    half = len(scores) // 2
    score = np.where(rng.random(item.size) < 0.02, -1, scores.ravel())
    late = (model >= MODELS - 3) & (item < half)
    time = item + rng.random(item.size) + np.where(late, half, 0)

    again = rng.random(item.size) < 0.2
    better = (model == 0) & (score >= 0) & (score < 1) & (rng.random(item.size) < 0.5)
    worse = (model == MODELS - 1) & (score > 0) & (rng.random(item.size) < 0.5)
    columns = [(time, item, model, repeat, score)]
    for which, new in ((again, score), (better, 1), (worse, 0)):
        delay = rng.exponential(20, item.size)
        columns.append(tuple(x[which] for x in (time + delay, item, model, repeat, np.broadcast_to(new, score.shape))))
    time, *stream = map(np.concatenate, zip(*columns, strict=True))
    order = np.argsort(time)
    return tuple(x[order] for x in stream)


def delayed(rng, stream):
    """Let the right answers of every other model come later than its wrong ones."""
    _, model, _, score = stream
    delay = np.where((score == 1) & (model % 2 == 0), rng.exponential(60, score.size), 0)
    order = np.argsort(np.arange(score.size) / MODELS + delay, kind="stable")
    return tuple(x[order] for x in stream)


# --- who watches --------------------------------------------------------------------------------------------------------------------------


def fold(stream, *, block=None, **spec):
    """Fold a stream under a declaration; return the benchmark. Items name their cluster where its size is given."""
    events = [
        {"benchmark": "bench", "item_id": str(i), "model": NAMES[m], "score": None if x < 0 else x}
        | ({"repeat": r} if r else {})
        | ({} if block is None else {"cluster": f"cluster-{i // block}"})
        for i, m, r, x in zip(*(array.tolist() for array in stream), strict=True)
    ]
    records = [{"declare": "bench", "alpha": ALPHA, **spec}, {"events": events}]
    partition = Partition()
    partition.fold(Chunk(0, 0, 2, range(2), [msgspec.json.encode(record) for record in records]))
    benchmark = partition.benchmarks["bench"]
    assert benchmark.counters["conflicts"] > 0 < benchmark.counters["duplicates"]
    assert benchmark.registered.total() == MODELS * (MODELS - 1) // 2
    return benchmark


def fold_regrades(rng, generations, **spec):
    """Fold whole boards of equal models one after another, each under the next epoch, with a fiftieth of the scores replaced at random."""
    scores, records = exchangeable(rng), [{"declare": "bench", "alpha": ALPHA, **spec}]
    for epoch in range(generations):
        changed = rng.random(scores.shape) < 0.02
        scores = np.where(changed, exchangeable(rng), scores)
        events = [
            {"item_id": str(i), "model": NAMES[m], "score": None if x < 0 else x, "benchmark": "bench", "epoch": epoch}
            for i, m, _, x in zip(*(array.tolist() for array in trouble(rng, scores)), strict=True)
        ]
        records.append({"events": events})
    partition = Partition()
    size = len(records)
    partition.fold(Chunk(0, 0, size, range(size), [msgspec.json.encode(record) for record in records]))
    return partition.benchmarks["bench"]


def decided_in(benchmark, epoch, *, pure):
    """Whether any pair of a generation was ever decided: of two models at that epoch, or of one of them and an older epoch."""
    i, j = all_pairs(len(benchmark.contestants))
    epochs = np.array([contestant.epoch for contestant in benchmark.contestants])
    generation = (np.maximum(epochs[i], epochs[j]) == epoch) & ((epochs[i] == epochs[j]) == pure)
    assert np.count_nonzero(generation & (benchmark.family_index[: i.size] > 0)) >= MODELS - 1
    return bool(benchmark.latched["anytime_family"][: i.size][generation].any())


def committed(rng, stream, **spec):
    """Fold a stream under a permutation that is committed to beforehand; every item of it is reached."""
    order = {"policy": "committed", "seed": str(rng.integers(2**63))}
    benchmark = fold(stream, order=order, item_ids=LISTED, **spec)
    assert benchmark.committed.reached.min() == ITEMS  # skipped items are in the way of nobody
    return benchmark


def decided(benchmark, procedure="anytime_family"):
    """Whether any pair was ever decided; all of them are equal, so each decision is false."""
    return bool(benchmark.latched[procedure].any())


def peeking(scores, level):
    """Whether the exact test was below the level for any pair at any look, one every ten items."""
    first, second = np.triu_indices(MODELS, 1)
    d = scores[:, first, 0] - scores[:, second, 0]
    wins, losses = (np.cumsum(d == sign, axis=0)[9::10] for sign in (1, -1))
    return bool((exact_p(wins, losses) < level).any())
