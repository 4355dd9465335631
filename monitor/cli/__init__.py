"""The command line: one module a command, with its options.

A command module imports only light modules at its top and the rest in its functions, so that `--help` answers quickly.
"""

import gc
import os
import sys

# Pydantic would search every installed distribution for plugins; rankwatch uses none.
os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")


def main() -> None:
    """Run the command line."""
    # Imports create hundreds of thousands of objects that live to the end: searching them for cycles costs time and finds nothing.
    gc.set_threshold(100_000)
    from monitor.cli.app import app
    from monitor.cli.shared.usage import WrongCall, stop_wrong_call

    try:
        raise SystemExit(app(prog_name="rankwatch", standalone_mode=False))
    except WrongCall as error:
        stop_wrong_call(error)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise SystemExit(1) from None
    finally:
        gc.freeze()
