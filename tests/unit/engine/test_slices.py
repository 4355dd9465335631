"""A fold in slices: the same changes wherever they end, and a state that can be read in between."""

import json
import random
from math import inf

import numpy as np
import pytest

from monitor.engine import pace
from monitor.engine.chunk_fold import Partition
from monitor.engine.pace import Pace
from monitor.engine.slices import run_slices
from monitor.engine.state.pairs.pair_state import PairState
from monitor.view.build import benchmark_report
from monitor.view.from_state import board_view
from schemas.records.chunks import Chunk
from schemas.records.events import Spec
from schemas.results.changes import change_order

ITEMS = [f"i{k}" for k in range(40)]
SPECS = {
    "no policy": {},
    "completion": {"items": 40, "order": {"policy": "completion"}},
    "trusted": {"order": {"policy": "trusted"}},
    "committed": {"item_ids": ITEMS, "order": {"policy": "committed", "seed": "s"}},
    "graded": {"items": 40, "order": {"policy": "trusted"}, "scores": "graded"},
}


class Steps(Pace):
    """A few events a slice, another number each time."""

    def __init__(self, seed):
        super().__init__()
        self.choice = random.Random(seed)

    def events(self, _benchmark):
        return self.choice.randrange(1, 40)


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


@pytest.mark.fault("processes", "a fold in slices of different sizes", "the same bytes are stored")
@pytest.mark.parametrize("policy", SPECS)
def test_slices_change_nothing_that_is_stored(policy):
    data = record(SPECS[policy], 1)
    chunk = Chunk(0, 0, len(data), [0], [data])
    whole = plain(Partition().fold(chunk))
    if policy != "no policy":
        assert whole["benchmarks"][0]["changes"]
    for seed in range(3):
        partition, ended, readable = Partition(), [], 0

        def fold(partition=partition, ended=ended, seed=seed):
            ended.append((yield from partition.fold_in_slices(chunk, Steps(seed))))

        for can_be_read in fold():
            readable += can_be_read
            if readable % 5 == 0 and can_be_read:
                assert benchmark_report(board_view(partition.benchmarks["b"]), pairs="all").models
            assert partition.off == 0
        assert readable > 20
        assert plain(ended[0]) == whole


@pytest.mark.parametrize(("most", "seconds"), [(5, inf), (inf, 0.0)])
@pytest.mark.parametrize("policy", SPECS)
def test_a_fold_that_ends_after_many_changes_or_some_time_goes_on_to_the_same_state(policy, most, seconds, monkeypatch):
    monkeypatch.setattr(pace, "MOST_CHANGES", most)
    monkeypatch.setattr(pace, "_PIECE_BYTES", 1)
    data = json.loads(record(SPECS[policy], 1))
    events = data["events"]
    parts = [{"declare": data["declare"], "events": []}]
    parts += [{"events": events[start : start + 7]} for start in range(0, len(events), 7)]
    records = [json.dumps(part).encode() for part in parts]
    rest = whole = Chunk(0, 0, len(records) + 3, range(1, len(records) + 1), records)
    partition, other, changes, folds = Partition(), Partition(), [], 0
    expected = plain(other.fold(whole))
    while rest is not None:
        delta = run_slices(partition.fold_in_slices(rest, Pace(seconds)))
        part, rest = rest.cut(delta.records)
        assert (delta.expected, delta.off, delta.records) == (part.start, part.end, len(part.records))
        assert partition.off == delta.off
        changes += [change for each in plain(delta)["benchmarks"] for change in each["changes"]]
        folds += 1
    assert changes == expected["benchmarks"][0]["changes"]
    assert partition.off == other.off == len(records) + 3
    assert partition.benchmarks["b"].counters == other.benchmarks["b"].counters
    assert len(changes) <= 5 or folds > 2
    assert seconds or folds == len(records)


def board(policy, models):
    """A benchmark without scores."""
    order = {"policy": policy} | ({"seed": "s"} if policy == "committed" else {})
    spec = Spec(order=order, items=40, item_ids=ITEMS if policy == "committed" else None)
    benchmark = PairState("b")
    benchmark.spec = spec
    for model in range(models):
        benchmark.add_contestant(f"m{model}", 0)
    return benchmark


def test_the_parts_of_a_slice_count_together():
    benchmark, pace, other = board("trusted", 100), Pace(), Pace()
    assert pace.events(benchmark) == other.events(benchmark)
    pace.took(0.05, whole=False)
    pace.took(0.05, whole=False)
    pace.took(0.06)
    other.took(0.16)
    assert pace.events(benchmark) == other.events(benchmark)


def test_pieces_are_smaller_for_many_models_and_where_one_event_decides_what_many_brought():
    sizes = []
    for policy, models, met in (
        ("none", 1_000, 499_500),
        ("none", 1_000, 0),
        ("trusted", 2, 0),
        ("trusted", 400, 0),
        ("trusted", 1_000, 0),
        ("completion", 1_000, 0),
        ("committed", 1_000, 0),
    ):
        pace = Pace()
        first = pace.piece()
        pace.events(board(policy, 2))
        last = board(policy, models)
        last.met = met
        pace.events(last)
        sizes.append(pace.piece()[1])
        assert pace.piece() == first  # the benchmarks of the piece before are known, others are not
    without, unmet, few, many, wide, complete, committed = sizes
    assert without == few == first[1] > many > wide == unmet > complete == committed


def test_pieces_of_many_benchmarks_are_larger():
    def after(boards, **options):
        pace = Pace(**options)
        for place, each in enumerate(boards):
            each.name = f"b{place}"
            pace.events(each)
        return pace.piece()

    records, size = after([board("trusted", 20)])
    assert after([board("trusted", 20) for _ in range(200)]) == (records, size)
    assert after([board("trusted", 20) for _ in range(15)], most_pieces=4) == (records, size)
    assert after([board("trusted", 20) for _ in range(16)], most_pieces=4) == (2 * records, 2 * size)
    assert after([board("trusted", 20) for _ in range(200)], most_pieces=4) == (4 * records, 4 * size)


@pytest.mark.parametrize("wide", ["new", "restored", "small"])
def test_a_large_piece_is_of_many_benchmarks(wide):
    """All of a piece may be of a new benchmark with many models, or of one that was there before a start: too many changes at once."""

    def records(names, each, models=20):
        return [
            json.dumps({"benchmark": name, "item_id": str(k), "model": f"m{k % models}", "score": 1}).encode()
            for k in range(each)
            for name in names
        ]

    partition, speed = Partition(), Pace(0.0, most_pieces=4)
    if wide != "new":
        models = 500 if wide == "restored" else 20
        first = [{"benchmark": "b", "item_id": "0", "model": f"m{k}", "score": 1} for k in range(models)]
        start = [json.dumps(each).encode() for each in first]
        partition.fold(Chunk(0, 0, len(start), range(len(start)), start))
    lines = [*records([f"small {k}" for k in range(24)], 250), *records(["b"], 18_000, 500 if wide == "new" else 20)]
    rest = Chunk(0, partition.off, partition.off + len(lines), range(partition.off, partition.off + len(lines)), lines)
    taken = []
    while rest is not None:
        delta = run_slices(partition.fold_in_slices(rest, speed))
        taken.append(delta.records)
        _, rest = rest.cut(delta.records)
    assert taken[:2] == [6_000, 18_000 if wide == "small" else 6_000]
