"""The board as of an earlier moment, against folds of prefixes of the log."""

import random
from urllib.parse import urlencode

import numpy as np
import pytest

from monitor.view.from_state import board_view
from monitor.view.live_pairs import LivePairs
from monitor.view.ranking import moments as moments_module
from monitor.view.ranking.moments import VerdictTimes, sides_at
from monitor.view.ranking.standings import closed_by_rank, decisions_by_rank
from stats.families.ranks import rank_intervals
from tests.commands import events
from tests.fold_log import STRIDE, FoldLog
from tests.unit.serve.test_read_routes import SITUATIONS

SKILLS = {"a": 0.95, "b": 0.7, "c": 0.65, "d": 0.2}
ITEMS = 60


def records(policy):
    made = events(random.Random(3), SKILLS, ITEMS, benchmark="bench")
    declaration = {"declare": "bench", "items": ITEMS, "order": {"policy": policy}}
    if policy == "committed":
        ids = sorted({each["item_id"] for each in made})
        declaration |= {"item_ids": ids, "order": {"policy": policy, "seed": "four"}}
    return [declaration, *made]


def by_name(live, sides):
    """Who is ahead in each pair that is not open, by name: (better, worse), or a set of both for a tie."""
    table, models = live.table, live.models
    rank = {int(k): r for r, k in enumerate(table.ranking.tolist())}
    found = set()
    for a, b, side in zip(table.pairs.a.tolist(), table.pairs.b.tolist(), sides.tolist(), strict=True):
        first, second = models[rank[a]], models[rank[b]]
        if side:
            found.add(frozenset((first, second)) if side == 2 else (first, second) if side > 0 else (second, first))
    return found


def ranges(live, better):
    return dict(zip(live.models, zip(*(x.tolist() for x in rank_intervals(better)), strict=True), strict=True))


@pytest.mark.parametrize("policy", ["completion", "trusted", "committed"])
def test_the_verdicts_at_each_record_are_those_of_the_prefix(policy):
    log, prefixes = FoldLog(), []
    for record in records(policy):
        log.send(record)
        if "bench" in log.partition.benchmarks and len(log.bench.contestants) == len(SKILLS):
            live = LivePairs(board_view(log.bench))
            sides = live.table.anytime_decisions["anytime_family"]
            prefixes.append(
                (
                    log.partition.off - STRIDE,
                    by_name(live, sides),
                    by_name(live, live.table.settled),
                    ranges(live, decisions_by_rank(live.table)),
                )
            )
    live = LivePairs(board_view(log.bench))
    assert prefixes[-1][1]
    for offset, decided, settled, open_ranks in prefixes:
        then = sides_at(live.table, live.verdict_times, offset)
        assert by_name(live, then[0]) == decided
        assert by_name(live, then[1]) == settled
        assert ranges(live, closed_by_rank(live.table, then[0])) == open_ranks
    moments = live.verdict_times.moments().tolist()
    assert moments == sorted({change_offset(change) for change in counted(log.bench)})


def counted(benchmark):
    return [change for change in benchmark.changes.values() if change.procedure != "anytime"]


def change_offset(change):
    return int(change.id.split("-")[0])


def test_withdrawn_verdicts_were_in_force_and_those_of_an_earlier_declaration_are_counted():
    log = FoldLog(*records("completion"))
    decided = LivePairs(board_view(log.bench)).verdict_times
    log.send({"declare": "bench", "items": ITEMS, "order": {"policy": "completion"}, "alpha": 0.01, "version": 2})
    log.send(*events(random.Random(1), {"a": 0.5}, 1, benchmark="bench"))
    times = LivePairs(board_view(log.bench)).verdict_times
    assert times.omitted >= len(decided.fields) > 0
    assert all(field.endswith(":2") for field in times.fields)


def test_many_moments_are_thinned_and_those_at_which_verdicts_ended_stay(monkeypatch):
    monkeypatch.setattr(moments_module, "MOST_MOMENTS", 10)
    offsets = np.arange(100) * 7
    never = np.full(50, moments_module.NEVER)
    ended = never.copy()
    ended[3] = 7 * 13
    times = VerdictTimes([""] * 100, offsets, offsets[:50], never, ended, never, never, 0)
    listed = times.moments().tolist()
    assert (listed[0], listed[-1]) == (0, 99 * 7)
    assert 7 * 13 in listed
    assert len(listed) <= 11
    assert times.in_force(7 * 13 - 1)[0][3]
    assert not times.in_force(7 * 13)[0][3]


def test_the_page_of_moments(server):
    log = FoldLog(*records("completion"))
    served = server.hold(log.partition)
    now = served.get(f"moments?{urlencode({'benchmark': 'bench'})}").json
    board = served.get("board?benchmark=bench").json
    assert now["models"] == [m["model"] for m in board["report"]["models"]]
    assert now["rank_low"] == [m["rank_low"] for m in board["report"]["models"]]
    assert now["rank_high"] == [m["rank_high"] for m in board["report"]["models"]]
    assert now["ties"] == board["ties"]
    assert now["decided"] == max(moment["decided"] for moment in now["moments"]) > 0
    assert now["at"] == now["moments"][-1]["offset"]
    first = served.get(f"moments?benchmark=bench&at={now['moments'][0]['offset']}").json
    assert (first["decided"], first["settled"]) == (now["moments"][0]["decided"], now["moments"][0]["settled"])
    assert first["changes"]
    assert {change["id"].split("-")[0] for change in first["changes"]} == {str(first["at"])}
    ahead = served.get("moments?benchmark=bench&at=0").json
    assert (ahead["decided"], ahead["changes"], ahead["rank_low"]) == (0, [], [1, 1, 1, 1])
    assert served.get("moments?benchmark=bench&at=-1").status == 422
    assert served.get("moments?benchmark=none").status == 404


def test_a_board_without_a_verdict_has_no_moments(server):
    served = server.hold(FoldLog(*records("none")[1:]).partition)
    empty = served.get("moments?benchmark=bench").json
    assert (empty["moments"], empty["decided"], empty["at"]) == ([], 0, 0)


@pytest.mark.parametrize("situation", SITUATIONS)
def test_every_kind_of_board_has_its_moments(server, situation):
    served = server.hold(SITUATIONS[situation])
    (name,) = [each["benchmark"] for each in served.get("summaries").json]
    now = served.get(f"moments?{urlencode({'benchmark': name})}").json
    matrix = served.get(f"matrix?{urlencode({'benchmark': name})}").json
    steps = [matrix["decided"][k][k + 1] for k in range(len(now["models"]) - 1)]
    assert (now["models"], now["steps_decided"]) == (matrix["models"], steps)
    model = urlencode({"benchmark": name, "model": now["models"][0]})
    assert served.get(f"surprises?{model}").status == 200
