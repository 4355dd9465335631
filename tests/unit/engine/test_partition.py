"""Records of a log: packed ones, spans of watched files, declarations, and what could not be read."""

import json
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from monitor.engine.chunk_fold import Partition
from monitor.engine.limits import Limits
from monitor.view.build import benchmark_report
from monitor.view.from_state import board_view
from monitor.view.reasons import partial
from schemas.records.chunks import Chunk, Gap, Source
from schemas.results.reasons import Reason, fact
from tests.fold_log import STRIDE, FoldLog, counts_of, event, packed, paired


def rejected(log):
    return log.partition.counters["rejected"], {n: b.counters["rejected"] for n, b in log.partition.benchmarks.items()}


# --- chunks -----------------------------------------------------------------------------------------------------------------------------


def test_a_chunk_has_to_begin_where_the_state_ends():
    with pytest.raises(AssertionError, match="exactly where the state ends"):
        Partition().fold(Chunk(0, 5, 6, [5], [b"{}"]))


def test_a_delta_says_which_offsets_it_leads_between_and_what_it_touched():
    log = FoldLog()
    log.send(event(1, "m", 1, benchmark="x"), event(1, "m", 1, benchmark="y"))
    delta = log.send(event(2, "m", 1, benchmark="y"))
    assert (delta.expected, delta.off) == (2 * STRIDE, 3 * STRIDE)
    assert [(b.name, b.off) for b in delta.benchmarks] == [("y", 3 * STRIDE)]
    assert (log["x"].off, log["y"].off) == (2 * STRIDE, 3 * STRIDE)
    assert delta.counters["records"] == 3


def test_many_benchmarks_in_one_chunk_do_not_mix():
    log = FoldLog()
    names = [f"bench {k}" for k in range(20)]
    log.send(
        *(
            event(item, model, int(model == "a" and item % 3 == 0), benchmark=n)
            for item in range(6)
            for n in names
            for model in "ab"
        )
    )
    assert list(log.partition.benchmarks) == names
    assert {counts_of(log[n], "a", "b") for n in names} == {(6, 2, 0)}
    assert len({log[n].key for n in names}) == 20


def test_ids_increase_along_the_log_even_across_benchmarks():
    log = FoldLog(*({"declare": n, "order": "trusted", "items": 40} for n in ("x", "y", "z")))
    rows = [(n, item, model) for item in range(30) for n in ("z", "x", "y") for model in ("worse", "better")]
    events = [event(item, model, int(model == "better"), benchmark=n) for n, item, model in rows]
    log.send({"events": events[:60]}, *events[60:90], {"events": events[90:]})
    changes = [(change, b.name) for b in log.deltas[-1].benchmarks for change in b.changes.values()]
    assert len(changes) == 9  # decided on its own, in the family, and settled: each for three benchmarks
    place = {change.id: tuple(map(int, change.id.split("-"))) for change, _ in changes}
    assert len(place) == 9
    # At the same counts each of the three benchmarks closes its latch, in the order in which their events came.
    for procedure in ("anytime", "anytime_family"):
        ordered = sorted((place[c.id], name) for c, name in changes if c.procedure == procedure)
        assert [name for _, name in ordered] == ["z", "x", "y"]
        assert len({c.evidence.n for c, _ in changes if c.procedure == procedure}) == 1


# --- what a record is does not depend on the records around it --------------------------------------------------------------------------

ODD = {
    "timestamp": event(9, "a", 1, timestamp="yesterday"),
    "attributes": event(9, "a", 1, attributes="none"),
    "declare": event(9, "a", 1, declare="bench"),
    "unknown": event(9, "a", 1, extra={"events": [1]}),
    "events": event(9, "a", 1, attributes={"events": [1]}, timestamp="yesterday"),
    "both": event(9, "a", 1, events=[event(10, "a", 1)]),
    "both, bad": event(9, "a", 7, events=[event(10, "a", 1)]),
    "both, bad twice": event(9, "a", 7, events=[event(10, "a", 7)]),
    "long": event(9, "a", 1, attributes={"log": "x" * 1_000_001}),
    "two": json.dumps(event(9, "a", 1)).encode() + b"," + json.dumps(event(10, "a", 1)).encode(),
    "open": json.dumps(event(9, "a", 1)).encode() + b',{"benchmark":"bench","a":[1',
    "blank": b"",
    "array": b"[]",
    "utf-8": b'{"benchmark":"b\xff","item_id":"1","model":"m","score":1}',
    "surrogate": rb'{"benchmark":"\ud800","item_id":"1","model":"m","score":1}',
    "deep": json.dumps(event(9, "a", 1)).encode()[:-1] + b', "attributes": {"a": ' + b"[" * 300 + b"]" * 300 + b"}}",
}


