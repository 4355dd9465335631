"""Open only regular files, and only inside a folder where results name the path.

The writer of results chooses what a `rankwatch.toml` names and what lies next to a file. A link or a device there must not make a command
read what its user may read, and the writer may not.
"""

import errno
import os
import re
import stat
from io import FileIO
from pathlib import Path, PurePath
from typing import Any, Final

from schemas.records.text import Fault

_LARGEST_SETTINGS: Final = 1 << 20
_LONGEST_INTEGER: Final = 64
_MOST_PARTS: Final = 32
_TEXTS: Final = re.compile(
    r'''"""(?:[^"\\]|\\.|"(?!""))*+(?:"{3,5})?+|"(?:[^"\\\n]|\\.)*+"?+'''
    r"""|'''(?:[^']|'(?!''))*+(?:'{3,5})?+|'[^'\n]*+'?+|#[^\n]*+""",
    re.DOTALL,
)
"""Strings and comments of TOML, to the end where they have none: no character is looked at twice."""

_NO_PARTS: Final = re.compile(r"[^.\n=,{}\[\]]++")


class UnsafePathError(OSError):
    """A file that results may not name; `strerror` has the reason, and what to do."""

    def __init__(self, path: Path, problem: str) -> None:
        super().__init__(errno.EPERM, problem, str(path))


def open_regular(path: Path, folder: int | None = None) -> FileIO:
    """Open a regular file that is not a link; never wait for the writer of a pipe."""
    descriptor = _open(path, os.O_NONBLOCK, folder)
    mode = os.fstat(descriptor).st_mode
    if stat.S_ISREG(mode):
        return FileIO(descriptor, "rb")
    os.close(descriptor)
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    raise UnsafePathError(path, "it is not a regular file; use a regular file")


def read_settings(path: Path) -> bytes:
    """Return the contents of a small file that describes how results are read."""
    with open_regular(path) as file:
        data = file.read(_LARGEST_SETTINGS + 1) or b""
    if len(data) > _LARGEST_SETTINGS:
        raise UnsafePathError(path, f"it has more than {_LARGEST_SETTINGS:,} bytes; shorten it")
    return data


def parse_settings(data: bytes) -> dict[str, Any]:
    """Parse TOML that anyone may have written."""
    import tomllib  # noqa: PLC0415 - loading it takes 10 ms, and most results have no such file

    text = data.decode("utf-8")
    # The time that a key takes grows with the square of its parts.
    if "." * _MOST_PARTS in _NO_PARTS.sub("", _TEXTS.sub("", text)):
        raise ValueError("a key has too many parts")
    content = tomllib.loads(text)
    waiting: list[object] = [content]
    while waiting:
        value = waiting.pop()
        if isinstance(value, dict | list):
            waiting += value.values() if isinstance(value, dict) else value
        elif isinstance(value, int) and value.bit_length() > _LONGEST_INTEGER:
            raise ValueError("a number has too many digits")
    return content


def inside(folder: Path, name: str | PurePath) -> Path:
    """Return the path of a file or folder below a folder, with no link on the way."""
    parts, path = PurePath(name).parts, folder / name
    if PurePath(name).is_absolute() or ".." in parts or not parts or "\0" in str(name):
        raise UnsafePathError(path, "it leads out of the folder; use the path of a file below it")
    current = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        for part in parts[:-1]:
            below = _open(Path(part), os.O_DIRECTORY, current)
            os.close(current)
            current = below
        with open_regular(Path(parts[-1]), current):
            pass
    except IsADirectoryError:
        return path
    except OSError as error:
        error.filename = str(path)
        raise
    finally:
        os.close(current)
    return path


def _open(path: Path, flags: int, folder: int | None) -> int:
    try:
        return os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | flags, dir_fd=folder)
    except OSError as error:
        # O_DIRECTORY turns a link into ENOTDIR.
        if error.errno in {errno.ELOOP, errno.EMLINK, errno.ENOTDIR} and _is_link(path, folder):
            raise UnsafePathError(path, "it is a link; use a copy of the file in its place") from None
        if error.errno == errno.ENXIO:
            raise UnsafePathError(path, "it is not a regular file; use a regular file") from None
        raise


def _is_link(path: Path, folder: int | None) -> bool:
    return stat.S_ISLNK(os.stat(path, dir_fd=folder, follow_symlinks=False).st_mode)


class Refusal(Exception):  # noqa: N818 - an answer about the file, not a failure
    """A file that is not read at all: what is wrong, and what to do."""

    def __init__(self, field: str, found: str, reason: str, benchmark: str | None = None) -> None:
        super().__init__(f"{field}: {reason}")
        self.fault = Fault(field, found, reason, benchmark, refuses=True)


class Broken(Exception):  # noqa: N818 - the file may still be completed
    """A file that breaks off, or is still being written."""
