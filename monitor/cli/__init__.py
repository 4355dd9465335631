"""The command line: one thin function per command; each imports what it needs when it runs, so that `--help` is quick."""

import gc
import os
import sys

# Pydantic would look through every installed distribution for plugins of its own; there are none of ours.
os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")


def main() -> None:
    """Run the command line."""
    # Imports leave hundreds of thousands of objects that stay: to look through them for cycles again and again finds nothing.
    gc.set_threshold(100_000)
    from monitor.cli.commands import app

    try:
        app()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise SystemExit(1) from None
    finally:
        gc.freeze()  # nor is there anything to find when the process ends
