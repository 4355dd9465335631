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


def trouble(rng, scores, skipped=0.02):
    """Events of a table in the order of its items, with everything a log may hold besides.

    Some scores stay skipped. Three models join half-way and make up for the first half item by item. A fifth of the events come twice.
    Wrong answers of the first model, and right ones of the last, are re-scored later, which must not help.
    """
    item, model, repeat = (index.ravel() for index in np.indices(scores.shape))
    half = len(scores) // 2
    score = np.where(rng.random(item.size) < skipped, -1, scores.ravel())
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


def some_repeats(rng, stream, most):
    """Keep 1 to `most` repeats of each item of a model, a number that does not depend on the scores."""
    item, model, repeat, _ = stream
    number = rng.integers(1, most + 1, (item.max() + 1, MODELS))
    return tuple(x[repeat < number[item, model]] for x in stream)


def until_right(stream, scores):
    """Keep the repeats of even models up to the first right one, and the first one of the others."""
    item, model, repeat, _ = stream
    wrong_before = np.cumsum(scores, axis=2) - scores == 0
    kept = np.where(np.arange(MODELS)[:, None] % 2 == 0, wrong_before, np.arange(scores.shape[2]) == 0)
    return tuple(x[kept[item, model, repeat]] for x in stream)


def labelled(stream):
    """Let every other model name its repeats by other numbers than 0, 1, 2."""
    item, model, repeat, score = stream
    return item, model, np.where(model % 2 == 0, repeat, 1_000 - 7 * repeat), score


def without_some(rng, stream, share):
    """Let each run lack a share of the items, whatever their scores."""
    item, model, *_ = stream
    has = rng.random((ITEMS, MODELS)) >= share
    return tuple(x[has[item, model]] for x in stream)


def filled(rng, stream, late):
    """Send null in place of the scores of some items of models, and their scores later; `late` is how likely, by model and score."""
    item, model, repeat, score = stream
    first = np.full((ITEMS, MODELS), -1)
    first[item[::-1], model[::-1]] = score[::-1]
    failed = rng.random((ITEMS, MODELS)) < late(np.arange(MODELS), first)
    delay = np.where(failed, rng.exponential(200, failed.shape), 0)[item, model]
    early = failed[item, model]
    time = np.arange(item.size) / MODELS
    columns = [(time + delay, item, model, repeat, score)]
    columns.append(tuple(x[early] for x in (time, item, model, repeat, np.full_like(score, -1))))
    time, *stream = map(np.concatenate, zip(*columns, strict=True))
    order = np.argsort(time, kind="stable")
    return tuple(x[order] for x in stream)


def wins_late(model, score):
    """How likely a score comes as null first: right answers of every other model."""
    return np.where(score == 1, 0.6 * (model % 2 == 0), 0)


# --- who watches --------------------------------------------------------------------------------------------------------------------------


def packed(stream, *, block=None, epoch=0):
    """Return one record of the events of a stream. Items name their cluster where its size is given."""
    events = [
        {"benchmark": "bench", "item_id": str(i), "model": NAMES[m], "score": None if x < 0 else x, "epoch": epoch}
        | ({"repeat": r} if r else {})
        | ({} if block is None else {"cluster": f"cluster-{i // block}"})
        for i, m, r, x in zip(*(array.tolist() for array in stream), strict=True)
    ]
    return {"events": events}


def fold_records(records, **spec):
    """Fold records after a declaration; return the benchmark."""
    every = [{"declare": "bench", "alpha": ALPHA, **spec}, *records]
    size = len(every)
    partition = Partition()
    partition.fold(Chunk(0, 0, size, range(size), [msgspec.json.encode(record) for record in every]))
    assert not partition.counters["rejected"]
    return partition.benchmarks["bench"]


def fold(stream, *, block=None, ends=False, **spec):
    """Fold a stream under a declaration, with the end of every run after it; return the benchmark."""
    benchmark = fold_records([packed(stream, block=block), *[{"ended": "bench"}] * ends], **spec)
    assert benchmark.counters["conflicts"] > 0 < benchmark.counters["duplicates"]
    assert benchmark.registered.total() == MODELS * (MODELS - 1) // 2
    return benchmark


