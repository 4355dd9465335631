"""Start the services of docker-compose.yml as processes, in the order and with the conditions of the file, and stop them."""

import asyncio
import contextlib
import ctypes
import fcntl
import json
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

import redis
import yaml
from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.errors import KafkaError

from tests.ports import free_port
from tests.stack import programs
from tests.stack.compose import ROOT, services

START_SECONDS = 240
STOP_SECONDS = 30
RESTART_SECONDS = 1
STARTS = 5
"""How often a service may end before it was healthy once."""
DIES_WITH_PARENT = 1
"""PR_SET_PDEATHSIG of prctl(2)."""


class StackError(RuntimeError):
    """The stack cannot run; the message names the cause and what to do."""


class Instance:
    """One process of a service; it keeps its port and its folders through restarts."""

    def __init__(self, stack, service, number):
        self.service, self.number, self.name = service, number, f"{service.name}-{number}"
        self._stack = stack
        self.folder = stack.folder / "services" / self.name
        self.folder.mkdir(parents=True, exist_ok=True)
        self.log = stack.folder / "logs" / f"{self.name}.log"
        self.process = None
        self.ended = 0
        self.starts = 0
        self.was_healthy = False

    def port(self, inside):
        """Return the port on this machine for one of the service's own ports."""
        return self._stack.port(self.service, self.number, inside)

    def mounted(self, target):
        """Return what the service finds at a path; a folder of its own where nothing is mounted."""
        places = {to: source for source, to in self.service.mounts}
        source = places.get(target)
        if source is None:
            place = self.folder / target.strip("/")
        elif source.startswith("./"):
            return self._configured(ROOT / source, self.folder / "mounts" / Path(target).name)
        else:
            place = self._stack.folder / "volumes" / source
        place.mkdir(parents=True, exist_ok=True)
        return place

    def _configured(self, source, copy):
        """Copy a configuration with the addresses and paths of this machine."""
        shutil.rmtree(copy, ignore_errors=True)
        copy.parent.mkdir(parents=True, exist_ok=True)
        files = [source]
        if source.is_dir():  # Python may have left compiled generators there
            files = [path for path in source.rglob("*") if path.is_file() and path.parent.name != "__pycache__"]
        for path in files:
            to = copy / path.relative_to(source) if source.is_dir() else copy
            to.parent.mkdir(parents=True, exist_ok=True)
            to.write_text(self.local(self._stack.adapt(path)))
        return copy

    def local(self, text):
        """Replace the names, ports and paths of containers in a text by those of this machine."""
        for source, target in sorted(self.service.mounts, key=lambda mount: -len(mount[1])):
            if target in text and not source.startswith("./"):
                text = _path(target).sub(str(self.mounted(target)), text)
            elif target in text:
                text = _path(target).sub(str(self.folder / "mounts" / Path(target).name), text)
        text = self._stack.addresses.sub(self._address, text)
        return text.replace("0.0.0.0", "127.0.0.1")

    def _address(self, found):
        name, number, inside = found["name"], int(found["number"] or 1), int(found["port"])
        if name is None:
            return f"127.0.0.1:{self.port(inside)}"
        return f"127.0.0.1:{self._stack.port(self._stack.services[name], number, inside)}"

    @property
    def words(self):
        """Return the words of the service, for this machine."""
        return [self.local(word) for word in self.service.words]

    @property
    def environment(self):
        """Return the variables that the file sets, for this machine."""
        names = self._stack.services
        return {
            name: "127.0.0.1" if value in names else self.local(value)
            for name, value in self.service.environment.items()
        }

    def start(self):
        """Start the process, with its configuration written again."""
        for _, target in self.service.mounts:
            self.mounted(target)
        self.starts += 1
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                programs.words(self),
                env=programs.environment(self),
                cwd=ROOT if self.service.image == "apache/kafka" else self.folder,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,  # a Ctrl-C is for the stack, which stops its services in order
                preexec_fn=_die_with_parent,  # noqa: PLW1509 - there are no threads
            )

    def run(self, command):
        """Run a program that prepares the service."""
        with self.log.open("ab") as log:
            subprocess.run(command, stdout=log, stderr=log, check=True, timeout=START_SECONDS)

    def stop(self):
        """Ask the process to stop."""
        if self.process is not None and self.process.poll() is None:
            self.process.terminate()

    def wait(self):
        """Wait for the end of the process; kill it if it takes too long."""
        if self.process is not None:
            try:
                self.process.wait(STOP_SECONDS)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()

    def holds(self, condition):
        """Return whether a condition of ``depends_on`` holds."""
        if self.process is None:
            return False
        if condition == "service_completed_successfully":
            return self.process.poll() == 0
        return self.healthy()

    def healthy(self):
        """Return whether the health check of the file passes; a service without one is healthy once it runs."""
        if self.process.poll() is not None:
            return False
        health = " ".join(self.service.health)
        url = re.search(r"http://[^'\s]+", health)
        if url is not None:
            healthy = _responds(self.local(url[0]))
        elif "kafka" in health:
            healthy = asyncio.run(_broker_answers(f"127.0.0.1:{self.port(9092)}"))
        elif "valkey-cli" in health:
            healthy = _store_answers(self.port(6379))
        else:
            healthy = not health
        self.was_healthy = self.was_healthy or healthy
        return healthy

    @property
    def printed(self):
        """Return the end of what it printed."""
        return self.log.read_text(errors="replace")[-3000:]


