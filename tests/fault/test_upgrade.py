"""An upgrade side by side, with the commands of the how-to, from a version whose state this one does not read: under load, and back."""

import asyncio
import json
import os
import random
import shlex
import signal
import subprocess
import sys
import threading
import time
import tomllib
from collections import defaultdict
from contextlib import ExitStack
from functools import partial
from pathlib import Path

import pytest

from monitor.retries import RetryPolicy
from monitor.store.transfer.stored_verdicts import FieldCodes
from monitor.store.transfer.transfer import Transfer
from schemas.records.ownership import owner
from tests import forked
from tests.commands import PATIENCE, RANKWATCH, environment, until
from tests.kafka.judge import caught_up
from tests.kafka.pulse import Pulse
from tests.kafka.records import read_all
from tests.kafka.run_worker import RunReader, RunWorker, worker_starter

pytestmark = [
    pytest.mark.kafka,
    pytest.mark.slow,
    pytest.mark.skipif(os.environ.get("RANKWATCH_SLOW") != "1", reason="takes a minute; set RANKWATCH_SLOW=1"),
]

ROOT = Path(__file__).parents[2]
EARLIER = os.environ.get("RANKWATCH_EARLIER", "2239fd7")
"""A commit: by default the last one with state version 3, which no later version reads."""
PARTITIONS = 3
BOARDS = [next(f"board {k}" for k in range(99) if owner(f"board {k}", PARTITIONS) == p) for p in range(PARTITIONS)]
SKILLS = {"ash": 0.9, "birch": 0.75, "cedar": 0.5, "dune": 0.45}
GUIDE = ROOT / "docs/how-to/upgrade.md"


@pytest.fixture(scope="module")
def earlier(tmp_path_factory):
    """The source of the earlier version."""
    folder = tmp_path_factory.mktemp("earlier")
    archive = subprocess.run(["git", "archive", EARLIER], cwd=ROOT, capture_output=True, check=False)
    if archive.returncode:
        pytest.skip(f"this checkout does not have the commit {EARLIER} of an earlier version")
    subprocess.run(["tar", "-x", "-C", folder], input=archive.stdout, check=True)
    # Faust finds the transports of a version by its metadata, which come ahead of those of the installed one.
    project = tomllib.loads((folder / "pyproject.toml").read_text())["project"]
    metadata = folder / "rankwatch-0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: rankwatch\nVersion: 0\n")
    entries = project["entry-points"]["faust.transports"].items()
    (metadata / "entry_points.txt").write_text("\n".join(["[faust.transports]", *(f"{k} = {v}" for k, v in entries)]))
    return folder


class EarlierWorker(RunWorker):
    """A worker of the earlier version."""

    def __init__(self, source, broker_url, redis_url, path, **env):
        self.number, self.path = 0, path
        command = [sys.executable, "-m", "monitor", "run", "--broker", broker_url, "--redis-url", redis_url]
        with path.open("w") as log:
            env = environment(**env) | {"PYTHONPATH": str(source)}
            self.process = subprocess.Popen(command, env=env, cwd=source, stdout=log, stderr=log)


class ShownCommand(RunReader):
    """A `run` or `serve` as the how-to shows it, with other addresses."""

    def __init__(self, line, path, **env):
        words = shlex.split(line)
        own = dict(word.split("=", 1) for word in words[: words.index("rankwatch")])
        verb, *arguments = words[words.index("rankwatch") + 1 :]
        options = dict(zip(arguments[::2], arguments[1::2], strict=True))
        self.verb = verb
        super().__init__(options["--broker"], options["--redis-url"], path, **env | own)


class Load(threading.Thread):
    """Sends events of all boards until it is stopped; some are misrouted, and some cannot be read."""

    def __init__(self, pulse, rng):
        super().__init__()
        self._pulse, self._rng = pulse, rng
        self._end = threading.Event()
        self.items = 0

    def run(self):
        for name, policy in zip(BOARDS, ("trusted", "completion", "trusted"), strict=True):
            declared = {"declare": name, "order": policy} | ({"items": 4_000} if policy == "completion" else {})
            self._pulse.send([(owner(name, PARTITIONS), name.encode(), json.dumps(declared).encode())])
        while not self._end.is_set():
            records = []
            for name in BOARDS:
                home = owner(name, PARTITIONS)
                for model, skill in SKILLS.items():
                    event = {"benchmark": name, "item_id": str(self.items), "model": model}
                    event["score"] = int(self._rng.random() < skill)
                    place = (home + (self._rng.random() < 0.05)) % PARTITIONS
                    records.append((place, name.encode(), json.dumps(event).encode()))
            if self.items % 20 == 0:
                records.append((0, b"", b'{"score": NaN, '))
            self._pulse.send(records)
            self.items += 1

    def stop(self):
        """Send no more."""
        self._end.set()
        self.join()

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        self.stop()