@pytest.mark.parametrize("odd", ODD)
@pytest.mark.parametrize("beside", [[], [b"{"], [{"declare": "other"}], [b'2],"item_id":"7","model":"a","score":1}']])
def test_what_a_record_is_does_not_depend_on_its_chunk(odd, beside):
    records = [event(1, "a", 1), ODD[odd], *beside, event(2, "a", 1)]
    whole, apart = FoldLog(), FoldLog()
    whole.send(*records)
    for record in records:
        apart.send(record)
    for log in (whole, apart):
        assert log.bench.counters["events"] >= 2
    assert whole.bench.rows == apart.bench.rows
    assert whole.bench.counters == apart.bench.counters
    assert whole.partition.counters == apart.partition.counters
    assert [letter[:8] for letter in whole.letters] == [letter[:8] for letter in apart.letters]


def test_an_event_is_one_event_whatever_else_it_holds():
    log = FoldLog()
    log.send(event(1, "a", 1), ODD["both"], ODD["both, bad"], ODD["both, bad twice"])
    assert [row.item for row in log.bench.rows] == ["1", "9"]
    assert [letter.field for letter in log.letters] == ["score", "score"]


POOL = [
    *(event(k, m, int(m == "a"), benchmark=b) for k in range(8) for m in "ab" for b in ("bench", "other")),
    *(event(k, "b", x) for k in range(3) for x in (0.5, 7, None, "1", True)),
    *(event(k, "c", 1, cluster=c) for k in range(3) for c in ("x", "y", "\n", "")),
    event(1, "c", 0, epoch=1),
    event(1, "c", 0, repeat=1),
    event(1, "\n", 0),
    event(1, "a", 0, benchmark="\n"),
    event(1, "a", 0, benchmark="third"),
    *({"declare": b, "alpha": x, "order": "trusted"} for b in ("bench", "other", "\n", "third") for x in (0.4, 0.3, 2)),
    {"declare": "bench", "items": 6},
    packed(paired(9, 0), "ab"),
    packed(paired(3, 0), "ab", benchmark="other")
    | {"declare": [{"declare": "other", "order": "trusted", "alpha": 0.4}]},
    {"events": [event(1, "a", 1), event(2, "b", 9), event(3, "c", 1, benchmark="other"), None]},
    {
        "events": [],
        "rejected": [{"source": "s", "line": 1, "field": "f", "found": "x", "reason": "r", "benchmark": "other"}],
    },
    *ODD.values(),
]


@settings(max_examples=80, deadline=None)
@given(
    st.lists(st.sampled_from(range(len(POOL))), max_size=60), st.lists(st.integers(0, 60), max_size=8), st.booleans()
)
def test_whatever_a_log_holds_no_chunking_and_no_restart_changes_what_becomes_of_it(which, cuts, restart):
    limits = Limits(benchmarks=2, contestants=3, rows=9, values=3)
    records = [POOL[k] for k in which]
    whole, parts = FoldLog(limits=limits), FoldLog(limits=limits)
    whole.send(*records)
    for low, high in pairwise(sorted({0, len(records), *(min(cut, len(records)) for cut in cuts)})):
        parts.send(*records[low:high])
        if restart:
            parts.restart()
    assert whole.partition.counters == parts.partition.counters
    assert [letter[:8] for letter in whole.letters] == [letter[:8] for letter in parts.letters]
    assert list(whole.partition.benchmarks) == list(parts.partition.benchmarks)
    for name, one in whole.partition.benchmarks.items():
        other = parts[name]
        for field in ("spec", "rows", "contestants", "counters", "registered", "changes"):
            assert getattr(one, field) == getattr(other, field), field
        assert (one.matrix() == other.matrix()).all()
        for field in ("n", "b", "c", "family_index"):
            assert (getattr(one, field)[: one.pairs] == getattr(other, field)[: one.pairs]).all(), field


def test_a_time_that_nothing_uses_does_not_cost_the_score():
    log = FoldLog()
    log.send(ODD["timestamp"], b"{")
    log.send({"events": [ODD["timestamp"] | {"item_id": "10"}, event(11, "a", 2)]})
    assert [r.item for r in log.bench.rows] == ["9", "10"]


