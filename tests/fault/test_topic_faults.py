"""What writers and operators do to a topic while the service folds it: each is noticed, and none makes a count wrong."""

import json
import signal
import time

import pytest
from aiokafka import AIOKafkaProducer, TopicPartition
from aiokafka.admin import NewPartitions, RecordsToDelete

from schemas.records.ownership import owner
from tests.commands import PATIENCE, get, rankwatch, until
from tests.kafka.run_worker import RunReader, worker_starter

pytestmark = pytest.mark.kafka


@pytest.fixture
def service(kafka, topic, tmp_path):
    """Starts workers on the test's topic."""
    with worker_starter(kafka, topic, tmp_path, linger_seconds="0.2") as starter:
        yield starter


def event(item, benchmark="bench", model="m", score=1):
    return json.dumps({"benchmark": benchmark, "item_id": str(item), "model": model, "score": score}).encode()


async def send(kafka, topic, values, partition=0, headers=()):
    async with AIOKafkaProducer(bootstrap_servers=kafka.addresses) as producer:
        for value in values:
            await producer.send(topic, value, partition=partition, headers=list(headers))
        await producer.flush()


def ready(worker):
    until(lambda: get(f"{worker.url()}/readyz")[0] == 200, f"the worker to be ready: {worker.log_text}")


def offset(service, topic, partition=0):
    """How far the state of a partition is."""
    meta = service.redis.contents(f"{{{topic}:{partition}}}:meta")
    return next((int(fields.get(b"off", 0)) for fields in meta.values()), 0)


def folded(service, topic, end, partition=0):
    until(lambda: offset(service, topic, partition) == end, f"partition {partition} to be folded to {end}")


def read(service):
    """The reports and the metrics of a reader of the topic."""
    reader = service(command=RunReader)
    until(reader.ready, f"the reader to be ready: {reader.log_text}")
    reports = {each["benchmark"]: each for each in json.loads(reader.get("/api/v1/benchmarks")[2])["benchmarks"]}
    return reports, reader.get("/metrics")[2]


def ended(worker):
    """What a worker reports last, that ends on its own with exit 1."""
    assert worker.process.wait(PATIENCE) == 1, worker.log_text
    assert "Traceback" not in worker.log_text, worker.log_text
    return worker.log_text.strip().splitlines()[-1]


@pytest.mark.fault(
    "attacks", "forged origins of misrouted records, over a real topic", "not believed; every event counts"
)
async def test_a_forged_origin_hides_no_misrouted_event(kafka, topic, service):
    """A writer of the topic announces copies of all records to come; before, the real copies were dropped without a count."""
    await kafka.create_topic(topic, 2)
    home = owner("bench", 2)
    away = 1 - home
    forged = [
        ("rankwatch-origin", b"%d:%d:0" % (away, 10**9)),
        ("rankwatch-origin", b"%d:%d:0:%032d" % (away, 10**9, 0)),
    ]
    for k, header in enumerate(forged):
        await send(kafka, topic, [event(f"forged {k}")], home, [header])
    await send(kafka, topic, [event(k) for k in range(20)], away)
    worker = service()
    folded(service, topic, 22, home)
    folded(service, topic, 20, away)
    board = read(service)[0]["bench"]
    assert (board["items"], board["events"], board["duplicates"]) == (22, 22, 0)
    assert f'rankwatch_republished_total{{partition="{home}"}} 20.0' in get(f"{worker.url()}/metrics")[1]


