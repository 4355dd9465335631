"""Battles in the fold: votes, units, evidence and latches against plain loops, under any chunking and after a restart."""

from collections import defaultdict
from math import lgamma, log

import numpy as np
import pytest

from monitor.engine.limits import Limits
from monitor.engine.state.battles import units_of
from schemas.records.scores import SCORE_UNIT
from stats.numerics.pairs import pair_index
from tests.fold_log import FoldLog, counts_of, event


def battle(item, a, b, winner, *, benchmark="bench", **fields):
    return {"benchmark": benchmark, "item_id": str(item), "model_a": a, "model_b": b, "winner": winner, **fields}


def declare(**fields):
    return {"declare": "bench", "order": "trusted", **fields}


def stream(seed, count, models=4, *, prompts=10**6, ties=0.2, **fields):
    """Battles of random pairs, the earlier name the better one, in either place."""
    rng = np.random.default_rng(seed)
    records = []
    for _ in range(count):
        a, b = rng.choice(models, 2, replace=False)
        draw = rng.random()
        better = "a" if a < b else "b"
        worse = "b" if better == "a" else "a"
        winner = "tie" if draw < ties else better if draw < ties + (1 - ties) * 0.7 else worse
        shown = [None, "a", "b"][rng.integers(3)]
        extra = {name: values[rng.integers(len(values))] for name, values in fields.items()}
        extra |= {"position": shown} if shown else {}
        records.append(battle(rng.integers(prompts), f"m{a}", f"m{b}", winner, **extra))
    return records


def log_e(b, c):
    return lgamma(1 + b) + lgamma(1 + c) - lgamma(2 + b + c) + (b + c) * log(2)


def verdicts(log):
    return {
        field: (change.id, change.after, change.evidence.n, change.evidence.log_e, change.sentence)
        for field, change in log.bench.changes.items()
    }


def test_counts_and_single_decisions_are_those_of_a_plain_loop():
    records = stream(1, 400)
    folded = FoldLog(declare())
    folded.send(*records)
    counts, crossed = defaultdict(lambda: [0, 0, 0]), {}
    for record in records:
        a, b = record["model_a"], record["model_b"]
        sign = {"a": 1, "b": -1, "tie": 0}[record["winner"]] * (1 if a < b else -1)
        key = min(a, b), max(a, b)
        counts[key][0] += 1
        counts[key][1] += sign == 1
        counts[key][2] += sign == -1
        if key not in crossed and log_e(*counts[key][1:]) >= log(20):
            crossed[key] = counts[key][0], "a" if counts[key][1] > counts[key][2] else "b"
    for (a, b), expected in counts.items():
        assert counts_of(folded.bench, a, b) == tuple(expected)
    decided = {
        (change.model_a, change.model_b): (change.evidence.n, change.after)
        for change in folded.bench.changes.values()
        if change.procedure == "anytime" and change.kind == "decided"
    }
    assert decided == crossed
    assert len(crossed) > 2


@pytest.mark.fault("benchmarks", "battles in chunks of any size, with restarts", "the same votes and verdicts")
@pytest.mark.full
@pytest.mark.parametrize(
    "spec", [{}, {"repeats": 2}, {"repeats": "all"}, {"family": {"policy": "capacity", "size": 3}}]
)
def test_no_chunking_and_no_restart_changes_anything(spec):
    records = stream(2, 500, models=3, prompts=60 if "repeats" in spec else 10**6, cluster=["x", "y", "z"])
    if spec == {"repeats": 2}:
        kept = defaultdict(list)
        for record in records:
            kept[record["item_id"], frozenset((record["model_a"], record["model_b"]))].append(record)
        allowed = {id(record) for group in kept.values() for record in group[:2]}
        records = [record for record in records if id(record) in allowed]
    ends = [{"ended": "bench"}]
    whole = FoldLog(declare(**spec))
    whole.send(*records)
    whole.send(*ends)
    single = FoldLog(declare(**spec))
    for record in records + ends:
        single.send(record)
        if single.partition.off % 70 == 0:
            single.restart()
    restarted = FoldLog(declare(**spec))
    for start in range(0, len(records), 37):
        restarted.send(*records[start : start + 37])
        restarted.restart()
    restarted.send(*ends)
    restarted.restart()
    for other in (single, restarted):
        assert verdicts(other) == verdicts(whole)
        assert other.bench.counters == whole.bench.counters
        for name in ("n", "b", "c", "scored", "total", "family_index"):
            assert np.array_equal(getattr(other.bench, name)[:3], getattr(whole.bench, name)[:3])
        assert np.array_equal(other.bench.battles.votes, whole.bench.battles.votes)
        if whole.bench.graded_pairs is not None:
            assert np.array_equal(other.bench.graded_pairs.capital[:3], whole.bench.graded_pairs.capital[:3])
    assert verdicts(whole)


