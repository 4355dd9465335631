"""From a state to its report: statuses, sentences, counts and columns."""

import math

import numpy as np
import pytest
from scipy.stats import binomtest, ttest_1samp
from scipy.stats import t as student

from monitor.view.build import benchmark_report, build_report
from monitor.view.from_state import board_view
from monitor.view.pairs.table import PairTable
from monitor.view.partition_view import board_views
from monitor.words.assumptions import TEXTS, clauses
from monitor.words.header import assumed, coverage
from schemas.results.assumptions import FAMILY, Assumption, without
from schemas.results.assumptions import only as only_of
from schemas.results.reasons import Reason, fact, has
from schemas.results.report import Status
from stats import committed_order, moments_from_sums, required_n_paired
from stats.clusters import robust as cluster_stats
from stats.intervals.completion_gap import completion_interval
from stats.intervals.confidence import gap_interval
from tests import report_factory
from tests.fold_log import FoldLog, event, packed, paired
from tests.oracle import log_e


def mixed(wins, losses, ties=0):
    """The scores of `paired` in a random order, as `trusted` says they come."""
    return np.random.default_rng(1).permutation(paired(wins, losses, ties))


CLEAR, CLOSE, EQUAL = mixed(60, 5, 35), mixed(33, 31, 36), mixed(20, 20, 960)


def report(log, *, pairs="all", **options):
    return benchmark_report(board_view(log.bench), pairs=pairs, **options)


def only(log, **options):
    (pair,) = report(log, **options).pairs
    return pair


def given(facts, code):
    """The one fact with a code."""
    (found,) = (each for each in facts if each["code"] == code)
    return found


def of(scores=CLEAR, models=("a", "b"), **spec):
    """Fold a table of scores under a declaration (none if nothing is declared)."""
    log = FoldLog(*([{"declare": "bench", **spec}] if spec else []))
    log.send(packed(scores, models))
    return log


@pytest.mark.parametrize("items", [2_000_000, 3_000_000, 30_000_000])
def test_so_many_missing_items_that_their_sum_overflows_decide_nothing(items):
    """Repeats that nobody declared have means; what is missing at its worst was a large gain from 3,000,000 items on."""
    log = FoldLog({"declare": "bench", "items": items})
    log.send(*(event(1, "a", score, repeat=k) for k, score in enumerate((1, 1, 0))), event(1, "b", 0))
    pair = only(log, assert_complete=True)
    assert (pair.settled, pair.decided.anytime, pair.decided.anytime_family, pair.p_anytime) == (None, None, None, 1.0)
    assert (pair.gap_low, pair.gap_high) == pytest.approx((-1, 1), abs=1e-5)


def test_a_decision_takes_the_items_of_the_test_that_gives_it():
    """It was the e-value's, three times as many; and 0 of a pair whose missing items count at their worst."""
    scores = np.random.default_rng(0).permutation(np.repeat([[1, 0], [0, 1], [1, 1]], [1067, 1012, 9953], axis=0))
    pair = only(of(scores, items=12_032, family={"policy": "capacity", "size": 27}), assert_complete=True)
    assert pair.items_to_decision == pytest.approx(68_533, abs=1)
    log = of(scores[:1_000], items=12_032)
    log.send({"ended": "bench"})
    few = only(log)
    assert (few.status, few.items_to_decision) == ("exhausted", None)
    assert not has(few.facts, Reason.NEVER)


# --- the golden case --------------------------------------------------------------------------------------------------------------------


def rank_5_and_6(**spec):
    """MMLU-Pro ranks 5 and 6: the accuracies fix how many items both have right."""
    scores = np.repeat([[1, 0], [0, 1], [1, 1], [0, 0]], [1680, 1454, 5949, 2949], axis=0)
    # In this order ln e stays below 4.7.
    return of(np.random.default_rng(0).permutation(scores), ["rank 5", "rank 6"], **spec)


@pytest.mark.parametrize("spec", [{"items": 12_032}, {}], ids=["declared", "asserted"])
def test_the_exact_test_decides_ranks_5_and_6_also_in_a_family_of_nine(spec):
    pair = only(rank_5_and_6(**spec, family={"policy": "capacity", "size": 9}), assert_complete=not spec)
    assert (pair.decided.anytime, pair.decided.anytime_family, pair.status) == ("a", "a", "decided")
    assert pair.log_e == pytest.approx(4.3537, abs=5e-5)
    low, high = completion_interval(12_032, 1_680, 1_454, 0, [0.05, 0.05 / 9])
    assert (pair.gap_low, pair.gap_family_low) == pytest.approx(tuple(low))
    assert (pair.gap_high, pair.gap_family_high) == pytest.approx(tuple(high))
    assert 0 < pair.gap_family_low < pair.gap_low < 0.00959064 + 1e-8


def test_ranks_5_and_6_are_decided_not_so_in_a_family_of_nine_resolved_and_not_resolved_anytime():
    log = rank_5_and_6(order="trusted", family={"policy": "capacity", "size": 9})
    whole = report(log)
    (pair,) = whole.pairs
    assert (pair.model_a, pair.n, pair.b, pair.c) == ("rank 5", 12_032, 1_680, 1_454)
    assert (whole.family.policy, whole.family.size) == ("capacity", 9)
    assert (pair.p_a, pair.p_b, pair.rho) == pytest.approx((0.6341, 0.6153, 0.45), abs=5e-3)
    assert pair.log_e == pytest.approx(4.3537, abs=5e-5)
    assert pair.decided.anytime == "a"
    assert pair.decided.anytime_family is None
    assert pair.resolution_ratio == pytest.approx(2.079, abs=5e-4)
    assert (pair.resolved.fixed_n, pair.resolved.anytime) == (True, False)
    table = PairTable(board_view(log.bench))
    assert float(table.pairs.n[0] / table.kind.anytime_required_n(np.array([0]))[0]) == pytest.approx(0.796, abs=5e-4)
    assert (pair.gap_low, pair.gap_high) == pytest.approx((0.001637, 0.035946), abs=5e-7)
    assert pair.gap_family_low < 0 < pair.gap_low
    assert pair.p_exact == pytest.approx(binomtest(1_680, 3_134).pvalue, rel=1e-9)
    assert pair.status == "collecting"
    assert pair.facts[:2] == [
        fact(Reason.PAIR_ONLY, side="a", alpha=0.05, end=None),
        fact(Reason.NOT_FAMILY_WISE, exhausted=False),
    ]
    assert fact(Reason.INFORMATIVE, informative=3_134, n=12_032) in pair.facts
    assert whole.summary.undecided["anytime"] == 0
    assert whole.summary.undecided["anytime_family"] == 1
    assert whole.summary.unresolved == {
        "fixed_n": 0,
        "bonferroni": 0,
        "anytime": 1,
        "bonferroni_adjacent": 0,
    }


