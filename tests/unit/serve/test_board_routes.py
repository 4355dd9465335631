"""The life of a board over HTTP: what each change leaves on every route, who may make it, and the export of its scores."""

import json
import random
from urllib.parse import quote

import pytest

from monitor.serve.api.routes import boards as board_routes
from monitor.serve.api.routes.boards import NEXT_CURSOR
from monitor.serve.api.writing import appending
from tests.commands import events
from tests.served import Served

RECORDS = events(random.Random(3), {"ash": 0.9, "birch": 0.2}, 60)
NAME = RECORDS[0]["benchmark"]


@pytest.fixture(autouse=True)
def _impatient(monkeypatch):
    monkeypatch.setattr(appending, "FOLD_SECONDS", 0.1)


def change(served, action, benchmark=NAME, **fields):
    body = json.dumps({"board": action, "benchmark": benchmark, **fields}).encode()
    return served.request("POST", "/api/v1/boards", body, content_type="application/json")


@pytest.fixture
def board(served):
    served.post([{"declare": NAME, "items": 60}, *RECORDS])
    return served


def listed(served):
    return {each["benchmark"]: each for each in served.get("boards").json["boards"]}


def test_an_untouched_board_is_listed_as_open(board):
    entry = listed(board)[NAME]
    assert (entry["state"], entry["generation"], entry["note"], entry["title"]) == ("open", 1, None, None)
    assert (entry["models"], entry["events"]) == (2, len(RECORDS))
    assert board.get(f"boards/{NAME}").json["spec"]["items"] == 60


def test_a_benchmark_that_is_set_aside_is_listed_and_named_in_answers(board):
    (partition,) = board.partitions
    for name in (NAME, "never readable"):
        for offset in range(501):
            partition.quarantine.unreadable(name, offset)
        partition._note_quarantine(name)
    reason = (
        "its records from offset 501 on are set aside (0 until now), because too many of its records cannot be read"
    )
    assert {name: each["set_aside"].startswith(reason) for name, each in listed(board).items()} == {
        NAME: True,
        "never readable": True,
    }
    assert board.get("boards/never%20readable").json["set_aside"].startswith(reason)
    assert board.get("summaries").json[0]["partial"].startswith(reason)
    assert board.get(f"board?benchmark={NAME}").json["report"]["partial"].startswith(reason)
    taken = board.post([RECORDS[0] | {"item_id": "late"}, RECORDS[0] | {"benchmark": "other"}]).json
    assert (taken["accepted"], taken["set_aside"]) == (2, [NAME])
    assert board.get("boards/other").json["set_aside"] is None


def test_an_archived_board_is_shown_and_takes_nothing(board):
    before = board.get(f"benchmarks/{NAME}?pairs=all").json["benchmarks"][0]
    answer = change(board, "archive")
    assert (answer.status, answer.json["in_force"], answer.json["board"]["state"]) == (200, True, "archived")
    assert json.loads(board.log.records[-1]) == {"board": "archive", "benchmark": NAME}
    after = board.latest(f"benchmarks/{NAME}?pairs=all").json["benchmarks"][0]
    assert after["pairs"] == before["pairs"]
    assert after["board"]["note"].startswith("archived: no record from offset ")
    count = len(board.log.records)
    posted = board.post([RECORDS[0] | {"item_id": "late"}]).json
    assert posted["accepted"] == 0
    assert "is archived from offset" in posted["rejected"][0]["reason"]
    declared = board.request(
        "PUT", f"/api/v1/declarations?benchmark={NAME}", b'{"items": 70, "version": 2}', content_type="application/json"
    )
    ended = board.request("POST", f"/api/v1/benchmarks/{NAME}/ended", b"{}", content_type="application/json")
    assert (declared.status, ended.status, len(board.log.records)) == (409, 409, count)
    assert "rankwatch board restore" in declared.json["detail"]
    assert change(board, "archive").status == 409
    assert change(board, "restore").json["board"]["state"] == "open"
    assert board.post([RECORDS[0] | {"item_id": "61"}]).json["accepted"] == 1


def test_a_deleted_board_is_on_no_route_until_it_is_begun_again(board):
    assert board.get(f"changes?benchmark={NAME}").json["changes"], "the example decides something"
    answer = change(board, "delete")
    assert (answer.status, answer.json["board"]["state"]) == (200, "deleted")
    for path in (f"benchmarks/{NAME}", f"pairs?benchmark={NAME}", f"changes?benchmark={NAME}", f"boards/{NAME}/scores"):
        assert board.get(path).status == 404, path
    assert board.get("summaries").json == []
    assert listed(board)[NAME]["state"] == "deleted"
    refused = board.post(RECORDS[:1]).json
    assert refused["accepted"] == 0
    assert "was deleted at offset" in refused["rejected"][0]["reason"]
    assert change(board, "restore").status == 409
    assert change(board, "reopen").json["board"]["generation"] == 2
    board.post([{"declare": NAME, "items": 60}, *RECORDS])
    (report,) = board.latest(f"benchmarks/{NAME}").json["benchmarks"]
    assert report["board"]["generation"] == 2
    assert "its alpha was spent" in report["board"]["note"]
    assert "were not removed because of who was ahead" in report["pairs"][0]["reason"]
    changes = board.get(f"changes?benchmark={NAME}").json["changes"]
    assert {each["kind"] for each in changes} == {"decided", "settled"}, "the feed has those of this generation only"


