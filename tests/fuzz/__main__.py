"""Fuzz the targets, guided by coverage: ``python -m tests.fuzz [--seconds N] [TARGET...]``. Needs the package atheris.

Each target has a process of its own, begins with the kept corpus, and ends after its time or at the first failure; then the bytes that
failed are in ``crash-*`` in the current folder. Fix the fault, and put them into the corpus, where every test run replays them.
"""

import argparse
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory


def fuzz(name):
    """Fuzz one target in this process; never returns."""
    import atheris

    with atheris.instrument_imports(include=["monitor", "schemas"]):
        from tests.fuzz.targets import TARGETS

    target = TARGETS[name]
    atheris.Setup(sys.argv, target)
    atheris.Fuzz()


def main():
    if sys.argv[1:2] == ["--one"]:
        name = sys.argv[2]
        del sys.argv[1:3]
        fuzz(name)
    from tests.fuzz.targets import TARGETS, seeds  # later: the process that fuzzes instruments its imports

    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("targets", nargs="*", metavar="TARGET", help="default: all")
    parser.add_argument("--seconds", type=int, default=60, help="for each target (60)")
    options = parser.parse_args()
    failed = []
    for name in options.targets or TARGETS:
        with TemporaryDirectory() as grown, TemporaryDirectory() as corpus:
            for number, seed in enumerate(seeds(name)):
                Path(corpus, str(number)).write_bytes(seed)
            limits = [f"-max_total_time={options.seconds}", "-max_len=4096", "-timeout=20", "-rss_limit_mb=2048"]
            command = [sys.executable, "-m", "tests.fuzz", "--one", name, *limits, "-print_final_stats=1"]
            print(f"--- {name}", flush=True)
            if subprocess.run([*command, grown, corpus], check=False).returncode:
                failed.append(name)
    sys.exit(f"failed: {', '.join(failed)}" if failed else 0)


if __name__ == "__main__":
    main()
