"""Order policies and re-uploads on real results.

RANKWATCH_DATA names a folder with mmlu_pro/events.jsonl.gz (29 models, 12,032 items; one model has 10,351 of them) and
zeroeval/events_all_uploads.jsonl.gz (60 models, every upload: repeats of what had come, and changed scores).
"""

import gzip
import json
import os
from collections import Counter, defaultdict
from pathlib import Path

import msgspec
import numpy as np
import pytest
from scipy.stats import binom

from monitor.engine.chunk_fold import Partition
from monitor.view.build import benchmark_report
from monitor.view.from_state import board_view
from monitor.view.items.conflict_rows import conflict_rows
from schemas.records.chunks import Chunk
from schemas.records.scores import SCORE_UNIT
from stats.numerics.pairs import all_pairs
from tests.memory_store import MemoryStore

pytestmark = pytest.mark.data


def events_of(name):
    folder = os.environ.get("RANKWATCH_DATA")
    if not folder:
        pytest.skip("RANKWATCH_DATA names no folder of evaluation data")
    path = Path(folder) / name
    if not path.is_file():
        pytest.skip(f"RANKWATCH_DATA has no {name}")
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def fold(events, *declarations, packed=20_000, restart=False):
    partition, store = Partition(), MemoryStore()
    parts = [{"events": events[k : k + packed]} for k in range(0, len(events), packed)]
    for record in [*declarations, *parts]:
        chunk = Chunk(0, partition.off, partition.off + 1, [partition.off], [msgspec.json.encode(record)])
        store.commit(partition.fold(chunk))
        if restart:
            partition = Partition.restore(store.state)
    return partition


def sides(benchmark):
    """Who was decided in the family, by pair of names."""
    names = [c.model for c in benchmark.contestants]
    i, j = all_pairs(len(names))
    latch = benchmark.latched["anytime_family"][: i.size].tolist()
    return {
        frozenset({names[a], names[b]}): names[a] if side > 0 else names[b]
        for a, b, side in zip(i.tolist(), j.tolist(), latch, strict=True)
        if side
    }


def decided_at(benchmark):
    """Shared items at which each pair was decided in the family."""
    decisions = {}
    for field, change in benchmark.changes.items():
        if field.split(":")[1:3] == ["anytime_family", "decided"]:
            decisions[frozenset({change.model_a, change.model_b})] = change.evidence.n
    return decisions


def exact_p(b, c, missing):
    """Two-sided p of the exact test, the missing items against the leader."""
    return np.minimum(1, 2 * binom.sf(np.maximum(b, c) - 1, b + c + missing, 0.5))


def holm(p, alpha=0.05):
    """Decide in ascending order of p while p <= alpha / the number of open pairs."""
    order = np.argsort(p)
    fails = np.append(p[order] > alpha / np.arange(p.size, 0, -1), True)
    decided = np.zeros(p.size, bool)
    decided[order[: np.argmax(fails)]] = True
    return decided


def test_completion_decides_what_holm_decides_at_worst_and_trusted_decides_it_earlier():
    events = events_of("mmlu_pro/events.jsonl.gz")
    name = events[0]["benchmark"]
    items = len({e["item_id"] for e in events})
    family = {"policy": "capacity", "size": 406}
    complete = fold(events, {"declare": name, "items": items, "family": family}).benchmarks[name]
    n, b, c, latch = (array[:406] for array in (complete.n, complete.b, complete.c, complete.latched["anytime_family"]))
    # What one model will never have counts against the leader: a pair with it may stay undecided.
    assert ((latch != 0) == holm(exact_p(b, c, items - n))).all()
    assert (latch != 0).sum() == 379
    at = decided_at(complete)
    lack = {c.model for c, scored in zip(complete.contestants, complete.scored, strict=False) if scored < items}
    whole = [items - n for pair, n in at.items() if not pair & lack]
    print(
        f"completion: {len(at)} of 406, {np.mean(np.array(whole) > 0):.3f} early, saved {np.percentile(whole, [25, 50, 75])}"
    )
    assert np.median(whole) > 0

    order = np.random.default_rng(0).permutation(sorted({e["item_id"] for e in events})).tolist()
    place = {item: k for k, item in enumerate(order)}
    shuffled = sorted(events, key=lambda e: place[e["item_id"]])
    trusted = fold(shuffled, {"declare": name, "order": "trusted", "family": family}).benchmarks[name]
    assert not trusted.order_refuted
    first = decided_at(trusted)
    both = fold(shuffled, {"declare": name, "items": items, "family": family}).benchmarks[name]
    at = decided_at(both)
    assert sides(both) == sides(complete)
    assert np.mean([first.get(pair, items) <= n for pair, n in at.items()]) > 0.9
    print(
        f"trusted: {len(first)} of 406, median at {np.median(list(first.values()))}; completion {np.median(list(at.values()))}"
    )


