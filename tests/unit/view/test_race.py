"""A race through the engine, on made boards."""

import numpy as np
import pytest

from monitor.view.from_state import board_view
from monitor.view.pairs.table import PairTable
from monitor.view.ranking.race import NoRaceError, Race
from schemas.records.goals import parse_goal
from stats.order import committed_items
from tests.fold_log import FoldLog, event

COMMITTED = {"policy": "committed", "seed": "2026"}


def board(truth, items=300, seed=0):
    """Scores of models, each in the probability `truth` right, by item and model; items are of unequal difficulty."""
    rng = np.random.default_rng(seed)
    names = [f"m{k:02}" for k in range(len(truth))]
    right = rng.random((items, len(truth))) < np.array(truth)
    return names, {(str(i), m): int(right[i, k]) for i in range(items) for k, m in enumerate(names)}


def start(names, items=300, goal="best", **spec):
    fields = {"order": COMMITTED, "family": {"models": names}} | spec
    return FoldLog({"declare": "bench", "item_ids": [str(i) for i in range(items)], "goal": goal, **fields})


def look(log, expected=(), **options):
    return Race.of(PairTable(board_view(log.bench)), expected=expected, **options)


def drive(log, scores, expected=(), *, order=None, end=False):
    """Run what each look asks for until the race is over; return the last look and the scores run."""
    ran, ended = 0, set()
    for _ in range(500):
        race = look(log, expected)
        if race.over:
            return race, ran
        plan = race.plan()
        events = [event(item, each.model, scores[item, each.model]) for each in plan for item in each.items]
        assert events, "an open race always has something to run"
        ran += len(events)
        log.send(*(order(events) if order else events))
        stopped = [each.model for each in plan if each.step == "stop" and each.items_run and each.model not in ended]
        if end and stopped:
            ended |= set(stopped)
            log.send(*({"ended": "bench", "model": model} for model in stopped))
    pytest.fail("the race does not end")


@pytest.mark.parametrize(("goal", "answer"), [("best", 1), ("top:2", 2), ("pair:m00,m04", 1)])
def test_a_race_finds_the_answer_and_saves_most_items(goal, answer):
    names, scores = board([0.95, 0.8, 0.5, 0.4, 0.3])
    log = start(names, goal=goal)
    race, ran = drive(log, scores)
    assert (race.goal.state, race.goal.models) == ("met", names[:answer])
    assert ran == race.goal.items_run < 0.5 * len(scores)
    assert not log.letters


def test_the_plan_is_a_function_of_the_log():
    names, scores = board([0.9, 0.7, 0.6])
    race, ran = drive(start(names), scores)
    rng = np.random.default_rng(3)
    again, shuffled = drive(start(names), scores, order=lambda events: rng.permutation(events).tolist())
    assert (race.goal, ran) == (again.goal, shuffled)


def test_blocks_follow_the_committed_order_and_skip_what_is_there():
    names, _ = board([0.9, 0.7])
    log = start(names)
    first = log.bench.committed.ids(0, 10)
    assert [(each.step, each.items) for each in look(log, names).plan()] == [("run", first)] * 2
    log.send(event(first[3], "m00", 1), event(first[0], "m00", 1))
    by_model = {each.model: each.items for each in look(log, names).plan()}
    assert by_model == {"m00": [first[1], first[2], *first[4:]], "m01": first}
    assert len(look(log, names, block=25).plan()[0].items) == 25 - (look(log, names).plan()[0].model == "m00") * 2


def test_a_model_that_is_ahead_waits_for_the_others():
    names, scores = board([0.9, 0.7])
    log = start(names)
    log.send(*(event(item, "m00", scores[item, "m00"]) for item in log.bench.committed.ids(0, 40)))
    assert {each.model: each.step for each in look(log).plan()} == {"m00": "wait", "m01": "run"}


def test_a_model_that_is_out_stays_out_when_others_join():
    names, scores = board([0.95, 0.5, 0.45])
    log = start(names, family={"policy": "spending"})
    race, _ = drive(log, scores, names)
    assert race.goal.state == "met"
    assert {each.model: each.step for each in race.plan()} == {"m00": "wait", "m01": "stop", "m02": "stop"}
    scores |= {(item, "new"): 1 for item, _ in scores}
    joined = look(log, ["new"])
    assert {each.model: each.step for each in joined.plan()} == {
        "m00": "wait",
        "m01": "stop",
        "m02": "stop",
        "new": "run",
    }
    race, _ = drive(log, scores, ["new"])
    assert race.goal.state in {"met", "impossible"}
    assert {each.model: each.items_run for each in race.plan()}["m01"] < 100


