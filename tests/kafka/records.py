"""The records of a topic, and how the clients under test reach the brokers."""

from itertools import count

from aiokafka import AIOKafkaConsumer, TopicPartition

from monitor.log.kafka.settings import KafkaSettings

_names = count()


def fresh_topic(name="events"):
    """A name that no other test has."""
    return f"{name}.{next(_names)}"


def options(cluster):
    """The keyword arguments of any client."""
    return KafkaSettings(addresses=cluster.addresses).client_options()


async def read_all(cluster, topic):
    """All records of a topic, partition after partition, each in its order."""
    async with cluster.admin() as admin:
        (described,) = await admin.describe_topics([topic])
    partitions = [TopicPartition(topic, p) for p in range(len(described["partitions"]))]
    async with AIOKafkaConsumer(bootstrap_servers=cluster.addresses, enable_auto_commit=False) as consumer:
        consumer.assign(partitions)
        await consumer.seek_to_beginning()
        ends = await consumer.end_offsets(partitions)
        records = {partition: [] for partition in partitions}
        for partition in partitions:
            while await consumer.position(partition) < ends[partition]:
                for found_in, fetched in (await consumer.getmany(timeout_ms=200)).items():
                    records[found_in] += fetched
    return [record for partition in partitions for record in records[partition]]
