"""Random streams of every policy through the loops, against the event-by-event oracle, which shares no code with the engine.

Usage::

    [RANKWATCH_LOOPS=checked] python -m tests.loop_streams [FIRST] [LAST]

Prints the streams that differ, by their seeds. With `checked` the bounds of every array are checked.
"""

import sys
from itertools import combinations

import numpy as np

from stats.order import permutation_key
from tests.oracle import BattleOracle, Oracle
from tests.property.test_fold_laws import agree, fold, log_of

POLICIES = ("trusted", "completion", "committed")
KINDS = ("binary", "graded", "repeats", "weights", "battles")
GRADES = {0: (0, 0.25, 0.000001), 1: (1, 0.75, 0.5)}


def stream(seed):
    """A declaration and events: leads that reverse, skips, duplicates, newer epochs, ended runs, items too many."""
    rng = np.random.default_rng(seed)
    policy = POLICIES[seed % len(POLICIES)]
    kind = "binary" if policy == "committed" else KINDS[seed // len(POLICIES) % len(KINDS)]
    if kind == "battles":
        return battles(rng)
    models, items = int(rng.integers(2, 13)), int(rng.integers(8, 90))
    names, words = [f"item {k}" for k in range(items)], [f"model {k:02d}" for k in range(models)]
    spec = {"declare": "bench", "alpha": float(rng.choice([0.05, 0.2, 0.4, 1 / 16])), "order": policy}
    if policy == "completion" or (policy == "trusted" and rng.random() < 0.5):
        spec["items"] = items - int(rng.choice([0, 0, 0, 1]))
    if policy == "completion" and seed % 2:
        spec["known"] = True
    if policy == "committed":
        spec |= {"order": {"policy": policy, "seed": str(seed)}, "item_ids": names, "items": items}
        spec |= {"look": (0.2, 0.5, 0.9)[seed % 5 % 3]} if seed % 2 else {}
    spec |= {"binary": {}, "graded": {"scores": "graded"}, "repeats": {"repeats": 2}, "weights": {}}[kind]
    clusters = [f"cluster {k * k % 7 % 3}" for k in range(items)]
    if kind == "weights":
        sizes = {name: clusters.count(name) for name in sorted(set(clusters))}
        some = {name: int(rng.integers(1, 5)) for name in sizes}
        spec |= {"weights": some if rng.random() < 0.5 else "equal-clusters", "clusters": sizes}
        spec.pop("items", None)
    pairs = list(combinations(words, 2))
    family = rng.choice(["spending", "spending", "capacity", "models", "pairs"])
    if family == "capacity":
        spec["family"] = {"policy": "capacity", "size": int(rng.choice([1, 5, len(pairs)]))}
    elif family == "models":
        spec["family"] = {"models": words[: max(2, models // 2)]}
    elif family == "pairs":
        spec["family"] = {"policy": "capacity", "pairs": pairs[:: int(rng.integers(1, 4))]}
    if policy != "trusted" and kind != "weights" and rng.random() < 0.3:
        spec["missing"] = "ignorable"
    chance = rng.choice([0.05, 0.3, 0.5, 0.7, 0.95], models)
    turned = np.where(rng.random(models) < 0.3, 1 - chance, chance)
    turns = int(rng.integers(0, items + 1))
    skips, again, newer = rng.choice([0, 0.02, 0.1]), rng.choice([0, 0.05]), rng.choice([0, 0, 0.02])
    events = []
    for model in range(models):
        for place, item in enumerate(rng.permutation(items).tolist()):
            score = int(rng.random() < (chance if place < turns else turned)[model])
            if kind == "graded":
                score = float(rng.choice(GRADES[score]))
            score = None if rng.random() < skips else score
            event = {"benchmark": "bench", "item_id": names[item], "model": words[model], "score": score}
            if kind == "weights":
                event["cluster"] = clusters[item]
            if rng.random() < newer:
                event["epoch"] = int(rng.integers(0, 3))
            events.append(event)
            if kind == "repeats":
                events.append(event | {"repeat": 1, "score": int(rng.random() < chance[model])})
            if rng.random() < again:
                events.append(event | {"score": rng.choice([0, 1, None])})
    way = rng.choice(["models", "random", "late", "order"])
    if way == "random":
        events = [events[k] for k in rng.permutation(len(events)).tolist()]
    elif way == "late":
        late = set(words[::3])
        events = [e for e in events if e["model"] not in late] + [e for e in events if e["model"] in late]
    elif way == "order":
        places = {name: permutation_key(str(seed), name) for name in names}
        events.sort(key=lambda event: places[event["item_id"]])
        for k in rng.integers(0, len(events), len(events) // 20).tolist():
            events.insert(int(rng.integers(0, len(events))), events.pop(k))
    for _ in range(int(rng.integers(0, 3))):
        end = {"ended": "bench", "model": words[int(rng.integers(0, models))]}
        events.insert(int(rng.integers(len(events) // 2, len(events) + 1)), end)
    return spec, events, rng


def battles(rng):
    """A declaration and battles: ties, judges who vote again, units of two votes."""
    words, repeats = [f"model {k}" for k in range(int(rng.integers(2, 7)))], int(rng.integers(1, 3))
    spec = {"declare": "bench", "alpha": float(rng.choice([0.05, 0.2, 0.4])), "order": "trusted", "repeats": repeats}
    if rng.random() < 0.3:
        spec["family"] = {"policy": "capacity", "size": int(rng.integers(1, 6))}
    ties, bias, events = rng.choice([0, 0.2, 0.6]), rng.choice([0.5, 0.7, 0.95]), []
    for prompt in range(int(rng.integers(20, 200))):
        one, other = (words[k] for k in rng.choice(len(words), 2, replace=False))
        for judge in ("x", "y")[:repeats]:
            better = "a" if (one < other) == (rng.random() < bias) else "b"
            winner = "tie" if rng.random() < ties else better
            names = {"item_id": f"item {prompt}", "model_a": one, "model_b": other, "cluster": judge}
            events.append({"benchmark": "bench", **names, "winner": winner})
            if rng.random() < 0.05:
                events.append(events[-1] | {"winner": str(rng.choice(["a", "b", "tie"]))})
    if rng.random() < 0.5:
        events = [events[k] for k in rng.permutation(len(events)).tolist()]
    return spec, events, rng


def compare(seed):
    """Fold a stream in odd chunks, with restarts or without; fail where the oracle says something else."""
    spec, events, rng = stream(seed)
    records, places, end = log_of(spec, events, rng.integers(1, 30, 4).tolist())
    cuts = rng.integers(0, len(records), int(rng.choice([0, 3, 20]))).tolist()
    partition, _ = fold(records, end, cuts, restart=bool(rng.random() < 0.3))
    family = spec.get("family", {})
    pairs = [*combinations(family["models"], 2)] if "models" in family else family.get("pairs")
    oracle = (BattleOracle if "winner" in events[0] else Oracle)(
        alpha=spec["alpha"],
        policy=spec["order"]["policy"] if isinstance(spec["order"], dict) else spec["order"],
        item_ids=spec.get("item_ids"),
        seed=spec["order"].get("seed") if isinstance(spec["order"], dict) else None,
        items=sum(spec["clusters"].values()) if "weights" in spec else spec.get("items"),
        scores=spec.get("scores", "binary"),
        repeats=spec.get("repeats", 1),
        missing=spec.get("missing", "worst"),
        weights=spec.get("weights"),
        clusters=spec.get("clusters"),
        look=spec.get("look", 0),
        known=spec.get("known", False),
        capacity=family.get("size") or (None if pairs is None else len(pairs)),
        family_pairs=pairs,
    )
    for event, place in zip(events, places, strict=True):
        (oracle.end if "ended" in event else oracle.event)(event, place)
    agree(partition.benchmarks["bench"], oracle)
    return len(oracle.verdicts)


def main():
    first, last = (int(x) for x in (*sys.argv[1:], 0, 1000)[:2]) if len(sys.argv) > 2 else (0, 1000)
    verdicts = differ = 0
    for seed in range(first, last):
        try:
            verdicts += compare(seed)
        except AssertionError as error:
            differ += 1
            print("seed", seed, str(error).splitlines()[0] if str(error) else "differs", flush=True)
    print(f"{last - first:,} streams, {verdicts:,} verdict changes, {differ} differ")
    return differ > 0


if __name__ == "__main__":
    sys.exit(main())
