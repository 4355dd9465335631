"""Verdict changes of streams in which leads reverse: every field is a function of the log alone."""

import random

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.property.test_fold_laws import CHUNKINGS, fold, log_of


@st.composite
def reversing_streams(draw):
    """A declaration and a stream in which every second model leads at first and loses from some place on, with many pairs decided."""
    policy = draw(st.sampled_from(["trusted", "trusted", "committed"]))
    graded = policy == "trusted" and draw(st.booleans())
    models, items = draw(st.integers(4, 6)), draw(st.integers(20, 40))
    spec = {"declare": "bench", "alpha": 0.45, "order": policy}
    spec["family"] = draw(st.sampled_from(["spending", {"policy": "capacity", "size": models * (models - 1) // 3}]))
    if graded:
        spec["scores"] = "graded"
    if policy == "committed":
        spec |= {"order": {"policy": policy, "seed": "one"}, "item_ids": [f"q{item}" for item in range(items)]}
    rng = random.Random(draw(st.integers(0, 2**32)))
    turn = {model: rng.choice([items // 8, items // 4, items // 2]) for model in range(models)}
    cells = [(item, model) for item in range(items) for model in range(models)]
    if draw(st.booleans()):
        cells = [
            cell
            for start in range(0, len(cells), 40)
            for cell in rng.sample(cells[start : start + 40], len(cells[start : start + 40]))
        ]
    events = []
    for item, model in cells:
        right = (model % 2 == 0) == (item < turn[model]) if rng.random() < 0.8 else rng.random() < 0.5
        epoch = int(model == 1 and item > items * 2 // 3)
        events.append(
            {"benchmark": "bench", "item_id": f"q{item}", "model": f"m{model}", "score": int(right), "epoch": epoch}
        )
    return spec, events


def changes(log, cuts, *, restart=False):
    records, _, end = log
    partition, _ = fold(records, end, cuts, restart=restart)
    return {field: change.as_dict() for field, change in sorted(partition.benchmarks["bench"].changes.items())}


@settings(max_examples=25, deadline=None)
@given(reversing_streams(), CHUNKINGS, st.booleans())
def test_no_field_of_a_verdict_change_depends_on_the_chunking(stream, cuts, restart):
    log = log_of(*stream, [1])
    event_by_event = changes(log, range(len(log[0])))
    assert changes(log, []) == event_by_event
    assert changes(log, cuts, restart=restart) == event_by_event


def test_the_threshold_of_a_reversal_is_that_of_its_event():
    """A decision after the reversal, in the same chunk, lowers the threshold of the others from there on and not before."""
    spec = {"declare": "bench", "alpha": 0.2, "order": "trusted", "family": {"policy": "capacity", "size": 3}}

    def scores(item, a, b, c):
        return [
            {"benchmark": "bench", "item_id": f"q{item}", "model": model, "score": score}
            for model, score in (("a", a), ("b", b), ("c", c))
            if score is not None
        ]

    events = [event for item in range(12) for event in scores(item, 1, 0, None)]
    events += [event for item in range(12, 25) for event in scores(item, 0, 1, None)]  # a v b reverses
    events += [event for item in range(25, 45) for event in scores(item, 1, 1, 0)]  # then a v c and b v c are decided
    log = log_of(spec, events, [1])
    found = changes(log, [])
    assert found == changes(log, range(len(log[0])))
    decided, reversed_ = found["0:anytime_family:decided"], found["0:anytime_family:reversed"]
    assert {"1:anytime_family:decided", "2:anytime_family:decided"} < found.keys()
    assert reversed_["evidence"]["log_threshold"] == decided["evidence"]["log_threshold"]