def test_a_pair_without_a_battle_in_a_chunk_is_decided_by_the_decision_of_another():
    log = FoldLog(declare(family={"policy": "capacity", "size": 3}))
    log.send(*(battle(k, "m0", "m1", "a") for k in range(9)))
    assert not any(change.procedure == "anytime_family" for change in log.bench.changes.values())
    changes = log.send(*(battle(100 + k, "m0", "m2", "a") for k in range(12))).benchmarks[0].changes
    decided = {(c.model_a, c.model_b) for c in changes.values() if c.procedure == "anytime_family"}
    assert decided == {("m0", "m1"), ("m0", "m2")}


def test_a_unit_is_the_mean_of_its_votes_and_of_both_orders():
    def differences(*votes):
        columns = [(0, 0, judge, outcome, order, 0) for judge, (outcome, order) in enumerate(votes)]
        units = units_of(np.array(columns, np.int32))
        return (units.difference / SCORE_UNIT).round(6).tolist(), units.order.tolist(), units.swapped.tolist()

    assert differences((1, 0), (0, 0), (1, 0)) == ([0.666667], [0], [False])
    assert differences((1, 1), (1, 1), (-1, -1)) == ([0.0], [0], [True])
    assert differences((1, 1), (0, 1)) == ([0.5], [1], [False])
    assert differences((1, 1), (-1, -1), (1, 0), (1, 0)) == ([0.5], [0], [True])


def test_a_voter_who_votes_twice_counts_once():
    log = FoldLog(declare())
    log.send(battle(1, "m0", "m1", "a", cluster="v"), battle(1, "m1", "m0", "b", cluster="v"))
    log.send(battle(1, "m0", "m1", "b", cluster="v"), battle(1, "m0", "m1", "tie", cluster="v"))
    assert log.bench.counters == {"events": 4, "duplicates": 1, "conflicts": 2, "filled": 0, "rejected": 0}
    assert counts_of(log.bench, "m0", "m1") == (1, 1, 0)


def test_an_undeclared_vote_holds_the_benchmark_and_withdraws_its_verdicts():
    log = FoldLog(declare())
    log.send(*(battle(k, "m0", "m1", "a") for k in range(30)))
    assert log.changes["anytime", "decided"].after == "a"
    log.send(battle(3, "m0", "m1", "b", cluster="other"))
    assert "m0 and m1 have 2 votes on prompt 3, and 1 is declared" in log.bench.undeclared
    assert log.changes["anytime", "invalidated"].after is None
    log.restart()
    assert log.bench.undeclared
    log.send(battle(99, "m0", "m1", "a"))
    assert log.bench.battles.size == 32


def test_units_wait_for_their_votes_or_the_end_of_both_runs():
    log = FoldLog(declare(repeats=3))
    log.send(*(battle(1, "m0", "m1", "a", cluster=f"v{k}") for k in range(2)))
    assert counts_of(log.bench, "m0", "m1") == (0, 0, 0)
    log.send({"ended": "bench", "model": "m0"})
    assert counts_of(log.bench, "m0", "m1") == (0, 0, 0)
    log.send({"ended": "bench", "model": "m1"})
    assert counts_of(log.bench, "m0", "m1") == (1, 1, 0)
    log.send(battle(2, "m0", "m1", "a"))
    assert "has ended" in log.letters[-1].reason


