"""What the doctor makes of facts: each setting that is wrong gives exactly one finding, which says what to do."""

import os

import pytest

from monitor.publish.topics import Topic
from monitor.service import loops
from monitor.service.doctor.data_dir import check_data_dir
from monitor.service.doctor.kafka import check_topic
from monitor.service.doctor.redis import check_server
from monitor.service.doctor.state import check_positions
from monitor.store.server.connection import cuts_transactions
from monitor.store.server.health import ServerFacts
from monitor.store.transfer.transfer import Position
from schemas.records.chunks import Gap

GOOD = Topic(
    "events",
    8,
    3,
    config={
        "cleanup.policy": "delete",
        "retention.ms": "604800000",
        "retention.bytes": "-1",
        "max.message.bytes": "1048588",
        "min.insync.replicas": "2",
    },
)
SERVER = ServerFacts(
    "localhost:6379/0", "7.2.4", "redis", "master", "noeviction", True, "always", None, 0.001, 0.002, False
)


def with_config(**settings):
    return Topic("events", 8, 3, config=GOOD.config | {key.replace("_", "."): value for key, value in settings.items()})


def wrong(findings):
    return [finding for finding in findings if finding.level != "ok"]


def test_nothing_is_said_of_what_is_as_it_should_be():
    assert not wrong(check_topic(GOOD, 3, "localhost:9092"))
    assert not wrong(check_server(SERVER))


@pytest.mark.parametrize(
    ("topic", "level", "advice"),
    [
        (with_config(cleanup_policy="compact"), "fault", "--add-config cleanup.policy=delete"),
        (with_config(cleanup_policy="compact,delete"), "fault", "--add-config cleanup.policy=delete"),
        (with_config(min_insync_replicas="4"), "fault", "--add-config min.insync.replicas=2"),
        (with_config(min_insync_replicas="1"), "warning", "--add-config min.insync.replicas=2"),
        (with_config(min_insync_replicas="3"), "warning", "--add-config min.insync.replicas=2"),
        (with_config(retention_ms="3600000"), "warning", "--add-config retention.ms=604800000"),
        (with_config(retention_bytes="1000000"), "warning", "--add-config retention.bytes=-1"),
        (with_config(max_message_bytes="65536"), "warning", "--add-config max.message.bytes=1048588"),
        (Topic("events", 1, 3, config=GOOD.config), "warning", "before the first run"),
        (Topic("events", 8, 1, config=GOOD.config | {"min.insync.replicas": "1"}), "warning", "use 3"),
        (Topic("events", 8, 3, (2, 5), GOOD.config), "fault", "brokers back"),
        (Topic("events", 8, 3), "warning", "DescribeConfigs"),
    ],
)
def test_a_topic_setting_that_is_wrong(topic, level, advice):
    (finding,) = wrong(check_topic(topic, 4, "localhost:9092"))
    assert finding.level == level
    assert advice in finding.advice


def test_fewer_brokers_than_replicas_in_sync_needed():
    (finding,) = wrong(check_topic(GOOD, 1, "localhost:9092"))
    assert (finding.level, finding.subject) == ("fault", "replicas")


def test_retention_for_ever_is_right():
    assert not wrong(check_topic(with_config(retention_ms="-1"), 3, "localhost:9092"))


@pytest.mark.parametrize(
    ("changed", "level", "advice"),
    [
        ({"version": "6.0.16"}, "fault", "6.2"),
        ({"cuts_transactions": True}, "warning", "use Valkey 9.1.2"),
        ({"role": "slave"}, "fault", "primary"),
        ({"eviction": "allkeys-lru"}, "fault", "CONFIG SET maxmemory-policy noeviction"),
        ({"memory_ratio": 0.9}, "warning", "raise it"),
        ({"appendonly": False}, "warning", "appendonly yes"),
        ({"appendfsync": "no"}, "warning", "CONFIG SET appendfsync always"),
        ({"appendfsync": None}, "warning", "everysec"),
        ({"clock_skew": 30.0}, "warning", "NTP"),
        ({"clock_skew": -30.0}, "warning", "NTP"),
    ],
)
def test_a_server_that_is_wrong(changed, level, advice):
    (finding,) = wrong(check_server(ServerFacts(**SERVER.__dict__ | changed)))
    assert finding.level == level
    assert advice in finding.advice


