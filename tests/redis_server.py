"""Servers for the state, as real processes on the loopback interface, to be frozen, killed, and started again with a shorter file."""

import contextlib
import os
import shutil
import signal
import subprocess
import time

import redis as client
from redis.backoff import ConstantBackoff
from redis.retry import Retry

from monitor.store.server.embedded_config import find_executable
from tests.ports import free_port, free_ports

START_SECONDS = 30


class RedisServer:
    """One server over a folder; a context manager that starts it and, at the end, kills it.

    Parameters
    ----------
    folder
        For its files; must exist.
    port
        A free one by default; it keeps it.
    executable
        The embedded server by default.
    options
        Of the server, with ``_`` for ``-``; the append-only file is on, and fsynced at every write.
    """

    def __init__(self, folder, port=None, executable=None, **options):
        self.folder = folder
        self.executable = executable or find_executable()
        self.port = port or free_port()
        self.url = f"redis://127.0.0.1:{self.port}"
        defaults = {"bind": "127.0.0.1", "appendonly": "yes", "appendfsync": "always", "save": ""}
        defaults["repl-diskless-sync-delay"] = "0"  # a replica gets its first copy at once, not after 5 s
        self._options = {"port": str(self.port), "dir": str(folder), **defaults, **_named(options)}
        self.process = None

    def start(self, *, wait=True, **options):
        """Start it, this time with more options, and wait until it answers."""
        options = self._options | _named(options)
        words = [word for name, value in options.items() for word in (f"--{name}", value)]
        self.process = subprocess.Popen([self.executable, *words], stdout=subprocess.DEVNULL)
        return self.answers() if wait else self

    def answers(self):
        """Wait until it answers."""
        end = time.monotonic() + START_SECONDS
        with client.Redis(port=self.port) as connection:
            while True:
                try:
                    connection.ping()
                except client.ConnectionError:
                    assert time.monotonic() < end, "the server does not answer"
                    time.sleep(0.005)
                else:
                    return self

    def client(self):
        """A client of it."""
        return client.Redis(port=self.port)

    def forsake(self, replica):
        """Follow no longer what a replica asks for: it keeps what it has, and does not get in again until it is started anew."""
        with replica.client() as connection:
            connection.config_set("masteruser", "nobody")
            connection.config_set("masterauth", "nothing")
        with self.client() as connection:
            connection.client_kill_filter(_type="replica")

    def kill(self):
        """Kill it without a warning."""
        self.process.kill()
        self.process.wait()

    def freeze(self):
        """Stop it in its tracks, connections open."""
        self.process.send_signal(signal.SIGSTOP)

    def thaw(self):
        """Let it go on after `freeze`."""
        self.process.send_signal(signal.SIGCONT)

    def lose(self, length):
        """Kill it, cut the end of its file off, and start it again; return how long the file was."""
        self.kill()
        (file,) = self.folder.glob("appendonlydir/*.incr.aof")
        size = file.stat().st_size
        os.truncate(file, max(0, size - length))
        self.start()
        return size

    def flush(self):
        """Delete everything."""
        with self.client() as client:
            client.flushall()

    def contents(self, pattern="*"):
        """Every key with its value, as plain values."""
        read = {
            b"string": lambda c, key: c.get(key),
            b"hash": lambda c, key: c.hgetall(key),
            b"stream": lambda c, key: c.xrange(key),
        }
        with client.Redis(port=self.port) as connection:
            return {key: read[connection.type(key)](connection, key) for key in connection.scan_iter(pattern, 1000)}

    def __enter__(self):
        return self.start()

    def __exit__(self, *_):
        with contextlib.suppress(ProcessLookupError):
            self.thaw()
        self.kill()


