"""Create a topic as ``kafka-topics.sh --create --if-not-exists`` does, whose jar is not among those of the broker."""

import argparse
import asyncio

from aiokafka.admin import AIOKafkaAdminClient, NewTopic
from aiokafka.errors import for_code


async def create(chosen):
    """Create the topic, or leave one that exists unchanged."""
    admin = AIOKafkaAdminClient(bootstrap_servers=chosen.bootstrap_server)
    await admin.start()
    try:
        if chosen.topic in await admin.list_topics():
            return
        settings = dict(each.split("=", 1) for each in chosen.config)
        answer = await admin.create_topics(
            [NewTopic(chosen.topic, chosen.partitions, chosen.replication_factor, topic_configs=settings)]
        )
        for name, code, reason in answer.topic_errors:
            if code:
                raise for_code(code)(f"{name}: {reason}")
    finally:
        await admin.close()


def main():
    """Read the words of the script."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0], allow_abbrev=False)
    parser.add_argument("--bootstrap-server", required=True)
    parser.add_argument("--create", action="store_true", required=True)
    parser.add_argument("--if-not-exists", action="store_true", required=True)
    parser.add_argument("--topic", required=True)
    parser.add_argument("--partitions", type=int, required=True)
    parser.add_argument("--replication-factor", type=int, required=True)
    parser.add_argument("--config", action="append", default=[])
    asyncio.run(create(parser.parse_args()))


if __name__ == "__main__":
    main()
