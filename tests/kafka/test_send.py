"""`rankwatch send` into a real Apache Kafka, as a user runs it."""

import asyncio
import json
import random
import shutil
import signal
import subprocess
import time

import pytest

from schemas.records.ownership import owner
from schemas.records.packed import mark_imported
from tests import forked
from tests.commands import RANKWATCH, environment, rankwatch
from tests.kafka.jars import classpath
from tests.kafka.records import fresh_topic, read_all

pytestmark = pytest.mark.kafka

NAMES = ["grades", "m-pro", "größe 模型", "b", "bench/5 shot", "gpqa"]
PARTITIONS = 5


@pytest.fixture
def topic(kafka):
    name = fresh_topic()
    asyncio.run(kafka.create_topic(name, PARTITIONS))
    return name


def results(path, items, seed=1):
    draw = random.Random(seed)
    lines = [
        json.dumps(
            {"benchmark": name, "item_id": str(i), "model": f"m{k}", "score": draw.randint(0, 1), "note": "kept"}
        )
        for i in range(items)
        for name in NAMES
        for k in range(4)
    ]
    path.write_text("\n".join(lines) + "\n")
    return [line.encode() for line in lines]


def by_benchmark(values):
    sorted_out = {}
    for value in values:
        sorted_out.setdefault(json.loads(value)["benchmark"], []).append(value)
    return sorted_out


def sent_to(kafka, topic):
    return asyncio.run(read_all(kafka, topic))


def test_all_of_a_file_reaches_its_partitions_in_order(kafka, topic, tmp_path):
    lines = results(tmp_path / "r.jsonl", 500)
    ended = rankwatch("send", tmp_path, "--to", kafka.url(topic), "--data-dir", tmp_path / "d")
    assert f"{len(lines):,} events of {len(NAMES)} benchmarks sent to {kafka.url(topic)}" in ended.stdout
    records = sent_to(kafka, topic)
    assert by_benchmark(r.value for r in records) == by_benchmark(map(mark_imported, lines))
    for record in records:
        assert record.key.decode() == json.loads(record.value)["benchmark"]
        assert record.partition == owner(record.key.decode(), PARTITIONS)


def test_a_second_run_sends_what_is_new_and_again_means_again(kafka, topic, tmp_path):
    path, to = tmp_path / "r.jsonl", ("--to", kafka.url(topic))
    lines = results(path, 20)
    env = {"XDG_STATE_HOME": str(tmp_path / "state")}
    rankwatch("send", path, *to, "--items", "20", **env)
    assert "nothing new sent" in rankwatch("send", path, *to, "--items", "20", **env).stdout
    with path.open("ab") as file:
        file.write(lines[0] + b"\n")
    assert "1 event of 1 benchmark sent" in rankwatch("send", path, *to, "--items", "20", **env).stdout
    stays = rankwatch("send", path, *to, "--items", "30", **env)
    assert "stays as it was declared" in stays.stderr
    changed = rankwatch("send", path, *to, "--items", f"{NAMES[0]}=30", **env)
    assert f"{NAMES[0]}: declared again, as version 2: items = 30 (was 20)" in changed.stderr
    rankwatch("send", path, *to, "--items", f"{NAMES[0]}=30", **env)
    sent = len(sent_to(kafka, topic))
    assert sent == len(lines) + len(NAMES) + 2, "each benchmark is declared once, and one of them again"
    rankwatch("send", path, *to, "--again", **env)
    assert len(sent_to(kafka, topic)) == sent + len(lines) + 1


def test_packed_messages_and_declarations(kafka, topic, tmp_path):
    lines = results(tmp_path / "r.jsonl", 700)
    rankwatch("send", tmp_path, "--to", kafka.url(topic), "--packed", "--items", "700", "--data-dir", tmp_path / "d")
    received = {name: [] for name in NAMES}
    for record in sent_to(kafka, topic):
        name, value = record.key.decode(), json.loads(record.value)
        assert record.partition == owner(name, PARTITIONS)
        if "declare" in value:
            assert value == {"declare": name, "items": 700, "known": True, "declared_late": ["items"]}, (
                "the files had scores"
            )
            assert not received[name], "the declaration comes first"
        else:
            assert len(value["events"]) <= 1_000
            received[name] += value["events"]
    wanted = {name: [json.loads(v) for v in values] for name, values in by_benchmark(lines).items()}
    assert received == {
        name: [{key: e[key] for key in e if key != "note"} for e in events] for name, events in wanted.items()
    }


