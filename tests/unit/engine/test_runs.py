"""Run messages: the columns of one run count as one event for each item."""

import json
import random
from itertools import groupby

import pytest

from monitor.engine.chunk_fold import Partition
from monitor.engine.limits import Limits
from monitor.send.messages import LEAST_RUN, write_messages
from monitor.view.drift import shown
from schemas.records.chunks import Chunk
from schemas.records.columns import EventList, JoinedEvents
from schemas.records.events import EventFields
from schemas.records.packed import Segment
from schemas.records.run_columns import ItemColumns, Run, RunEvents, decode_run, encode_run
from tests.fold_log import FoldLog, counts_of, event

RUN = {"benchmark": "bench", "model": "m", "item_ids": ["1", "2", "3"], "scores": [1, 0, None]}


def letters(log):
    return [(letter.offset, letter.index, letter.field, letter.reason) for letter in log.letters]


def columns(events):
    first = events[0]
    shared = {field: first[field] for field in ("benchmark", "model", "epoch", "run", "role") if field in first}
    return shared | {"item_ids": [e["item_id"] for e in events], "scores": [e["score"] for e in events]}


def state(log):
    (benchmark,) = log.partition.benchmarks.values()
    pairs = benchmark.pairs
    return {
        "counters": benchmark.counters,
        "letters": [(letter.index, letter.field, letter.reason, letter.benchmark) for letter in log.letters],
        "rows": benchmark.rows,
        "contestants": benchmark.contestants,
        "scores": benchmark.matrix().tolist(),
        "sums": [getattr(benchmark, name)[:pairs].tolist() for name in ("n", "b", "c", "family_index")],
        "changes": dict(benchmark.changes.items()),
    }


@pytest.mark.parametrize("size", [7, 150, 5_000])
def test_a_run_message_counts_as_its_events_in_their_order(size):
    rng = random.Random(size)
    events = [
        event(item, model, rng.choice([1, 1, 1, 0] if model > "d" else [1, 0, 0]) if rng.random() < 0.98 else None)
        for model in "aebfcd"
        for item in rng.sample(range(900), 800)
    ]
    events += [event(item, "a", 1, epoch=1) for item in range(300)] + events[:200]
    runs = [
        list(run)[k : k + size]
        for _, same in groupby(events, lambda e: (e["model"], e.get("epoch")))
        for run in [list(same)]
        for k in range(0, len(run), size)
    ]
    logs = [FoldLog({"declare": "bench", "items": 890}) for _ in range(2)]
    logs[0].send(*({"events": run} for run in runs))
    for k in range(0, len(runs), 3):
        # Without spaces, as rankwatch writes them: scores of 0 and 1 are then read as an array.
        logs[1].send(*(json.dumps(columns(run), separators=(",", ":")).encode() for run in runs[k : k + 3]))
    assert state(logs[1]) == state(logs[0])
    assert logs[0].bench.changes, "some pairs are decided"
    assert logs[0].bench.counters["duplicates"] == 200


def test_clusters_and_an_epoch_are_those_of_each_event():
    log = FoldLog()
    log.send({**RUN, "clusters": ["law", None, "math"], "epoch": 2})
    assert [(row.item, row.cluster) for row in log.bench.rows] == [("1", "law"), ("2", None), ("3", "math")]
    assert [(c.model, c.epoch) for c in log.bench.contestants] == [("m", 2)]


@pytest.mark.parametrize(
    ("change", "field", "reason"),
    [
        ({"scores": [1, 0]}, "scores", "scores has 2 entries and item_ids 3; give one score for each item"),
        (
            {"clusters": ["law"]},
            "clusters",
            "clusters has 1 entry and item_ids 3; give one cluster, or null, for each item",
        ),
        (
            {"clusters": []},
            "clusters",
            "clusters has 0 entries and item_ids 3; give one cluster, or null, for each item",
        ),
        ({"scores": 1}, "scores", "scores is not a list; give one score for each item"),
        ({"item_ids": ["1"], "scores": "1"}, "scores", "scores is not a list; give one score for each item"),
        ({"clusters": {"1": "law"}}, "clusters", "clusters is not a list; give one cluster, or null, for each item"),
        ({"item_ids": [], "scores": []}, "item_ids", "item_ids is empty; give at least one item"),
        ({"item_ids": None}, "item_ids", "item_ids is not a list; give the ids of the items"),
        ({"item_ids": "abc"}, "item_ids", "item_ids is not a list; give the ids of the items"),
        ({"repeat": 1}, "repeat", "repeat is not a field of a run message; send scores with repeats as events"),
        ({"cluster": "law"}, "cluster", "cluster is not a field of a run message; use clusters, one for each item"),
    ],
)
def test_columns_that_do_not_fit_together_are_one_dead_letter(change, field, reason):
    log = FoldLog()
    log.send(event(1, "other", 1), {**RUN, **change}, event(2, "other", 1))
    assert letters(log) == [(10, 0, field, reason)]
    assert log.bench.counters["events"] == 2
    assert log.bench.counters["rejected"] == 1