# --- packed records ---------------------------------------------------------------------------------------------------------------------


def test_a_packed_record_is_its_events_and_its_declarations_hold_before_them():
    log = FoldLog()
    log.send({"declare": [{"declare": "bench", "items": 30}]} | packed(paired(20, 1), "ab"))
    assert log.bench.spec.items == 30
    assert counts_of(log.bench, "a", "b") == (21, 20, 1)
    assert log.partition.counters["records"] == 1
    assert log.letters == []


@pytest.mark.parametrize("poison", [event(5, "a", 7), event(5, "\n", 1), {"item_id": "5"}, 17, None, [], "x"])
def test_a_poison_event_of_a_packed_record_takes_nothing_with_it(poison):
    log = FoldLog()
    declared = {"declare": "bench", "order": "trusted"}
    log.send(
        {
            "declare": [declared],
            "events": [event(1, "a", 1), event(1, "b", 0), poison, event(2, "a", 0), event(2, "b", 1)],
        }
    )
    assert counts_of(log.bench, "a", "b") == (2, 1, 1)
    assert log.bench.spec.order.policy == "trusted"
    (letter,) = log.letters
    assert (letter.offset, letter.index) == (0, 2)
    assert sum([rejected(log)[0], *rejected(log)[1].values()]) == 1


def test_the_place_of_a_verdict_in_a_packed_record_is_its_events_place_with_or_without_poison():
    ids = []
    for poison in ([], [event(99, "a", 7)]):
        log = FoldLog({"declare": "bench", "order": "trusted"})
        log.send({"events": packed(paired(30, 0), "ab")["events"] + poison})
        ids.append(sorted(change.id for change in log.bench.changes.values()))
    assert ids[0] == ids[1]
    assert len(ids[0]) == 2


def test_records_of_a_span_that_could_not_be_read_are_dead_letters():
    log = FoldLog()
    reject = {"source": "/x.jsonl", "line": 4, "field": "score", "found": "7", "reason": "no", "raw": "y" * 5_000}
    log.send(
        packed(paired(1, 0), "ab")
        | {"rejected": [reject | {"benchmark": "bench"}, reject | {"benchmark": "unknown"}, reject]}
    )
    assert rejected(log) == (2, {"bench": 1})
    assert [(x.index, x.source, x.line) for x in log.letters] == [(k, "/x.jsonl", 4) for k in (2, 3, 4)]
    assert {len(x.raw) for x in log.letters} == {2_000}


# --- spans of watched files -------------------------------------------------------------------------------------------------------------


def span(start, end, items, *, generation=0, path="/a.jsonl"):
    """A packed record of a watched file, one byte an item."""
    return {
        "events": [event(k, "m", 1) for k in items],
        "source": {"path": path, "generation": generation, "prefix": f"p{end}", "line": end},
        "from": start,
        "to": end,
    }


def test_a_span_counts_only_where_the_last_one_ended():
    log = FoldLog()
    log.send(span(0, 2, [0, 1]))
    log.send(span(0, 2, [0, 1]), span(1, 3, [1, 2]), span(3, 4, [3]), span(2, 4, [2, 3]))
    assert log.partition.sources == {"/a.jsonl": Source(0, 4, "p4", 4)}
    assert log.bench.counters["events"] == 4
    assert log.bench.counters["duplicates"] == 0
    assert log.partition.counters["skipped_spans"] == 3
    assert log.deltas[-1].sources == log.partition.sources


@pytest.mark.parametrize("restarts", [False, True])
def test_spans_after_a_lost_part_of_the_log_count_and_their_files_are_read_again(restarts):
    log = FoldLog(span(0, 2, [0, 1]), span(0, 1, [0], path="/b.jsonl"))
    start = log.partition.off
    log.store.commit(log.partition.fold(Chunk(0, start, start + 70, [], [], lost=True)))
    assert log.partition.gaps == [Gap(0, start, start + 70)]
    if restarts:
        log.restart()
    log.send(span(5, 7, [5, 6]), span(3, 4, [3], path="/c.jsonl"), span(1, 3, [9]))
    assert log.partition.counters["skipped_spans"] == 1, "one that begins ahead of what is read was read before"
    log.send(span(7, 8, [7]))
    assert sorted(item for item, *_ in log.bench.item_keys) == ["0", "1", "3", "5", "6", "7"]
    positions = {path: (each.position, each.prefix) for path, each in log.partition.sources.items()}
    assert positions == {"/a.jsonl": (8, ""), "/b.jsonl": (1, ""), "/c.jsonl": (4, "")}, "no file begins so"
    log.send(span(0, 8, range(8), generation=1), span(8, 9, [8], generation=1))
    assert log.partition.sources["/a.jsonl"] == Source(1, 9, "p9", 9)
    assert log.bench.counters["duplicates"] == 7


