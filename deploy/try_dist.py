"""Install each built package in a new environment outside of the checkout, and run it there.

Usage: ``python -m deploy.try_dist dist``
"""

import os
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Sequence
from pathlib import Path
from time import monotonic
from typing import Final

ITEMS: Final = 40
RIGHT: Final = {"new": 36, "old": 12}
"""Items that each made model has right; the first of them are shared."""


def run(command: Sequence[str | Path], folder: Path) -> str:
    """Run a command outside of the checkout and return what it prints."""
    outside = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("PYTHON", "RANKWATCH_", "VIRTUAL_ENV"))
    }
    call = list(map(str, command))
    done = subprocess.run(call, cwd=folder, env=outside, stdout=subprocess.PIPE, text=True, check=False)  # noqa: S603 - no shell
    if done.returncode:
        sys.exit(f"{' '.join(map(str, command))} ended with {done.returncode}:\n{done.stdout}")
    return done.stdout


def attempt(package: Path, client: Path) -> None:
    """Install a package and the client, and look for the verdict on two made models in what the command prints."""
    uv = Path(sysconfig.get_path("scripts")) / "uv"
    with tempfile.TemporaryDirectory() as base:
        folder, start = Path(base), monotonic()
        run([uv, "venv", "--quiet", "--python", sys.executable, "env"], folder)
        run([uv, "pip", "install", "--quiet", "--python", "env/bin/python", package, client], folder)
        for model, right in RIGHT.items():
            rows = "".join(f"q{k},{int(k < right)}\n" for k in range(ITEMS))
            (folder / f"{model}.csv").write_text(f"item_id,score\n{rows}", encoding="utf-8")
        installed = monotonic() - start
        report = run(["env/bin/rankwatch", "report", "new.csv", "old.csv"], folder)
        if "Decided: new is better than old" not in report:
            sys.exit(f"{package.name} does not decide two models that differ on 24 of 40 items:\n{report}")
        run(["env/bin/rankwatch", "export", "site", "new.csv", "old.csv"], folder)
        run(["env/bin/rankwatch", "demo", "--seconds", "0"], folder)
        found = run(["env/bin/python", "-c", "import rankwatch_client, monitor; print(monitor.__file__)"], folder)
        if not Path(found.strip()).is_relative_to(folder.resolve()):
            sys.exit(f"{package.name} was not run: Python imports {found.strip()}")
        ran = monotonic() - start - installed
        sys.stdout.write(f"{package.name}: installed in {installed:.0f} s, ran in {ran:.0f} s\n")


def main(dist: Path) -> None:
    """Try the wheel and the archive of the sources, each with the wheel of the client."""
    (client,) = (dist / "client").resolve().glob("*.whl")
    packages = sorted((dist / "rankwatch").resolve().glob("rankwatch-*"))
    if {package.suffix for package in packages} != {".whl", ".gz"}:
        sys.exit(
            f"{dist}/rankwatch has no wheel and no archive of the sources: {[package.name for package in packages]}"
        )
    for package in packages:
        attempt(package, client)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: python -m deploy.try_dist FOLDER")
    main(Path(sys.argv[1]))
