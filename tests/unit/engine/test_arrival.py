"""The live diagnostic of the arrival order against the one of `stats`, and what a finding does to a benchmark."""

import json

import numpy as np
import pytest

from monitor.engine.state.arrival import ALPHA, Arrival, _Look
from monitor.view.build import benchmark_report
from monitor.view.from_state import board_view
from stats import OrderState
from stats.order import inverse_share, succession_p
from tests.fold_log import FoldLog, event


def blocks(items, size=40, *, models=("a", "b"), wins=lambda _: (1, 0)):
    """Items in blocks of a cluster, each scored by all models in turn."""
    return [
        event(f"q{k}", model, score, cluster=f"cluster {k // size}")
        for k in range(items)
        for model, score in zip(models, wins(k), strict=True)
    ]


def shuffled(items, seed=0):
    order = np.random.default_rng(seed).permutation(items)
    return [event(f"q{k}", model, 1, cluster=f"cluster {k % 7}") for k in order for model in ("a", "b")]


def reference(events, listed=None):
    """The first event at which `stats.OrderState`, fed one by one, suspects the order; and its finding."""
    state, models, clusters = OrderState(ALPHA), {}, {}
    for k, e in enumerate(events):
        model = models.setdefault(e["model"], len(models))
        cluster = clusters.setdefault(e.get("cluster"), len(clusters))
        state.update([model], [cluster], None if listed is None else [listed.index(e["item_id"])])
        if state.finding.suspect:
            return k, state.finding
    return None


@pytest.mark.parametrize(
    ("events", "listed"),
    [
        (blocks(300), None),
        (blocks(300, 130), None),
        (shuffled(300), None),
        (shuffled(300)[:250] + blocks(300)[100:], None),
        ([event(f"q{k}", "a", 0) for k in range(100)], [f"q{k}" for k in range(100)]),
        ([event(f"q{k}", "a", 0) for k in range(100)], None),
        ([event(f"q{k}", "a", 0) for k in range(99, -1, -1)], [f"q{k}" for k in range(100)]),
        (shuffled(300), [f"q{k}" for k in range(300)]),
    ],
)
def test_it_finds_what_the_reference_finds_at_the_same_event(events, listed):
    # The same model at the same item comes twice in one of the streams: only its first score counts.
    seen, fresh = set(), []
    for e in events:
        if (e["item_id"], e["model"]) not in seen:
            seen.add((e["item_id"], e["model"]))
            fresh.append(e)
    expected = reference(fresh, listed)
    for chunk in (1, 7, 1_000):
        log = FoldLog({"declare": "bench", "order": "none"} | ({"item_ids": listed} if listed else {}))
        for start in range(0, len(fresh), chunk):
            before = log.bench.arrival.finding if start else None
            log.send(*fresh[start : start + chunk])
            if before is None and log.bench.arrival.finding is not None:
                assert start <= expected[0] < start + chunk
        finding = log.bench.arrival.finding
        assert (finding is None) == (expected is None)
        if finding is not None:
            assert finding._replace(p_value=0) == expected[1]._replace(p_value=0)
            assert finding.p_value == pytest.approx(expected[1].p_value, rel=1e-9)


IN_RUN_ORDER = [f"q{k}" for k in np.random.default_rng(3).permutation(300)]


@pytest.mark.parametrize(
    ("arrival", "suspect"),
    [
        (IN_RUN_ORDER, None),
        ([f"q{k}" for k in range(300)], "item position"),
        (sorted(IN_RUN_ORDER, key=lambda item: (int(item[1:]) % 7, IN_RUN_ORDER.index(item))), "cluster successions"),
    ],
    ids=["as listed", "by id", "in blocks"],
)
def test_a_list_in_random_run_order_is_a_good_order_and_ids_and_blocks_are_not(arrival, suspect):
    log = FoldLog({"declare": "bench", "order": "trusted", "item_ids": IN_RUN_ORDER})
    for item in arrival:
        log.send(*(event(item, model, int(model == "a"), cluster=f"cluster {int(item[1:]) % 7}") for model in "ab"))
    finding, (pair,) = log.bench.arrival.finding, benchmark_report(board_view(log.bench)).pairs
    assert (finding and finding.statistic) == suspect
    assert log.bench.order_refuted == (suspect is not None)
    assert pair.status == ("invalidated" if suspect else "decided")


