"""Anytime verdicts of suites: what they need, what they rest on, and that they are never withdrawn."""

import hashlib

import numpy as np
import pytest

from monitor.view.build import table_view
from monitor.view.pairs.table import PairTable
from monitor.view.partition_view import board_views
from monitor.view.ranking.suite import suite_board
from monitor.words.assumptions import TEXTS
from schemas.records.suites import Member, Suite
from schemas.results.reasons import Reason, fact
from stats.evidence.graded import graded_bound, graded_log_e_halves, initial_capital, log_increments, update_capital
from tests.fold_log import FoldLog, event, packed

SIZES = {"easy": 60, "hard": 20}
MODELS = ["ash", "birch", "cedar"]
FAMILY = {"models": MODELS}
SCALE = {"easy": 1 / 3, "hard": 1.0}
"""What an item of a member counts in the bets, both members counting the same."""


def scores(seed=1):
    """Scores by member: ash is better than birch, cedar as good as birch."""
    rng = np.random.default_rng(seed)
    return {name: (rng.random((n, 3)) < [0.9, 0.2, 0.2]).astype(int) for name, n in SIZES.items()}


def declaration(name, policy, **more):
    ids = [str(k) for k in range(SIZES[name])]
    order = (
        {"items": len(ids)}
        if policy == "completion"
        else {"order": {"policy": "committed", "seed": f"of {name}"}, "item_ids": ids}
    )
    return {"declare": name, "family": FAMILY, **order, **more}


def log_of(policy, **more):
    return FoldLog(*(declaration(name, policy, **more) for name in SIZES))


OVERALL = Suite("overall", dict.fromkeys(SIZES, Member()), distinct=True)


def suite_of(log, suite=OVERALL):
    boards = board_views([log.partition])
    table = PairTable(suite_board(suite, boards, assert_complete=False))
    return table_view(table, "all").report


def pair_of(report, *models):
    (pair,) = (p for p in report.pairs if {p.model_a, p.model_b} == set(models))
    return pair


def test_under_completion_the_bound_of_the_weighted_bets_decides_and_only_grows():
    log, last = log_of("completion"), {}
    for start in range(0, 60, 6):
        for name, values in scores().items():
            part = values[start : start + 6]
            if len(part):
                log.send(packed(part, MODELS, items=range(start, start + len(part)), benchmark=name))
        report = suite_of(log)
        for pair in report.pairs:
            assert pair.p_anytime <= last.get((pair.model_a, pair.model_b), 1) + 1e-12 or start == 0
            last = {(p.model_a, p.model_b): p.p_anytime for p in report.pairs} | {
                (p.model_b, p.model_a): p.p_anytime for p in report.pairs
            }
    state = initial_capital()
    for name, values in scores().items():
        state = update_capital(state, SCALE[name] * (values[:, 0] - values[:, 1]))
    pair = pair_of(report, "ash", "birch")
    assert -np.log(pair.p_anytime) == pytest.approx(max(map(float, graded_bound(state))), rel=1e-9)
    assert (pair.status, pair.decided.anytime_family, report.order.policy) == ("decided", "a", "completion")
    assert (report.family.policy, report.family.size) == ("capacity", 3)
    assert "the suite, its weights and its baselines were not chosen because of the scores" in pair.reason
    assert pair_of(report, "birch", "cedar").status in {"exhausted", "collecting"}


def expected_peak(log, a, b):
    """The largest ln e of two models along the union of the committed orders, item by item, at the looks."""
    keyed = []
    for name, size in SIZES.items():
        bench = log[name]
        for k in range(size):
            key = hashlib.sha256(f"of {name}\0{k}".encode()).digest()
            row = bench.row_of.get(str(k))
            codes = (
                (0, 0)
                if row is None
                else tuple(int(bench.scores[row, [c.model for c in bench.contestants].index(m)]) for m in (a, b))
            )
            keyed.append((key, SCALE[name], codes))
    capital, peak = initial_capital(), 0.0
    for _, scale, codes in sorted(keyed):
        if 0 in codes:
            break
        (a_low, a_high), (b_low, b_high) = ((0, 1) if code == 1 else (code - 2, code - 2) for code in codes)
        worst, best = a_low - b_high, a_high - b_low
        capital[0] += log_increments(scale * worst)[0]
        capital[1] += log_increments(scale * best)[1]
        peak = max(peak, float(np.logaddexp(*graded_log_e_halves(capital)) - np.log(2)))
    return peak


