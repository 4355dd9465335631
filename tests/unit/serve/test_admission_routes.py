"""A newcomer on a live board: exactly what the stored scores show, whatever is sent, and in whatever order."""

import json
import random

import pytest

from monitor.engine.chunk_fold import Partition
from monitor.serve.api.writing import appending
from monitor.view import newcomers
from monitor.view.admission import faults, freeze
from schemas.results.admission import Certificate
from tests.served import Served

random.seed(1)
ITEMS = [f"q{k}" for k in range(120)]
HARD = {item: random.gauss(0, 1) for item in ITEMS}
BOARD = {"ash": 1.5, "birch": 1.0, "cedar": 0.4, "elm": 0.0, "fir": -0.6, "gum": -1.2}


def rows(model, ability, items=ITEMS, **other):
    rng = random.Random(model)
    scores = {item: int(rng.gauss(ability, 0.6) > hard) for item, hard in HARD.items()} | other
    return [{"benchmark": "demo", "item_id": item, "model": model, "score": scores[item]} for item in items]


@pytest.fixture(autouse=True)
def _impatient(monkeypatch):
    monkeypatch.setattr(appending, "FOLD_SECONDS", 0.1)


@pytest.fixture
def board(served):
    served.post([line for model, ability in BOARD.items() for line in rows(model, ability)])
    return served


def send(served, method, path, body):
    return served.request(method, f"/api/v1/{path}", json.dumps(body).encode(), content_type="application/json")


def admit(served, model="new", **fields):
    answer = send(served, "POST", "admissions", {"benchmark": "demo", "model": model, **fields})
    assert answer.status == 200, answer.text
    return answer.json


def refused(served, model="new", **fields):
    answer = send(served, "POST", "admissions", {"benchmark": "demo", "model": model, **fields})
    assert answer.status == 409
    return answer.json["detail"]


def report(served, model="new", **query):
    query = "".join(f"&{name}={value}" for name, value in query.items())
    return served.latest(f"admissions/report?benchmark=demo&model={model}{query}")


def test_a_newcomer_is_admitted_by_a_part_of_the_items(board):
    taken = admit(board)
    assert (taken["in_force"], sorted(taken["items"]), taken["left_out"]) == (True, sorted(ITEMS), [])
    assert admit(board) == taken | {"place": None}, "a repeated request returns the first admission"
    assert report(board, next=7).json["next"] == taken["items"][:7]
    looks = []
    for start in range(0, 120, 10):
        board.post(rows("new", 0.7, taken["items"][start : start + 10]))
        looks.append(now := report(board, goal="model:new,width=2", next=3).json)
        if now["over"]:
            break
    assert now["goal"]["state"] == "met"
    assert now["next"] == []
    assert now["result"]["items_run"] == start + 10 < 120
    assert [each["model"] for each in now["models"]] == sorted(BOARD, key=BOARD.get, reverse=True)
    assert [each["result"]["first_rank"] for each in looks] == sorted(each["result"]["first_rank"] for each in looks)
    assert now["totals"][-1] == {"items": start + 10, "least": now["result"]["least"], "most": now["result"]["most"]}
    certificate = board.get("admissions/certificate?benchmark=demo&model=new").text
    whole = Certificate.model_validate_json(certificate)
    assert list(faults(whole)) == [], "it follows from its scores, in one look as in many"
    assert whole.result.model_dump() == now["result"]
    assert list(board.get("admissions?benchmark=demo").json) == ["new"]


def test_the_order_of_the_scores_in_the_log_does_not_matter(board):
    order = admit(board)["items"]
    board.post(rows("new", 0.7, order[1:30]))
    waiting = report(board, next=1).json
    assert (waiting["result"]["items_run"], waiting["ahead"], waiting["next"]) == (0, 29, order[:1])
    assert "29 scores of new lie ahead of the order" in waiting["words"]["ahead_line"]
    board.post(rows("new", 0.7, order[:1]) + rows("new", 0.7, order[3:9]))
    assert report(board).json["result"]["items_run"] == 30
    again = Served(Partition())
    with again:
        again.post(board.get("boards/demo/scores").text.encode())
        assert again.latest("admissions/report?benchmark=demo&model=new").json["result"] == report(board).json["result"]


def test_a_skip_of_a_newcomer_is_final_and_counts_as_any_score(board):
    order = admit(board)["items"]
    nothing = {order[0]: None, order[3]: None}
    board.post(rows("new", 0.7, order[:5], **nothing))
    first = report(board).json["result"]
    assert (first["items_run"], first["skipped"]) == (5, 2)
    board.post(rows("new", 0.7, order[:5]))
    assert report(board).json["result"] == first
    board.post(rows("late", 0.7, ["q0"], q0=None) + rows("late", 0.7, ["q0"]))
    counters = board.get("benchmarks/demo").json["benchmarks"][0]
    assert counters["conflicts"] == 2, "a score that comes after a skip fills any other model's skip"


