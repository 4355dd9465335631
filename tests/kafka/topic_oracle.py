"""An offline fold of a topic in plain Python: which record counts where, by rules written here anew. Shares no code with the engine."""

import json
import math
from collections import Counter, defaultdict

from aiokafka.partitioner import murmur2

from tests.oracle import Oracle

LONGEST = 1_000_000
KINDS = {
    ("anytime", "decided"): 0,
    ("anytime_family", "decided"): 1,
    ("anytime", "reversed"): 2,
    ("anytime_family", "reversed"): 3,
    ("anytime", "invalidated"): 4,
    ("anytime_family", "invalidated"): 5,
    ("settled", "settled"): 1 << 36,
    ("settled", "invalidated"): 1 << 36 | 4,
}
ACTIONS = {"archive", "restore", "delete", "reopen", "rename"}
UNREADABLE = 9
"""What an unreadable record weighs against a benchmark; a readable event weighs 1 for it."""


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
        "known": data.get("known", False),
    }


class Board:
    """What operators have done with a board: all changes that its state allowed. None is forgotten, so what follows from them cannot
    depend on what a program forgets, and when."""

    def __init__(self):
        self.changes = []
        """(action, offset, value): the title of a rename, or how many decisions a deletion withdrew."""
        self.scored = False
        """Whether a deletion withdrew scores."""

    @property
    def state(self):
        """The last change that opens or closes decides."""
        closing = {"archive": "archived", "restore": "open", "delete": "deleted", "reopen": "open"}
        return next((closing[action] for action, *_ in reversed(self.changes) if action in closing), "open")

    @property
    def entry(self):
        """Everything as a tuple, without an undo, titles of models and late parts; None for a board without changes."""
        facts = self._facts()
        return None if facts == Board()._facts() else (*facts, None, {}, self.scored)

    def _facts(self):
        at = defaultdict(list)
        for action, offset, _ in self.changes:
            at[action].append(offset)
        deleted = max(at["delete"], default=None)
        begun = max((offset for offset in at["reopen"] if offset > (deleted or 0)), default=0)
        titles = [value for action, offset, value in self.changes if action == "rename" and offset > (deleted or 0)]
        since = {"open": begun, "archived": max(at["archive"], default=0), "deleted": deleted}[self.state]
        withdrawn = sum(value for action, _, value in self.changes if action == "delete")
        return self.state, since, 1 + len(at["reopen"]), withdrawn, titles[-1] if titles else "", deleted, begun


class Suspect:
    """The unreadable records of a benchmark, and whether it is set aside."""

    def __init__(self):
        self.weight, self.since, self.records, self.last = 0, None, 0, 0

    @property
    def entry(self):
        """Everything as a tuple; None if there is nothing to remember."""
        known = self.weight or self.since is not None
        return (self.weight, self.since, self.records, self.last) if known else None