# --- statuses ---------------------------------------------------------------------------------------------------------------------------


def overfull(scores, **spec):
    log = of(scores, items=len(scores), **spec)
    log.send(event("one more", "a", 1))
    return log


COMMITTED = {"order": {"policy": "committed", "seed": "s"}, "item_ids": [str(k) for k in range(100)]}

STATUSES = {
    "decided": lambda: of(items=100),
    "decided, trusted": lambda: of(order="trusted"),
    "decided inside the margin": lambda: of(items=100, margin=0.9),
    "decided, then the margin was declared": lambda: of(order="trusted", items=100, margin=0.99),
    "equivalent": lambda: of(EQUAL, order="trusted", margin=0.05),
    "equivalent, not exhausted": lambda: of(EQUAL, items=1_000, margin=0.05),
    "collecting inside the margin": lambda: of(EQUAL, items=1_001, margin=0.05),
    "exhausted": lambda: of(CLOSE, items=100),
    "exhausted, trusted": lambda: of(CLOSE, items=100, order="trusted"),
    "collecting": lambda: of(CLOSE, items=101),
    "collecting, trusted": lambda: of(CLOSE, order="trusted"),
    "held: nothing declared": of,
    "decided, committed": lambda: of(**COMMITTED),
    "exhausted, committed": lambda: of(CLOSE, **COMMITTED),
    "held: overfull": lambda: overfull(CLOSE),
    "held: overfull and inside the margin": lambda: overfull(EQUAL, margin=0.05),
    "held: nothing declared but a margin": lambda: of(EQUAL, margin=0.05),
    "held: graded": lambda: of([*CLOSE.tolist(), [0.5, 0]], order="trusted"),
    "invalidated: overfull": lambda: overfull(CLEAR),
    "decided, then graded": lambda: of([*CLEAR.tolist(), [0.5, 0]], order="trusted"),
}


@pytest.mark.parametrize("case", STATUSES)
def test_the_status_of_a_pair_is_the_first_that_holds(case):
    status = case.split(",")[0].split(":")[0].removesuffix(" inside the margin")
    pair = only(STATUSES[case]())
    assert pair.status == status
    side = pair.decided.anytime_family
    assert (side is not None) == (status == "decided")
    assert (pair.decided_at_n is not None) == (status in {"decided", "invalidated"})
    assert pair.items_to_decision is None or status != "decided"


def test_every_status_that_can_be_reached_was():
    reached = {only(make()).status for make in STATUSES.values()}
    # A superseded epoch is not among the current models, so it has no row.
    assert reached == set(Status.__args__) - {"superseded"}


@pytest.mark.parametrize(
    ("case", "codes"),
    [
        ("decided", [Reason.DECIDED, Reason.ASSUMES]),
        ("decided, trusted", [Reason.DECIDED, Reason.ASSUMES]),
        ("equivalent", [Reason.EQUIVALENT, Reason.RULED_OUT, Reason.INFORMATIVE, Reason.ASSUMES]),
        ("exhausted", [Reason.EXHAUSTED, Reason.RULED_OUT, Reason.INFORMATIVE, Reason.NEEDS_ITEMS]),
        ("collecting", [Reason.MISSING_ITEMS, Reason.RULED_OUT, Reason.INFORMATIVE, Reason.NEEDS_ITEMS, Reason.CHANCE]),
        ("collecting, trusted", [Reason.TOO_LITTLE_EVIDENCE, Reason.RULED_OUT, Reason.INFORMATIVE, Reason.NEEDS_ITEMS]),
        ("held: nothing declared", [Reason.HELD, Reason.INFORMATIVE]),
        ("decided, committed", [Reason.DECIDED, Reason.ASSUMES]),
        ("held: overfull", [Reason.HELD, Reason.INFORMATIVE]),
        ("held: graded", [Reason.HELD]),
        ("invalidated: overfull", [Reason.INVALIDATED, Reason.INFORMATIVE]),
    ],
)  # fmt: skip
def test_the_facts_say_why(case, codes):
    """What the interval rests on is not declared where a pair is held, or proved to be wrong: it rules out nothing."""
    pair = only(STATUSES[case]())
    assert [
        each["code"] for each in pair.facts if each["code"] != Reason.NEEDS_ITEMS or Reason.NEEDS_ITEMS in codes
    ] == codes


@pytest.mark.parametrize(
    ("case", "why"),
    [
        ("held: nothing declared", fact(Reason.NO_ORDER)),
        ("held: overfull", fact(Reason.TOO_MANY_ITEMS, benchmark="bench", declared=100, arrived=101)),
        ("held: graded", fact(Reason.MIXED_SCORES)),
        ("invalidated: overfull", fact(Reason.TOO_MANY_ITEMS, benchmark="bench", declared=100, arrived=101)),
    ],
)
def test_a_held_pair_has_the_reason(case, why):
    assert only(STATUSES[case]()).facts[0]["because"] == [why]


