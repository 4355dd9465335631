"""What `--help` says, of every command."""

import re

import pytest
import typer.main

from monitor.cli.app import app
from tests.commands import rankwatch


def commands(group, path=()):
    for name, command in sorted(group.commands.items()):
        here = (*path, name)
        if hasattr(command, "commands"):
            yield from commands(command, here)
        else:
            yield here, command


COMMANDS = list(commands(typer.main.get_command(app)))


def words(text):
    """Text without the frame and the line breaks, which depend on the width."""
    return re.sub(r"[\s│]+", "", text)


@pytest.mark.parametrize(("path", "command"), COMMANDS, ids=[" ".join(path) for path, _ in COMMANDS])
def test_every_command_shows_an_example_and_each_option_as_it_was_written(path, command):
    shown = rankwatch(*path, "--help", COLUMNS="300").stdout
    assert "Example" in shown
    for option in command.params:
        if option.help:
            assert words(option.help.replace("\\[", "[")) in words(shown), option.name
