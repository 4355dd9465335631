"""What the API answers about the state, against the report and against plain Python."""

import json
import random
from concurrent.futures import ThreadPoolExecutor
from urllib.parse import quote, urlencode

import numpy as np
import pytest

from monitor.send.http import newest_epochs
from monitor.view.build import benchmark_report
from monitor.view.from_state import board_view
from monitor.view.live_pairs import LivePairs
from monitor.view.pairs.evidence_path import AS_STORED
from monitor.view.pairs.rows import STATUSES
from monitor.view.ranking.standings import tie_bands
from schemas.results.report import DECISION_PROCEDURES
from stats.evidence.graded import LAMBDAS
from stats.intervals.confidence import gap_interval
from stats.order import committed_order
from tests.commands import events
from tests.oracle import log_e
from tests.served import Stream, folded

NAME = "a b/ü?&#%2F..\\"
SKILLS = {f"m {k:02}": 0.2 + 0.2 * (k // 2) for k in range(5)}


def records(seed=1, items=120, skills=SKILLS, **more):
    return events(random.Random(seed), skills, items, benchmark=NAME, **more)


def graded(seed):
    rng = random.Random(seed)
    return [{**event, "score": rng.choice([0.0, 0.5, 1.0])} for event in records(seed, 40)]


def clustered():
    return [{**event, "cluster": event["item_id"][-1]} for event in records(3)]


SITUATIONS = {
    "completion": folded(records(), items=130),
    "complete": folded(records(2), items=120),
    "tie": folded(records(4, 400, dict.fromkeys("abc", 0.5)), items=400, margin=0.2),
    "trusted": folded(records(5), order="trusted", margin=0.4),
    "none": folded(records(6)),
    "overfull": folded(records(7), items=100),
    "graded": folded(graded(8)),
    "graded too late": folded([*records(13), {**records(14, 1)[0], "item_id": "more", "score": 0.5}], order="trusted"),
    "clusters": folded(clustered(), items=120),
    "capacity": folded(records(9), order="trusted", family={"policy": "capacity", "size": 5}),
    "second epochs": folded(records(10) + records(11, 60, {"m 00": 0.9}, epoch=1), items=120),
    "one model": folded(records(12, skills={"alone": 0.5})),
}


def query(**parameters):
    return urlencode({"benchmark": NAME} | parameters)


@pytest.fixture(params=SITUATIONS)
def served(request, server):
    return server.hold(SITUATIONS[request.param])


def whole_report(served):
    return benchmark_report(board_view(served.partitions[0].benchmarks[NAME]), pairs="all").as_dict()


def reported(served):
    """The report without what is superseded: that is listed on demand."""
    report = whole_report(served)
    return report | {"pairs": [pair for pair in report["pairs"] if pair["status"] != "superseded"]}


def rounded(value):
    """Numbers to nine digits: root finding stops a little elsewhere in other company."""
    if isinstance(value, float):
        return float(f"{value:.9g}")
    if isinstance(value, dict):
        return {key: rounded(each) for key, each in value.items()}
    return [rounded(each) for each in value] if isinstance(value, list) else value


def all_pairs(served, limit=50, **filters):
    """Follow the pages of a query to the end."""
    rows, cursor = [], {}
    while True:
        page = served.get(f"pairs?{query(limit=limit, **filters, **cursor)}").json
        rows += page["pairs"]
        if page["next_cursor"] is None:
            assert page["total"] == len(rows)
            return rounded(rows)
        assert len(page["pairs"]) == limit
        cursor = {"cursor": page["next_cursor"]}


def test_the_pages_of_pairs_are_the_report(served):
    assert all_pairs(served, limit=3) == rounded(reported(served)["pairs"])


def test_the_filters_pick_what_the_report_says(served):
    pairs = rounded(reported(served)["pairs"])
    for status in set(STATUSES) - {"superseded"}:
        assert all_pairs(served, status=status) == [p for p in pairs if p["status"] == status]
    older = rounded([p for p in whole_report(served)["pairs"] if p["status"] == "superseded"])
    assert all_pairs(served, status="superseded") == older
    for procedure in DECISION_PROCEDURES:
        assert all_pairs(served, decided=procedure) == [p for p in pairs if p["decided"][procedure]]
    for adjacent in (True, False):
        assert all_pairs(served, adjacent=adjacent) == [p for p in pairs if p["adjacent"] == adjacent]
    model = reported(served)["models"][-1]["model"]
    assert all_pairs(served, model=model) == [p for p in pairs if model in {p["model_a"], p["model_b"]}]


@pytest.mark.parametrize("key", ["gap", "log_e", "resolution_ratio"])
def test_sorting_puts_numbers_in_order_and_the_rest_last(served, key):
    for descending in (False, True):
        values = [pair[key] for pair in all_pairs(served, sort=key, descending=descending)]
        known = [value for value in values if value is not None]
        assert values == sorted(known, reverse=descending) + [None] * (len(values) - len(known))


def test_the_matrix_is_the_report(served):
    report, matrix = reported(served), served.get(f"matrix?{query()}").json
    assert matrix["models"] == [model["model"] for model in report["models"]]
    place = {model: k for k, model in enumerate(matrix["models"])}
    for pair in report["pairs"]:
        a, b = place[pair["model_a"]], place[pair["model_b"]]
        sign = {"a": 1, "b": -1, None: 0}[pair["decided"]["anytime_family"]]
        assert (matrix["decided"][a][b], matrix["decided"][b][a]) == (sign, -sign)
        assert matrix["statuses"][matrix["status"][a][b]] == matrix["statuses"][matrix["status"][b][a]]
        assert matrix["statuses"][matrix["status"][a][b]] == pair["status"]
    assert all(row[k] == 0 for k, row in enumerate(matrix["decided"]))


def test_the_board_is_the_report_with_its_ties(served):
    board, state = served.get(f"board?{query()}").json, served.partitions[0].benchmarks[NAME]
    assert rounded(board["report"]) == rounded(benchmark_report(board_view(state)).as_dict())
    ties = tie_bands(LivePairs(board_view(state)).table, 0.9)
    assert [[k - 1 for k in band["members"]] for band in board["ties"]["bands"]] == [
        list(band.members) for band in ties.bands
    ]
    assert [band["lane"] for band in board["ties"]["bands"]] == [band.lane for band in ties.bands]
    assert [k - 1 for k in board["ties"]["rules"]] == list(ties.rules)
    assert {m["rank"] - 1: [k - 1 for k in m["tied"]] for m in board["ties"]["lacking"]} == {
        k: list(tied) for k, tied in ties.lacking.items()
    }


def test_categories_add_up_to_the_board(served):
    report = reported(served)
    baseline = report["models"][-1]["model"]
    page = served.get(f"categories?{query(baseline=baseline, limit=500)}").json
    assert page["models"] == [model["model"] for model in report["models"]]
    assert page["mean"] == pytest.approx([model["mean"] for model in report["models"]])
    categories, total = len({key.cluster for key in served.partitions[0].benchmarks[NAME].rows} - {None}), page["total"]
    assert len(page["categories"]) == total == categories
    if total:
        for scored, means, model in zip(page["scored"], page["means"], report["models"], strict=True):
            assert sum(scored) == model["items"]
            assert sum(n * m for n, m in zip(scored, means, strict=True)) == pytest.approx(
                model["mean"] * model["items"]
            )
    against = page["baseline"]
    assert (against["model"], against["comparisons"]) == (
        baseline,
        len(report["models"]) * (len(report["models"]) - 1) // 2 * total,
    )
    assert (against["side"] is None) == (against["why"] is not None)
    few = served.get(f"categories?{query(limit=1)}").json
    assert (len(few["categories"]), few["total"], few["baseline"]) == (min(1, total), total, None)


def test_the_summary_counts_what_the_report_lists(served):
    report, (summary,) = reported(served), served.get("summaries").json
    for key in ("benchmark", "items", "events", "rejected", "conflicts", "order"):
        assert summary[key] == report[key]
    assert summary["models"] == len(report["models"])
    assert summary["pairs"] == len(report["pairs"])
    assert summary["decided"] == sum(pair["decided"]["anytime_family"] is not None for pair in report["pairs"])


def test_a_run_may_stop_when_each_of_its_pairs_is_settled(served):
    report = reported(served)
    for model in report["models"]:
        answer = served.get(f"early-stop?{query(model=model['model'])}").json
        rows = [p for p in report["pairs"] if model["model"] in {p["model_a"], p["model_b"]}]
        other = [p["model_b"] if p["model_a"] == model["model"] else p["model_a"] for p in rows]
        open_ = [p["status"] not in {"decided", "equivalent", "exhausted"} for p in rows]
        assert answer["may_stop"] == (bool(rows) and not any(open_))
        decided = [p["status"] == "decided" for p in rows]
        assert answer["decided"] == [name for name, done in zip(other, decided, strict=True) if done]
        assert [(o["other"], o["status"], o["reason"]) for o in answer["undecided"]] == [
            (n, p["status"], p["reason"]) for n, p, done in zip(other, rows, decided, strict=True) if not done
        ]


def test_every_status_but_superseded_has_been_seen():
    seen = {
        STATUSES[code]
        for p in SITUATIONS.values()
        for code in LivePairs(board_view(p.benchmarks[NAME])).statuses.tolist()
    }
    assert seen == set(STATUSES) - {"superseded"}


def plain_path(found, a, b):
    """n, wins and losses after each shared item, in the first-seen order of the items."""
    scores, order = {}, {}
    for event in found:
        order.setdefault(event["item_id"])
        scores.setdefault((event["model"], event["item_id"]), event["score"])
    wins = losses = 0
    for item in order:
        x, y = scores.get((a, item)), scores.get((b, item))
        if x is not None and y is not None:
            wins, losses = wins + (x > y), losses + (x < y)
            yield wins, losses


@pytest.mark.parametrize("points", [2, 7, 2000])
def test_a_path_is_the_e_process_item_by_item(server, points):
    events = records(20, 90)
    random.Random(2).shuffle(events)
    events = [e for e in events if random.Random(e["item_id"] + e["model"]).random() < 0.8]
    served = server.hold(folded(events, order="trusted"))
    path = served.get(f"path?{query(model_a='m 01', model_b='m 04', points=points)}").json
    counts = list(plain_path(events, "m 01", "m 04"))
    assert path["order"] == AS_STORED
    assert path["n"][0] == 1
    assert path["n"][-1] == len(counts)
    assert len(path["n"]) == min(points, len(counts))
    for k, n in enumerate(path["n"]):
        wins, losses = counts[n - 1]
        assert path["gap"][k] == (wins - losses) / n
        assert path["log_e"][k] == pytest.approx(log_e(wins, losses))
        low, high = gap_interval(n, wins, losses)
        assert (path["gap_low"][k], path["gap_high"][k]) == pytest.approx((float(low), float(high)))
    assert path["log_threshold"] == pytest.approx(2.995732)
    assert path["log_family_threshold"] > path["log_threshold"]
    last = (path["log_e_a"][-1], path["log_e_b"][-1])
    assert last[0] < last[1], "the second model is the better one"


def test_a_path_of_graded_scores_has_the_gap(server):
    events = graded(21)
    served = server.hold(folded(events))
    path = served.get(f"path?{query(model_a='m 00', model_b='m 01')}").json
    by_model = {m: [e["score"] for e in events if e["model"] == m] for m in ("m 00", "m 01")}
    n = len(by_model["m 00"])
    assert path["n"] == list(range(1, n + 1))
    assert path["gap"][-1] == pytest.approx((sum(by_model["m 00"]) - sum(by_model["m 01"])) / n)
    assert path["log_e"] is None
    assert path["log_family_threshold"] is not None


@pytest.mark.parametrize("points", [2, 7, 2000])
def test_a_path_of_declared_graded_scores_is_their_e_process(server, points):
    events = graded(21)
    partition = folded(events, scores="graded", order="trusted")
    path = server.hold(partition).get(f"path?{query(model_a='m 00', model_b='m 01', points=points)}").json
    by_model = {m: np.array([e["score"] for e in events if e["model"] == m]) for m in ("m 00", "m 01")}
    d = by_model["m 00"] - by_model["m 01"]
    bets = np.array(LAMBDAS)
    for k, n in enumerate(path["n"]):
        e_a, e_b = (np.prod(1 + sign * np.outer(bets, d[:n]), axis=1).mean() for sign in (1, -1))
        assert path["log_e_a"][k] == pytest.approx(np.log(e_a), abs=1e-8)
        assert path["log_e_b"][k] == pytest.approx(np.log(e_b), abs=1e-8)
        assert path["log_e"][k] == pytest.approx(np.log((e_a + e_b) / 2), abs=1e-8)
    assert len(path["n"]) == min(points, d.size)
    assert path["gap_low"] is None


def test_a_pair_that_shares_nothing_has_an_empty_path(server):
    events = records(22, 10, {"a": 0.5}) + records(23, 10, {"b": 0.5}, start=10)
    served = server.hold(folded(events))
    path = served.get(f"path?{query(model_a='a', model_b='b')}").json
    assert path["n"] == path["log_e"] == path["gap_high"] == []
    assert path["log_family_threshold"] is None


@pytest.mark.parametrize(
    ("path", "status", "detail"),
    [
        ("pairs?benchmark=none", 404, "Benchmark 'none' has no events here"),
        (f"pairs?{query(model='x')}", 404, "has no model 'x'"),
        (f"pairs?{query(limit=0)}", 422, 'limit: "0" is out of range; use 1 or more.'),
        (f"pairs?{query(limit=1001)}", 422, 'limit: "1001" is out of range; use 1000 or less.'),
        (
            f"pairs?{query(cursor='-1')}",
            422,
            'cursor: "-1" is not valid; use a value that an earlier response returned.',
        ),
        (f"pairs?{query(sort='n')}", 422, "sort: \"n\" is unknown; use 'rank', 'gap', 'log_e' or 'resolution_ratio'."),
        ("pairs", 422, "benchmark: the query parameter is missing; add benchmark=VALUE."),
        (f"path?{query(model_a='m 00', model_b='m 00')}", 422, "Name two different models"),
        (f"path?{query(model_a='m 00', model_b='x')}", 404, "has no model 'x'"),
        (f"matrix?benchmark={'x' * 201}", 422, "is too long; use at most 200 characters."),
        (f"early-stop?{query(model='x')}", 404, "has no model 'x'"),
        (f"categories?{query(baseline='x')}", 404, "has no model 'x'"),
        (f"categories?{query(limit=501)}", 422, 'limit: "501" is out of range; use 500 or less.'),
        (f"order?{query()}", 409, "has no committed order"),
        ("benchmarks/none", 404, "GET /api/v1/summaries"),
        ("nowhere", 404, "openapi.json"),
        ("events", 405, "does not support the method"),
    ],
)
def test_what_cannot_be_answered_is_a_problem(server, path, status, detail):
    served = server.hold(SITUATIONS["completion"])
    answer = served.get(path)
    assert answer.status == answer.json["status"] == status
    assert answer.headers["content-type"] == "application/problem+json"
    assert detail in answer.json["detail"]


def test_the_committed_order_is_listed(server):
    items = [f"item {k}" for k in range(50)]
    declared = {"order": {"policy": "committed", "seed": "s"}, "item_ids": items}
    server.hold(folded(records(31, 5, {"a": 0.5}), **declared))
    listed = server.get(f"order?{query()}").text.splitlines()
    assert listed == [items[k] for k in committed_order("s", items)]
    assert listed != items


def raced(**spec):
    items = [f"item {k}" for k in range(50)]
    declared = {"order": {"policy": "committed", "seed": "s"}, "item_ids": items, "goal": "best"} | spec
    return [items[k] for k in committed_order("s", items)], folded(records(31, 5, {"a": 0.5, "b": 0.5}), **declared)


def test_the_next_runs_follow_the_order(server):
    order, partition = raced()
    server.hold(partition)
    scored = {event["item_id"] for event in records(31, 5, {"a": 0.5})}
    answer = server.get(f"next?{query(block=20)}&model=new").json
    assert (answer["over"], answer["goal"]["state"], answer["goal"]["goal"]) == (False, "open", "best")
    runs = {run["model"]: run for run in answer["models"]}
    assert runs["new"] == {"model": "new", "step": "run", "items_run": 0, "items": order[:20]}
    assert runs["a"]["items"] == [item for item in order[:20] if item not in scored]
    assert server.get(f"next?{query(goal='pair:a,b')}&model=new").json["models"][-1]["step"] == "stop"


def test_the_next_runs_are_held_back_until_they_change(server):
    server.hold(raced()[1])
    first = server.get(f"next?{query()}")
    known = {"if_none_match": first.headers["ETag"]}
    assert server.get(f"next?{query()}", if_none_match='"another"').text == first.text
    held = server.get(f"next?{query(wait=0.1)}", **known)
    assert (held.status, held.text, held.headers["ETag"]) == (304, "", first.headers["ETag"])
    with ThreadPoolExecutor(1) as pool:
        answer = pool.submit(server.get, f"next?{query(wait=30)}", **known)
        missing = first.json["models"][0]["items"]
        event = {"benchmark": NAME, "item_id": missing[0], "model": first.json["models"][0]["model"], "score": 1}
        server.post([event])
        assert missing[0] not in answer.result().json["models"][0]["items"]
    assert server.get(f"next?{query(wait=31)}").status == 422


def test_the_next_runs_are_streamed_until_the_race_is_over(server):
    server.hold(raced()[1])
    with Stream(server, f"next/stream?{query(goal='pair:a,b')}") as stream:
        first = json.loads(stream.until("next")["data"])
        assert first == server.get(f"next?{query(goal='pair:a,b')}").json
        events = [
            {"benchmark": NAME, "item_id": f"item {k}", "model": model, "score": int(model == "a")}
            for k in range(50)
            for model in "ab"
        ]
        server.post(events)
        last = json.loads(stream.until("next")["data"])
        assert (first["over"], last["over"], last["goal"]["models"]) == (False, True, ["a"])
        assert stream.block() is None
    assert server.get(f"next/stream?{query(goal='top:none')}").status == 422


def test_the_next_runs_include_what_was_written_before(server):
    server.hold(raced()[1])
    server.log.lag = 1
    with ThreadPoolExecutor(1) as pool:
        answer = pool.submit(server.get, f"next?{query()}")
        with pytest.raises(TimeoutError):
            answer.result(0.1)
        server.log.lag = 0
        assert answer.result().status == 200


@pytest.mark.parametrize(
    ("spec", "parameters", "status", "detail"),
    [
        ({"goal": None}, {}, 409, "has no goal; declare one"),
        ({"order": "trusted"}, {}, 409, "declare a committed order before the first score"),
        ({}, {"goal": "top:none"}, 422, "top:K needs a number of models"),
        ({}, {"block": 0}, 422, "block"),
        ({}, {"benchmark": "none"}, 404, "GET /api/v1/summaries"),
    ],
)
def test_what_cannot_be_raced_is_a_problem(server, spec, parameters, status, detail):
    server.hold(raced(**spec)[1])
    answer = server.get(f"next?{query(**parameters)}")
    assert answer.status == status
    assert detail in answer.json["detail"]


def test_a_page_beyond_the_end_is_empty(server):
    served = server.hold(SITUATIONS["completion"])
    assert served.get(f"pairs?{query(cursor='999')}").json == {
        "pairs": [],
        "need_notes": [],
        "total": 10,
        "next_cursor": None,
    }


def test_any_name_can_be_in_a_path_too(server):
    served = server.hold(SITUATIONS["completion"])
    (benchmark,) = served.get(f"benchmarks/{quote(NAME, safe='')}").json["benchmarks"]
    assert benchmark["benchmark"] == NAME


def test_what_is_asked_follows_the_state(server):
    served = server.hold(folded(records(30, 20, {"a": 0.9, "b": 0.1}), order="trusted"))
    before = served.get(f"pairs?{query()}").json["pairs"][0]["n"]
    served.post([{"benchmark": NAME, "item_id": "new", "model": m, "score": 1} for m in "ab"])
    assert served.latest(f"pairs?{query()}").json["pairs"][0]["n"] == before + 1


def test_conflicts_come_page_by_page_and_by_model(server):
    made = records(21, 60)
    again = [{**event, "score": 1 - event["score"]} for event in made[::4]]
    served = server.hold(folded([*made, *again], items=60))
    path = f"benchmarks/{quote(NAME, safe='')}/conflicts"
    rows, cursor = [], ""
    while cursor is not None:
        page = served.get(f"{path}?limit=7{cursor and f'&cursor={cursor}'}").json
        assert (page["benchmark"], page["total"], page["listed"]) == (NAME, len(again), len(again))
        assert 0 < len(page["conflicts"]) <= 7
        rows += page["conflicts"]
        cursor = page["next_cursor"]
    expected = [
        {
            "item_id": e["item_id"],
            "repeat": 0,
            "model": e["model"],
            "epoch": 0,
            "old_score": 1 - e["score"],
            "new_score": e["score"],
        }
        for e in again
    ]
    assert rows == expected
    of_model = served.get(f"{path}?{urlencode({'model': 'm 01'})}").json
    assert of_model["conflicts"] == [row for row in expected if row["model"] == "m 01"]
    assert of_model["total"] == len(of_model["conflicts"])
    assert served.get("benchmarks/nobody/conflicts").status == 404


def test_a_sender_learns_the_newest_epochs(server):
    server.hold(SITUATIONS["second epochs"])
    newest = newest_epochs(server.url, None, NAME)
    assert newest == {name: int(name == "m 00") for name in SKILLS}
    assert newest_epochs(server.url, None, "nobody") == {}


def test_surprises_are_the_items_furthest_from_the_other_models(server):
    rng = random.Random(8)
    skills = {f"m {k}": 0.5 for k in range(9)}
    served = server.hold(folded(events(rng, skills, 60, benchmark=NAME), items=60))
    found = served.get(f"surprises?{query(model='m 4', limit=3)}").json
    place = found["models"].index("m 4")
    items = served.get(f"items?{query(limit=1000)}").json["items"]

    def apart(item):
        others = [score for k, score in enumerate(item["scores"]) if k != place and score is not None]
        return item["scores"][place] - sum(others) / len(others)

    by_gap = sorted(apart(item) for item in items)
    assert [apart(item) for item in found["higher"]] == pytest.approx([g for g in by_gap[::-1][:3] if g > 0.5])
    assert [apart(item) for item in found["lower"]] == pytest.approx([g for g in by_gap[:3] if g < -0.5])
    assert found["higher"]
    assert found["lower"]
    assert served.get(f"surprises?{query(model='nobody')}").status == 404
    # Fewer than eight models say little about an item.
    few = server.hold(folded(records(), items=120)).get(f"surprises?{query(model='m 00')}").json
    assert (few["higher"], few["lower"]) == ([], [])
