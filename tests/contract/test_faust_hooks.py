"""The parts of Faust and mode that the transports rely on without their being documented.

If one of these fails after an upgrade, read the transport against the new Faust before moving the pin.
"""

import asyncio
import inspect
import subprocess
import sys
from importlib.metadata import version

import faust
import pytest
from faust import streams
from faust.app.base import App, BootStrategy
from faust.tables import TableManager
from faust.tables.recovery import Recovery
from faust.transport import conductor, consumer, drivers
from faust.types import TP, ConsumerMessage

from monitor.log import faust_app
from monitor.log.faust_app import make_app
from monitor.log.file import transport as file
from monitor.log.file.log import FileLog
from schemas.records.chunks import Chunk

CHUNK = Chunk(partition=0, start=58, end=66, offsets=[58], records=[b'{"a":1}'])


@pytest.fixture
def app(tmp_path):
    return make_app((tmp_path / "log.jsonl").as_uri(), "events", app_id="hooks")


def message(app, generation=0):
    return ConsumerMessage(
        "events", 0, 58, 0.0, 0, None, None, CHUNK, None, tp=TP("events", 0), generation_id=generation
    )


def test_the_pinned_versions_are_installed():
    pinned = {"faust-streaming": "0.15.3", "mode-streaming": "0.7.1", "aiokafka": "0.14.0"}
    assert {name: version(name) for name in pinned} == pinned


def test_the_entry_point_gives_faust_our_transport():
    assert drivers.by_url("file:///somewhere/log.jsonl") is file.Transport


def parameters(function):
    return list(inspect.signature(function).parameters)


@pytest.mark.parametrize(
    ("owner", "name", "expected"),
    [
        (consumer.Consumer, "_drain_messages", ["self", "fetcher"]),
        (consumer.Consumer, "_getmany", ["self", "active_partitions", "timeout"]),
        (consumer.Consumer, "_to_message", ["self", "tp", "record"]),
        (consumer.Consumer, "_seek", ["self", "partition", "offset"]),
        (consumer.Consumer, "seek_to_committed", ["self"]),
        (consumer.Consumer, "subscribe", ["self", "topics"]),
        (consumer.Consumer, "on_partitions_assigned", ["self", "assigned", "generation_id"]),
        (App, "on_rebalance_start", ["self"]),
        (App, "_on_agent_error", ["self", "agent", "exc"]),
        (App, "_create_directories", ["self"]),
        (TableManager, "_update_channels", ["self"]),
        (BootStrategy, "_should_enable_kafka_producer", ["self"]),
    ],
)
def test_what_is_overridden_or_called_is_still_there(owner, name, expected):
    assert parameters(getattr(owner, name, None)) == expected


@pytest.mark.parametrize(
    ("caller", "call"),
    [
        # The fetcher runs our loop; with acks=False nothing else reads the offsets that Faust tracks.
        (consumer.Fetcher._fetcher, "consumer._drain_messages(self)"),
        # The position is taken once, before the fetcher starts.
        (Recovery._resume_streams, "consumer.perform_seek()"),
        (Recovery._resume_streams, "_fetcher.maybe_start()"),
        (consumer.Consumer.perform_seek, "await self.seek_to_committed()"),
        (consumer.Consumer.seek, "await self._seek(partition, offset)"),
        # Why `subscribe` must not await the assignment, and `NoTables` need not wait.
        (App._on_partitions_assigned, "self.topics.maybe_wait_for_subscriptions"),
        (conductor.Conductor._subscriber, "await self.app.tables.wait_until_tables_registered()"),
        (TableManager._update_channels, "self._tables_registered.set()"),
        (TableManager.on_start, "await self.recovery.start()"),
        (App.on_first_start, "self._create_directories()"),
        # What `FaustApp.fold_by` does in its place, but for the last of these.
        (App.agent, "self.conf.Agent("),
        (App.agent, "on_error=self._on_agent_error"),
        (App.agent, "self.agents[agent.name] = agent"),
        (App.agent, "self.topics.beacon.add(agent)"),
        (App.agent, "venusian.attach(agent, category=SCAN_AGENT)"),
    ],
)
def test_faust_still_calls_what_we_override(caller, call):
    assert call in inspect.getsource(getattr(caller, "fun", caller))


def test_nothing_abstract_is_left_open():
    assert not file.Consumer.__abstractmethods__


async def test_the_schema_hands_the_chunk_through_without_a_copy(app):
    event = await app.chunks.decode(message(app))
    assert event.value is CHUNK
    assert event.key is None


