"""Whole result files uploaded again, as leaderboards get them: repeats, changed scores and epochs, against plain dictionaries.

A model of a leaderboard is uploaded again because the run was incomplete, because nobody knew that it was there already, because the
answers were parsed anew (which changes scores), or under the name of a new epoch. Uploads are files: all of a model's scores at once.
"""

import json
import random
from collections import defaultdict
from itertools import pairwise

import pytest

from monitor.view.build import benchmark_report
from monitor.view.from_state import board_view
from tests.commands import Counted, changes, in_order, pairs_of, watch_once, write
from tests.fold_log import FoldLog
from tests.oracle import Oracle

ITEMS = [f"item {k}" for k in range(150)]
SKILLS = {"delta": 0.95, "alpha": 0.8, "echo": 0.78, "charlie": 0.5, "bravo": 0.2}
SEED = "seed"
ALPHA = 0.2
POLICIES = {
    "completion": {"order": "completion", "items": len(ITEMS)},
    "trusted": {"order": "trusted"},
    "committed": {"order": {"policy": "committed", "seed": SEED}, "item_ids": ITEMS, "items": len(ITEMS)},
}


def declaration(policy):
    return {"declare": "bench", "alpha": ALPHA, **POLICIES[policy]}


def uploads(seed):
    """Files in the order in which they came; the items of a file stand in an order that all of them share."""
    rng = random.Random(seed)
    order = rng.sample(ITEMS, len(ITEMS))
    answers = {(m, item): int(rng.random() < skill) for m, skill in SKILLS.items() for item in order}

    def file(model, *, epoch=0, part=1.0, changed=0.0, skipped=0.0):
        records = []
        for item in order[: int(part * len(order))]:
            score = answers[model, item]
            score = None if rng.random() < skipped else 1 - score if rng.random() < changed else score
            records.append({"benchmark": "bench", "item_id": item, "model": model, "score": score})
            if epoch:
                records[-1]["epoch"] = epoch
        return records

    return [
        file("delta"),
        file("alpha", part=0.5, skipped=0.02),
        file("bravo"),
        file("alpha"),  # the whole run, after a part of it
        file("charlie"),
        file("bravo", changed=0.23),  # parsed anew: scores change, the first stand
        file("delta", part=0.6),  # nobody knew
        file("charlie", epoch=1, changed=0.4),
        file("echo"),
        file("charlie", part=0.3, changed=0.5),  # of the old epoch, after the new one
        file("bravo", epoch=2, part=0.7),  # a new epoch that stays incomplete, and skips a number
        file("charlie", epoch=1, changed=0.1),
        file("bravo", changed=0.23),
    ]


def folded(policy, events, cuts, *, restart=False, **spec):
    log = FoldLog(declaration(policy) | spec)
    bounds = [0, *sorted(cuts), len(events)]
    for low, high in pairwise(bounds):
        if low < high:
            log.send(*events[low:high])
            if restart:
                log.restart()
    return log


def found_in(log):
    """Everything that surfaces may tell of the benchmark."""
    report = benchmark_report(board_view(log.bench), pairs="all").as_dict()
    return report, {field: change.as_dict() for field, change in log.bench.changes.items()}


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("seed", range(2))
def test_uploads_again_overwrite_nothing_and_are_the_same_however_they_are_cut(policy, seed):
    files = uploads(seed)
    events = [event for file in files for event in file]
    rng = random.Random(seed)
    whole = found_in(folded(policy, events, []))
    ends = [sum(map(len, files[:k])) for k in range(1, len(files))]
    for cuts, restart in (
        (ends, True),
        (rng.sample(range(len(events)), 40), False),
        (rng.sample(range(len(events)), 12), True),
        (range(0, len(events), 7), False),
    ):
        cut = folded(policy, events, cuts, restart=restart)
        # The identity of a change is the place of its record, and the records are the same.
        assert found_in(cut) == whole

    counted = Counted(events, fills=policy != "committed")
    report, _ = whole
    assert (report["events"], report["duplicates"], report["conflicts"]) == (
        len(events),
        counted.duplicates,
        counted.conflicts,
    )
    assert counted.conflicts > 50 < counted.duplicates
    current = [pair for pair in report["pairs"] if pair["status"] != "superseded"]
    assert pairs_of({"pairs": current}) == counted.pairs()
    for model in report["models"]:
        own = counted.scores[model["model"]]
        assert (model["items"], model["mean"]) == (len(own), pytest.approx(sum(own.values()) / len(own)))


