"""Suites: several benchmarks reported as one."""

import numpy as np
import pytest

from monitor.view.build import build_report
from monitor.view.partition_view import board_views
from schemas.records.suites import Member, Suite
from tests.fold_log import FoldLog, event

SIZES = {"easy": 40, "hard": 25}
RIGHT = {"ash": {"easy": 30, "hard": 5}, "birch": {"easy": 24, "hard": 15}, "cedar": {"easy": 20, "hard": 9}}


def log_of(right=RIGHT, *more):
    log = FoldLog()
    log.send(
        *(
            event(k, model, int(k < counts[name]), benchmark=name)
            for model, counts in right.items()
            for name in counts
            for k in range(SIZES[name])
        ),
        *more,
    )
    return log


def report(log, members, **options):
    built = build_report(
        board_views([log.partition]),
        assert_complete=True,
        suites=[Suite("overall", {n: Member(w) for n, w in members.items()}, distinct=True)],
        **options,
    )
    assert built.benchmarks[0].benchmark == "overall"
    return built.benchmarks[0]


def test_a_suite_ranks_by_the_mean_over_its_members():
    suite = report(log_of(), {"easy": 1.0, "hard": 1.0})
    assert [(m.model, m.mean) for m in suite.models] == [
        ("birch", pytest.approx((24 / 40 + 15 / 25) / 2)),
        ("ash", pytest.approx((30 / 40 + 5 / 25) / 2)),
        ("cedar", pytest.approx((20 / 40 + 9 / 25) / 2)),
    ]
    assert suite.items == 65
    assert suite.weights.equal


def test_members_have_weights_and_parts_of_each_gap():
    suite = report(log_of(), {"easy": 3.0, "hard": 1.0})
    assert [m.model for m in suite.models] == ["ash", "birch", "cedar"]
    gap = suite.suite.gaps[0]
    assert gap.parts == pytest.approx({"easy": 0.75 * 6 / 40, "hard": -0.25 * 10 / 25})
    assert gap.driver == "easy"
    assert sum(gap.parts.values()) == pytest.approx(suite.pairs[0].gap)


def test_the_test_of_a_suite_is_stratified_over_its_members():
    suite = report(log_of(), {"easy": 1.0, "hard": 1.0}, pairs="all")
    pair = suite.pairs[0]
    d = {"easy": np.repeat([-1, 0], [6, 34]), "hard": np.repeat([1, 0], [10, 15])}
    variance = sum(x.var(ddof=1) / x.size / 4 for x in d.values())
    gap = sum(x.mean() / 2 for x in d.values())
    assert (pair.gap, pair.required_n) == pytest.approx((gap, 7.848879734349085 * 65 * variance / gap**2))


def test_a_model_that_lacks_a_member_is_listed_and_not_ranked():
    suite = report(log_of(RIGHT | {"dune": {"easy": 40}}), {"easy": 1.0, "hard": 1.0})
    assert [m.model for m in suite.models] == ["birch", "ash", "cedar"]
    assert suite.suite.lacking == {"dune": ["hard"]}
    assert [(m.benchmark, m.models) for m in suite.suite.members] == [("easy", 4), ("hard", 3)]


def test_without_a_model_in_every_member_nothing_is_ranked():
    suite = report(log_of({"ash": {"easy": 1}, "birch": {"hard": 1}}), {"easy": 1.0, "hard": 1.0})
    assert (suite.models, suite.pairs) == ([], [])
    assert set(suite.suite.lacking) == {"ash", "birch"}


def test_a_declared_size_counts_what_is_missing():
    whole = report(log_of(), {"easy": 1.0, "hard": 1.0})
    declared = FoldLog({"declare": "easy", "items": 80})
    declared.send(
        *(
            event(k, model, int(k < counts[name]), benchmark=name)
            for model, counts in RIGHT.items()
            for name in counts
            for k in range(SIZES[name])
        )
    )
    part = report(declared, {"easy": 1.0, "hard": 1.0})
    assert {p.settled for p in whole.pairs} == {"a"}
    assert {p.settled for p in part.pairs} == {None}
    assert [m.items for m in part.suite.members] == [80, 25]


def test_graded_members_newest_epochs_and_skips_count_as_in_the_members():
    log = log_of(
        RIGHT,
        event("extra", "ash", 0.25, benchmark="hard"),
        event("extra", "birch", None, benchmark="hard"),
        *(event(k, "cedar", 1, benchmark="easy", epoch=2) for k in range(40)),
    )
    suite = report(log, {"easy": 1.0, "hard": 1.0})
    members = {b.benchmark: b for b in build_report(board_views([log.partition]), assert_complete=True).benchmarks}
    for m in suite.models:
        means = [next(x.mean for x in b.models if x.model == m.model) for b in members.values()]
        assert m.mean == pytest.approx(sum(means) / 2)


