"""Verdict changes that stay records until they are read."""

from dataclasses import astuple

import pytest

from monitor.engine.chunk_fold import Partition
from monitor.store.latches import in_order, pack, unpack
from monitor.store.layout import TermNumbers
from schemas.records.chunks import Chunk
from schemas.results.changes import change_order
from schemas.results.reasons import Reason
from tests.golden.verdict_digests import POLICIES, made


@pytest.mark.parametrize("policy", POLICIES)
def test_what_is_stored_is_what_a_reader_makes(policy):
    records = made(2, POLICIES[policy], models=6, items=120)
    delta = Partition().fold(Chunk(0, 0, len(records), range(len(records)), records))
    (benchmark,) = delta.benchmarks
    stored = {change_order(each.id): each for columns in benchmark.changes.columns for each in columns.changes()}
    assert len(stored) == len(benchmark.changes) > 5
    orders = benchmark.changes.orders(benchmark.changes)
    for (field, change), order in zip(benchmark.changes.items(), orders, strict=True):
        assert order == tuple(map(int, change.id.split("-")))
        assert stored[order] == change
        assert field.split(":")[1:3] == [change.procedure, change.kind]
        assert benchmark.changes.shared_items(field) == change.evidence.n
        said = {each["code"]: each for each in change.facts}
        if change.kind == "reversed":
            assert said[Reason.GAP_TURNED]["leader"] == change.after
        elif change.after == "tie":
            assert said[Reason.EQUAL]["items"] == 120
        elif change.after is None:
            assert said.keys() <= {Reason.INVALIDATED, Reason.SCORED_AGAIN, Reason.DECLARED_AGAIN}
        else:
            assert said[Reason.DECIDED if change.kind == "decided" else Reason.LEADS]["side"] == change.after
            gap = change.evidence.gap if change.after == "a" else -change.evidence.gap
            assert (Reason.GAP_TURNED in said) == (gap <= 0 and change.kind == "decided")


@pytest.mark.parametrize("policy", POLICIES)
def test_records_and_terms_give_the_same_changes_again(policy):
    """Packed at any chunks, latches are the same bytes, and each change with id and sentence is made from them."""
    records = made(1, POLICIES[policy], models=6, items=120)
    packed = []
    for size in (len(records), 97):
        partition, numbers, parts = Partition(), TermNumbers(), []
        for start in range(0, len(records), size):
            some = records[start : start + size]
            delta = partition.fold(Chunk(0, start, start + len(some), range(start, start + len(some)), some))
            parts += [pack(in_order(each.changes), numbers) for each in delta.benchmarks]
        packed.append([b"".join(part[k] for part in map(astuple, parts)) for k in range(2)])
    assert packed[0][0] == packed[1][0]
    assert set(packed[0][1].splitlines()) == set(packed[1][1].splitlines())
    (benchmark,) = partition.benchmarks.values()
    again = unpack("made", benchmark.contestants, *packed[1])
    assert {field: change.as_json() for field, change in again.items()} == {
        field: change.as_json() for field, change in benchmark.changes.items()
    }


def test_the_fold_makes_no_change(monkeypatch):
    records = made(2, POLICIES["trusted"], models=6, items=120)
    partition = Partition()
    made_now = []
    make = "monitor.engine.latch.records.msgspec.convert"
    monkeypatch.setattr(make, lambda values, _: made_now.append(values["id"]) or object())
    partition.fold(Chunk(0, 0, len(records), range(len(records)), records))
    changes = partition.benchmarks["made"].changes
    assert len(changes) > 5
    assert made_now == [], "not even those that a newer epoch ends"
    assert changes[next(iter(changes))]
    assert len(made_now) == 1
