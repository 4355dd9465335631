"""The command line: one thin function per command; each imports what it needs when it runs, so that `--help` is quick."""

from monitor.cli.commands import main as main
