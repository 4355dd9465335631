"""A steady pulse of events to every partition, and how long each of them waits until it is folded and stored."""

import asyncio
import json
import threading
import time
from collections import deque

from aiokafka import AIOKafkaProducer

from monitor.store.layout import Keys
from schemas.records.ownership import owner


def one_a_partition(partitions, prefix="pulse"):
    """A benchmark for each partition, by the partition."""
    names, number = {}, 0
    while len(names) < partitions:
        name = f"{prefix} {number}"
        names.setdefault(owner(name, partitions), name)
        number += 1
    return names


class Pulse:
    """Sends an event to each partition every `every` seconds from a thread; `waits` are the longest waits since `fresh`."""

    def __init__(self, cluster, redis, topic, partitions, every=0.1):
        self.names = one_a_partition(partitions)
        self._cluster, self._redis, self._topic, self._every = cluster, redis, topic, every
        self._sent = {p: deque() for p in self.names}
        self._longest = dict.fromkeys(self.names, 0.0)
        self.count, self._extra = 0, deque()
        self._end = threading.Event()
        self._threads = [threading.Thread(target=asyncio.run, args=[self._send()]), threading.Thread(target=self._look)]

    def send(self, records):
        """Send more records as (partition, key, value); return once all are accepted."""
        done = threading.Event()
        self._extra.append((records, done))
        assert done.wait(60)

    def fresh(self):
        """Forget the waits until now."""
        self._longest = dict.fromkeys(self.names, 0.0)

    def waits(self):
        """The longest time, in seconds, that an event of each partition has waited, or waits now."""
        now = time.monotonic()
        return {p: max(self._longest[p], now - self._oldest(p, now)) for p in self.names}

    def folded(self):
        """Whether no event waits for longer than a second."""
        return all(self.waiting(p) < 1 for p in self.names)

    def waiting(self, partition):
        """For how many seconds the oldest event of a partition waits now."""
        now = time.monotonic()
        return now - self._oldest(partition, now)

    def _oldest(self, partition, now):
        try:
            return self._sent[partition][0][1]
        except IndexError:
            return now

    async def _send(self):
        async with AIOKafkaProducer(bootstrap_servers=self._cluster.addresses) as producer:
            while not self._end.is_set():
                begin = time.monotonic()
                for partition, name in self.names.items():
                    event = {"benchmark": name, "item_id": str(self.count), "model": "m", "score": 1}
                    value, key = json.dumps(event).encode(), name.encode()
                    record = await producer.send_and_wait(self._topic, value, key=key, partition=partition)
                    self._sent[partition].append((record.offset, time.monotonic()))
                self.count += 1
                while self._extra:
                    records, done = self._extra.popleft()
                    sent = [await producer.send(self._topic, value, key=key, partition=p) for p, key, value in records]
                    await asyncio.gather(*sent)
                    done.set()
                await asyncio.sleep(max(0, self._every - (time.monotonic() - begin)))

    def _look(self):
        with self._redis.client() as server:
            while not self._end.is_set():
                for partition, sent in self._sent.items():
                    off, now = int(server.hget(Keys(self._topic, partition).meta, "off") or 0), time.monotonic()
                    while sent and sent[0][0] < off:
                        self._longest[partition] = max(self._longest[partition], now - sent.popleft()[1])
                time.sleep(0.02)

    def __enter__(self):
        for thread in self._threads:
            thread.start()
        return self

    def stop(self):
        """Send no more."""
        self._end.set()
        for thread in self._threads:
            thread.join()

    def __exit__(self, *_):
        self.stop()
