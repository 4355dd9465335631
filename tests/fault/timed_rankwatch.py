"""Run `rankwatch`, and append the processor time of each long callback of its event loop to the file LONG_CALLBACKS."""

import asyncio
import os
import sys
import time
from pathlib import Path

from monitor.cli import main

LEAST = 0.02
run = asyncio.Handle._run


def timed(handle):
    """Run a callback: processor time of its thread, because on a busy machine the clock measures the others."""
    what, start = repr(handle._callback), time.thread_time()
    result = run(handle)
    seconds = time.thread_time() - start
    if seconds > LEAST:
        with Path(os.environ["LONG_CALLBACKS"]).open("a") as file:
            file.write(f"{seconds:.3f} {what:.300}\n")
    return result


if __name__ == "__main__":
    asyncio.Handle._run = timed
    sys.exit(main())
