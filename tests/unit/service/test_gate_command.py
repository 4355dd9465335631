"""What `gate --run` does with the process that it has just started."""

import signal
import subprocess

import pytest

from monitor.service.gates import command


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_while_the_command_starts_ends_the_command(monkeypatch, number):
    """Found as a command that went on for its 77 seconds: the signal came before the process had a name here."""
    started = []

    class Interrupted(subprocess.Popen):
        def __init__(self, *arguments, **options):
            super().__init__(*arguments, **options)
            started.append(self)
            signal.raise_signal(number)

    def interrupt(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(command.subprocess, "Popen", Interrupted)
    before = signal.signal(number, interrupt)
    try:
        with pytest.raises(KeyboardInterrupt):
            command.run_command(["sleep", "77"], subprocess.DEVNULL)
        assert signal.getsignal(number) is interrupt
    finally:
        signal.signal(number, before)
    assert [process.returncode for process in started] == [-signal.SIGTERM]


def test_an_ignored_signal_stays_ignored():
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        assert command.run_command(["sh", "-c", "kill -INT $$; exit 7"], subprocess.DEVNULL) == 7
        assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGINT, before)


def test_a_command_that_cannot_start_is_an_error():
    with pytest.raises(FileNotFoundError):
        command.run_command(["/nowhere/command"], subprocess.DEVNULL)
