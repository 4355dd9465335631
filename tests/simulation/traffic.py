"""What producers write: a topic's worth of events as bad producers write them, at times within a run."""

import json
from operator import attrgetter
from typing import NamedTuple

from tests.kafka.topic_oracle import home
from tests.simulation.operations import operations

SPECS = (
    {"order": "trusted"},
    {"order": "trusted", "family": {"policy": "capacity", "size": 3}},
    {"items": None, "known": True},
    {},
)


class Message(NamedTuple):
    time: float
    partition: int
    value: bytes | None
    gap: int
    """Offsets before it that hold no record."""


def traffic(rng, partitions, seconds, operated=None):
    """Messages in the order of their times; `operated` is another random generator, for what operators and large producers write."""
    names = _names(rng, partitions)
    specs = {name: dict(rng.choice(SPECS)) for name in names}
    items, declared, events = rng.randrange(8, 24), dict.fromkeys(names), []
    for name, spec in specs.items():
        if spec:
            counted = {"items": items} if "items" in spec else {}
            declared[name] = {"declare": name} | spec | {"alpha": rng.choice((0.05, 0.3))} | counted
        events += _events(rng, name, items, odd=not spec)
    events = [
        event for _, event in sorted(((k + rng.gauss(0, 30), event) for k, event in enumerate(events)), key=_first)
    ]
    for _ in range(len(events) // 8):  # the same again, or with another score
        at = rng.randrange(len(events))
        changed = {"score": rng.choice((0, 1))} if rng.random() < 0.5 else {}
        events.insert(rng.randrange(at, len(events) + 1), events[at] | changed)
    declarations = [(home(name, partitions), _dump(each)) for name, each in declared.items() if each]
    bodies = declarations + _packed(rng, events, partitions)
    for _ in range(rng.randrange(6)):
        bodies.insert(rng.randrange(len(bodies) + 1), (rng.randrange(partitions), rng.choice(_POISON)))
    times = sorted(rng.uniform(0, seconds) for _ in bodies)
    messages = [
        Message(time, *body, rng.choice((0, 0, 0, 0, 0, 1, 3))) for time, body in zip(times, bodies, strict=True)
    ]
    if operated is not None:
        messages += [Message(*each, 0) for each in operations(operated, declared, items, partitions, seconds)]
    return sorted(messages, key=attrgetter("time"))


_POISON = (b'{"benchmark": "x", ', None, b"", b"[1]", b'{"events": [{"benchmark": "x"}, 3]}', b"\xff\xfe")


def _first(pair):
    return pair[0]


def _names(rng, partitions):
    """One or two names for each partition."""
    names, k = [], rng.randrange(1_000)
    for partition in range(partitions):
        for _ in range(rng.randrange(1, 3)):
            while home(f"bench {k}", partitions) != partition:
                k += 1
            names.append(f"bench {k}")
            k += 1
    return names


def _events(rng, name, items, *, odd):
    strengths = {
        f"m{k}": strength for k, strength in enumerate(rng.sample((0.02, 0.1, 0.9, 0.98), rng.randrange(2, 4)))
    }
    events = []
    for item in range(items):
        for model, strength in strengths.items():
            event = {"benchmark": name, "item_id": f"i{item}", "model": model, "score": int(rng.random() < strength)}
            if rng.random() < 0.05:
                event["score"] = None
            if odd and rng.random() < 0.2:
                event |= rng.choice(({"score": 0.25}, {"repeat": 1}, {"epoch": 1}))
            events.append(event)
    return events


def _packed(rng, events, partitions):
    """Single events, packed ones, spans of files, some on the wrong partition."""
    bodies, at, ends = [], 0, [0] * partitions
    while at < len(events):
        length = 1 if rng.random() < 0.6 else rng.randrange(2, 12)
        by_partition = {}
        for event in events[at : at + length]:
            wrong = rng.randrange(partitions) if rng.random() < 0.05 else 0
            by_partition.setdefault((home(event["benchmark"], partitions) + wrong) % partitions, []).append(event)
        at += length
        for p, some in by_partition.items():
            if rng.random() < 0.3:
                bodies.append((p, _dump(_span(p, ends[p], some))))
                ends[p] += len(some)
            else:
                bodies.append((p, _dump(some[0] if len(some) == 1 else {"events": some})))
    return bodies


def _span(partition, start, events):
    """A packed record as the importer of files makes it, with a position for each event."""
    end = start + len(events)
    source = {"path": f"/runs/{partition}.jsonl", "generation": 0, "prefix": f"{end:032x}", "line": end}
    return {"source": source, "from": start, "to": end, "events": events}


def _dump(value):
    return json.dumps(value).encode()
