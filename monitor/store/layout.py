"""Define the keys of a partition's state, and how rows, score codes and pair arrays are encoded in them.

All keys of a partition share the hash tag ``{<topic>:<partition>}``, so one script touches one slot. ``<b>`` is the digest of a
benchmark's name (`monitor.engine.state.changes.benchmark_key`): names are untrusted and never enter a key. Integers are little-endian.

=========================  ======  =====================================================================================
``:meta``                  HASH    off, writer, seq, log, seal (JSON), state_version, statistics_version, counters (JSON),
                                   source:<digest of path> (JSON: path, generation, position, prefix, line),
                                   file:<digest of path> (JSON: the fields of `FileReading`; empty where nothing is left),
                                   last (JSON: offset and digest of the last folded record), origin:<partition> (JSON),
                                   gaps (JSON: [partition, start, end] of records that were gone before they were folded),
                                   quarantine:<b> (JSON: the fields of `Suspect`; empty where it has ended),
                                   board:<b> (JSON: the fields of `BoardEntry`; empty for a board that is as it began)
``:benchmarks``            HASH    <b> -> JSON [off of the first chunk, place in that chunk, name]
``:spec:<b>``              HASH    name, off, seal (JSON, see `monitor.store.seal`), spec (JSON), width, counters (JSON),
                                   finding (JSON, see `OrderFinding`),
                                   undeclared (JSON, why a repeat holds it), ended (JSON, contestants whose runs have ended),
                                   gaps (as in ``:meta``: those that may have held records of the benchmark),
                                   seed (JSON, where the committed seed was declared first: offset, null; or line, file),
                                   runs (JSON, of a sentinel: what its journal does not show),
                                   unknown_units (JSON, whether an event named a unit while none was declared),
                                   at (wall clock of the last commit)
``:rows:<b>``              STRING  one JSON line [item, repeat, cluster] per row, in order
``:models:<b>``            STRING  one JSON line [model, epoch] per contestant, in order
``:values:<b>``            STRING  int64 per score after 0 and 1, in units of 1e-12: codes 4, 5, ...
``:scores:<b>:<k>``        STRING  contestant k: one code (uint8, or uint32 where width is 4) per row; missing ones are absent
``:family:<b>``            STRING  uint32 pair indices in the order of joining
``:arrival:<b>``           STRING  four int64 per contestant, see `monitor.engine.state.arrival`
``:conflicts:<b>``         STRING  the first 10,000 conflicts, four uint32 each: row, contestant, code that counts, refused code
``:peaks:<b>``             STRING  one float64 per pair: see `PairState.peak`; 0 for a pair that is far from a decision
``:again:<b>``             STRING  two int64 per contestant: duplicates and conflicts
``:votes:<b>``             STRING  of battles: six int32 per vote, see `monitor.engine.state.battles`; rows are then prompts
``:judges:<b>``            STRING  of battles: one JSON line [judge] per judge, in order
``:run_lines:<b>``         STRING  of a sentinel: one JSON line per item, run, close and announced change, in the order of the log
``:run_scores:<b>``        STRING  of a sentinel: its scores, `schemas.records.scores.RUN_SCORE` each
``:latches:<b>``           STRING  the latches in the order of their ids, `monitor.engine.latch.records.RECORD` each
``:terms:<b>``             STRING  one JSON line per entry that the field ``terms`` of a latch names: the values of `Terms`, or an object
                                   with field and change, as an earlier version has stored it
``:latched_at:<b>``        STRING  one float64 per latch: wall clock of the commit of its change, 0 if it is not known
``:pairs:<b>``             STRING  a snapshot, see `pack_snapshot`
``:outbox``                STREAM  up to 500 changes, under the id of the last one: latches (see `monitor.store.outbox.parts`), count and
                                   before (how many changes the entries ahead of it have more than one each)
``:relays``                HASH    publisher -> id of the last change it has relayed
``:notes:<publisher>``     HASH    <state>:<b> -> what the target of notifications was last notified of (`monitor.notify.states`)
=========================  ======  =====================================================================================

``{<topic>:origins}:key`` is a STRING that all partitions share: the key of `schemas.records.origins`, which no export contains.
"""

import gc
import json
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Final
from zlib import crc32

import msgspec
import numpy as np
from numpy.typing import NDArray

from monitor.engine.state.changes import Delta
from monitor.engine.state.stored import PairSnapshot
from schemas.records.scores import Contestant, RowKey