def guide(topic, kafka, redis):
    """The commands of the section, with the addresses of this test."""
    section = GUIDE.read_text().split("## Side by side\n")[1]
    shown = [line.strip().removeprefix("$ ") for line in section.splitlines() if line.strip().startswith("$ ")]
    other = {"kafka://localhost:9092": f"kafka://{kafka.addresses}", "redis://localhost:6379": redis.url}
    other |= {"rankwatch.events": topic, "rankwatch.next": f"{topic}.next", "rankwatch.verdicts": f"{topic}.verdicts"}
    other |= {"redis-cli": f"redis-cli -p {redis.port}", " --port 8644": ""}
    for old, new in other.items():
        shown = [line.replace(old, new) for line in shown]
    return dict(zip(("prepare", "next", "compare", "switch", "serve", "delete"), shown, strict=True))


def stop(*workers):
    """End workers and readers as a supervisor does; each has to end with exit 0."""
    for worker in workers:
        worker.signal(signal.SIGTERM)
    assert [worker.process.wait(PATIENCE) for worker in workers] == [0] * len(workers), workers[0].log_text[-2000:]


async def verdict_ids(url, topic):
    """The ids of the verdicts of a state, of any version."""
    ids = set()
    async with Transfer.open(url, topic, RetryPolicy()) as transfer:
        for number in range(PARTITIONS):
            partition = await transfer.stored_partition(number)
            for key in partition.names:
                columns = (await partition.verdicts(key, FieldCodes())).columns
                orders = zip(columns.offset.tolist(), columns.sequence.tolist(), strict=True)
                ids |= {f"{offset}-{sequence}" for offset, sequence in orders}
    return ids


async def published(kafka, topic):
    """The verdicts that the topic has under each id."""
    found = defaultdict(set)
    for record in await read_all(kafka, topic):
        change = json.loads(record.value)
        change = change.get("data", change)
        found[change["id"]].add(tuple(change[name] for name in ("model_a", "model_b", "procedure", "kind", "after")))
    return found


def test_side_by_side_under_load_and_back(kafka, topic, tmp_path, earlier):
    asyncio.run(kafka.create_topic(topic, PARTITIONS))
    env = {
        "RANKWATCH_TOPIC": topic,
        "RANKWATCH_GROUP": topic,
        "RANKWATCH_VERDICT_TOPIC": f"{topic}.verdicts",
        "RANKWATCH_KAFKA_SESSION_SECONDS": "6",
        "RANKWATCH_PORT": "0",
    }
    with ExitStack() as stack:
        redis = stack.enter_context(worker_starter(kafka, topic, tmp_path)).redis
        shown = guide(topic, kafka, redis)
        pulse = stack.enter_context(Pulse(kafka, redis, topic, PARTITIONS))
        load = stack.enter_context(Load(pulse, random.Random(20)))

        def begin(make, *arguments, **options):
            worker = make(*arguments, tmp_path / f"{len(logs)}.log", **options)
            logs.append(worker.path)
            stack.callback(lambda: worker.code is None and worker.process.kill())
            return worker

        def earlier_worker():
            return begin(partial(EarlierWorker, earlier), kafka.url(topic), f"{redis.url}/0", **env)

        def command(which):
            return begin(ShownCommand, shown[which], **env)

        def run(which, *more):
            words = [RANKWATCH, *shlex.split(shown[which])[1:], *more]
            return forked.run(words, env=environment(RANKWATCH_TOPIC=topic), timeout=PATIENCE)

        logs = []
        blue = earlier_worker()
        until(lambda: load.items > 100 and pulse.folded(), "the earlier version to fold")
        assert run("prepare").returncode == 0
        green = [command("next"), command("next")]
        until(lambda: all(worker.ready() for worker in green), "the next workers to be ready")
        ended = run("compare", "--format", "json")
        compared = json.loads(ended.stdout)["boards"]
        same, times = (sum(board[name] for board in compared) for name in ("same", "same_times"))
        assert same == times > len(BOARDS)
        differ = {what: sum(board["differ"][what] for board in compared) for what in compared[0]["differ"]}
        print(f"at {load.items} items: {same} verdicts the same, with their times; differ: {differ}")
        assert ended.returncode == (3 if any(differ.values()) else 0)
        # The later version steps down in a family, so a claim of the family may close earlier; none may turn or be lost.
        assert (differ["other outcome"], differ["only there"]) == (0, 0)

        stop(*green)
        next_worker, reader = command("switch"), command("serve")
        until(lambda: next_worker.ready() and reader.ready(), "the switch")
        stop(blue)
        switched = load.items
        until(lambda: load.items > switched + 40, "events that only the later version folds")

        begun, since = earlier_worker(), time.monotonic()
        stop(next_worker, reader)
        until(pulse.folded, "the earlier version to go on")
        print(f"back after {time.monotonic() - since:.1f} s")
        load.stop()
        pulse.stop()
        asyncio.run(caught_up(kafka, redis, topic, PARTITIONS, lambda: begun.log_text[-2000:]))
        stop(begun)

        changes = asyncio.run(published(kafka, f"{topic}.verdicts"))
        assert all(len(outcomes) == 1 for outcomes in changes.values()), "an id is one verdict"
        with redis.client() as server:
            stored = asyncio.run(verdict_ids(f"{redis.url}/0", topic))
            assert len(stored) > same
            assert stored <= changes.keys(), "every verdict of the earlier version is published"
            subprocess.run(shown["delete"], shell=True, check=True, capture_output=True)
            assert not server.keys()