@pytest.mark.parametrize("hole", ["nothing", "a skip", "an absent item"])
def test_committed_members_bet_along_one_permutation_of_the_union(hole):
    log = log_of("committed")
    for name, values in scores().items():
        events = [
            event(k, m, int(x), benchmark=name)
            for k, row in enumerate(values)
            for m, x in zip(MODELS, row, strict=True)
        ]
        if name == "easy" and hole != "nothing":
            events = [e for e in events if not (e["item_id"] in {"7", "11"} and e["model"] == "ash")]
            events += [event(k, "ash", None, benchmark=name) for k in (7, 11) if hole == "a skip"]
        log.send(*events)
    report = suite_of(log)
    for a, b in (("ash", "birch"), ("ash", "cedar"), ("birch", "cedar")):
        assert -np.log(pair_of(report, a, b).p_anytime) == pytest.approx(expected_peak(log, a, b), rel=1e-9, abs=1e-9)
    pair = pair_of(report, "ash", "birch")
    assert (pair.status, report.order.policy, pair.gap_low) == ("decided", "committed", None)
    assert "their order comes from the committed seed" in pair.reason


def test_a_pair_has_a_place_in_the_smallest_family_that_a_member_declares():
    log = FoldLog(
        declaration("easy", "completion"), declaration("hard", "completion", family={"policy": "capacity", "size": 45})
    )
    for name, values in scores().items():
        log.send(packed(values, MODELS, benchmark=name))
    assert suite_of(log).family.size == 3
    for family, reason in (
        ({"policy": "spending"}, "no member declares its family"),
        ({"policy": "capacity", "size": 2}, "the suite has 3 pairs, and a member declares a family of 2"),
    ):
        log = log_of("completion", family=family)
        for name, values in scores().items():
            log.send(packed(values, MODELS, benchmark=name))
        pair = pair_of(suite_of(log), "ash", "birch")
        assert (pair.decided.anytime, pair.decided.anytime_family) == ("a", None)
        assert reason in pair.reason


@pytest.mark.parametrize(
    ("declared", "why"),
    [
        ([declaration("easy", "completion")], fact(Reason.MEMBER_ORDER, member="hard", policy="none")),
        (
            [declaration("easy", "completion"), {"declare": "hard", "order": "trusted"}],
            fact(Reason.MEMBER_ORDER, member="hard", policy="trusted"),
        ),
        ([declaration("easy", "completion"), declaration("hard", "committed")], fact(Reason.MIXED_POLICIES)),
        (
            [declaration(name, "committed", order={"policy": "committed", "seed": "one"}) for name in SIZES],
            fact(Reason.SAME_SEED, members=["easy", "hard"]),
        ),
        (
            [declaration("easy", "completion", items=59), declaration("hard", "completion")],
            fact(
                Reason.MEMBER_HELD,
                member="easy",
                because=[fact(Reason.TOO_MANY_ITEMS, benchmark="easy", declared=59, arrived=60)],
            ),
        ),
    ],
)
def test_without_one_policy_of_all_members_every_pair_is_held(declared, why):
    log = FoldLog(*declared)
    for name, values in scores().items():
        log.send(packed(values, MODELS, benchmark=name))
    report = suite_of(log)
    assert {p.status for p in report.pairs} == {"held"}
    for pair in report.pairs:
        (no_order,) = pair.facts[0]["because"]
        (found,) = no_order["because"]
        found.pop("item", None)
        assert (no_order["code"], found) == (Reason.NO_SUITE_ORDER, why)
        assert pair.decided.anytime_family is None