def test_what_was_invalidated_supports_no_rank_and_counts_as_undecided():
    sound, broken = report(of(items=100)), report(overfull(CLEAR))
    assert [(m.rank_low, m.rank_high, m.tie_group) for m in sound.models] == [(1, 1, 1), (2, 2, 2)]
    assert [(m.rank_low, m.rank_high, m.tie_group) for m in broken.models] == [(1, 2, 1), (1, 2, 1)]
    assert (sound.summary.undecided["anytime_family"], broken.summary.undecided["anytime_family"]) == (0, 1)
    assert broken.order.reason is not None


def test_a_decision_whose_gap_has_turned_says_so():
    log = of([[1, 0]] * 20 + [[0, 1]] * 30, order="trusted")
    pair = only(log)
    assert (pair.model_a, pair.status, pair.decided.anytime_family) == ("b", "decided", "b")
    decided = {"side": "b", "alpha": 0.05, "n": 50, "wins": 20, "losses": 30, "missing": 0, "ignored": 0}
    assert pair.facts[:2] == [fact(Reason.DECIDED, **decided), fact(Reason.GAP_TURNED, leader="a")]


def test_an_undecided_pair_names_what_would_decide_it():
    held = only(of(CLEAR))
    assert held.items_to_decision == 0
    assert not has(held.facts, Reason.NEEDS_ITEMS)
    small = only(of(CLOSE, items=101))
    assert small.items_to_decision > 1
    assert small.facts[-2:] == [
        fact(Reason.NEEDS_ITEMS, items=small.needs_items),
        fact(Reason.CHANCE, probability=small.decision_probability),
    ]
    likely = only(of(mixed(30, 12, 58), items=200))
    assert 0.5 < likely.decision_probability < 1
    assert given(likely.facts, Reason.CHANCE)["probability"] == likely.decision_probability
    assert 0 < small.decision_probability < 0.01
    assert held.decision_probability is only(of(CLOSE, items=100)).decision_probability is None
    even = only(of(mixed(20, 20), order="trusted"))
    assert (even.items_to_decision, even.decision_probability) == (None, None)  # no item count
    assert has(even.facts, Reason.NEVER)
    table = np.tile([[0.5, 0.4], [0.3, 0.4]], (40, 1))
    log = FoldLog({"declare": "bench", "scores": "graded", "items": 80})
    log.send(*(event(i, m, float(x)) for i, row in enumerate(table) for m, x in zip("ab", row, strict=True)))
    graded = only(log)
    assert graded.status == "exhausted"
    assert not has(graded.facts, Reason.NEVER)
    growing = only(of(mixed(30, 20, 50), order="trusted"))
    assert given(growing.facts, Reason.NEEDS_ITEMS) == fact(Reason.NEEDS_ITEMS, items=growing.needs_items)


# --- families ---------------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("scores", [CLEAR, CLOSE])
@pytest.mark.parametrize("policy", [{"order": "trusted"}, {"items": 100}, {}])
def test_a_pair_outside_the_declared_family_says_so(scores, policy):
    table = np.column_stack([scores, scores[:, 1]])
    log = of(table, "abc", family={"policy": "capacity", "pairs": [["a", "b"]]}, **policy)
    whole = report(log, assert_complete=True)
    pairs = {p.model_a + p.model_b: p for p in whole.pairs}
    inside, outside = pairs["ab"], pairs["ac"]
    assert not has(inside.facts, Reason.OUTSIDE_FAMILY)
    assert given(outside.facts, Reason.OUTSIDE_FAMILY)["because"] == [fact(Reason.NOT_IN_FAMILY)]
    assert (outside.gap_family_low, outside.decided.anytime_family, outside.decided.holm) == (None, None, None)
    assert outside.decided.anytime == inside.decided.anytime == ("a" if scores is CLEAR else None)
    assert inside.decided.anytime_family == inside.decided.anytime
    assert outside.status == ("collecting" if policy == {"order": "trusted"} else "exhausted")
    if scores is CLEAR:
        assert outside.facts[0]["code"] == Reason.PAIR_ONLY
        assert not has(outside.facts, Reason.NOT_FAMILY_WISE)


@pytest.mark.parametrize("policy", [{"order": "trusted"}, {"items": 100}, {}])
def test_a_pair_beyond_the_capacity_says_so_also_where_completeness_is_asserted(policy):
    log = of(np.column_stack([CLEAR, CLEAR[:, 1]]), "abc", family={"policy": "capacity", "size": 1}, **policy)
    pairs = {p.model_a + p.model_b: p for p in report(log, assert_complete=True).pairs}
    assert pairs["ab"].decided.anytime_family == "a"
    assert pairs["ac"].decided.anytime_family is None
    assert pairs["ac"].decided.anytime == "a"
    assert given(pairs["ac"].facts, Reason.OUTSIDE_FAMILY)["because"] == [fact(Reason.FAMILY_FULL, capacity=1)]


@pytest.mark.parametrize("family", ["spending", {"policy": "capacity", "size": 9}])
def test_a_pair_that_began_while_the_benchmark_was_held_says_so(family):
    log = of(np.column_stack([CLEAR, CLEAR[:, 1]]), "abc", family=family, items=100)
    log.send(event(1, "a", 1, repeat=1), *(event(k, "d", 0) for k in range(100)))
    pairs = {p.model_a + p.model_b: p for p in report(log).pairs}
    assert given(pairs["ad"].facts, Reason.OUTSIDE_FAMILY)["because"] == [fact(Reason.HELD_AT_FIRST)]
    assert not has(pairs["ac"].facts, Reason.OUTSIDE_FAMILY)


def test_an_asserted_family_is_all_pairs_of_a_generation_and_a_declared_one_of_those_declared():
    log = of(np.tile([1, 0, 0], (100, 1)), "abc")
    log.send(*(event(k, "b", 0, epoch=1) for k in range(100)))
    # The pairs of b, which was scored again, are another generation than the pair of a and c.
    assert report(log, assert_complete=True).family.as_dict() == {"policy": "capacity", "size": 2, "families": 2}
    family = {"policy": "spending", "pairs": [["a", "b"], ["c", "a"]]}
    declared = report(of(np.tile([1, 0, 0], (100, 1)), "abc", family=family), assert_complete=True)
    assert (declared.family.policy, declared.family.size) == ("capacity", 2)
    assert [p.decided.anytime_family for p in declared.pairs] == ["a", "a", None]


