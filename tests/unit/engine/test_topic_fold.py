"""Partitions that fold a topic's records, with all that bad producers write, against the oracle of topics; no broker."""

import random
from types import SimpleNamespace

import pytest

from monitor.engine.chunk_fold import Partition
from schemas.records.chunks import ORIGIN_HEADER, Chunk, Origin
from schemas.records.ownership import owner
from tests.kafka.topic_oracle import PartitionFold, stored_state
from tests.kafka.traffic import stream

PARTITIONS = 4


@pytest.mark.parametrize("length", [60, 1000])
def test_partitions_equal_the_oracle_whatever_the_chunks(length):
    messages, events, bad = stream(random.Random(11), 9_000, PARTITIONS)
    logs = [[] for _ in range(PARTITIONS)]
    for number, value in messages:
        logs[number].append((value or b"", None))
    partitions = [Partition(number, owner=lambda name: owner(name, PARTITIONS)) for number in range(PARTITIONS)]
    folds = [PartitionFold(number, PARTITIONS) for number in range(PARTITIONS)]
    while any(partition.off < len(logs[partition.number]) for partition in partitions):
        for partition, fold in zip(partitions, folds, strict=True):
            off = partition.off
            part = logs[partition.number][off : off + length]
            if not part:
                continue
            records, origins = zip(*part, strict=True)
            delta = partition.fold(
                Chunk(partition.number, off, off + len(part), range(off, off + len(part)), records, origins)
            )
            for place, (value, origin) in enumerate(part, off):
                headers = [(ORIGIN_HEADER, origin.encode())] if origin else []
                fold.record(SimpleNamespace(headers=headers, value=value, offset=place))
            for record in delta.misrouted:  # their copies come to the end of the owner's log
                copy = (record.payload, Origin(partition.number, record.offset, record.place))
                logs[owner(record.benchmark, PARTITIONS)].append(copy)
    for partition, fold in zip(partitions, folds, strict=True):
        assert partition.counters == fold.counted()
        for name, benchmark in partition.benchmarks.items():
            state = stored_state(benchmark)
            for part, value in fold.state(name).items():
                assert state[part] == value, f"{name}: {part}"
    oracles = [oracle for fold in folds for oracle in fold.benchmarks.values()]
    assert sum(oracle.events for oracle in oracles) == events
    assert sum(len(fold.letters) for fold in folds) == bad
    assert sum(len(oracle.verdicts) for oracle in oracles) > 100