@pytest.mark.fault(
    "kafka",
    "Redis lost or older, and retention has deleted records",
    "refused; with `--accept-gap` each benchmark that may be partial reports it permanently",
)
async def test_records_that_were_deleted_before_they_were_folded_are_never_missed_silently(kafka, topic, service):
    """Redis was lost, or restored from an older copy, and retention has passed a part; before, the rest was folded as if whole."""

    async def delete(before):
        async with kafka.admin() as admin:
            await admin.delete_records({TopicPartition(topic, 0): RecordsToDelete(before_offset=before)})

    await kafka.create_topic(topic)
    await send(kafka, topic, [event(k, "old") for k in range(60)] + [event(k) for k in range(40)])
    await delete(60)
    message = ended(service())
    assert (
        f"partition 0 of {topic} begins at offset 60, and the state is empty: records 0 to 59 were deleted" in message
    )
    assert "import a `state export`, fold a topic that has them, or start with --accept-gap" in message
    assert offset(service, topic) == 0
    worker = service(accept_gap="true")
    folded(service, topic, 100)
    reports, metrics = read(service)
    assert reports["bench"]["partial"] == (
        "records 0 to 59 of partition 0 of the log were lost before they were folded, so scores or declarations may be missing"
    )
    assert 'rankwatch_partial{benchmark="bench"} 1.0' in metrics
    stop(worker)

    await send(kafka, topic, [event(k, "later") for k in range(100)])
    await delete(150)
    assert "begins at offset 150, and the state is folded up to offset 100: records 100 to 149 " in ended(service())
    worker = service(accept_gap="true")
    folded(service, topic, 200)
    stop(worker)
    worker = service()
    ready(worker)
    boards, _ = read(service)
    assert boards["bench"]["events"] == 40
    assert boards["later"]["events"] == 50
    for board in boards.values():
        assert "records 0 to 59 of partition 0; 100 to 149 of partition 0 of the log" in board["partial"]
    doctor = rankwatch("doctor", "--broker", kafka.addresses, "--topic", topic, "--redis-url", service.redis.url).stdout
    assert "records 0 to 59 of partition 0; 100 to 149 of partition 0" in doctor
    service.redis.flush()
    await send(kafka, topic, [event("last")])
    assert "the state is empty: records 0 to 149 were deleted" in ended(worker)
    doctor = rankwatch(
        "doctor", "--broker", kafka.addresses, "--topic", topic, "--redis-url", service.redis.url, code=1
    ).stdout
    assert "begins at offset 150, and the state is empty" in doctor


def stop(worker):
    worker.process.terminate()
    assert worker.process.wait(PATIENCE) == 0, worker.log_text


@pytest.mark.fault(
    "kafka",
    "topic deleted and created again while a worker runs or is frozen",
    "exit 1 with the reason; the state is unchanged",
)
@pytest.mark.parametrize("moment", ["running", "frozen"])
async def test_records_of_a_topic_that_was_created_again_are_never_folded_onto_the_old_state(
    kafka, topic, service, moment
):
    """Before, records 50 to 119 of the new topic were folded, and 0 to 49 skipped: the worker had not left its group."""
    await kafka.create_topic(topic)
    await send(kafka, topic, [event(k) for k in range(50)])
    worker = service(kafka_session_seconds="30")
    folded(service, topic, 50)
    ready(worker)
    before = service.redis.contents(f"{{{topic}:0}}:*")
    if moment == "frozen":
        worker.signal(signal.SIGSTOP)
    await kafka.delete_topic(topic)
    await kafka.create_topic(topic)
    await send(kafka, topic, [event(k, "new") for k in range(120)])
    if moment == "frozen":
        worker.signal(signal.SIGCONT)
    message = ended(worker)
    assert f"topic {topic} was deleted and created again: its id is " in message
    assert "nothing of the new topic was folded. Use another topic name for it" in message
    after = service.redis.contents(f"{{{topic}:0}}:*")
    assert {key: value for key, value in after.items() if b":pairs:" not in key} == {
        key: value for key, value in before.items() if b":pairs:" not in key
    }


@pytest.mark.fault("kafka", "partitions added while a worker runs", "exit 1 with the reason within 10 s")
async def test_added_partitions_end_a_worker_within_seconds(kafka, topic, service):
    await kafka.create_topic(topic, 2)
    worker = service()
    ready(worker)
    async with kafka.admin() as admin:
        await admin.create_partitions({topic: NewPartitions(3)})
    begin = time.monotonic()
    assert f"the partition count of topic {topic} is now 3, and its state was folded with 2: it decides where" in ended(
        worker
    )
    assert time.monotonic() - begin < 10
    assert "belongs to another log" in ended(service())
