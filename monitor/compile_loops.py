"""`python -m monitor.compile_loops` compiles the loops, so that nobody waits for it later: installation and image run it."""

import sys

from monitor.engine.loop.compiled import cache_folder, mode
from monitor.service.loops import run_loops


def main() -> int:
    """Run the loops: what is compiled by that is kept."""
    if mode() != "compiled":
        sys.stderr.write("rankwatch: Numba is missing, so events are folded slowly: pip install 'rankwatch[fast]'\n")
        return 0
    run_loops()
    (cache_folder() / "complete").touch()
    return 0


if __name__ == "__main__":
    sys.exit(main())