def test_killed_and_run_again_nothing_is_missing(kafka, topic, tmp_path):
    path = tmp_path / "r.jsonl"
    lines = results(path, 6_000)
    # What the later runs send of a benchmark that has begun is news; here every run writes the same bytes.
    arguments = (path, "--announce", "--to", kafka.url(topic), "--data-dir", tmp_path / "d")
    command = [RANKWATCH, "send", *map(str, arguments)]
    (tmp_path / "d").mkdir()
    kills = 0
    for _ in range(6):
        running = forked.start(command, env=environment(), stdout=subprocess.DEVNULL)
        before = _state(tmp_path)
        while running.poll() is None and _state(tmp_path) == before:
            time.sleep(0.01)
        running.kill()
        kills += running.wait() == -signal.SIGKILL
    rankwatch("send", *arguments)
    values = [r.value for r in sent_to(kafka, topic)]
    firsts = {name: list(dict.fromkeys(events)) for name, events in by_benchmark(values).items()}
    assert firsts == {name: list(dict.fromkeys(events)) for name, events in by_benchmark(lines).items()}
    assert kills >= 2
    assert len(values) < 2 * len(lines)


def _state(folder):
    return [path.read_bytes() for path in (folder / "d").glob("sent/*.json")]


def test_bad_lines_are_named_and_counted(kafka, topic, tmp_path):
    path = tmp_path / "r.jsonl"
    results(path, 5)
    with path.open("ab") as file:
        file.write(b'{"benchmark": "gpqa", "item_id": "1", "model": "m", "score": -7}\n')
    ended = rankwatch("send", path, "--to", kafka.url(topic), "--data-dir", tmp_path / "d")
    assert f"{path}:121: score: -7" in ended.stderr
    assert "lines not sent because they could not be read: 1" in ended.stderr


def test_a_score_on_another_scale_ends_the_command(kafka, topic, tmp_path):
    path = tmp_path / "r.jsonl"
    results(path, 5)
    with path.open("ab") as file:
        file.write(b'{"benchmark": "gpqa", "item_id": "1", "model": "m", "score": 7}\n')
    ended = rankwatch("send", path, "--to", kafka.url(topic), "--data-dir", tmp_path / "d", code=1)
    assert (
        f"gpqa: scores are not from 0 to 1 (1 above it, the largest 7, the first in {path}:121); add --scale 10 if they go up to 10"
        in ended.stderr
    )
    assert "120 events of 6 benchmarks sent before the stop" in ended.stderr


def test_refusals_say_what_to_do(kafka, tmp_path):
    path = tmp_path / "r.jsonl"
    results(path, 1)
    send = ("send", path, "--data-dir", tmp_path / "d", "--to")
    assert "--create --topic nowhere" in rankwatch(*send, kafka.url("nowhere"), code=1).stderr
    assert "no answer" in rankwatch(*send, "kafka://127.0.0.1:1/events", code=1).stderr
    assert "kafka://host:port" in rankwatch(*send, "ftp://localhost/", code=2).stderr
    assert "kafka://host:port" in rankwatch(*send, "localhost:9092", code=2).stderr
    assert "does not exist" in rankwatch("send", tmp_path / "no", "--to", kafka.url("x"), code=2).stderr


@pytest.mark.skipif(shutil.which("javac") is None, reason="needs a JDK (Debian: apt-get install default-jdk-headless)")
def test_the_java_client_puts_keys_on_the_same_partitions(kafka, tmp_path):
    source = tmp_path / "Owner.java"
    source.write_text(
        """
        import java.nio.charset.StandardCharsets;
        import org.apache.kafka.clients.producer.internals.BuiltInPartitioner;

        public class Owner {
            public static void main(String[] names) {
                for (int k = 1; k < names.length; k++) {
                    byte[] key = names[k].getBytes(StandardCharsets.UTF_8);
                    System.out.println(BuiltInPartitioner.partitionForKey(key, Integer.parseInt(names[0])));
                }
            }
        }
        """
    )
    names = [*NAMES, *(f"bench-{k}" for k in range(50))]
    command = [
        "java",
        "-Dfile.encoding=UTF-8",
        "-Dsun.jnu.encoding=UTF-8",
        "-cp",
        classpath(),
        str(source),
        "7",
        *names,
    ]
    ended = subprocess.run(command, capture_output=True, text=True, check=True, env=environment(LC_ALL="C.UTF-8"))
    assert [int(line) for line in ended.stdout.split()] == [owner(name, 7) for name in names]
