"""Start-up: `--help`, `report` of two lines, and `report` of a whole leaderboard, against the least that any program could do.

The bare script decodes the same bytes with msgspec and counts all pairs with numpy; it checks nothing, names nothing and computes no
statistic. Every run is a process of its own; runs alternate; medians of wall seconds and of the largest resident memory.
"""

import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from benchmarks.events import file_of
from benchmarks.harness import Options, Table, time_commands

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

SMALL = """{"benchmark":"b","item_id":"1","model":"a","score":1}
{"benchmark":"b","item_id":"1","model":"c","score":0}
"""


def measure(options: Options) -> Iterator[Table]:
    """Time the commands, each in turn."""
    rankwatch = str(Path(sys.executable).parent / "rankwatch")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        file = file_of(options, folder)
        small = folder / "small.jsonl"
        small.write_text(SMALL, encoding="utf-8")
        commands = {
            "rankwatch --help": [rankwatch, "--help"],
            "rankwatch report, two lines": [rankwatch, "report", str(small)],
            "python -c 'import numpy'": [sys.executable, "-c", "import numpy"],
            "rankwatch report, all pairs, JSON": [rankwatch, "report", str(file), "--format", "json", "--pairs", "all"],
            "rankwatch report, adjacent pairs, table": [rankwatch, "report", str(file)],
            "bare script: decode and count": [sys.executable, "-c", BARE, str(file)],
        }
        table = time_commands(
            f"{file.name}, {file.stat().st_size:,} bytes; {options.runs} runs of each", commands, options.runs
        )
    yield table