def test_a_title_is_in_the_report(board):
    assert change(board, "rename", title="Graduate physics").json["board"]["title"] == "Graduate physics"
    (report,) = board.get(f"benchmarks/{NAME}").json["benchmarks"]
    assert (report["benchmark"], report["board"]["title"]) == (NAME, "Graduate physics")
    assert change(board, "rename").json["board"]["title"] is None


@pytest.mark.parametrize(
    ("body", "field"),
    [
        (b'{"board": "burn", "benchmark": "m"}', "board"),
        (b'{"board": "archive"}', "benchmark"),
        (b'{"board": "rename", "benchmark": "m", "title": "a\\u202eb"}', "title"),
        (b'{"board": "archive", "benchmark": "m", "force": true}', "force"),
        (b'{"board": "archive", "board": "delete", "benchmark": "m"}', "board comes twice"),
        (b"[]", ""),
    ],
)
def test_a_wrong_request_changes_nothing_and_says_why(board, body, field):
    count = len(board.log.records)
    answer = board.request("POST", "/api/v1/boards", body, content_type="application/json")
    assert answer.status == 422
    assert field in answer.json["detail"]
    assert len(board.log.records) == count


def test_an_unknown_board_cannot_be_changed(board):
    answer = change(board, "archive", "nobody")
    assert answer.status == 409
    assert "nobody has no board" in answer.json["detail"]
    assert board.get("boards/nobody").status == 404


def test_a_page_of_another_site_cannot_change_a_board(board):
    body = json.dumps({"board": "delete", "benchmark": NAME}).encode()
    for headers in ({"content_type": "text/plain"}, {"content_type": "application/json", "origin": "http://evil"}):
        assert board.request("POST", "/api/v1/boards", body, **headers).status in {403, 415}
    assert board.get(f"benchmarks/{NAME}").status == 200


def test_only_a_token_that_may_manage_a_board_changes_it(tmp_path):
    from monitor.serve.access.scopes import Grants

    assert Grants.of(["manage:open-*"]).may("manage", "open-1")
    for scopes in (["read", "write", "declare"], ["manage:other"]):
        assert not Grants.of(scopes).may("manage", NAME)
    with Served(token="secret", rules={"anonymous_read": "open-*"}) as served:
        for headers, status in (({}, 401), ({"authorization": "Bearer wrong"}, 401)):
            body = json.dumps({"board": "archive", "benchmark": NAME}).encode()
            answer = served.request("POST", "/api/v1/boards", body, content_type="application/json", **headers)
            assert answer.status == status
        served.post([RECORDS[0], RECORDS[0] | {"benchmark": "open-1"}], authorization="Bearer secret")
        assert set(listed(served)) == {"open-1"}, "a list has what its caller may read"
        assert served.get(f"boards/{NAME}").status == 404
        assert served.get(f"boards/{NAME}/scores").status == 404


def test_an_export_is_the_board_wherever_it_is_read(board, monkeypatch):
    board.post([{"ended": NAME, "model": "ash"}])
    name = "graded / Ü"
    graded = [
        {"benchmark": name, "item_id": str(k), "model": "ash", "score": k / 7, "cluster": "c", "repeat": r, "epoch": 1}
        for k in range(7)
        for r in (0, 1)
    ]
    skipped = [{"benchmark": name, "item_id": "0", "model": "birch", "score": None}]
    board.post([{"declare": name, "items": 7, "scores": "graded", "repeats": 2}, *graded, *skipped])
    monkeypatch.setattr(board_routes, "_CELLS_AT_ONCE", 8)
    with Served() as other:
        for each in (NAME, name):
            text, cursor, pages = "", "", 0
            while cursor is not None:
                page = board.get(f"boards/{quote(each, safe='')}/scores{cursor and f'?cursor={cursor}'}")
                text, cursor, pages = text + page.text, page.headers.get(NEXT_CURSOR), pages + 1
            assert pages > 1
            assert other.post(text.encode()).json["rejected"] == []
            path = f"benchmarks/{quote(each, safe='')}?pairs=all"
            mine, theirs = board.get(path).json["benchmarks"][0], other.get(path).json["benchmarks"][0]
            for field in ("models", "events", "items", "order", "result"):
                assert theirs[field] == mine[field], field


def test_an_export_of_a_board_that_is_begun_again_meanwhile_ends(board, monkeypatch):
    monkeypatch.setattr(board_routes, "_CELLS_AT_ONCE", 8)
    cursor = board.get(f"boards/{NAME}/scores").headers[NEXT_CURSOR]
    change(board, "delete")
    change(board, "reopen")
    board.post(RECORDS)
    answer = board.get(f"boards/{NAME}/scores?cursor={cursor}")
    assert (answer.status, "Export it from the start" in answer.json["detail"]) == (409, True)