def test_a_trusted_order_that_is_refuted_takes_back_what_was_decided():
    log = FoldLog({"declare": "bench", "order": "trusted"})
    events = blocks(200)
    log.send(*events[:60])
    decided = log.changes["anytime_family", "decided"]
    log.send(*events[60:])
    taken = log.changes["anytime_family", "invalidated"]
    # Item 63 brings the second look at a, 64 items: event 126, where the first block of 40 is over.
    place, finding = reference(events)
    assert (place, finding.items) == (126, 64)
    assert taken.id.split("-")[0] == str(10 * (place + 1))  # the declaration comes first
    assert (taken.before, taken.after) == ("a", None)
    assert taken.evidence == decided.evidence
    assert (
        "no longer counts: the arrival order is suspect: of the first 64 items of a, 62 follow an item"
        in taken.sentence
    )
    report = benchmark_report(board_view(log.bench))
    assert report.order.suspect
    assert report.pairs[0].status == "invalidated"
    assert report.pairs[0].decided.anytime_family is None
    assert "the arrival order is suspect" in report.pairs[0].reason


def test_it_holds_for_good():
    events = blocks(100)
    log = FoldLog({"declare": "bench", "order": "trusted"})
    log.send(*[e | {"score": 1} for e in events])  # no difference at all so far
    assert log.bench.order_refuted
    log.restart()
    assert log.bench.order_refuted
    log.send(*blocks(400)[200:])
    assert log.bench.changes == {}
    assert benchmark_report(board_view(log.bench)).pairs[0].status == "held"


def test_nothing_is_decided_at_the_very_event_of_the_finding():
    # The last event brings a to its second look, and the fourth win of a: enough for this alpha.
    events = [
        e
        for e in blocks(64, wins=lambda k: (1, int(k not in {10, 20, 30, 63})))
        if e != {**e, "item_id": "q5", "model": "b"}
    ]
    events[-2:] = events[:-3:-1]
    plain = [{key: value for key, value in e.items() if key != "cluster"} for e in events]
    decided, held = (FoldLog({"declare": "bench", "order": "trusted", "alpha": 0.4}) for _ in range(2))
    decided.send(*plain)
    assert decided.changes["anytime", "decided"].id.startswith(f"{decided.partition.off - 10}-")
    held.send(*events)
    assert held.bench.order_refuted
    assert held.bench.changes == {}
    assert reference(events)[0] == len(events) - 1


@pytest.mark.parametrize("policy", ["none", "completion", "committed"])
def test_elsewhere_it_only_warns(policy):
    ids = [f"q{k}" for k in range(100)]
    spec = {
        "none": {},
        "completion": {"items": 100},
        "committed": {"order": {"policy": "committed", "seed": "s"}, "item_ids": ids},
    }[policy]
    log = FoldLog({"declare": "bench", **spec})
    log.send(*blocks(100))
    order = benchmark_report(board_view(log.bench)).order
    assert order.suspect
    assert "the arrival order is suspect" in order.reason
    assert ("this order policy does not depend on it" in order.reason) == (policy != "none")
    assert (benchmark_report(board_view(log.bench)).pairs[0].status == "decided") == (policy != "none")


def test_files_that_are_complete_are_warned_of_too():
    log = FoldLog()
    log.send(*blocks(100))
    report = benchmark_report(board_view(log.bench), assert_complete=True)
    assert report.order.suspect
    assert report.order.reason.startswith(
        "asserted that the 100 items read are the whole benchmark, and that the items are "
        "a sample of independent items; the arrival order is"
    )
    assert report.pairs[0].status == "decided"


