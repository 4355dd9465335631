"""A Redis server for the measurements."""

import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import redis

from monitor.store.server.embedded_config import find_executable


@contextmanager
def redis_server(fsync: str = "always", directory: Path | None = None) -> Iterator[int]:
    """Start a server with an append-only file on the disk, in a temporary directory by default; yield its port."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    with tempfile.TemporaryDirectory(prefix="rankwatch-bench-") as folder:
        options = {
            "port": port,
            "bind": "127.0.0.1",
            "dir": directory or folder,
            "appendonly": "yes",
            "appendfsync": fsync,
            "save": "",
        }
        words = [word for name, value in options.items() for word in (f"--{name}", str(value))]
        process = subprocess.Popen([find_executable(), *words], stdout=subprocess.DEVNULL)
        try:
            with redis.Redis(port=port) as client:
                _wait_for(client)
            yield port
        finally:
            process.terminate()
            process.wait()


def _wait_for(client: redis.Redis) -> None:
    for _ in range(5_000):
        try:
            client.ping()
        except (redis.ConnectionError, redis.exceptions.BusyLoadingError):
            time.sleep(0.01)
        else:
            return
    raise RuntimeError("the server did not answer within 50 s")