def test_a_growing_family_reports_the_pairs_that_registered():
    log = of(np.tile([1, 0, 0], (5, 1)), "abc", order="trusted")
    assert report_factory.without(report(log).family, "families") == {"policy": "spending", "size": 3}


# --- ranks ------------------------------------------------------------------------------------------------------------------------------


def test_models_are_ranked_by_mean_ties_by_name_and_the_unscored_last():
    log = of([[1, 1, 0], [0, 0, 0]], "zyx")
    log.send(event(1, "w", None))
    models = report(log).models
    assert [(m.model, m.rank, m.mean) for m in models] == [("y", 1, 0.5), ("z", 2, 0.5), ("x", 3, 0.0), ("w", 4, None)]
    assert (models[3].items, models[3].mean_low, models[3].coverage) == (0, None, 0.0)
    assert {(m.rank_low, m.rank_high, m.tie_group) for m in models} == {(1, 4, 1)}


def test_coverage_is_of_the_declared_items():
    assert [m.coverage for m in report(of(items=400)).models] == [0.25, 0.25]
    assert [m.coverage for m in report(of(order="trusted")).models] == [1.0, 1.0]


def test_rank_intervals_follow_from_decisions_by_transitivity():
    # a beats b on half of the items and b beats c on the other half; a and c are not in the family.
    log = FoldLog({"declare": "bench", "order": "trusted", "family": {"pairs": [["a", "b"], ["b", "c"]]}})
    log.send(packed(np.repeat([[1, 0, 0], [1, 1, 0]], 60, axis=0), "abc"))
    whole = report(log)
    decided = {p.model_a + p.model_b: p.decided.anytime_family for p in whole.pairs}
    assert decided == {"ab": "a", "ac": None, "bc": "a"}
    assert [(m.model, m.rank_low, m.rank_high) for m in whole.models] == [("a", 1, 1), ("b", 2, 2), ("c", 3, 3)]


def test_decisions_in_a_circle_imply_nothing_more():
    log = FoldLog({"declare": "bench", "order": "trusted"})
    for k, pair in enumerate(("ab", "bc", "ca", "ad")):
        log.send(packed(paired(60, 0), pair, items=range(100 * k, 100 * k + 60)))
    models = {m.model: (m.rank_low, m.rank_high) for m in report(log).models}
    assert models == {"a": (2, 2), "b": (2, 3), "c": (2, 3), "d": (2, 4)}


def test_a_tie_group_ends_where_a_decision_begins():
    log = of(np.column_stack([np.ones(80), np.ones(80), np.zeros(80), np.zeros(80)]), "abcd", items=80)
    assert [(m.model, m.rank_low, m.rank_high, m.tie_group) for m in report(log).models] == [
        ("a", 1, 2, 1),
        ("b", 1, 2, 1),
        ("c", 3, 4, 2),
        ("d", 3, 4, 2),
    ]


# --- what is shared ---------------------------------------------------------------------------------------------------------------------


def test_columns_of_a_pair_are_of_its_shared_items():
    rng = np.random.default_rng(6)
    scores = (rng.random((90, 3)) < 0.6).astype(float)
    scores[rng.random((90, 3)) < 0.4] = np.nan
    whole = report(of(scores, "abc"), assert_complete=True)
    column = {model: scores[:, k] for k, model in enumerate("abc")}
    for pair in whole.pairs:
        x, y = column[pair.model_a], column[pair.model_b]
        both = ~np.isnan(x) & ~np.isnan(y)
        x, y = x[both], y[both]
        assert (pair.n, pair.b, pair.c) == (both.sum(), (x > y).sum(), (y > x).sum())
        assert (pair.p_a, pair.p_b, pair.gap) == pytest.approx((x.mean(), y.mean(), (x - y).mean()))
        assert pair.sd == pytest.approx((x - y).std())
        assert pair.rho == pytest.approx(np.corrcoef(x, y)[0, 1])
        assert pair.log_e == pytest.approx(log_e(pair.b, pair.c), abs=1e-9)
        both_halves = np.logaddexp(pair.log_e_a, pair.log_e_b) - math.log(2)
        assert pair.log_e == pytest.approx(both_halves, abs=1e-9)


def test_where_the_gap_on_shared_items_disagrees_with_the_rank_it_is_said():
    log = FoldLog({"declare": "bench", "order": "trusted"})
    log.send(
        packed([[0, 1]] * 3, "ab"),
        *(event(f"easy {k}", "a", 1) for k in range(9)),
        *(event(f"hard {k}", "b", 0) for k in range(9)),
    )
    pair = only(log)
    assert (pair.model_a, pair.gap) == ("a", -1.0)
    assert has(pair.facts, Reason.OTHER_LEADER)
    assert not has(only(of(CLOSE)).facts, Reason.OTHER_LEADER)
    whole = report(log)
    assert whole.shared_items == 3
    assert [(m.model, m.rank, m.shared_rank, m.shared_mean) for m in whole.models] == [("a", 1, 2, 0), ("b", 2, 1, 1)]
    assert "a (1 to 2), b (2 to 1)" in coverage(whole)


def test_models_with_the_same_items_have_one_mean():
    whole = report(of(CLOSE))
    assert whole.shared_items is coverage(whole) is None
    assert {(m.shared_mean, m.shared_rank) for m in whole.models} == {(None, None)}


