"""A forked command does what a command in a fresh interpreter does; most tests start the former, because it is faster."""

import random
import signal

import pytest

from tests import forked
from tests.commands import PATIENCE, RANKWATCH, environment, events, write

COMMANDS = {
    "report": ("report", "events.jsonl", "--order", "trusted"),
    "watch": ("watch", "events.jsonl", "--once", "--format", "json", "--data-dir", "data"),
    "plan": ("plan", "--gap", "0.05", "--discordance", "0.2"),
    "state": ("state", "show", "--data-dir", "nowhere"),
    "no command": ("reprt",),
    "help": ("--help",),
}


@pytest.mark.parametrize("name", COMMANDS)
def test_output_and_exit_code_are_those_of_a_fresh_interpreter(tmp_path, name):
    ended = []
    for fresh in (False, True):
        folder = tmp_path / str(fresh)
        folder.mkdir()
        write(folder / "events.jsonl", [*events(random.Random(1), {"a": 0.9, "größe": 0.4}, 60), "{"])
        one = forked.run([RANKWATCH, *COMMANDS[name]], fresh=fresh, env=environment(), cwd=folder, timeout=PATIENCE)
        ended.append((one.returncode, one.stdout, one.stderr.replace(str(folder), "")))
    assert ended[0] == ended[1]
    assert ended[0][1] or ended[0][2]


def test_a_signal_ends_it_and_is_its_exit_code(tmp_path):
    command = [RANKWATCH, "watch", "--port", "0", "--data-dir", str(tmp_path / "data")]
    process = forked.start(command, env=environment())
    assert isinstance(process, forked.Forked) or forked.SLOW
    assert process.poll() is None
    process.kill()
    assert process.wait(PATIENCE) == -signal.SIGKILL
    assert process.poll() == -signal.SIGKILL
