"""Verdicts: processor time of the fold and of encoding its changes for the store, with each order policy and without one.

Each version is run in turn on the same events, in processes of its own: `now`, and `now` where nothing is decided or settled.
``--before FOLDER`` adds the checkout of an earlier version.
Boards are generated. Their events are in random order; under policy `committed` models go along the committed order, item by item.
"""

import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any

from benchmarks.events import made_lines
from benchmarks.harness import SEED, Options, Table

BOARDS = ((29, 12_032), (300, 2_000))
PACKED = 1_000

_WITHOUT = """
from monitor.engine.state.benchmark import Benchmark
Benchmark.assumption_holds = property(lambda self: False)
"""

_RUN = """
import inspect, json, sys, time
from schemas.records.chunks import Chunk
from monitor.engine.chunk_fold import Partition
from monitor.store import script_call
from monitor.store.layout import Keys
seal = ()
if "seal" in inspect.signature(script_call.commit_call).parameters:
    from monitor.store.seal import PartitionSeal
    seal = (PartitionSeal(),)
records = open(sys.argv[1], "rb").read().splitlines()
partition, fold, encode = Partition(), 0.0, 0.0
for start in range(0, len(records), 4):
    part = records[start : start + 4]
    chunk = Chunk(0, start, start + len(part), range(start, start + len(part)), part)
    begin = time.process_time()
    delta = partition.fold(chunk)
    between = time.process_time()
    script_call.commit_call(Keys("verdicts", 0), delta, *seal, 1.0)
    fold, encode = fold + between - begin, encode + time.process_time() - between
print(json.dumps([fold, encode, sum(len(each.changes) for each in partition.benchmarks.values())]))
"""


def measure(options: Options) -> Iterator[Table]:
    """Fold the same boards with each version in turn."""
    here = Path(__file__).parent.parent
    versions = {"without": (here, _WITHOUT + _RUN), "now": (here, _RUN)}
    if options.before:
        versions = {"before": (options.before, _RUN)} | versions
    bases = [name for name in versions if name != "now"]
    table = Table(
        "Verdicts: processor seconds, medians, records of 1,000 events in chunks of 4,000",
        ["models", "items", "order", "version", "verdict changes", "fold", "encode for the store"]
        + [f"times `{name}`" for name in bases],
        notes=[
            "Ratios compare the sums of fold and encoding. `without`: this version where nothing is decided or settled."
        ],
    )
    with tempfile.TemporaryDirectory() as folder:
        for models, whole in BOARDS:
            items = options.size(whole, 60)
            for policy, records in boards(models, items):
                path = Path(folder) / "records"
                path.write_bytes(b"\n".join(records))
                runs: dict[str, list[list[float]]] = {name: [] for name in versions}
                for _ in range(options.runs):
                    for name, (tree, program) in versions.items():
                        runs[name].append(run(tree, program, path))
                sums = {
                    name: statistics.median(fold + encode for fold, encode, _ in each) for name, each in runs.items()
                }
                for name, each in runs.items():
                    fold, encode, changes = (statistics.median(column) for column in zip(*each, strict=True))
                    ratios = [round(sums[name] / sums[base], 2) for base in bases]
                    table.rows.append(
                        (models, items, policy, name, int(changes), round(fold, 2), round(encode, 2), *ratios)
                    )
    yield table


def boards(models: int, items: int) -> Iterator[tuple[str, list[bytes]]]:
    """Yield the records of a board under each order policy."""
    events = [json.loads(line) for line in made_lines(models, items)]
    for event in events:
        del event["cluster"], event["timestamp"]  # in random order they change nothing but the size
    random.Random(SEED).shuffle(events)
    names = sorted({event["item_id"] for event in events})
    declared: dict[str, dict[str, Any]] = {
        "none": {},
        "trusted": {"order": "trusted"},
        "completion": {"items": items},
        "committed": {"item_ids": names, "order": {"policy": "committed", "seed": "1"}},
    }
    for policy, spec in declared.items():
        if policy == "committed":
            events.sort(key=lambda event: sha256(f"1\0{event['item_id']}".encode()).digest())
        packed = [json.dumps({"events": events[k : k + PACKED]}).encode() for k in range(0, len(events), PACKED)]
        yield policy, [json.dumps({"declare": "made", **spec}).encode(), *packed]


def run(tree: Path, program: str, path: Path) -> list[float]:
    """Return processor seconds of the fold and of the encoding by a version, and its number of verdict changes."""
    environment = os.environ | {"PYTHONPATH": str(tree.resolve()), "OPENBLAS_NUM_THREADS": "1"}
    command = [sys.executable, "-c", program, str(path)]
    done = subprocess.run(command, env=environment, cwd=path.parent, capture_output=True, text=True, check=True)
    return list(json.loads(done.stdout))