def test_a_bad_score_or_name_costs_no_other_item():
    log = FoldLog()
    log.send({**RUN, "item_ids": ["1", "", 3, "4\n"], "scores": [1, 1, "0.5", 2]})
    assert [(letter.index, letter.field) for letter in log.letters] == [(1, "item_id"), (3, "item_id")]
    assert [row.item for row in log.bench.rows] == ["1", "3"]
    log.send({**RUN, "scores": [1, 0, 1.5]})
    assert [(letter.index, letter.field) for letter in log.letters[2:]] == [(2, "score")]


def test_a_byte_order_mark_and_a_lone_surrogate_are_read_as_in_an_event():
    log = FoldLog()
    log.send(b"\xef\xbb\xbf" + json.dumps(RUN).encode(), {**RUN, "model": "n", "item_ids": ["1", "\ud800", "3"]})
    assert [(letter.offset, letter.index, letter.field) for letter in log.letters] == [(10, 1, "item_id")]
    assert log.bench.counters["events"] == 5


def test_a_forbidden_character_in_a_name_is_found_when_the_name_is_new():
    log = FoldLog()
    log.send({**RUN, "item_ids": ["1", "a\u202eb", "3"]}, {**RUN, "model": "a\u202eb"})
    assert [(letter.offset, letter.index, letter.field) for letter in log.letters] == [
        (0, 1, "item_id"),
        *((10, k, "model") for k in range(3)),
    ]


@pytest.mark.parametrize("other", [{"item_id": "7", "score": 1}, {"events": [event(7, "m", 1)]}])
def test_a_record_with_a_field_of_another_kind_is_no_run(other):
    log = FoldLog()
    log.send({**RUN, **other})
    assert [row.item for row in log.bench.rows] == ["7"]


def test_a_declaration_with_a_list_of_items_is_no_run():
    log = FoldLog({"declare": "bench", "item_ids": ["1", "2"], "order": "completion"})
    log.send({**RUN, "item_ids": ["1", "2", "3"]})
    assert [letter.index for letter in log.letters] == [2]
    assert log.bench.counters["events"] == 2


def test_a_list_that_was_read_before_is_looked_up_in_each_benchmark():
    log = FoldLog()
    lists = [["1", "2", "3"], ["3", "2", "1"]]
    for names in lists * 2:
        for benchmark in ("one", "two"):
            for model in ("a", "b"):
                log.send({**RUN, "benchmark": benchmark, "model": f"{model} {names}", "item_ids": names})
        log.restart()
    assert [row.item for row in log["two"].rows] == ["1", "2", "3"]
    assert counts_of(log["one"], f"a {lists[0]}", f"a {lists[1]}") == (1, 0, 0)
    assert log["one"].counters["duplicates"] == 12


@pytest.mark.parametrize(
    "scores", ["[1,0,1]", "[ 1,0,1]", "[1, 0, 1]", "[1.0,0,true]", "[1,0,0.5]", "[1,0,null]", "[0,0,1e0]"]
)
def test_scores_of_a_run_are_read_in_any_writing(scores):
    log, record = FoldLog(), json.dumps(RUN).encode()
    log.send(record.replace(b"[1, 0, null]", scores.encode()))
    assert not log.letters
    units = log.bench.table.by_code[log.bench.matrix()[:, 0]].tolist()
    assert units == [0 if score is None else round(score * 10**12) for score in json.loads(scores)]


@pytest.mark.parametrize(
    "scores", ["[1,0,2]", "[1,0,-]", "[1,0,9]", "[1;0,1]", "[01,0,1]", "[1,0,1", "[1,0,1,]", '"101"']
)
def test_digits_that_are_no_list_of_scores_are_refused(scores):
    log, record = FoldLog(), json.dumps(RUN).encode()
    log.send(record.replace(b"[1, 0, null]", scores.encode()))
    assert log.letters


def test_old_lists_are_forgotten(monkeypatch):
    monkeypatch.setattr(ItemColumns, "_MOST_NAMES", 4)
    lists = ItemColumns()
    first = lists.column(b'["1","2"]')
    assert lists.column(b'["1","2"]') is first
    second = lists.column(b'["3","4"]')
    lists.column(b'["1","2"]')
    lists.column(b'["5"]')
    assert lists.column(b'["1","2"]') is first, "the one used last stays"
    assert lists.column(b'["3","4"]') is not second


