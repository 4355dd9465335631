"""Encode verdict changes for the outbox, and decode them.

An entry of the outbox is a part of the changes of a commit, in the order of their ids. It has all that they are made from, because their
benchmark may have been deleted since.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple
from zlib import crc32

import msgspec
import numpy as np

from monitor.engine.latch.records import RECORD, LatchRecords, Records, Terms, latch_of
from monitor.store.latches import OF_WHOLE, OrderedLatches
from monitor.store.layout import Keys
from monitor.store.load import refusal
from schemas.records.scores import Contestant
from schemas.results.changes import AnyChange, read_change
from schemas.results.verdict_changes import Order, VerdictChanges
from stats.numerics.pairs import pair_members

_PART: Final = 500  # changes of an entry: as many as a relay reads at once

_CRC: Final = 8
_NUMBER: Final = 32  # bits of a number of terms, or of a contestant, in a key of a benchmark and that number

_encode: Final = msgspec.json.Encoder().encode
_decode: Final = msgspec.json.Decoder().decode


class Announced(NamedTuple):
    """The new changes of one benchmark."""

    name: str
    contestants: Sequence[Contestant] | Mapping[int, Contestant]
    latches: OrderedLatches

    @classmethod
    def of(cls, name: str, changes: VerdictChanges, latches: OrderedLatches) -> "Announced":
        """Return the changes of a benchmark, given as records too."""
        # Columns that were loaded know the contestants of that time. Contestants are only ever appended, so the longest list is all of
        # them.
        return cls(name, max((each.contestants for each in changes.columns), key=len, default=()), latches)


class Part(NamedTuple):
    """An entry of the outbox."""

    last: bytes  # the id of its last change, which is its own
    data: bytes  # see `parts`
    changes: int


def parts(boards: Sequence[Announced]) -> Iterator[Part]:
    r"""Yield the changes of benchmarks as entries of the outbox, in the order of their ids.

    The data of an entry is eight hexadecimal digits, the CRC-32 of the rest; a JSON array, and ``\n``; then its changes,
    `monitor.engine.latch.records.RECORD` each. The array has a list ``[name, contestants]`` for each benchmark, where contestants are
    ``[number, model, epoch]``, and a list ``[place of the benchmark, values of Terms]`` for each that a record names. An object with
    ``field`` and ``change`` in place of the values is a change that is kept whole.
    """
    boards = [board for board in boards if board.latches.records.size]
    if not boards:
        return
    records = np.concatenate([board.latches.records for board in boards])
    of = np.repeat(np.arange(len(boards)), [board.latches.records.size for board in boards])
    if len(boards) > 1:
        order = np.lexsort((records["sequence"], records["offset"]))
        records, of = records[order], of[order]
    for start in range(0, records.size, _PART):
        yield _part(boards, records[start : start + _PART].copy(), of[start : start + _PART])


def _part(boards: Sequence[Announced], records: Records, of: Any) -> Part:  # noqa: ANN401 - an array of places
    """Return an entry; `of` has the place of the benchmark of each record."""
    used, numbers = np.unique(of << _NUMBER | records["terms"], return_inverse=True)
    lines = [boards[each >> _NUMBER].latches.lines[each & ((1 << _NUMBER) - 1)] for each in used.tolist()]
    records["terms"] = numbers
    made = np.array([line.startswith(b"[") for line in lines])[numbers]
    pair, _, _ = latch_of(records["sequence"][made])
    members = np.unique([of[made] << _NUMBER | each for each in pair_members(pair.astype(np.int64))])
    known: dict[int, list[tuple[int, str, int]]] = defaultdict(list)
    for each in members.tolist():
        number = each & ((1 << _NUMBER) - 1)
        known[each >> _NUMBER].append((number, *boards[each >> _NUMBER].contestants[number]))
    places = {board: place for place, board in enumerate(dict.fromkeys((used >> _NUMBER).tolist()))}
    names = [(boards[board].name, known[board]) for board in places]
    terms = [
        (places[board], msgspec.Raw(line.rstrip()))
        for board, line in zip((used >> _NUMBER).tolist(), lines, strict=True)
    ]
    rest = _encode((names, terms)) + b"\n" + records.tobytes()
    last = b"%d-%d" % (records["offset"][-1], records["sequence"][-1])
    return Part(last, b"%08x%b" % (crc32(rest), rest), records.size)


def changes_of(data: bytes, after: Order, count: int, keys: Keys) -> list[AnyChange]:
    """Return the first changes of an entry whose ids are after one."""
    rest = memoryview(data)[_CRC:]
    if b"%08x" % crc32(rest) != data[:_CRC]:
        raise refusal(keys, "an entry of the outbox")
    end = data.index(b"\n", _CRC)
    names, terms = _decode(data[_CRC:end])
    records = np.frombuffer(data, RECORD, offset=end + 1)
    offset, sequence = after
    later = (records["offset"] > offset) | (records["offset"] == offset) & (records["sequence"] > np.uint64(sequence))
    records = records[later][:count]
    made: list[Any] = [None] * records.size
    shared = [OF_WHOLE if isinstance(values, dict) else Terms.read(values) for _, values in terms]
    whole = np.array([isinstance(values, dict) for _, values in terms])[records["terms"]]
    board = np.array([place for place, _ in terms])[records["terms"]]
    for place in np.flatnonzero(whole).tolist():
        made[place] = read_change(terms[records["terms"][place]][1]["change"])
    for number in np.unique(board[~whole]).tolist():
        name, listed = names[number]
        contestants = {k: Contestant(model, epoch) for k, model, epoch in listed}
        some = np.flatnonzero((board == number) & ~whole)
        changes = LatchRecords(name, contestants, shared, records[some]).changes()
        for place, change in zip(some.tolist(), changes, strict=True):
            made[place] = change
    return made
