"""Records between others: events up to the next declaration or error are decoded together, and mean what they mean alone."""

import json
from itertools import chain

import pytest

from monitor.engine import decoder
from monitor.engine.decoder import Declared, Decoder, Unreadable
from schemas.records import decode
from schemas.records.chunks import Chunk
from schemas.records.columns import EventBatch


def event(item, score=1, **more):
    return json.dumps({"benchmark": "b", "item_id": f"i{item}", "model": "m", "score": score, **more}).encode()


RECORDS = [
    *(event(k) for k in range(3)),
    b'{"declare": "b", "items": 9}',
    event(3),
    event(4),
    b'{"benchmark": "b", "item_id":',
    event(5, "1"),
    event(6),
    event(7, 2),
    *(json.dumps({"benchmark": "v", "item_id": k, "model_a": "m", "model_b": "n", "winner": k}).encode() for k in "ab"),
    event(10, winner="a"),
    event(8, note="x" * 500),
    event(9),
]


def taken(records):
    """The kind of each step, and what it holds."""
    chunk = Chunk(0, 0, len(records), range(len(records)), records)
    found = []
    for step in Decoder(None, {}, {}).steps(chunk):
        if isinstance(step, EventBatch):
            found.append((step.benchmark, list(step.offsets), list(step.events)))
        elif isinstance(step, Declared):
            found.append(("declared", step.offset))
        else:
            assert isinstance(step, Unreadable)
            found.append(("unreadable", step.letter.offset, step.letter.reason))
    return found


def flat(found):
    """Events one by one."""
    return list(
        chain.from_iterable(zip(*step[1:], strict=True) if isinstance(step[-1], list) else [step[:2]] for step in found)
    )


def alone():
    return flat(chain.from_iterable(_moved(taken([record]), at) for at, record in enumerate(RECORDS)))


def _moved(found, at):
    return [(step[0], [at], step[2]) if isinstance(step[-1], list) else (step[0], at, *step[2:]) for step in found]


@pytest.mark.parametrize("longest", [decode.MAX_LINE_BYTES, 400])
def test_events_up_to_the_next_other_record_come_together(longest, monkeypatch):
    monkeypatch.setattr(decode, "MAX_LINE_BYTES", longest)
    found = taken(RECORDS)
    assert flat(found) == alone()
    sizes = [len(step[1]) if isinstance(step[-1], list) else step[0] for step in found]
    last = [3] if longest > 400 else [1, "unreadable", 1]
    assert sizes == [3, "declared", 2, "unreadable", 1, 1, "unreadable", 2, *last]


def test_a_decoder_that_crashes_loses_no_record(monkeypatch):
    def crash(records):
        next(records)
        raise RuntimeError("a bug")

    monkeypatch.setattr(decoder, "decode_next", crash)
    found = taken(RECORDS)
    assert flat(found) == alone()
    assert len(found) == len(RECORDS)