def test_the_mean_on_shared_items_is_that_of_the_items_that_all_models_with_a_score_have():
    rng = np.random.default_rng(12)
    scores = rng.integers(0, 2, (90, 3)).astype(float)
    log = FoldLog({"declare": "bench", "order": "trusted"})
    log.send(*(event(k, m, int(scores[k, j])) for k in range(90) for j, m in enumerate("abc") if k >= 20 * j))
    log.send(event(0, "never", None))
    whole = report(log)
    assert whole.shared_items == 50
    means = dict(zip("abc", scores[40:].mean(0), strict=True))
    assert {m.model: m.shared_mean for m in whole.models} == pytest.approx(means | {"never": None})
    order = sorted(means, key=lambda m: (-means[m], m))
    assert {m.model: m.shared_rank for m in whole.models if m.items} == {m: k for k, m in enumerate(order, 1)}


def test_models_without_a_common_item_do_not_compare():
    log = FoldLog({"declare": "bench", "order": "trusted"})
    log.send(*(event(f"{m}{k}", m, 1) for k in range(3) for m in "ab"))
    whole = report(log)
    assert (whole.shared_items, whole.models[0].shared_mean) == (0, None)
    assert coverage(whole) == "no item has a score of every model, so the means do not compare"


# --- little or nothing ------------------------------------------------------------------------------------------------------------------


def test_a_benchmark_that_was_only_declared_has_an_empty_report():
    whole = report(FoldLog({"declare": "bench", "items": 5}))
    assert (whole.items, whole.events, whole.models, whole.pairs) == (0, 0, [], [])
    assert whole.summary.as_dict() == {"pairs": 0, "undecided": {}, "unresolved": {}}


@pytest.mark.parametrize("complete", [True, False])
def test_one_model_has_a_rank_and_no_pair(complete):
    log = FoldLog()
    log.send(event(1, "a", 1), event(2, "a", 0))
    whole = report(log, assert_complete=complete)
    assert [(m.rank, m.rank_low, m.rank_high, m.mean) for m in whole.models] == [(1, 1, 1, 0.5)]
    assert (whole.pairs, whole.summary.pairs) == ([], 0)


@pytest.mark.parametrize("complete", [True, False])
def test_two_models_that_share_nothing_are_said_to(complete):
    log = FoldLog()
    log.send(event(1, "a", 1), event(2, "b", 0), event(2, "a", None))
    pair = only(log, assert_complete=complete)
    assert pair.facts == [{"code": "nothing_shared", "ended": complete, "waits": False}]
    values = report_factory.without(
        pair, "model_a", "model_b", "adjacent", "n", "b", "c", "status", "reason", "facts", "resolved", "decided"
    )
    assert (values.pop("epoch_a"), values.pop("epoch_b")) == (0, 0)
    assert set(values.values()) == {None}
    assert (pair.n, pair.b, pair.c, pair.status) == (0, 0, 0, "exhausted" if complete else "held")
    assert set(pair.decided.as_dict().values()) == {None}
    assert True not in pair.resolved.as_dict().values()


@pytest.mark.parametrize("scores", [paired(5, 5), paired(0, 0, 9), paired(9, 0)])
def test_what_has_no_finite_value_is_null_in_json(scores):
    pair = only(of(scores, order="trusted"))
    as_json = pair.as_json().decode()
    assert "Infinity" not in as_json
    assert "NaN" not in as_json
    if pair.gap == 0:
        assert pair.required_n is None
        assert pair.resolved.fixed_n is False


def test_the_adjacent_pairs_are_neighbours_in_rank():
    log = of(np.tri(5), "edcba", items=5)
    neighbours = report(log, pairs="adjacent").pairs
    everything = report(log, pairs="all").pairs
    assert [p.model_a + p.model_b for p in neighbours] == ["ed", "dc", "cb", "ba"]
    assert len(everything) == 10
    assert [p for p in everything if p.adjacent] == neighbours


def test_the_summary_counts_the_rows():
    rng = np.random.default_rng(7)
    log = of((rng.random((300, 6)) < [0.95, 0.94, 0.6, 0.59, 0.3, 0.28]).astype(int), "abcdef", items=300)
    for pairs in ("adjacent", "all"):
        whole = report(log, pairs=pairs)
        rows, summary = whole.pairs, whole.summary
        assert summary.pairs == len(rows)
        for name in ("fixed_n", "bonferroni", "holm", "benjamini_hochberg", "anytime", "anytime_family", "e_bh"):
            assert summary.undecided[name] == sum(getattr(p.decided, name) is None for p in rows)
        for name in ("fixed_n", "bonferroni", "anytime"):
            assert summary.unresolved[name] == sum(not getattr(p.resolved, name) for p in rows)
        assert "clustered" not in summary.undecided
        neighbours = [p for p in rows if p.adjacent]
        assert summary.undecided["bonferroni_adjacent"] == sum(p.p_exact * 5 > 0.05 for p in neighbours)
        assert 0 < summary.undecided["anytime_family"] < len(rows)


def test_benchmarks_are_reported_by_name():
    log = FoldLog()
    log.send(event(1, "a", 1, benchmark="z"), event(1, "a", 1, benchmark="b"))
    assert [b.benchmark for b in build_report(board_views([log.partition])).benchmarks] == ["b", "z"]


# --- asserted and declared --------------------------------------------------------------------------------------------------------------


def test_asserted_completeness_is_named_and_gives_way_to_what_was_declared():
    asserted = report(of(CLEAR), assert_complete=True)
    assert asserted.order.policy == "completion"
    made = [{"code": "items_read", "items": 100}, {"code": "independent"}]
    assert asserted.order.facts == [fact(Reason.ASSERTED, assumptions=made)]
    assert given(asserted.pairs[0].facts, Reason.ASSUMES)["assumptions"] == made
    assert asserted.pairs[0].status == "decided"
    declared = report(of(CLEAR, items=1000), assert_complete=True)
    assert (declared.order.policy, declared.order.reason) == ("completion", None)
    assert declared.pairs[0].status == "collecting"
    assert report(of(CLEAR)).pairs[0].status == "held"


