"""Ports of this machine for the servers that tests start."""

import contextlib
import fcntl
import random
import socket
import tempfile
from pathlib import Path

PORTS = range(11_000, 21_000)
"""Below the ports that systems give to connections, so that none takes the place of a server that starts again; a port of
Redis Cluster's bus, 10,000 higher, is too."""
_TAKEN = Path(tempfile.gettempdir()) / "rankwatch-test-ports"
_held = []


def free_ports(count):
    """Return `count` ports of the loopback interface that nobody listens on; no test of another process gets them while this one runs."""
    return [free_port() for _ in range(count)]


def free_port():
    """Return one of them."""
    _TAKEN.mkdir(exist_ok=True)
    for port in random.SystemRandom().sample(PORTS, len(PORTS)):
        file = (_TAKEN / str(port)).open("w")
        with contextlib.suppress(OSError), socket.socket() as probe:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            probe.bind(("127.0.0.1", port))
            _held.append(file)
            return port
        file.close()
    raise OSError(f"no free port between {PORTS.start} and {PORTS.stop}")
