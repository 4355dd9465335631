"""Records by which an operator acts on a benchmark; workers fold them in the order of the log, as they fold events."""

from typing import Annotated, Final, Literal, NamedTuple, get_args

import msgspec

from schemas.records.names import MAX_NAME_LENGTH, name_fault

_Name = Annotated[str, msgspec.Meta(min_length=1, max_length=MAX_NAME_LENGTH)]

BoardAction = Literal["archive", "restore", "delete", "reopen", "rename", "undo", "undone"]
"""What an operator may do with a board; `undone` ends the copies that follow an `undo`."""

AskedAction = Literal["archive", "restore", "delete", "reopen", "rename", "undo"]  # the same, as a request asks for it

BOARD_ACTIONS: Final[tuple[BoardAction, ...]] = get_args(BoardAction)


LATEST: Final = 253_402_300_799_000  # the end of the year 9999, in milliseconds since 1970


class Release(msgspec.Struct, forbid_unknown_fields=True):
    """Ends the quarantine of a benchmark: its later records count again."""

    quarantine: Literal["release"]
    benchmark: _Name


class BoardChange(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True):
    """Archives, restores, deletes, reopens or renames the board of a benchmark, or begins it again without some of its records."""

    board: BoardAction  # the action
    benchmark: _Name
    title: _Name | None = None  # the name to show from a rename on; None or the name itself: no other
    producer: _Name | None = None  # of an undo: whose events are withdrawn
    # of an undo: from which time on, in milliseconds since 1970; None: all of them
    since: Annotated[int, msgspec.Meta(ge=0, le=LATEST)] | None = None
    # of an undo: the model whose events are withdrawn; of a rename: the model that is renamed, in place of the board
    model: _Name | None = None
    kept: Annotated[int, msgspec.Meta(ge=0)] = 0  # of an undo: how many events stay, at least


class Undone(NamedTuple):
    """An undo that has begun, and how many events it withdraws and keeps; None where it goes on with one that was interrupted."""

    withdrawn: int | None
    kept: int | None
    in_force: bool = False


_RELEASE = msgspec.json.Decoder(Release)
_BOARD_CHANGE = msgspec.json.Decoder(BoardChange)


def encode_release(benchmark: str) -> bytes:
    r"""Return the record that releases a benchmark.

    >>> encode_release("mmlu")
    b'{"quarantine":"release","benchmark":"mmlu"}'
    """
    return msgspec.json.encode(Release("release", benchmark))


def encode_board_change(change: BoardChange) -> bytes:
    r"""Return the record that changes a board.

    >>> encode_board_change(BoardChange("archive", "mmlu"))
    b'{"board":"archive","benchmark":"mmlu"}'
    """
    return msgspec.json.encode(change)


def decode_operation(record: bytes) -> Release | BoardChange | None:
    """Decode a record by which an operator acts; return None for any other.

    >>> decode_operation(encode_release("mmlu")).benchmark
    'mmlu'
    >>> decode_operation(b'{"board":"rename","benchmark":"mmlu","title":"MMLU"}').title
    'MMLU'
    >>> decode_operation(b'{"benchmark":"mmlu"}')
    >>> decode_operation(b'{"board":"burn","benchmark":"mmlu"}')
    """
    decoder: msgspec.json.Decoder[Release] | msgspec.json.Decoder[BoardChange]
    if b'"quarantine"' in record:
        decoder = _RELEASE
    elif b'"board"' in record:
        decoder = _BOARD_CHANGE
    else:
        return None
    try:
        operation = decoder.decode(record)
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        return None
    names = (getattr(operation, name, None) for name in ("benchmark", "title", "producer", "model"))
    return None if any(name is not None and name_fault(name) for name in names) else operation
