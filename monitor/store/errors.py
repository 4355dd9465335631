"""What can be wrong with the state or with the server that holds it."""


class StoreError(Exception):
    """The store cannot do what was asked; the message says what to do about it."""


class StoreUnavailable(StoreError):  # noqa: N818 - the state of the server is its name
    """The server did not answer within the deadline."""


class StateRefused(StoreError):  # noqa: N818
    """The state, or the server, is not one that this program may write to."""


class StaleState(StoreError):  # noqa: N818
    """The stored state has another offset than the one a delta was made for: drop the state in memory, and load it again.

    Attributes
    ----------
    stored_off
        The offset that is stored; 0 when there is none.
    writer
        Who wrote it last; empty when nobody did.
    """

    def __init__(self, partition: int, expected: int, stored_off: int, writer: str) -> None:
        super().__init__(
            f"the state of partition {partition} stands at offset {stored_off} (written by {writer or 'nobody'}), not at {expected}: "
            "another worker has taken the partition over, or the server lost its last writes; load the state again and go on from there"
        )
        self.stored_off = stored_off
        self.writer = writer


def unfinished(tag: str, where: str) -> str:
    """Say what a state is whose import was not finished."""
    return (
        f"an import into the state {tag} at {where} is under way, or was killed: if it does not run any more, delete the state (redis-cli "
        f"--scan --pattern '{tag}:*' | xargs redis-cli DEL), and import again"
    )