def test_events_of_columns_are_those_of_the_message():
    of_run = {"run": 0, "role": ""}
    events = [EventFields("b", str(k), "m", k / 4, None if k % 2 else "law", 0, 3, **of_run) for k in range(5)]
    run = decode_run(encode_run(events))
    assert Run.model_validate_json(encode_run(events)).epoch == 3
    joined = JoinedEvents([EventList(events[:2]), RunEvents.of(run, ItemColumns())])
    assert list(joined) == events[:2] + events
    assert [joined[k] for k in range(7)] == events[:2] + events
    for start in range(7):
        for stop in range(start, 9):
            assert list(joined[start:stop]) == (events[:2] + events)[start:stop]


def test_a_sentinel_takes_its_runs_as_columns():
    runs = [
        [event(item, "m", int(item < 20 + day % 3), run=f"2026-08-{day + 1:02}") for item in range(30)]
        for day in range(9)
    ]
    runs += [[each | {"role": "anchor"} for each in run] for run in runs]
    runs.sort(key=lambda run: run[0]["run"])
    declared = {"declare": "bench", "items": 30, "drift": {"seed": "s", "judge": "j", "anchors": 30}}
    single, sent = FoldLog(declared), FoldLog(declared)
    single.send(*(each for run in runs for each in run))
    sent.send(*map(columns, runs))
    packs = write_messages([Segment([], [EventFields(**each) for run in runs for each in run], [], 0, 0)], packed=True)
    assert [json.loads(pack.value) for pack in packs] == list(map(columns, runs))
    shown_of = [shown(log.bench.sentinel.models["m"]) for log in (single, sent)]
    assert shown_of[0] == shown_of[1]
    assert [run.anchors for run in shown_of[1].runs] == [30] * 9
    assert sent.letters == []


def test_frozen_answers_in_columns_are_no_scores_of_a_board():
    log = FoldLog({"declare": "bench", "items": 3}, RUN, RUN | {"model": "other", "role": "anchor"})
    assert [letter.field for letter in log.letters] == ["role"] * 3
    twice = b'{"benchmark":"bench","model":"m","run":"r","item_ids":["1"],"scores":[1],"run":"s"}'
    assert decode_run(twice) is None
    log.send(twice)
    assert log.letters[-1].field == "run"


AWKWARD = [
    ("a\u202eb", {}),
    ("a", {"cluster": "b\u2028c"}),
    ("", {}),
    ("x" * 201, {}),
    ("\u00ad", {}),  # no printable character, but allowed
    ("3", {"cluster": "another"}),
    ("15", {"repeat": 2}),
    ("15", {"epoch": 1}),
    ("15", {"model": "new"}),
    ("15", {"score": 0.25}),
]


@pytest.mark.parametrize("spec", [{}, {"items": 14}, {"item_ids": [str(k) for k in range(18)]}, {"repeats": 2}])
@pytest.mark.parametrize("limits", [None, Limits(rows=12)])
def test_items_that_come_together_are_added_as_one_by_one(spec, limits, monkeypatch):
    """Whatever is unusual about one of many new items."""
    logs = []
    for _ in range(2):
        log = FoldLog({"declare": "bench", **spec}, limits=limits)
        for k, (item, fields) in enumerate(AWKWARD):
            events = [event(j, f"m{k}", j % 2, cluster=f"c{j % 3}") for j in range(k, k + 10)]
            log.send({"events": [*events[:5], {**event(item, f"m{k}", 1), **fields}, *events[5:], *events[:2]]})
            if not fields:
                log.send({**RUN, "item_ids": [f"{k} 1", item, f"{k} 2"], "clusters": [None, "law", "law"]})
        logs.append(log)
        monkeypatch.setattr("monitor.engine.fold.locate._add_items", lambda *_: None)
    assert state(logs[0]) == state(logs[1])
    assert logs[0].letters


def test_a_run_of_another_partition_is_passed_on_whole():
    here = Partition(0, owner=lambda name: int(name == "bench"))
    record = json.dumps(RUN).encode()
    delta = here.fold(Chunk(0, 0, 2, [0, 1], [record, json.dumps({**RUN, "benchmark": "own"}).encode()]))
    assert [(m.offset, m.place, m.benchmark, m.payload) for m in delta.misrouted] == [(0, 0, "bench", record)]
    assert list(here.benchmarks) == ["own"]


def test_packed_messages_are_columns_where_events_of_a_run_come_together():
    many = [EventFields("b", str(k), "m", 1.0) for k in range(LEAST_RUN)]
    few = [EventFields("b", str(k), "n", 1.0) for k in range(LEAST_RUN - 1)]
    again = [EventFields("b", str(k), "n", 1.0, None, 1) for k in range(LEAST_RUN)]
    segment = Segment([], few + many + again + few, [], 0, 0)
    messages = [json.loads(message.value) for message in write_messages([segment], packed=True)]
    sizes = [len(message.get("events", message.get("item_ids"))) for message in messages]
    assert sizes == [len(few), len(many), len(again) + len(few)]
    assert ["item_ids" in message for message in messages] == [False, True, False]
