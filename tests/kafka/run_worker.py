"""A `rankwatch run` in a process of its own, and what it has logged."""

import json
import subprocess

from tests.commands import RANKWATCH, environment, until


class RunWorker:
    """One worker of the service; `number` is for messages of tests."""

    def __init__(self, broker_url, redis_url, path, number=0, **env):
        self.number = number
        self.path = path
        command = [RANKWATCH, "run", "--broker", broker_url, "--redis-url", redis_url, "--port", "0"]
        quick = {"RANKWATCH_SNAPSHOT_SECONDS": "0.3"} | env
        with self.path.open("w") as log:
            self.process = subprocess.Popen(command, env=environment(**quick), stdout=log, stderr=log)

    @property
    def told(self):
        """Its log until now."""
        return self.path.read_text(errors="replace")

    @property
    def code(self):
        """Its exit code, None while it runs."""
        return self.process.poll()

    def assigned(self):
        """How often it was given partitions."""
        return self.told.count("partitions assigned")

    def lines(self, event):
        """What it has logged of an event."""
        found = [line for line in self.told.splitlines() if f'"{event}"' in line and line.endswith("}")]
        return [json.loads(line) for line in found]

    def partitions(self):
        """The partitions that it was given last."""
        lines = self.lines("partitions assigned")
        return set(lines[-1]["partitions"]) if lines else set()

    def holds(self):
        """How many partitions it was given last."""
        return len(self.partitions())

    def url(self):
        """Where it serves, once it does."""
        return until(lambda: self.lines("started"), f"the worker to start: {self.told}")[0]["url"]

    def signal(self, number):
        """Send a signal."""
        self.process.send_signal(number)
