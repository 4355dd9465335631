"""Compares what is stored, loaded and published with an oracle that shares no code with the engine, after every step.

The oracle (tests/kafka/topic_oracle.py) folds the records of each partition one by one. What is stored is read from the keys of the
simulated server directly, not with the store's code.
"""

import json
import struct
from hashlib import blake2b

from monitor.state_lock import StateTorn
from tests.kafka.topic_oracle import UNREADABLE, PartitionFold, home, stored_state
from tests.simulation.operations import CRASHING

MOST = 12 * UNREADABLE
"""Weight beyond which a benchmark is set aside here: a run has too few messages for the limit of the program."""


class Wrong(AssertionError):  # noqa: N818 - a verdict
    """Something is not what the log says."""


class Crashed(Wrong):
    """A process ended with an error that no fault explains: of the program or of the simulation, and no judgement of a state."""


class Expected:
    """What the fold of the records before an offset comes to."""

    def __init__(self, fold):
        self.counters, self.origins, self.sources = fold.counted(), dict(fold.origins), dict(fold.sources)
        self.letters, self.misrouted = frozenset(fold.letters), frozenset(fold.misrouted)
        self.boards, self.suspects = fold.operated()
        self.benchmarks = {name: _copy(fold.state(name)) for name in fold.benchmarks}
        self.latches = fold.gone | {
            latch[0]: (name, key, latch, state["contestants"])
            for name, state in self.benchmarks.items()
            for key, latch in state["latches"].items()
        }


def span_of(value):
    """The (path, start, generation, end, prefix, line) of a record that holds a span of a file, or None."""
    if value is None or b'"source"' not in value:
        return None
    data = json.loads(value)
    source = data["source"]
    return source["path"], data["from"], source["generation"], data["to"], source["prefix"], source["line"]


def _copy(state):
    return {name: value.copy() if isinstance(value, dict | list) else value for name, value in state.items()}


class Fold(PartitionFold):
    """Notes the places of misrouted events, skips spans that were read before, and sets a benchmark aside that crashes the fold.

    `believes`: whether the origin in the header of a record is one.
    """

    MOST = MOST

    def __init__(self, number, partitions, believes):
        super().__init__(number, partitions)
        self.misrouted, self._at, self.sources, self._believes = [], (-1, -1), {}, believes

    def record(self, record):
        if record.headers and not self._believes(record):
            record = record._replace(headers=())
        span = span_of(record.value)
        if span is not None:
            path, start, *position = span
            generation, end = self.sources.get(path, (0, 0))[:2]
            if (generation, end) != (position[0], start):
                self.counters.update(records=1, skipped_spans=1)
                return
            self.sources[path] = tuple(position)
        super().record(record)

    def take(self, data, offset):
        if isinstance(data, dict) and data.get("model") == CRASHING:
            name = data["benchmark"]
            suspect = self.suspects[name]
            ours = home(name, self.partitions) == self.number
            if ours and suspect.since is None and self.boards[name].state == "open":
                suspect.since = suspect.last = offset
        super().take(data, offset)

    def misroute(self, offset):
        super().misroute(offset)
        place = self._at[1] + 1 if self._at[0] == offset else 0
        self._at = offset, place
        self.misrouted.append(self._at)


