"""The report of battles: ratings, islands, positions, judges, and where direct battles disagree."""

import msgspec
import numpy as np
import pytest

from monitor.view.build import build_report
from monitor.view.from_state import board_view
from monitor.view.pairs.table import PairTable
from monitor.view.partition_view import board_views
from schemas.results.report import BenchmarkReport
from stats.battles.bradley_terry import ELO
from tests.fold_log import FoldLog
from tests.unit.engine.test_battles import battle, declare, stream
from tests.unit.stats.test_bradley_terry import oracle


def report(*records, ended=True, **spec):
    log = FoldLog(declare(**spec))
    log.send(*records)
    if ended:
        log.send({"ended": "bench"})
    (found,) = build_report(board_views([log.partition]), pairs="all", assert_complete=True).benchmarks
    assert msgspec.json.decode(found.as_json(), type=BenchmarkReport) == found
    return found


def test_ratings_rank_and_agree_with_a_second_implementation():
    records = stream(1, 400, ties=0.3)
    for record in records:
        record.pop("position", None)
    found = report(*records)
    points = {"a": 1.0, "b": 0.0, "tie": 0.5}
    plain = [(int(r["model_a"][1]), int(r["model_b"][1]), points[r["winner"]]) for r in records]
    expected = 1000 + ELO * oracle(plain, 4)
    ratings = {each.model: each.rating for each in found.battles.ratings}
    assert [ratings[f"m{k}"] for k in range(4)] == pytest.approx(expected.tolist(), abs=1e-4)
    assert [each.model for each in found.models] == sorted(ratings, key=ratings.get, reverse=True)
    assert all(each.rating_low < each.rating < each.rating_high for each in found.battles.ratings)
    assert found.battles.position is None
    assert found.battles.units == found.battles.votes == 400


def test_an_anchor_moves_every_rating_of_its_island_and_no_rank():
    records = stream(1, 400)
    free, fixed = report(*records), report(*records, anchor="m3")
    shifts = {b.rating - a.rating for a, b in zip(free.battles.ratings, fixed.battles.ratings, strict=True)}
    assert max(shifts) - min(shifts) < 1e-9
    (anchor,) = (each for each in fixed.battles.ratings if each.model == "m3")
    assert (anchor.rating, anchor.rating_low, anchor.rating_high) == (1000, 1000, 1000)
    assert [each.model for each in free.models] == [each.model for each in fixed.models]


def test_ranges_of_ranks_come_from_direct_battles_and_an_open_pair_leaves_them_open():
    # The first two beat each other's rivals only: they never met, so neither is decided to be better than the other.
    records = [battle(f"{k}", "a", "x", "a" if k % 10 else "b") for k in range(150)]
    records += [battle(f"{k}", "b", "x", "a" if k % 6 else "b") for k in range(150)]
    found = report(*records)
    ranges = {each.model: (each.rank, each.rank_low, each.rank_high) for each in found.models}
    assert ranges == {"a": (1, 1, 2), "b": (2, 1, 2), "x": (3, 3, 3)}
    (unmet,) = (pair for pair in found.pairs if {pair.model_a, pair.model_b} == {"a", "b"})
    assert unmet.reason == "a and b have not met."


def test_a_file_without_an_order_policy_gives_ratings_and_no_verdict():
    log = FoldLog()
    log.send(*(battle(k, "a", "b", "a" if k % 9 else "b") for k in range(200)), {"ended": "bench"})
    (found,) = build_report(board_views([log.partition]), pairs="all", assert_complete=True).benchmarks
    assert found.pairs[0].status == "held"
    assert "declare order: trusted" in found.pairs[0].reason
    assert "which models meet does not depend on the prompt" in found.pairs[0].reason
    assert found.pairs[0].decided.holm == "a"
    assert found.battles.ratings[0].rating > 1000


def test_islands_are_named_and_rated_apart():
    records = [
        battle(f"{k}", *pair, "a" if k % 3 else "b") for k in range(30) for pair in (("a", "b"), ("b", "c"), ("x", "y"))
    ]
    found = report(*records)
    assert found.battles.islands == [["a", "b", "c"], ["x", "y"]]
    assert "2 islands of models never met" in found.result.settled.text
    for island in (1, 2):
        assert np.mean([each.rating for each in found.battles.ratings if each.island == island]) == pytest.approx(1000)


def test_an_unbeaten_model_has_no_finite_rating_and_ranks_first():
    records = [battle(f"{k}", "a", "b", "a") for k in range(9)]
    records += [battle(f"{k}", "b", "c", "a" if k % 2 else "b") for k in range(9)]
    first = report(*records).battles.ratings[0]
    assert (first.model, first.rating, first.unrated) == (
        "a",
        None,
        "it won every battle, so its rating has no upper bound",
    )


