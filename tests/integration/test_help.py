"""What `--help` says, of every command."""

import re

import pytest
import typer.main

from monitor.cli.app import PANELS, app
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
    """Text without line breaks, which depend on the width."""
    return re.sub(r"\s+", "", text)


def test_the_list_of_commands_says_what_each_says_first():
    made = typer.main.get_command(app).commands
    said = {name: " ".join(command.help.partition("\n\n")[0].split()) for name, command in made.items()}
    assert said == {name: summary for names in PANELS.values() for name, summary in names.items()}


@pytest.mark.parametrize(("path", "command"), COMMANDS, ids=[" ".join(path) for path, _ in COMMANDS])
def test_every_command_shows_an_example_and_each_option_as_it_was_written(path, command):
    shown = rankwatch(*path, "--help", COLUMNS="300").stdout
    assert "Example" in shown
    assert not re.search(r"<\w|<=|Optional", shown), "typer's types and ranges"
    for option in command.params:
        if option.help:
            assert words(option.help.replace("\\[", "[")) in words(shown), option.name


@pytest.mark.parametrize("path", [path for path, _ in COMMANDS], ids=" ".join)
def test_nothing_is_cut_off_at_80_columns(path):
    assert "…" not in rankwatch(*path, "--help", COLUMNS="80").stdout


@pytest.mark.parametrize("path", [(), ("state",)], ids=" ".join)
def test_flags_of_groups_are_shown_without_a_type(path):
    shown = rankwatch(*path, "--help").stdout
    assert "--help" in shown
    assert "bool" not in shown


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["report", ".", "--format", "foo"],
            "--format foo: use table, json, csv, markdown, html, parquet or arrow; see `rankwatch report --help`",
        ),
        (["watch", "--port", "abc"], "--port abc: use a whole number; see `rankwatch watch --help`"),
        (["plan", "--gap", "2"], "--gap 2: use 1 or less; see `rankwatch plan --help`"),
        (["order", "x"], "missing option --seed; see `rankwatch order --help`"),
        (["reprt"], "no such command reprt; did you mean report or export or order? See `rankwatch --help`"),
        (
            ["report", "--fromat"],
            "no such option: --fromat; did you mean --format or --map? See `rankwatch report --help`",
        ),
        (["gate", ".", "--pair", "a"], "--pair needs 2 values; see `rankwatch gate --help`"),
        (["state", "show", "--topic"], "--topic needs a value; see `rankwatch state show --help`"),
        (
            ["report", "--pair", "a"],
            "no such option: --pair; did you mean --pairs or --price or --split? See `rankwatch report --help`",
        ),
        (["state", "shw"], "no such command shw; did you mean show? See `rankwatch state --help`"),
    ],
)
def test_a_wrong_call_ends_with_one_line_that_names_the_fix(arguments, message):
    assert rankwatch(*arguments, code=2).stderr == f"rankwatch: {message}\n"


def test_a_call_without_a_command_prints_the_help():
    assert "Usage: rankwatch" in rankwatch(code=2).stdout


def test_the_commands_to_start_with_come_first_and_nothing_comes_twice():
    lines = rankwatch("--help").stdout.splitlines()
    titles = [line for line in lines if line.endswith(":") and not line.startswith(" ")]
    assert titles == ["Start here:", "Plan:", "Read:", "Serve:", "Reference:", "Options:"]
    names = [line.split()[0] for line in lines if re.match(r"  [a-z]", line)]
    assert len(names) == len(set(names))
    assert names[:4] == ["demo", "report", "watch", "gate"]


@pytest.mark.parametrize("columns", ["20", "80", "300"])
def test_help_fits_the_width(columns):
    widest = max(map(len, rankwatch("report", "--help", COLUMNS=columns).stdout.splitlines()))
    assert widest <= max(40, min(int(columns), 120))
