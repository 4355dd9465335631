"""A `rankwatch run` in a process of its own, and what it has logged."""

import contextlib
import http.client
import json
import signal
import urllib.error
import urllib.request

from tests import forked
from tests.commands import PATIENCE, RANKWATCH, environment, until
from tests.redis_server import RedisServer


class RunWorker:
    """One worker of the service; `number` is for messages of tests."""

    verb = "run"

    def __init__(self, broker_url, redis_url, path, number=0, *, fresh=False, **env):
        self.number = number
        self.path = path
        command = [RANKWATCH, self.verb, "--broker", broker_url, "--redis-url", redis_url]
        quick = {"RANKWATCH_SNAPSHOT_SECONDS": "0.3", "RANKWATCH_PORT": "0"} | env
        with self.path.open("w") as log:
            self.process = forked.start(command, fresh=fresh, env=environment(**quick), stdout=log, stderr=log)

    @property
    def log_text(self):
        """Its log until now."""
        return self.path.read_text(errors="replace")

    @property
    def code(self):
        """Its exit code, None while it runs."""
        return self.process.poll()

    def assigned(self):
        """How often it was given partitions."""
        return self.log_text.count("partitions assigned")

    def lines(self, event):
        """What it has logged of an event."""
        logged = [line for line in self.log_text.splitlines() if f'"{event}"' in line and line.endswith("}")]
        return [json.loads(line) for line in logged]

    def partitions(self):
        """The partitions that it was given last."""
        lines = self.lines("partitions assigned")
        return set(lines[-1]["partitions"]) if lines else set()

    def holds(self):
        """How many partitions it was given last."""
        return len(self.partitions())

    def url(self):
        """Where it serves, once it does."""
        return until(lambda: self.lines("started"), f"the worker to start: {self.log_text}")[0]["url"]

    def signal(self, number):
        """Send a signal."""
        self.process.send_signal(number)


class RunReader(RunWorker):
    """One reader of the service."""

    verb = "serve"

    def get(self, path):
        """Status, headers and body of an answer."""
        return get(self.url() + path)

    def ready(self):
        """Whether it shows its state."""
        return self.code is None and self.lines("started") and self.get("/readyz")[0] == 200


def get(url, timeout=30):
    """Status, headers (lower case) and body of an answer; status 0 where there is none."""
    try:
        with urllib.request.urlopen(url, timeout=timeout) as answer:
            return answer.status, {k.lower(): v for k, v in answer.headers.items()}, answer.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, {k.lower(): v for k, v in error.headers.items()}, error.read().decode()
    except (OSError, http.client.HTTPException) as error:
        return 0, {}, repr(error)


@contextlib.contextmanager
def worker_starter(kafka, topic, folder, **settings):
    """A function that starts a worker on a topic, the given one by default, over one server (its `redis`); settings are in lower case.

    `command=RunReader` starts a reader.
    """
    with RedisServer(folder) as redis:
        workers = []

        def start(*, topic=topic, fresh=False, command=RunWorker, **env):
            env = {"group": topic, "verdict_topic": f"{topic}.verdicts"} | settings | env
            env = {f"RANKWATCH_{name.upper()}": value for name, value in env.items()}
            path = folder / f"{len(workers)}.log"
            workers.append(command(kafka.url(topic), redis.url, path, fresh=fresh, **env))
            return workers[-1]

        start.redis = redis
        yield start
        for worker in workers:
            if worker.code is None:
                worker.process.kill()
                worker.process.wait()


class Workers:
    """The workers of a group; a context manager that kills, at the end, what still runs.

    Parameters
    ----------
    broker_url, redis_url, env
        What each of them is given.
    folder
        For what they log.
    """

    def __init__(self, broker_url, redis_url, folder, **env):
        self._urls, self._folder, self._env = (broker_url, redis_url), folder, env
        self.all, self._readers = [], []

    def read(self):
        """Start a reader, and return it once it shows the state."""
        path = self._folder / f"reader {len(self._readers)}.log"
        reader = RunReader(*self._urls, path, len(self._readers), **self._env)
        self._readers.append(reader)
        until(reader.ready, f"the reader: {reader.log_text}")
        return reader

    def start(self, **env):
        """Start one more, with more settings."""
        number = len(self.all)
        self.all.append(RunWorker(*self._urls, self._folder / f"worker {number}.log", number, **self._env | env))
        return self.all[-1]

    @property
    def running(self):
        """Those that have not ended."""
        return [worker for worker in self.all if worker.code is None]

    def shares(self, *workers):
        """The partitions of each of some workers, of all that run by default."""
        return [worker.partitions() for worker in workers or self.running]

    def logs(self):
        """The last of what they have logged."""
        return "\n".join(
            f"--- worker {worker.number}, exit {worker.code}\n{worker.log_text[-2000:]}" for worker in self.all
        )

    def stop(self, *workers):
        """Ask some to end, all that run by default; each has to end with exit 0."""
        workers = workers or self.running
        for worker in workers:
            worker.signal(signal.SIGTERM)
        assert [worker.process.wait(PATIENCE) for worker in workers] == [0] * len(workers), self.logs()

    def kill(self, worker):
        """Kill one without a warning."""
        worker.process.kill()
        worker.process.wait()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for worker in (*self.running, *(reader for reader in self._readers if reader.code is None)):
            self.kill(worker)
