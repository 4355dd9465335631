"""How a command ends: exit 1 for a fault, 2 for a call that cannot be right; the message says what to do."""

import os
import signal
import sys
from typing import NoReturn

FAULT, USAGE = 1, 2


def stop(message: str, code: int = FAULT) -> NoReturn:
    """Print a message on standard error and exit."""
    print(f"rankwatch: {message}", file=sys.stderr)
    raise SystemExit(code)


def end_at_once() -> None:
    """Until `monitor.cli.stopping` takes over, let SIGTERM and SIGINT end the process with exit 0: nothing is open yet.

    Not by an exception: the signal comes in the middle of some library's import, which need not let it through.
    """
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: os._exit(0))
