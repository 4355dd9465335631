"""What a topic comes to in a new store that meets no fault, byte for byte."""

import asyncio
import json
from itertools import groupby
from operator import attrgetter

from monitor.engine.chunk_fold import Partition
from monitor.log.kafka.records import chunks
from monitor.store.layout import Keys, origin_secret_key
from monitor.store.redis_store import RedisStore
from schemas.records.ownership import owner
from tests.kafka.records import read_all

_OF_THE_WAY = {"meta": {b"writer", b"seq", b"log", b"seal"}, "spec": {b"off", b"at", b"seal"}}
"""Fields that name who wrote, when, from where and in which chunk, and the digests over them."""

_OF_THE_PACE = {"pairs", "latched_at", "outbox", "relays", "peaks"}
"""Keys that depend on when a worker saved, published or looked; loading checks what they say."""


def stored_bytes(redis, topic, numbers):
    """Every key of a topic's state and its value, but for what depends on the way to it."""
    found = {}
    for number in range(numbers):
        tag = Keys(topic, number).tag
        for key, value in redis.contents(f"{tag}:*").items():
            kind = key.decode().removeprefix(f"{tag}:").partition(":")[0]
            if kind not in _OF_THE_PACE:
                found[key] = _content(kind, value)
    return found


def _content(kind, value):
    if kind == "benchmarks":  # in their order, without the chunk in which each began
        return [json.loads(place)[2] for place in sorted(value.values(), key=json.loads)]
    if kind in _OF_THE_WAY:
        return {field: content for field, content in value.items() if field not in _OF_THE_WAY[kind]}
    return value


async def _fold(cluster, redis, topic, numbers, faulty):
    """Fold all records of a topic, each partition as one chunk, with the key of the faulty server that verifies origins."""
    secret = origin_secret_key(topic)
    with faulty.client() as old, redis.client() as new:
        new.set(secret, old.get(secret))
        log, ends = zip(*(old.hmget(Keys(topic, number).meta, "log", "off") for number in range(numbers)), strict=True)
    records = {number: list(mine) for number, mine in groupby(await read_all(cluster, topic), attrgetter("partition"))}
    async with await RedisStore.open(redis.url, topic) as store:
        for number, mine in records.items():
            await store.load(number)
            partition = Partition(number, owner=lambda name: owner(name, numbers))
            key = await store.origin_key(log[number].decode())
            for chunk in chunks(mine, number, 0, int(ends[number]), 1 << 30, key):
                await store.commit(partition.fold(chunk))


def assert_same_bytes(cluster, redis, clean, topic, numbers):
    """The state that a service has left is that of a clean fold of its topic; return how many keys that are."""
    asyncio.run(_fold(cluster, clean, topic, numbers, redis))
    state, wanted = stored_bytes(redis, topic, numbers), stored_bytes(clean, topic, numbers)
    assert set(state) == set(wanted)
    different = [key for key in wanted if state[key] != wanted[key]]
    assert not different, {key: (state[key], wanted[key]) for key in different[:3]}
    return len(wanted)
