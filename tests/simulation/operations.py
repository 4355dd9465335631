"""What operators and large producers write besides events: runs, board changes, floods of unreadable records, records that crash."""

import json

from tests.kafka.topic_oracle import home

CRASHING = "crashes"
"""A score of this model crashes the fold; the simulation plants that."""


def operations(rng, specs, items, partitions, seconds):
    """(time, partition, value) of such records; `specs` has the declaration of each benchmark, None for one without."""
    made = []
    for _ in range(rng.randrange(8)):
        name, start = rng.choice(list(specs)), rng.uniform(0, 0.8 * seconds)
        kind = rng.choices((_runs, _life, _flood, _crash, _any_change), (4, 3, 3, 1, 1))[0]
        records = kind(rng, name, specs[name], items)
        times = sorted(rng.uniform(start, seconds) for _ in records)
        made += zip(times, [name] * len(records), records, strict=True)
    made.sort(key=lambda each: each[0])
    for time, name, record in made:
        wrong = rng.randrange(partitions) if rng.random() < 0.05 else 0
        yield time, (home(name, partitions) + wrong) % partitions, json.dumps(record).encode()


def _runs(rng, name, _, items):
    """Columns of some models, some of them broken."""
    runs = []
    for _ in range(rng.randrange(1, 4)):
        order = rng.sample(range(items), rng.randrange(1, items + 1))
        strength = rng.choice((0.02, 0.5, 0.98))
        run = {
            "benchmark": name,
            "model": f"r{rng.randrange(3)}",
            "item_ids": [f"i{item}" for item in order],
            "scores": [None if rng.random() < 0.05 else int(rng.random() < strength) for _ in order],
        }
        fault = rng.random()
        if fault < 0.1:
            run["scores"].append(1)
        elif fault < 0.2:
            run["scores"][rng.randrange(len(order))] = 2
        elif fault < 0.25:
            run["item_ids"] = []
        runs.append(run)
    return runs


def _change(name, action, title=None):
    return {"board": action, "benchmark": name} | ({} if title is None else {"title": title})


def _any_change(rng, name, *_):
    """Whatever an operator may ask for, whether the board is in that state or not."""
    actions = "archive", "restore", "delete", "reopen", "rename"
    return [_change(name, rng.choice(actions), rng.choice((None, "A title"))) for _ in range(rng.randrange(1, 5))]


def _life(rng, name, declaration, items):
    """A board is archived and restored, renamed, or deleted and begun again."""
    choice = rng.random()
    if choice < 0.3:
        return [_change(name, "archive"), _change(name, "restore")]
    if choice < 0.4:
        return [_change(name, "rename", "A title"), _change(name, "rename")]
    records = [_change(name, "delete"), _change(name, "reopen")][: 1 if choice > 0.9 else 2]
    if declaration is not None:
        records.append(declaration)
    for item in range(items):
        events = [
            {"benchmark": name, "item_id": f"j{item}", "model": model, "score": int(rng.random() < strength)}
            for model, strength in (("m0", 0.98), ("m1", 0.05))
        ]
        records.append({"events": events})
    return records


def _flood(rng, name, *_):
    """Unreadable records of a benchmark, more or fewer than set it aside, and its release. (Repeats of items would hold its sums.)"""
    records = []
    for _ in range(rng.randrange(1, 4)):
        bad = {"benchmark": name, "item_id": "i0", "model": "g", "score": 7}
        good = {"benchmark": name, "item_id": "i0", "model": "g", "score": 1}
        records.append({"events": [bad] * rng.randrange(3, 9) + [good] * rng.randrange(3)})
    return records + [{"quarantine": "release", "benchmark": name}] * (rng.random() < 0.7)


def _crash(rng, name, _, items):
    """An event or a run of the model that crashes the fold, and the release of its benchmark."""
    event = {"benchmark": name, "item_id": f"i{rng.randrange(items)}", "model": CRASHING, "score": 1}
    if rng.random() < 0.3:
        event = {"benchmark": name, "model": CRASHING, "item_ids": ["i0", "i1"], "scores": [0, 1]}
    return [event] + [{"quarantine": "release", "benchmark": name}] * (rng.random() < 0.7)
