"""Digests of a stored state: bytes that the server lost, doubled or changed are detected when it is loaded, and never used.

Strings that only grow have a length and a CRC-32. Score cells, peaks and hash fields have 64-bit hashes that are added up, so that a chunk
costs what it changes and not what is stored. The digests guard against faults of servers, disks and memory; they are not signatures.
"""

import json
from collections.abc import Iterable, Mapping
from hashlib import blake2b
from typing import Any, Final
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from monitor.store.layout import OF_ONE_KIND, TermNumbers
from schemas.records.scores import ABSENT, SKIPPED

FIELD: Final = "seal"  # the field of ``:meta`` and ``:spec:<b>`` that holds the digests

GROWING: Final = ("rows", "models", "values", "family", "conflicts", "latches", "terms", *OF_ONE_KIND)
"""Kinds of strings that are written at their end only."""

TABLES: Final = ("arrival", "again")  # kinds of strings with a few numbers per contestant

_WHOLE: Final = (1 << 64) - 1
_FACTORS: Final = np.array([0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB], np.uint64)
_SHIFT: Final = np.uint64(29)

Column = NDArray[Any] | int


def hash_sum(*columns: Column) -> int:
    """Return the sum modulo 2^64 of one hash for each row of some columns of integers (at most three).

    >>> rows = np.array([3, 4]), np.array([0, 1])
    >>> hash_sum(*rows) == (hash_sum(np.array([3]), np.array([0])) + hash_sum(np.array([4]), np.array([1]))) % 2**64
    True
    """
    mixed: NDArray[np.uint64] = np.zeros(1, np.uint64)
    for column, factor in zip(columns, _FACTORS, strict=False):
        mixed = (mixed ^ np.asarray(column).astype(np.uint64)) * factor + factor
        mixed ^= mixed >> _SHIFT
    return int(mixed.sum(dtype=np.uint64))


def field_hash(field: str | bytes, value: bytes | str | int) -> int:
    """Return the 64-bit hash of a field of a Redis hash and its value."""
    name = field.encode() if isinstance(field, str) else field
    data = value if isinstance(value, bytes) else str(value).encode()
    return int.from_bytes(blake2b(data, digest_size=8, key=name[:64]).digest(), "little")


def moved_spec(spec: Mapping[str, str], off: int) -> dict[str, str]:
    """Return the fields of ``:spec:<b>`` at an offset of another log, with the digest changed by that; a wrong digest stays wrong."""
    digests = json.loads(spec[FIELD])
    digests["fields"] = (digests["fields"] - field_hash("off", spec["off"]) + field_hash("off", off)) & _WHOLE
    return {**spec, "off": str(off), FIELD: json.dumps(digests, separators=(",", ":"))}


class FieldHashes:
    """The hashes of the fields of one Redis hash, and their sum modulo 2^64."""

    def __init__(self, *without: str) -> None:
        self._without = {name.encode() for name in without}
        self._hashes: dict[bytes, int] = {}
        self.sum = 0

    def __len__(self) -> int:
        """Return the number of fields."""
        return len(self._hashes)

    def set(self, fields: Mapping[Any, Any], *, once: bool = False) -> None:
        """Write fields; with `once`, those that do not exist yet."""
        for name, value in fields.items():
            field = name.encode() if isinstance(name, str) else name
            old = self._hashes.get(field)
            if field in self._without or (once and old is not None):
                continue
            new = self._hashes[field] = field_hash(field, value)
            self.sum = (self.sum + new - (old or 0)) & _WHOLE

    def remove(self, name: str) -> None:
        """Remove a field, if it exists."""
        self.sum = (self.sum - self._hashes.pop(name.encode(), 0)) & _WHOLE