def test_a_position_is_measured_and_corrected():
    # Equal models; the answer shown first wins 2 of 3, and each place is taken equally often.
    votes = [(first, k % 3 > 0) for k in range(300) for first in ("a", "b")]
    records = [
        battle(f"{n}", "p", "q", first if wins else "ab".replace(first, ""), position=first)
        for n, (first, wins) in enumerate(votes)
    ]
    found = report(*records)
    position = found.battles.position
    assert (position.first_wins, position.second_wins, position.swapped) == (400, 200, 0)
    assert position.effect == pytest.approx(ELO * np.log(2), rel=1e-6)
    assert position.effect_low < position.effect < position.effect_high
    assert [each.rating for each in found.battles.ratings] == pytest.approx([1000, 1000])
    # Both orders on each prompt: their mean counts, and every prompt is a tie.
    both = [battle(f"{n}", "p", "q", place, position=place) for n in range(40) for place in ("a", "b")]
    swapped = report(*both, repeats="all")
    assert swapped.battles.position.swapped == 40
    assert swapped.pairs[0].gap == 0


def test_judges_are_compared_and_ranked():
    rng = np.random.default_rng(3)
    records = []
    for k in range(120):
        truth = "a" if rng.random() < 0.7 else "b"
        records += [battle(k, "p", "q", truth, cluster=judge) for judge in ("one", "two")]
        records.append(battle(k, "p", "q", "b", cluster="contrary"))
    found = report(*records, repeats="all").battles
    judges = {each.judge: each for each in found.judges}
    assert (found.judge_count, found.votes, found.units) == (3, 360, 120)
    assert judges["one"].agrees > judges["contrary"].agrees
    assert judges["one"].ranking == ["p", "q"]
    assert judges["contrary"].ranking == ["q", "p"]
    assert -1 < found.agreement < 1


def test_direct_battles_against_the_rating_are_reported():
    records = [battle(f"{k}", "a", "c", "a" if k % 20 else "b") for k in range(200)]
    records += [battle(f"{k}", "b", "c", "a" if k % 2 else "b") for k in range(200)]
    records += [battle(f"{k}", "a", "b", "b" if k % 4 else "a") for k in range(60)]
    found = report(*records, family={"policy": "capacity", "size": 3})
    (against,) = found.battles.disagreements
    assert (against.higher, against.lower, against.decided) == ("a", "b", True)
    (pair,) = (pair for pair in found.pairs if {pair.model_a, pair.model_b} == {"a", "b"})
    assert pair.decided.anytime_family == "b"
    assert "of 60 prompts, b won 45 and a won 15" in pair.reason
    assert "although a has the higher rating" in pair.reason


def test_undeclared_votes_hold_and_figures_are_means_of_all():
    records = [battle(k, "p", "q", "a", cluster=judge) for k in range(30) for judge in ("x", "y")]
    records += [battle(k, "p", "q", "b", cluster="z") for k in range(30)]
    found = report(*records)
    (pair,) = found.pairs
    assert pair.status == "held"
    assert pair.n == 30
    assert pair.gap == pytest.approx(1 / 3)
    assert "votes on prompt" in found.order.reason


def test_an_anchor_without_a_rating_is_not_reported_as_one():
    records = [*stream(1, 60, models=3), battle("x", "m9", "m0", "a")]
    assert report(*records, anchor="m9").battles.anchor is None
    assert report(*records, anchor="m1").battles.anchor == "m1"


def test_the_win_matrices_are_those_of_a_plain_count():
    records = stream(3, 200, models=4, ties=0.3)
    log = FoldLog(declare(repeats="all"))
    log.send(*records)
    table = PairTable(board_view(log.bench))
    prompts, wins = table.kind.win_matrices()
    names = [log.bench.contestants[k].model for k in table.ranking]
    for i, one in enumerate(names):
        for j, other in enumerate(names):
            met = [r for r in records if {r["model_a"], r["model_b"]} == {one, other}]
            won = [r for r in met if r["winner"] != "tie" and r[f"model_{r['winner']}"] == one]
            assert (prompts[i, j], wins[i, j]) == (len(met), len(won))


@pytest.mark.parametrize("anchor", [{}, {"anchor": "a"}])
def test_ties_alone_give_no_interval(anchor):
    """Every vote is what equal ratings expect, so nothing estimates how far they may be off."""
    records = [
        battle(f"q{k}", *pair, "tie", position="ab"[k % 2])
        for k, pair in enumerate([("a", "b"), ("b", "c"), ("a", "c")] * 20)
    ]
    found = report(*records, **anchor).battles
    assert [each.rating for each in found.ratings] == [1000] * 3
    lows = {each.model: each.rating_low for each in found.ratings}
    assert lows == {"a": 1000 if anchor else None, "b": None, "c": None}
    assert (found.position.effect, found.position.effect_low) == (0, None)