def test_a_random_order_that_all_models_share_is_not_suspect():
    # Where an item was first seen says nothing: every model here follows it to the letter.
    log = FoldLog({"declare": "bench", "order": "trusted"})
    log.send(*shuffled(500))
    assert log.bench.arrival.finding is None


def test_what_does_not_count_does_not_enter():
    base = shuffled(60)
    noise = [e | {"score": 0} for e in base[:30]] + [e | {"repeat": 1} for e in base[30:60]]
    quiet, loud = FoldLog(), FoldLog()
    quiet.send(*base)
    loud.send(*base[:40], *noise[:20], *base[40:], *noise)
    assert quiet.bench.arrival.state.tolist() == loud.bench.arrival.state.tolist()


def test_more_items_than_declared_take_decisions_back_at_that_event():
    log = FoldLog({"declare": "bench", "items": 40})
    log.send(*[e for k in range(40) for e in (event(k, "a", 1), event(k, "b", 0))])
    assert set(log.changes) == {("anytime", "decided"), ("anytime_family", "decided"), ("settled", "settled")}
    start = log.partition.off
    log.send(event("one more", "a", 1), event("and another", "a", 1))
    taken = log.changes["anytime_family", "invalidated"]
    assert taken.id.startswith(f"{start}-")
    assert "more items have arrived than the 40 declared" in taken.sentence
    assert json.loads(taken.as_json())["after"] is None


def uneven(seed, *, models=3, items=600, clusters=6, leaning=0.0):
    """Items of clusters of very different sizes in a random order that leans towards blocks, each scored by all models; some come twice."""
    rng = np.random.default_rng(seed)
    cluster = np.minimum(rng.geometric(0.5, items), clusters)
    place = rng.random(items) + leaning * cluster
    return [
        event(f"q{k}", f"m{m}", 1, cluster=f"cluster {cluster[k]}")
        for k in np.argsort(place).tolist()
        for m in range(models)
        if rng.random() < 0.8
    ]


@pytest.mark.parametrize("leaning", [0.0, 0.05, 0.1, 0.15, 0.2, 0.4])
@pytest.mark.parametrize("seed", [0, *(pytest.param(k, marks=pytest.mark.full) for k in (1, 2))])
def test_looks_that_are_left_out_would_have_found_nothing(seed, leaning):
    events = uneven(seed, leaning=leaning)
    expected = reference(events)
    for size in (7, 400, len(events)):
        log = FoldLog()
        for start in range(0, len(events), size):
            log.send(*events[start : start + size])
        finding = log.bench.arrival.finding
        assert (finding is None) == (expected is None)
        if expected is not None:
            assert finding == expected[1]._replace(model=finding.model)
            assert (
                log.bench.contestants[finding.model].model
                == list(dict.fromkeys(e["model"] for e in events))[expected[1].model]
            )


@pytest.mark.parametrize("labels", [1, 2, 14, 500])
@pytest.mark.parametrize("items", [32, 64, 1_024, 8_192])
def test_a_look_that_is_not_worth_testing_refutes_the_order_for_no_clusters(labels, items):
    arrival = Arrival()
    arrival._labels = {str(k): k for k in range(labels)}
    kept = {look.same for look in arrival._worth_testing([_Look(0, items, same, 0, 0, 0) for same in range(items)])}
    omitted = np.array([same for same in range(items) if same not in kept])
    rng = np.random.default_rng(items + labels)
    for concentration in (0.1, 1.0, 1e6):
        sizes = rng.multinomial(items, rng.dirichlet(np.full(labels, concentration)))
        p = succession_p(items - 1, omitted, int((sizes * (sizes - 1) // 2).sum())) * inverse_share(0, items)
        assert p.min() > ALPHA
    assert 0 in omitted
    assert labels == 1 or kept