def test_a_baseline_counts_a_score_as_what_exceeds_a_guess():
    log = log_of()
    members = {"easy": Member(3, 0.25), "hard": Member(1, 0.2)}
    suite = build_report(
        board_views([log.partition]),
        pairs="all",
        assert_complete=True,
        suites=[Suite("overall", members, distinct=True)],
    )
    overall = suite.benchmarks[0]

    def normalised(model):
        share = {name: RIGHT[model][name] / SIZES[name] for name in SIZES}
        return 0.75 * (share["easy"] - 0.25) / 0.75 + 0.25 * (share["hard"] - 0.2) / 0.8

    means = {m.model: m.mean for m in overall.models}
    assert means == pytest.approx({model: normalised(model) for model in RIGHT})
    for pair in overall.pairs:
        assert pair.gap == pytest.approx(means[pair.model_a] - means[pair.model_b])
        assert pair.gap_low < pair.gap < pair.gap_high
    for gap in overall.suite.gaps:
        assert sum(gap.parts.values()) == pytest.approx(means[gap.model_a] - means[gap.model_b])
    for m in overall.models:
        assert m.mean_low < m.mean < m.mean_high


def test_a_baseline_changes_no_test_that_its_weights_do_not():
    """Normalised scores are a change of scale for a pair: the tests are those of the weights weight / (1 - baseline)."""
    log = log_of()
    one, other = (
        build_report(
            board_views([log.partition]),
            pairs="all",
            assert_complete=True,
            suites=[Suite("overall", members, distinct=True)],
        ).benchmarks[0]
        for members in (
            {"easy": Member(1, 0.5), "hard": Member(1)},
            {"easy": Member(2), "hard": Member(1)},
        )
    )
    for a, b in zip(one.pairs, other.pairs, strict=True):
        assert (a.model_a, a.decided, a.settled) == (b.model_a, b.decided, b.settled)
        assert (a.required_n, a.resolution_ratio, a.log_e, a.p_anytime) == pytest.approx(
            (b.required_n, b.resolution_ratio, b.log_e, b.p_anytime)
        )
        assert a.gap / b.gap == pytest.approx(1.5)  # weights 1/2 and 1/2, gaps of "easy" doubled, against 2/3 and 1/3


def test_a_gap_that_exceeds_1_through_a_baseline_has_a_clustered_test():
    """It was an error, and there was no report at all."""
    log = log_of({"ash": SIZES, "birch": {"easy": 0, "hard": 1}})
    members = {"easy": Member(), "hard": Member(1, 0.25)}
    overall = build_report(
        board_views([log.partition]), assert_complete=True, suites=[Suite("overall", members, distinct=True)]
    ).benchmarks[0]
    assert overall.pairs[0].gap > 1
    assert 0 < overall.pairs[0].p_clustered < 0.2


def test_a_model_below_the_baseline_is_ranked_by_its_negative_score():
    right = RIGHT | {"dune": {"easy": 2, "hard": 0}, "elm": {"easy": 1, "hard": 0}}
    log = log_of(right)
    members = {"easy": Member(1, 0.25), "hard": Member(1, 0.25)}
    overall = build_report(
        board_views([log.partition]), assert_complete=True, suites=[Suite("overall", members, distinct=True)]
    ).benchmarks[0]
    assert [m.model for m in overall.models][-2:] == ["dune", "elm"]
    assert overall.models[-1].mean == pytest.approx((1 / 40 - 0.25) / 0.75 / 2 - 0.25 / 0.75 / 2)


def test_nothing_of_a_live_suite_is_settled_while_repeats_of_a_member_are_undeclared():
    """x was settled; later repeats of the member brought the other model ahead."""
    log = FoldLog({"declare": "easy", "items": 1}, {"declare": "hard", "items": 1})
    log.send(
        *(
            event(0, model, score, benchmark="easy", repeat=k)
            for model, score, k in [("x", 1, 0), ("y", 0, 0), ("y", 0, 1)]
        )
    )
    members = {"easy": Member(2), "hard": Member(1)}
    report = build_report(
        board_views([log.partition]), pairs="all", suites=[Suite("overall", members, "worst", distinct=True)]
    )
    assert [pair.settled for pair in report.benchmarks[0].pairs] == [None]
