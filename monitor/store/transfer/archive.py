"""Write and read the file that carries a state between servers: JSON lines with the contents of the keys of `monitor.store.layout`.

The first line is an `ArchiveHeader`. Then each partition has a line, followed by a line for each of its benchmarks. Binary values are in
base64. The last line has the count and digest of the lines before it, so that a truncated file is never taken for a whole one.
docs/reference/stored-state.md describes the format for other programs.
"""

import json
from base64 import b64decode
from collections.abc import AsyncIterator, Iterable, Iterator
from dataclasses import asdict, dataclass, field
from hashlib import blake2b
from typing import IO, Annotated, Any, Final, TypeVar

import msgspec

from monitor.store.errors import StoreError
from monitor.store.layout import dump_json
from schemas.records.names import name_fault

ARCHIVE_VERSION: Final = 1

_CHANGED: Final = "the file was changed; export again"

_Line = TypeVar("_Line")

_Partition = Annotated[int, msgspec.Meta(ge=0, lt=1 << 31)]
_Place = Annotated[int, msgspec.Meta(ge=0, le=1 << 62)]


class _Header(msgspec.Struct, forbid_unknown_fields=True):
    topic: str
    state_version: int
    statistics_version: int
    rankwatch_state: int


class _PartitionFields(msgspec.Struct, forbid_unknown_fields=True):
    partition: _Partition
    meta: dict[str, str]
    relays: dict[str, str] = {}
    outbox: list[tuple[Annotated[str, msgspec.Meta(pattern=r"^\d{1,19}-\d{1,19}$")], dict[str, str | int]]] = []


class _BenchmarkFields(msgspec.Struct, forbid_unknown_fields=True):
    partition: _Partition
    benchmark: str
    born: tuple[_Place, _Place]
    spec: dict[str, str]
    strings: dict[str, bytes]
    scores: list[bytes]


class ArchiveDamaged(StoreError):  # noqa: N818 - the state of the file is its name
    """The file is not an archive, or is incomplete or changed."""


@dataclass(frozen=True)
class ArchiveHeader:
    """The first line."""

    topic: str
    # state_version, statistics_version: versions of the program that wrote the state
    state_version: int
    statistics_version: int
    rankwatch_state: int = ARCHIVE_VERSION  # version of this format


@dataclass
class PartitionLine:
    """The line of a partition; its benchmarks have lines of their own."""

    partition: int
    meta: dict[str, str]  # the fields of ``:meta``
    relays: dict[str, str] = field(default_factory=dict)  # the last change that each publisher relayed
    # entries with verdict changes that some publisher lacks: id, fields
    outbox: list[tuple[str, dict[str, str | bytes]]] = field(default_factory=list)

    @property
    def waiting(self) -> int:
        """How many verdict changes its outbox has."""
        return sum(int(fields.get("count", 1)) for _, fields in self.outbox)


@dataclass
class BenchmarkLine:
    """The line of a benchmark."""

    partition: int
    benchmark: str  # its name
    born: list[int]  # the entry of ``:benchmarks``: offset and place of its first chunk
    spec: dict[str, str]  # the fields of this hash
    strings: dict[str, bytes]  # the stored values of `monitor.store.layout.STRINGS`
    scores: list[bytes]  # the stored codes of each contestant


class ArchiveWriter:
    """Writes an archive, which is complete after `end`."""

    def __init__(self, file: IO[bytes], header: ArchiveHeader) -> None:
        self._file, self._digest, self._lines = file, blake2b(digest_size=16), 0
        self._write(asdict(header))

    async def line(self, parts: AsyncIterator[str]) -> None:
        """Write a line, in parts as they come: a line may be larger than the memory that an export may take."""
        async for part in parts:
            self._add(part.encode("ascii"))
        self._end_line()

    def end(self) -> None:
        """Write the last line."""
        self._write({"end": self._lines, "blake2b": self._digest.hexdigest()})

    def _write(self, value: dict[str, Any]) -> None:
        self._add(dump_json(value).encode("ascii"))
        self._end_line()

    def _add(self, data: bytes) -> None:
        self._digest.update(data)
        self._file.write(data)

    def _end_line(self) -> None:
        self._add(b"\n")
        self._lines += 1


def read_archive(file: Iterable[bytes]) -> tuple[ArchiveHeader, Iterator[PartitionLine | BenchmarkLine]]:
    """Read the header; return it with an iterator over the other lines."""
    lines, digest = iter(file), blake2b(digest_size=16)
    first = next(lines, b"")
    data = _parse(first, 1)
    if data.get("rankwatch_state") != ARCHIVE_VERSION:
        version = data.get("rankwatch_state", "missing")
        raise ArchiveDamaged(
            f"line 1: rankwatch_state is {version}, not {ARCHIVE_VERSION}; give a file that `rankwatch state export` of this version wrote"
        )
    digest.update(first)
    return _make(ArchiveHeader, _Header, data, 1), _read_lines(lines, digest)


def _read_lines(lines: Iterator[bytes], digest: Any) -> Iterator[PartitionLine | BenchmarkLine]:  # noqa: ANN401 - a blake2b
    number = 1
    for line in lines:
        number += 1
        data = _parse(line, number)
        if "end" in data:
            if data != {"end": number - 1, "blake2b": digest.hexdigest()}:
                raise ArchiveDamaged(f"line {number} does not match the lines before it: {_CHANGED}")
            if next(lines, None) is not None:
                raise ArchiveDamaged(f"line {number + 1} comes after the end of the export: {_CHANGED}")
            return
        digest.update(line)
        if "benchmark" in data:
            yield _benchmark(data, number)
        else:
            yield _partition(data, number)
    raise ArchiveDamaged(f"the export ends at line {number} without its last line: it was truncated; export again")


def _partition(data: dict[str, Any], number: int) -> PartitionLine:
    line = _make(PartitionLine, _PartitionFields, data, number)
    try:
        line.outbox = [
            (
                identifier,
                {**entry, "latches": b64decode(entry["latches"], validate=True), "count": str(int(entry["count"]))},
            )
            for identifier, entry in data.get("outbox", [])
        ]
    except (KeyError, ValueError, TypeError, AttributeError) as error:
        raise ArchiveDamaged(f"line {number} does not hold the outbox of a partition: {_CHANGED}") from error
    return line


def _benchmark(data: dict[str, Any], number: int) -> BenchmarkLine:
    line = _make(BenchmarkLine, _BenchmarkFields, data, number)
    if (fault := name_fault(line.benchmark)) is not None:
        raise ArchiveDamaged(f"line {number}: the name of the benchmark {fault}: {_CHANGED}")
    return line


def _make(kind: type[_Line], fields: type[msgspec.Struct], data: dict[str, Any], number: int) -> _Line:
    try:
        return kind(**msgspec.structs.asdict(msgspec.convert(data, fields)))
    except msgspec.ValidationError as error:
        raise ArchiveDamaged(f"line {number} has other fields than an export: {error}: {_CHANGED}") from error


def _parse(line: bytes, number: int) -> dict[str, Any]:
    try:
        data = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise ArchiveDamaged(
            f"line {number} is not JSON: the file is not an export, or was truncated; export again"
        ) from error
    if not isinstance(data, dict):
        raise ArchiveDamaged(f"line {number} is not a JSON object: the file is not an export")
    return data