class BenchmarkSeal:
    """The digests of one benchmark: computed from what was loaded, or updated with what is written."""

    def __init__(self) -> None:
        self.ends = dict.fromkeys(GROWING, 0)
        self._crc = dict.fromkeys(GROWING, 0)
        self._tables = {kind: bytearray() for kind in TABLES}
        self._peaks = np.zeros(0, np.uint64)
        self._sums = {"scores": 0, "peaks": 0}
        self.fields = FieldHashes(FIELD, "at")
        self.numbers = TermNumbers()

    def digests(self) -> dict[str, Any]:
        """Return the digests by what they cover, as stored."""
        written = [kind for kind in GROWING if kind not in OF_ONE_KIND or self.ends[kind]]
        growing: dict[str, Any] = {kind: [self.ends[kind], self._crc[kind]] for kind in written}
        tables = {kind: [len(data), crc32(data)] for kind, data in self._tables.items()}
        return {"fields": self.fields.sum} | growing | tables | self._sums

    def grow(self, kind: str, data: bytes) -> int:
        """Add bytes at the end of a string; return where they begin."""
        start = self.ends[kind]
        self._crc[kind] = crc32(data, self._crc[kind])
        self.ends[kind] = start + len(data)
        return start

    def replace(self, kind: str, data: bytes) -> None:
        """Replace a growing string."""
        self.ends[kind], self._crc[kind] = len(data), crc32(data)

    def write(self, kind: str, place: NDArray[Any], state: NDArray[Any]) -> None:
        """Write the numbers of some contestants, int64 of shape (contestants, columns)."""
        data, width = self._tables[kind], state.shape[1]
        data.extend(bytes(max(0, 8 * width * (int(place.max(initial=-1)) + 1) - len(data))))
        np.frombuffer(data, "<i8").reshape(-1, width)[place] = state

    def load_table(self, kind: str, data: bytes) -> None:
        """Take over a stored table."""
        self._tables[kind] = bytearray(data)

    def peaks(self, pair: NDArray[np.int64], peak: NDArray[np.float64]) -> None:
        """Write the peaks of some pairs."""
        size = int(pair.max(initial=-1)) + 1
        if size > self._peaks.size:
            self._peaks = np.concatenate([self._peaks, np.zeros(size + size // 4 - self._peaks.size, np.uint64)])
        new = np.ascontiguousarray(peak, "<f8").view(np.uint64)
        self._add("peaks", hash_sum(pair, new) - hash_sum(pair, self._peaks[pair]))
        self._peaks[pair] = new

    def load_peaks(self, peak: NDArray[np.float64]) -> None:
        """Take over stored peaks; a pair beyond them has none, as one with peak 0 that was written."""
        self.peaks(np.arange(peak.size), peak)

    def scores(
        self, row: Column, contestant: Column, code: NDArray[Any], filled: tuple[Column, Column] | None = None
    ) -> None:
        """Write score codes into absent cells, or into skipped ones: these are `filled`, as rows and contestants."""
        self._add("scores", hash_sum(row, contestant, code))
        if filled is not None:
            self._add("scores", -hash_sum(*filled, SKIPPED))

    def replace_scores(self, columns: Iterable[NDArray[Any]]) -> None:
        """Replace all score codes; one array for each contestant."""
        self._sums["scores"] = 0
        for contestant, column in enumerate(columns):
            (row,) = np.nonzero(column != ABSENT)
            self.scores(row, contestant, column[row])

    def _add(self, kind: str, value: int) -> None:
        self._sums[kind] = (self._sums[kind] + value) & _WHOLE


class PartitionSeal:
    """The digests of a partition."""

    def __init__(self) -> None:
        self.fields, self.names = FieldHashes("off", "writer", "seq", "log", FIELD), FieldHashes()
        self.benchmarks: dict[str, BenchmarkSeal] = {}

    def digests(self, off: int) -> dict[str, Any]:
        """Return the digests of a state at an offset, as stored."""
        return {"off": off, "fields": self.fields.sum, "benchmarks": [len(self.names), self.names.sum]}
