"""Whole runs in a chunk, and models that gain unequal numbers of items in it: nothing latches differently."""

import json
import random

import numpy as np
import pytest

from monitor.engine.chunk_fold import Partition
from schemas.records.chunks import Chunk
from stats.order import committed_order

MODELS, ITEMS = 40, 120
SPECS = {
    "trusted": {"order": "trusted"},
    "trusted grid98": {"order": "trusted", "mixture": "grid98"},
    "completion": {"items": ITEMS},
    "committed": {"order": {"policy": "committed", "seed": "s"}, "item_ids": [str(k) for k in range(ITEMS)]},
    "graded": {"order": "trusted", "scores": "graded"},
    "graded completion": {"items": ITEMS, "scores": "graded", "family": {"policy": "capacity", "size": 780}},
}


def lines(spec, *, skips):
    """One run after another, each in its own order of the items; some items are skipped, and two models lack some."""
    rng = random.Random(7)
    hard = [rng.random() for _ in range(ITEMS)]
    found = [{"declare": "b", **spec}]
    for model in range(MODELS):
        for item in rng.sample(range(ITEMS), ITEMS - 20 * (model in {5, 30})):
            score = rng.random() < 0.2 + 0.6 * model / MODELS + 0.3 * (0.5 - hard[item])
            graded = spec.get("scores") == "graded" and rng.random() < 0.3
            value = None if rng.random() < skips else 0.5 if graded else int(score)
            found.append({"benchmark": "b", "item_id": str(item), "model": f"m{model}", "score": value})
    return [json.dumps(each).encode() for each in found]


def folded(data, size):
    partition = Partition()
    for start in range(0, len(data), size):
        part = data[start : start + size]
        partition.fold(Chunk(0, start, start + len(part), range(start, start + len(part)), part))
    board = partition.benchmarks["b"]
    latches = {
        claim: (kept.side[: board.pairs].tolist(), kept.peak[: board.pairs].tolist())
        for claim, kept in board.claims.items()
    }
    return latches, {field: change.as_json() for field, change in board.changes.items()}


@pytest.mark.parametrize("skips", [0, 0.03], ids=["all scored", "some skipped"])
@pytest.mark.parametrize("policy", SPECS)
def test_whole_runs_latch_as_single_events_do(policy, skips):
    data = lines(SPECS[policy], skips=skips)
    latches, changes = folded(data, 400)
    assert folded(data, 23) == (latches, changes)
    kinds = {field.split(":")[2] for field in changes}
    assert {"decided"} <= kinds
    assert np.any(latches["anytime_family"][0])


@pytest.mark.parametrize(("width", "size"), [(15, 1_000), (20, 3_000), (40, 2_500)])
def test_pairs_of_unequal_steps_latch_as_single_events_do(width, size):
    """Models go along a committed order in waves: in a chunk pairs gain unequal numbers of items, and latch one another."""
    data = lines(SPECS["committed"], skips=0)
    rank = {
        str(item): place for place, item in enumerate(committed_order("s", [str(k) for k in range(ITEMS)]).tolist())
    }
    wave = {line: rank[json.loads(line)["item_id"]] // width for line in data[1:]}
    data[1:] = sorted(data[1:], key=wave.__getitem__)
    whole = folded(data, size)
    assert whole == folded(data, 61)
    assert len(whole[1]) > 500
