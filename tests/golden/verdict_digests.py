"""Digests of everything that latches, over recorded streams: a change of code that must not change a verdict is compared by them.

Usage::

    python -m tests.golden.verdict_digests [--data FOLDER] [--write]

Each stream is folded record by record, with one restart from the stored state. Its digest covers every verdict change without its sentence,
facts, assumptions and alpha, the counters, n, b, c and family places of all pairs, and the commands that the store runs. `--write` records
the digests in verdict_digests.json; without it they are compared. FOLDER (or RANKWATCH_DATA) contains mmlu_pro/events.jsonl.gz.
"""

import argparse
import gzip
import hashlib
import json
import os
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import msgspec
import numpy as np

from monitor.engine.chunk_fold import Partition
from monitor.engine.state.changes import Delta
from monitor.store.layout import Keys
from monitor.store.script_call import commit_call
from monitor.store.seal import FIELD, PartitionSeal
from schemas.records.chunks import Chunk
from schemas.results.changes import VerdictChange, change_order
from schemas.results.verdict_changes import VerdictChanges
from tests.memory_store import MemoryStore
from tests.report_factory import without

RECORDED = Path(__file__).with_suffix(".json")
DIGITS = 9
"""Significant digits of a float: processors differ in the last ones."""


def _plain(value):
    if isinstance(value, float):
        return float(f"{value:.{DIGITS}g}")
    if isinstance(value, dict):
        return {key: _plain(x) for key, x in value.items()}
    return value


def _comparable_change(change: VerdictChange) -> VerdictChange:
    return msgspec.convert(_plain(change.as_dict()) | {"sentence": "", "facts": [], "assumptions": []}, VerdictChange)


def _comparable(delta: Delta) -> Delta:
    """Return a delta whose peaks have few digits.

    It has no verdict changes, which are digested apart from how they are stored, and no entries of the quarantine, which no verdict rests
    on until a benchmark is set aside.
    """
    benchmarks = [
        replace(
            benchmark,
            changes=VerdictChanges(),
            peaks=benchmark.peaks and (benchmark.peaks[0], np.array([_plain(x) for x in benchmark.peaks[1].tolist()])),
        )
        for benchmark in delta.benchmarks
    ]
    return replace(delta, benchmarks=benchmarks, suspects={})


def digest(records: list[bytes], chunk: int = 500) -> dict[str, object]:
    """Fold a stream and return how many verdict changes it has, and the digest."""
    hashed = hashlib.sha256()
    partition, store, seal = Partition(), MemoryStore(), PartitionSeal()
    for number, start in enumerate(range(0, len(records), chunk)):
        if number == len(records) // chunk // 2:
            partition = Partition.restore(store.state)
        part = records[start : start + chunk]
        offsets = range(start, start + len(part))
        delta = partition.fold(Chunk(0, start, start + len(part), offsets, part))
        store.commit(delta)
        commands = commit_call(Keys("digest", 0), _comparable(delta), seal).commands
        for before, argument in pairwise(["", *commands]):
            # The digests of the store are of every digit; its version is that of the layout.
            if before not in {FIELD, "state_version"}:
                hashed.update(argument if isinstance(argument, bytes) else str(argument).encode())
    changes = 0
    for name, benchmark in sorted(partition.benchmarks.items()):
        state = [name, benchmark.counters, benchmark.suspicion is not None]
        state += [getattr(benchmark, x)[: benchmark.pairs].tolist() for x in ("n", "b", "c", "family_index")]
        state += [latch[: benchmark.pairs].tolist() for latch in benchmark.latched.values()]
        hashed.update(json.dumps(state).encode())
        for field, change in sorted(benchmark.changes.items(), key=lambda each: change_order(each[1].id)):
            changes += 1
            hashed.update(json.dumps([field, without(_comparable_change(change), "alpha", "facts")]).encode())
    return {"changes": changes, "digest": hashed.hexdigest()[:32]}


# --- streams ------------------------------------------------------------------------------------------------------------------------------

POLICIES = {
    "completion": {"order": "completion"},
    "trusted": {"order": "trusted"},
    "trusted grid98 capacity": {"order": "trusted", "mixture": "grid98", "family": {"policy": "capacity", "size": 20}},
    "committed": {"order": {"policy": "committed", "seed": "digest"}},
    "committed look": {"order": {"policy": "committed", "seed": "digest"}, "look": 0.2},
    "graded trusted": {"order": "trusted", "scores": "graded"},
    "graded completion": {"order": "completion", "scores": "graded"},
    "repeats trusted": {"order": "trusted", "repeats": 3},
}


