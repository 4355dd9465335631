"""Read the entries of a zip archive, even with zstd compression, and of an archive that is cut off."""

import struct
import zlib
from collections.abc import Iterator
from io import BufferedReader
from pathlib import Path
from typing import BinaryIO, Final, Self
from zipfile import ZIP_DEFLATED, ZIP_STORED, BadZipFile, ZipFile, ZipInfo

from monitor.files.streams.regular import Broken, open_regular
from schemas.records.text import shorten

MAX_ENTRY_BYTES: Final = 1 << 30  # largest entry that is unpacked; a small file could otherwise fill the memory

_METHODS: Final = (ZIP_STORED, ZIP_DEFLATED, 93)  # 93 is zstd

_RAW_DEFLATE: Final = -15
_LOCAL: Final = struct.Struct("<4s5H3L2H")
_SIGNATURE: Final = b"PK\x03\x04"
_ENCRYPTED, _SIZES_FOLLOW, _UTF8 = 0x1, 0x8, 0x800


class Archive:
    """The entries of a zip archive, by name."""

    def __init__(self, path: Path) -> None:
        self.damage: str | None = None
        self._file = BufferedReader(open_regular(path))
        try:
            with ZipFile(self._file) as archive:
                self._entries = {info.filename: info for info in archive.infolist()}
        except (BadZipFile, NotImplementedError, ValueError, OverflowError, EOFError, struct.error):
            self._entries = {info.filename: info for info in _walk(self._file)}
            self.damage = f"the zip archive is cut off after {len(self._entries):,} whole entries"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def names(self) -> list[str]:
        """Return the names of the entries, in the order of the file."""
        return sorted(self._entries, key=lambda name: self._entries[name].header_offset)

    @property
    def unpacked_bytes(self) -> int:
        """Bytes of all entries, as the archive declares them: an entry that unpacks to more is not read further."""
        return sum(info.file_size for info in self._entries.values())

    def read(self, name: str) -> bytes:
        """Unpack an entry."""
        info = self._entries[name]
        entry = f"entry {shorten(name)} of the zip archive"
        if info.file_size > MAX_ENTRY_BYTES:
            raise Broken(f"{entry} unpacks to {info.file_size:,} bytes, more than {MAX_ENTRY_BYTES:,}")
        if info.flag_bits & _ENCRYPTED:
            raise Broken(f"{entry} is encrypted")
        if info.compress_type not in _METHODS:
            raise Broken(f"{entry} has the unknown compression method {info.compress_type}; use deflate or zstd")
        try:
            data = _unpack(self._packed(info), info)
        except (zlib.error, struct.error, EOFError) as error:
            raise Broken(f"{entry} is damaged") from error
        if len(data) != info.file_size or zlib.crc32(data) != info.CRC:
            raise Broken(f"{entry} is damaged: its checksum does not match")
        return data

    def _packed(self, info: ZipInfo) -> bytes:
        self._file.seek(info.header_offset)
        fields = _LOCAL.unpack(self._file.read(_LOCAL.size))
        if fields[0] != _SIGNATURE:
            raise EOFError("no entry begins there")
        self._file.seek(fields[-2] + fields[-1], 1)
        data = self._file.read(info.compress_size)
        if len(data) < info.compress_size:
            raise EOFError("the entry is cut off")
        return data


def _unpack(data: bytes, info: ZipInfo) -> bytes:
    if info.compress_type == ZIP_STORED:
        return data
    if info.compress_type == ZIP_DEFLATED:
        return zlib.decompressobj(_RAW_DEFLATE).decompress(data, info.file_size + 1)
    import zstandard  # noqa: PLC0415 - slow to import, and few archives need it

    try:
        with zstandard.ZstdDecompressor().stream_reader(data, read_across_frames=True) as reader:
            return reader.read(info.file_size + 1)
    except zstandard.ZstdError as error:
        raise EOFError("no zstd frame") from error


def _walk(file: BinaryIO) -> Iterator[ZipInfo]:
    """Go from entry to entry, for a file whose directory at the end is missing."""
    file.seek(0)
    while len(head := file.read(_LOCAL.size)) == _LOCAL.size:
        signature, _, flags, method, _, _, crc, packed, size, name_length, extra = _LOCAL.unpack(head)
        if signature != _SIGNATURE or flags & _SIZES_FOLLOW or 0xFFFFFFFF in (packed, size):
            return
        offset = file.tell() - _LOCAL.size
        name = file.read(name_length).decode("utf-8" if flags & _UTF8 else "cp437", "replace")
        start = file.seek(extra, 1)
        end = file.seek(0, 2)
        if not name or start + packed > end:
            return
        file.seek(start + packed)
        info = ZipInfo(name)
        info.header_offset, info.flag_bits, info.compress_type = offset, flags, method
        info.CRC, info.compress_size, info.file_size = crc, packed, size
        yield info
