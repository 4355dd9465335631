"""Break the running stack as it breaks in earnest, wait for the alert, do what its runbook says, and see that nothing is lost.

Each drill leaves the stack as it found it. The runbook is that of the alert that arrived: a drill without a runbook section fails.
"""

import asyncio
import json
import resource

import redis
from aiokafka import AIOKafkaProducer

from tests.commands import get, rankwatch, until
from tests.deploy.monitoring import DEPLOY

RUNBOOKS = DEPLOY.parent / "docs/how-to/runbooks.md"
TOPIC = "rankwatch.events"


class Drills:
    """Faults of a stack, in an order in which none hides the next."""

    def __init__(self, service, folder):
        self.service, self.stack, self.folder = service, service.stack, folder
        self.broker = f"kafka://127.0.0.1:{self.stack.port(self.stack.services['kafka'], 1, 29092)}"
        self.store = f"127.0.0.1:{self.stack.port(self.stack.services['valkey'], 1, 6379)}"
        login = (self.stack.volume("secrets") / "worker/redis-login").read_text()
        self.redis = f"redis://{login}@{self.store}"
        self.sent = 0

    def alerted(self, name, status="firing"):
        """Wait until the receiver has printed an alert; return the text of the runbook that it names."""
        found = until(
            lambda: [a for a in self.service.alerts() if (a["alertname"], a["status"]) == (name, status)],
            f"{name} at the receiver",
        )
        heading = found[-1]["runbook"].rpartition("#")[2].replace("-", " ")
        sections = RUNBOOKS.read_text().split("\n## ")
        (section,) = (each for each in sections if each.partition("\n")[0].lower() == heading)
        return section

    def evaluate(self, requests=1):
        """Post results, one request after the other."""
        for _ in range(requests):
            self.sent += 1
            events = [
                {"benchmark": "drill", "item_id": f"i{self.sent}", "model": model, "score": int(model == "ash")}
                for model in ("ash", "bay")
            ]
            assert self.service.post(events, self.service.token) == 200

    def counted(self):
        """Wait until the readers and the workers have all that was posted, once."""
        until(lambda: (self.service.summary("drill") or {"events": 0})["events"] == 2 * self.sent, "what was posted")
        workers = 'max(rankwatch_events_total{{benchmark="drill",job="rankwatch-readers"}}) == {}'
        until(lambda: self.service.prometheus.query(workers.format(2 * self.sent)), "a scrape of it")
        until(lambda: self.service.prometheus.query('sum(rankwatch_log_lag{job="rankwatch"}) == 0'), "the workers")

    def bad_producer(self):
        """A producer sends what nobody can read, and a score on another scale."""
        asyncio.run(self._produce(b"no JSON", b'{"benchmark":"drill","item_id":"late","model":"ash","score":70}'))
        runbook = self.alerted("RankwatchDeadLetters")
        places = "--broker", self.broker, "--topic", TOPIC
        assert "rankwatch dead-letters list" in runbook
        listed = rankwatch("dead-letters", "list", *places).stdout
        assert "is out of range" in listed
        assert "rankwatch dead-letters show --records > fixed.jsonl" in runbook
        fixed = self.folder / "fixed.jsonl"
        records = rankwatch("dead-letters", "show", "--records", "--reason", "range", *places).stdout
        fixed.write_text(records.replace("70", "0.7"))
        before = self.service.summary("drill")["events"]
        rankwatch("send", fixed, "--to", f"{self.broker}/{TOPIC}", "--data-dir", self.folder / "sent")
        until(lambda: self.service.summary("drill")["events"] == before + 1, "the corrected record")
        self.sent += 0.5

    def flood(self):
        """A producer sends nothing but records that nobody can read: its benchmark is set aside, and all others go on."""
        event = {"benchmark": "flood", "item_id": "1", "model": "ash", "score": 1}
        asyncio.run(self._produce(*[b"no JSON"] * 700, json.dumps(event).encode(), key=b"flood"))
        self.evaluate()
        runbook = self.alerted("RankwatchQuarantine")
        self.counted()
        assert "`rankwatch quarantine list` shows the benchmark" in runbook
        places = "--topic", TOPIC, "--redis-url", self.redis
        assert rankwatch("quarantine", "list", *places).stdout.startswith("flood: ")
        assert "rankwatch quarantine release BENCHMARK --replay" in runbook
        rankwatch("quarantine", "release", "flood", "--replay", "--broker", self.broker, *places)
        until(lambda: (self.service.summary("flood") or {"events": 0})["events"] == 1, "the record that can be read")
        self.alerted("RankwatchQuarantine", "resolved")

    async def _produce(self, *values, key=b"drill"):
        async with AIOKafkaProducer(bootstrap_servers=self.broker.removeprefix("kafka://")) as producer:
            sent = [await producer.send(TOPIC, value, key=key) for value in values]
            await asyncio.gather(*sent)

    def slow_store(self):
        """Valkey answers and writes nothing: the workers lag."""
        self._add_user()
        with redis.Redis.from_url(f"redis://drill:drill@{self.store}") as client:
            client.client_pause(60_000, all=False)
            self.evaluate(requests=12)
            runbook = self.alerted("RankwatchLag")
            assert "A slow commit is a slow Redis" in runbook
            client.client_unpause()
        self.counted()
        self.alerted("RankwatchLag", "resolved")

    def _add_user(self):
        """Start Valkey again with a user who may pause it: no user of the stack may."""
        (valkey,) = self.stack.of("valkey")
        with (self.stack.volume("secrets") / "valkey/users.acl").open("a") as users:
            users.write("user drill on >drill ~* +@all\n")
        valkey.stop()
        valkey.wait()
        valkey.start()
        until(valkey.healthy, "Valkey")

    def full_disk(self):
        """The disk of Valkey has no more room, so it ends, as with `appendfsync always` it must."""
        (valkey,) = self.stack.of("valkey")
        files = [path.stat().st_size for path in valkey.mounted("/data").rglob("*.aof")]
        resource.prlimit(valkey.process.pid, resource.RLIMIT_FSIZE, (max(files) + 1, resource.RLIM_INFINITY))
        self.evaluate(requests=3)
        until(lambda: valkey.process.poll() is not None, "the end of Valkey")
        runbook = self.alerted("RankwatchStoreUnreachable")
        assert "no space left" in runbook
        valkey.start()  # there is room again
        self.evaluate()
        self.counted()
        self.alerted("RankwatchStoreUnreachable", "resolved")

    def killed_broker(self):
        """Kafka is killed: nothing can be posted, readers show what they have, and nothing that was accepted is lost."""
        (kafka,) = self.stack.of("kafka")
        kafka.process.kill()
        kafka.wait()
        runbook = self.alerted("RankwatchBrokerUnreachable")
        assert self.service.summary("drill")["events"] == 2 * self.sent
        assert "Bring the brokers back" in runbook
        kafka.start()
        self.alerted("RankwatchBrokerUnreachable", "resolved")
        self.evaluate()
        self.counted()

    def killed_worker(self):
        """A worker is killed: the other takes its partitions."""
        worker = self.stack.of("rankwatch")[0]
        worker.process.kill()
        worker.wait()
        self.evaluate()
        runbook = self.alerted("RankwatchDown")
        assert "Other workers take its partitions" in runbook
        self.counted()
        worker.start()
        self.alerted("RankwatchDown", "resolved")

    def killed_readers(self):
        """All readers are killed: nobody sees anything."""
        for reader in self.stack.of("reader"):
            reader.process.kill()
            reader.wait()
        runbook = self.alerted("RankwatchReaderDown")
        assert "Start `rankwatch serve` again" in runbook
        self.stack.of("reader")[0].start()
        until(lambda: get(f"{self.service.url}/readyz")[0] == 200, "a reader")
        self.alerted("RankwatchReaderDown", "resolved")
        self.evaluate()
        self.counted()