@pytest.mark.parametrize(
    ("records", "text"),
    [
        ([battle(1, "m", "m", "a")], "both models of the battle"),
        ([event(1, "m", 1), battle(1, "m", "n", "a")], "holds scores of items"),
        ([battle(1, "m", "n", "a"), event(1, "m", 1)], "holds battles"),
        ([{"declare": "bench", "items": 5}, battle(1, "m", "n", "a")], "battles have neither"),
        ([{"declare": "bench", "aliases": {"x": "m"}}, battle(1, "m", "x", "a")], "both models of the battle"),
        ([battle(1, "m", "n", "c")], "use a, b or tie"),
        ([battle(1, "m", "n", "a", position="left")], "use a or b for the model that was shown first"),
        ([battle(1, "m\u0000", "n", "a")], "forbidden character"),
        ([battle(1, "m", "n", "a", epoch=2)], "epoch 2"),
    ],
)
def test_a_wrong_battle_is_a_dead_letter_and_loses_nothing_else(records, text):
    log = FoldLog()
    log.send(*records, battle(7, "m", "n", "tie", benchmark="other"))
    assert text in log.letters[-1].reason
    assert len(log.letters) == 1
    assert counts_of(log["other"], "m", "n") == (1, 0, 0)
    assert all(counts[pair_index(np.array([0]), np.array([1]))[0]] == 0 for counts in [log["other"].b])


def test_battles_and_scores_of_two_benchmarks_share_a_record():
    mixed = {
        "events": [event(1, "m", 1, benchmark="items"), event(1, "n", 0, benchmark="items")],
        "battles": [battle(1, "m", "n", "a")],
    }
    log = FoldLog(declare())
    log.send(mixed, event(2, "m", 1, benchmark="items"), battle(2, "m", "n", "b"))
    assert counts_of(log["bench"], "m", "n") == (2, 1, 1)
    assert counts_of(log["items"], "m", "n") == (1, 1, 0)


@pytest.mark.fault("benchmarks", "battles beyond a limit, in chunks of any size", "the same dead letters")
@pytest.mark.parametrize(("limits", "text"), [({"contestants": 3}, "3 models"), ({"rows": 20}, "20 ")])
def test_what_a_limit_refuses_does_not_depend_on_chunks_and_adds_no_name(limits, text):
    records = stream(3, 120, models=5, prompts=30, cluster=["x", "y"])
    records += [{"ended": "bench", "model": "m0"}, *stream(4, 60, models=5, prompts=40, cluster=["x", "z"])]
    states, letters = [], []
    for size in (1, 11, len(records)):
        log = FoldLog(declare(repeats="all"))
        log.partition.limits = Limits(**limits)
        reasons = []
        for start in range(0, len(records), size):
            before = len(log.letters)
            log.send(*records[start : start + size])
            reasons += [letter.reason for letter in log.letters[before:]]
        bench, votes = log.bench, log.bench.battles.votes
        states.append((bench.counters, bench.rows, bench.contestants, bench.battles.judges, votes.tolist()))
        letters.append(reasons)
        assert set(votes[:, 0].tolist()) == set(range(len(bench.rows)))
    assert states[0] == states[1] == states[2]
    assert letters[0] == letters[1] == letters[2]
    assert any(text in reason for reason in letters[0])


def test_a_new_version_judges_the_votes_again():
    log = FoldLog(declare(order="none"))
    log.send(*(battle(k, "m0", "m1", "a") for k in range(30)))
    assert not log.bench.changes
    log.send(declare(version=2))
    assert any(change.kind == "decided" for change in log.bench.changes.values())
    before = verdicts(log)
    log.restart()
    assert verdicts(log) == before
    log.send(declare(version=3, order="completion", items=30))
    assert "battles have neither" in log.letters[-1].reason