class Judge:
    """Knows the whole log, and remembers what was stored and published."""

    def __init__(self, topic, verdicts, partitions, server):
        self._topic, self._verdicts, self._partitions, self._server = topic, verdicts, partitions, server
        self._history = [[] for _ in range(partitions)]
        self.secrets = []
        """The keys that the server has had to sign origins with, in their order; a loss of everything may be followed by another one."""
        self._folds, self._known = {}, {}
        """By partition and key: the last fold with the number of its records; what the fold comes to, by offset."""
        self._signers, self.log = {}, ""
        """`log`: the identity of the topic, which signatures cover."""
        self.stored = [0] * partitions
        """The highest offset that was ever stored."""
        self._seen = [-1] * partitions
        self.suspect = set()
        """Partitions whose state may be damaged, because the server's file was cut inside a transaction: then it must not be loaded."""
        self.replaced = False
        """Whether the topic was created again: none of its records may be folded."""
        self.letters, self.copies, self.published = set(), set(), {}
        self._starts = {}
        """How often the server had started when a change was last published."""
        self._last = {}
        self.checks = 0

    def appended(self, topic, partition, record):
        """A record has come into a topic."""
        if topic == self._topic and self.replaced:
            return
        if topic == self._topic:
            self._history[partition].append(record)
            origin = dict(record.headers).get("rankwatch-origin")
            if origin is not None:
                self.copies.add(tuple(map(int, origin.split(b":")[:3])))
        elif topic == self._verdicts:
            self._publish(record)
        else:
            headers = dict(record.headers)
            self.letters.add(tuple(int(headers[name]) for name in ("partition", "offset", "index")))

    def secret(self):
        """The key that signs origins, which the server has, or had last."""
        stored = self._server.database.keys.get(b"{%b:origins}:key" % self._topic.encode())
        if stored is not None and bytes(stored) not in self.secrets:
            self.secrets.append(bytes(stored))
            self._last.clear()  # the next fold may come to other changes
        return self.secrets[-1] if stored is None else bytes(stored)

    def _signer(self, partition, record):
        """The key that signed the origin of a record."""
        place = partition, record.offset
        if place not in self._signers:
            text, _, tag = dict(record.headers)["rankwatch-origin"].rpartition(b":")
            data = b"%b\n%b %d\n%b" % (self.log.encode(), text, partition, record.value)
            tags = {blake2b(data, key=each, digest_size=16).hexdigest().encode(): each for each in self.secrets}
            self._signers[place] = tags[tag]
        return self._signers[place]

    def expected(self, partition, off, secret=None):
        """The fold of the records before an offset, by one who believes the origins that a key has signed: the present one."""
        secret = secret or self.secret()
        known = self._known.setdefault((partition, secret), {})
        if off not in known:

            def new():
                return Fold(partition, self._partitions, lambda record: self._signer(partition, record) == secret), 0

            kept = self._folds.get((partition, secret)) or new()
            fold, done = kept
            history = self._history[partition]
            if done and history[done - 1].offset >= off:
                fold, done = new()
            while done < len(history) and history[done].offset < off:
                fold.record(history[done])
                done += 1
            if done >= kept[1]:
                self._folds[partition, secret] = fold, done
            known[off] = Expected(fold)
        return known[off]

    def check_store(self):
        """Compare what is stored, where it has moved."""
        for partition in range(self._partitions):
            off = self.stored_off(partition)
            if off == self._seen[partition]:
                continue
            self._seen[partition] = off
            self.stored[partition] = max(self.stored[partition], off)
            if not off:
                continue
            expected = self.expected(partition, off)
            self.checks += 1
            if missing := expected.letters - {place[1:] for place in self.letters if place[0] == partition}:
                raise Wrong(
                    f"partition {partition} is stored up to {off}, without the dead letters of {sorted(missing)}"
                )
            if missing := expected.misrouted - {place[1:] for place in self.copies if place[0] == partition}:
                raise Wrong(f"partition {partition} is stored up to {off}, without the copies of {sorted(missing)}")
            if partition not in self.suspect:
                _compare(f"partition {partition} as stored at {off}", self._read(partition), expected)

    def stored_off(self, partition):
        meta = self._server.database.keys.get(f"{self._tag(partition)}:meta".encode()) or {}
        return int(meta.get(b"off", b"0"))

    def _tag(self, partition):
        return f"{{{self._topic}:{partition}}}"

    def _read(self, partition):
        return read(self._server.database.keys, self._tag(partition))

    def forget(self):
        """Another state is stored now: look at all of it after the next script."""
        self._seen = [-1] * self._partitions

    def restarted(self):
        """The server has read its file."""
        self.forget()
        if self._server.dangling or self._server.flipped:
            self.suspect.update(range(self._partitions))

    def check_loaded(self, worker, starts):
        """Compare a state that a worker has loaded: if it is right, what is stored is right, unless the server has started since."""
        self.check_memory(worker)
        if starts == self._server.starts and worker.partition.off == self.stored_off(worker.number):
            self.suspect.discard(worker.number)

    def check_memory(self, worker, *, at_end=False):
        """Compare what can be read of the state in a worker's memory; nobody reads it while it changes, or when it is torn.

        Ahead of the end, what the server has lost may be a fold with an earlier key, or with two.
        """
        self.check_confirmed(worker)
        if worker._state.changing:
            return
        try:
            partition = worker.readable
        except StateTorn:
            return
        secret = self.secret()
        if len(self.secrets) > 1 and not at_end and self.stored_off(worker.number) < partition.off:
            return
        expected = self.expected(worker.number, partition.off, secret)
        self.checks += 1
        what = f"partition {worker.number} in memory at {partition.off}"
        try:
            state = _memory(partition)
        except (ValueError, IndexError, KeyError, AssertionError) as error:
            raise Wrong(f"{what} does not fit together: {error!r}") from error
        _compare(what, state, expected)

    def check_confirmed(self, worker):
        """Compare what a worker or a reader takes for stored."""
        if worker.committed > self.stored[worker.number]:
            raise Wrong(f"partition {worker.number} is reported as stored up to {worker.committed}, but never was")

    def _publish(self, record):
        """Check a verdict change that is published."""
        identifier = dict(record.headers)["ce_id"].decode()
        _, partition, change = identifier.rsplit("/", 2)
        partition = int(partition)
        self.secret()
        folds = [self.expected(partition, self.stored[partition], each).latches for each in reversed(self.secrets)]
        found = [latches[change] for latches in folds if change in latches]
        if not found:
            raise Wrong(f"{identifier} is published, but not among the changes up to {self.stored[partition]}")
        data = json.loads(record.value)
        name, key, latch, order = found[0]
        if all((data["benchmark"], *_latch(data, each[3])) != each[:3] for each in found):
            raise Wrong(f"{identifier} is published as {_latch(data, order)}, but is {key}, {latch}")
        place = tuple(map(int, change.split("-")))
        if identifier not in self.published:
            if place < self._last.get((partition, name), (-1, -1)):
                raise Wrong(f"{identifier} is published after {self._last[partition, name]}")
            self._last[partition, name] = place
        elif self.published[identifier] != record.value and len(self.secrets) == 1:
            raise Wrong(f"{identifier} is published again with other bytes")
        self.published[identifier] = record.value
        self._starts[identifier] = self._server.starts

    def waits(self, partition, change):
        """Whether a change on the outbox has to be published, or marked as published.

        A server that starts may have lost the mark with the end of its file. The change is then published again with the next one, or
        when the partition is released.
        """
        return self._starts.get(f"{self._topic}/{partition}/{change}", self._server.starts) == self._server.starts

    def check_end(self, refused):
        """Everything is folded, stored and published, but in the partitions whose log was refused."""
        wanted, possible, refused = set(), set(), {str(partition) for partition in refused}
        for partition, history in enumerate(self._history):
            if history and str(partition) not in refused:
                end = history[-1].offset + 1
                expected = self.expected(partition, end)
                folds = [self.expected(partition, end, each) for each in self.secrets]
                wanted |= {f"{self._topic}/{partition}/{change}" for change in expected.latches}
                possible |= {f"{self._topic}/{partition}/{change}" for each in folds for change in each.latches}
                letters = {place[1:] for place in self.letters if place[0] == partition}
                if not expected.letters <= letters <= frozenset().union(*(each.letters for each in folds)):
                    raise Wrong(
                        f"partition {partition} has dead letters {sorted(letters ^ expected.letters)} too many or too few"
                    )
        published = {identifier for identifier in self.published if identifier.split("/")[1] not in refused}
        if not wanted <= published <= possible:
            raise Wrong(f"published are not {sorted(wanted ^ published)}")


