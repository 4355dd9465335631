"""Verdict changes that stay in columns until they are read."""

import pytest

from monitor.engine.chunk import Chunk
from monitor.engine.partition import Partition
from tests.golden.verdict_digests import POLICIES, made


@pytest.mark.parametrize("policy", POLICIES)
def test_what_is_stored_is_what_a_reader_makes(policy):
    records = made(2, POLICIES[policy], models=6, items=120)
    delta = Partition().fold(Chunk(0, 0, len(records), range(len(records)), records))
    (benchmark,) = delta.benchmarks
    stored = [(f"{order[0]}-{order[1]}", field, text) for order, field, text in benchmark.changes.entries()]
    assert len(stored) > 5
    assert stored == [
        (change.id, field, change.model_dump_json().encode()) for field, change in benchmark.changes.items()
    ]
    for field, change in benchmark.changes.items():
        assert benchmark.changes.order(field) == tuple(map(int, change.id.split("-")))
        assert field.split(":")[1:3] == [change.procedure, change.kind]


def test_a_change_is_made_once_and_when_it_is_read(monkeypatch):
    records = made(2, POLICIES["trusted"], models=6, items=120)
    partition = Partition()
    made_now = []
    make = "monitor.engine.latch.changes.VerdictChange.model_validate"
    monkeypatch.setattr(make, lambda values: made_now.append(values["id"]) or object())
    partition.fold(Chunk(0, 0, len(records), range(len(records)), records))
    changes = partition.benchmarks["made"].changes
    decided = [field for field in changes if ":decided" in field]
    assert len(changes) > 5
    before = len(made_now)  # those that a newer epoch ends
    assert changes[decided[-1]] is changes[decided[-1]]
    assert len(made_now) == before + 1
