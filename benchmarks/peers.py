"""Other packages on the same data, in the same run: all pairs of a leaderboard, and the evidence of one pair item by item.

All pairs: every program starts cold, reads the same gzipped file and compares every pair of models; one that is not done after 120 s of
processor time is stopped. Item by item: the pair of ranks 5 and 6 of MMLU-Pro (1,680 wins, 1,454 losses, in a seeded order), the evidence
asked for after each item; ln e of the default mixture is 4.35368. The packages live in an environment of their own, named by `--peers`.
"""

import json
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from benchmarks.events import file_of, lines_of, made_lines
from benchmarks.folding import declaration, fold
from benchmarks.harness import Options, Run, Table, run_command

LIMIT_SECONDS = 120
SLOW_SECONDS = 10
PAIR = (1680, 1454)
HERE = Path(__file__).parent

BATCH = {
    "bare": ("bare script (msgspec, numpy)", "counts of all pairs and nothing else: no test, no check of the input"),
    "statsmodels": (
        "statsmodels, exact McNemar in a loop, Holm",
        "fixed n; json and numpy do the reading and counting",
    ),
    "paired_eval": ("paired-eval, exact McNemar, Holm", "fixed n; json and numpy do the reading and counting"),
    "errorbars": ("errorbars, leaderboard", "fixed n: paired t and exact McNemar, Holm, tie groups"),
    "evalconfidence": ("evalconfidence, compare", "fixed n: McNemar test of each pair on its own, no family"),
    "evalci": (
        "evalci, multi_compare, 100 resamples",
        "fixed n: permutation test, Holm; 9,999 resamples are its default",
    ),
    "evalstats": ("evalstats, compare_models", "fixed n: bootstrap and Romano-Wolf; only items that every model has"),
}
SEQUENTIAL = {
    "plain": ("plain Python, beta(1,1)", "one process, no family, no ties, no order policy"),
    "online_fdr": ("online-fdr, mixture of 98 likelihood ratios", "the same e-process as `grid98`"),
    "sequential_analysis": ("sequential-analysis, sign test", "the same hypothesis; adaptive bets, another e-process"),
    "savvi": ("savvi, multinomial with k = 2", "the same e-value; its interval left out"),
    "ville": ("ville, Bernoulli test", "the same e-value"),
    "ville_at_once": ("ville, the whole path in one call", "the same e-value, of a stream that has ended"),
}


def measure(options: Options) -> Iterator[Table]:
    """Compare with the packages in the environment `options.peers`."""
    if options.peers is None:
        raise SystemExit("peers: name the python of an environment with the packages: --peers /path/to/bin/python")
    yield all_pairs(options, options.peers)
    yield one_pair(options, options.peers)


def all_pairs(options: Options, python: Path) -> Table:
    """Time each program from a cold start to all pairs."""
    with tempfile.TemporaryDirectory() as name:
        file = file_of(options, Path(name))
        report = [
            str(Path(sys.executable).parent / "rankwatch"),
            "report",
            str(file),
            "--format",
            "json",
            "--pairs",
            "all",
        ]
        commands = {"rankwatch": report}
        commands |= {each: [str(python), str(HERE / "peer_batch.py"), each, str(file)] for each in BATCH}
        runs: dict[str, list[Run]] = {each: [] for each in commands}
        faults: dict[str, str] = {}
        for _ in range(options.runs):
            for each, command in commands.items():
                if each in faults or (runs[each] and runs[each][0].cpu_seconds > SLOW_SECONDS):
                    continue  # one measurement is enough
                try:
                    runs[each].append(run_command(command, LIMIT_SECONDS))
                except (TimeoutError, RuntimeError) as error:
                    faults[each] = str(error)
        table = Table(
            f"All pairs of {file.parent.name}/{file.name}, from a cold start",
            ["program", "seconds", "processor seconds", "MB", "processor time, times rankwatch", "what it answers"],
        )
    own = statistics.median(run.cpu_seconds for run in runs["rankwatch"])
    ours = (
        "rankwatch report, JSON",
        "fixed n, Holm, Bonferroni, clustered, anytime by pair and family, resolution, tie groups",
    )
    for each in commands:
        title, answer = BATCH.get(each, ours)
        if each in faults:
            table.rows.append(
                (
                    title,
                    faults[each],
                    None,
                    None,
                    f"> {LIMIT_SECONDS / own:.0f}" if "done" in faults[each] else None,
                    answer,
                )
            )
            continue
        seconds, cpu, megabytes = (statistics.median(column) for column in zip(*runs[each], strict=True))
        table.rows.append((title, round(seconds, 2), round(cpu, 2), round(megabytes), round(cpu / own, 1), answer))
    return table


def one_pair(options: Options, python: Path) -> Table:
    """Count updates a second: a package's of one pair, and ours of all pairs at once."""
    table = Table(
        "Updates of a pair's evidence, item by item", ["program", "updates/s", "final ln e", "how it compares"]
    )
    for each, (title, answer) in SEQUENTIAL.items():
        command = [str(python), str(HERE / "peer_sequential.py"), each, *map(str, PAIR), str(options.runs)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            table.rows.append((title, None, None, done.stderr.strip().splitlines()[-1]))
            continue
        speed, log_e = json.loads(done.stdout)
        table.rows.append((title, round(speed), round(log_e, 5), answer))
    what, lines = lines_of(options)
    wide = options.size(1_000, 100)
    for title, some, benchmark in (
        (what, lines, json.loads(lines[0])["benchmark"]),
        (
            f"made: {wide:,} models",
            list(islice(made_lines(wide, 200, by_item=True), options.size(200_000, 5_000))),
            "made",
        ),
    ):
        folds = [fold([declaration(benchmark, order="trusted"), *some]) for _ in range(options.runs)]
        speed = statistics.median(each.pair_updates / each.seconds for each in folds)
        table.rows.append(
            (
                f"rankwatch's fold, {title}",
                round(speed),
                None,
                "every pair at once; decoding, checks and latches included",
            )
        )
    return table