@pytest.mark.parametrize("goal", ["best", "ranking", "pair:m00,m02", "best,margin=0.02"])
def test_a_model_outside_the_declared_ones_neither_races_nor_holds_the_race_up(goal):
    """Its pairs have no share of alpha: were it counted, every model would run to the last item, for a goal that is never met."""
    names, scores = board([0.95, 0.6, 0.3])
    race, ran = drive(start(names, goal=goal), scores)
    log = start(names, goal=goal)
    log.send(*(event(item, model, 1) for item in log.bench.committed.ids(0, 80) for model in ("forged", "m0")))
    again, ran_again = drive(log, scores)
    assert (ran, race.goal.models) == (ran_again, again.goal.models)
    assert [run.model for run in again.goal.by_model] == [run.model for run in race.goal.by_model]
    assert again.goal.reason == f"{race.goal.reason} Outside the declared models, so not counted: forged and m0."
    assert again.goal.items_full == race.goal.items_full == len(scores)
    with pytest.raises(NoRaceError, match="forged is none of them; declare it too, or omit it"):
        look(log, ["m00", "forged"])
    named = look(log, goal=parse_goal("pair:m00,forged"))
    assert named.goal.reason.startswith("It names a model that does not take part. Outside")


def test_stopped_runs_may_be_ended():
    names, scores = board([0.95, 0.8, 0.5, 0.4])
    log = start(names, goal="best")
    race, _ = drive(log, scores, end=True)
    assert race.goal.models == ["m00"]
    assert log.bench.ended
    assert not log.letters


def test_a_tie_runs_to_the_end_and_only_the_tied_models_do():
    names, scores = board([0.9, 0.5, 0.4])
    scores |= {(item, "tie"): score for (item, model), score in scores.items() if model == "m00"}
    race, _ = drive(start([*names, "tie"]), scores)
    runs = {each.model: each.items_run for each in race.plan()}
    assert race.goal.state == "impossible"
    assert runs["m00"] == runs["tie"] > 290
    assert max(runs["m01"], runs["m02"]) < 150


def test_skips_delay_and_do_not_stop_a_race():
    names, scores = board([0.95, 0.6, 0.5])
    whole, _ = drive(start(names), scores)
    skipped = {key: None if k % 61 == 0 else score for k, (key, score) in enumerate(scores.items())}
    race, _ = drive(start(names), skipped)
    assert (race.goal.state, race.goal.models) == (whole.goal.state, whole.goal.models) == ("met", ["m00"])
    assert race.goal.items_run >= whole.goal.items_run


def test_completion_races_along_the_list():
    names, scores = board([0.95, 0.5, 0.4], items=100)
    log = start(names, 100, order="completion")
    assert look(log, names).plan()[0].items == [str(k) for k in range(10)]
    race, ran = drive(log, scores)
    assert race.goal.models == ["m00"]
    assert ran < 0.95 * len(scores)


@pytest.mark.parametrize(
    ("spec", "advice"),
    [
        ({"order": "trusted", "item_ids": ["1"], "goal": "best"}, "declare a committed order before the first score"),
        ({"items": 9, "goal": "best"}, "declare item_ids"),
        ({"items": 9}, "declare one"),
    ],
)
def test_what_cannot_be_raced(spec, advice):
    log = FoldLog({"declare": "bench", **spec})
    with pytest.raises(NoRaceError, match=advice):
        look(log)


@pytest.mark.full
def test_wrong_goals_are_rare_on_close_boards():
    """Near ties, a joiner, skips and unequal speeds: the answer is wrong in at most 5 % of races."""
    wrong = 0
    for seed in range(12):
        rng = np.random.default_rng(seed)
        names, scores = board([0.62, 0.6, 0.58, 0.4], 120, seed)
        scores = {key: None if rng.random() < 0.03 else score for key, score in scores.items()}
        log = start(names[:3], 120, family={"policy": "spending"})
        drive(log, scores, names[:3], order=lambda events, rng=rng: [e for e in events if rng.random() < 0.7] or events)
        race, _ = drive(log, scores, names)
        wrong += race.goal.state == "met" and race.goal.models != ["m00"]
    assert wrong <= 0.05 * 12 + 2 * np.sqrt(12 * 0.05 * 0.95)


@pytest.mark.parametrize("order", ["completion", COMMITTED])
def test_blocks_hand_out_whole_units(order):
    units = {f"{unit}.{copy}": f"u{unit}" for unit in range(40) for copy in range(3)}
    log = FoldLog({"declare": "bench", "order": order, "item_ids": list(units), "units": units, "goal": "best"})
    items = committed_items("2026", list(units), units) if order == COMMITTED else list(units)
    done = items[:4]  # a unit, and one item of the next
    log.send(*(event(item, model, 1) for item in items[:6] for model in "ab"), *(event(item, "c", 1) for item in done))
    race = Race.of(PairTable.of(board_view(log.bench)), block=5)
    steps = {each.model: each for each in race.plan()}
    assert steps["c"].items == items[4 : 3 * race.target]
    assert steps["a"].items == items[6 : 3 * race.target]
    # A skip is an answer, which is not asked for again.
    log.send(event(items[6], "a", None))
    assert (
        items[6]
        not in {each.model: each for each in Race.of(PairTable.of(board_view(log.bench)), block=5).plan()}["a"].items
    )