def fold_regrades(rng, generations, **spec):
    """Fold whole boards of equal models one after another, each under the next epoch, with a fiftieth of the scores replaced at random."""
    scores, records = exchangeable(rng), []
    for epoch in range(generations):
        scores = np.where(rng.random(scores.shape) < 0.02, exchangeable(rng), scores)
        records.append(packed(trouble(rng, scores), epoch=epoch))
    return fold_records(records, **spec)


def fold_one_sided(rng, generations, **spec):
    """The same where only wrong answers of the first model are scored again, a fifth of them each time."""
    easy = rng.beta(1.3, 0.7, (ITEMS, 1, 1))
    scores, records = (rng.random((ITEMS, MODELS, 1)) < easy).astype(int), []
    for epoch in range(generations):
        records.append(packed(trouble(rng, scores, 0), epoch=epoch))
        again = (rng.random(scores.shape) < 0.2) & (scores == 0) & (np.arange(MODELS)[:, None] == 0)
        scores = np.where(again, rng.random(scores.shape) < easy, scores).astype(int)
    return fold_records(records, **spec)


def fold_best_stopped(rng, generations, **spec):
    """Stop each generation when some pair looks decided, and inherit it: the next one replaces a fiftieth of it and goes on from there."""
    easy = rng.beta(1.3, 0.7, (ITEMS, 1, 1))
    scores, records, start = (rng.random((ITEMS, MODELS, 1)) < easy).astype(int), [], 0
    for epoch in range(generations):
        again = (rng.random(scores.shape) < 0.02) & (np.arange(ITEMS)[:, None, None] < start)
        again[0] |= epoch > 0  # every model has a score in every epoch
        scores = np.where(again, rng.random(scores.shape) < easy, scores).astype(int)
        looks = smallest_p(scores[:, :, 0])
        below = np.flatnonzero((looks <= ALPHA) & (np.arange(ITEMS) >= start + 10))
        stop = ITEMS if epoch == generations - 1 or not below.size else int(below[0]) + 1
        sent = again.copy()
        sent[start:stop] = True
        item, model, repeat = np.nonzero(sent)
        records.append(packed((item, model, repeat, scores[sent]), epoch=epoch))
        records += [{"ended": "bench", "epoch": epoch, "base": epoch - 1}] * (epoch > 0)
        start = stop
    return fold_records(records, **spec)


def fold_stopped(rng, items, stop, **spec):
    """Fold two equal models up to the item at which `stop` ends both runs, given their wins and losses so far; else all items."""
    names = NAMES[:2]
    scores = (rng.random((items, 2)) < rng.beta(1.3, 0.7, (items, 1))).astype(int)
    d = scores[:, 0] - scores[:, 1]
    ends = np.flatnonzero(stop(np.cumsum(d > 0), np.cumsum(d < 0)))
    end = ends[0] + 1 if ends.size else items
    item, model = (index.ravel() for index in np.indices((end, len(names))))
    stream = packed((item, model, np.zeros_like(item), scores[:end].ravel()))
    return fold_records([stream, {"ended": "bench"}], items=items, family={"policy": "capacity", "size": 1}, **spec)


def decided_in(benchmark, epoch, pure):
    """Whether any pair of a generation was ever decided: of two models at that epoch, or of one of them and an older epoch."""
    i, j = all_pairs(len(benchmark.contestants))
    epochs = np.array([contestant.epoch for contestant in benchmark.contestants])
    generation = (np.maximum(epochs[i], epochs[j]) == epoch) & ((epochs[i] == epochs[j]) == pure)
    assert np.count_nonzero(generation & (benchmark.family_index[: i.size] > 0)) >= MODELS - 1
    return bool(benchmark.latched["anytime_family"][: i.size][generation].any())


def decisions_of_last_generation(benchmark):
    """Return the verdict changes that decide a pair with a model at the last epoch."""
    last = max(contestant.epoch for contestant in benchmark.contestants)
    changes = benchmark.changes.values()
    return [change for change in changes if change.kind == "decided" and max(change.epoch_a, change.epoch_b) == last]


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
    return bool((smallest_p(scores[:, :, 0])[9::10] < level).any())


def smallest_p(scores):
    """Return the smallest p of the exact test over all pairs, after each item."""
    first, second = np.triu_indices(MODELS, 1)
    d = scores[:, first] - scores[:, second]
    wins, losses = (np.cumsum(d == sign, axis=0) for sign in (1, -1))
    return exact_p(wins, losses).min(axis=1)
