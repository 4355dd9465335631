"""The event at which a latch closes, under which threshold, and what happens to it afterwards."""

import math
from itertools import permutations

import numpy as np
import pytest
from scipy.special import logsumexp

from monitor.view.build import benchmark_report
from monitor.view.from_state import board_view
from monitor.words.order import too_many_items
from schemas.results.verdict_changes import VerdictChanges
from stats import spending_alpha
from tests.fold_log import STRIDE, FoldLog, counts_of, event, packed, paired
from tests.oracle import log_e, log_exact

MIXTURES = ["beta(1,1)", "grid98"]


def grid98(b, c):
    theta = np.setdiff1d(np.arange(1, 100), [50]) / 100
    return float(logsumexp(b * np.log(2 * theta) + c * np.log(2 - 2 * theta)) - np.log(98))


EVIDENCE = {"beta(1,1)": log_e, "grid98": grid98}


def trusted(scores, **spec):
    """Fold the scores of models a and b under `trusted`, as one packed record after the declaration."""
    log = FoldLog({"declare": "bench", "order": "trusted", **spec})
    log.send(packed(scores, "ab"))
    return log


def late_lead(wins, losses, ties=0):
    """Scores that waver as long as possible, and lead at the end: ties first, then loss and win in turn, then wins."""
    middle = [[0, 1], [1, 0]] * losses
    return np.array([[1, 1]] * ties + middle + [[1, 0]] * (wins - losses))


def item_of(change):
    """Place of the item, in a stream packed item by item for two models, whose second event closed a latch."""
    offset, sequence = map(int, change.id.split("-"))
    assert offset == STRIDE
    index = sequence >> 38
    assert index % 2 == 1
    return index // 2


# --- the threshold ----------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mixture", MIXTURES)
@pytest.mark.parametrize(("m", "difference"), [(8, 8), (10, 10), (100, 32), (364, 66), (3134, 208)])
def test_smallest_difference_that_decides(mixture, m, difference):
    wins = (m + difference) // 2
    enough = trusted(late_lead(wins, m - wins), mixture=mixture)
    short = trusted(late_lead(wins - 1, m - wins + 1), mixture=mixture)
    assert "decided" in {kind for procedure, kind in enough.changes if procedure == "anytime"}
    assert enough.changes["anytime", "decided"].evidence.n <= m
    # One item the other way, and the running difference is below what its m needs at every step.
    assert short.changes == {}


@pytest.mark.parametrize("mixture", MIXTURES)
@pytest.mark.parametrize(
    ("wins", "losses", "ties"), [(8, 0, 0), (30, 4, 5), (66, 34, 100), (215, 149, 3), (200, 34, 7)]
)
def test_a_latch_closes_at_the_first_event_at_which_the_evidence_reaches_its_threshold(mixture, wins, losses, ties):
    scores = late_lead(wins, losses, ties)
    log = trusted(scores, mixture=mixture, family={"policy": "capacity", "size": 9})
    b, c = np.cumsum(scores > scores[:, ::-1], axis=0).T
    curve = [EVIDENCE[mixture](int(x), int(y)) for x, y in zip(b, c, strict=True)]
    expected = {}
    for procedure, threshold in (("anytime", math.log(20)), ("anytime_family", math.log(180))):
        reached = [k for k, value in enumerate(curve) if value >= threshold]
        if reached:
            expected[procedure] = (reached[0], threshold, curve[reached[0]])
    assert "anytime" in expected
    assert {procedure for procedure, _ in log.changes} == set(expected)
    for procedure, (k, threshold, value) in expected.items():
        change = log.changes[procedure, "decided"]
        assert item_of(change) == k
        evidence = change.evidence
        assert (evidence.n, evidence.b, evidence.c) == (k + 1, b[k], c[k])
        assert evidence.log_e == pytest.approx(value, abs=1e-9)
        assert evidence.log_threshold == pytest.approx(threshold, abs=1e-12)
        assert (change.after, change.before, evidence.missing) == ("a", None, 0)


