"""Battles: the report of 1,000,000 votes on 200 models, against the least that any program could do.

In one file each vote has a prompt of its own; in the other there are 200,000 prompts. The bare scripts decode the same bytes
and count the results of each pair, with `msgspec` or with `json`: they check nothing, look for no vote that came twice, rate nothing and
give no verdict. Every run is a process of its own; runs alternate; medians.
"""

import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from benchmarks.harness import Options, Table, time_commands

MODELS = 200
VOTES = 1_000_000

MSGSPEC = """
import sys
from collections import Counter
import msgspec
class Battle(msgspec.Struct, gc=False):
    item_id: str
    model_a: str
    model_b: str
    winner: str
votes = msgspec.json.Decoder(Battle).decode_lines(open(sys.argv[1], "rb").read())
print(len(Counter((vote.model_a, vote.model_b, vote.winner) for vote in votes)))
"""

JSON = """
import json, sys
from collections import Counter
votes = map(json.loads, open(sys.argv[1], "rb"))
print(len(Counter((vote["model_a"], vote["model_b"], vote["winner"]) for vote in votes)))
"""


def write_votes(path: Path, votes: int, prompts: int | None = None) -> None:
    """Write votes of 50 judges on random pairs; each on a prompt of its own, or on one of so many."""
    rng = np.random.default_rng(1)
    strength = np.sort(rng.normal(0, 1, MODELS))
    one = rng.integers(0, MODELS, votes)
    other = (one + rng.integers(1, MODELS, votes)) % MODELS
    first_wins = rng.random(votes) < 1 / (1 + np.exp(strength[other] - strength[one]))
    winner = np.where(rng.random(votes) < 0.15, 2, ~first_wins)
    item = np.arange(votes) if prompts is None else rng.integers(0, prompts, votes)
    judge, position = rng.integers(0, 50, votes), rng.integers(0, 2, votes)
    columns = (column.tolist() for column in (item, one, other, winner, judge, position))
    with path.open("w", encoding="utf-8") as file:
        for prompt, a, b, won, by, shown in zip(*columns, strict=True):
            file.write(
                f'{{"benchmark":"arena","item_id":"q{prompt}","model_a":"model-{a:03d}","model_b":"model-{b:03d}",'
                f'"winner":"{("a", "b", "tie")[won]}","cluster":"judge-{by}","position":"{"ab"[shown]}"}}\n'
            )


def measure(options: Options) -> Iterator[Table]:
    """Time the commands on each file, each in turn."""
    rankwatch = str(Path(sys.executable).parent / "rankwatch")
    votes = options.size(VOTES, 20_000)
    with tempfile.TemporaryDirectory() as name:
        for title, prompts, repeats in (
            ("a prompt for each vote", None, "1"),
            (f"{votes // 5:,} prompts", votes // 5, "all"),
        ):
            file = Path(name) / "votes.jsonl"
            write_votes(file, votes, prompts)
            report = [rankwatch, "report", str(file)]
            verdicts, pairs = ["--order", "trusted", "--repeats", repeats], ["--format", "json", "--pairs", "all"]
            commands = {
                "rankwatch report, verdicts, table": [*report, *verdicts],
                "rankwatch report, all pairs, JSON": [*report, *pairs],
                "bare script: decode with msgspec and count": [sys.executable, "-c", MSGSPEC, str(file)],
                "bare script: decode with json and count": [sys.executable, "-c", JSON, str(file)],
            }
            head = f"{votes:,} votes on {MODELS} models, {title}, {file.stat().st_size:,} bytes"
            yield time_commands(head, commands, min(options.runs, 3))