def test_asserted_completeness_counts_unshared_items_against_the_leader():
    scores = paired(60, 5, 35).astype(float)
    lacks = scores.copy()
    lacks[65:, 1] = np.nan  # the leader has these right, so the other one cannot win them
    assert only(of(lacks), assert_complete=True).decided.anytime == "a"
    scores[65:, 0] = np.nan  # the leader may lose them: 35 items are missing for the pair
    pair = only(of(scores), assert_complete=True)
    assert (pair.n, pair.status, pair.decided.anytime) == (65, "exhausted", None)
    assert pair.facts[:2] == [
        fact(Reason.EXHAUSTED, missing=35, ignored=0, against_leader=True),
        fact(Reason.DECIDED_IF_IGNORED, side="a"),
    ]


@pytest.mark.parametrize(
    ("declared", "against_leader"),
    [
        ({"item_ids": [str(k) for k in range(100)]}, True),
        ({"items": 100, "order": {"policy": "trusted"}}, False),
        (COMMITTED, False),
    ],
)
def test_missing_items_count_against_the_leader_only_where_verdicts_are_about_all_items(declared, against_leader):
    order = committed_order("s", COMMITTED["item_ids"])
    log = FoldLog({"declare": "bench", **declared})
    log.send(*(event(str(k), model, int(k % 2 == 0)) for k in order[:60] for model in "ab"), {"ended": "bench"})
    pair = only(log)
    assert (pair.n, pair.status) == (60, "exhausted")
    assert pair.facts[0] == fact(Reason.EXHAUSTED, missing=40, ignored=0, against_leader=against_leader)


def test_ignorable_missing_items_are_left_aside_and_the_sentence_says_so():
    scores = paired(60, 5, 35).astype(float)
    scores[65:, 1] = np.nan
    log = FoldLog({"declare": "bench", "missing": "ignorable"})
    log.send(packed(scores, "ab"))
    pair = only(log, assert_complete=True)
    assert (pair.n, pair.status, pair.decided.anytime_family) == (65, "decided", "a")
    assert given(pair.facts, Reason.DECIDED)["ignored"] == 35
    made = given(pair.facts, Reason.ASSUMES)["assumptions"]
    assert [each["code"] for each in made] == ["items_read", "independent", "ignored"]


@pytest.mark.parametrize(
    ("declared", "gap", "sentence"),
    [
        (
            {"missing": "ignorable"},
            True,
            f"Assumes that the 100 items read are the whole benchmark, and that {TEXTS['independent']}, and that {TEXTS['ignored']}. ",
        ),
        (
            {"missing": "ignorable"},
            False,
            f"Assumes that the 100 items read are the whole benchmark, and that {TEXTS['independent']}. ",
        ),
        ({"items": 120}, True, f"Assumes that {TEXTS['completion']}, and that {TEXTS['independent']}. "),
        (
            {"items": 120, "missing": "ignorable"},
            True,
            f"Assumes that {TEXTS['completion']}, and that {TEXTS['independent']}, and that {TEXTS['ignored']}. ",
        ),
        ({"order": {"policy": "trusted"}}, True, f"Assumes that {TEXTS['trusted']}, and that {TEXTS['independent']}. "),
    ],
)
def test_below_the_ranking_is_what_the_pairs_assume(declared, gap, sentence):
    scores = paired(60, 5, 35).astype(float)
    if gap:
        scores[65:, 1] = np.nan
    log = FoldLog({"declare": "bench", **declared})
    log.send(packed(scores, "ab"), *({"ended": "bench", "model": model} for model in "ab"))
    shown = report(log, assert_complete=True)
    assert assumed(shown).startswith(sentence)
    assert TEXTS["ignored"] not in sentence or TEXTS["ignored"] in shown.pairs[0].reason


def test_the_interval_of_ended_runs_is_of_the_items_that_they_were_judged_on():
    items = [str(k) for k in range(120)]
    order = {"policy": "committed", "seed": "one"}
    log = FoldLog(
        {
            "declare": "bench",
            "item_ids": items,
            "order": order,
            "family": {"models": ["a", "b"]},
            "missing": "ignorable",
        }
    )
    # Nothing is known of the first item of the order, so the prefix of the pair is empty.
    late = [items[k] for k in committed_order("one", items)][1:61]
    log.send(*(event(item, model, int(k % 5 == 0 or model == "a")) for k, item in enumerate(late) for model in "ab"))
    assert only(log).decided.anytime_family is None
    log.send({"ended": "bench"})
    pair = only(log)
    low, high = gap_interval(60, 48, 0, 0.05)
    assert (pair.n, pair.decided.anytime_family) == (60, "a")
    assert (pair.gap_low, pair.gap_high) == pytest.approx((float(low), float(high)))
    assert pair.log_e == pytest.approx(-math.log(pair.p_anytime))


# --- graded and clustered ---------------------------------------------------------------------------------------------------------------


def test_graded_scores_have_an_e_process_a_paired_t_test_and_no_counts():
    rng = np.random.default_rng(8)
    scores = rng.choice([0, 0.25, 0.5, 1], (200, 2), p=[0.2, 0.3, 0.3, 0.2])
    scores[:, 0] = np.clip(scores[:, 0] + 0.25 * (rng.random(200) < 0.4), 0, 1)
    pair = only(of(scores), assert_complete=True)
    d = scores[:, 0] - scores[:, 1]
    assert (pair.gap, pair.sd) == pytest.approx((d.mean(), d.std()))
    n_star = float(required_n_paired(*moments_from_sums(200, d.sum(), (d * d).sum())))
    assert (pair.required_n, pair.resolution_ratio) == pytest.approx((n_star, 200 / n_star))
    assert pair.mde == pytest.approx(math.sqrt(7.848880) * d.std() / math.sqrt(200), rel=1e-6)
    missing = ("b", "c", "rho", "p_chi2", "p_exact", "p_mid", "items_to_decision")
    assert {getattr(pair, name) for name in missing} == {None}
    assert pair.resolved.fixed_n is (n_star <= 200)
    assert pair.resolved.anytime is None

    better = d if pair.model_a == "a" else -d
    bets = np.array([0.002, 0.005, 0.01, *np.arange(0.02, 0.99, 0.02)])
    plus, minus = (np.log(np.prod(1 + sign * bets * better[:, None], axis=0).mean()) for sign in (1, -1))
    assert (pair.log_e_a, pair.log_e_b) == pytest.approx((plus, minus))
    assert pair.log_e == pytest.approx(np.logaddexp(plus, minus) - math.log(2))
    assert pair.decided.anytime_family == ("a" if plus - math.log(2) >= math.log(20) else None)
    assert pair.decided.fixed_n == ("a" if ttest_1samp(d, 0).pvalue <= 0.05 else None)
    assert pair.gap_low < pair.gap < pair.gap_high
    assert (pair.status, pair.p_a) == ("decided", pytest.approx(scores[:, 0].mean()))


