"""The command line: one module a command, with its options.

The module of a command is imported when the command is called, and `--help` imports none, so that it answers quickly.
"""

import gc
import os
import sys

# Pydantic would search every installed distribution for plugins; rankwatch uses none.
os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")
# Matrix products are small here: more threads only wait for each other and double the processor time of a worker.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")


def main() -> None:
    """Run the command line."""
    # Imports create hundreds of thousands of objects that live to the end: searching them for cycles costs time and finds nothing.
    gc.set_threshold(1_000_000)
    if sys.__stdout__ is None:  # closed by the caller, who wants the exit code alone
        sys.stdout = os.fdopen(os.open(os.devnull, os.O_WRONLY), "w", encoding="utf-8")
    try:
        code = _run()
    except KeyboardInterrupt:  # also while modules are loaded
        code = 130
    gc.freeze()
    try:
        sys.stdout.flush()
    except OSError as error:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if not isinstance(error, BrokenPipeError):
            code = _fault(error)
    raise SystemExit(code)


def _run() -> int | str | None:
    """Run a command and return its exit code; a reader of the output that has read enough is no fault."""
    from monitor.cli.app import app
    from monitor.cli.shared.errors import ReaderGone
    from monitor.cli.usage import WrongCall, stop_wrong_call

    try:
        try:
            return app(prog_name="rankwatch", standalone_mode=False)  # type: ignore[no-any-return]
        except WrongCall as error:
            stop_wrong_call(error)
            return None
    except SystemExit as end:
        return end.code
    except (ReaderGone, BrokenPipeError):
        return 0
    except OSError as error:
        return _fault(error)


def _fault(error: OSError) -> int:
    from monitor.cli.shared.errors import FAULT, file_error, note

    note(file_error(error) if error.filename else f"standard output: {error.strerror or error}")
    return FAULT
