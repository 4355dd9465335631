"""The plan of an admission is what admissions along the same orders give, item by item."""

import json

import numpy as np
import pytest
from typer.testing import CliRunner

from monitor.cli.app import app
from monitor.view.admission import AdmissionGoal, BoardScores
from monitor.view.admission_plan import _needed
from schemas.results.admission import AdmissionResult, FrozenBoard, Opponent
from stats import Admission
from tests.commands import write

ITEMS = [f"q{k:02}" for k in range(60)]


def made(unit=1):
    rng = np.random.default_rng(8)
    right = rng.normal(np.linspace(-1, 1, 6), 0.5, (60, 6)) > rng.normal(0, 0.7, (60, 1))
    return BoardScores(unit, ITEMS, [f"m{k}" for k in range(6)], right.astype(np.int64) * unit, np.ones((60, 6), bool))


@pytest.mark.parametrize(
    ("text", "unit"),
    [
        *((text, 1) for text in ("model:new", "model:new,width=3", "best", "top:2", "top:6", "score,width=30")),
        ("top:3", 10**12),
    ],
)
def test_a_goal_takes_the_items_after_which_its_state_is_met(text, unit):
    board, goal = made(unit), AdmissionGoal.parse(text, "new")
    for model in range(6):
        order = np.random.default_rng(model).permutation(60)
        others = np.arange(6) != model
        totals = board.scores.sum(axis=0)[others]
        frozen = FrozenBoard(
            benchmark="b", unit=unit, items=ITEMS, difficulty=[0] * 60,
            models=[Opponent(model=f"o{k}", low=int(total), high=int(total)) for k, total in enumerate(totals)],
        )  # fmt: skip
        newcomer = Admission(board.difficulty(others)[order], totals, alpha=0.2, unit=unit)
        states = []
        for done in range(61):
            if done:
                newcomer.add(board.scores[order[done - 1], model])
            (first, last), (least, most) = newcomer.ranks, newcomer.interval()
            result = AdmissionResult(
                items_run=done,
                skipped=0,
                first_rank=first,
                last_rank=last,
                least=least,
                most=most,
                total=0,
                opponents=[],
            )
            states.append(goal.state(frozen, result))
        needed = _needed(board, model, goal, 0.2, order)
        assert states[needed] == "met" or (needed == 60 and states[60] == "out of reach")
        assert "met" not in states[:needed]


def plan(*arguments, code=0):
    ended = CliRunner().invoke(app, ["plan", "--admit", "new", *map(str, arguments)])
    assert ended.exit_code == code, ended.output
    return ended


def test_the_models_of_a_board_are_replayed(tmp_path):
    board = made()
    rows = [
        {"benchmark": "b", "item_id": item, "model": model, "score": int(board.scores[row, k])}
        for row, item in enumerate(ITEMS)
        for k, model in enumerate(board.models)
    ]
    path = write(tmp_path / "a.jsonl", [*rows, {"benchmark": "b", "item_id": "q00", "model": "part", "score": 1}])
    facts = json.loads(plan(path, "--format", "json").stdout)
    assert (facts["goal"], facts["items"], facts["models"], facts["orders"]) == ("model:new,width=3", 60, 7, 10)
    assert {each["model"] for each in facts["newcomers"]} == set(board.models)  # not the one that lacks items
    assert 0 < facts["median"] <= facts["nine_of_ten"] <= 60
    assert plan(path).stdout.startswith("The goal model:new,width=3 takes ")
    assert "--items is not for a plan of an admission" in plan(path, "--items", 3, code=2).stderr
    assert "--admit needs the results" in plan(code=2).stderr
    assert "--goal: " in plan(path, "--goal", "model:m1", code=2).stderr
    part = write(tmp_path / "part.jsonl", [rows[0], rows[7]])
    assert "0 of 2 complete models" in " ".join(plan(part, code=1).stderr.split())
