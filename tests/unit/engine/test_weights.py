"""Weighted benchmarks: every cluster counts by its weight, in bets, decisions and what is settled."""

import numpy as np
import pytest

from schemas.records.scores import SCORE_UNIT, ZERO
from stats.evidence.graded import graded_bound, graded_log_e, log_increments
from tests.fold_log import FoldLog, event

SIZES = {"big": 60, "mid": 25, "small": 15}
MODELS = ("ash", "birch", "cedar")
LEVELS = {"ash": (0.5, 0.9, 0.9), "birch": (0.7, 0.4, 0.3), "cedar": (0.6, 0.5, 0.5)}


def declaration(policy="completion", **fields):
    return {"declare": "bench", "weights": "equal-clusters", "clusters": SIZES, "order": policy, **fields}


def stream(seed, *, levels=LEVELS, skips=0.0):
    """Return the events of three models on all items, in random order."""
    rng = np.random.default_rng(seed)
    events = []
    for k, (cluster, size) in enumerate(SIZES.items()):
        for item in range(size):
            for model in MODELS:
                score = None if rng.random() < skips else int(rng.random() < levels[model][k])
                events.append(event(f"{cluster}-{item}", model, score, cluster=cluster))
    return [events[k] for k in rng.permutation(len(events))]


def by_hand(events, first, second, weights=None, policy="completion"):
    """Return at each event of a pair's shared items (n, evidence, side, certain), computed without the engine."""
    weights = weights or dict.fromkeys(SIZES, 1.0)
    total = sum(weights.values())
    v = {name: weights[name] / total * sum(SIZES.values()) / size for name, size in SIZES.items()}
    u = {name: round(SCORE_UNIT * value / max(v.values())) for name, value in v.items()}
    scores, left = {}, dict(SIZES)
    worst = {name: log_increments(-unit / SCORE_UNIT)[0] for name, unit in u.items()}
    capital, lead, n, steps = np.zeros((2, 52), np.int64), 0, 0, []
    for each in events:
        if each["model"] not in (first, second) or each["score"] is None:
            steps.append(None)
            continue
        item = scores.setdefault(each["item_id"], {})
        item[each["model"]] = each["score"]
        if len(item) < 2:
            steps.append(None)
            continue
        d = (item[first] - item[second]) * u[each["cluster"]]
        capital = capital + log_increments(d / SCORE_UNIT)
        lead, n = lead + d, n + 1
        left[each["cluster"]] -= 1
        lost = sum(count * worst[name] for name, count in left.items())
        room = sum(count * u[name] for name, count in left.items())
        evidence = max(graded_bound(capital + lost)) if policy == "completion" else graded_log_e(capital)
        steps.append((n, float(evidence), np.sign(lead), abs(lead) > room + n or (room == 0 and abs(lead) <= n)))
    return steps


def sent(events, sizes, *declared):
    log, start = FoldLog(*declared), 0
    for size in sizes:
        log.send(*events[start : start + size])
        start += size
    log.send(*events[start:])
    return log


@pytest.mark.parametrize("policy", ["completion", "trusted"])
def test_latches_close_where_an_event_by_event_oracle_says_in_any_chunking(policy):
    events = stream(1)
    alone = [event_ for event_ in events if event_["model"] != "cedar"]
    declared = declaration(policy, alpha=0.2)
    logs = [sent(alone, sizes, declared) for sizes in ([], [1] * len(alone), [7] * 20)]
    assert len({str(sorted((k, str(v)) for k, v in log.bench.changes.items())) for log in logs}) == 1
    changes = logs[0].changes
    steps = [step for step in by_hand(alone, "ash", "birch", policy=policy) if step]
    settled = next(step for step in steps if step[3])
    assert changes["settled", "settled"].evidence.n == settled[0]
    first = next((step for step in steps if step[1] >= -np.log(0.2)), None)
    assert ("anytime", "decided") in changes or first is None
    assert first is not None
    decided = changes["anytime", "decided"]
    assert (decided.evidence.n, decided.after) == (first[0], "a" if first[2] > 0 else "b")
    assert decided.evidence.log_e == pytest.approx(first[1], abs=1e-9)
    assert "its weighted mean score is higher" in decided.sentence