def _memory(partition):
    """What a worker has in memory, in the form of `Expected`."""
    return {
        "counters": partition.counters,
        "origins": partition.origins,
        "sources": {path: tuple(source) for path, source in partition.sources.items()},
        "boards": {name: tuple(entry) for name, *entry, _ in partition.boards},
        "suspects": {
            each.benchmark: (each.weight, each.since, each.records, each.last)
            for each in partition.quarantine._suspects.values()
        },
        "benchmarks": {name: stored_state(benchmark) for name, benchmark in partition.benchmarks.items()},
    }


def _compare(what, state, expected):
    for name in ("counters", "origins", "sources", "boards", "suspects"):
        if state[name] != getattr(expected, name):
            raise Wrong(f"{what}: {name} {state[name]}, expected {getattr(expected, name)}")
    if state["benchmarks"].keys() != expected.benchmarks.keys():
        raise Wrong(f"{what}: benchmarks {sorted(state['benchmarks'].keys() ^ expected.benchmarks.keys())}")
    for name, benchmark in state["benchmarks"].items():
        for part, value in benchmark.items():
            if value != expected.benchmarks[name][part]:
                raise Wrong(f"{what}, {name}: {part} {value}, expected {expected.benchmarks[name][part]}")


def read(keys, tag):
    """What is stored under a tag, as plain values: the layout of monitor/store/layout.py, decoded here once more."""
    meta = keys.get(f"{tag}:meta".encode()) or {}
    benchmarks = {}
    for key, entry in (keys.get(f"{tag}:benchmarks".encode()) or {}).items():
        name = json.loads(entry)[2]

        def get(kind, key=key):
            return keys.get(f"{tag}:{kind}:".encode() + key)

        spec = get("spec")
        rows = list(map(json.loads, (get("rows") or b"").splitlines()))
        contestants = [tuple(json.loads(line)) for line in (get("models") or b"").splitlines()]
        values = get("values") or b""
        codes = [None, None, 0.0, 1.0, *(x / 10**12 for x in struct.unpack(f"<{len(values) // 8}q", values))]
        scores = {}
        for place, contestant in enumerate(contestants):
            column = keys.get(f"{tag}:scores:".encode() + key + b":%d" % place) or b""
            for (item, repeat, _), code in zip(rows, column, strict=False):
                if code:
                    scores[item, repeat, contestant] = codes[code]
        stored = bytes(get("latches") or b"")  # not the server's own buffer, which could not grow meanwhile
        latches = dict(_stored_latch(record, contestants) for record in struct.iter_unpack("<qQiiiqddIb", stored))
        benchmarks[name] = {
            "counters": json.loads(spec[b"counters"]),
            "contestants": contestants,
            "items": list(dict.fromkeys(row[0] for row in rows)),
            "scores": scores,
            "latches": latches,
        }
    origins = {int(k[7:]): tuple(json.loads(v)) for k, v in meta.items() if k.startswith(b"origin:")}
    sources = {path: tuple(s) for path, *s in (json.loads(v) for k, v in meta.items() if k.startswith(b"source:"))}
    boards = {name: tuple(entry) for name, *entry, _ in _listed(meta, b"board:")}
    suspects = {name: (weight, since, *counts) for name, weight, since, _, *counts in _listed(meta, b"quarantine:")}
    return {
        "counters": json.loads(meta[b"counters"]),
        "origins": origins,
        "sources": sources,
        "boards": boards,
        "suspects": suspects,
        "benchmarks": benchmarks,
    }


