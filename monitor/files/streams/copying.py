"""Write a stream into a file, and name the file by its first bytes."""

import re
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, Final

if TYPE_CHECKING:
    from http.client import HTTPResponse

MAX_BYTES: Final = 1 << 31  # most bytes that are copied from standard input or from a URL

_PIECE: Final = 1 << 20


class CopyError(OSError):
    """Standard input or a URL that cannot be copied; the message names what to do."""


def with_suffix(file: Path) -> Path:
    """Name a copy as a table if it looks like one: the format of any other file shows in its first bytes."""
    with file.open("rb") as data:
        first = data.readline(_PIECE).lstrip(b"\xef\xbb\xbf \t\r\n")
    is_table = (
        first[:1].isalnum()
        and first.isascii()
        and not first.startswith((b"PAR1", b"PK"))
        and re.search(rb"[,;\t]", first)
    )
    return file.rename(file.with_name(f"{file.name}.csv")) if is_table else file


def copy_stream(source: "BinaryIO | HTTPResponse", file: Path, name: str) -> int:
    """Copy a stream to a file; return how many bytes it has."""
    size = 0
    with file.open("wb") as target:
        while piece := source.read(_PIECE):
            size += len(piece)
            if size > MAX_BYTES:
                raise CopyError(f"{name} has more than {MAX_BYTES:,} bytes; save it to a file and give its path")
            target.write(piece)
    return size