def test_replaced_scores_are_part_of_what_a_verdict_assumes():
    log = log_of("completion")
    for name, values in scores().items():
        log.send(packed(values, MODELS, benchmark=name))
    log.send(*(event(k, "ash", 1, benchmark="hard", epoch=1) for k in range(20)))
    assert TEXTS["rescored"] in pair_of(suite_of(log), "ash", "birch").reason


def test_a_model_that_lacks_a_member_may_count_0_in_it():
    log = log_of("completion")
    for name, values in scores().items():
        log.send(packed(values, MODELS, benchmark=name))
    log.send(*(event(k, "dune", 1, benchmark="hard") for k in range(20)))
    suite = Suite("overall", dict.fromkeys(SIZES, Member()), "worst", distinct=True)
    report = suite_of(log, suite)
    means = {m.model: m.mean for m in report.models}
    assert means["dune"] == pytest.approx(0.5)
    assert list(means) == sorted(means, key=means.get, reverse=True)
    assert (report.suite.lacking, report.suite.missing) == ({"dune": ["easy"]}, "worst")
    pair = pair_of(report, "dune", "birch")
    assert (pair.gap, pair.decided.fixed_n, pair.settled, pair.decided.anytime) == (None, None, None, None)


def test_items_whose_names_would_be_one_stay_two():
    suite = Suite("overall", {"a": Member(), "a/b": Member()}, distinct=True)
    log = FoldLog()
    log.send(*(event(item, m, 1, benchmark=name) for name, item in (("a", "b/c"), ("a/b", "c")) for m in MODELS))
    assert suite_of(log, suite).items == 2


@pytest.mark.parametrize("policy", ["completion", "committed"])
def test_units_of_members_count_once(policy):
    """Three copies of each item that a model has all right or all wrong are as one item of the name of their unit."""
    single, log = log_of(policy), FoldLog()
    for name, values in scores().items():
        units = {f"{item}.{copy}": str(item) for item in range(SIZES[name]) for copy in range(3)}
        fields = declaration(name, policy, units=units)
        log.send(fields | ({"item_ids": list(units)} if policy == "committed" else {}))
        single.send(packed(values, MODELS, benchmark=name))
        log.send(
            *(packed(values, MODELS, items=[f"{k}.{c}" for k in range(len(values))], benchmark=name) for c in range(3))
        )
    for one, other in (("ash", "birch"), ("birch", "cedar")):
        copies, items = (pair_of(suite_of(each), one, other) for each in (log, single))
        assert (copies.n, copies.status, copies.gap) == (items.n, items.status, items.gap)
        assert copies.p_anytime == pytest.approx(items.p_anytime, rel=1e-9)
    assert {"code": "units"} in suite_of(log).assumptions


def test_units_of_a_committed_suite_bet_by_their_mean():
    """Differences of any size bet: two copies of which a model has one right are worth half of two."""
    log, half = FoldLog(), FoldLog()
    for name, size in SIZES.items():
        rng = np.random.default_rng(size)
        units = {f"{item}.{copy}": str(item) for item in range(size) for copy in range(2)}
        seeded = {"declare": name, "family": FAMILY, "order": {"policy": "committed", "seed": f"of {name}"}}
        log.send(seeded | {"item_ids": list(units), "units": units})
        half.send({"declare": name, "family": FAMILY, "items": size, "scores": "graded"})
        values = (rng.random((size, 3, 2)) < np.array([0.9, 0.2, 0.2])[:, None]).astype(int)
        log.send(
            *(packed(values[:, :, c], MODELS, items=[f"{k}.{c}" for k in range(size)], benchmark=name) for c in (0, 1))
        )
        half.send(packed(values.mean(axis=2), MODELS, benchmark=name))
    # All items are in, so the bets along the order end with the capital of those items in any order.
    for models in (("ash", "birch"), ("birch", "cedar")):
        committed, complete = pair_of(suite_of(log), *models), pair_of(suite_of(half), *models)
        assert (committed.n, committed.gap) == (80, complete.gap)
        assert committed.log_e == pytest.approx(complete.log_e, rel=1e-9)
