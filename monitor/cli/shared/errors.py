"""How a command ends: exit 1 for a fault, 2 for a wrong call; the message names the fix."""

import os
import signal
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final, NoReturn

from schemas.records.text import printable

FAULT, USAGE = 1, 2
_NOTED: Final = 3


class ReaderGone(Exception):  # noqa: N818 - no error
    """The reader of standard output has closed it, as `head` does once it has its lines."""


def note(text: str) -> None:
    """Print a line on standard error, or several; no character of a name acts on the terminal."""
    # One write a line: files are read in several threads, and their lines must not mix.
    print("rankwatch: " + "\n".join(map(printable, text.split("\n"))) + "\n", end="", file=sys.stderr)


class Notes:
    """Lines on standard error about benchmarks: of each kind the first few, for a folder may hold hundreds."""

    def __init__(self) -> None:
        self._printed: Counter[str] = Counter()

    def __call__(self, text: str, kind: str) -> None:
        """Print a line, or once that more benchmarks are of a kind, as "with graded scores"."""
        self._printed[kind] += 1
        if self._printed[kind] <= _NOTED:
            note(text)
        elif self._printed[kind] == _NOTED + 1:
            note(f"more benchmarks {kind}: the report shows it for each")


def stop(message: str, code: int = FAULT) -> NoReturn:
    """Print a message on standard error and exit."""
    note(message)
    raise SystemExit(code)


def file_error(error: OSError, path: object = None) -> str:
    """Describe an error of the file system: the file, what is wrong with it, and what to do."""
    from monitor.files.streams.paths import show

    name = error.filename or path
    if name is None or error.strerror is None:
        return str(error)  # a sentence of our own
    if isinstance(error, FileNotFoundError):
        return f"{show(str(name))} does not exist; check the path"
    advice = "; change its permissions, or choose another path" if isinstance(error, PermissionError) else ""
    return f"{show(str(name))}: {error.strerror}{advice}"


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """Name this file in an error of a write that names none, as that of a full disk, or a draft of it."""
    try:
        yield
    except OSError as error:
        draft = str(error.filename or "").startswith(str(path.with_name(f".{path.name}.")))
        if error.errno is not None and (error.filename is None or draft):
            error.filename = str(path)
        raise


def end_at_once() -> None:
    """Let SIGTERM and SIGINT end the process with exit 0 until `Stopping` takes over: nothing is open yet."""
    # No exception: the signal may arrive inside a library's import, which might swallow it.
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: os._exit(0))
