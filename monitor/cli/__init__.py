"""The command line: one thin function per command; each imports what it needs when it runs, so that `--help` is quick."""

import os

# Pydantic would look through every installed distribution for plugins of its own; there are none of ours.
os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")

from monitor.cli.commands import main as main
