"""States whose arrays contradict each other: their types and digests are right, and no fold ever gave them."""

import re
from copy import deepcopy
from functools import cache

import numpy as np
import pytest

from monitor.engine.latch.records import LatchRecords
from monitor.store.transfer.soundness import contradiction
from tests.loop_streams import stream
from tests.property.test_fold_laws import fold, log_of

TRUSTED, GRADED, BATTLES = 0, 3, 12


@cache
def stored(seed):
    """The state of a random stream, as the store holds it."""
    spec, events, rng = stream(seed)
    records, _, end = log_of(spec, events, rng.integers(1, 30, 4).tolist())
    return fold(records, end, [], restart=False)[1].state.benchmarks[0]


@pytest.mark.parametrize("seed", range(0, 45, 2))
def test_what_is_folded_contradicts_nothing(seed):
    assert contradiction(stored(seed)) is None


def first(array, value):
    """An array whose first number is another."""
    changed = np.array(array)
    changed.reshape(-1)[0] = value
    return changed


def latched(state, **fields):
    """Give the first latch other numbers."""
    (columns, *_) = state.changes.columns
    records = columns.records.copy()
    for name, value in fields.items():
        records[name][0] = value(records[name][0]) if callable(value) else value
    state.changes.columns[0] = LatchRecords("bench", state.contestants, columns.terms, records)


def counted(state, **change):
    state.counters = {name: count + change.get(name, 0) for name, count in state.counters.items()}


@pytest.mark.fault(
    "attacks",
    "an exported state with false scores, counts, evidence or thresholds and the right digests",
    "refused with line and field; nothing is imported",
)
@pytest.mark.parametrize(
    ("seed", "change", "found"),
    [
        (TRUSTED, lambda s: counted(s, events=1), "counters: .* events count, and there are"),
        (TRUSTED, lambda s: counted(s, events=-10_000), "counters: not counts"),
        (TRUSTED, lambda s: s.counters.update(more=1), "counters: others"),
        (TRUSTED, lambda s: setattr(s, "spec", '{"order":{"policy":"committed","seed":"s"}}'), "spec: no declaration"),
        (TRUSTED, lambda s: setattr(s, "spec", "{}{"), "spec: no declaration"),
        (TRUSTED, lambda s: setattr(s, "columns", s.columns[:-1]), "scores: not a column"),
        (TRUSTED, lambda s: s.columns.__setitem__(0, first(s.columns[0], 200)), "scores: one that values lacks"),
        (TRUSTED, lambda s: s.columns.__setitem__(0, np.ones(10_000, np.uint8)), "scores: more than rows"),
        (TRUSTED, lambda s: s.rows.append(s.rows[0]), "rows: an entry comes twice"),
        (TRUSTED, lambda s: s.rows.__setitem__(0, s.rows[0]._replace(item="a\x1bb")), "rows: an entry has no name"),
        (TRUSTED, lambda s: s.rows.__setitem__(0, s.rows[0]._replace(cluster=5)), "rows: a cluster is no name"),
        (TRUSTED, lambda s: s.contestants.__setitem__(0, s.contestants[0]._replace(epoch=-1)), "models: an epoch"),
        (TRUSTED, lambda s: s.contestants.__setitem__(0, s.contestants[1]), "models: an entry comes twice"),
        (TRUSTED, lambda s: setattr(s, "registered", first(s.registered, 10**6)), "family: a pair that is not there"),
        (TRUSTED, lambda s: setattr(s, "registered", s.registered[[0, 0]]), "family: a pair comes twice"),
        (TRUSTED, lambda s: setattr(s, "peaks", first(s.peaks, np.nan)), "peaks: not one number a pair"),
        (TRUSTED, lambda s: s.ended.append(-1), "ended: a model that is not there"),
        (TRUSTED, lambda s: setattr(s, "arrival", first(s.arrival, 10**9)), "arrival: more items than scores"),
        (TRUSTED, lambda s: setattr(s, "arrival", first(s.arrival, -1)), "arrival: not counts"),
        (TRUSTED, lambda s: setattr(s, "again", np.array([[-1, 0]])), "again: not counts"),
        (TRUSTED, lambda s: setattr(s, "again", np.array([[10**6, 0]])), "again: more than the counters"),
        (TRUSTED, lambda s: latched(s, evidence=np.nan), "latches: evidence below its threshold"),
        (TRUSTED, lambda s: latched(s, evidence=lambda e: e + 9), "latches: evidence that its counts do not give"),
        (TRUSTED, lambda s: latched(s, threshold=-1.0), "latches: a threshold below alpha"),
        (TRUSTED, lambda s: latched(s, threshold=lambda t: t + 1, evidence=99), "latches: a threshold that is not"),
        (TRUSTED, lambda s: latched(s, n=10**6), "latches: more shared items than scores"),
        (TRUSTED, lambda s: latched(s, b=10**6), "latches: wins and losses"),
        (TRUSTED, lambda s: latched(s, b=-1), "latches: wins and losses"),
        (TRUSTED, lambda s: latched(s, missing=-1), "latches: a negative number"),
        (TRUSTED, lambda s: latched(s, side=0), "latches: a side"),
        (TRUSTED, lambda s: latched(s, terms=99), "terms: one that is not there"),
        (TRUSTED, lambda s: latched(s, sequence=1 << 30), "latches: a pair that is not there"),
        (GRADED, lambda s: s.values.__setitem__(2, 10**13), "values: a score is not between"),
        (GRADED, lambda s: s.values.append(s.values[2]), "values: a score comes twice"),
        (GRADED, lambda s: latched(s, lead=10**17), "latches: a lead beyond the items"),
        (BATTLES, lambda s: setattr(s, "votes", first(s.votes, 10**6)), "votes: no such prompt"),
        (BATTLES, lambda s: setattr(s, "votes", s.votes[[0, *range(len(s.votes) - 1)]]), "votes: one comes twice"),
    ],
)
def test_false_arrays_are_found_with_their_field(seed, change, found):
    state = deepcopy(stored(seed))
    change(state)
    assert re.match(found, contradiction(state) or "nothing")
