"""The file that carries a state from one server to another: JSON lines, each holding what the keys of `monitor.store.layout` hold.

The first line is an `ArchiveHeader`, then comes a line for each partition, followed by a line for each of its benchmarks. Bytes that are
no text are in base64. The last line counts the lines before it and has their digest, so that half a file is never taken for a whole one.
docs/reference/stored-state.md describes it for other programs.
"""

import json
from base64 import b64decode, b64encode
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, field
from hashlib import blake2b
from typing import IO, Any, Final, TypeVar

from monitor.store.errors import StoreError
from monitor.store.layout import dump_json

ARCHIVE_VERSION: Final = 1

_Line = TypeVar("_Line")


class ArchiveDamaged(StoreError):  # noqa: N818 - the state of the file is its name
    """What is read is no archive, or not the whole of one."""


@dataclass(frozen=True)
class ArchiveHeader:
    """The first line.

    Attributes
    ----------
    topic : str
        Whose state it is.
    state_version, statistics_version : int
        Of the program that wrote the state.
    rankwatch_state : int
        Version of this format.
    """

    topic: str
    state_version: int
    statistics_version: int
    rankwatch_state: int = ARCHIVE_VERSION


@dataclass
class PartitionLine:
    """A partition, without its benchmarks.

    Attributes
    ----------
    partition : int
    meta : dict of str to str
        The fields of ``:meta``.
    relays : dict of str to str
        How far each publisher has relayed.
    outbox : list of (str, str)
        Verdict changes that not every publisher has: id, change (JSON).
    """

    partition: int
    meta: dict[str, str]
    relays: dict[str, str] = field(default_factory=dict)
    outbox: list[tuple[str, str]] = field(default_factory=list)


@dataclass
class BenchmarkLine:
    """A benchmark.

    Attributes
    ----------
    partition : int
    benchmark : str
        Its name.
    born : list
        The entry of ``:benchmarks``: offset and place of its first chunk.
    spec, verdicts, times : dict of str to str
        The fields of these hashes.
    strings : dict of str to bytes
        ``rows``, ``models``, ``values`` and ``family``, as they are stored.
    scores : list of bytes
        For each contestant its codes, as they are stored.
    """

    partition: int
    benchmark: str
    born: list[int]
    spec: dict[str, str]
    verdicts: dict[str, str]
    strings: dict[str, bytes]
    scores: list[bytes]
    times: dict[str, str] = field(default_factory=dict)


class ArchiveWriter:
    """Writes an archive; it is whole once `end` was called."""

    def __init__(self, file: IO[bytes], header: ArchiveHeader) -> None:
        self._file, self._digest, self._lines = file, blake2b(digest_size=16), 0
        self._write(asdict(header))

    def partition(self, line: PartitionLine) -> None:
        """Write a partition; its benchmarks follow."""
        self._write(asdict(line))

    def benchmark(self, line: BenchmarkLine) -> None:
        """Write a benchmark of the last partition."""
        encoded = {name: _encoded(value) for name, value in line.strings.items()}
        self._write({**vars(line), "strings": encoded, "scores": [_encoded(codes) for codes in line.scores]})

    def end(self) -> None:
        """Write the last line."""
        self._write({"end": self._lines, "blake2b": self._digest.hexdigest()})

    def _write(self, value: dict[str, Any]) -> None:
        line = dump_json(value).encode("ascii") + b"\n"
        self._digest.update(line)
        self._lines += 1
        self._file.write(line)


def read_archive(file: Iterable[bytes]) -> tuple[ArchiveHeader, Iterator[PartitionLine | BenchmarkLine]]:
    """Read the header, and return it with the lines that follow.

    Raises
    ------
    ArchiveDamaged
        If it is no archive of this version; and from the iterator, if it is cut off or changed: nothing may be kept of it then.
    """
    lines, digest = iter(file), blake2b(digest_size=16)
    first = next(lines, b"")
    data = _parsed(first, 1)
    if data.get("rankwatch_state") != ARCHIVE_VERSION:
        found = data.get("rankwatch_state", "no such field")
        raise ArchiveDamaged(
            f"line 1 is not the beginning of an exported state of format {ARCHIVE_VERSION} (rankwatch_state: {found}): give a file that "
            "`rankwatch state export` has written, by a version of rankwatch that writes this format"
        )
    digest.update(first)
    return _made(ArchiveHeader, data, 1), _following(lines, digest)


def _following(lines: Iterator[bytes], digest: Any) -> Iterator[PartitionLine | BenchmarkLine]:  # noqa: ANN401 - a blake2b
    number = 1
    for line in lines:
        number += 1
        data = _parsed(line, number)
        if "end" in data:
            if data != {"end": number - 1, "blake2b": digest.hexdigest()}:
                raise ArchiveDamaged(
                    f"line {number} does not match the {number - 1} lines before it: the file was changed"
                )
            if next(lines, None) is not None:
                raise ArchiveDamaged(f"line {number + 1} stands behind the end of the export: the file was changed")
            return
        digest.update(line)
        if "benchmark" in data:
            yield _benchmark(data, number)
        else:
            yield _made(PartitionLine, data, number)
    raise ArchiveDamaged(f"the export ends at line {number} without its last line: it was cut off; export again")


def _benchmark(data: dict[str, Any], number: int) -> BenchmarkLine:
    try:
        data["strings"] = {name: b64decode(value, validate=True) for name, value in data["strings"].items()}
        data["scores"] = [b64decode(codes, validate=True) for codes in data["scores"]]
    except (KeyError, ValueError, TypeError, AttributeError) as fault:
        raise ArchiveDamaged(
            f"line {number} does not hold the arrays of a benchmark ({fault}): the file was changed"
        ) from fault
    return _made(BenchmarkLine, data, number)


def _made(kind: type[_Line], data: dict[str, Any], number: int) -> _Line:
    try:
        return kind(**data)
    except TypeError as fault:
        raise ArchiveDamaged(
            f"line {number} has other fields than it should ({fault}): the file was changed"
        ) from fault


def _parsed(line: bytes, number: int) -> dict[str, Any]:
    try:
        data = json.loads(line)
    except ValueError as fault:
        raise ArchiveDamaged(f"line {number} is not JSON ({fault}): the file is no export, or was cut off") from fault
    if not isinstance(data, dict):
        raise ArchiveDamaged(f"line {number} is not a JSON object: the file is no export")
    return data


def _encoded(data: bytes) -> str:
    return b64encode(data).decode("ascii")
