"""The command of `gate --run`: split without a shell, filled for a block, and ended with all that it has started."""

import os
import re
import shlex
import signal
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO, Final

_PLACEHOLDER: Final = re.compile(r"\{(items|ids|output|candidate)\}")
_GRACE_SECONDS: Final = 5.0  # how long an interrupted command may take to end


class EvaluationError(ValueError):
    """An evaluation that cannot begin or go on: what is wrong, and what to do."""


def parse_command(text: str, *, several: bool = False) -> list[str]:
    """Split a command into its arguments; no shell ever sees it, so an id cannot inject anything.

    >>> parse_command("python run.py --ids {items} --out {output}.jsonl")
    ['python', 'run.py', '--ids', '{items}', '--out', '{output}.jsonl']
    """
    try:
        arguments = shlex.split(text)
    except ValueError as error:
        raise EvaluationError(f"--run: the command cannot be split ({error}); close its quotes") from None
    used = {match[1] for argument in arguments for match in _PLACEHOLDER.finditer(argument)}
    if not used & {"items", "ids"}:
        raise EvaluationError(
            "--run: the command does not take the items; add {items}, the path of a file with one id a line"
        )
    if several and "candidate" not in used:
        raise EvaluationError(
            "--run: the command does not take the candidate, and there are several; add {candidate}, the name of the one to evaluate"
        )
    if any("{ids}" in argument and argument != "{ids}" for argument in arguments):
        raise EvaluationError("--run: {ids} has to be an argument of its own; it becomes one argument an id")
    return arguments


def fill_command(arguments: Sequence[str], candidate: str, ids: Sequence[str], items: Path, output: Path) -> list[str]:
    """Return the command of a block."""
    filled: list[str] = []
    places = {"items": str(items), "output": str(output), "candidate": candidate}
    for argument in arguments:
        if argument == "{ids}":
            if wrong := next((item for item in ids if item.startswith("-")), None):
                raise EvaluationError(
                    f"item {wrong!r} begins with - and would be an option; use {{items}}, a file of ids"
                )
            filled += ids
        else:
            filled.append(_PLACEHOLDER.sub(lambda match: places[match[1]], argument))
    return filled


def run_command(arguments: Sequence[str], stdout: int | BinaryIO) -> int:
    """Run a command to its end and return its exit code; an exception ends it too, with all that it has started."""
    # A group of its own: what a script has started would go on for hours after the script, and write into the folder.
    process = None
    try:
        with _signals_held():
            process = subprocess.Popen(arguments, stdin=subprocess.DEVNULL, stdout=stdout, process_group=0)  # noqa: S603 - the user's own command, without a shell
        return process.wait()
    except BaseException:
        if process is not None:
            for number in (signal.SIGTERM, signal.SIGKILL):
                with suppress(ProcessLookupError):
                    os.killpg(process.pid, number)
                with suppress(subprocess.TimeoutExpired):
                    process.wait(_GRACE_SECONDS)
        raise


@contextmanager
def _signals_held() -> Iterator[None]:
    """Keep a signal whose handler raises until the end of the block: a process just started would have no name yet."""
    # Handlers instead of a mask, which the started process would inherit. In the main thread only.
    held: list[int] = []
    numbers = {signal.SIGINT, signal.SIGTERM}
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, numbers)  # only while handlers are exchanged
    try:
        handlers = {
            number: signal.signal(number, lambda number, _frame: held.append(number))
            for number in numbers
            if callable(signal.getsignal(number))
        }
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_BLOCK, numbers)
        for number, handler in handlers.items():
            signal.signal(number, handler)
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        for kept in held:
            signal.raise_signal(kept)
