"""A fold in pieces: the same changes wherever they end, and a state that can be read in between."""

import json
import random

import numpy as np
import pytest

from monitor.engine import chunk_fold
from monitor.engine.chunk_fold import ChunkFold, Partition
from monitor.view.build import benchmark_report
from monitor.view.from_state import board_view
from schemas.records.chunks import Chunk
from schemas.results.changes import change_order

ITEMS = [f"i{k}" for k in range(40)]
SPECS = {
    "no policy": {},
    "completion": {"items": 40, "order": {"policy": "completion"}},
    "trusted": {"order": {"policy": "trusted"}},
    "committed": {"item_ids": ITEMS, "order": {"policy": "committed", "seed": "s"}},
    "graded": {"items": 40, "order": {"policy": "trusted"}, "scores": "graded"},
}


def record(spec, seed):
    """A record with the scores of some models in a random order, some twice, some of a newer epoch, and more items than declared."""
    rng = random.Random(seed)
    skills = {f"m{k}": 0.01 + 0.1 * k for k in range(10)}
    values = (0.0, 0.5, 1.0) if spec.get("scores") else (0, 1)
    scores = [
        {
            "benchmark": "b",
            "item_id": item,
            "model": model,
            "score": values[-1] if rng.random() < skill else rng.choice(values[:-1]),
        }
        for item in ITEMS
        for model, skill in skills.items()
    ]
    scores += [{**score, "epoch": 1} for score in scores if score["model"] == "m3"]
    scores += rng.sample(scores, 60)
    rng.shuffle(scores)
    return json.dumps({"declare": [{"declare": "b", **spec}] if spec else [], "events": scores}).encode()


def plain(delta):
    """A delta that can be compared: the store sorts the changes of a chunk by their ids, and joins the parts of a family."""
    benchmarks = [
        vars(each)
        | {
            "changes": sorted(each.changes.items(), key=lambda entry: change_order(entry[1].id)),
            "registered": [pair for part in each.registered for pair in part.tolist()],
        }
        for each in delta.benchmarks
    ]
    text = json.dumps(
        vars(delta) | {"benchmarks": benchmarks}, default=lambda x: x.tolist() if isinstance(x, np.ndarray) else str(x)
    )
    return json.loads(text)


def parts_of(data):
    """A chunk with the same declaration and scores, a few in each record."""
    whole = json.loads(data)
    events = whole["events"]
    parts = [{"declare": whole["declare"], "events": []}]
    parts += [{"events": events[start : start + 7]} for start in range(0, len(events), 7)]
    records = [json.dumps(part).encode() for part in parts]
    return Chunk(0, 0, len(records) + 3, range(1, len(records) + 1), records)


@pytest.mark.fault("processes", "a fold in pieces of different sizes", "the same bytes are stored")
@pytest.mark.parametrize("policy", SPECS)
def test_pieces_change_nothing_that_is_stored(policy, monkeypatch):
    chunk = parts_of(record(SPECS[policy], 1))
    whole = plain(Partition().fold(chunk))
    if policy != "no policy":
        assert whole["benchmarks"][0]["changes"]
    for size in (1, 2, 5):
        monkeypatch.setattr(chunk_fold, "PIECE_RECORDS", size)
        partition, pieces = Partition(), 0
        folding = ChunkFold(partition, chunk)
        while not folding.is_whole:
            folding.step()
            pieces += 1
            if pieces % 5 == 0:
                assert benchmark_report(board_view(partition.benchmarks["b"]), pairs="all").models
            assert partition.off == 0
        assert pieces > len(chunk.records) // 6
        assert plain(folding.finish()) == whole


@pytest.mark.parametrize("most", [0, 5])
@pytest.mark.parametrize("policy", SPECS)
def test_a_fold_that_ends_within_a_chunk_goes_on_to_the_same_state(policy, most, monkeypatch):
    monkeypatch.setattr(chunk_fold, "_PIECE_BYTES", 1)
    rest = whole = parts_of(record(SPECS[policy], 1))
    partition, other, changes, folds = Partition(), Partition(), [], 0
    expected = plain(other.fold(whole))
    while rest is not None:
        folding, found = ChunkFold(partition, rest), -1
        while not folding.is_whole and found < most:
            found = folding.step()
        delta = folding.finish()
        part, rest = rest.cut(delta.records)
        assert (delta.expected, delta.off, delta.records) == (part.start, part.end, len(part.records))
        assert partition.off == delta.off
        changes += [change for each in plain(delta)["benchmarks"] for change in each["changes"]]
        folds += 1
    assert changes == expected["benchmarks"][0]["changes"]
    assert partition.off == other.off == whole.end
    assert partition.benchmarks["b"].counters == other.benchmarks["b"].counters
    assert len(changes) <= 5 or folds > 2
    assert most or folds == len(whole.records)


def lines(names, each, models=20):
    """Records of benchmarks in turn."""
    return [
        json.dumps({"benchmark": name, "item_id": str(k), "model": f"m{k % models}", "score": 1}).encode()
        for k in range(each)
        for name in names
    ]


def piece_sizes(partition, records):
    """How many records the pieces of a chunk have, which follows what is folded."""
    size, off = [], partition.off
    folding = ChunkFold(partition, Chunk(0, off, off + len(records), range(off, off + len(records)), records))
    while not folding.is_whole:
        before = folding._count
        folding.step()
        size.append(folding._count - before)
    folding.finish()
    return size


def test_pieces_are_smaller_for_many_models_and_where_one_event_decides_what_many_brought():
    sizes = []
    for models, policy in ((2, "trusted"), (1_000, "trusted"), (1_000, "completion"), (1_000, "committed")):
        spec = SPECS[policy]
        counted = {"item_ids": [str(k) for k in range(12_000)]} if policy == "committed" else {"items": 40}
        declared = json.dumps({"declare": "b", **spec, **counted}).encode()
        _, following = piece_sizes(Partition(), [declared, *lines(["b"], 12_000, models)])[:2]
        sizes.append(following)
    few, wide, completion, committed = sizes
    assert few == 6_000 > wide > max(completion, committed)


def test_a_declaration_between_the_events_of_a_piece_does_not_hide_their_benchmark():
    declared = json.dumps({"declare": "c", "items": 40}).encode()
    _, following = piece_sizes(
        Partition(), [*lines(["b"], 6_000, 1_000)[:5_999], declared, *lines(["b"], 6_000, 1_000)]
    )[:2]
    assert following < 6_000


@pytest.mark.parametrize("wide", ["new", "restored", "small"])
def test_a_large_piece_is_of_many_benchmarks(wide):
    """All of a piece may be of a new benchmark with many models, or of one that was there before a start: too many changes at once."""
    partition = Partition()
    if wide != "new":
        piece_sizes(partition, lines(["b"], 500, 500 if wide == "restored" else 20))
        partition.folded_together = set()  # as after a start
    many = lines([f"small {k}" for k in range(24)], 250)
    sizes = piece_sizes(partition, [*many, *lines(["b"], 18_000, 500 if wide == "new" else 20)])
    assert sizes[:2] == [6_000, 18_000 if wide == "small" else 6_000]
