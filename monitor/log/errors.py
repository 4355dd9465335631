"""The errors of a log. Each message ends with the fix."""


class LogError(Exception):
    """The log cannot be used as asked; its operator has to decide."""


class LogLocked(LogError):  # noqa: N818 - the state of the log is its name
    """Another process appends to this log."""


class LogDamaged(LogError):  # noqa: N818
    """The file is not a log that this version can read."""


class TopicChanged(LogError):  # noqa: N818
    """The topic is another one under the same name, or has another number of partitions."""


class LogClosed(LogError):  # noqa: N818
    """The log accepts no more appends: it was closed, or its disk failed permanently."""


class OffsetOutOfRange(LogError, ValueError):  # noqa: N818
    """No record of this log begins at the offset."""

    def __init__(self, message: str, partition: int | None = None) -> None:
        super().__init__(message)
        self.partition = partition


def outside(topic: str, partition: int, offset: int, holds: str) -> str:
    """Return why an offset cannot be read, where `holds` is the clause about what the partition holds."""
    return (
        f"offset {offset} is outside partition {partition} of {topic}, {holds}, because its retention has passed or the topic was created "
        "again; import the state from an export, or start over under another topic name"
    )
