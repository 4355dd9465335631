"""The parts of Faust and aiokafka that the Kafka transport relies on without their being documented.

If one of these fails after an upgrade, read the transport against the new version before moving the pin.
"""

import inspect
from types import SimpleNamespace

import pytest
from aiokafka import AIOKafkaConsumer, TopicPartition
from aiokafka.client import AIOKafkaClient
from aiokafka.conn import AIOKafkaConnection
from aiokafka.consumer.fetcher import Fetcher as KafkaFetcher
from aiokafka.consumer.fetcher import FetchResult, PartitionRecords
from aiokafka.consumer.group_coordinator import GroupCoordinator
from aiokafka.coordinator.assignors.sticky.sticky_assignor import StickyPartitionAssignor
from aiokafka.protocol.api import Request
from faust.app.base import App
from faust.sensors import Sensor
from faust.streams import Stream
from faust.tables.recovery import Recovery
from faust.transport import consumer, drivers
from faust.transport.drivers import aiokafka as driver
from faust.types import TP
from mode import Service

from monitor.log.faust_app import make_app
from monitor.log.kafka import transport as kafka
from monitor.log.kafka.connection import KafkaConnection
from monitor.log.kafka.settings import KafkaSettings


def test_the_entry_point_goes_before_the_transport_that_faust_brings_along():
    assert drivers.by_url("kafka://one:9092/events") is kafka.Transport
    assert drivers.by_url("aiokafka://one:9092") is driver.Transport


def test_nothing_abstract_is_left_open():
    assert not kafka.Consumer.__abstractmethods__


@pytest.mark.parametrize(
    ("owner", "name", "expected"),
    [
        (consumer.Consumer, "on_partitions_revoked", ["self", "revoked"]),
        (consumer.Consumer, "on_partitions_assigned", ["self", "assigned", "generation_id"]),
        (consumer.Consumer, "on_buffer_full", ["self", "tp"]),
        (consumer.Consumer, "on_buffer_drop", ["self", "tp"]),
        (consumer.Consumer, "commit", ["self", "topics", "start_new_transaction"]),
        (consumer.Consumer, "_commit", ["self", "offsets"]),
        (KafkaFetcher, "_proc_fetch_request", ["self", "assignment", "node_id", "request"]),
        (PartitionRecords, "_unpack_records", ["self"]),
        (PartitionRecords, "_consume_aborted_up_to", ["self", "batch_offset"]),
        (PartitionRecords, "_contains_abort_marker", ["self", "next_batch"]),
        (Sensor, "on_stream_event_in", ["self", "tp", "offset", "stream", "event"]),
        (Sensor, "on_stream_event_out", ["self", "tp", "offset", "stream", "event", "state"]),
    ],
)
def test_what_is_overridden_is_still_there(owner, name, expected):
    function = inspect.unwrap(getattr(owner, name))
    assert list(inspect.signature(getattr(function, "fun", function)).parameters) == expected