def test_what_a_span_holds_and_is_refused_names_its_file():
    log = FoldLog()
    log.send(span(0, 1, [0]) | {"ended": [{"ended": "bench"}]}, {"events": [event(8, "m", 1)]})
    log.send(span(1, 2, [1]) | {"ended": [{"ended": "other"}]}, event(9, "m", 1))
    assert [(x.source, x.line, x.field) for x in log.letters] == [
        ("log", None, "model"),
        ("/a.jsonl", None, "model"),
        ("/a.jsonl", None, "ended"),
        ("log", None, "model"),
    ]


def test_an_empty_span_advances_and_the_declaration_of_a_skipped_one_does_not_count():
    log = FoldLog()
    log.send(span(0, 2, [0]), span(2, 9, []))
    assert log.partition.sources["/a.jsonl"].position == 9
    log.send(span(0, 2, [0]) | {"declare": [{"declare": "other"}]})
    assert list(log.partition.benchmarks) == ["bench"]


def test_a_new_generation_begins_at_nought_and_an_old_one_is_over():
    log = FoldLog()
    log.send(span(0, 2, [0, 1]), span(2, 3, [2], generation=1))
    assert log.partition.counters["skipped_spans"] == 1
    log.send(span(0, 3, [0, 1, 2], generation=1), span(2, 3, [9]), span(0, 5, [8]))
    assert log.partition.sources["/a.jsonl"] == Source(1, 3, "p3", 3)
    assert log.partition.counters["skipped_spans"] == 3
    assert log.bench.counters == {"events": 5, "duplicates": 2, "conflicts": 0, "filled": 0, "rejected": 0}


def test_files_have_positions_of_their_own_which_a_restart_keeps():
    log = FoldLog()
    log.send(span(0, 2, [0]), span(0, 5, [1], path="/b.jsonl"))
    log.restart()
    log.send(span(2, 3, [2]), span(2, 3, [3], path="/b.jsonl"))
    assert {path: s.position for path, s in log.partition.sources.items()} == {"/a.jsonl": 3, "/b.jsonl": 5}
    assert log.partition.counters["skipped_spans"] == 1


# --- declarations -----------------------------------------------------------------------------------------------------------------------


def test_declarations_before_the_first_score_replace_each_other():
    log = FoldLog({"declare": "bench", "items": 5}, {"declare": "bench", "items": 7, "alpha": 0.1})
    assert (log.bench.spec.items, log.bench.spec.alpha, log.bench.spec.order.policy) == (7, 0.1, "completion")
    log.send({"declare": "bench", "order": "trusted"})
    assert (log.bench.spec.items, log.bench.spec.alpha, log.bench.spec.order.policy) == (None, 0.05, "trusted")
    assert log.letters == []


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"alpha": 0.1}, "alpha"),
        ({"mixture": "grid98"}, "mixture"),
        ({"items": 11}, "items"),
        ({"order": "trusted"}, "order"),
        ({"family": {"policy": "capacity", "size": 3}}, "family"),
        ({"family": {"policy": "spending", "pairs": [["a", "b"]]}}, "family"),
    ],
    ids=lambda x: x if isinstance(x, str) else "",
)  # fmt: skip
def test_what_a_verdict_rests_on_cannot_change_after_a_score(change, field):
    log = FoldLog({"declare": "bench", "items": 10}, event(1, "a", 1))
    declared = log.bench.spec
    delta = log.send({"declare": "bench", "items": 10, **change}, event(2, "a", 1))
    assert log.bench.spec == declared
    assert delta.benchmarks[0].spec is None
    (letter,) = delta.dead_letters
    assert (letter.field, letter.benchmark) == (field, "bench")
    assert "can no longer be declared" in letter.reason
    assert "send the whole declaration as version 2" in letter.reason
    assert log.bench.counters["rejected"] == 1
    assert log.bench.items == 2


