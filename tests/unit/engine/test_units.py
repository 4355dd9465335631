"""Units: items that are copies or paraphrases of each other bet once, by their mean."""

import numpy as np
import pytest

from monitor.view.build import benchmark_report
from monitor.view.from_state import board_view
from monitor.words.order import UNDECLARED_UNITS
from schemas.records.events import EventFields
from schemas.records.packed import encode_events
from schemas.records.run_columns import encode_run
from stats import committed_order
from tests.fold_log import FoldLog, event

MODELS, UNITS, COPIES = ("ash", "birch", "cedar"), 40, 3
UNIT_OF = {f"{unit}.{copy}": f"unit {unit}" for unit in range(UNITS) for copy in range(COPIES)}
FAMILY = {"policy": "capacity", "size": 3}
POLICIES = {
    "completion": {"items": UNITS, "units": UNIT_OF},
    "trusted": {"order": "trusted", "units": UNIT_OF},
    "committed": {"order": {"policy": "committed", "seed": "7"}, "item_ids": list(UNIT_OF), "units": UNIT_OF},
}


def stream(seed, gap=0.5):
    """Return (unit, copy, model, score) in random order; the first model is better."""
    rng = np.random.default_rng(seed)
    chance = 0.45 + gap * (np.arange(len(MODELS)) == 0)
    scores = (rng.random((UNITS, COPIES, len(MODELS))) < chance).astype(int)
    index = rng.permutation(np.stack(np.nonzero(scores >= 0), axis=1)).tolist()
    return [(u, c, MODELS[m], int(scores[u, c, m])) for u, c, m in index]


def as_items(events, **fields):
    return [event(f"{u}.{c}", model, score, **fields) for u, c, model, score in events]


def as_repeats(events):
    return [event(f"unit {u}", model, score, repeat=c) for u, c, model, score in events]


def in_order(events):
    """Return the events of items in the committed order of their units, all models at one item."""
    names = list(dict.fromkeys(UNIT_OF.values()))
    place = {names[k]: rank for rank, k in enumerate(committed_order("7", names).tolist())}
    return sorted(events, key=lambda each: (place[f"unit {each[0]}"], each[1]))


def fold(records, *, size=10_000, restarts=False, ended=False, **spec):
    log = FoldLog({"declare": "bench", "family": FAMILY, **spec})
    for start in range(0, len(records), size):
        log.send(*records[start : start + size])
        if restarts:
            log.restart()
    if ended:
        log.send({"ended": "bench"})
    assert not log.letters
    return log.bench


def state(benchmark):
    """Return what verdicts are made of."""
    pairs, models = benchmark.pairs, len(benchmark.contestants)
    sums = {name: getattr(benchmark, name)[:pairs].tolist() for name in ("n", "b", "c")}
    sums |= {name: getattr(benchmark, name)[:models].tolist() for name in ("scored", "total")}
    capital = None if benchmark.graded_pairs is None else benchmark.graded_pairs.capital[:pairs].tolist()
    return sums, capital, benchmark.undeclared


def changes(benchmark, *claims):
    return {
        field: (each.id, each.kind, each.after, each.evidence.n, each.evidence.missing, each.evidence.log_e)
        for field, each in benchmark.changes.items()
        if not claims or field.split(":")[1] in claims
    }


@pytest.mark.parametrize("policy", ["completion", "trusted"])
@pytest.mark.parametrize("seed", range(3))
def test_a_unit_is_an_item_whose_repeats_are_its_items(policy, seed):
    events, spec = stream(seed), POLICIES[policy]
    units = fold(as_items(events), **spec)
    repeats = fold(
        as_repeats(events), **{name: value for name, value in spec.items() if name != "units"}, repeats=COPIES
    )
    assert units.items == UNITS
    assert state(units) == state(repeats)
    assert changes(units) == changes(repeats)
    assert any(change[1] == "decided" for change in changes(units).values())


@pytest.mark.parametrize("seed", range(3))
def test_a_committed_order_bets_what_a_trusted_stream_in_that_order_bets(seed):
    events, decisions = stream(seed), ("anytime", "anytime_family")
    trusted = fold(as_repeats(in_order(events)), repeats=COPIES, order="trusted")
    followed = fold(as_items(in_order(events)), **POLICIES["committed"])
    first = [next(each for each in events if each[2] == named.model) for named in trusted.contestants]
    shuffled = fold(as_items(first + [each for each in events if each not in first]), **POLICIES["committed"])
    assert state(followed) == state(shuffled) == state(trusted)
    assert shuffled.spec.items == shuffled.items == UNITS

    def decided(benchmark, *claims):
        return {field: change[1:4] for field, change in changes(benchmark, *claims).items()}

    assert decided(followed, *decisions) == decided(trusted, *decisions)
    # What frees the alpha of others depends on which pair came first, so only a pair by itself is the same.
    assert decided(shuffled, "anytime") == decided(trusted, "anytime")
    assert any("settled" in field for field in changes(followed))


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("size", [1, 7, 64])
def test_neither_chunks_nor_restarts_change_anything(policy, size):
    events = as_items(stream(5))
    whole = fold(events, **POLICIES[policy], ended=True)
    for parts in (
        fold(events, size=size, **POLICIES[policy], ended=True),
        fold(events, size=size, restarts=True, **POLICIES[policy], ended=True),
    ):
        assert state(whole) == state(parts)
        assert changes(whole) == changes(parts)


