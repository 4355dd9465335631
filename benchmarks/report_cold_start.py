"""How long `rankwatch report` takes from a cold start, beside the least that any program could do.

    .venv/bin/python benchmarks/report_cold_start.py [EVENTS.jsonl.gz] [--runs 5]

Without a file it makes one like MMLU-Pro: 29 models, 12,032 items, 14 clusters. The bare script decodes the same bytes with msgspec and
counts all pairs with numpy; it checks nothing, names nothing and computes no statistic. Runs alternate; medians of wall seconds and of the
largest resident memory are printed.
"""

import argparse
import gzip
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

BARE = """
import gzip, sys
import msgspec, numpy as np
class E(msgspec.Struct, gc=False):
    benchmark: str
    item_id: str
    model: str
    score: float
events = msgspec.json.Decoder(E).decode_lines(gzip.open(sys.argv[1]).read())
items, models = {}, {}
row = np.array([items.setdefault((e.benchmark, e.item_id), len(items)) for e in events])
column = np.array([models.setdefault(e.model, len(models)) for e in events])
right, there = np.zeros((2, len(items), len(models)), np.float32)
there[row, column] = 1
right[row, column] = [e.score for e in events]
n, wins = there.T @ there, right.T @ (there - right)
print(int(n.sum()), int(wins.sum()))
"""


def made(path: Path, models: int = 29, items: int = 12_032) -> Path:
    """Write a file like MMLU-Pro, in blocks of models."""
    rng = random.Random(1)
    hardness = [rng.random() for _ in range(items)]
    with gzip.open(path, "wt", compresslevel=6) as file:
        for model in range(models):
            for item, hard in enumerate(hardness):
                line = {
                    "benchmark": "made",
                    "item_id": str(item),
                    "model": f"model-{model:02d}",
                    "score": int(rng.random() < 0.2 + 0.6 * (hard < 0.2 + model / models * 0.6)),
                    "cluster": f"category {item * 14 // items}",
                    "timestamp": "2026-01-31T12:00:00Z",
                }
                file.write(json.dumps(line) + "\n")
    return path


def run(command: list[str]) -> tuple[float, float]:
    """Return wall seconds and megabytes of one run."""
    begin = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    assert status == 0, command
    return time.perf_counter() - begin, usage.ru_maxrss / 1024


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", nargs="?", type=Path)
    parser.add_argument("--runs", type=int, default=5)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        file = arguments.file or made(Path(folder) / "events.jsonl.gz")
        small = Path(folder) / "small.jsonl"
        small.write_text(
            '{"benchmark":"b","item_id":"1","model":"a","score":1}\n{"benchmark":"b","item_id":"1","model":"c","score":0}\n'
        )
        rankwatch = str(Path(sys.executable).parent / "rankwatch")
        commands = {
            "bare script (decode and count)": [sys.executable, "-c", BARE, str(file)],
            "rankwatch report, all pairs, JSON": [rankwatch, "report", str(file), "--format", "json", "--pairs", "all"],
            "rankwatch report of two lines": [rankwatch, "report", str(small)],
            "rankwatch --help": [rankwatch, "--help"],
        }
        taken: dict[str, list[tuple[float, float]]] = {name: [] for name in commands}
        for _ in range(arguments.runs):
            for name, command in commands.items():
                taken[name].append(run(command))
        print(f"{file.name}: {file.stat().st_size:,} bytes, {arguments.runs} runs, load {os.getloadavg()[0]:.1f}")
        for name, runs in taken.items():
            seconds, megabytes = (statistics.median(column) for column in zip(*runs, strict=True))
            print(f"{name:36} {seconds:6.2f} s {megabytes:7.0f} MB")


if __name__ == "__main__":
    main()
