"""Streams of equal models, everything that may happen to them on their way, and the false claims that the engine makes of them.

Scores are arrays (items, models, repeats); -1 is a skipped score. A stream is the arrays item, model, repeat and score of its
events in the order of the log. Models 0 and 1 are opponents, as are 2 and 3, and so on: what happens favours the even one of two.
"""

from collections.abc import Mapping
from typing import NamedTuple

import msgspec
import numpy as np

from monitor.engine.chunk_fold import Partition
from schemas.records.chunks import Chunk
from schemas.records.events import EventFields
from stats import committed_order, exact_p

ALPHA, ITEMS, MODELS, CLUSTERS = 0.05, 100, 4, 5
BLOCK = ITEMS // CLUSTERS


Stream = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]


def capacity(models=MODELS):
    """Return the declaration of a family that all pairs of some models fit in."""
    return {"policy": "capacity", "size": models * (models - 1) // 2}


def named(model):
    """Return the name of a model."""
    return f"model-{model:02d}"


def listed(items=ITEMS):
    """Return the list of the items of a benchmark."""
    return list(map(str, range(items)))


class Wrong(NamedTuple):
    """A false claim: its sentence, the family whose error it is, and its pair."""

    sentence: str
    family: str = ""
    pair: tuple[str, str] | None = None
    counted: int = 0
    """Items that count: the shared ones, and those that count against the leader."""


# --- scores of equal models ---------------------------------------------------------------------------------------------------------------


def exchangeable(rng, items=ITEMS, models=MODELS):
    """Equal models that find the same items hard, items in random order."""
    easy = rng.beta(1.3, 0.7, (items, 1, 1))
    return (rng.random((items, models, 1)) < easy).astype(int)


def of_quality(rng, quality, items=ITEMS):
    """Models of any quality, the share of items that each has right; items are as hard for all, in random order."""
    easy = np.clip(np.asarray(quality)[:, None] + rng.uniform(-0.1, 0.1, (items, 1, 1)), 0, 1)
    return (rng.random((items, len(quality), 1)) < easy).astype(int)


def graded_of_quality(rng, quality, items=ITEMS):
    """Scores in tenths, as `of_quality`."""
    easy = np.asarray(quality)[:, None] + rng.uniform(-0.1, 0.1, (items, 1, 1))
    return rng.binomial(10, easy) / 10


def same_total(rng, items=ITEMS, models=MODELS):
    """Models that have the same number of items right, so that nobody leads on all of them; items in random order."""
    easy = rng.beta(1.3, 0.7, items)
    right = int(easy.mean() * items)
    # The items of a model with the smallest exponential times, as likely as they are easy.
    times = rng.exponential(1, (items, models)) / (easy / (1.001 - easy))[:, None]
    return (times.argsort(axis=0).argsort(axis=0) < right).astype(int)[:, :, None]


def _tilted(rng, models):
    """Chances of models of equal mean over the benchmark, each better in some clusters and worse in others; in blocks of a cluster."""
    tilt = np.linspace(-0.3, 0.3, CLUSTERS)
    by_cluster = np.stack([rng.permutation(tilt) for _ in range(models)], axis=1)
    return 0.55 + np.repeat(by_cluster, BLOCK, axis=0)[:, :, None]


def clustered(rng, models=MODELS):
    """Clusters with fixed effects that add up to 0 for every model; items in blocks of a cluster."""
    chance = _tilted(rng, models)
    return (rng.random(chance.shape) < chance).astype(int)


def random_effects(rng):
    """Clusters with random effects of mean 0: equal over all clusters there could be, not over these; items in blocks of a cluster."""
    effect = rng.normal(0, 0.1, (CLUSTERS, MODELS))
    chance = 0.55 + np.repeat(effect, BLOCK, axis=0)[:, :, None]
    return (rng.random(chance.shape) < chance).astype(int)


def graded_exchangeable(rng, items=ITEMS, models=MODELS):
    """Scores in tenths, as `exchangeable`."""
    easy = rng.beta(1.3, 0.7, (items, 1, 1))
    return rng.binomial(10, np.broadcast_to(easy, (items, models, 1))) / 10


def graded_clustered(rng, models=MODELS):
    """Scores in tenths, as `clustered`."""
    return rng.binomial(10, _tilted(rng, models)) / 10


UNEVEN = {"large": 60, "middle": 30, "small": 10}
"""Items of clusters that count the same, in `weighted` streams."""


def uneven_clusters():
    """Return the cluster of each item, in blocks."""
    return [name for name, size in UNEVEN.items() for _ in range(size)]


def weighted(rng, gap, models=MODELS):
    """Models of equal mean over clusters that count the same: odd ones are worse in the first by a gap, and better in the second."""
    tilt = np.repeat([gap, -gap, 0], list(UNEVEN.values()))[:, None, None]
    side = np.where(np.arange(models) % 2, -0.5, 0.5)[None, :, None]
    easy = rng.uniform(0.3, 0.7, (ITEMS, 1, 1))
    return (rng.random((ITEMS, models, 1)) < easy + tilt * side).astype(int)


def repeated(rng, repeats, items, models=MODELS):
    """Repeats of an item by one model: all of them are likely right or likely wrong."""
    easy = np.where(rng.random((items, models, 1)) < rng.beta(1.3, 0.7, (items, 1, 1)), 0.9, 0.1)
    return (rng.random((items, models, repeats)) < easy).astype(int)


UNITS, COPIES = 60, 5


def copied(rng, models=MODELS):
    """Equal models on five copies of each of some items, which a model has all right or all wrong, in random order; and their units."""
    unit = rng.permutation(np.repeat(np.arange(UNITS), COPIES))
    return exchangeable(rng, UNITS, models)[unit], {str(k): f"unit {u}" for k, u in enumerate(unit.tolist())}


# --- what happens to them -----------------------------------------------------------------------------------------------------------------


def plain(scores):
    """Events of a table, item by item."""
    item, model, repeat = (index.ravel() for index in np.indices(scores.shape))
    return item, model, repeat, scores.ravel()


def reordered(stream, order):
    """Take the events of a stream in another order, or some of them."""
    return tuple(x[order] for x in stream)


def trouble(rng, scores, skipped=0.02):
    """Events of a table in the order of its items, with everything a log may hold besides.

    Some scores stay skipped. The last two of four models join half-way and make up for the first half item by item. A tenth of the events
    come twice. Some wrong answers of even models, and right ones of odd ones, are scored again later, which must not help.
    """
    item, model, repeat, score = plain(scores)
    half = len(scores) // 2
    score = np.where(rng.random(item.size) < skipped, -1, score)
    late = (model % 4 >= 2) & (item < half)
    time = item + rng.random(item.size) + np.where(late, half, 0)

    again = rng.random(item.size) < 0.1
    better = (model % 2 == 0) & (score >= 0) & (score < 1) & (rng.random(item.size) < 0.2)
    worse = (model % 2 == 1) & (score > 0) & (rng.random(item.size) < 0.2)
    columns = [(time, item, model, repeat, score)]
    for which, new in ((again, score), (better, 1), (worse, 0)):
        delay = rng.exponential(20, item.size)
        columns.append(tuple(x[which] for x in (time + delay, item, model, repeat, np.broadcast_to(new, score.shape))))
    time, *stream = map(np.concatenate, zip(*columns, strict=True))
    return reordered(stream, np.argsort(time))


def delayed(rng, stream):
    """Let the right answers of even models come later than their wrong ones."""
    _, model, _, score = stream
    delay = np.where((score == 1) & (model % 2 == 0), rng.exponential(60, score.size), 0)
    return reordered(stream, np.argsort(np.arange(score.size) / (model.max() + 1) + delay, kind="stable"))


def wins_first(rng, scores):
    """Let the items that only the even one of two opponents has right come first, those that only the odd one has right last."""
    lead = scores[:, ::2, 0] - scores[:, 1::2, 0]
    time = np.argsort(np.argsort(-lead + 1e-6 * rng.random(lead.shape), axis=0), axis=0)
    item, model, *_ = stream = plain(scores)
    return reordered(stream, np.argsort(time[item, model // 2], kind="stable"))


def bad_news_skipped(scores):
    """Let even models send null where they are wrong and their opponent is right."""
    skipped = np.zeros(scores.shape, bool)
    skipped[:, ::2] = (scores[:, ::2] == 0) & (scores[:, 1::2] == 1)
    return np.where(skipped, -1, scores)


def random_order(rng, scores):
    """Events of a table, whose items are in random order."""
    return plain(scores)


def in_committed_order(rng, scores, seed):
    """Events of a table in the order that a seed commits to."""
    stream = plain(scores)
    place = np.argsort(committed_order(seed, listed(len(scores))))
    return reordered(stream, np.argsort(place[stream[0]], kind="stable"))


def best_pairs_first(scores):
    """Send one item of each of the pairs that end with the smallest p first, in their order, and the rest item by item."""
    first, second = np.triu_indices(scores.shape[1], 1)
    d = scores[:, first, 0] - scores[:, second, 0]
    p = exact_p((d > 0).sum(axis=0), (d < 0).sum(axis=0))
    best = np.argsort(p)[: len(scores)]
    item, model, *_ = stream = plain(scores)
    early = np.full(scores.shape[:2], len(best))
    for k, pair in enumerate(best.tolist()):  # another item for each pair, so that no other pair shares it yet
        early[k, [first[pair], second[pair]]] = k
    return reordered(stream, np.argsort(early[item, model], kind="stable"))


def unluckiest_first(scores):
    """Send one model at a time: the one with the fewest items right, then the others from the best on."""
    _, model, *_ = stream = plain(scores)
    right = scores.sum(axis=(0, 2))
    place = (-right).argsort().argsort()
    place[right.argmin()] = -1
    return reordered(stream, np.argsort(place[model], kind="stable"))


def one_after_another(scores):
    """Let each model join once the one ahead of it is complete."""
    stream = plain(scores)
    return reordered(stream, np.argsort(stream[1], kind="stable"))


def some_repeats(rng, stream, most):
    """Keep 1 to `most` repeats of each item of a model, a number that does not depend on the scores."""
    item, model, repeat, _ = stream
    number = rng.integers(1, most + 1, (item.max() + 1, model.max() + 1))
    return reordered(stream, repeat < number[item, model])


def until_right(stream, scores):
    """Keep the repeats of even models up to the first right one, and the first one of odd models."""
    item, model, repeat, _ = stream
    wrong_before = np.cumsum(scores, axis=2) - scores == 0
    kept = np.where(np.arange(scores.shape[1])[:, None] % 2 == 0, wrong_before, np.arange(scores.shape[2]) == 0)
    return reordered(stream, kept[item, model, repeat])


def labelled(stream):
    """Let odd models name their repeats by other numbers than 0, 1, 2."""
    item, model, repeat, score = stream
    return item, model, np.where(model % 2 == 0, repeat, 1_000 - 7 * repeat), score


def without_some(rng, stream, share):
    """Let each run lack a share of the items, whatever their scores."""
    item, model, *_ = stream
    return reordered(stream, (rng.random((item.max() + 1, model.max() + 1)) >= share)[item, model])


def filled(rng, stream, late):
    """Send null in place of the scores of some items of models, and their scores later; `late` is how likely, by model and score."""
    item, model, repeat, score = stream
    models = model.max() + 1
    first = np.full((item.max() + 1, models), -1)
    first[item[::-1], model[::-1]] = score[::-1]
    failed = rng.random(first.shape) < late(np.arange(models), first)
    delay = np.where(failed, rng.exponential(200, failed.shape), 0)[item, model]
    early = failed[item, model]
    time = np.arange(item.size) / models
    columns = [(time + delay, item, model, repeat, score)]
    columns.append(tuple(x[early] for x in (time, item, model, repeat, np.full_like(score, -1))))
    time, *stream = map(np.concatenate, zip(*columns, strict=True))
    return reordered(stream, np.argsort(time, kind="stable"))


def wins_late(model, score):
    """How likely a score comes as null first: right answers of even models."""
    return np.where(score == 1, 0.6 * (model % 2 == 0), 0)


# --- what the engine makes of them --------------------------------------------------------------------------------------------------------


def packed(stream, *, block=None, epoch=0, clusters=None):
    """Return one record of the events of a stream. Items name their cluster where these, or their size, are given."""
    item, model, repeat, score = stream
    ids, models = listed(int(item.max()) + 1), [named(k) for k in range(int(model.max()) + 1)]
    clusters = clusters or [None if block is None else f"cluster-{k // block}" for k in range(len(ids))]
    columns = zip(item.tolist(), model.tolist(), repeat.tolist(), score.tolist(), strict=True)
    events = [
        EventFields("bench", ids[i], models[m], None if x < 0 else x, clusters[i], r, epoch) for i, m, r, x in columns
    ]
    return {"events": events}


class Board:
    """A benchmark of a partition, folded record by record."""

    def __init__(self, **spec):
        self._partition = Partition()
        self.fold({"declare": "bench", "alpha": ALPHA, **spec})
        self.benchmark = self._partition.benchmarks["bench"]

    def fold(self, *records):
        """Fold records as one chunk."""
        start, end = self._partition.off, self._partition.off + len(records)
        self._partition.fold(Chunk(0, start, end, range(start, end), [msgspec.json.encode(each) for each in records]))

    def looks(self, stream, every):
        """Fold a stream, and yield the benchmark after every so many events."""
        for start in range(0, stream[0].size, every):
            self.fold(packed(tuple(x[start : start + every] for x in stream)))
            yield self.benchmark


def fold_records(records, **spec):
    """Fold records after a declaration; return the benchmark, which has refused none of them."""
    board = Board(**spec)
    board.fold(*records)
    assert not board.benchmark.counters["rejected"]
    return board.benchmark


def fold(stream, *, block=None, ends=False, item_clusters=None, **spec):
    """Fold a stream under a declaration, with the end of every run after it; return the benchmark."""
    return fold_records([packed(stream, block=block, clusters=item_clusters), *[{"ended": "bench"}] * ends], **spec)


def under(rng, policy, items=ITEMS):
    """Return the declaration of an order policy; a committed order has a seed of its own."""
    if policy == "committed":
        return {"order": {"policy": "committed", "seed": str(rng.integers(2**63))}, "item_ids": listed(items)}
    return {"order": "trusted"} if policy == "trusted" else {"items": items}


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


def up_to(stop, scores):
    """Events of opponents up to the item at which a producer stops both, given the wins and losses so far; else of all items."""
    d = scores[:, ::2, 0] - scores[:, 1::2, 0]
    stops = stop(np.cumsum(d > 0, axis=0), np.cumsum(d < 0, axis=0))
    last = np.where(stops.any(axis=0), stops.argmax(axis=0), len(d))
    item, model, *_ = stream = plain(scores)
    return reordered(stream, item <= last[model // 2])


# --- false claims -------------------------------------------------------------------------------------------------------------------------


def wrong(benchmark, quality: Mapping[str, float] | None = None, claim="anytime_family"):
    """Return what was ever decided, or settled, for a model that is not better; `quality` is what is true, by name, or all are equal.

    Each pair is in the family of its generation: of two models at an epoch, or of one of them and one of an older epoch.
    """
    found = []
    for change in benchmark.changes.values():
        if change.procedure != claim or change.kind not in {"decided", "settled"} or change.after == "tie":
            continue
        better, worse = change.model_a, change.model_b
        if change.after == "b":
            better, worse = worse, better
        if quality is None or quality[better] <= quality[worse]:
            epochs, counted = {change.epoch_a, change.epoch_b}, change.evidence.n + change.evidence.missing
            kind = "generation" if len(epochs) == 1 else "two epochs"
            pair = change.model_a, change.model_b
            found.append(Wrong(change.sentence, f"{kind} {max(epochs)}", pair, counted))
    return found


def by_opponents(found, models):
    """Return the false claims of each two opponents, one list each; what is claimed of others is omitted."""
    of = {(named(k), named(k + 1)): [] for k in range(0, models, 2)}
    for each in found:
        if each.pair in of:
            of[each.pair].append(each)
    return list(of.values())


def of_family(found, *families):
    """Return the false claims of some families."""
    return [each for each in found if each.family in families]


def peeking(scores, level):
    """Whether the exact test was below the level for any pair at any look, one every ten items."""
    return bool((smallest_p(scores[:, :, 0])[9::10] < level).any())


def smallest_p(scores):
    """Return the smallest p of the exact test over all pairs, after each item."""
    first, second = np.triu_indices(scores.shape[1], 1)
    d = scores[:, first] - scores[:, second]
    wins, losses = (np.cumsum(d == sign, axis=0) for sign in (1, -1))
    return exact_p(wins, losses).min(axis=1)