def test_evidence_that_fell_back_within_a_chunk_still_counts():
    scores = np.array([[1, 0]] * 8 + [[0, 1]] * 8)
    for log in (trusted(scores), FoldLog({"declare": "bench", "order": "trusted"})):
        if not log.bench.contestants:
            for record in packed(scores, "ab")["events"]:
                log.send(record)
        assert log.changes["anytime", "decided"].evidence.n == 8
        assert counts_of(log.bench, "a", "b") == (16, 8, 8)


def test_without_a_policy_nothing_latches():
    log = FoldLog()
    log.send(packed(paired(100, 0), "ab"))
    assert log.bench.changes == {}
    assert log.bench.registered.total() == 1


# --- completion -------------------------------------------------------------------------------------------------------------------------

PUBLISHED = {"4v5": (1871, 1076), "2v3": (284, 76), "1v2": (253, 111), "7v8": (352, 242), "5v6": (1680, 1454)}
TOLERATED = {"4v5": 676, "2v3": 162, "1v2": 98, "7v8": 58, "5v6": 113}
"""Missing items at which the exact test still decides at alpha = .05."""


@pytest.mark.parametrize("pair", PUBLISHED)
def test_missing_items_that_completion_tolerates(pair):
    wins, losses = PUBLISHED[pair]
    scores = late_lead(wins, losses)
    for missing, decides in ((TOLERATED[pair], True), (TOLERATED[pair] + 1, False)):
        log = FoldLog({"declare": "bench", "items": wins + losses + missing})
        log.send(packed(scores, "ab"))
        assert (("anytime", "decided") in log.changes) == decides
    assert set(log.changes) == {("settled", "settled")}  # who leads on these items is certain earlier


def test_a_completion_verdict_comes_at_the_first_event_that_makes_it_final():
    items, scores = 60, late_lead(45, 5, 4)
    log = FoldLog({"declare": "bench", "items": items})
    log.send(packed(scores, "ab"))
    b, c = np.cumsum(scores > scores[:, ::-1], axis=0).T
    bound = [log_exact(int(x), int(y), items - k - 1) for k, (x, y) in enumerate(zip(b, c, strict=True))]
    k = next(k for k, value in enumerate(bound) if value >= math.log(20))
    change = log.changes["anytime", "decided"]
    assert item_of(change) == k < len(scores) - 1
    assert change.evidence.missing == items - k - 1
    assert change.evidence.log_e == pytest.approx(bound[k], abs=1e-9)
    assert f"even if all {items - k - 1} missing items went the other way" in change.sentence


def test_a_completion_verdict_cannot_be_undone():
    log = FoldLog({"declare": "bench", "items": 60})
    log.send(packed(paired(45, 0), "ab"))
    before = dict(log.bench.changes)
    assert before
    log.send(packed(np.tile([0, 1], (15, 1)), "ab", items=range(45, 60)))
    assert log.bench.changes == before
    n, b, c = counts_of(log.bench, "a", "b")
    assert (n, b, c) == (60, 45, 15)
    assert log_e(b, c) >= before["0:anytime:decided"].evidence.log_e


def test_a_skipped_item_stays_missing_for_good():
    skip = [event(k, "a", None) for k in range(30)]
    log = FoldLog({"declare": "bench", "items": 60})
    log.send(*skip, packed(paired(30, 0), "ab", items=range(30, 60)))
    assert log.bench.changes == {}  # 30 to nothing, but 30 against it are counted: skipped is not scored


@pytest.mark.parametrize("chunks", [1, 4])
def test_more_items_than_declared_stop_the_betting_and_keep_what_was_decided(chunks):
    scores = paired(60, 0)
    log = FoldLog({"declare": "bench", "items": 30})
    records = packed(scores, "ab")["events"]
    for part in np.array_split(np.arange(len(records)), chunks):
        log.send({"events": [records[k] for k in part]})
    assert log.bench.too_many_items
    assert not log.bench.can_decide
    # Decided within the declared 30 items for the pair by itself, and nothing since.
    assert {change.evidence.n for change in log.bench.changes.values()} <= set(range(31))
    assert ("anytime", "decided") in log.changes
    short = FoldLog({"declare": "bench", "items": 9})
    short.send(packed(paired(0, 0, 9), "ab"), packed(paired(50, 0), "ab", items=range(9, 59)))
    # After 9 equal items both had the same score, and then there were more.
    assert set(short.changes) == {("settled", "settled"), ("settled", "invalidated")}
    assert short.changes["settled", "settled"].after == "tie"


