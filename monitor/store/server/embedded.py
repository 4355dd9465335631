"""Run a Valkey of our own over the data directory, as a child process that nothing else can reach and that never outlives us."""

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, Final, Self

from redis import exceptions
from redis.asyncio import Redis
from redis.asyncio.retry import Retry as NoRetry
from redis.backoff import NoBackoff

from monitor.durable import lock_file
from monitor.store.errors import StoreError
from monitor.store.server.embedded_config import EmbeddedConfig, find_executable

_POLL_SECONDS: Final = 0.01
_LOG_LINES: Final = 12
_PORT_ATTEMPTS: Final = 5

# Linux ends the server when the thread that started it ends, in any manner. The child itself must request this between fork and
# exec; a small program does so, because our code must not run in a child forked from a process with threads.
_LAUNCHER: Final = """
import ctypes, os, signal, sys
ctypes.CDLL(None).prctl(1, signal.SIGTERM)
if os.getppid() != int(sys.argv[1]):
    sys.exit("the parent has ended")
os.execv(sys.argv[2], sys.argv[2:])
"""


class EmbeddedValkey:
    """A Valkey server over ``<data_dir>/valkey`` that syncs its append-only file at every write."""

    # Use it as an asynchronous context manager, or with `start` and `stop`. The process that uses the directory holds `owner.lock`; the
    # server and its forks hold `server.lock`. A free owner lock with a taken server lock is the server of a killed run: it is stopped. A
    # taken owner lock is another run: the start is refused.

    def __init__(
        self, data_dir: str | os.PathLike[str], *, executable: str | None = None, patience: float = 15.0
    ) -> None:
        self.directory = Path(data_dir).resolve() / "valkey"
        self._config = EmbeddedConfig(self.directory)
        self._executable = executable
        self._patience = patience
        self._process: subprocess.Popen[bytes] | None = None
        self._owner_lock: int | None = None
        self._options: dict[str, Any] = {}

    @property
    def options(self) -> dict[str, Any]:
        """Keyword arguments of `redis.asyncio.Redis` for this server; they hold its password."""
        if self._process is None:
            raise RuntimeError("the embedded Valkey is not running; start it first")
        return dict(self._options)

    @property
    def pid(self) -> int | None:
        """The server's process id; None while it does not run."""
        return self._process.pid if self.running and self._process is not None else None

    @property
    def running(self) -> bool:
        """Whether the server runs."""
        return self._process is not None and self._process.poll() is None

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()

    async def start(self) -> None:
        """Start the server and wait until it has loaded its data."""
        if self._owner_lock is not None:
            raise RuntimeError("the embedded Valkey is already running")
        executable = self._executable or find_executable()
        self.directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._owner_lock = lock_file(self.directory / "owner.lock")
        if self._owner_lock is None:
            raise StoreError(
                f"{self.directory.parent} is in use by another rankwatch; stop it, or choose another data directory"
            )
        try:
            server_lock = await self._take_server_lock()
            try:
                await self._launch(executable, server_lock)
            finally:
                os.close(server_lock)
        except BaseException:
            await self.stop()
            raise

    async def stop(self) -> None:
        """Stop the server, by force after the patience; do nothing if it does not run."""
        process, self._process = self._process, None
        if process is not None:
            process.terminate()
            if await _poll(process.poll, self._patience) is None:
                process.kill()
                process.wait()
        if self._owner_lock is not None:
            os.close(self._owner_lock)
            self._owner_lock = None

    async def _launch(self, executable: str, server_lock: int) -> None:
        log = self.directory / "valkey.log"
        if log.exists():
            log.replace(self.directory / "valkey.log.1")
        for attempt in range(_PORT_ATTEMPTS):
            self._options = self._config.write()
            with os.fdopen(os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as output:
                self._process = subprocess.Popen(  # noqa: ASYNC220, S603 - returns once the child exists; the command is ours
                    _command(executable, self._config.path),
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=subprocess.STDOUT,
                    cwd=self.directory,
                    umask=0o077,  # for its append-only files
                    pass_fds=[server_lock],
                    # Ctrl-C in a terminal reaches the whole process group; the server has to outlive our own orderly stop.
                    start_new_session=True,
                )
            if await self._answers():
                return
            port_taken = "port" in self._options and b"Address already in use" in log.read_bytes()
            if not port_taken or attempt == _PORT_ATTEMPTS - 1:
                raise StoreError(
                    f"the embedded Valkey ({executable}) did not start; fix the error that it logged, or stop rankwatch and delete "
                    f"{self.directory} to fold the log again. The end of {log}:\n{_tail(log)}"
                )

    async def _answers(self) -> bool:
        """Wait until the server answers; return False if it ended or the patience passed."""
        client = _client(self._options)
        last_sign = time.monotonic()
        try:
            while self.running and time.monotonic() - last_sign < self._patience:
                try:
                    await client.ping()
                except exceptions.BusyLoadingError:
                    last_sign = time.monotonic()
                except (exceptions.ConnectionError, exceptions.TimeoutError):
                    pass
                else:
                    return True
                await asyncio.sleep(_POLL_SECONDS)
        finally:
            await client.aclose()
        return False

    async def _take_server_lock(self) -> int:
        """Take the server's lock; first stop the server of a killed run."""
        path = self.directory / "server.lock"
        for pressure in (None, self._ask_to_stop, signal.SIGTERM, signal.SIGKILL):
            if isinstance(pressure, signal.Signals):
                for pid in _processes_with_open(path):
                    with suppress(ProcessLookupError):
                        os.kill(pid, pressure)
            elif pressure is not None:
                await pressure()
            lock = await _poll(partial(lock_file, path), self._patience / 3 if pressure else 0.0)
            if lock is not None:
                return lock
        raise StoreError(f"the server of an earlier run does not stop: end the process that holds {path}")

    async def _ask_to_stop(self) -> None:
        """Send SHUTDOWN to the server that the last configuration describes."""
        client = _client(self._config.read())
        with suppress(exceptions.RedisError):
            await client.shutdown(nosave=True)
        await client.aclose()


async def _poll(look: Callable[[], int | None], seconds: float) -> int | None:
    """Call `look` until it returns a value or the time is over."""
    end = time.monotonic() + seconds
    while True:
        value = look()
        if value is not None or time.monotonic() >= end:
            return value
        await asyncio.sleep(_POLL_SECONDS)


def _command(executable: str, config: Path) -> list[str]:
    command = [executable, str(config)]
    if sys.platform == "linux":
        return [sys.executable, "-I", "-S", "-c", _LAUNCHER, str(os.getpid()), *command]
    return command


def _client(options: dict[str, Any]) -> Redis:
    return Redis(protocol=2, retry=NoRetry(NoBackoff(), 0), socket_timeout=2.0, socket_connect_timeout=2.0, **options)


def _processes_with_open(path: Path) -> list[int]:
    """Return the other processes that have a file open; empty where the system has no /proc."""
    return [
        int(entry.name)
        for entry in Path("/proc").glob("[0-9]*")
        if int(entry.name) != os.getpid() and _has_open(entry / "fd", path)
    ]


def _has_open(descriptors: Path, path: Path) -> bool:
    with suppress(OSError):  # another user's process, or one that has just ended
        return any(link.readlink() == path for link in descriptors.iterdir())
    return False


def _tail(log: Path) -> str:
    return "\n".join(log.read_text("utf-8", "replace").splitlines()[-_LOG_LINES:])