class PartitionFold:
    """Folds the records of one partition, one after the other."""

    MOST = 500 * UNREADABLE
    """Weight beyond which a benchmark is set aside."""

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
        self.boards, self.suspects = defaultdict(Board), defaultdict(Suspect)
        self.gone = {}
        """Verdict changes of deleted boards, by id: the name, the key and the change, and the models in their order of arrival."""

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
        self.take(data, record.offset)

    def take(self, data, offset):
        """Fold the JSON value of a record; None for none."""
        if not isinstance(data, dict):
            self.one(data, offset, 0)
        elif "events" in data:
            for index, event in enumerate(data["events"]):
                self.one(event, offset, index)
        elif data.keys() <= {"quarantine", "board", "benchmark", "title"} and data.keys() & {"quarantine", "board"}:
            self.operate(data, offset)
        elif "item_ids" in data and not data.keys() & {"item_id", "declare", "ended"}:
            self.run(data, offset)
        else:
            self.one(data, offset, 0)

    def run(self, data, offset):
        """Fold the columns of a run: as its events, or not at all if the columns do not fit together."""
        columns = {"item_id": data["item_ids"], "score": data.get("scores")}
        if "clusters" in data:
            columns["cluster"] = data["clusters"]
        if not all(
            isinstance(column, list) and len(column) == len(data["item_ids"]) > 0 for column in columns.values()
        ):
            self.unreadable(data.get("benchmark"), offset, 0)
            return
        shared = {name: data[name] for name in ("benchmark", "model", "epoch") if name in data}
        events = [shared | dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
        if all(map(is_event, events)) and home(data["benchmark"], self.partitions) != self.number:
            self.misroute(offset)  # the whole run
            return
        for index, event in enumerate(events):
            self.one(event, offset, index)

    def operate(self, data, offset):
        """Do what an operator asks for."""
        name = data["benchmark"]
        if home(name, self.partitions) != self.number:
            self.misroute(offset)
        elif "quarantine" in data:
            self.suspects.pop(name, None)
        elif not self.act(data["board"], name, offset, data.get("title")):
            self.reject(name, offset, 0)

    def act(self, action, name, offset, title):
        """Change a board; return whether its state allows that."""
        board, exists, value = self.boards[name], name in self.benchmarks, None
        allowed = {
            "reopen": board.state == "deleted",
            "archive": exists and board.state == "open",
            "restore": exists and board.state == "archived",
        }
        if not allowed.get(action, exists):
            return False
        if action == "rename":
            value = "" if title in {None, name} else title
        elif action == "delete":
            board.scored |= self.benchmarks[name].events > 0
            value = self.withdraw(name, offset)
            self.suspects.pop(name, None)
        board.changes.append((action, offset, value))
        return True

    def withdraw(self, name, offset):
        """End the verdicts of a board and drop it; return how many family-wise decisions held."""
        verdicts, family_wise = self.benchmarks[name].verdicts, 0
        for (pair, procedure, kind), (_, *rest) in list(verdicts.items()):
            ended = {(pair, procedure, "invalidated"), (pair, procedure, "superseded")} & verdicts.keys()
            if kind in {"decided", "settled"} and not ended:
                verdicts[pair, procedure, "invalidated"] = ((offset, 0), *rest)
                family_wise += procedure == "anytime_family"
        state = self.state(name)
        for key, latch in state["latches"].items():
            self.gone[latch[0]] = name, key, latch, state["contestants"]
        self.declared.pop(name, None)
        self.rejected.pop(name, None)
        del self.benchmarks[name]
        return family_wise

    def misroute(self, offset):
        """Count a record of another partition."""
        self.counters["misrouted"] += 1

    def takes(self, name, offset):
        """Count something readable of a benchmark; return whether it is set aside."""
        suspect = self.suspects.get(name)
        if suspect is None:
            return False
        if suspect.since is None:
            suspect.weight = max(0, suspect.weight - 1)
            return False
        suspect.records, suspect.last = suspect.records + 1, offset
        return True

    def unreadable(self, name, offset, index):
        """Reject what cannot be read; set its benchmark aside if that is too much."""
        if isinstance(name, str) and name and home(name, self.partitions) == self.number:
            suspect = self.suspects.get(name)
            if suspect is not None and suspect.since is not None:
                self.takes(name, offset)
                return
            if self.boards[name].state == "open":
                suspect = self.suspects[name]
                suspect.weight += UNREADABLE
                if suspect.weight > self.MOST:
                    suspect.since, suspect.last = offset + 1, offset
        self.reject(name, offset, index)

    def one(self, data, offset, index):
        """Fold the record at one place."""
        if isinstance(data, dict) and "declare" in data:
            self.declare(data, offset, index)
        elif not is_event(data):
            self.unreadable(data.get("benchmark") if isinstance(data, dict) else None, offset, index)
        elif home(data["benchmark"], self.partitions) != self.number:
            self.misroute(offset)
        elif self.takes(data["benchmark"], offset):
            pass
        elif self.boards[data["benchmark"]].state != "open":
            self.reject(data["benchmark"], offset, index)
        else:
            self.benchmarks.setdefault(data["benchmark"], Oracle()).event(data, (offset, index))

    def declare(self, data, offset, index):
        """Take a declaration, unless scores have come and it is another one."""
        name = data["declare"]
        if home(name, self.partitions) != self.number:
            self.misroute(offset)
        elif self.takes(name, offset):
            pass
        elif self.boards[name].state != "open":
            self.reject(name, offset, index)
        elif name in self.benchmarks and self.benchmarks[name].events:
            if self.declared.get(name) != meaning(data):
                self.reject(name, offset, index)
        else:
            spec = self.declared[name] = meaning(data)
            self.benchmarks[name] = Oracle(**spec)

    def reject(self, benchmark, offset, index):
        """Count what was refused, in its benchmark where there is one."""
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

    def operated(self):
        """The boards and the suspects by name, where there is something to remember."""
        return tuple(
            {name: each.entry for name, each in entries.items() if each.entry is not None}
            for entries in (self.boards, self.suspects)
        )

    def state(self, name):
        """Everything of a benchmark, as plain values; see `stored_state`."""
        oracle = self.benchmarks[name]
        order = list(oracle.models)
        return {
            "counters": {
                "events": oracle.events,
                "duplicates": oracle.duplicates,
                "conflicts": oracle.conflicts,
                "filled": oracle.filled,
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
        towards = change.after or change.before  # a verdict that ends is towards nobody
        side = 0 if towards == "tie" else 1 if (towards == "a") != flip else -1
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
