"""False decisions after an undo: at most alpha in each generation if it was chosen blindly, and far more if because of the scores.

The second is why an undo takes the scope `manage`, and why the report and every later verdict name it.
"""

import json

import numpy as np
import pytest

from monitor.engine.chunk_fold import Partition
from monitor.service.operations.undo import Kept, LogRecord, Withdrawing
from schemas.records.boards import Undo
from schemas.records.chunks import Chunk
from schemas.records.operations import BoardChange, encode_board_change
from tests.calibration.test_engine_calibration import most

PRODUCERS, ITEMS, UNDOES = 12, 30, 5
DECLARED = {"declare": "m", "order": {"policy": "trusted"}, "family": {"policy": "capacity", "size": 1}}


def request(rng, producer):
    """What one producer sends: scores of two equal models, and how far one of them is ahead."""
    scores = rng.random((ITEMS, 2)) < 0.5
    events = [
        {"benchmark": "m", "item_id": f"{producer}-{k}", "model": model, "score": bool(scores[k, m])}
        for k in range(ITEMS)
        for m, model in enumerate("ab")
    ]
    return {"producer": str(producer), "events": events}, int(scores[:, 0].sum()) - int(scores[:, 1].sum())


def fold(partition, values):
    end = partition.off + len(values)
    partition.fold(Chunk(0, partition.off, end, [*range(partition.off, end)], values))


def decides(partition):
    return bool(partition.benchmarks["m"].claims["anytime_family"].side.any())


def generations(rng, choose, undoes):
    """Whether a pair of equal models is decided before any undo, after the first one, and in any generation."""
    sent = [request(rng, producer) for producer in range(PRODUCERS)]
    values = [json.dumps(DECLARED).encode(), *(json.dumps(record).encode() for record, _ in sent)]
    partition = Partition()
    fold(partition, values)
    decided, ahead = [decides(partition)], {str(k): of for k, (_, of) in enumerate(sent)}
    records = [LogRecord(k, value, None if k == 0 else str(k - 1)) for k, value in enumerate(values)]
    for _ in range(undoes):
        producer = choose(rng, ahead)
        del ahead[producer]
        kept = Kept()
        copies = Withdrawing("m", Undo(producer)).copies(records, kept, named=False)
        copied = [*copies, *kept.take(named=False)]
        undo = encode_board_change(BoardChange("undo", "m", producer=producer))
        done = encode_board_change(BoardChange("undone", "m"))
        fold(partition, [undo, *(value for value, _ in copied), done])
        assert partition.benchmarks["m"].counters["events"] == 2 * ITEMS * len(ahead)
        records = [LogRecord(k, *copy) for k, copy in enumerate(copied)]
        decided.append(decides(partition))
    return decided[0], decided[1], any(decided)


def blindly(rng, ahead):
    return str(rng.choice(list(ahead)))


def because_of_the_scores(_, ahead):
    """The producer whose scores hold back the leading model most."""
    leads = 1 if sum(ahead.values()) >= 0 else -1
    return min(ahead, key=lambda producer: leads * ahead[producer])


@pytest.mark.slow
def test_a_blind_undo_keeps_the_rate_and_one_because_of_the_scores_does_not():
    rng = np.random.default_rng(20)
    few, more = 80, 120
    blind = np.array([generations(rng, blindly, 1) for _ in range(few)]).sum(axis=0)
    fishing = np.array([generations(rng, because_of_the_scores, UNDOES) for _ in range(more)]).sum(axis=0)
    print(
        f"decided before, after one, in any: a blind undo {blind} of {few}, because of the scores {fishing} of {more}"
    )
    assert (blind <= most(few)).all()
    assert fishing[0] <= most(more) < fishing[2]
