"""The errors of the store. Each message ends with the fix."""


class StoreError(Exception):
    """The store cannot do what was asked."""


class StoreUnavailable(StoreError):  # noqa: N818 - the state of the server is its name
    """The server did not answer within the timeout."""


class StateRefused(StoreError):  # noqa: N818
    """The state, or the server, is not one that this program may write to."""


class StaleState(StoreError):  # noqa: N818
    """The stored offset differs from the one a delta was made for: drop the state in memory and load it again."""

    def __init__(self, partition: int, expected: int, stored_off: int, writer: str) -> None:
        super().__init__(
            f"the state of partition {partition} is at offset {stored_off} (written by {writer or 'no worker'}), not at {expected}: "
            "another worker has taken over the partition, or the server lost its last writes; load the state again and continue from there"
        )
        self.stored_off = stored_off
        self.writer = writer
