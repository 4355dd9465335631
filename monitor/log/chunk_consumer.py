"""Shared parts of the Faust consumers, whose messages are chunks."""
# Faust's interfaces have parameters that chunks do not need.

from typing import TYPE_CHECKING

from faust.transport import base
from faust.types import TP, ConsumerMessage

from schemas.records.chunks import Chunk

if TYPE_CHECKING:
    from monitor.log.faust_app import FaustApp


class ChunkConsumer(base.Consumer):  # type: ignore[misc]
    """A Faust consumer that delivers chunks and creates no topics."""

    app: "FaustApp"

    def _to_message(self, tp: TP, chunk: Chunk) -> ConsumerMessage:
        return ConsumerMessage(
            topic=tp.topic,
            partition=tp.partition,
            offset=chunk.start,
            timestamp=0.0,
            timestamp_type=0,
            headers=None,
            key=None,
            value=chunk,
            checksum=None,
            tp=tp,
            generation_id=self.app.consumer_generation_id,
        )

    async def create_topic(self, *args: object, **kwargs: object) -> None:
        """Do nothing: a file log is its topic, and `monitor.publish.topics` creates those of Kafka."""

    def _new_topicpartition(self, topic: str, partition: int) -> TP:
        return TP(topic, partition)
