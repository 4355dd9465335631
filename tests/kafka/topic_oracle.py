"""An offline fold of a topic in plain Python: which record counts where, by rules written here anew. Shares no code with the engine."""

import json
import math
from collections import Counter

from aiokafka.partitioner import murmur2

from tests.oracle import Oracle

LONGEST = 1_000_000
KINDS = {
    ("anytime", "decided"): 0,
    ("anytime_family", "decided"): 1,
    ("anytime", "reversed"): 2,
    ("anytime_family", "reversed"): 3,
    ("settled", "settled"): 1 << 36,
}


def home(benchmark, partitions):
    """Where Kafka's own default partitioner puts the key `benchmark`."""
    return (murmur2(benchmark.encode()) & 0x7FFFFFFF) % partitions


def is_event(data):
    """Whether a JSON value is an event that counts."""
    if not isinstance(data, dict):
        return False
    names = [data.get(name) for name in ("benchmark", "item_id", "model")]
    score = data.get("score", "missing")
    number = isinstance(score, int | float) and math.isfinite(score) and 0 <= score <= 1
    return all(isinstance(name, str) and name for name in names) and (score is None or number)


def meaning(data):
    """What a declaration says, with or without its defaults written out."""
    order, family = data.get("order"), data.get("family") or {}
    policy = order.get("policy") if isinstance(order, dict) else order
    items = data.get("items")
    return {
        "alpha": data.get("alpha", 0.05),
        "policy": policy or ("completion" if items else "none"),
        "items": items,
        "capacity": family.get("size"),
    }


class PartitionFold:
    """Folds the records of one partition, one after the other."""

    def __init__(self, number, partitions):
        self.number, self.partitions = number, partitions
        self.benchmarks = {}
        self.declared = {}
        self.counters = Counter()
        self.rejected = Counter()
        """By benchmark."""
        self.letters = set()
        """(offset, index) of everything that could not be read."""
        self.origins = {}

    def record(self, record):
        """Fold a record of the topic."""
        self.counters["records"] += 1
        origin = dict(record.headers).get("rankwatch-origin")
        if origin is not None:
            partition, offset, place = map(int, origin.split(b":")[:3])
            if (offset, place) <= self.origins.get(partition, (-1, -1)):
                return
            self.origins[partition] = (offset, place)
            self.counters["republished"] += 1
        value = record.value or b""
        try:
            data = json.loads(value.decode()) if len(value) <= LONGEST else None
        except ValueError:
            data = None
        if isinstance(data, dict) and "events" in data:
            for index, event in enumerate(data["events"]):
                self.one(event, record.offset, index)
        else:
            self.one(data, record.offset, 0)

    def one(self, data, offset, index):
        """Fold the record at one place."""
        if isinstance(data, dict) and "declare" in data:
            self.declare(data, offset, index)
        elif not is_event(data):
            self.reject(data.get("benchmark") if isinstance(data, dict) else None, offset, index)
        elif home(data["benchmark"], self.partitions) != self.number:
            self.counters["misrouted"] += 1
        else:
            self.benchmarks.setdefault(data["benchmark"], Oracle()).event(data, (offset, index))

    def declare(self, data, offset, index):
        """Take a declaration, unless scores have come and it is another one."""
        name = data["declare"]
        if home(name, self.partitions) != self.number:
            self.counters["misrouted"] += 1
        elif name in self.benchmarks and self.benchmarks[name].events:
            if self.declared.get(name) != meaning(data):
                self.reject(name, offset, index)
        else:
            spec = self.declared[name] = meaning(data)
            self.benchmarks[name] = Oracle(**spec)

    def reject(self, benchmark, offset, index):
        """Count what could not be read, in its benchmark where there is one."""
        self.letters.add((offset, index))
        if benchmark in self.benchmarks:
            self.rejected[benchmark] += 1
        else:
            self.counters["rejected"] += 1

    def counted(self):
        """The partition's counters."""
        return {
            name: self.counters[name] for name in ("records", "rejected", "skipped_spans", "misrouted", "republished")
        }

    def state(self, name):
        """Everything of a benchmark, as plain values; see `stored_state`."""
        oracle = self.benchmarks[name]
        order = list(oracle.models)
        return {
            "counters": {
                "events": oracle.events,
                "duplicates": oracle.duplicates,
                "conflicts": oracle.conflicts,
                "rejected": self.rejected[name],
            },
            "contestants": order,
            "items": list(oracle.items),
            "scores": oracle.scores,
            "pairs": {pair: tuple(count) for pair, count in oracle.counts.items() if count[0]},
            "family": oracle.family,
            "latches": {key: _latch(order, key, value) for key, value in oracle.verdicts.items()},
        }


def _latch(order, key, value):
    """The id of a latch, the side and n, b, c; pair and side in the order of arrival."""
    (first, second), procedure, kind = key
    (offset, index), side, n, b, c = value
    i, j = order.index(first), order.index(second)
    pair = j * (j - 1) // 2 + i
    return f"{offset}-{index << 38 | pair << 3 | KINDS[procedure, kind]}", side, n, b, c


def stored_state(benchmark):
    """What the service has stored of a benchmark, in the form of `PartitionFold.state`."""
    order = [tuple(contestant) for contestant in benchmark.contestants]
    members = [(order[i], order[j]) for j in range(len(order)) for i in range(j)]
    codes = [None, None, *(value / 10**12 for value in benchmark.table.code_of)]
    latches = {}
    for field, change in benchmark.changes.items():
        number, procedure, kind = field.split(":")
        pair = members[int(number)]
        named = (change.model_a, change.epoch_a), (change.model_b, change.epoch_b)
        assert named == tuple(sorted(pair))
        assert (change.benchmark, change.procedure, change.kind) == (benchmark.name, procedure, kind)
        flip = named != pair
        evidence = change.evidence
        b, c = (evidence.c, evidence.b) if flip else (evidence.b, evidence.c)
        side = 0 if change.after == "tie" else 1 if (change.after == "a") != flip else -1
        latches[pair, procedure, kind] = (change.id, side, evidence.n, b, c)
    return {
        "counters": benchmark.counters,
        "contestants": order,
        "items": [key.item for key in benchmark.item_keys],
        "scores": {
            (row.item, row.repeat, contestant): codes[code]
            for row, line in zip(benchmark.rows, benchmark.matrix().tolist(), strict=True)
            for contestant, code in zip(order, line, strict=True)
            if code
        },
        "pairs": {
            pair: (int(benchmark.n[k]), int(benchmark.b[k]), int(benchmark.c[k]))
            for k, pair in enumerate(members)
            if benchmark.n[k]
        },
        "family": {pair: int(benchmark.family_index[k]) for k, pair in enumerate(members) if benchmark.family_index[k]},
        "latches": latches,
    }
