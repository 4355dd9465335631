"""Counting: wins and losses of all pairs, next to what one would build from a SQL engine, a dataframe library or a stream processor.

Every program is a process of its own that begins cold and reads the same JSON lines; the programs run in turn, and all that finish must
agree on every count. None of the others checks its input, knows an error rate or gives a verdict. At the end: counts once the file is
read. After each 6,000 events: the counts are current and on the disk, as `rankwatch run` commits them. Processor seconds include Redis's.
A program that is not done after 120 s of processor time is stopped; one that takes more than 20 s runs once. DuckDB, Polars and Pathway
use all processors. The packages live in an environment of their own, named by `--peers`.
"""

import statistics
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

import msgspec
import redis

from benchmarks.events import lines_of, made_lines
from benchmarks.folding import declaration
from benchmarks.harness import Options, Run, Table, run_command
from benchmarks.peer_counting import DIGEST, digest
from benchmarks.servers import redis_server

LIMIT_SECONDS = 120
SLOW_SECONDS = 20
HERE = Path(__file__).parent

AT_END = {
    "report": ("rankwatch report, all pairs, JSON", "every statistic of every pair; the input is checked"),
    "duckdb_once": ("DuckDB, self-join", "the counts"),
    "polars_once": ("Polars, self-join, streaming engine", "the counts"),
}
AS_STREAM = {
    "plain": ("rankwatch, fold and store", "Redis, fsync at each commit"),
    "verdicts": ("rankwatch, fold and store, with verdicts", "Redis, fsync at each commit"),
    "duckdb_stream": ("DuckDB, a transaction for each chunk", "its own file, at each commit"),
    "polars_stream": ("Polars, frames in memory", "Parquet files, fsync at each chunk"),
    "bytewax_stream": ("Bytewax, state by item and by pair", "its recovery store, at each chunk"),
    "pathway_stream": ("Pathway, self-join as a view", "its log of the input, when it chooses to"),
}


class Case(NamedTuple):
    """Events to count: what they are, their file, and a record that declares the benchmark's item count."""

    title: str
    file: Path
    declared: bytes


def measure(options: Options) -> Iterator[Table]:
    """Count the events of a leaderboard, and made ones of more models."""
    if options.peers is None:
        raise SystemExit("counting: name the python of an environment with the packages: --peers /path/to/bin/python")
    with tempfile.TemporaryDirectory(prefix="rankwatch-bench-") as name, redis_server() as port:
        for case in cases(options, Path(name)):
            yield compare(options, f"At the end: {case.title}", AT_END, "what it gives", case, port)
            yield compare(options, f"After each 6,000 events: {case.title}", AS_STREAM, "on the disk", case, port)


def cases(options: Options, folder: Path) -> Iterator[Case]:
    """Write the files."""
    wide = options.size(1_000, 50)
    made = f"made: 100 models, {wide:,} items", list(made_lines(100, wide))
    for title, lines in (lines_of(options), made):
        events = [msgspec.json.decode(line) for line in lines]
        file = folder / f"{len(events)}.jsonl"
        file.write_bytes(b"\n".join(lines) + b"\n")
        items = len({event["item_id"] for event in events})
        yield Case(title, file, declaration(events[0]["benchmark"], items=items))


def compare(
    options: Options, title: str, programs: Mapping[str, tuple[str, str]], last: str, case: Case, port: int
) -> Table:
    """Run the programs in turn.

    Raises
    ------
    RuntimeError
        If two of them count differently.
    """
    runs: dict[str, list[Run]] = {each: [] for each in programs}
    faults: dict[str, str] = {}
    digests: dict[str, str] = {}
    for _ in range(options.runs):
        for each in programs:
            if each in faults or (runs[each] and runs[each][0].cpu_seconds > SLOW_SECONDS):
                continue
            try:
                run, digests[each] = one_run(options, each, case, port)
            except TimeoutError as fault:
                faults[each] = str(fault)
            else:
                runs[each].append(run)
    if len(set(digests.values())) > 1:
        raise RuntimeError(f"the programs count differently: {digests}")
    table = Table(title, ["program", "seconds", "processor s", "times rankwatch", "MB", last])
    own = 0.0
    for each, (name, what) in programs.items():
        if each in faults:
            table.rows.append((name, faults[each], None, f"> {LIMIT_SECONDS / own:.0f}", None, what))
            continue
        seconds, cpu, megabytes = (statistics.median(column) for column in zip(*runs[each], strict=True))
        own = own or cpu
        table.rows.append((name, round(seconds, 2), round(cpu, 2), round(cpu / own, 2), round(megabytes), what))
    return table


def one_run(options: Options, program: str, case: Case, port: int) -> tuple[Run, str]:
    """Run a program in an empty folder and over an empty Redis, whose processor time is added; return what it counted."""
    with tempfile.TemporaryDirectory(prefix="rankwatch-bench-") as folder, redis.Redis(port=port) as server:
        server.flushall()
        before = processor_seconds(server)
        run = run_command(command(options, program, case, port, Path(folder)), LIMIT_SECONDS)
        spent = processor_seconds(server) - before if program in {"plain", "verdicts"} else 0.0
        found = Path(folder) / DIGEST
        counted = found.read_text(encoding="utf-8") if found.exists() else digest_of_report(Path(folder) / REPORT)
        return run._replace(cpu_seconds=run.cpu_seconds + spent), counted


REPORT = "report.json"


def command(options: Options, program: str, case: Case, port: int, folder: Path) -> list[str]:
    """Return the command of a program."""
    if program == "report":
        return [
            str(Path(sys.executable).parent / "rankwatch"), "report", str(case.file), "--pairs", "all", "-o", str(folder / REPORT)
        ]  # fmt: skip
    if program in {"plain", "verdicts"}:
        declared = case.declared.decode() if program == "verdicts" else ""
        return [sys.executable, "-m", "benchmarks.own_counting", str(case.file), str(folder), str(port), declared]
    return [str(options.peers), str(HERE / "peer_counting.py"), program, str(case.file), str(folder)]


def processor_seconds(server: redis.Redis) -> float:
    """Return what a Redis has used."""
    used = server.info("cpu")
    return float(used["used_cpu_user"] + used["used_cpu_sys"])


def digest_of_report(file: Path) -> str:
    """Return the digest of the counts in a report."""
    (report,) = msgspec.json.decode(file.read_bytes())["benchmarks"]
    return digest(
        (a, b, wins, losses) if a < b else (b, a, losses, wins)
        for a, b, n, wins, losses in ((p["model_a"], p["model_b"], p["n"], p["b"], p["c"]) for p in report["pairs"])
        if n
    )
