"""Every command of README and the documentation exists, with every flag it is shown with."""

import re
import shlex
from pathlib import Path

import pytest
import typer.main

from monitor.cli.app import app

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")), *sorted((ROOT / "clients").rglob("README.md"))]
GENERATED = {"command-line.md"}
PLACES = re.compile(r"^\s*\$ (?:[A-Z_]+=\S+ )*rankwatch (.*(?:\\\n.*)*)|`rankwatch ([^`]+)`", re.MULTILINE)


def commands():
    for page in PAGES:
        if page.name not in GENERATED:
            for match in PLACES.finditer(page.read_text(encoding="utf-8")):
                yield str(page.relative_to(ROOT)), (match[1] or match[2]).replace("\\\n", " ")


COMMANDS = sorted(set(commands()))


def test_there_are_commands():
    assert {page for page, _ in COMMANDS} >= {"README.md", "docs/how-to/publish.md", "docs/tutorials/first-ranking.md"}


@pytest.mark.parametrize(("page", "text"), COMMANDS)
def test_a_command_exists_with_its_flags(page, text):
    words = shlex.split(text.split(" | ")[0].split(" > ")[0], comments=True)
    command = typer.main.get_command(app)
    path = []
    while words and hasattr(command, "commands") and not words[0].startswith("-"):
        default = getattr(command, "default", None)
        path.append(words.pop(0) if default is None or words[0] in command.commands else default)
        assert path[-1] in command.commands, f"{page}: rankwatch {text}"
        command = command.commands[path[-1]]
    known = {name for option in command.params for name in (*option.opts, *option.secondary_opts)} | {"--help", "-h"}
    flags = {word.partition("=")[0] for word in words if re.match(r"--?[A-Za-z]", word)}
    assert flags <= known, f"{page}: rankwatch {text}"