@pytest.mark.parametrize(
    ("caller", "call"),
    [
        # Revocation: the flow is stopped and the buffers are emptied before the chunk in hand is waited for.
        (App._on_partitions_revoked, "self.flow_control.suspend"),
        (App._on_partitions_revoked, "self.flow_control.clear"),
        # Assignment: the pauses of the application come after these.
        (App._on_partitions_assigned, "consumer.pause_partitions)(assigned)"),
        (Recovery._resume_streams, "consumer.resume_partitions("),
        # Nothing compares generations any more once the offsets are sought.
        (Recovery._resume_streams, "consumer.perform_seek(), timeout=self.app.conf.broker_request_timeout"),
        # Why the time to load is bounded below Faust's own: when that is over, it only stops.
        (Recovery._wait, "if wait_result.stopped"),
        (Service.wait_first, "return WaitResults([], [], True)"),
        # Who calls `commit`, and when.
        (consumer.Consumer._commit_handler, "await self.commit()"),
        (consumer.Consumer.on_stop, "await self.commit_and_end_transactions()"),
        (consumer.Consumer.commit_and_end_transactions, "await self.commit(start_new_transaction=False)"),
        # Why the cancellation is swallowed on stop.
        (consumer.Fetcher._fetcher, "if self.app.rebalancing"),
        # By this error the application learns of a consumer that was never started.
        (App._stop_consumer, "except ConsumerNotStarted"),
        # Sensors see a chunk when the agent takes it, after the check of its generation, and when it asks for the next.
        (Stream._py_aiter, "on_stream_event_in(tp, offset, self, event)"),
        (Stream._py_aiter, "on_stream_event_out(tp, offset, self, event, sensor_state)"),
        # aiokafka keeps the member alive in the revocation, and drops what was fetched before a seek.
        (GroupCoordinator._on_join_prepare, "await res"),
        (GroupCoordinator.ensure_active_group, "await self._stop_heartbeat_task()"),
        (KafkaFetcher.seek_to, "del self._records[tp]"),
        (FetchResult.check_assignment, "if position != self._partition_records.next_fetch_offset"),
        # The records and the position after them are taken in one step.
        (FetchResult.getall, "self._update_position()"),
        (AIOKafkaConsumer.position, "if not tp_state.has_valid_position"),
        # RecordSlices in the place of records: who asks for the next one, when nothing has been taken yet, and what is counted.
        (KafkaFetcher._fetch_requests_routine, "self._proc_fetch_request(assignment, node_id, request)"),
        (KafkaFetcher._proc_fetch_request, "self._records[tp] = FetchResult("),
        (PartitionRecords.__init__, "self._records_iterator = self._unpack_records()"),
        (PartitionRecords.__next__, "return next(self._records_iterator)"),
        (FetchResult.getall, "for msg in self._partition_records:"),
        (FetchResult.getall, "len(ret_list) >= max_records"),
        (FetchResult._update_position, "consumed_to(self._partition_records.next_fetch_offset)"),
        # The topic is asked for on a connection of its own, with a request of our own.
        (AIOKafkaClient._get_conn, "conn_id = (node_id, group)"),
        (AIOKafkaConnection.send, "request_struct = request.prepare(self._versions)"),
        (Request.prepare, "raise NotImplementedError"),
        # Why every worker has an assignor class of its own.
        (StickyPartitionAssignor.on_assignment, "cls.member_assignment = "),
    ],
)
def test_what_is_relied_on_is_still_done(caller, call):
    assert call in inspect.getsource(getattr(caller, "fun", caller))


def test_after_a_fetch_was_entered_nobody_sees_it_before_it_is_in_runs():
    """The client goes on to the end of the fetch without waiting for anything."""
    source = inspect.getsource(KafkaFetcher._proc_fetch_request)
    assert "await " not in source[source.index("fetch_offset = fetch_offsets[tp]") :]


def test_the_revocation_waits_after_the_flow_is_stopped():
    source = inspect.getsource(App._on_partitions_revoked)
    assert source.index("self.flow_control.suspend") < source.index("self.flow_control.clear")


def test_an_application_for_kafka_has_settings_and_chunks_by_bytes():
    ours = make_app("kafka://one:9092,two/events", "events", app_id="group")
    assert ours.kafka == KafkaSettings(addresses="one:9092,two:9092")
    assert ours.chunk_bytes == 4 << 20
    given = KafkaSettings(addresses="three:1")
    assert make_app("kafka://one/events", "events", app_id="group", kafka=given).kafka is given
    assert isinstance(ours.transport, kafka.Transport)


def test_a_url_that_is_none_is_refused():
    with pytest.raises(ValueError, match="use kafka://host:port"):
        make_app("kafka:///events", "events", app_id="group")


async def test_a_partition_that_a_rebalance_has_assigned_to_nobody_has_no_known_end():
    """The watcher of a worker asks at any moment, and the client raises then."""
    client = AIOKafkaConsumer("events")
    try:
        with pytest.raises(AssertionError):
            client.highwater(TopicPartition("events", 0))
        assert KafkaConnection.highwater(SimpleNamespace(_kafka=client), TP("events", 0)) is None
    finally:
        await client.stop()
