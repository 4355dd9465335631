"""A benchmark that the fold cannot go on with is set aside; the others of its partition go on, and chunks change nothing."""

import json
import random

import pytest

from monitor.engine import decoder
from monitor.engine.chunk_fold import Partition
from monitor.view.from_state import board_view
from monitor.view.reasons import partial
from schemas.records.chunks import Chunk, DeadLetter
from schemas.records.operations import encode_release
from schemas.results.reasons import Reason
from tests.memory_store import MemoryStore

BAD = b'{"benchmark": "bad", "item_id": "1", "model": "m", "score": Infinity}'
BROKEN = b"{not JSON"


def event(number, benchmark="good"):
    model = "ab"[number % 2]
    record = {"benchmark": benchmark, "item_id": str(number // 2), "model": model, "score": number % 3 == 0}
    return json.dumps(record).encode()


def folded(records, size=10_000, keys=None):
    """The partition after the fold of records in chunks of a size, restored from what is stored after each, and all letters."""
    store, letters = MemoryStore(), []
    partition = Partition.restore(store.state)
    for start in range(0, len(records), size):
        part = slice(start, min(start + size, len(records)))
        chunk = Chunk(0, part.start, part.stop, range(part.start, part.stop), records[part], None, keys and keys[part])
        delta = partition.fold(chunk)
        letters += delta.dead_letters
        store.commit(delta)
        partition = Partition.restore(store.state)
    return partition, letters


def counts(partition):
    return {name: dict(each.counters) for name, each in partition.benchmarks.items()}


def test_a_flood_of_unreadable_records_sets_its_benchmark_aside_and_no_other():
    before, after = [event(k, "bad") for k in range(40)], [event(k, "bad") for k in range(40, 60)]
    records = [*before, *(BAD for _ in range(700)), *after, *(event(k) for k in range(40))]
    partition, letters = folded(records)
    assert counts(partition)["good"]["events"] == 40
    assert counts(partition)["bad"]["events"] == 40, "what came before counts"
    (suspect,) = partition.quarantine
    # 40 readable ones came first, when there was nothing to take off.
    assert (suspect.benchmark, suspect.since, suspect.records) == ("bad", 40 + 501, 199 + 20)
    assert len(letters) == 501, "no flood of letters either: the records stay in the log"
    (quarantined,) = partial(board_view(partition.benchmarks["bad"]))
    assert quarantined["code"] == Reason.QUARANTINED
    assert partial(board_view(partition.benchmarks["good"])) == []


def test_a_release_lets_later_records_count():
    records = [BAD] * 600 + [event(0, "bad")] + [encode_release("bad"), event(2, "bad"), event(3, "bad")]
    partition, _ = folded(records, 100)
    assert counts(partition)["bad"]["events"] == 2
    assert not list(partition.quarantine)
    assert not partition.quarantine
    assert partition.benchmarks["bad"].quarantine is None
    partition, letters = folded([encode_release("never set aside"), event(0)])
    assert letters == []


def test_a_share_of_ten_percent_is_allowed_and_one_of_twenty_is_not():
    def share(every):
        return [BAD if k % every == 0 else event(k, "bad") for k in range(12_000)]

    assert not list(folded(share(10))[0].quarantine)
    assert [each.benchmark for each in folded(share(5))[0].quarantine] == ["bad"]


def test_records_without_a_name_belong_to_the_benchmark_of_their_key():
    records, keys = [BROKEN] * 600 + [event(0)], [b"good"] * 601
    assert [each.benchmark for each in folded(records, keys=keys)[0].quarantine] == ["good"]
    assert not folded(records)[0].quarantine
    assert not folded(records, keys=[b"\x00"] * 601)[0].quarantine


@pytest.mark.fault("benchmarks", "unreadable records in chunks of any size", "the same quarantine")
@pytest.mark.parametrize("seed", range(2))
def test_what_is_set_aside_does_not_depend_on_the_chunks(seed):
    choice = random.Random(seed)
    records = []
    for _ in range(12):
        kind, number = choice.randrange(4), choice.randrange(120)
        name = choice.choice(["bad", "good"])
        if kind == 0:
            records += [event(choice.randrange(2_000), name) for _ in range(number)]
        elif kind == 1:
            records += [BAD] * number
        elif kind == 2:
            packed = [json.loads(event(choice.randrange(2_000), name)) for _ in range(20)]
            packed[choice.randrange(20)]["score"] = "no number"
            records.append(json.dumps({"events": packed}).encode())
        else:
            records.append(encode_release("bad") if number < 20 else json.dumps({"ended": "bad"}).encode())
    records += [BAD] * 501 + [event(k, "bad") for k in range(100)]
    whole, letters = folded(records)
    assert list(whole.quarantine)
    for size in (29, 333):
        parts, same = folded(records, size)
        assert (counts(parts), same) == (counts(whole), letters)
        assert list(parts.quarantine) == list(whole.quarantine)


@pytest.mark.fault(
    "benchmarks",
    "a record that crashes the decoder, in chunks of different sizes",
    "it is a dead letter; all other events count",
)
def test_a_record_that_crashes_the_decoder_is_a_dead_letter_in_any_chunk(monkeypatch):
    original = decoder.decode_message

    def crashing(record):
        if b"poison" in record:
            raise ZeroDivisionError
        return original(record)

    def bulk(decode):
        def check(records):
            if any(b"poison" in record for record in records):
                raise ZeroDivisionError
            return decode(records)

        return check

    monkeypatch.setattr(decoder, "decode_message", crashing)
    for name in ("decode_records", "decode_converted", "decode_next"):
        monkeypatch.setattr(decoder, name, bulk(getattr(decoder, name)))
    records = [event(k) for k in range(20)]
    records[7] = event(7, "poison")
    for size in (1, 5, 20):
        partition, letters = folded(records, size)
        assert counts(partition)["good"]["events"] == 19
        (letter,) = letters
        assert isinstance(letter, DeadLetter)
        assert (letter.offset, letter.found) == (7, "ZeroDivisionError")
        assert "an error of rankwatch itself" in letter.reason


def test_no_more_names_are_watched_than_allowed(monkeypatch):
    monkeypatch.setattr("monitor.engine.state.quarantine.NAMES", 3)
    partition, letters = folded([BROKEN] * 5, keys=[b"%d" % k for k in range(5)])
    assert len(letters) == 5
    assert sum(partition.quarantine.unreadable("3", 9) is None for _ in range(600)) == 600
    assert not list(partition.quarantine)