class Stack:
    """All services but the omitted ones; a context manager that starts them and, at the end, stops them.

    Parameters
    ----------
    folder
        For volumes, logs and configurations; what volumes hold stays there.
    without
        Services that are not started, such as the demo data.
    free_ports
        Take free ports in place of the published ones, so that several stacks run beside each other.
    interval
        Seconds between scrapes, evaluations and notifications, in place of those of the files; alerts and speeds then take a few of them.
    """

    def __init__(self, folder, *, without=(), free_ports=False, interval=None):
        self.folder = Path(folder).resolve()
        self._without, self._free_ports, self._interval = set(without), free_ports, interval
        self.services = services()
        names = "|".join(sorted(self.services, key=len, reverse=True))
        own = r"localhost|127\.0\.0\.1|0\.0\.0\.0|(?<=://)"
        self.addresses = re.compile(rf"(?:\b(?P<name>{names})(?:-(?P<number>\d))?|{own}):(?P<port>\d{{2,5}})\b")
        self._ports = {}
        self._kept = _read_ports(self.folder / "ports.json")
        self.instances = []
        self.moved = {}
        """Published ports that other programs use, with those taken in their place."""

    @property
    def omitted(self):
        """Services that are not started, with the reason."""
        return {
            name: programs.OMITTED[each.image] for name, each in self.services.items() if each.image in programs.OMITTED
        }

    def port(self, service, number, inside):
        """Return the port on this machine for a port of a service, the same one each time."""
        place = (service.name, number, inside)
        if place not in self._ports:
            published = None if self._free_ports else service.published.get(inside)
            wanted = published or self._kept.get("/".join(map(str, place)))
            self._ports[place] = free_port() if wanted is None or _in_use(wanted) else wanted
            if published not in {None, self._ports[place]}:
                self.moved[published] = self._ports[place]
        return self._ports[place]

    def url(self, name, inside):
        """Return the address of a service."""
        return f"http://127.0.0.1:{self.port(self.services[name], 1, inside)}"

    def volume(self, name):
        """Return the folder of a volume."""
        return self.folder / "volumes" / name

    def adapt(self, path):
        """Return a configuration file in which each service that is looked up in the network's DNS is named."""
        text = path.read_text()
        if path.name == "prometheus.yml":
            return self._prometheus(text)
        if path.name == "alerts.yml" and self._interval:
            return re.sub(r"\bfor: \w+", f"for: {2 * self._interval}s", text)
        if path.name == "recording.yml" and self._interval:
            return re.sub(r"(deriv\(\w+)\[5m\]", rf"\1[{10 * self._interval}s]", text)
        if path.name == "alertmanager.yml" and self._interval:
            return re.sub(r"(group_wait|group_interval): \w+", rf"\1: {self._interval}s", text)
        if path.name == "haproxy.cfg":
            return re.sub(r"server-template (\w+) \d+ (\w+):(\d+) (.*?) resolvers docker.*", self._servers, text)
        return text

    def _prometheus(self, text):
        config = yaml.safe_load(text)
        if self._interval:
            config["global"] |= dict.fromkeys(("scrape_interval", "evaluation_interval"), f"{self._interval}s")
        for job in config["scrape_configs"]:
            found = job.pop("dns_sd_configs", ())
            targets = [
                f"{i}:{each['port']}" for each in found for n in each["names"] for i in self.services[n].instances
            ]
            if targets:
                job["static_configs"] = [{"targets": targets}]
        return yaml.safe_dump(config, sort_keys=False)

    def _servers(self, found):
        prefix, name, port, rest = found.groups()
        lines = [f"server {prefix}{n} {name}-{n}:{port} {rest}" for n in range(1, self.services[name].scale + 1)]
        return "\n    ".join(lines)

    def start(self):
        """Start every service once its conditions hold, and return when all are healthy or have done their work."""
        started = {
            name: each
            for name, each in self.services.items()
            if name not in self.omitted | dict.fromkeys(self._without)
        }
        absent = programs.missing({each.image for each in started.values()})
        if absent:
            raise StackError("\n".join(absent))
        self.folder.mkdir(parents=True, exist_ok=True)
        self.folder.chmod(0o700)
        for name in ("logs", "volumes", "services"):
            (self.folder / name).mkdir(exist_ok=True)
        self._lock()
        self.instances = [Instance(self, each, n) for each in started.values() for n in range(1, each.scale + 1)]
        end = time.monotonic() + START_SECONDS
        while not self._step():
            if time.monotonic() > end:
                waiting = [i for i in self.instances if not self._done(i)]
                raise StackError(f"{waiting[0].name} is not healthy after {START_SECONDS} s:\n{waiting[0].printed}")
            time.sleep(0.1)
        # The next start takes the same ports, so that Prometheus sees the same instances.
        ports = {"/".join(map(str, place)): port for place, port in self._ports.items()}
        (self.folder / "ports.json").write_text(json.dumps(ports))

    def _lock(self):
        self._locked = (self.folder / "lock").open("w")
        try:
            fcntl.flock(self._locked, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise StackError(
                f"a stack runs in {self.folder} already: stop it with Ctrl-C, or name another folder"
            ) from None

    def _step(self):
        """Start what can be started; return whether everything is up."""
        self.tend()
        for instance in self.instances:
            if instance.process is None and all(
                other.holds(condition) for name, condition in instance.service.needs.items() for other in self.of(name)
            ):
                instance.start()
        return all(map(self._done, self.instances))

    def _done(self, instance):
        if instance.process is None:
            return False
        if instance.service.restart == "unless-stopped":
            return instance.was_healthy or instance.healthy()
        return instance.process.poll() == 0 or not self._needed(instance)

    def _needed(self, instance):
        """Whether another service waits until this one has done its work."""
        condition = "service_completed_successfully"
        return any(each.service.needs.get(instance.service.name) == condition for each in self.instances)

    def of(self, name):
        """Return the instances of a service."""
        return [instance for instance in self.instances if instance.service.name == name]

    def tend(self):
        """Start again what has ended and should run, as compose does; return the lines to print about it."""
        lines = []
        for instance in self.instances:
            code = None if instance.process is None else instance.process.poll()
            if code is None or (code == 0 and instance.service.restart == "on-failure"):
                instance.ended = 0
                continue
            if not instance.ended:
                instance.ended = time.monotonic()
                lines.append(f"{instance.name} ended with exit code {code}; starting it again")
            if not instance.was_healthy and instance.starts >= STARTS:
                raise StackError(
                    f"{instance.name} ended {instance.starts} times, the last time with exit code {code}:\n{instance.printed}"
                )
            if time.monotonic() > instance.ended + RESTART_SECONDS:
                instance.start()
                instance.ended = 0
        return lines

    def stop(self):
        """Stop all services, those first that need others."""
        waiting = list(self.instances)
        while waiting:
            needed = {name for instance in waiting for name in instance.service.needs}
            last = [instance for instance in waiting if instance.service.name not in needed]
            for instance in last:
                instance.stop()
            for instance in last:
                instance.wait()
            waiting = [instance for instance in waiting if instance not in last]
        self._locked.close()

    def __enter__(self):
        try:
            self.start()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(self, *_):
        self.stop()


def _read_ports(file):
    try:
        return json.loads(file.read_text())
    except (OSError, ValueError):
        return {}


def _path(target):
    """Match a path of a container where it stands as one."""
    return re.compile(rf"(?<![\w./-]){re.escape(target)}(?![\w.-])")


def _die_with_parent():
    """Let a killed stack leave no process behind; on Linux only."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(DIES_WITH_PARENT, signal.SIGTERM)


def _in_use(port):
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return True
        return False


def _responds(url):
    try:
        with urllib.request.urlopen(url, timeout=5) as response:
            return response.status == 200
    except (OSError, urllib.error.HTTPError):
        return False


def _store_answers(port):
    with contextlib.suppress(redis.RedisError), redis.Redis(port=port) as client:
        return client.ping()
    return False


async def _broker_answers(address):
    try:
        host, _, port = address.partition(":")
        _, writer = await asyncio.open_connection(
            host, int(port)
        )  # aiokafka prints a line for every refused connection
        writer.close()
        admin = AIOKafkaAdminClient(bootstrap_servers=address, request_timeout_ms=5000)
        await admin.start()
        try:
            return bool((await admin.describe_cluster())["brokers"])
        finally:
            await admin.close()
    except (KafkaError, OSError):
        return False
