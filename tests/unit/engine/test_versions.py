"""New versions of a declaration: the scores stay, and the decisions start again."""

import json
import random

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from monitor.view.build import benchmark_report
from monitor.view.from_state import board_view
from monitor.words.assumptions import clause
from schemas.results.assumptions import Assumption
from schemas.results.changes import CLAIMS, PROCEDURES, change_order
from tests.fold_log import FoldLog, event, packed, paired
from tests.property.test_fold_laws import CHUNKINGS, SIZES, essence, every_way, fold, log_of, streams
from tests.report_factory import without

MODELS = ["a", "b", "c", "d"]


def scores(items=60, models=MODELS, start=0, **fields):
    """Each model is right on fewer items than the one before it."""
    return [
        event(item, model, int(item % 6 >= 2 * k), **fields)
        for item in range(start, items)
        for k, model in enumerate(models)
    ]


def latches(log, model_of=None):
    """Sides of the decisions in force, by procedure and pair of contestants."""
    names = [tuple(c) for c in log.bench.contestants]
    return {
        (procedure, names[i], names[j]): int(np.sign(latch[j * (j - 1) // 2 + i]))
        for procedure, latch in log.bench.latched.items()
        for j in range(len(names))
        for i in range(j)
        if latch[j * (j - 1) // 2 + i]
    }


def by_kind(delta):
    kinds = {}
    for field, change in delta.benchmarks[0].changes.items():
        kinds.setdefault(change.kind, {})[field] = change
    return kinds


def test_a_larger_item_count_keeps_the_scores_and_judges_them_again():
    log = FoldLog({"declare": "bench", "items": 60}, *scores())
    first = {field: change for field, change in log.bench.changes.items() if change.kind in {"decided", "settled"}}
    delta = log.send({"declare": "bench", "items": 64, "version": 2})
    assert not log.letters
    kinds = by_kind(delta)
    first = {field.rpartition(":")[0]: change for field, change in first.items()}
    assert {field.rpartition(":")[0] for field in kinds["superseded"]} == set(first)
    for field, change in kinds["superseded"].items():
        before = first[field.rpartition(":")[0]]
        assert (change.before, change.after, change.evidence) == (before.after, None, before.evidence)
        assert "declared again, as version 2" in change.sentence
    assert all(field.endswith(":decided:2") for field in kinds["decided"])
    assert all(change.evidence.missing == 4 for change in kinds["decided"].values())
    fact = {"code": "declared_late", "parts": ["items"]}
    assert all(fact in change.assumptions for change in kinds["decided"].values())
    # Ended decisions come first in the feed.
    ids = [change_order(change.id) for change in log.bench.changes.values()]
    assert len(set(ids)) == len(ids)
    ended, new = ([change_order(c.id) for c in kinds[kind].values()] for kind in ("superseded", "decided"))
    assert max(ended) < min(new)

    log.send(*scores(64, start=60))
    fresh = FoldLog({"declare": "bench", "items": 64}, *scores(64))
    assert latches(log) == latches(fresh) != {}
    assert log.bench.family_index.tolist() == fresh.bench.family_index.tolist()
    for pair in benchmark_report(board_view(log.bench), pairs="all").pairs:
        late_items, decided = clause(Assumption("declared_late", names=("items",))), pair.decided.anytime is not None
        assert (late_items in pair.reason) == (pair.status == "decided" or decided)


def test_fewer_items_than_have_scores_are_refused_and_nothing_changes():
    log = FoldLog({"declare": "bench", "items": 60}, *scores())
    before, changes = latches(log), dict(log.bench.changes)
    log.send({"declare": "bench", "items": 50, "version": 2})
    (letter,) = log.letters
    assert letter.reason == "'bench' has scores of 60 items, so it cannot have 50; declare at least 60"
    assert latches(log) == before != {}
    assert log.bench.changes == changes
    assert log.bench.spec.items == 60
    # After an item too many the right count releases the benchmark, and no other.
    log.send(*scores(62, start=60), {"declare": "bench", "items": 61, "version": 2})
    assert len(log.letters) == 2
    log.send({"declare": "bench", "items": 62, "version": 2})
    assert len(log.letters) == 2
    assert log.bench.can_decide


@pytest.mark.parametrize(
    ("first", "second", "more"),
    [
        ({}, {"items": 60}, []),
        ({"items": 50}, {"items": 60}, []),
        ({"items": 60}, {"items": 60, "alpha": 0.2}, []),
        ({"items": 60}, {"items": 60, "repeats": "all"}, [{"ended": "bench"}]),
        ({"items": 60}, {"items": 60, "repeats": 2}, [event(0, "a", 0, repeat=3)]),
        ({"items": 60}, {"items": 60, "scores": "graded"}, [event(0, "a", 0.5, repeat=9)]),
        ({"items": 70}, {"items": 70, "missing": "ignorable"}, [{"ended": "bench"}]),
        ({"items": 60}, {"items": 60, "family": {"policy": "capacity", "size": 3}}, []),
        ({"items": 60}, {"items": 60, "family": {"policy": "spending", "pairs": [["a", "b"]]}}, []),
        ({}, {"item_ids": [str(k) for k in range(60)]}, []),
    ],
)
@pytest.mark.parametrize("late", [False, True])
def test_a_completed_benchmark_decides_what_a_fresh_one_decides(first, second, more, late):
    stream = [*scores(), event(0, "b", 0, epoch=1), *more]
    version = {"declare": "bench", **second, "version": 2}
    log = FoldLog({"declare": "bench", **first}, *(stream if late else stream[:100]), version)
    log.send(*([] if late else stream[100:]))
    assert not log.letters
    fresh = FoldLog({"declare": "bench", **second}, *stream)
    if not fresh.bench.undeclared:
        current = {key: side for key, side in latches(fresh).items() if ("b", 0) not in key}
        assert {key: side for key, side in latches(log).items() if ("b", 0) not in key} == current
    assert log.bench.assumption_holds == fresh.bench.assumption_holds
    report, expected = (
        without(benchmark_report(board_view(each.bench)), "pairs", "family", "summary") for each in (log, fresh)
    )
    assert report["models"] == expected["models"]
    assert report["order"]["policy"] == expected["order"]["policy"]


def test_undeclared_repeats_are_declared_in_place():
    log = FoldLog({"declare": "bench", "items": 60}, *scores(), *scores(30, ["a", "b"], repeat=4))
    assert (
        "declare as many as the items have (repeats: R), or all (repeats: all)"
        in benchmark_report(board_view(log.bench)).order.reason
    )
    delta = log.send({"declare": "bench", "items": 60, "repeats": "all", "version": 2})
    assert "superseded" not in by_kind(delta), "the decisions were invalidated"
    assert benchmark_report(board_view(log.bench)).order.reason is None
    log.restart()
    assert not log.bench.undeclared
    log.send({"ended": "bench"})
    fresh = FoldLog({"declare": "bench", "items": 60, "repeats": "all"})
    fresh.send(*scores(), *scores(30, ["a", "b"], repeat=4), {"ended": "bench"})
    assert latches(log) == latches(fresh) != {}
    # Fewer repeats than there are hold the benchmark at once.
    log.send({"declare": "bench", "items": 60, "version": 3})
    assert "a has 2 repeats of item 0, and 1 is declared" in log.bench.undeclared
    assert log.bench.latched["anytime"].any() == False  # noqa: E712 - of numpy
    log.restart()
    assert "a has 2 repeats of item 0" in log.bench.undeclared


def test_the_assumption_is_omitted_for_the_published_size_alone():
    def declared(name, *versions):
        log = FoldLog({"declare": name, **versions[0]})
        log.send(packed(paired(55, 0, 5), ["x", "y"], benchmark=name))
        for number, spec in enumerate(versions[1:], start=2):
            log.send({"declare": name, **spec, "version": number})
        decisions = [c for c in log[name].changes.values() if c.kind == "decided" and c.after]
        named = [fact["parts"] for fact in decisions[-1].assumptions if fact["code"] == "declared_late"]
        return list(log[name].spec.declared_late), [*named, []][0]

    published = {"items": 71}
    assert declared("wnli", {}, published) == ([], [])
    assert declared("wnli", {"items": 60}, published) == ([], [])
    assert declared("wnli", {}, {"items": 72}) == (["items"], ["items"])
    assert declared("wnli", {}, published | {"alpha": 0.2}) == (["alpha"], ["alpha"])
    assert declared("wnli", {"order": "trusted"}, published) == (["order"], ["order"])
    assert declared("wnli", {}, {"items": 72}, published) == (["items"], ["items"]), "an earlier choice is not undone"
    assert declared("other", {}, published) == (["items"], ["items"])


def test_what_is_no_next_version_is_refused():
    log = FoldLog({"declare": "bench", "items": 60}, *scores(20))
    for spec, reason in [
        ({"items": 70, "version": 3}, "the next one is version 2, not 3; declare it as version 2"),
        ({"items": 70}, "send the whole declaration as version 2"),
        ({"item_ids": ["0", "1"], "version": 2}, "has scores of item 2, which is not in the list; add it"),
        (
            {"order": {"policy": "committed", "seed": "s"}, "item_ids": [str(k) for k in range(20)], "version": 2},
            "a committed order is declared before the first score and never changes",
        ),
    ]:
        (letter,) = log.send({"declare": "bench", **spec}).dead_letters
        assert reason in letter.reason
    assert log.bench.spec.version == 1
    log.send({"declare": "bench", "items": 70, "version": 2})
    letters = len(log.letters)
    assert not by_kind(log.send({"declare": "bench", "items": 70, "version": 2})), "a duplicate"
    log.send({"declare": "bench", "items": 70})
    assert len(log.letters) == letters
    assert log.bench.spec.version == 2
    log.send({"declare": "bench", "items": 60})
    assert "send the whole declaration as version 3" in log.letters[-1].reason

    order = [str(k) for k in range(60)]
    log = FoldLog({"declare": "bench", "order": {"policy": "committed", "seed": "s"}, "item_ids": order}, *scores(20))
    log.send({"declare": "bench", "items": 60, "version": 2}, {"declare": "bench", "items": 60})
    assert all("has committed to a seed and its items" in letter.reason for letter in log.letters)
    assert len(log.letters) == 2


def test_a_trusted_order_is_judged_by_its_present_evidence():
    wins, losses = [[1, 0]] * 40, [[0, 1]] * 35
    log = FoldLog({"declare": "bench"}, packed([*wins, *losses], ["x", "y"]))
    log.send({"declare": "bench", "order": "trusted", "version": 2})
    assert latches(log) == {}, "it was decided at its highest, and is not now"
    log.send(packed(wins, ["x", "y"], items=range(100, 140)))
    log.send(packed(wins * 2, ["x", "y"], items=range(200, 280)))
    assert set(latches(log)) == {(procedure, ("x", 0), ("y", 0)) for procedure in PROCEDURES}


def test_the_order_test_goes_on_and_suspects_no_good_order():
    rng = random.Random(4)
    items = [event(k, m, 1, cluster=f"c{rng.randrange(3)}") for m in "ab" for k in rng.sample(range(600), 600)]
    listed = {"declare": "bench", "item_ids": [str(k) for k in range(600)], "order": "trusted", "version": 2}
    log = FoldLog({"declare": "bench"}, *items[:500])
    log.send(listed, *items[500:])
    assert log.bench.arrival.finding is None
    # A model that comes later in the order of the list is found out.
    log.send(*(event(k, "late", 1, cluster="c1") for k in range(600)))
    assert log.bench.order_refuted
    assert log.bench.arrival.finding.statistic == "item position"


def test_ids_are_unique_where_a_record_declares_several_benchmarks_and_has_events():
    names = ["one", "two"]
    log = FoldLog({"declare": "one", "items": 60}, {"declare": "two", "items": 60})
    for name in names:
        log.send(packed(paired(55, 0, 5), ["x", "y"], benchmark=name))
    declare = [{"declare": name, "items": 61, "version": 2} for name in names]
    log.send({"declare": declare, "events": [event(k, "x", 0, benchmark="one", epoch=1) for k in range(3)]})
    log.send({"events": [{"declare": name, "items": 62, "version": 3} for name in names]})
    changes = [change for name in names for change in log[name].changes.values()]
    ids = [change_order(change.id) for change in changes]
    assert len(set(ids)) == len(ids) == 27
    latest = {}
    for change in sorted(changes, key=lambda change: change_order(change.id)):
        latest[change.benchmark, change.procedure] = change.kind
    assert latest == {
        **{("one", claim): "superseded" for claim in CLAIMS},
        **{("two", procedure): "decided" for procedure in PROCEDURES},
        ("two", "settled"): "settled",
    }


@st.composite
def declared_again(draw):
    """A stream in which the benchmark is declared again, once or more, in records of their own or with events."""
    spec, events = draw(streams())
    count = len({each["item_id"] for each in events if "item_id" in each})
    for number in range(2, 2 + draw(st.integers(1, 3))):
        new = {"declare": "bench", "version": number}
        new |= draw(
            st.sampled_from(
                [{"order": "trusted"}, {"items": count}, {"items": count + 2}, {"items": max(1, count - 1)}, {}]
            )
        )
        new |= draw(
            st.sampled_from([{}, {"repeats": 2}, {"repeats": "all"}, {"scores": "graded"}, {"missing": "ignorable"}])
        )
        new |= draw(st.sampled_from([{}, {"family": {"policy": "capacity", "size": 3}}, {"alpha": 0.4}]))
        events.insert(draw(st.integers(0, len(events))), new)
    return spec, events


@settings(max_examples=60, deadline=None)
@given(declared_again(), SIZES, CHUNKINGS, st.booleans(), st.integers(1, 40))
def test_chunking_and_restarts_change_no_version(stream, sizes, cuts, restart, at_once):
    spec, events = stream
    whole, *others = every_way(log_of(spec, events, sizes), cuts, restart, at_once)
    for partition in others:
        assert essence(partition) == essence(whole)
    ids = [change.id for change in whole.benchmarks["bench"].changes.values()]
    assert len(set(ids)) == len(ids)
    json.dumps(ids)


@settings(max_examples=40, deadline=None)
@given(streams(), st.integers(0, 300))
def test_an_item_count_that_is_declared_later_decides_what_it_decides_from_the_start(stream, at):
    spec, events = stream
    early = {name: value for name, value in spec.items() if name not in {"order", "items", "item_ids"}}
    spec = {**early, "items": len({each["item_id"] for each in events if "item_id" in each})}
    fresh, _ = fold(*log_of(spec, events, [1])[::2], [], restart=False)
    at %= len(events) + 1
    later = [*events[:at], {**spec, "version": 2}, *events[at:]]
    late, _ = fold(*log_of(early, later, [1])[::2], [], restart=False)
    fresh, late = (each.benchmarks["bench"] for each in (fresh, late))
    # Scores that are not 0 or 1, or repeats, end the decisions of both from some event on.
    assume(not fresh.mixed and not fresh.undeclared)
    assert late.spec.model_copy(update={"version": 1, "declared_late": ()}) == fresh.spec
    pairs = np.flatnonzero(~fresh.closed[: fresh.pairs])
    for procedure in PROCEDURES:
        assert late.latched[procedure][pairs].tolist() == fresh.latched[procedure][pairs].tolist()
    assert late.family_index[: late.pairs].tolist() == fresh.family_index[: fresh.pairs].tolist()


COMMITTED = {"declare": "bench", "order": {"policy": "committed", "seed": "s"}, "item_ids": [str(k) for k in range(60)]}
LISTED = {"declare": "bench", "order": {"policy": "completion"}, "item_ids": [str(k) for k in range(60)]}
BATTLE = {"benchmark": "bench", "item_id": "0", "model_a": "a", "model_b": "b", "winner": "a"}
ALIASED = [{"declare": "bench", "items": 60, "aliases": {"x": "a"}}, *scores(20)]


@pytest.mark.parametrize(
    ("before", "refused", "remedy"),
    [
        ([COMMITTED, *scores(20)], {"declare": "bench", "items": 60, "version": 2}, "omit this declaration"),
        ([COMMITTED, *scores(20)], {"declare": "bench", "items": 60}, "omit this declaration"),
        ([COMMITTED, *scores(20)], event(99, "a", 1), "correct the id, or omit the score"),
        ([LISTED, *scores(20)], event(99, "a", 1), "in the next version of the declaration"),
        (ALIASED, {"declare": "bench", "items": 60, "aliases": {"x": "b"}}, "omit it"),
        (ALIASED, {"declare": "bench", "items": 60, "aliases": {"c": "b"}}, "omit it"),
        ([event(0, "a", 1)], BATTLE, "a benchmark of their own"),
        ([BATTLE], event(1, "a", 1), "a benchmark of their own"),
        ([BATTLE, {"ended": "bench", "model": "a"}], BATTLE | {"item_id": "1"}, "omit its further battles"),
        ([], BATTLE | {"epoch": 2}, "omit it"),
    ],
)
def test_no_refusal_recommends_a_new_alpha(before, refused, remedy):
    """The same scores under another name, or in another log, would be tested once more at alpha."""
    log = FoldLog(*before)
    assert not log.letters
    (letter,) = log.send(refused).dead_letters
    assert remedy in letter.reason
    for again in ("another benchmark name", "another name", "new name", "data directory"):
        assert again not in letter.reason