@pytest.mark.parametrize(
    ("info", "cuts"),
    [
        ({"redis_version": "6.2.5"}, True),
        ({"redis_version": "8.2.3"}, True),
        ({"redis_version": "7.2.4", "server_name": "valkey", "valkey_version": "9.1.1"}, True),
        ({"redis_version": "7.2.4", "server_name": "valkey", "valkey_version": "9.1.2"}, False),
        ({"redis_version": "7.2.4", "server_name": "valkey", "valkey_version": "10.0.0"}, False),
    ],
)
def test_servers_that_cut_a_torn_file_inside_a_transaction(info, cuts):
    assert cuts_transactions(info) == cuts


def test_which_way_the_clock_is_off():
    (ahead,) = wrong(check_server(ServerFacts(**SERVER.__dict__ | {"clock_skew": -30.0})))
    assert "30.0 s later than" in ahead.fact


def test_fsync_every_second_is_right():
    assert not wrong(check_server(ServerFacts(**SERVER.__dict__ | {"appendfsync": "everysec"})))


def test_a_folder_that_can_be_made(tmp_path):
    (finding,) = check_data_dir(tmp_path / "a" / "b")
    assert finding.level == "ok"
    assert "to be created" in finding.fact
    assert not list(tmp_path.iterdir())


def test_a_folder_that_is_a_file(tmp_path):
    (tmp_path / "file").write_bytes(b"")
    (finding,) = check_data_dir(tmp_path / "file")
    assert finding.level == "fault"


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_that_may_not_be_written(tmp_path):
    tmp_path.chmod(0o500)
    (finding,) = check_data_dir(tmp_path)
    assert (finding.level, "permission" in finding.fact.lower()) == ("fault", True)


def test_a_topic_that_lost_what_was_not_folded_and_a_state_with_gaps():
    positions = {0: Position(100, []), 1: Position(200, [Gap(1, 0, 60)])}
    assert not wrong(check_positions("events", {0: 100, 2: 0}, {0: positions[0]}, accept_gap=False))
    lost, empty, partial = wrong(check_positions("events", {0: 150, 1: 60, 2: 5}, positions, accept_gap=False))
    assert (lost.level, empty.level, partial.level) == ("fault", "fault", "warning")
    assert lost.fact == "partition 0 of events begins at offset 150, and the state is folded up to offset 100"
    assert "records 100 to 149 were deleted before they were folded" in lost.advice
    assert empty.fact == "partition 2 of events begins at offset 5, and the state is empty"
    assert partial.fact == "partition 1 of events: records 0 to 59 of partition 1 were deleted before they were folded"
    assert {each.level for each in check_positions("events", {0: 150}, positions, accept_gap=True)} == {"warning"}


def test_the_log_of_a_data_directory_is_read_to_its_end(tmp_path):
    log = tmp_path / "log.jsonl"
    log.write_bytes(b"no log")
    (finding,) = wrong(check_data_dir(tmp_path))
    assert (finding.level, finding.fact) == ("fault", "damaged")


def test_loops_that_are_not_compiled_are_named(monkeypatch, tmp_path):
    monkeypatch.setattr(loops, "mode", lambda: "compiled")
    monkeypatch.setattr(loops, "cache_folder", lambda: tmp_path)
    assert loops.check_loops().level == "warning"
    (tmp_path / "complete").touch()
    assert loops.check_loops().level == "ok"
    monkeypatch.setattr(loops, "mode", lambda: "interpreted")
    assert loops.check_loops().level == "warning"
    assert "rankwatch[fast]" in loops.check_loops().advice
