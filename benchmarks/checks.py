"""Checks: what `make test` and `make check` take, as a contributor runs them.

`make check` is `make test`, and then the rest. The environment is installed, the caches of the tools are as earlier runs leave them.
"""

import subprocess
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from benchmarks.harness import Options, Table

ROOT = Path(__file__).resolve().parents[1]
REST = ("-j", "3", "docs", "full", "simulate")
"""What `make check` runs after `make test`."""


def measure(options: Options) -> Iterator[Table]:
    """Run both once; `--quick` runs lint and the documentation alone."""
    first, rest = (["lint"], ["docs"]) if options.quick else (["test"], REST)
    test = minutes(first)
    rows = [("make test", round(test, 1)), ("make check", round(test + minutes(rest), 1))]
    yield Table("The tests of the repository, minutes", ["command", "minutes"], rows)


def minutes(targets: Sequence[str]) -> float:
    """Return the minutes that targets of the Makefile take."""
    begin = time.perf_counter()
    command = ["make", "--no-print-directory", *targets]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"make {' '.join(targets)} failed: {(done.stdout + done.stderr)[-2000:]}")
    return (time.perf_counter() - begin) / 60
