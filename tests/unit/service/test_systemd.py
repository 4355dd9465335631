"""The messages to a service manager, over a real socket."""

import asyncio
import os
import socket

import pytest

from monitor.service import systemd


@pytest.fixture
def manager(tmp_path, monkeypatch):
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as channel:
        channel.bind(str(tmp_path / "notify"))
        channel.settimeout(10)
        monkeypatch.setenv("NOTIFY_SOCKET", str(tmp_path / "notify"))
        yield channel


def test_it_is_notified_of_what_happens(manager):
    systemd.notify(systemd.READY)
    assert manager.recv(100) == b"READY=1"


async def test_signs_of_life_come_twice_as_often_as_asked_for(manager, monkeypatch):
    monkeypatch.setenv("WATCHDOG_USEC", "20000")
    monkeypatch.setenv("WATCHDOG_PID", str(os.getpid()))

    alive = asyncio.create_task(systemd.keep_alive())
    heard = [await asyncio.to_thread(manager.recv, 100) for _ in range(3)]
    alive.cancel()
    assert heard == [b"WATCHDOG=1"] * 3


def test_a_watchdog_that_is_another_process_s_is_not_answered(monkeypatch):
    monkeypatch.setenv("WATCHDOG_USEC", "20000")
    monkeypatch.setenv("WATCHDOG_PID", "1")
    assert systemd.watchdog_seconds() is None


def test_without_a_manager_nothing_happens(monkeypatch, tmp_path):
    monkeypatch.delenv("NOTIFY_SOCKET", raising=False)
    systemd.notify(systemd.READY)
    monkeypatch.setenv("NOTIFY_SOCKET", str(tmp_path / "gone"))
    systemd.notify(systemd.STOPPING)