class RedisCluster:
    """Three primaries that share the slots, and a replica of each if asked; a context manager."""

    def __init__(self, folder, replicas=0):
        self.servers = []
        for number in range(3 * (1 + replicas)):
            path = folder / f"node {number}"
            path.mkdir()
            options = {"cluster_enabled": "yes", "cluster_config_file": "nodes.conf", "cluster_node_timeout": 1000}
            self.servers.append(RedisServer(path, free_port(), **options))
        self._replicas = replicas

    @property
    def url(self):
        """The URL of the whole."""
        return "redis+cluster://" + ",".join(f"127.0.0.1:{server.port}" for server in self.servers)

    def __enter__(self):
        for server in self.servers:
            server.start()
        places = [f"127.0.0.1:{server.port}" for server in self.servers]
        arguments = ["--cluster", "create", *places, "--cluster-replicas", str(self._replicas), "--cluster-yes"]
        subprocess.run(["redis-cli", *arguments], check=True, capture_output=True, timeout=60)
        for server in self.servers:
            _until(server, "cluster", "info", found="cluster_state:ok")
        for server in self.servers if self._replicas else ():
            _until_copied(server)
        return self

    def __exit__(self, *_):
        for server in self.servers:
            server.__exit__()

    def primary_of(self, key):
        """The server that has the slot of a key."""
        with client.Redis(port=self.servers[0].port) as connection:
            slot = connection.execute_command("CLUSTER", "KEYSLOT", key)
            for first, last, (_, port, *_), *_ in _raw(self.servers[0], "CLUSTER", "SLOTS"):
                if first <= slot <= last:
                    return next(server for server in self.servers if server.port == port)
        raise AssertionError("no server has the slot")

    def client(self):
        """A client of the whole."""
        return client.RedisCluster(
            host="127.0.0.1", port=next(s.port for s in self.servers if s.process.poll() is None)
        )

    def replica_of(self, server):
        """The server that follows another."""
        for other in self.servers:
            with other.client() as connection:
                replication = connection.info("replication")
            if replication["role"] == "slave" and replication["master_port"] == server.port:
                return other
        raise AssertionError("it has no replica")


class Sentinels:
    """A primary, a replica, and three Sentinels that watch them under the name ``state``; a context manager.

    A replica that has not heard of its primary for ten times `down_after` (milliseconds) takes no one's place.
    """

    def __init__(self, folder, down_after=500):
        self._down_after = down_after
        paths = [folder / name for name in ("primary", "replica")]
        for path in paths:
            path.mkdir()
        self.primary = RedisServer(paths[0])
        self.replica = RedisServer(paths[1], replicaof=f"127.0.0.1 {self.primary.port}")
        self.ports = free_ports(3)
        self._folder = folder
        self._processes = []

    @property
    def url(self):
        """The URL of the primary, whoever it is."""
        return "redis+sentinel://" + ",".join(f"127.0.0.1:{port}" for port in self.ports) + "/state"

    def __enter__(self):
        self.primary.start()
        self.replica.start()
        for port in self.ports:
            file = self._folder / f"sentinel {port}.conf"
            file.write_text(
                f"port {port}\nbind 127.0.0.1\nsentinel monitor state 127.0.0.1 {self.primary.port} 2\n"
                f"sentinel down-after-milliseconds state {self._down_after}\nsentinel failover-timeout state 5000\n"
            )
            command = [find_executable(), str(file), "--sentinel"]
            self._processes.append(subprocess.Popen(command, stdout=subprocess.DEVNULL))
        end = time.monotonic() + START_SECONDS
        while not all(self._ready(port) for port in self.ports):
            assert time.monotonic() < end, "the Sentinels do not find each other"
            time.sleep(0.05)
        _until_copied(self.replica)
        return self

    def client(self):
        """A client of the server that is the primary; it waits while there is none."""
        sentinels = client.Sentinel([("127.0.0.1", port) for port in self.ports])
        return sentinels.master_for("state", retry=Retry(ConstantBackoff(0.1), 200))

    def primary_of(self, _key):
        """The server that has a key."""
        return self.primary

    def replica_of(self, _server):
        """The server that follows the primary."""
        return self.replica

    def _ready(self, port):
        with client.Redis(port=port, decode_responses=True) as connection, contextlib.suppress(client.ConnectionError):
            master = connection.sentinel_master("state")
            return int(master["num-other-sentinels"]) == 2 and int(master["num-slaves"]) == 1
        return False

    def __exit__(self, *_):
        for process in self._processes:
            process.kill()
            process.wait()
        self.primary.__exit__()
        self.replica.__exit__()


def _named(options):
    return {name.replace("_", "-"): str(value) for name, value in options.items()}


def _raw(server, *command):
    with client.Redis(port=server.port) as connection:
        connection.response_callbacks.clear()
        return connection.execute_command(*command)


def _until(server, *command, found):
    end = time.monotonic() + START_SECONDS
    while found.encode() not in _raw(server, *command):
        assert time.monotonic() < end, f"no {found} in {' '.join(command)}"
        time.sleep(0.05)


def _until_copied(server):
    """Wait while a server is a replica without a copy of its primary: such a one takes no one's place."""
    with server.client() as connection:
        if connection.info("replication")["role"] == "slave":
            _until(server, "info", "replication", found="master_link_status:up")


def has_cli():
    """Whether redis-cli, which makes a Cluster, is there."""
    return shutil.which("redis-cli") is not None
