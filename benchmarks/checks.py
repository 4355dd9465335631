"""Checks: what `make test` and `make check` take, as a contributor runs them.

`make check` runs all of `make test` too. The environment is installed, the caches of the tools are as they are left by earlier runs.
"""

import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

from benchmarks.harness import Options, Table

ROOT = Path(__file__).resolve().parents[1]
TARGETS = {"make test": ["test"], "make check": ["check"]}


def measure(options: Options) -> Iterator[Table]:
    """Run both once; `--quick` runs lint alone."""
    table = Table("The tests of the repository, minutes", ["command", "minutes"])
    for what, targets in ({"make lint": ["lint"]} if options.quick else TARGETS).items():
        begin = time.perf_counter()
        command = ["make", "--no-print-directory", *targets]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
        if done.returncode:
            raise RuntimeError(f"{what} failed: {(done.stdout + done.stderr)[-2000:]}")
        table.rows.append((what, round((time.perf_counter() - begin) / 60, 1)))
    yield table