def test_a_committed_unit_waits_for_those_before_it():
    events = in_order(stream(2))
    late = [each for each in events if each[0] != events[0][0]]
    log = FoldLog({"declare": "bench", "family": FAMILY, **POLICIES["committed"]})
    log.send(*as_items(late))
    assert not log.bench.n.any()
    log.restart()
    log.send(*as_items([each for each in events if each[0] == events[0][0]]))
    assert state(log.bench) == state(fold(as_items(events), **POLICIES["committed"]))


def test_a_unit_without_some_of_its_items_bets_at_the_end_of_the_runs():
    events = [each for each in in_order(stream(3)) if each[:2] != (0, 1)]
    for policy, spec in POLICIES.items():
        # Along the committed order what comes after it waits for it too.
        open_runs, ended = fold(as_items(events), **spec), fold(as_items(events), **spec, ended=True)
        assert max(open_runs.n) == (UNITS - 1 if policy != "committed" else max(open_runs.n)) < UNITS
        assert ended.n[:3].tolist() == [UNITS] * 3
        assert state(ended) == state(fold(as_items(events), size=11, restarts=True, **spec, ended=True))


def test_a_committed_unit_with_a_skipped_item_ends_the_prefix():
    events = as_items(in_order(stream(3)))
    events[4 * len(MODELS) * COPIES]["score"] = None  # of the fifth unit
    benchmark = fold(events, **POLICIES["committed"])
    assert sorted(benchmark.n[:3].tolist()) == [4, 4, UNITS]
    assert fold(events, **POLICIES["committed"], ended=True).n[:3].tolist() == [UNITS] * 3


def test_items_of_no_unit_bet_by_themselves():
    units = {"1a": "1", "1b": "1"}
    scores = [("1a", 1, 0), ("2", 1, 1), ("1b", 0, 0), ("3", 0, 1)]
    events = [event(item, model, score) for item, *row in scores for model, score in zip("ab", row, strict=True)]
    benchmark = fold(events, items=3, units=units)
    assert (benchmark.items, benchmark.n[0], benchmark.scored[:2].tolist()) == (3, 3, [3, 3])
    assert benchmark.total[:2].tolist() == [15 * 10**11, 2 * 10**12]
    assert [key.item for key in benchmark.item_keys] == ["1", "2", "3"]


def test_repeats_and_units_together():
    """A unit of two items with two repeats each bets with all four; three of one item are one too many."""
    spec = {"items": 2, "units": {"1a": "1", "1b": "1"}, "repeats": 2}
    log = FoldLog({"declare": "bench", **spec})
    for repeat in range(2):
        log.send(*(event("1a", model, 1, repeat=repeat) for model in "ab"))
    assert log.bench.n[0] == 0
    log.send(*(event("1b", model, 0, repeat=repeat) for model in "ab" for repeat in range(2)))
    assert (log.bench.n[0], log.bench.total[:2].tolist()) == (1, [5 * 10**11] * 2)
    log.send(event("1b", "a", 1, repeat=7))
    assert "a has 3 repeats of item 1b, and 2 are declared" in log.bench.undeclared


def test_a_repeat_of_one_item_does_not_stand_for_another_one():
    log = FoldLog({"declare": "bench", "items": 1, "units": {"1a": "1", "1b": "1"}})
    log.send(event("1a", "a", 1), event("1a", "a", 1, repeat=1), event("1b", "b", 1))
    assert not log.bench.scored.any()
    assert "a has 2 repeats of item 1a, and 1 is declared" in log.bench.undeclared


def test_conflicts_and_duplicates_are_of_items():
    log = FoldLog({"declare": "bench", "items": 1, "units": {"1a": "1", "1b": "1"}})
    log.send(*(event(item, "a", 1) for item in ("1a", "1b", "1a")), event("1b", "a", 0))
    counters = log.bench.counters
    assert (counters["duplicates"], counters["conflicts"], log.bench.scored[0]) == (1, 1, 1)


@pytest.mark.parametrize("restarts", [False, True])
def test_an_undeclared_unit_holds_the_benchmark(restarts):
    log = FoldLog({"declare": "bench", "items": 100})
    log.send(*(event(item, model, int(model == "a")) for item in range(90) for model in "ab"))
    assert log.changes["anytime", "decided"]
    log.send(event("90", "a", 1, unit="90"))  # a unit of its own says nothing
    assert not log.bench.undeclared
    log.send(event("91", "a", 1), event("92", "a", 1, unit="91"), event("93", "a", 1))
    if restarts:
        log.restart()
    assert log.bench.undeclared == UNDECLARED_UNITS
    assert log.changes["anytime", "invalidated"]
    assert log.bench.matrix().shape == (94, 2)
    log.send({"declare": "bench", "items": 101, "repeats": "all", "version": 2})
    if restarts:
        log.restart()
    assert log.bench.undeclared == UNDECLARED_UNITS
    assert benchmark_report(board_view(log.bench), assert_complete=True).pairs[0].status == "held"
    log.send({"declare": "bench", "items": 100, "units": {"92": "91", "91": "91"}, "version": 3})
    assert not log.bench.undeclared
    assert (log.bench.items, log.bench.n[0]) == (93, 90)