def of_trusted_count(items, **spec):
    return FoldLog({"declare": "bench", "order": "trusted", "items": items, **spec})


def test_a_bare_count_settles_under_a_trusted_order_and_the_sentence_rests_on_it():
    scores = packed(paired(16, 0, 14), "ab")
    log, listed = of_trusted_count(30), of_trusted_count(30, item_ids=[str(k) for k in range(30)])
    for each in (log, listed):
        each.send(scores)
        settled = each.changes["settled", "settled"]
        assert (settled.after, settled.evidence.n, settled.evidence.missing) == ("a", 16, 14)
    assert "Assumes that the declared number of items is the whole" in log.changes["settled", "settled"].sentence
    assert "Assumes" not in listed.changes["settled", "settled"].sentence


@pytest.mark.parametrize("chunks", [1, 4])
def test_more_items_than_declared_withdraw_what_is_settled_under_a_trusted_order_and_no_decision(chunks):
    log = of_trusted_count(30)
    records = packed(paired(20, 0, 11), "ab")["events"]
    for part in np.array_split(np.arange(len(records)), chunks):
        log.send({"events": [records[k] for k in part]})
        log.restart()
    ended = log.changes["settled", "invalidated"]
    assert ended.id.split("-")[0] == str(10 * chunks)  # in the last record: item 31
    assert too_many_items("bench", 30) in ended.sentence
    assert ("anytime", "invalidated") not in log.changes
    report = benchmark_report(board_view(log.bench))
    over = {"code": "too_many_items", "benchmark": "bench", "declared": 30, "arrived": 31}
    assert report.order.facts == [{"code": "lead_unsettled", "because": [over]}]
    assert (report.pairs[0].settled, report.pairs[0].status) == (None, "decided")
    log.send(packed(paired(40, 0), "ab", items=range(31, 71)))
    assert sum(change.procedure == "settled" for change in log.bench.changes.values()) == 2


# --- reversals --------------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("chunks", [1, 3, 40])
def test_a_reversal_is_reported_once_and_the_decision_stands(chunks):
    scores = [[1, 0]] * 8 + [[0, 1]] * 12 + [[1, 0]] * 12 + [[0, 1]] * 12
    log = FoldLog({"declare": "bench", "order": "trusted"})
    records = packed(scores, "ab")["events"]
    for part in np.array_split(np.arange(len(records)), chunks):
        log.send({"events": [records[k] for k in part]})
    assert set(log.changes) == {("anytime", "decided"), ("anytime", "reversed")}
    turned = log.changes["anytime", "reversed"]
    assert (turned.before, turned.after) == ("a", "b")
    assert (turned.evidence.n, turned.evidence.b, turned.evidence.c) == (17, 8, 9)
    assert log.bench.latched["anytime"][0] == 2
    assert sum(len(b.changes) for d in log.deltas for b in d.benchmarks) == 2


def test_a_reversal_is_not_reported_again_on_the_way_to_the_family_verdict():
    log = FoldLog({"declare": "bench", "order": "trusted"})
    scores = paired(8, 12), paired(60, 0)
    log.send(packed(scores[0], "ab"))
    reversed_at = log.changes["anytime", "reversed"].id
    delta = log.send(packed(scores[1], "ab", items=range(20, 80)))
    assert [(c.procedure, c.kind, c.after) for c in delta.benchmarks[0].changes.values()] == [
        ("anytime_family", "decided", "a")
    ]
    assert log.changes["anytime", "reversed"].id == reversed_at


@pytest.mark.parametrize("chunks", [1, 2, 60])
@pytest.mark.parametrize(
    ("scores", "words"),
    [("binary", "only a is right on 9 and only b on 20"), ("graded", "its mean score is lower by 0.2821")],
)
def test_a_pair_that_another_one_latches_counts_for_the_model_it_is_decided_for(scores, words, chunks):
    log = FoldLog({"declare": "bench", "order": "trusted", "family": {"models": ["a", "b", "c"]}, "scores": scores})
    first = np.column_stack([paired(9, 20), np.full(29, np.nan)])
    records = packed(np.vstack([first, [[1, 1, 0]] * 14]), "abc")["events"]
    for part in np.array_split(np.arange(len(records)), chunks):
        log.send({"events": [records[k] for k in part]})
    late = log.bench.changes["0:anytime_family:decided"]
    assert (late.model_a, late.model_b, late.after) == ("a", "b", "a")
    assert late.evidence.gap < 0
    assert (
        "decided family-wise at alpha = 0.05 by its largest evidence so far, although a does not lead now: "
        in late.sentence
    )
    assert words in late.sentence