def test_the_gap_of_a_complete_benchmark_is_the_difference_of_weighted_means():
    events = stream(3)
    log = sent(events, [50] * 5, declaration(weights={"big": 3, "mid": 2, "small": 1}))
    bench, pairs = log.bench, log.bench.graded_pairs
    means = {
        model: sum(
            weight * np.mean([e["score"] for e in events if e["model"] == model and e["cluster"] == cluster])
            for cluster, weight in {"big": 3 / 6, "mid": 2 / 6, "small": 1 / 6}.items()
        )
        for model in MODELS
    }
    index = {contestant.model: k for k, contestant in enumerate(bench.contestants)}
    i, j = sorted((index["ash"], index["birch"]))
    names = [bench.contestants[k].model for k in (i, j)]
    pair = j * (j - 1) // 2 + i
    gap = bench.lead_scale * pairs.lead[pair] / SCORE_UNIT / 100
    assert gap == pytest.approx(means[names[0]] - means[names[1]], abs=1e-11)
    assert (pairs.shared[: bench.pairs] == [60, 25, 15]).all()


def test_a_restart_computes_the_same_state():
    events = stream(4, skips=0.1)
    log = sent(events[:200], [90], declaration())
    before = log.bench.graded_pairs
    log.restart()
    after = log.bench.graded_pairs
    pairs = log.bench.pairs
    assert (before.capital[:pairs] == after.capital[:pairs]).all()
    assert (before.shared[:pairs] == after.shared[:pairs]).all()
    assert (log.bench.item_codes() >= ZERO).sum() == sum(e["score"] is not None for e in events[:200])
    log.send(*events[200:])
    whole = sent(events, [], declaration())
    assert {k: str(v.evidence) for k, v in log.bench.changes.items()} == {
        k: str(v.evidence) for k, v in whole.bench.changes.items()
    }


def test_items_without_a_weight_are_refused_with_what_to_do():
    log = FoldLog(declaration(weights={"big": 1, "mid": 1, "small": 2}))
    log.send(event("x", "ash", 1), event("y", "ash", 1, cluster="huge"), event("z", "ash", 1, cluster="mid"))
    reasons = [letter.fault.reason if hasattr(letter, "fault") else str(letter) for letter in log.letters]
    assert log.bench.items == 1
    assert "the item has no cluster" in reasons[0]
    assert "cluster huge has no weight" in reasons[1]


def test_an_item_too_many_in_a_cluster_ends_what_rests_on_the_sizes():
    events = stream(5, levels={"ash": (1, 1, 1), "birch": (0, 0, 0), "cedar": (0, 0, 0)})
    log = sent(events, [], declaration())
    assert log.bench.can_decide
    log.send(event("small-extra", "ash", 1, cluster="small"))
    assert not log.bench.can_decide
    kinds = {field.split(":")[2] for field in log.bench.changes}
    assert "invalidated" in kinds
    assert "cluster small" in log.bench.invalidation_reason


def test_exactly_equal_weighted_scores_are_a_tie():
    sizes = {"p": 3, "q": 7}
    declared = {"declare": "bench", "weights": {"p": 1, "q": 2}, "clusters": sizes}
    # One item of p counts 1/9, one of q 2/21: nothing but whole clusters can be equal; here both gaps are 0.
    scores = {"p": ((1, 0, 1), (0, 1, 1)), "q": ((1, 1, 0, 0, 1, 0, 0), (0, 0, 1, 1, 0, 1, 0))}
    events = [
        event(f"{cluster}{k}", model, row[k], cluster=cluster)
        for cluster, rows in scores.items()
        for model, row in zip(("ash", "birch"), rows, strict=True)
        for k in range(len(row))
    ]
    log = sent(events, [], declared)
    assert log.changes["settled", "settled"].after == "tie"


def test_a_new_version_may_bring_weights():
    events = stream(6)
    log = sent(events, [40], {"declare": "bench", "items": 100})
    log.send(declaration(version=2))
    whole = sent(events, [], declaration())
    pairs = whole.bench.pairs
    assert (log.bench.graded_pairs.capital[:pairs] == whole.bench.graded_pairs.capital[:pairs]).all()
    assert {k[:1] for k in log.bench.changes} <= {"0", "1", "2"}