SNAPSHOT_VERSION: Final = 3
OF_ONE_KIND: Final = ("votes", "judges", "run_lines", "run_scores")
"""Kinds that only benchmarks with battles have, or only sentinels: nothing of them is written elsewhere."""

STRINGS: Final = (  # kinds that are one string per benchmark and cannot be rebuilt from other keys
    *("rows", "models", "values", "family", "arrival", "conflicts", "again", "peaks", "latches", "terms", "latched_at"),
    *OF_ONE_KIND,
)

IMPORTING: Final = -1  # the offset of an unfinished import: no worker is ever at it, so none uses the state

_ALIGNMENT: Final = 8
_encode: Final = json.JSONEncoder(separators=(",", ":")).encode
_LINES: Final = msgspec.json.Encoder()
_TOPIC: Final = re.compile(r"[A-Za-z0-9._-]{1,249}")
_PUBLISHER: Final = re.compile(r"[A-Za-z0-9._-]{1,100}")


def check_topic(topic: str) -> str:
    """Return the topic, or raise ValueError if it is not a topic name."""
    if not _TOPIC.fullmatch(topic):
        raise ValueError(f"topic {topic[:300]!r} is not a topic name; use 1-249 of A-Z a-z 0-9 . _ -")
    return topic


def check_publisher(publisher: str) -> str:
    """Return the publisher, or raise ValueError if it is not a publisher name."""
    if not _PUBLISHER.fullmatch(publisher):
        raise ValueError(f"publisher {publisher[:200]!r} is not a publisher name; use 1-100 of A-Z a-z 0-9 . _ -")
    return publisher


def dump_json(value: object) -> str:
    """Return a value as JSON without spaces."""
    return _encode(value)


class Keys:
    """Builds the keys of one partition.

    >>> Keys("evals", 3).meta
    '{evals:3}:meta'
    >>> Keys("evals", 3).score("0011223344556677", 5)
    '{evals:3}:scores:0011223344556677:5'
    """

    def __init__(self, topic: str, partition: int) -> None:
        if partition < 0:
            raise ValueError(f"partition {partition} is negative: partitions count from 0")
        self.tag = f"{{{check_topic(topic)}:{partition}}}"
        self.meta = f"{self.tag}:meta"
        self.benchmarks = f"{self.tag}:benchmarks"
        self.outbox = f"{self.tag}:outbox"
        self.relays = f"{self.tag}:relays"

    def of(self, kind: str, benchmark: str) -> str:
        """Return the key of a kind of one benchmark: spec, pairs, or one of `STRINGS`."""
        return f"{self.tag}:{kind}:{benchmark}"

    def score(self, benchmark: str, contestant: int) -> str:
        """Return the key of a contestant's scores."""
        return f"{self.tag}:scores:{benchmark}:{contestant}"

    def notes(self, publisher: str) -> str:
        """Return the key of what a target of notifications was notified of."""
        return f"{self.tag}:notes:{check_publisher(publisher)}"


def origin_secret_key(topic: str) -> str:
    """Return the key of the secret that signs origins; deleting the state of a partition does not delete it."""
    return f"{{{check_topic(topic)}:origins}}:key"


def code_type(width: int) -> np.dtype[Any]:
    """Return the stored type of a score code that takes `width` bytes."""
    return np.dtype("<u4" if width == 4 else "u1")


def pack_lines(records: Sequence[tuple[Any, ...]]) -> bytes:
    r"""Return one JSON line per record, in ASCII, so that no name can break a line.

    >>> pack_lines([("ä", 0, None)])
    b'["\\u00e4",0,null]\n'
    """
    lines = _LINES.encode_lines(records)
    # The fast encoder differs only for DEL and non-ASCII text, which few names hold.
    if lines.isascii() and b"\x7f" not in lines:
        return lines
    return "".join([_encode(record) + "\n" for record in records]).encode("ascii")


@contextmanager
def _collector_paused() -> Iterator[None]:
    """Pause the garbage collector: it doubles the time of a large load."""
    paused = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if paused:
            gc.enable()


def _unpack_lines(data: bytes) -> list[list[Any]]:
    # Parse all lines at once. JSON strings escape line breaks, so each line break here ends a record.
    return list(json.loads(b"[" + data[:-1].replace(b"\n", b",") + b"]"))


def unpack_rows(data: bytes) -> list[RowKey]:
    """Decode row keys that `pack_lines` encoded."""
    with _collector_paused():
        return list(map(RowKey._make, _unpack_lines(data)))