def test_a_tie_is_no_reversal():
    assert set(trusted([[1, 0]] * 8 + [[0, 1]] * 8).changes) == {("anytime", "decided")}


# --- families ---------------------------------------------------------------------------------------------------------------------------


def family(log):
    """Pairs (as names) in the order of their places in the family."""
    benchmark = log.bench
    names = [c.model for c in benchmark.contestants]
    places = {
        int(benchmark.family_index[j * (j - 1) // 2 + i]): (names[i], names[j])
        for j in range(len(names))
        for i in range(j)
    }
    places.pop(0, None)
    assert sorted(places) == list(range(1, benchmark.registered.total() + 1))
    return [places[k] for k in sorted(places)]


ARRIVALS = [("x", "d"), ("x", "c"), ("y", "a"), ("y", "d"), ("x", "a"), ("y", "b"), ("z", "b"), ("z", "c")]


@pytest.mark.parametrize("chunks", [1, 2, 8])
def test_pairs_join_the_family_at_their_first_shared_item_ties_in_the_order_of_the_models(chunks):
    log = FoldLog()
    records = [event(item, model, 1) for item, model in ARRIVALS]
    for part in np.array_split(np.arange(len(records)), chunks):
        log.send(*(records[k] for k in part))
    # d, c, a, b is the order of the models. On x: d-c; on y: d-a; on x: c-a; on y b meets d and a; on z: c-b.
    assert family(log) == [("d", "c"), ("d", "a"), ("c", "a"), ("d", "b"), ("a", "b"), ("c", "b")]


def test_a_place_in_the_family_does_not_depend_on_scores():
    rng = np.random.default_rng(4)
    orders = set()
    for _ in range(20):
        log = FoldLog()
        log.send(*(event(item, model, int(rng.integers(2))) for item, model in ARRIVALS))
        orders.add(tuple(family(log)))
    assert len(orders) == 1


def test_a_skipped_item_registers_no_pair():
    log = FoldLog()
    log.send(event(1, "a", None), event(1, "b", 1), event(1, "c", 1), event(2, "a", 1), event(2, "c", 0))
    assert family(log) == [("b", "c"), ("a", "c")]


def test_every_pair_of_a_growing_family_has_its_own_threshold():
    log = FoldLog({"declare": "bench", "order": "trusted"})
    log.send(packed(np.tile([1, 0, 0], (40, 1)), "abc"))
    latches = {}
    for field, change in log.bench.changes.items():
        pair, procedure, _ = field.split(":")
        if procedure == "anytime_family":
            latches[int(pair)] = (change.evidence.log_threshold, change.evidence.n)
    # Pair 0 is (a, b), place 1; pair 1 is (a, c), place 2. (b, c) has no discordant item. The first decision lowers what follows.
    for pair, place, open_share in ((0, 1, 1), (1, 2, 1 - spending_alpha(1) / 0.05)):
        threshold = -math.log(spending_alpha(place)) + math.log(open_share)
        need = next(n for n in range(1, 41) if log_e(n, 0) >= threshold)
        assert latches[pair] == (pytest.approx(threshold, abs=1e-12), need)
    assert set(latches) == {0, 1}


def test_a_pair_beyond_the_capacity_gets_no_family_verdict():
    log = FoldLog({"declare": "bench", "order": "trusted", "family": {"policy": "capacity", "size": 1}})
    log.send(packed(np.tile([1, 0, 0], (40, 1)), "abc"))
    kinds = {tuple(field.split(":")[:2]) for field in log.bench.changes}
    assert kinds == {("0", "anytime"), ("0", "anytime_family"), ("1", "anytime")}
    assert log.bench.registered.total() == 3


def test_a_declared_pair_has_its_place_whoever_comes_first():
    spec = {"policy": "capacity", "pairs": [["c", "a"]]}
    log = FoldLog({"declare": "bench", "order": "trusted", "family": spec})
    log.send(packed(np.tile([1, 0, 0], (40, 1)), "abc"))
    assert family(log) == [("a", "c")]
    decided = {field: c for field, c in log.bench.changes.items() if "anytime_family" in field}
    assert list(decided) == ["1:anytime_family:decided"]
    assert decided["1:anytime_family:decided"].evidence.log_threshold == pytest.approx(math.log(20))


def test_a_new_epoch_is_a_new_hypothesis_with_the_first_place_of_its_family():
    log = FoldLog({"declare": "bench", "order": "trusted"})
    log.send(packed(paired(20, 0), "ab"), *(event(k, "b", 0, epoch=1) for k in range(20)))
    assert log.bench.registered.total() == 2
    first, second = (log.bench.changes[f"{pair}:anytime_family:decided"].evidence for pair in (0, 1))
    assert first.log_threshold == pytest.approx(-math.log(spending_alpha(1)))
    assert second.log_threshold == pytest.approx(-math.log(spending_alpha(1)))
    assert log.bench.changes["1:anytime_family:decided"].epoch_b == 1


@pytest.mark.parametrize("policy", [{"order": "trusted"}, {"items": 40}])
def test_two_epochs_of_one_model_are_no_hypothesis(policy):
    log = FoldLog({"declare": "bench", **policy})
    log.send(*(event(k, "a", 0) for k in range(40)), *(event(k, "a", 1, epoch=1) for k in range(40)))
    assert (log.bench.b[0], log.bench.c[0]) == (0, 40)
    assert not log.bench.changes
    assert not log.bench.registered.total()


# --- names ------------------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("policy", [{"order": "trusted"}, {"items": 60}])
@pytest.mark.parametrize("names", list(permutations(["m", "z", "a"])))
def test_verdicts_do_not_depend_on_the_names_of_models_nor_on_their_order(policy, names):
    rng = np.random.default_rng(5)
    scores = (rng.random((60, 3)) < [0.95, 0.5, 0.1]).astype(int)

    def verdicts(order, names):
        log = FoldLog({"declare": "bench", "family": {"policy": "capacity", "size": 3}, **policy})
        log.send(packed(scores[:, order], [names[k] for k in order]))
        role = {name: k for k, name in enumerate(names)}
        sides = set()
        for field, change in log.bench.changes.items():
            _, procedure, kind = field.split(":")
            assert change.model_a < change.model_b
            better, worse = (
                (change.model_a, change.model_b) if change.after == "a" else (change.model_b, change.model_a)
            )
            evidence = change.evidence
            wins, losses = (evidence.b, evidence.c) if change.after == "a" else (evidence.c, evidence.b)
            assert evidence.gap == pytest.approx((evidence.b - evidence.c) / evidence.n)
            assert change.sentence.startswith(f"{better} {'leads' if kind == 'settled' else 'is better than'} {worse}")
            log_e = None if kind == "settled" else round(evidence.log_e, 9)
            sides.add((procedure, kind, role[better], role[worse], evidence.n, wins, losses, log_e))
        return sides

    straight = verdicts([0, 1, 2], ["p", "q", "r"])
    assert {(better, worse) for _, _, better, worse, *_ in straight} >= {(0, 2), (0, 1)}
    assert verdicts([0, 1, 2], names) == straight
    assert verdicts([2, 0, 1], names) == straight


@pytest.mark.parametrize("order", ["trusted", "completion"])
def test_a_latch_that_is_open_above_its_threshold_closes_at_the_next_event(order):
    log = FoldLog({"declare": "bench", "order": order, "items": 40})
    log.send(packed(np.array([[1, 0]] * 38), "ab"))
    for latch in log.bench.latched.values():
        assert latch[0] == 1
        latch[0] = 0
    log.bench.loop = None  # it holds what follows from the latches
    log.bench.changes = VerdictChanges()
    log.store.state.benchmarks[0].changes = VerdictChanges()
    log.send(packed(np.array([[1, 0]]), "ab", items=[38]))
    assert {kind for _, kind in log.changes} == {"decided"}
