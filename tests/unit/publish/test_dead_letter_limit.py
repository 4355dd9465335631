"""When a worker stops for what it cannot read, and when it goes on."""

from bisect import bisect_right

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from monitor.engine.limits import Limits
from monitor.engine.state.delta import DeadLetter
from monitor.publish.dead_letter_limit import ALWAYS, RUN, WINDOW, DeadLetterLimit, TooManyDeadLetters
from tests.fold_log import FoldLog, event


def letter(offset, index=0):
    return DeadLetter(offset, index, "log", None, "score", "2", "give a number in [0, 1]", "bench", "raw")


def stops_at(limit, offsets):
    """The offset at which a limit stops, handed one letter at a time; None if it never does."""
    for offset in offsets:
        try:
            limit.add("events", 3, [letter(offset)])
        except TooManyDeadLetters:
            return offset
    return None


def test_a_run_stops_at_the_first_record_beyond_it():
    assert stops_at(DeadLetterLimit(), range(1_000_000, 1_001_000)) == 1_000_000 + RUN


def test_a_good_record_ends_a_run():
    offsets = [k for k in range(20 * RUN) if k % RUN]
    assert stops_at(DeadLetterLimit(share=0.999), offsets) is None


@settings(deadline=None, max_examples=40)
@given(
    st.integers(0, 10**6), st.floats(0, 0.1), st.lists(st.tuples(st.integers(2, 40), st.integers(1, 400)), max_size=5)
)
def test_the_share_is_that_of_the_last_records(first, share, stretches):
    """Stretches of bad records, one every so many, against counting from scratch at each of them."""
    offsets = [first]
    for step, count in stretches:
        offsets += range(offsets[-1] + step, offsets[-1] + step * (count + 1), step)

    def too_many(k):
        recent = k + 1 - bisect_right(offsets, offsets[k] - WINDOW)
        return recent > max(ALWAYS, share * WINDOW)

    expected = next((offsets[k] for k in range(len(offsets)) if too_many(k)), None)
    assert stops_at(DeadLetterLimit(share), offsets) == expected


def test_old_letters_leave_the_window():
    limit = DeadLetterLimit(share=0)
    for start in range(0, 5 * WINDOW, WINDOW):
        assert stops_at(limit, range(start, start + ALWAYS)) is None
    assert stops_at(limit, range(4 * WINDOW + ALWAYS, 5 * WINDOW)) == 4 * WINDOW + ALWAYS


def test_stray_events_of_packed_records_weigh_little():
    limit = DeadLetterLimit(share=0.02)
    for offset in range(20_000):
        limit.add("events", 0, [letter(offset, index=100 + offset % 900)])


def test_a_packed_record_of_nothing_good_counts_as_one_bad_record():
    limit = DeadLetterLimit(share=0)
    for offset in range(ALWAYS):
        limit.add("events", 0, [letter(offset, index) for index in range(1_000)])
    with pytest.raises(TooManyDeadLetters):
        limit.add("events", 0, [letter(ALWAYS)])


MANY = RUN + 100
LISTED = {"declare": "bench", "item_ids": ["0"]}
REFUSED = {
    "a run that has ended": [{"ended": "bench"}, *(event(k, "a", 1) for k in range(1, MANY))],
    "items that are not declared": [event(k, "a", 1) for k in range(1, MANY)],
    "ends of runs without scores": [{"ended": "bench", "model": f"m{k}"} for k in range(MANY)],
    "ends of benchmarks without scores": [{"ended": f"other-{k}"} for k in range(MANY)],
    "declarations that contradict": [{**LISTED, "alpha": 1 / (k + 100)} for k in range(MANY)],
    "models beyond the limit": [event(0, f"m{k}", 1) for k in range(MANY)],
    "benchmarks beyond the limit": [event(0, "a", 1, benchmark=f"other-{k}") for k in range(MANY)],
}


@pytest.mark.parametrize("records", REFUSED.values(), ids=REFUSED)
def test_records_that_are_read_and_refused_stop_nothing(records):
    log = FoldLog(LISTED, limits=Limits(benchmarks=1, contestants=1))
    log.send(event(0, "a", 1), *records)
    assert len(log.letters) >= MANY - 1
    limit = DeadLetterLimit(share=0)
    limit.add("evals", 3, log.letters)
    assert stops_at(limit, range(100_000, 200_000)) == 100_000 + ALWAYS


def test_conflicts_are_no_dead_letters():
    log = FoldLog()
    log.send(*(event(k, "a", score) for k in range(MANY) for score in (0, 1)))
    assert (log.bench.counters["conflicts"], log.letters) == (MANY, [])


def test_records_with_a_bad_name_stop_a_worker():
    log = FoldLog()
    log.send(*(event(k, "a\x07", 1) for k in range(MANY)))
    assert len(log.letters) == MANY
    with pytest.raises(TooManyDeadLetters):
        DeadLetterLimit(share=0).add("evals", 3, log.letters)


def test_a_share_of_1_lets_everything_pass():
    assert stops_at(DeadLetterLimit(share=1), range(3 * WINDOW)) is None


def test_the_message_says_where_and_what_to_do():
    limit = DeadLetterLimit(run=2)
    with pytest.raises(
        TooManyDeadLetters,
        match=r"partition 3 of events: 3 records in a row.*offset 9 \(score: found 2.*max_rejected set to 1",
    ):
        limit.add("events", 3, [letter(7), letter(8), letter(9)])


@pytest.mark.parametrize(("arguments", "name"), [({"share": 1.1}, "share"), ({"run": 0}, "run")])
def test_limits_that_are_none(arguments, name):
    with pytest.raises(ValueError, match=f"{name} is"):
        DeadLetterLimit(**arguments)
