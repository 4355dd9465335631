"""Plant each bug in a copy of the code, and measure how long the simulation takes to find it."""

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.simulation.mutants import FOUND, PATCHES, ROOT

COPIED = ("monitor", "schemas", "stats", "tests")


def main():
    parser = argparse.ArgumentParser(prog="python -m tests.simulation.mutants", description=__doc__)
    parser.add_argument("names", nargs="*", help="only these; default: all")
    parser.add_argument("--seconds", type=float, default=120, help="processor time to look for each; default: 120")
    parser.add_argument("--seed", type=int, default=0, help="the first seed")
    options = parser.parse_args()
    chosen = [patch for patch in PATCHES if not options.names or patch.stem in options.names]
    print("| planted bug | what it breaks | faults until found | processor seconds |\n|---|---|---:|---:|")
    found, runs = 0, []
    for patch in chosen:
        faults, seconds, failure = look_for(patch, options.seed, options.seconds)
        found += failure is not None
        runs.append(f"{patch.stem},{faults.replace(',', '')},{seconds}\n")
        name, why = patch.stem.replace("-", " "), patch.read_text().partition("\n")[0]
        print(f"| {name} | {why} | {faults if failure else 'not found'} | {seconds} |", flush=True)
        if failure:
            print(f"    {failure[:300]}", file=sys.stderr, flush=True)
    print(f"\n{found} of {len(chosen)} found")
    if found == len(PATCHES):  # a whole run, for docs/explanation/simulation-and-model.md
        FOUND.write_text("".join(["patch,faults,seconds\n", *runs]), "utf-8")
    return int(found < len(chosen))


def look_for(patch, seed, seconds):
    """Return the faults and seconds until a simulation of the code with a patch is judged wrong, and the judgement or None.

    Runs that crash are passed over: a patch that no longer fits would crash, too.
    """
    with tempfile.TemporaryDirectory(prefix="rw-") as folder:
        for name in COPIED:
            shutil.copytree(ROOT / name, Path(folder) / name, ignore=shutil.ignore_patterns("corpus"))
        subprocess.run(["git", "apply", str(patch)], cwd=folder, check=True)
        path = os.pathsep.join([folder, os.environ.get("PYTHONPATH", "")])
        run = subprocess.run(
            [sys.executable, "-m", "tests.simulation", "--seed", str(seed), "--seconds", str(seconds), "--whole", "--judged"],
            cwd=folder, env=os.environ | {"PYTHONPATH": path}, capture_output=True, text=True, check=False,
        )  # fmt: skip
    rate = re.search(r"([\d,]+) faults in ([\d.]+) s", run.stdout)
    if rate is None:
        raise RuntimeError(f"{patch.stem}: {run.stderr[-2000:]}")
    failure = re.search(r"^seed \d+ fails: (.*)", run.stdout, re.MULTILINE)
    return rate[1], rate[2], failure and failure[1]


if __name__ == "__main__":
    sys.exit(main())