@pytest.mark.parametrize("iterator", ["compiled", "python"])
@pytest.mark.parametrize("doubt", ["generation", "flow"])
async def test_streams_drop_messages_of_another_generation_and_all_of_them_when_flow_is_suspended(
    tmp_path, monkeypatch, iterator, doubt
):
    """What makes a seek, and a failed agent, discard whatever is buffered."""
    if iterator == "python":
        monkeypatch.setattr(streams, "_CStreamIterator", None)
    elif streams._CStreamIterator is None:
        pytest.skip("this Faust was built without its compiled stream iterator")

    log = FileLog.open(tmp_path / "log.jsonl")
    app = make_app(log.path.as_uri(), "events", app_id="hooks")
    app.file_log = log
    app.flow_control.resume()
    app.consumer_generation_id = 1
    received = []
    async with app.stream(app.channel(maxsize=3)) as stream:
        for generation in (0, 1, 1):
            stream.channel.queue.put_nowait(app.create_event(None, generation, None, message(app, generation)))

        expected = [1, 1] if doubt == "generation" else [1]
        complete = asyncio.Event()

        async def receive():
            async for value in stream:
                received.append(value)
                if received == expected:
                    complete.set()
                if doubt == "flow":
                    app.flow_control.suspend()

        task = asyncio.create_task(receive())
        await asyncio.wait_for(complete.wait(), 30)
        await asyncio.sleep(0.05)  # for what should not come
        task.cancel()
        await asyncio.wait((task,))
    assert received == expected
    await log.close()


def test_the_boot_leaves_out_what_would_listen_or_elect(app):
    assert list(BootStrategy(app).web_server()) == []
    assert list(app.boot_strategy.kafka_producer()) == []
    assert app.conf.topic_disable_leader
    assert not app.conf.topic_allow_declare
    assert app.chunks.acks is False
    assert app.conf.TableManager is faust_app.NoTables
    assert app.conf.stream_buffer_maxsize == 1


def test_the_environment_of_other_programs_does_not_reach_the_settings(tmp_path, monkeypatch):
    for name, value in {"BROKER_URL": "kafka://elsewhere", "WEB_ENABLED": "1", "STREAM_BUFFER_MAXSIZE": "4096"}.items():
        monkeypatch.setenv(name, value)
    url = (tmp_path / "log.jsonl").as_uri()
    ours = make_app(url, "events", app_id="hooks")
    assert [str(broker) for broker in ours.conf.broker] == [url]
    assert not ours.conf.web_enabled
    assert ours.conf.stream_buffer_maxsize == 1
    # The reason for env={}: without it, Faust prefers the environment to its own arguments.
    assert str(faust.App("theirs", broker=url).conf.broker[0]) == "kafka://elsewhere"


RUN = """
import asyncio
from monitor.log.file.log import FileLog
from monitor.log.faust_app import make_app

async def main():
    log = FileLog.open("data/log.jsonl")
    app = make_app(log.path.as_uri(), "events", app_id="quiet")
    app.file_log = log

    async def stored_offsets(assigned):
        return {}

    app.stored_offsets = stored_offsets
    folded = asyncio.Event()

    async def fold(stream):
        async for chunk in stream:
            assert chunk.records == [b"1"]
            folded.set()

    app.fold_by(fold)
    await app.start()
    await log.append([b"1"])
    await asyncio.wait_for(folded.wait(), 10)
    await app.stop()
    await log.close()

asyncio.run(main())
"""


def test_an_application_says_nothing_leaves_nothing_and_warns_of_nothing(tmp_path):
    """Within a program of its own: no banner, no log hijacked, no directory made, no coroutine forgotten."""
    (tmp_path / "data").mkdir()
    ended = subprocess.run(
        [sys.executable, "-X", "dev", "-c", RUN],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert (ended.returncode, ended.stdout) == (0, "")
    ours = [line for line in ended.stderr.splitlines() if "Warning" in line and "DeprecationWarning" not in line]
    assert ours == []
    assert sorted(path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*")) == [
        "data",
        "data/log.jsonl",
        "data/log.jsonl.lock",
    ]


@pytest.mark.parametrize("wrong", ["missing", "another"])
async def test_the_log_must_be_the_one_of_the_url(tmp_path, app, wrong):
    log = FileLog.open(tmp_path / "other.jsonl")
    app.file_log = log if wrong == "another" else None
    with pytest.raises(ValueError, match=r"open .*/log\.jsonl with FileLog\.open and set app\.file_log"):
        await app.start()
    await log.close()


async def test_the_progress_of_a_chunk_that_ended_early_is_where_it_goes_on(app):
    """A seek goes back into the chunk; Kafka was told its end, so nobody saw the lag of a partition that waits."""
    event = type("Event", (), {"message": message(app)})()
    tp = TP("events", 0)
    app.progress.on_stream_event_in(tp, 58, None, event)
    app.progress.next[tp] = 60
    app.progress.on_stream_event_out(tp, 58, None, event)
    assert app.progress.done[tp] == 60
    app.progress.on_stream_event_in(tp, 60, None, event)
    app.progress.on_stream_event_out(tp, 60, None, event)
    assert app.progress.done[tp] == CHUNK.end