@pytest.mark.parametrize("policy", POLICIES)
def test_an_epoch_supersedes_the_verdicts_on_the_older_one_and_keeps_them(policy):
    events = [event for file in uploads(3) for event in file]
    log = folded(policy, events, [1_000])
    oracle = Oracle(
        alpha=ALPHA,
        policy=policy,
        items=len(ITEMS),
        item_ids=ITEMS if policy == "committed" else None,
        seed=SEED if policy == "committed" else None,
    )
    for place, event in enumerate(events):
        oracle.event(event, place)
    latest = defaultdict(int)
    for model, epoch in oracle.models:
        latest[model] = max(latest[model], epoch)
    assert latest == {"delta": 0, "alpha": 0, "echo": 0, "charlie": 1, "bravo": 2}

    old, decided = {}, {}
    for (pair, procedure, kind), (_, side, n, *_) in oracle.verdicts.items():
        if kind == "decided":
            better = pair[0 if side > 0 else 1][0]
            superseded = any(epoch < latest[model] for model, epoch in pair)
            (old if superseded else decided).setdefault(pair, {})[procedure] = better, n
    assert old and decided, "the stream holds both"  # noqa: PT018

    def key(pair):
        return frozenset({pair["model_a"], pair["model_b"]})

    rows = benchmark_report(board_view(log.bench), pairs="all").as_dict()["pairs"]
    above = [row for row in rows if row["status"] != "superseded"]
    below = [row for row in rows if row["status"] == "superseded"]
    assert len(above) == 10
    assert sorted(sorted(key(row)) for row in below) == sorted(sorted(m for m, _ in pair) for pair in old)
    for pair, verdicts in old.items():
        (a, at_a), (b, at_b) = pair
        epochs = (f"epoch {at_a} of {a}", f"epoch {at_b} of {b}")
        (row,) = [row for row in below if key(row) == {a, b} and all(words in row["reason"] for words in epochs)]
        for procedure in ("anytime", "anytime_family"):
            side = row["decided"][procedure]
            better = side and row[f"model_{side}"]
            assert better == verdicts.get(procedure, (None,))[0]
        if "anytime_family" in verdicts:
            assert row["decided_at_n"] == verdicts["anytime_family"][1]
    for row in above:
        by_pair = {frozenset(m for m, _ in pair): changes for pair, changes in decided.items()}
        verdicts = by_pair.get(key(row), {})
        assert (row["status"] == "decided") == ("anytime_family" in verdicts)
        assert (row["decided"]["anytime"] is not None) == ("anytime" in verdicts)


@pytest.mark.full  # starts a `watch` for every upload
def test_uploads_again_through_a_watch_that_ends_between_them(tmp_path):
    files = uploads(5)
    folder, data = tmp_path / "results", tmp_path / "data"
    folder.mkdir()
    (folder / "rankwatch.toml").write_text(f"[benchmark.bench]\nalpha = {ALPHA}\nitems = {len(ITEMS)}\n")
    had = 0
    for upto in (6, 10, len(files)):
        for k, file in enumerate(files[had:upto], had):
            write(folder / f"{k:02}.jsonl", file)
        had = upto
        (benchmark,) = json.loads(watch_once(data, folder))["benchmarks"]
        events = [event for file in files[:had] for event in file]
        counted = Counted(events)
        assert [benchmark[name] for name in ("events", "duplicates", "conflicts")] == [
            len(events),
            counted.duplicates,
            counted.conflicts,
        ]
        assert pairs_of({"pairs": [p for p in benchmark["pairs"] if p["status"] != "superseded"]}) == counted.pairs()
    whole = folded("completion", events, [], known=True)  # `watch` declares it
    feed = in_order(changes(data))
    assert len(feed) == len(whole.bench.changes)
    evidence = {
        (c["model_a"], c["epoch_a"], c["model_b"], c["epoch_b"], c["procedure"], c["kind"]): c["evidence"] for c in feed
    }
    for change in whole.bench.changes.values():
        key = (change.model_a, change.epoch_a, change.model_b, change.epoch_b, change.procedure, change.kind)
        assert evidence[key] == change.evidence.as_dict()