@pytest.mark.parametrize(
    ("event_of", "reason"),
    [
        (
            event("1a", "a", 1, unit="2"),
            "1a is declared to be in unit 1, and comes with unit 2; give each item one unit",
        ),
        (event("3", "a", 1, unit="2"), "3 has no declared unit, and comes with unit 2; give each item one unit"),
        (
            event("1", "a", 1),
            "1 is an item without a unit, and the name of one; add it to units (1: 1), or rename the unit",
        ),
    ],
)
def test_a_contradiction_is_rejected(event_of, reason):
    log = FoldLog({"declare": "bench", "items": 9, "units": {"1a": "1", "1b": "1"}})
    log.send(event("1a", "a", 1, unit="1"), event_of)
    assert [letter.reason for letter in log.letters] == [reason]
    assert not log.bench.undeclared


def test_a_new_version_may_declare_units():
    log = FoldLog({"declare": "bench", "items": 120})
    log.send(*as_items(stream(1)))
    assert log.bench.items == UNITS * COPIES
    log.send({"declare": "bench", "items": UNITS, "units": UNIT_OF, "version": 2})
    assert state(log.bench) == state(fold(as_items(stream(1)), **POLICIES["completion"]))
    assert log.bench.spec.declared_late


def test_run_messages_have_a_column_of_units():
    spec = {"declare": "bench", "items": 1, "units": {"1a": "1", "1b": "1"}}
    run = {"benchmark": "bench", "model": "a", "item_ids": ["1a", "1b"], "scores": [1, 0]}
    for units, letters in ((["1", "1"], 0), (["1", None], 0), (["1", "2"], 1), (["1"], 1)):
        log = FoldLog(spec)
        log.send(run | {"units": units})
        assert len(log.letters) == letters
        assert log.bench.scored[:1].sum() == (not letters)
    events = [EventFields("bench", item, "a", 1, unit="1") for item in ("1a", "1b")]
    log = FoldLog(spec)
    log.send(encode_run(events), encode_events([EventFields("bench", item, "b", 1, unit="1") for item in ("1a", "1b")]))
    assert (log.letters, log.bench.n[0]) == ([], 1)


def test_numbers_are_read_as_names_of_units():
    log = FoldLog({"declare": "bench", "items": 1, "units": {"11": 1, "12": 1}})
    log.send(event(11, "a", 1, unit=1), event(12, "a", 1, unit=1.0), event(12, "b", 1, unit=None))
    assert (log.letters, log.bench.scored[:2].tolist()) == ([], [1, 0])


def test_battles_have_no_units():
    log = FoldLog({"declare": "bench", "order": "trusted", "units": {"1": "2"}})
    log.send({"benchmark": "bench", "item_id": "1", "model_a": "a", "model_b": "b", "winner": "a"})
    assert "omit units" in log.letters[0].reason


ANY = POLICIES | {
    "weights": {"units": UNIT_OF, "weights": "equal-clusters", "clusters": {"c0": 20, "c1": 20}},
    "two repeats": {"items": UNITS, "units": UNIT_OF, "repeats": 2},
    "all repeats": {"items": UNITS, "units": UNIT_OF, "repeats": "all"},
    "ignorable": {"items": UNITS, "units": UNIT_OF, "missing": "ignorable"},
}


@pytest.mark.parametrize("policy", ANY)
def test_anything_that_a_log_may_hold_is_folded_the_same_in_any_chunks(policy):
    """Gaps, skips, fills, duplicates, conflicts, runs that end early, units that events name."""
    rng = np.random.default_rng(list(policy.encode()))
    records = []
    for unit, copy, model, score in stream(8, gap=0.4):
        for repeat in range(1 + (policy in {"two repeats", "all repeats"})):
            named = {"unit": f"unit {unit}"} if rng.random() < 0.5 else {}
            one = event(f"{unit}.{copy}", model, score, repeat=repeat, cluster=f"c{unit % 2}", **named)
            if rng.random() < 0.05:
                records.append(one | {"score": None})
            if rng.random() < 0.95:
                records.append(one)
            if rng.random() < 0.1:
                records.append(one | {"score": int(rng.integers(2))})
    records.insert(len(records) // 2, {"ended": "bench", "model": "birch"})
    records = [records[k] for k in rng.permutation(len(records))] + [{"ended": "bench"}]
    found = []
    for size, restarts in ((10_000, False), (1, False), (37, True)):
        log = FoldLog({"declare": "bench", "family": FAMILY, **ANY[policy]})
        for start in range(0, len(records), size):
            log.send(*records[start : start + size])
            if restarts:
                log.restart()
        found.append((state(log.bench), changes(log.bench), log.bench.counters))
    assert found[0] == found[1] == found[2]
    assert found[0][0][0]["n"][0]
