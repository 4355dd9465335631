"""States with everything in them, folded and stored as workers do, and what they come to."""

import json

from monitor.engine.chunk_fold import Partition
from monitor.serve.report_cache import ReportCache
from monitor.store.errors import StaleState
from monitor.store.redis_store import RedisStore
from monitor.view.partition_view import PartitionView
from schemas.records.chunks import Chunk
from schemas.records.ownership import owner
from tests.commands import events

MODELS = {"ada": 0.9, "bob": 0.5, "cy": 0.45, "d'\"}:{": 0.2}
SPECS = {
    "trusted": {"order": "trusted"},
    "complete": {"items": 120},
    "none": {},
    "später 测试 }:{x": {"order": "trusted", "family": {"policy": "capacity", "size": 4}},
    "five": {"order": "trusted", "alpha": 0.01},
}


def records(rng, first, last):
    """Events of all benchmarks, shuffled, with duplicates, conflicts and what is no event."""
    made = [
        event | {"cluster": event["item_id"][-1]}
        for name in SPECS
        for event in events(rng, MODELS, last - first, benchmark=name, start=first)
    ]
    made += [event | {"score": rng.choice([0, 1])} for event in rng.sample(made, 60)]
    # One model only: a newer epoch supersedes every decision on its model.
    made += [event | {"epoch": 1} for event in rng.sample([e for e in made if e["model"] == "cy"], 60)]
    rng.shuffle(made)
    return [{"declare": name, **spec} for name, spec in SPECS.items() if spec and not first] + made


def runs_and_repeats(rng):
    """Events of a benchmark whose runs end, but for one, with items that wait until then; and of one that an undeclared repeat holds."""
    made = [
        event | {"repeat": rng.randrange(3)}
        for name in ("runs", "held")
        for event in rng.sample(events(rng, MODELS, 40, benchmark=name), 150)
    ]
    declared = {"runs": {"items": 40, "repeats": "all", "missing": "ignorable"}, "held": {"items": 40}}
    repeated = [event | {"repeat": 7} for event in rng.sample(made, 40)]
    ends = [{"ended": "runs", "model": model} for model in MODELS if model != "cy"]
    return [{"declare": name, **spec} for name, spec in declared.items()] + made + repeated + ends


def _benchmark(record):
    return record.get("declare") or record.get("ended") or record["benchmark"]


def _nothing(_number, _count):
    pass


async def fold(url, topic, partitions, made, limit=200, committed=_nothing):
    """Fold records as workers do, each in the partition of its benchmark, and again what the server has lost.

    `committed` is called with a partition and how many of its records are stored.
    """
    async with await RedisStore.open(url, topic) as store:
        for number in range(partitions):
            await store.bind_log(number, f"log of {partitions}")
            partition = Partition.restore(await store.load(number))
            mine = [r for r in made if owner(_benchmark(r), partitions) == number]
            payloads = [json.dumps(record).encode() for record in mine] + [b"{"]
            begin = partition.off
            while part := payloads[partition.off - begin :][:limit]:
                off = partition.off
                chunk = Chunk(number, off, off + len(part), range(off, off + len(part)), part)
                try:
                    await store.commit(partition.fold(chunk))
                except StaleState:
                    partition = Partition.restore(await store.load(number))
                committed(number, partition.off - begin)
            if number == 0:
                for benchmark in partition.benchmarks.values():
                    await store.save_pairs(number, benchmark.key, benchmark.snapshot())


async def drain(url, topic, partitions):
    """Publish everything, to nobody."""
    async with await RedisStore.open(url, topic) as store:
        for number in range(partitions):
            await store.relayed(number, "kafka")
            while entries := await store.read_outbox(number, await store.relayed(number, "kafka")):
                await store.mark_relayed(number, "kafka", entries[-1][0])


async def stored(url, topic, partitions):
    """Each partition's state, restored; a partition holds what it owns and nothing else."""
    async with await RedisStore.open(url, topic) as store:
        restored = [Partition.restore(await store.load(number)) for number in range(partitions)]
    assert all(owner(name, partitions) == each.number for each in restored for name in each.benchmarks)
    return restored


def reports_and_changes(partitions):
    """The report of all benchmarks, and their verdict changes by id."""
    report = ReportCache(lambda: list(map(PartitionView, partitions))).report("all").as_dict()
    reports = {each["benchmark"]: each for each in report["benchmarks"]}
    changes = {
        (name, field): change.as_json()
        for partition in partitions
        for name, benchmark in partition.benchmarks.items()
        for field, change in benchmark.changes.items()
    }
    return reports, changes


async def state_of(url, topic, partitions):
    return reports_and_changes(await stored(url, topic, partitions))
