"""Encode latches for the store, and decode them: records of a fixed size, and one line for each of their terms.

Earlier versions stored verdict changes whole, in hashes. These are read, and written as lines of terms by the next commit.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import numpy as np

from monitor.engine.latch.records import RECORD, LatchRecords, Records, Terms
from monitor.store.layout import CommitTimes, TermNumbers, dump_json
from schemas.records.scores import Contestant
from schemas.results.changes import change_order, read_change
from schemas.results.verdict_changes import VerdictChanges

LATCH_BYTES: Final = RECORD.itemsize
TIME_BYTES: Final = 8


class OrderedLatches(NamedTuple):
    """Latches in the order of their ids, and the lines of their terms, whose places the latches name."""

    records: Records
    lines: list[bytes]


@dataclass(frozen=True)
class PackedLatches:
    """Latches in the order of their ids, and the lines of those of their terms that are not stored yet."""

    records: bytes = b""
    terms: bytes = b""


def in_order(changes: VerdictChanges) -> OrderedLatches:
    """Return the changes of a benchmark as records in the order of their ids."""
    numbers: dict[bytes, int] = {}
    parts = []
    for columns in changes.columns:
        records = columns.records.copy()
        taken = [numbers.setdefault(_line(terms), len(numbers)) for terms in columns.terms]
        records["terms"] = np.array(taken, "<u4")[records["terms"]]
        parts.append(records)
    for name, change in changes.whole().items():
        records = np.zeros(1, RECORD)
        records["offset"], records["sequence"] = change_order(change.id)
        line = _line({"field": name, "change": change.as_dict()})
        records["terms"] = numbers.setdefault(line, len(numbers))
        parts.append(records)
    ordered = np.concatenate([np.zeros(0, RECORD), *parts])
    return OrderedLatches(ordered[np.lexsort((ordered["sequence"], ordered["offset"]))], list(numbers))


def pack(latches: OrderedLatches, numbers: TermNumbers) -> PackedLatches:
    """Encode new latches of a benchmark; new terms are numbered in the order of the ids."""
    if not latches.records.size:
        return PackedLatches()
    packed = latches.records.copy()
    used, first, place = np.unique(packed["terms"], return_index=True, return_inverse=True)
    new: list[bytes] = []
    taken = np.zeros(used.size, "<u4")
    for k in np.argsort(first).tolist():
        taken[k] = numbers.take(latches.lines[used[k]], new)
    packed["terms"] = taken[place]
    return PackedLatches(packed.tobytes(), b"".join(new))


def unpack(name: str, contestants: Sequence[Contestant], records: bytes, terms: bytes) -> VerdictChanges:
    """Decode the latches of a benchmark."""
    latches, shared, whole = _decode(records, terms)
    changes = VerdictChanges({each["field"]: read_change(each["change"]) for each in whole.values()})
    own = LatchRecords(name, contestants, shared, latches[~np.isin(latches["terms"], list(whole))])
    changes.extend(own.fields(), own)
    return changes


def unpack_times(last: float, records: bytes, terms: bytes, times: bytes) -> CommitTimes:
    """Decode the commit times of a benchmark; a time that was not stored is missing."""
    fields = stored_fields(records, terms)
    at = np.zeros(len(fields))
    stored = np.frombuffer(times[: len(times) // TIME_BYTES * TIME_BYTES], "<f8")[: at.size]
    at[: stored.size] = stored
    return CommitTimes(last, {name: when for name, when in zip(fields, at.tolist(), strict=True) if when})


def stored_fields(records: bytes, terms: bytes) -> list[str]:
    """Return the field of each stored latch in the table of latches, in the order of their ids."""
    latches, shared, whole = _decode(records, terms)
    rows = zip(latches["terms"].tolist(), LatchRecords("", (), shared, latches).fields(), strict=True)
    return [whole[k]["field"] if k in whole else name for k, name in rows]


def _decode(records: bytes, terms: bytes) -> tuple[Records, list[Terms], dict[int, dict[str, Any]]]:
    """Return the records, their terms, and the changes that are kept whole, by the number of their line."""
    lines = json.loads(b"[" + terms[:-1].replace(b"\n", b",") + b"]")
    shared = [Terms.read(line) if isinstance(line, list) else OF_WHOLE for line in lines]
    whole = {number: line for number, line in enumerate(lines) if isinstance(line, dict)}
    return np.frombuffer(records, RECORD), shared, whole


OF_WHOLE: Final = Terms(1, "", "", 0.0, 0.0, 0, False, False, False, (), 0.0, 0)
"""In place of the terms of a change that is kept whole."""


def _line(terms: object) -> bytes:
    return dump_json(terms).encode("ascii") + b"\n"
