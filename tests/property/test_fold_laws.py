"""Laws of the fold: any chunking, any restart, any way of packing gives what an event-by-event oracle gives."""

import json
import random
from dataclasses import replace
from itertools import combinations, pairwise
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from monitor.engine.chunk_fold import Partition
from monitor.engine.state.restore import restore_benchmark
from schemas.records.chunks import Chunk
from stats.order import permutation_key
from tests.memory_store import MemoryStore
from tests.oracle import Oracle

MODELS = ["delta", "alpha", "charlie", "bravo"]


@st.composite
def streams(draw):
    """A declaration and a stream in which some model is often much better, with everything odd in it."""
    policy = draw(st.sampled_from(["none", "trusted", "completion", "committed"]))
    items = draw(st.integers(8, 75))
    blocks = draw(st.sampled_from(["none", "blocks", "random"]))
    graded = draw(st.integers(0, 9)) == 0
    spec = {"declare": "bench", "alpha": draw(st.sampled_from([0.05, 0.2, 0.4])), "order": policy}
    if policy == "completion" or (policy == "trusted" and draw(st.booleans())):
        spec["items"] = max(1, items - draw(st.sampled_from([0, 0, 0, 2])))
    names = [f"item {item}" for item in range(items)]
    if policy == "committed" or draw(st.integers(0, 2)) == 0:
        listed = draw(st.sampled_from([names, names[:-2], names[::-1], ["one more", *names]]))
        spec |= {"item_ids": listed, "items": len(listed)}
    if policy == "committed":
        spec["order"] = {"policy": policy, "seed": draw(st.sampled_from(["one", "two", "three"]))}
    kind = (
        "mixed"
        if graded
        else "binary"
        if policy == "committed"
        else draw(st.sampled_from(["binary", "graded", "repeats"]))
    )
    if kind == "graded":
        spec["scores"] = "graded"
    elif kind == "repeats":
        spec["repeats"] = draw(st.sampled_from([2, 3, "all"]))
    if policy in {"completion", "committed"} and draw(st.booleans()):
        spec["missing"] = "ignorable"
    extra = draw(st.sampled_from([0, 0, 0, 0.01, 0.2]))
    labels = draw(st.sampled_from([[0, 1, 2], [1, 2, 3], [7, 0, 2**31 - 1, 12]]))
    family = draw(st.sampled_from(["spending", "capacity", "pairs", "models"]))
    if family == "capacity":
        spec["family"] = {"policy": "capacity", "size": draw(st.integers(1, 6))}
    elif family == "pairs":
        spec["family"] = {"policy": "capacity", "pairs": [["alpha", "delta"], ["bravo", "alpha"]]}
    elif family == "models":
        spec["family"] = {"models": draw(st.permutations([*MODELS, "no scores"]))[: draw(st.integers(2, 5))]}
    strength = {model: draw(st.sampled_from([0.05, 0.5, 0.95])) for model in MODELS}
    rng = random.Random(draw(st.integers(0, 2**32)))
    events = []
    for item in range(items):
        for model in MODELS:
            right = rng.random() < strength[model]
            if rng.random() < 0.02:
                strength[model] = 1 - strength[model]
            score = (
                rng.choice([0.5, 0.25, 1])
                if graded and rng.random() < 0.02
                else rng.choice([int(right), bool(right), float(right)])
            )
            if kind == "graded":
                score = rng.choice([0.75, 1, 0.5, 1] if right else [0, 0.25, 0.000001, 0])
            events.append({"benchmark": "bench", "item_id": f"item {item}", "model": model, "score": score})
            if blocks != "none" and rng.random() < 0.98:
                events[-1]["cluster"] = f"cluster {item // 24 if blocks == 'blocks' else rng.randrange(3)}"
            if rng.random() < 0.03:
                events[-1]["score"] = None
            if kind == "repeats":
                count = 3 if spec["repeats"] == "all" else spec["repeats"]
                same = [
                    events[-1]
                    | {"repeat": k, "score": rng.choice([int(rng.random() < strength[model])] * 20 + [None, 0.3])}
                    for k in rng.sample(labels, min(count, len(labels)))
                ]
                events[-1:] = [event for event in same if rng.random() < 0.95]
                if not events:
                    continue
            elif rng.random() < 0.03:
                events[-1]["repeat"] = rng.choice(labels)
            if rng.random() < extra:
                events.append(events[-1] | {"repeat": rng.choice(labels)})
            if rng.random() < 0.03:
                events[-1]["epoch"] = rng.randrange(2)
            if rng.random() < 0.05:
                events.append({**events[-1], "score": rng.choice([0, 1, None] if kind == "binary" else [0, 1, 0.4])})
    ends = [
        draw(
            st.sampled_from(
                [
                    {},
                    {"model": "alpha"},
                    {"model": "delta"},
                    {"model": "bravo", "epoch": 1, "base": 0},
                    {"epoch": 1, "base": 0},
                ]
            )
        )
        for _ in range(draw(st.integers(0, 3)))
    ]
    order = draw(st.sampled_from(["items", "models", "random", "committed"]))
    if order == "models":
        events.sort(key=lambda e: e["model"])
    elif order == "random":
        rng.shuffle(events)
    elif order == "committed":
        seed = spec["order"].get("seed", "") if policy == "committed" else ""
        events.sort(key=lambda e: permutation_key(seed, e["item_id"]))
        for k in rng.sample(range(len(events)), len(events) // 20):
            events.insert(rng.randrange(len(events)), events.pop(k))
    for end in ends:
        events.insert(rng.randint(len(events) // 2, len(events)), {"ended": "bench", **end})
    return spec, events


def log_of(spec, events, sizes):
    """Records of a log: the declaration, then runs of events, as columns where they can be, else packed or one a record, with offsets."""
    records, places, offset, k = [(0, json.dumps(spec).encode())], [], 10, 0
    while k < len(events):
        size = sizes[k % len(sizes)]
        run = events[k : k + size]
        if size > 1:
            records.append((offset, json.dumps(columns_of(run) or {"events": run}).encode()))
            places += [(offset, index) for index in range(len(run))]
            offset += 7
        else:
            records.append((offset, json.dumps(run[0]).encode()))
            places.append((offset, 0))
            offset += 3
        k += len(run)
    return records, places, offset


def columns_of(run):
    """The run message of consecutive events; None if they are not of one run, or have repeats."""
    shared = {(event.get("model"), event.get("epoch", 0)) for event in run}
    if len(shared) > 1 or any(event.keys() & {"ended", "winner"} or event.get("repeat") for event in run):
        return None
    ((model, epoch),) = shared
    columns = {name: [event.get(field) for event in run] for name, field in COLUMNS.items()}
    if set(columns["clusters"]) == {None}:
        del columns["clusters"]
    return {"benchmark": "bench", "model": model, "epoch": epoch, **columns}


COLUMNS = {"item_ids": "item_id", "scores": "score", "clusters": "cluster"}


def fold(records, end, cuts, *, restart):
    """Fold a log in chunks that end at the cuts; with `restart`, through the store each time."""
    store, partition = MemoryStore(), Partition()
    bounds = sorted({0, len(records), *(cut % len(records) for cut in cuts)})
    for low, high in pairwise(bounds):
        part = records[low:high]
        stop = records[high][0] if high < len(records) else end
        chunk = Chunk(0, part[0][0], stop, [o for o, _ in part], [r for _, r in part])
        store.commit(partition.fold(chunk))
        if restart:
            partition = Partition.restore(store.state)
    return partition, store


def essence(partition):
    """Everything of a benchmark that must not depend on chunking or restarts."""
    benchmark = partition.benchmarks["bench"]
    pairs, contestants = benchmark.pairs, len(benchmark.contestants)
    return {
        "scores": [
            [benchmark.table.by_code[code] if code >= 2 else -code for code in row]
            for row in benchmark.matrix().tolist()
        ],
        "rows": benchmark.rows,
        "contestants": benchmark.contestants,
        "pairs": [getattr(benchmark, name)[:pairs].tolist() for name in ("n", "b", "c", "family_index")],
        "sums": [getattr(benchmark, name)[:contestants].tolist() for name in ("scored", "skipped", "total")],
        "latched": {name: claim.side[:pairs].tolist() for name, claim in benchmark.claims.items()},
        "peaks": benchmark.can_decide
        and {
            name: np.where((claim.side[:pairs] == 0) & ~benchmark.closed[:pairs], claim.peak[:pairs], 0).tolist()
            for name, claim in benchmark.claims.items()
        },
        "changes": dict(sorted(benchmark.changes.items())),
        "counters": dict(benchmark.counters),
        "arrival": np.pad(benchmark.arrival.state, ((0, contestants - len(benchmark.arrival.state)), (0, 0))).tolist(),
        "finding": benchmark.arrival.finding,
        "prefixes": benchmark.committed
        and [benchmark.committed.reached.tolist(), {k: v.tolist() for k, v in benchmark.committed.sums.items()}],
        "graded": benchmark.graded_pairs
        and [benchmark.graded_pairs.capital[:pairs].tolist(), benchmark.graded_pairs.lead[:pairs].tolist()],
        "items": benchmark.undeclared or [benchmark.item_values[row].tolist() for row in benchmark.item_codes()],
        "mixed": benchmark.mixed,
        "conflicts": [benchmark.conflicts.listed.tolist(), benchmark.conflicts.by_contestant(contestants).tolist()],
        "ended": benchmark.ended,
    }


CHUNKINGS = st.lists(st.integers(0, 10_000), max_size=12)
SIZES = st.lists(st.integers(1, 30), min_size=1, max_size=5)


@settings(max_examples=60, deadline=None)
@given(streams(), SIZES, CHUNKINGS)
def test_the_fold_agrees_with_the_oracle_event_by_event(stream, sizes, cuts):
    spec, events = stream
    records, places, end = log_of(spec, events, sizes)
    partition, _ = fold(records, end, cuts, restart=False)
    family = spec.get("family", {})
    pairs = [*combinations(family["models"], 2)] if "models" in family else family.get("pairs")
    capacity = family.get("size") or (None if pairs is None else len(pairs))
    oracle = Oracle(
        alpha=spec["alpha"],
        policy=spec["order"]["policy"] if isinstance(spec["order"], dict) else spec["order"],
        item_ids=spec.get("item_ids"),
        seed=spec["order"].get("seed") if isinstance(spec["order"], dict) else None,
        items=spec.get("items"),
        scores=spec.get("scores", "binary"),
        repeats=spec.get("repeats", 1),
        missing=spec.get("missing", "worst"),
        capacity=capacity,
        family_pairs=pairs,
    )
    for event, place in zip(events, places, strict=True):
        (oracle.end if "ended" in event else oracle.event)(event, place)
    agree(partition.benchmarks["bench"], oracle)


def agree(benchmark, oracle):
    """Assert that the fold came to the counters, sums, family and latches of the oracle."""
    assert benchmark.counters == {
        "events": oracle.events,
        "duplicates": oracle.duplicates,
        "conflicts": oracle.conflicts,
        "filled": oracle.filled,
        "rejected": oracle.rejected,
    }
    names = [tuple(c) for c in benchmark.contestants]
    assert names == list(oracle.models)
    assert bool(benchmark.undeclared) == oracle.held
    assert {names[k] for k in benchmark.ended} == oracle.ended
    if oracle.held:
        assert not benchmark.n.any()
    graded = not benchmark.binary
    for j in range(len(names)):
        for i in range(j):
            p = j * (j - 1) // 2 + i
            n, b, c = oracle.counts[names[i], names[j]]
            assert benchmark.n[p] == n or oracle.held
            if not graded and not oracle.held:
                assert (benchmark.b[p], benchmark.c[p]) == (b, c)
            assert benchmark.family_index[p] == oracle.family.get((names[i], names[j]), 0)
            if benchmark.committed and not graded:
                sums = [int(benchmark.committed.sums[name][p]) for name in ("n", "b", "c_worst", "b_best", "c")]
                assert sums == oracle.prefixes[names[i], names[j]][1:] or names[i][0] == names[j][0]
    states = {}
    for field, change in benchmark.changes.items():
        p, procedure, kind = field.split(":")
        j = next(k for k in range(len(names)) if k * (k - 1) // 2 <= int(p) < k * (k + 1) // 2)
        i = int(p) - j * (j - 1) // 2
        offset, sequence = map(int, change.id.split("-"))
        swapped = names[i] > names[j]
        assert (change.model_a, change.epoch_a) < (change.model_b, change.epoch_b)
        evidence = change.evidence
        if benchmark.graded and benchmark.weighting is None:
            differences = oracle.differences[names[i], names[j]][: evidence.n]
            assert evidence.gap == pytest.approx(
                float(sum(differences)) / evidence.n * (-1 if swapped else 1), abs=1e-9
            )
        wins, losses = (evidence.c, evidence.b) if swapped else (evidence.b, evidence.c)
        outcome = change.before if change.after is None else change.after
        side = 0 if outcome == "tie" else 1 if (outcome == "a") != swapped else -1
        states[(names[i], names[j]), procedure, kind] = ((offset, sequence >> 38), side, evidence.n, wins, losses)
    assert states == oracle.verdicts
    assert (benchmark.arrival.finding is not None) == (oracle.suspect_at is not None)


@pytest.mark.parametrize(
    ("order", "policy"),
    [
        ("models", "trusted"),
        pytest.param("items", "trusted", marks=pytest.mark.full),
        pytest.param("random", "trusted", marks=pytest.mark.full),
        pytest.param("random", "completion", marks=pytest.mark.full),
    ],
)
def test_the_fold_of_many_models_agrees_with_the_oracle(order, policy):
    """Many models at once take other ways through the sums of a chunk than few of them: here each chunk touches few, most, or all."""
    rng, models, items = random.Random(order), 40, 24
    strength = [rng.choice([0.1, 0.5, 0.6, 0.95]) for _ in range(models)]
    turned = [p if rng.random() < 0.8 else 1 - p for p in strength]
    events = [
        {
            "benchmark": "bench",
            "item_id": str(item),
            "model": f"model {model - (model % 8 == 1)}",
            "epoch": int(model % 8 == 1),
            "score": int(rng.random() < (strength if item < 12 else turned)[model]) if rng.random() < 0.98 else None,
        }
        for model in range(models)
        for item in range(items)
    ]
    if order == "items":
        events.sort(key=lambda e: int(e["item_id"]))
    elif order == "random":
        rng.shuffle(events)
    events += events[100:120]
    spec = {"declare": "bench", "order": policy, "alpha": 0.2} | ({"items": items} if policy == "completion" else {})
    records, places, end = log_of(spec, events, [1])
    partition, store = fold(records, end, [*range(3, 300, 37), 600], restart=False)
    oracle = Oracle(alpha=0.2, policy=policy, items=spec.get("items"))
    for event, place in zip(events, places, strict=True):
        oracle.event(event, place)
    agree(partition.benchmarks["bench"], oracle)
    assert len(oracle.verdicts) > 150
    assert essence(Partition.restore(store.state)) == essence(partition)


def every_way(log, cuts, restart, at_once):
    """Fold a log as a whole, and in chunks with new items one by one; return both partitions, and what is stored of the second."""
    records, _, end = log
    whole, _ = fold(records, end, [], restart=False)
    with (
        patch("monitor.engine.chunk_fold.PIECE_RECORDS", at_once),
        patch("monitor.engine.fold.locate._add_items", return_value=None),
    ):
        cut, store = fold(records, end, cuts, restart=restart)
    return whole, cut, Partition.restore(store.state)


@settings(max_examples=40, deadline=None)
@given(streams(), SIZES, CHUNKINGS, st.booleans(), st.integers(1, 40))
def test_chunking_and_restarts_change_nothing(stream, sizes, cuts, restart, at_once):
    spec, events = stream
    whole, *others = every_way(log_of(spec, events, sizes), cuts, restart, at_once)
    assert [essence(each) for each in others] == [essence(whole)] * len(others)


@settings(max_examples=40, deadline=None)
@given(streams(), SIZES, CHUNKINGS)
def test_replaying_the_whole_log_only_adds_duplicates(stream, sizes, cuts):
    spec, events = stream
    records, _, end = log_of(spec, events, sizes)
    partition, store = fold(records, end, cuts, restart=False)
    once = essence(partition)
    # An end may find more runs when it comes again: it ends what has begun by then.
    events = [event for event in events if "ended" not in event]
    repeated, _, _ = log_of(spec, events, sizes)
    again = [(offset + end, record) for offset, record in repeated[1:]]
    chunk = Chunk(0, end, 2 * end, [o for o, _ in again], [r for _, r in again])
    store.commit(partition.fold(chunk))
    twice = essence(partition)
    counters = once["counters"]
    assert twice["counters"]["events"] == 2 * counters["events"]
    # A skip that a score has filled since is a conflict when it comes again: a skip after a score.
    fresh = counters["events"] - counters["duplicates"] - counters["conflicts"]
    again = [twice["counters"][name] - 2 * counters[name] for name in ("duplicates", "conflicts")]
    assert sum(again) == fresh
    assert again[1] <= sum(event["score"] is None for event in events)
    kept = once.keys() - {"counters", "conflicts"}
    assert {k: once[k] for k in kept} == {k: twice[k] for k in kept}
    assert once["conflicts"][0] == twice["conflicts"][0][: len(once["conflicts"][0])]


@settings(max_examples=40, deadline=None)
@given(streams(), CHUNKINGS)
def test_pair_snapshots_equal_what_the_rows_give(stream, cuts):
    spec, events = stream
    records, _, end = log_of(spec, events, [5])
    partition, store = fold(records, end, cuts, restart=False)
    stored = store.state.benchmarks[0]
    stored_with = replace(stored, pairs=partition.benchmarks["bench"].snapshot())

    restored = restore_benchmark(stored_with)
    rebuilt = restore_benchmark(stored)
    for name in ("n", "b", "c"):
        assert getattr(restored, name)[: restored.pairs].tolist() == getattr(rebuilt, name)[: rebuilt.pairs].tolist()
