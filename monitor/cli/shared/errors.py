"""How a command ends: exit 1 for a fault, 2 for a wrong call; the message names the fix."""

import os
import signal
import sys
from typing import NoReturn

FAULT, USAGE = 1, 2


def note(text: str) -> None:
    """Print a line on standard error."""
    # One write a line: files are read in several threads, and their lines must not mix.
    print(f"rankwatch: {text}\n", end="", file=sys.stderr)


def stop(message: str, code: int = FAULT) -> NoReturn:
    """Print a message on standard error and exit."""
    note(message)
    raise SystemExit(code)


def file_error(error: OSError, path: object = "a file") -> str:
    """Describe an error of the file system: the file and what is wrong with it."""
    from monitor.ingest.files.paths import show

    return f"{show(str(error.filename or path))}: {error.strerror or error}"


def end_at_once() -> None:
    """Let SIGTERM and SIGINT end the process with exit 0 until `Stopping` takes over: nothing is open yet."""
    # No exception: the signal may arrive inside a library's import, which might swallow it.
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: os._exit(0))