@pytest.mark.parametrize(
    ("lines", "reason"),
    [
        (rows("elm", 0.1, ITEMS[:2]), None),
        ([line | {"epoch": 1} for line in rows("elm", 0.1)], "the scores of elm have changed"),
        ([line | {"repeat": 1} for line in rows("elm", 0.1)], "has battles, repeats"),
        (rows("elm", 0.1, ["more"], more=1), "the scores of ash have changed, and of 5 more"),
        ([line | {"epoch": 1} for line in rows("new", 0.9)], "has scores of 2 epochs"),
        (rows("new", 0.9, ["q0"], q0=0.5), "has the score 0.5 on q0"),
        (rows("new", 0.9, ["more"], more=1), None),
        (rows("other", 0.9), None),
        ([{"ended": "demo", "model": "elm"}], None),
    ],
)
def test_a_board_that_changes_is_another_board(board, lines, reason):
    order = [item for item in admit(board)["items"] if item != "q0"]
    board.post(rows("new", 0.7, order[:10]))
    before = report(board).json
    board.post(lines)
    after = report(board)
    if reason is None:
        assert after.json["result"] == before["result"]
    else:
        assert (after.status, reason in after.json["detail"]) == (409, True), after.text
        assert board.get("admissions/certificate?benchmark=demo&model=new").status == 409


def test_the_board_is_frozen_once_a_state(board, monkeypatch):
    order, frozen = admit(board)["items"], []
    monkeypatch.setattr(newcomers, "freeze", lambda *of: frozen.append(of) or freeze(*of))
    for last in (10, 20):
        board.post(rows("new", 0.7, order[:last]))
        assert report(board).json["result"] == report(board, next=3).json["result"]
        assert board.get("admissions/certificate?benchmark=demo&model=new").status == 200
    assert len(frozen) == 2


def test_no_order_is_drawn_after_a_look(board):
    order = admit(board)["items"]
    board.post(rows("new", 0.7, order[:10]))
    assert "fixed before its first score" in refused(board, seed="another")
    assert "fixed before its first score" in refused(board, alpha=0.1)
    assert "drawn after a look is not random" in refused(board, "elm")
    spec = board.get("declarations?benchmark=demo").json
    known = spec["admissions"]["new"]
    assert "each newcomer needs its own" in refused(board, "twin", seed=known["seed"])
    for name, entry, reason in (
        ("new", known | {"seed": "x"}, "its first seed counts"),
        ("gum", known | {"seed": "x"}, "drawn after a look"),
        ("twin", known, "new has this seed"),
        ("twin", known | {"seed": "x", "generation": 2}, "the board is in generation 1, not 2"),
    ):
        changed = spec | {"admissions": {**spec["admissions"], name: entry}}
        answer = send(board, "PUT", "declarations?benchmark=demo", changed)
        assert (answer.status, reason in answer.json["detail"]) == (409, True), answer.text
    for without in ({}, {"aliases": {"older": "elm"}}):
        answer = send(board, "PUT", "declarations?benchmark=demo", spec | {"admissions": None} | without)
        assert (answer.status, answer.json["in_force"]) == (202, True)
    assert board.get("declarations?benchmark=demo").json["admissions"] == spec["admissions"], "it is permanent"
    assert "is an alias" in refused(board, "older")


def test_two_newcomers_have_an_order_each_and_only_complete_models_are_frozen(board):
    board.post(rows("slow", 0.2, ITEMS[:50]))
    first = admit(board)
    assert first["left_out"] == ["slow"]
    board.post(rows("new", 0.7, first["items"][:20]))
    second = admit(board, "newer", seed="lottery", alpha=0.025)
    assert second["left_out"] == ["new", "slow"]
    assert second["items"] != first["items"]
    assert second["admission"]["board"] == first["admission"]["board"]
    board.post(rows("newer", 0.1, second["items"]))
    assert report(board).json["result"]["items_run"] == 20
    done = report(board, "newer").json
    assert (done["over"], done["result"]["items_run"]) == (True, 120)
    assert "the given seed was chosen before the first score" in done["words"]["promise_line"]
    assert "At most 2.5 %" in done["words"]["promise_line"]
    assert report(board, "newest").status == 409


def test_a_board_that_begins_again_knows_no_newcomer(board):
    order = admit(board)["items"]
    board.post(rows("new", 0.7, order[:10]))
    answer = send(board, "POST", "boards", {"board": "undo", "benchmark": "demo", "model": "new"})
    assert answer.status == 200, answer.text
    assert board.latest("admissions?benchmark=demo").json == {}
    assert "is not admitted" in report(board).json["detail"]
    again = admit(board)
    assert (again["in_force"], again["admission"]["generation"]) == (True, 2)
    assert again["items"] != order
    assert report(board).json["result"]["items_run"] == 0


def test_a_board_that_nobody_can_be_admitted_to_is_refused(served):
    served.post([{"benchmark": "demo", "item_id": "q", "model_a": "a", "model_b": "b", "winner": "a"}])
    assert "has battles" in refused(served)
    served.post([{"declare": "empty", "items": 5}])
    assert send(served, "POST", "admissions", {"benchmark": "empty", "model": "a"}).status == 409
    part = [{"benchmark": "part", "item_id": f"q{k}", "model": model, "score": 1} for k, model in enumerate("ab")]
    served.post(part)
    answer = send(served, "POST", "admissions", {"benchmark": "part", "model": "c"})
    assert "no model of 'part' has all 2 items" in answer.json["detail"]
    for fields in ({"alpha": 0.9}, {"alpha": 0}, {"seed": "a\0b"}, {"seed": ""}, {"more": 1}, {"model": "a\n"}):
        assert send(served, "POST", "admissions", {"benchmark": "part", "model": "c"} | fields).status == 422, fields
    assert send(served, "POST", "admissions", {"benchmark": "none", "model": "c"}).status == 404
    assert served.get("admissions/report?benchmark=part&model=c&goal=best%20of").status == 422
