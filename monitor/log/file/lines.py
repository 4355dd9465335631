r"""Encode the records of a log as lines, and check them.

A line is a JSON array of a checksum, the length of the record in bytes, and the record::

    ["6ebbf7c1",        12,{"events":[]}]

The CRC-32 covers the record. Its initial value is derived from the identity of the log and the offset of the line, so that a line of
another log, or one that was moved, repeated or lost a neighbour, does not match. With the length, a line that a crash cut off while it was
appended can be distinguished from a line that was changed later: the first is a proper prefix of what its beginning announces.

In place of a damaged part that was given up (`monitor.log.file.salvage`) there is one line of its length, a JSON object::

    {"lost":40,"crc":"e29b56d8"}
"""

import re
from collections.abc import Sequence
from mmap import mmap
from typing import Final
from zlib import crc32

_MASK: Final = 0xFFFFFFFF
_BEGIN: Final = b'["%08x",%10d,'
_BEGIN_LENGTH: Final = len(_BEGIN % (0, 0))
_OVERHEAD: Final = _BEGIN_LENGTH + len(b"]\n")
_WHOLE_BEGIN: Final = _BEGIN % (0, 0)
_LOST: Final = re.compile(rb'\{"lost":([0-9]{1,18}),')
LOST_LEAST: Final = len(b'{"lost":29,"crc":"00000000"}\n')
"""Bytes that a damaged part has at least, so that a line that gives it up has room."""

_BEGINS: Final = re.compile(rb'\["[0-9a-f]{8}",( *[0-9]+),')


class Lines:
    """How the records of a log are written as lines.

    >>> lines = Lines("00112233445566778899aabbccddeeff")
    >>> data = lines.encode([b"1", b"2"], 60)
    >>> lines.decode(data.splitlines(), 60)
    ([60, 86, 112], [b'1', b'2'])
    >>> lines.decode(data.replace(b"2]", b"3]").splitlines(), 60)
    ([60, 86], [b'1'])
    """

    def __init__(self, identity: str) -> None:
        self._seed = crc32(identity.encode())

    def size(self, records: Sequence[bytes]) -> int:
        """Return how many bytes the lines of records take."""
        return sum(map(len, records)) + _OVERHEAD * len(records)

    def encode(self, records: Sequence[bytes], start: int) -> bytes:
        """Return the lines of records; the first begins at the offset `start`."""
        parts: list[bytes] = []
        seed = self._seed + start
        for record in records:
            parts += (_BEGIN % (crc32(record, seed & _MASK), len(record)), record, b"]\n")
            seed += len(record) + _OVERHEAD
        return b"".join(parts)

    def decode(self, lines: list[bytes], start: int) -> tuple[list[int], list[bytes]]:
        """Return the records of lines without their newlines, up to the first damaged one, and one offset more than records."""
        offsets, records = [start], []
        for line in lines:
            record = line[_BEGIN_LENGTH:-1]
            begin = _BEGIN % (crc32(record, self._seed + start & _MASK), len(record))
            if line[:_BEGIN_LENGTH] != begin or line[-1:] != b"]":
                break
            start += len(line) + 1
            offsets.append(start)
            records.append(record)
        return offsets, records

    def find(self, data: bytes | mmap, start: int) -> int:
        """Return where the first whole line begins from `start` on in a log, of which `data` is everything; its length if there is none."""
        for match in _BEGINS.finditer(data, start):
            end = match.end() + int(match[1]) + 2
            if data[end - 2 : end] == b"]\n":
                line = bytes(data[match.start() : end - 1])
                if b"\n" not in line and self.decode([line], match.start())[1]:
                    return match.start()
        return len(data)

    def lost(self, size: int, start: int) -> bytes:
        r"""Return the line of `size` bytes, or a few more, that takes the place of a damaged part of the log.

        >>> lines = Lines("00112233445566778899aabbccddeeff")
        >>> line = lines.lost(40, 60)
        >>> line
        b'{"lost":40,"crc":"e29b56d8"}           \n'
        >>> lines.is_lost(line[:-1], 60), lines.is_lost(line[:-1], 61)
        (True, False)
        """
        text = b"%d" % size
        mark = b'{"lost":%b,"crc":"%08x"}' % (text, crc32(text, self._seed + start & _MASK))
        return mark.ljust(size - 1) + b"\n"

    def is_lost(self, line: bytes, start: int) -> bool:
        """Return whether `lost` has made a line, without its newline."""
        match = _LOST.match(line)
        return match is not None and self.lost(int(match[1]), start)[:-1] == line

    def is_torn(self, begin: bytes, size: int) -> bool:
        """Return whether a last line without a newline is a proper prefix of a line.

        >>> lines = Lines("")
        >>> whole = lines.encode([b"123"], 0)
        >>> all(lines.is_torn(whole[:n], n) for n in range(1, len(whole)))
        True
        >>> lines.is_torn(whole[:-1] + b"?", len(whole))
        False
        """
        begin = begin[:_BEGIN_LENGTH]
        match = _BEGINS.fullmatch(begin + _WHOLE_BEGIN[len(begin) :])
        return match is not None and (len(begin) < _BEGIN_LENGTH or size < int(match[1]) + _OVERHEAD)
