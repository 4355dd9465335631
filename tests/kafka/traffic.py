"""Messages for a topic as bad producers write them, and a thread that sends them bit by bit."""

import asyncio
import json
import threading
import time
from collections import defaultdict

from aiokafka import AIOKafkaProducer

from tests.commands import PATIENCE
from tests.kafka.topic_oracle import home

BATCH = 10
SPECS = (
    {"order": "trusted"},
    {"items": None},
    {},
    {"order": "trusted", "family": {"policy": "capacity", "size": 40}},
)


def benchmarks(partitions):
    """Two names for each partition, with what is declared of them."""
    events = defaultdict(list)
    k = 0
    while sum(len(names) for names in events.values()) < 2 * partitions:
        name = f"bench {k}"
        if len(events[home(name, partitions)]) < 2:
            events[home(name, partitions)].append(name)
        k += 1
    names = [name for p in range(partitions) for name in events[p]]
    return {name: SPECS[k % len(SPECS)] for k, name in enumerate(names)}


def poison(benchmark):
    """One message of each kind that cannot be read, or cannot be read whole: (message, bad places in it)."""
    good = {"benchmark": benchmark, "item_id": "item 0", "model": "m0", "score": 1}
    text = json.dumps
    return [
        (b'{"benchmark": "x", ', 1),
        (text(good).replace('"score": 1', '"score": Infinity').encode(), 1),
        (text(good | {"score": 1.2}).encode(), 1),
        (text({key: value for key, value in good.items() if key != "item_id"}).encode(), 1),
        (text({key: value for key, value in good.items() if key != "benchmark"}).encode(), 1),
        (text(good).encode().replace(b"item 0", b"\xff\xfe"), 1),
        (None, 1),
        (b"", 1),
        (b"[1]", 1),
        (text({"events": [good | {"score": -1}, good | {"model": True}]}).encode(), 2),
        (text(good | {"attributes": {"padding": "x" * 2_000_000}}).encode(), 1),
    ]


def stream(rng, events, partitions):
    """Messages as (partition, value), and how many events and bad places are in them."""
    specs = benchmarks(partitions)
    models = 8 if events < 100_000 else 12
    items = int(events * 0.85 / len(specs) / models)
    made = []
    for name in specs:
        skills = [rng.uniform(0.2, 0.95) for _ in range(models)]
        for item in range(items):
            for k, skill in enumerate(skills):
                event = {
                    "benchmark": name,
                    "item_id": f"item {item}",
                    "model": f"m{k}",
                    "score": int(rng.random() < skill),
                }
                if rng.random() < 0.02:
                    event["score"] = rng.choice([None, True, False])
                made.append((item + rng.gauss(0, 4), event))
    for name, spec in specs.items():
        if not spec:  # graded scores, repeats and epochs
            for _, event in made:
                if event["benchmark"] == name and rng.random() < 0.2:
                    event.update(rng.choice([{"score": 0.25}, {"repeat": 1}, {"epoch": 1}]))
    copies = rng.sample(made, len(made) * 15 // 85)
    made += [
        (moment + rng.expovariate(0.2), event | ({"score": rng.choice([0, 1])} if rng.random() < 0.5 else {}))
        for moment, event in copies
    ]
    made.sort(key=lambda each: each[0])
    messages = [(home(name, partitions), _declared(name, spec, items)) for name, spec in specs.items() if spec]
    declarations = len(messages)
    at = 0
    while at < len(made):
        length = 1 if rng.random() < 0.7 else rng.randrange(2, 30)
        by_partition = defaultdict(list)
        for _, event in made[at : at + length]:
            wrong = rng.randrange(1, partitions) if rng.random() < 0.03 else 0
            by_partition[(home(event["benchmark"], partitions) + wrong) % partitions].append(event)
        at += length
        for partition, some in by_partition.items():
            value = some[0] if len(some) == 1 else {"events": some}
            messages.append((partition, json.dumps(value).encode()))
    bad = 0
    for _ in range(4):
        for value, places in poison(rng.choice(list(specs))):
            messages.insert(rng.randrange(declarations + 200, len(messages)), (rng.randrange(partitions), value))
            bad += places
    # Too late for another declaration: refused; the same once more, and astray: nothing happens.
    changed = next(name for name, spec in specs.items() if spec)
    messages.append((home(changed, partitions), json.dumps({"declare": changed, "alpha": 0.01}).encode()))
    messages.append(((home(changed, partitions) + 1) % partitions, _declared(changed, specs[changed], items)))
    return messages, len(made), bad + 1


def _declared(name, spec, items):
    return json.dumps({"declare": name} | spec | ({"items": items} if "items" in spec else {})).encode()


class Feeder(threading.Thread):
    """Sends messages, `allowed` of them at the pace given, and the rest when it has to finish."""

    def __init__(self, addresses, topic, messages, pace):
        super().__init__(daemon=True)
        self._addresses, self._topic, self._messages, self.pace = addresses, topic, messages, pace
        self.allowed = self.sent = 0
        self.fault = None
        self.start()

    def run(self):
        try:
            asyncio.run(self._run())
        except Exception as error:  # noqa: BLE001 - raised in the thread that waits
            self.fault = error

    async def _run(self):
        producer = AIOKafkaProducer(
            bootstrap_servers=self._addresses,
            enable_idempotence=True,
            acks="all",
            max_request_size=8 << 20,
            request_timeout_ms=1000 * PATIENCE,  # a batch that waits longer for a leader fails
        )
        async with producer:
            while self.sent < len(self._messages):
                some = self._messages[self.sent : min(self.sent + BATCH, self.allowed)]
                await asyncio.gather(
                    *[
                        await producer.send(self._topic, value, key=b"any", partition=partition)
                        for partition, value in some
                    ]
                )
                self.sent += len(some)
                await asyncio.sleep(BATCH / self.pace if self.pace else 0)

    def allow(self, share):
        """Let a share of all messages more go out."""
        self.allowed = min(len(self._messages), self.allowed + round(share * len(self._messages)))

    def trickle(self, count):
        """Let some messages more go out, once those allowed before are out."""
        if self.sent == self.allowed:
            self.allowed = min(len(self._messages), self.allowed + count)

    def rest(self, seconds):
        """Wait until everything allowed is out."""
        end = time.monotonic() + seconds
        while self.sent < self.allowed:
            assert self.fault is None, self.fault
            assert time.monotonic() < end, f"{self.sent} of {self.allowed} messages were sent"
            time.sleep(0.02)

    def finish(self, seconds):
        """Send all the rest at once."""
        self.pace = 0
        self.allow(1)
        self.rest(seconds)
        self.join(seconds)
