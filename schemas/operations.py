"""Records by which an operator acts on a benchmark; workers fold them in the order of the log, as they fold events."""

from typing import Annotated, Literal

import msgspec

from schemas.names import MAX_NAME_LENGTH


class Release(msgspec.Struct, forbid_unknown_fields=True):
    """Ends the quarantine of a benchmark: its later records count again."""

    quarantine: Literal["release"]
    benchmark: Annotated[str, msgspec.Meta(min_length=1, max_length=MAX_NAME_LENGTH)]


_RELEASE = msgspec.json.Decoder(Release)


def encode_release(benchmark: str) -> bytes:
    r"""Return the record that releases a benchmark.

    >>> encode_release("mmlu")
    b'{"quarantine":"release","benchmark":"mmlu"}'
    """
    return msgspec.json.encode(Release("release", benchmark))


def decode_release(record: bytes) -> Release | None:
    """Decode a record that releases a benchmark; return None for any other.

    >>> decode_release(encode_release("mmlu")).benchmark
    'mmlu'
    >>> decode_release(b'{"benchmark":"mmlu"}')
    """
    if b'"quarantine"' not in record:
        return None
    try:
        return _RELEASE.decode(record)
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        return None