def test_power_and_margin_may_change_and_the_same_declaration_may_come_again():
    log = FoldLog({"declare": "bench", "items": 10}, event(1, "a", 1))
    log.send({"declare": "bench", "items": 10}, {"declare": "bench", "items": 10, "power": 0.9, "margin": 0.02})
    assert log.letters == []
    assert (log.bench.spec.power, log.bench.spec.margin) == (0.9, 0.02)
    log.restart()
    assert (log.bench.spec.power, log.bench.spec.margin, log.bench.spec.items) == (0.9, 0.02, 10)


def test_a_declaration_holds_from_its_place_in_the_chunk():
    log = FoldLog()
    log.send(event(1, "a", 1), {"declare": "bench", "order": "trusted"})
    assert log.bench.spec.order.policy == "none"
    assert [x.field for x in log.letters] == ["order"]
    log.send({"declare": "late", "order": "trusted"}, event(1, "a", 1, benchmark="late"))
    assert log["late"].spec.order.policy == "trusted"


def test_a_refused_first_event_does_not_close_the_declaration():
    log = FoldLog()
    log.send(event(1, "\n", 1), event(1, "a", 3), {"declare": "bench", "order": "trusted"})
    assert log.bench.spec.order.policy == "trusted"


@pytest.mark.parametrize(
    ("spec", "field"),
    [({"alpha": 2}, "alpha"), ({"mixture": "best"}, "mixture"), ({"order": "completion"}, "record"), ({"itmes": 5}, "itmes")],
)  # fmt: skip
def test_a_declaration_that_is_none_is_a_dead_letter(spec, field):
    log = FoldLog(event(1, "a", 1))
    log.send({"declare": "bench", **spec})
    assert [x.field for x in log.letters] == [field]
    assert log.bench.counters["rejected"] == 1


# --- what could not be read counts where it belongs -------------------------------------------------------------------------------------


def test_a_reject_counts_in_its_benchmark_once_that_has_begun_whatever_the_chunking():
    bad = event(1, "a", 7)
    records = [bad, event(1, "a", 1, benchmark="other"), bad, event(1, "a", 1), bad, b"{", event(2, "a", 1), bad]
    whole, apart = FoldLog(), FoldLog()
    whole.send(*records)
    for record in records:
        apart.send(record)
    # Two came before the benchmark began, and one names none.
    assert rejected(whole) == rejected(apart) == (3, {"other": 0, "bench": 2})
    assert whole.store.state.counters["rejected"] == 3


def test_events_straight_from_files_are_folded_like_records():
    log, direct = FoldLog(), Partition()
    records = [event(k, m, int(m == "a")) for k in range(5) for m in "ab"]
    log.send(*records)
    decoded = FoldLog()
    decoded.send({"events": records})
    from schemas.records.decode import decode_records

    events = decode_records([json.dumps(record).encode() for record in records])
    delta = direct.fold_events([], events, ["bench", None, "unknown"], 10)
    assert (delta.expected, delta.off, direct.off) == (0, 10, 10)
    assert (
        counts_of(direct.benchmarks["bench"], "a", "b")
        == counts_of(log.bench, "a", "b")
        == counts_of(decoded.bench, "a", "b")
    )
    assert direct.benchmarks["bench"].counters["rejected"] == 1
    assert direct.counters["rejected"] == 2


def test_a_gap_marks_every_benchmark_for_good_and_those_that_begin_later():
    log = FoldLog({"declare": "bench", "items": 9}, event(1, "a", 1))
    first = Gap(0, log.partition.off, log.partition.off + 50)
    delta = log.partition.skip(first.end)
    log.store.commit(delta)
    assert (delta.expected, delta.off, delta.gaps) == (first.start, first.end, [first])
    assert log.bench.gaps == log.partition.gaps == [first]
    log.restart()
    log.send(event(2, "a", 1), event(1, "a", 1, benchmark="later"))
    second = Gap(0, log.partition.off, log.partition.off + 7)
    log.store.commit(log.partition.skip(second.end))
    log.send(event(3, "a", 1, benchmark="last"), {"declare": "bench", "items": 12, "version": 2})
    for _ in range(2):
        assert set(log.partition.benchmarks) == {"bench", "later", "last"}
        assert all(benchmark.gaps == [first, second] for benchmark in log.partition.benchmarks.values())
        assert log.bench.spec.items == 12
        assert log.bench.counters["events"] == 2
        log.restart()
    (lost,) = partial(board_view(log.bench))
    assert lost == fact(Reason.LOST_RECORDS, gaps=[first._asdict(), second._asdict()])
    assert benchmark_report(board_view(FoldLog(event(1, "a", 1)).bench)).partial is None