@pytest.mark.parametrize("graded", [False, True])
def test_cluster_columns_are_the_cluster_statistics_of_the_sums(graded):
    rng = np.random.default_rng(9)
    label = rng.integers(0, 5, 150)
    tilt = rng.normal(0, 0.3, (5, 3))[label]
    scores = (rng.random((150, 3)) < np.array([0.7, 0.5, 0.6]) + tilt).astype(float)
    if graded:
        scores = np.where(rng.random((150, 3)) < 0.5, scores, 0.5)
    scores[rng.random((150, 3)) < 0.1] = np.nan
    records = [
        event(k, model, x, cluster=f"c{label[k]}")
        for k, row in enumerate(scores.tolist())
        for model, x in zip("abc", row, strict=True)
        if not math.isnan(x)
    ]
    log = FoldLog()
    log.send({"events": records})
    for pair in report(log, assert_complete=True).pairs:
        d = scores[:, "abc".index(pair.model_a)] - scores[:, "abc".index(pair.model_b)]
        parts = [d[(label == g) & ~np.isnan(d)] for g in range(5)]
        n, s1, s2 = (np.array([f(x) for x in parts]) for f in (len, np.sum, lambda x: (x * x).sum()))
        icc = float(cluster_stats.cluster_icc(n, s1, s2))
        assert pair.cluster.clusters == 5
        assert pair.cluster.icc == pytest.approx(icc, abs=1e-12)
        assert pair.cluster.design_effect == pytest.approx(1 + (n.sum() / 5 - 1) * max(icc, 0))
        n_star = float(cluster_stats.cluster_required_n(n, s1, s2))
        assert pair.cluster.required_n == pytest.approx(n_star)
        assert pair.cluster.resolution_ratio == pytest.approx(n.sum() / n_star)
        assert pair.p_clustered == pytest.approx(float(cluster_stats.clustered_p(n, s1)))
        assert pair.resolved.clustered == (n.sum() >= n_star)


def with_clusters(items, label):
    """Two models that differ on a third of the items; `label` names the cluster of an item."""
    log = FoldLog()
    log.send(*(event(k, m, int(m == "a" or k % 3 > 0), cluster=label(k)) for k in range(items) for m in "ab"))
    return report(log, assert_complete=True)


def test_items_of_one_cluster_have_no_clustered_result_and_the_report_says_so():
    whole = with_clusters(30, lambda _: "x")
    (pair,) = whole.pairs
    assert (pair.cluster, pair.p_clustered, pair.decided.clustered, pair.resolved.clustered) == (None, None, None, None)
    assert "clustered" not in whole.summary.undecided | whole.summary.unresolved
    assert (whole.clusters.clusters, whole.clusters.effective_clusters, whole.clusters.largest_share) == (1, 1, 1)
    assert whole.clusters.facts == [fact(Reason.ONE_CLUSTER, cluster="x")]


def test_items_without_any_cluster_have_nothing_to_warn_of():
    whole = with_clusters(30, lambda _: None)
    assert (whole.clusters, whole.pairs[0].cluster) == (None, None)


def test_one_item_without_a_cluster_is_omitted_and_counted():
    whole = with_clusters(61, lambda k: f"c{k % 12}" if k < 60 else None)
    rest = with_clusters(60, lambda k: f"c{k % 12}")
    (pair,), (same,) = whole.pairs, rest.pairs
    assert pair.p_clustered == same.p_clustered
    assert pair.cluster.unlabelled == whole.clusters.unlabelled == 1
    assert (pair.cluster.icc, pair.cluster.design_effect) == (same.cluster.icc, same.cluster.design_effect)
    assert pair.cluster.resolution_ratio == pytest.approx(same.cluster.resolution_ratio)
    assert whole.clusters.facts == [fact(Reason.UNLABELLED, unlabelled=1, items=61)]
    assert rest.clusters.warning is None


def test_a_pair_that_shares_only_items_without_a_cluster_has_no_clustered_result():
    log = FoldLog()
    spans = {"a": (0, 10), "b": (0, 40), "c": (10, 40)}
    log.send(
        *(
            event(k, m, (k + len(m)) % 2, cluster=f"c{k % 5}" if k >= 10 else None)
            for m, (first, last) in spans.items()
            for k in range(first, last)
        )
    )
    whole = report(log, assert_complete=True)
    shown = {frozenset((p.model_a, p.model_b)): (p.n, p.p_clustered is None, p.cluster is None) for p in whole.pairs}
    assert shown[frozenset("ab")] == (10, True, True)
    assert shown[frozenset("ac")] == (0, True, True)
    assert shown[frozenset("bc")] == (30, False, False)