def unpack_lines(data: bytes) -> list[list[Any]]:
    """Decode lines that `pack_lines` encoded."""
    return _unpack_lines(data) if data else []


def unpack_judges(data: bytes) -> list[str]:
    """Decode judges that `pack_lines` encoded."""
    return [name for (name,) in _unpack_lines(data)]


def unpack_contestants(data: bytes) -> list[Contestant]:
    """Decode contestants that `pack_lines` encoded."""
    with _collector_paused():
        return list(map(Contestant._make, _unpack_lines(data)))


def pack_snapshot(snapshot: PairSnapshot) -> bytes:
    """Encode a snapshot: one JSON line, then the arrays."""
    # The line is an object with ``version``, ``off``, ``meta`` and ``arrays``, a list of {name, dtype (of NumPy, little-endian), shape,
    # at}; ``at`` is where the array's bytes begin, in C order, counted from the end of the line. The line is padded with spaces so that
    # every array begins at a multiple of 8 bytes of the whole. Its last field, ``crc``, is the CRC-32 of the line without it and of the
    # arrays.
    arrays, parts, at = [], [], 0
    for name, values in snapshot.arrays.items():
        dtype = values.dtype.newbyteorder("<")
        raw = np.ascontiguousarray(values, dtype).tobytes()
        arrays.append({"name": name, "dtype": dtype.str, "shape": list(values.shape), "at": at})
        padding = -len(raw) % _ALIGNMENT
        parts += [raw, bytes(padding)]
        at += len(raw) + padding
    header = {"version": SNAPSHOT_VERSION, "off": snapshot.off, "meta": snapshot.meta, "arrays": arrays}
    body = b"".join(parts)
    header["crc"] = _crc(header, body)
    line = _encode(header).encode("ascii")
    return b"".join([line, b" " * (-(len(line) + 1) % _ALIGNMENT), b"\n", body])


def _crc(header: dict[str, Any], body: bytes | memoryview) -> int:
    return crc32(body, crc32(_encode(header).encode("ascii")))


def unpack_snapshot(data: bytes) -> PairSnapshot | None:
    """Decode a snapshot without copying; return None for a damaged one or another version: pairs can be rebuilt from the rows."""
    start = data.find(b"\n") + 1
    try:
        header = json.loads(data[:start])
        crc = header.pop("crc")
    except (ValueError, KeyError, AttributeError):
        return None
    if header.get("version") != SNAPSHOT_VERSION or crc != _crc(header, memoryview(data)[start:]):
        return None
    arrays: dict[str, NDArray[Any]] = {}
    for array in header["arrays"]:
        size = int(np.prod(array["shape"], dtype=np.int64))
        values = np.frombuffer(data, array["dtype"], size, start + array["at"])
        arrays[array["name"]] = values.reshape(array["shape"])
    return PairSnapshot(header["off"], arrays, header["meta"])


@dataclass
class CommitTimes:
    """Seconds since 1970 of the commits of one benchmark."""

    last: float = 0.0  # the last commit that changed the benchmark; 0 if none is recorded
    # the commit of each verdict change, by field of the table of latches
    changes: dict[str, float] = field(default_factory=dict)


def record_commit(times: dict[str, CommitTimes], delta: Delta, at: float) -> None:
    """Record the time of a commit in every benchmark it changed; a verdict change keeps its first time."""
    for deleted in delta.deleted:
        times.pop(deleted.name, None)
    for changed in delta.benchmarks:
        benchmark = times.setdefault(changed.name, CommitTimes())
        benchmark.last = at
        for name in changed.changes:
            benchmark.changes.setdefault(name, at)


class TermNumbers:
    """The numbers of stored terms: their places among the lines."""

    def __init__(self, lines: bytes = b"") -> None:
        self._numbers: dict[bytes, int] = {}
        self.count = 0
        for line in lines.splitlines(keepends=True):
            self._number(line)

    def _number(self, line: bytes) -> int:
        number, self.count = self.count, self.count + 1
        # A change that is kept whole has a line of its own, which is never needed again.
        if line.startswith(b"["):
            self._numbers[line] = number
        return number

    def take(self, line: bytes, new: list[bytes]) -> int:
        """Return the number of a line; one that is not stored yet is added to `new`."""
        number = self._numbers.get(line)
        if number is None:
            number = self._number(line)
            new.append(line)
        return number
