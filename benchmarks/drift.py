"""Detectors of a worse model on the same streams: false alarms in a year in which nothing changes, and runs until a drop is called.

A stream has 30 runs of history. Item i is right with probability p_i, Beta(0.7 k, 0.3 k): k = 2 is temperature 1, where 28 % of the items
differ between two runs, k = 0.25 near greedy, 8 %. A drop lowers all logits by the same amount. `--runs N` takes 10 N streams of a cell.
river, in the environment of `--peers`, has its defaults; without it, its rows are missing. An alarm that lasts counts once.

Limits are 1.96 binomial standard errors below the mean of the history, over the last run, or over any of the last 1, 7 and 30 runs: the
rule that Marginlab publishes. CUSUM takes the mean and the standard deviation of the history for the truth: slack 1/2, limit 5.66, for
one false alarm in 1,825 runs.
"""

import json
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Sequence
from math import log, sqrt
from pathlib import Path
from statistics import NormalDist

import numpy as np
import numpy.typing as npt

from benchmarks.harness import SEED, Options, Table
from monitor.paper.demo.year import HISTORY, WINDOWS, below_limits, first_days
from stats.drift.detector import begin, log_sum, step
from stats.drift.ranks import ItemSums, p_runs

Rows = npt.NDArray[np.float64]
Streams = npt.NDArray[np.uint8]

CELLS = ((50, 2.0), (50, 0.25), (200, 2.0), (200, 0.25))
DROPS = (0.08, 0.04)
YEAR, HORIZON = 365, 90
BOUND = 1825
SLACK, CUSUM_LIMIT = 0.5, 5.66
HERE = Path(__file__).parent


def measure(options: Options) -> Iterator[Table]:
    """Compare the detectors at each number of items and noise."""
    count = options.size(10 * options.runs, 2)
    for items, k in CELLS[: options.size(len(CELLS), 1)]:
        rng = np.random.default_rng([SEED, items, int(100 * k)])
        quiet = made(rng, count, options.size(YEAR, 60), items, k, 0)
        changed = {drop: made(rng, count, options.size(HORIZON, 30), items, k, drop) for drop in DROPS}
        false = called(quiet, options)
        late = {drop: called(streams, options) for drop, streams in changed.items()}
        table = Table(
            f"{items} items, {28 if k == 2 else 8} % of them differ between two runs; {count} streams of a cell",
            [
                "detector",
                "false alarms a year",
                "se",
                *(f"runs until {100 * drop:g} points are called" for drop in DROPS),
            ],
        )
        for name in false:
            alarms = np.array([sum(run >= HISTORY for run in each) for each in false[name]], float)
            delays = [delay(late[drop][name]) for drop in DROPS]
            table.rows.append(
                (name, round(float(alarms.mean()), 2), round(float(alarms.std(ddof=1)) / sqrt(count), 2), *delays)
            )
        if (items, k) == CELLS[0]:
            table.notes.append(
                f"Runs: the median and its 95 % interval, over streams without an alarm in the history; > {HORIZON}: fewer than half."
            )
        yield table


def made(rng: np.random.Generator, count: int, runs: int, items: int, k: float, drop: float) -> Streams:
    """Make streams: the history, then runs with a drop of their mean."""
    right = rng.beta(0.7 * k, 0.3 * k, (count, items)).clip(1e-9, 1 - 1e-9)
    low = np.stack([lowered(each, drop) for each in right])
    chance = np.where((np.arange(HISTORY + runs) < HISTORY)[:, None], right[:, None], low[:, None])
    return (rng.random((count, HISTORY + runs, items)) < chance).astype(np.uint8)


def lowered(right: Rows, drop: float) -> Rows:
    """Lower all logits by the amount that lowers the mean by `drop`."""
    logits = np.log(right) - np.log1p(-right)
    least, most = 0.0, 40.0
    for _ in range(60):
        shift = (least + most) / 2
        lower = 1 / (1 + np.exp(shift - logits))
        least, most = (shift, most) if right.mean() - lower.mean() < drop else (least, shift)
    return right if not drop else np.asarray(lower)


# --- the detectors ------------------------------------------------------------------------------------------------------------------------


def called(streams: Streams, options: Options) -> dict[str, list[list[int]]]:
    """Return the runs, counted from 0, at which each detector calls a drop in each stream."""
    rules: dict[str, Callable[[Streams], Sequence[int]]] = {
        "each run below the limit, p < .05": lambda runs: limits(runs, (1,)),
        "windows of 1, 7 and 30 runs, 95 % limits": lambda runs: limits(runs, WINDOWS),
        "CUSUM, plug-in": cusum,
    }
    found = {name: [[*rule(each)] for each in streams] for name, rule in rules.items()}
    if options.peers is not None:
        found |= {f"river, {name}": runs for name, runs in of_river(streams, options.peers).items()}
    return found | {f"rankwatch, one false alarm in {BOUND:,} runs": [ranked(each) for each in streams]}


def limits(runs: Streams, windows: Sequence[int]) -> list[int]:
    """Call a drop where the mean of any window is below its limit."""
    means = runs.mean(1)
    below = np.any([below_limits(means, runs.shape[1], window) for window in windows], axis=0)
    return np.flatnonzero(first_days(below)).tolist()


def cusum(runs: Streams) -> list[int]:
    """Sum how far runs lie below the history, in its standard deviations, and start again after an alarm."""
    means = runs.mean(1)
    center, spread = float(means[:HISTORY].mean()), float(means[:HISTORY].std(ddof=1))
    total, found = 0.0, []
    for place in range(HISTORY, means.size):
        total = max(0.0, total + (center - float(means[place])) / spread - SLACK)
        if total >= CUSUM_LIMIT:
            found.append(place)
            total = 0.0
    return found


def ranked(runs: Streams) -> list[int]:
    """Sum bets on low ranks, with a new history after an alarm."""
    found, first, state, sums = [], 0, begin(), no_sums(runs.shape[1])
    ties = np.random.default_rng(SEED).random(len(runs))
    for place, row in enumerate(runs):
        sums = sums.with_run(row)
        state = step(state, p_runs(runs[first : place + 1], float(ties[place]), sums))
        if log_sum(state) >= log(BOUND):
            found.append(place)
            first, state, sums = place + 1, begin(), no_sums(runs.shape[1])
    return found


def no_sums(items: int) -> ItemSums:
    """Return the sums of no run."""
    return ItemSums(np.zeros(items, np.int64), np.zeros(items), np.zeros(items))


def of_river(streams: Streams, python: Path) -> dict[str, list[list[int]]]:
    """Ask river's detectors."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "streams.npy"
        np.save(file, streams)
        done = subprocess.run(
            [str(python), str(HERE / "peer_drift.py"), str(file)], capture_output=True, text=True, check=True
        )
    found: dict[str, list[list[int]]] = json.loads(done.stdout)
    return found


# --- what they show -----------------------------------------------------------------------------------------------------------------------


def delay(streams: Sequence[Sequence[int]]) -> str:
    """Return the median number of runs until a drop is called, with its 95 % interval."""
    late = sorted(
        min((run - HISTORY + 1 for run in each), default=HORIZON + 1)
        for each in streams
        if not any(run < HISTORY for run in each)
    )
    count = len(late)
    reach = NormalDist().inv_cdf(0.975) * sqrt(count) / 2
    low, high = late[max(0, int(count / 2 - reach))], late[min(count - 1, int(count / 2 + reach))]

    def shown(runs: float) -> str:
        return f"{runs:g}" if runs <= HORIZON else f"> {HORIZON}"

    return f"{shown(late[count // 2])} ({shown(low)} to {shown(high)})"