def _listed(meta, prefix):
    """The lists in some fields of `:meta:`; an empty field has none."""
    return [json.loads(value) for field, value in meta.items() if field.startswith(prefix) and value]


def _latch(change, order):
    """A verdict change as the oracle names it: its key, and (id, side, n, b, c) with the pair in the order of arrival."""
    named = (change["model_a"], change["epoch_a"]), (change["model_b"], change["epoch_b"])
    pair = tuple(sorted(named, key=order.index))
    flip, evidence = pair != named, change["evidence"]
    b, c = (evidence["c"], evidence["b"]) if flip else (evidence["b"], evidence["c"])
    towards = change["after"] or change["before"]  # a verdict that ends is towards nobody
    side = 0 if towards == "tie" else 1 if (towards == "a") != flip else -1
    return (pair, change["procedure"], change["kind"]), (change["id"], side, evidence["n"], b, c)


def _stored_latch(record, order):
    """The same of a record of `:latches:`."""
    offset, sequence, n, _, b, lead, _, _, _, side = record
    number, settled, code = sequence >> 3 & (1 << 33) - 1, sequence >> 36 & 1, sequence & 7
    first, second = next((i, j) for j in range(len(order)) for i in range(j) if j * (j - 1) // 2 + i == number)
    claim = "settled" if settled else ("anytime", "anytime_family")[code & 1]
    kind = "settled" if settled and not code >> 1 else ("decided", "reversed", "invalidated", "superseded")[code >> 1]
    key = ((order[first], order[second]), claim, kind)
    return key, (f"{offset}-{sequence}", 0 if abs(side) == 2 else side, n, b, b - lead)