def test_a_cluster_that_dominates_is_named_and_widens_the_test():
    whole = with_clusters(300, lambda k: "big" if k < 200 else f"c{k % 50}")
    (pair,) = whole.pairs
    sizes = np.r_[200, np.full(50, 2)]
    effective = sizes.sum() ** 2 / (sizes**2).sum()
    assert whole.clusters.effective_clusters == pytest.approx(effective)
    assert pair.cluster.effective_clusters == pytest.approx(effective)
    assert whole.clusters.largest_share == pytest.approx(2 / 3)
    warned = given(whole.clusters.facts, Reason.FEW_CLUSTERS)
    assert (warned["clusters"], warned["largest"], warned["few"]) == (51, "big", cluster_stats.FEW_CLUSTERS)
    d = np.array([float(k % 3 == 0) for k in range(300)])
    label = np.array([0 if k < 200 else 1 + k % 50 for k in range(300)])
    without = np.array([d[label != g].mean() for g in range(51)])
    jackknife = np.sqrt(50 / 51 * ((without - d.mean()) ** 2).sum())
    assert pair.p_clustered == pytest.approx(2 * student.sf(d.mean() / jackknife, 50))


# --- what is said ---------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("items", [1, 5, 60])
def test_a_gap_without_spread_has_no_required_number_of_items(items):
    pair = only(of(np.tile([1, 0], (items, 1)), order="trusted"))
    assert (pair.required_n, pair.resolution_ratio) == (None, None)
    assert set(pair.resolved.as_dict().values()) == {None}
    assert (pair.decided.fixed_n == "a") == (items > 5)
    # The spread is that of the gap in question: N = K (1 - gap^2) / gap^2.
    assert items == pytest.approx(7.848880 * (1 - pair.mde**2) / pair.mde**2, rel=1e-5)


def test_models_that_never_differ_have_no_smallest_gap():
    pair = only(of(np.tile([1, 1], (30, 1)), order="trusted"))
    assert (pair.gap, pair.sd, pair.required_n, pair.resolution_ratio, pair.mde) == (0, 0, None, 0, None)


@pytest.mark.parametrize("items", [2, 60])
def test_clusters_of_one_item_each_change_nothing(items):
    rng = np.random.default_rng(6)
    scores = rng.integers(0, 2, (items, 2))
    scores[0] = 1, 0
    log = FoldLog()
    log.send(
        *(event(k, m, int(x), cluster=f"c{k}") for k, row in enumerate(scores) for m, x in zip("az", row, strict=True))
    )
    pair = only(log, assert_complete=True)
    assert (pair.cluster.icc, pair.cluster.design_effect) == (0, 1)
    assert pair.cluster.required_n == pytest.approx(pair.required_n)
    assert pair.cluster.resolution_ratio == pytest.approx(pair.resolution_ratio)


@pytest.mark.parametrize("difference", [0.001, 0.07, 0.1, 0.3])
@pytest.mark.parametrize("clusters", [None, 7])
def test_a_constant_difference_of_graded_scores_has_no_spread(difference, clusters):
    rng = np.random.default_rng(4)
    lower = np.round(rng.uniform(0, 0.6, 300), 3)
    log = FoldLog()
    log.send(
        *(
            event(k, model, round(x + extra, 3), **({} if clusters is None else {"cluster": str(k % clusters)}))
            for k, x in enumerate(lower.tolist())
            for model, extra in (("a", difference), ("z", 0))
        )
    )
    pair = only(log, assert_complete=True)
    assert (pair.gap, pair.sd) == (pytest.approx(difference), 0)
    assert (pair.required_n, pair.resolution_ratio, pair.mde) == (None, None, None)
    assert (pair.resolved.fixed_n, pair.decided.fixed_n) == (None, "a")
    if clusters is not None:
        assert (pair.cluster.icc, pair.cluster.design_effect, pair.cluster.required_n) == (0, 1, None)
        assert pair.cluster.resolution_ratio is None


def test_a_small_spread_of_graded_scores_is_kept():
    rng = np.random.default_rng(5)
    lower = np.round(rng.uniform(0, 0.6, 300), 3)
    extra = 0.1 + 1e-9 * rng.integers(0, 9, 300)
    pair = only(of(np.column_stack([np.round(lower + extra, 12), lower])), assert_complete=True)
    assert pair.sd == pytest.approx(extra.std(), rel=1e-3)
    assert pair.required_n == pytest.approx(7.848880 * (extra.std() / 0.1) ** 2, rel=1e-3)


@pytest.mark.parametrize(
    ("make", "code"),
    [
        (STATUSES["decided"], "completion"),
        (STATUSES["equivalent"], "trusted"),
        (STATUSES["equivalent, not exhausted"], "completion"),
        (STATUSES["decided, committed"], "committed"),
        (lambda: of(CLEAR, items=100, family={"policy": "capacity", "pairs": [["a", "z"]]}), "completion"),
    ],
)
def test_every_verdict_names_what_it_assumes(make, code):
    pair = only(make())
    assert pair.status in {"decided", "equivalent"} or pair.decided.anytime
    assert given(pair.facts, Reason.ASSUMES)["assumptions"][0]["code"] == code


@pytest.mark.parametrize("case", STATUSES)
def test_the_codes_of_a_report_say_what_its_sentences_say(case):
    shown = benchmark_report(board_view(STATUSES[case]().bench), pairs="all")
    named = [Assumption(each["code"], *(x for key, x in each.items() if key != "code")) for each in shown.assumptions]
    assert clauses(without(named, FAMILY)) == shown.assumption
    assert clauses(only_of(named, FAMILY)) == shown.family_assumption


def test_an_interval_that_rules_out_nothing_is_not_in_the_sentence():
    scores = np.r_[np.tile([[1, 1]], (12, 1)), [[1, 0]]]
    seen = set()
    for items in range(14, 400_000, 9_000):
        pair = only(of(scores, items=items))
        seen.add(has(pair.facts, Reason.RULED_OUT))
        assert "100.00 points" not in pair.reason
    assert seen == {True, False}


@pytest.mark.parametrize("case", ["collecting", "exhausted", "held: nothing declared", "collecting, trusted"])
def test_what_is_no_verdict_assumes_nothing(case):
    assert not has(only(STATUSES[case]()).facts, Reason.ASSUMES)