def _records(events: list[dict], policy: dict) -> list[bytes]:
    """Put the declaration before events, some of them together in a record."""
    items = list(dict.fromkeys(event["item_id"] for event in events))
    declaration = {"declare": events[0]["benchmark"], **policy}
    declaration |= {"items": len(items)} if policy["order"] == "completion" else {}
    declaration |= {"item_ids": sorted(items)} if isinstance(policy["order"], dict) else {}
    single = [msgspec.json.encode(event) for event in events[::2]]
    packed = [msgspec.json.encode({"events": events[start : start + 40 : 2]}) for start in range(1, len(events), 40)]
    return [msgspec.json.encode(declaration), *single, *packed]


def made(seed: int, policy: dict, *, models: int = 12, items: int = 300, blocks: bool = False) -> list[bytes]:
    """Make a board: some models equal, some not; late models, skips, duplicates, conflicts, re-scores and unreadable records."""
    rng = np.random.default_rng(seed)
    repeats, graded = policy.get("repeats", 1), policy.get("scores") == "graded"
    skill = np.linspace(-0.25, 0.25, models).repeat(2)[::2]
    easy = rng.uniform(0.3, 0.7, items)
    events = []
    for model in range(models):
        for item in range(items if model % 5 else items * 3 // 4):
            for repeat in range(repeats):
                chance = easy[item] + skill[model]
                score = rng.binomial(4, chance) / 4 if graded else int(rng.random() < chance)
                event = {"benchmark": "made", "item_id": f"q{item}", "model": f"m{model}", "score": score}
                event |= {"cluster": f"c{6 * item // items}"} if blocks else {}
                event |= {"repeat": repeat} if repeats > 1 else {}
                events.append(event)
    order = rng.permutation(len(events))
    if blocks:  # at random first, so that there is something to invalidate
        in_block = np.array([int(events[k]["item_id"][1:]) >= items // 2 for k in order.tolist()])
        order = np.concatenate([order[~in_block], np.sort(order[in_block])])
    late = [k for k in order.tolist() if events[k]["model"] in {"m1", "m7"}]
    events = [events[k] for k in order.tolist() if events[k]["model"] not in {"m1", "m7"}] + [events[k] for k in late]
    for k in rng.choice(len(events), len(events) // 50, replace=False).tolist():
        events[k] |= {"score": None}
    again = [dict(events[k]) for k in rng.choice(len(events), len(events) // 20).tolist()]
    for event in again[::3]:
        event["score"] = 1 - (event["score"] or 0)
    rescored = [event | {"epoch": 1, "score": 1} for event in events if event["model"] == "m3"]
    events += again + rescored
    return [*_records(events, policy), b'{"benchmark": "made", "item_id": "x", "model": "m0", "score": 7}', b"no JSON"]


def real(folder: Path, policy: dict, seed: int | None) -> list[bytes]:
    """Read MMLU-Pro in the order of its file, or shuffled."""
    with gzip.open(folder / "mmlu_pro/events.jsonl.gz") as lines:
        events = [json.loads(line) for line in lines]
    if seed is not None:
        events = [events[k] for k in np.random.default_rng(seed).permutation(len(events)).tolist()]
    return _records(events, policy)


def streams(folder: Path | None) -> Iterator[tuple[str, Callable[[], list[bytes]]]]:
    """Yield each stream by name, as a function that makes its records."""
    for name, policy in POLICIES.items():
        for seed in (1, 2):
            yield f"made {seed}, {name}", lambda seed=seed, policy=policy: made(seed, policy)
        yield f"made in blocks, {name}", lambda policy=policy: made(3, policy, blocks=True)
    yield "made 40 models, trusted", lambda: made(4, POLICIES["trusted"], models=40)
    for name in ("completion", "trusted", "trusted grid98 capacity", "committed", "committed look") if folder else ():
        yield f"MMLU-Pro in file order, {name}", lambda name=name: real(folder, POLICIES[name], None)
        yield f"MMLU-Pro shuffled, {name}", lambda name=name: real(folder, POLICIES[name], 1)


def data_folder() -> Path | None:
    """Return the folder of real data, where it is."""
    folder = Path(os.environ.get("RANKWATCH_DATA", ""))
    return folder if (folder / "mmlu_pro/events.jsonl.gz").is_file() else None


def main() -> int:
    """Compare, or record."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", type=Path, default=data_folder())
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    recorded = json.loads(RECORDED.read_text()) if RECORDED.exists() else {}
    differ = 0
    for name, make in streams(options.data):
        result = digest(make())
        same = recorded.get(name) == result
        differ += not same
        print(name, result, "" if same else f"recorded: {recorded.get(name)}")
        recorded[name] = result
    if options.write:
        RECORDED.write_text(json.dumps(recorded, indent=1) + "\n")
        return 0
    print(f"{differ} differ")
    return differ > 0


if __name__ == "__main__":
    sys.exit(main())