def test_re_uploads_overwrite_nothing_and_are_counted():
    events = events_of("zeroeval/events_all_uploads.jsonl.gz")
    first = {}
    for e in events:
        key = (e["benchmark"], e["item_id"], e["model"])
        first[key] = first[key] if first.get(key) is not None else e["score"]  # a score fills an earlier null
    partition = fold(events)
    for name, benchmark in partition.benchmarks.items():
        codes = benchmark.item_codes()
        for k, contestant in enumerate(benchmark.contestants):
            mine = benchmark.item_values[codes[:, k]] / SCORE_UNIT
            for row, code, score in zip(benchmark.rows, codes[:, k].tolist(), mine.tolist(), strict=True):
                assert first.get((name, row.item, contestant.model)) == (score if code >= 2 else None)
    total = {
        key: sum(b.counters[key] for b in partition.benchmarks.values())
        for key in ("events", "duplicates", "conflicts")
    }
    assert total == {"events": 136_747, "duplicates": 7_353, "conflicts": 504}


def test_uploads_as_epochs_supersede_what_was_decided():
    events = events_of("zeroeval/events_all_uploads.jsonl.gz")
    epoch, first, items, span = {}, {}, defaultdict(set), {}
    for at, e in enumerate(events):
        uploads = epoch.setdefault((e["benchmark"], e["model"]), {})
        e["epoch"] = uploads.setdefault(e["timestamp"], len(uploads))
        first.setdefault((e["benchmark"], e["model"], e["epoch"]), {}).setdefault(e["item_id"], e["score"])
        items[e["benchmark"]].add(e["item_id"])
        span.setdefault((e["benchmark"], e["model"], e["epoch"]), [at, at])[1] = at
    declarations = [{"declare": name, "items": len(ids)} for name, ids in sorted(items.items())]
    whole = fold(events, *declarations)
    cut = fold(events, *declarations, packed=30_011, restart=True)
    superseded = 0
    for name, benchmark in whole.benchmarks.items():
        full_report = benchmark_report(board_view(benchmark), pairs="all")
        assert benchmark_report(board_view(cut.benchmarks[name]), pairs="all") == full_report
        places = {item: k for k, item in enumerate(sorted(items[name]))}
        table = np.full((len(places), len(benchmark.contestants)), np.nan)
        for k, contestant in enumerate(benchmark.contestants):
            for item, score in first[name, contestant.model, contestant.epoch].items():
                table[places[item], k] = score
        i, j = all_pairs(table.shape[1])
        d = table[:, i] - table[:, j]
        n, b, c = ((~np.isnan(d)).sum(axis=0), (d > 0).sum(axis=0), (d < 0).sum(axis=0))
        for mine, theirs in ((n, benchmark.n), (b, benchmark.b), (c, benchmark.c)):
            assert (mine == theirs[: i.size]).all()
        # Under `completion` p never rises, so what was decided at any time is what the last p decides.
        p = exact_p(b, c, len(places) - n)
        model = np.array([x.model for x in benchmark.contestants])
        last = np.array([len(epoch[name, x.model]) - 1 == x.epoch for x in benchmark.contestants])
        decided = (p <= 0.05) & (model[i] != model[j])
        latched = benchmark.latched["anytime"][: i.size] != 0
        # A pair is judged until a newer upload of one of its models begins.
        began, ended = np.array([span[name, x.model, x.epoch] for x in benchmark.contestants]).T
        until = np.array([span.get((name, x.model, x.epoch + 1), [len(events)])[0] for x in benchmark.contestants])
        until = np.minimum(until[i], until[j])
        in_time = np.maximum(ended[i], ended[j]) < until
        assert (latched[in_time] == decided[in_time]).all()
        assert not latched[np.maximum(began[i], began[j]) > until].any()
        decided &= latched
        assert (decided == latched).all()
        rows = [pair for pair in full_report.pairs if pair.status == "superseded"]
        family = benchmark.latched["anytime_family"][: i.size] != 0
        assert len(rows) == int(((decided | family) & ~(last[i] & last[j])).sum())
        superseded += len(rows)
    print(f"{superseded} superseded")
    assert superseded


def test_conflicts_by_model_are_those_of_a_dictionary():
    events = events_of("zeroeval/events_all_uploads.jsonl.gz")
    first, listed = {}, defaultdict(list)
    for e in events:
        key = e["benchmark"], e["item_id"], e["model"]
        if first.setdefault(key, e["score"]) != e["score"]:
            listed[e["benchmark"]].append((e["item_id"], e["model"], first[key], e["score"]))
    for name, benchmark in fold(events).benchmarks.items():
        rows = [(c.item_id, c.model, c.old_score, c.new_score) for c in conflict_rows(board_view(benchmark))]
        assert rows == listed[name]
        assert benchmark_report(board_view(benchmark)).conflicts_by_model == Counter(
            model for _, model, _, _ in listed[name]
        )
    assert sum(map(len, listed.values())) == 504
