"""Find the files that the PATH arguments of a command name."""

import os
import re
import stat
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Final

from schemas.records.text import printable

_AIDER: Final = ".aider.results.json"  # the one hidden file that holds results

SUFFIXES: Final = (".jsonl", ".ndjson", ".jsonl.gz", ".ndjson.gz")
"""How the names of results in a folder end; a file given as a PATH may have any name."""

DATA_MARK: Final = ".rankwatch"
"""A file in every data directory, so that a folder above it can be watched: the files of a monitor are not results."""

PASSED_OVER: Final = (FileNotFoundError, NotADirectoryError, PermissionError)
"""The errors of a file or folder in a watched folder that may vanish and come back; with others the folder is not known to be read."""

UNREADABLE: Final = "is not readable for this user; change its permissions"


STDIN: Final = "-"  # the PATH argument that means standard input

_URL: Final = re.compile(r"https?://", re.IGNORECASE)
ANY_URL: Final = re.compile(r"[a-z][a-z0-9+.-]*://", re.IGNORECASE)
_SERVICE: Final = re.compile(r"(?:langfuse|phoenix):(?!//).", re.IGNORECASE)
_SCHEME: Final = re.compile(r"([a-z][a-z0-9+.-]+):/", re.IGNORECASE)
"""How another URL begins; as a path it has one slash."""

_ORIGINS: Final[dict[str, str]] = {}


class PathError(ValueError):
    """A PATH argument that cannot be read."""


class NothingYetError(PathError):
    """A PATH argument that results may still be written to."""

    def __init__(self, what: str, remedy: str) -> None:
        super().__init__(f"{what}; {remedy}")
        self.what = what


def find_files(
    paths: Iterable[str | os.PathLike[str]],
    *,
    strict: bool = True,
    suffixes: tuple[str, ...] = SUFFIXES,
    accept: Callable[[Path], bool] | None = None,
    follow: bool = False,
    note: Callable[[str], None] = lambda _: None,
    listed: set[tuple[int, int]] | None = None,
) -> list[Path]:
    """List the files of results that paths name, in the order of the paths: of two scores of a key, the first one read counts.

    >>> find_files(["/nowhere/results.jsonl"])
    Traceback (most recent call last):
    monitor.files.streams.paths.NothingYetError: /nowhere/results.jsonl does not exist; check the path
    """
    files: list[Path] = []
    listed = set() if listed is None else listed
    for path in paths:
        walk = _FolderWalk(suffixes, follow=follow, note=note)
        found: dict[tuple[int, int], Path] = {}
        for file in _files(Path(path), strict=strict, walk=walk, accept=accept):
            try:
                resolved = file.resolve(strict=True)
                identity = resolved.stat()
                _check(resolved)
            except (PathError, OSError) as error:
                if strict:
                    raise (
                        error if isinstance(error, PathError) else PathError(f"{show(file)}: {error.strerror}")
                    ) from error
                if not isinstance(error, (PathError, *PASSED_OVER)):
                    raise
                continue
            key = (identity.st_dev, identity.st_ino)
            if key not in listed:
                found[key] = min(resolved, found.get(key, resolved))
        listed |= found.keys()
        files += sorted(found.values())
    return files


def is_remote(path: str | os.PathLike[str]) -> bool:
    """Return whether a PATH argument is standard input, a URL or a dataset of a service, which are read from a copy."""
    text = os.fspath(path)
    return text == STDIN or _URL.match(text) is not None or is_service(text)


def is_service(text: str) -> bool:
    """Return whether a PATH argument is a dataset that another service keeps, as `langfuse:NAME`, and no file."""
    return _SERVICE.match(text) is not None and not Path(text).exists()


def name_copy(file: Path, origin: str) -> None:
    """Record what a file is a copy of, without secrets: it is shown and stored in place of its path."""
    _ORIGINS[str(file)] = origin


def is_copy(path: str | os.PathLike[str]) -> bool:
    """Return whether a file is a copy of standard input or of a URL."""
    return os.fspath(path) in _ORIGINS


def origin(path: str | os.PathLike[str]) -> str:
    """Return what a file is a copy of, or its path."""
    text = os.fspath(path)
    return _ORIGINS.get(text, text)


def show(path: str | os.PathLike[str]) -> str:
    """Show a path on one line, with unprintable characters escaped."""
    return printable(os.fsencode(origin(path)).decode("utf-8", "backslashreplace"))


def _files(path: Path, *, strict: bool, walk: "_FolderWalk", accept: Callable[[Path], bool] | None) -> Iterator[Path]:
    try:
        mode = path.stat().st_mode
    except OSError as error:
        if strict:
            raise _no_status(path, error) from error
        if not isinstance(error, PASSED_OVER):
            raise
        return
    if stat.S_ISREG(mode):
        yield path
    elif stat.S_ISDIR(mode):
        if strict and not os.access(path, os.R_OK | os.X_OK):
            raise PathError(f"{show(path)} {UNREADABLE}, or omit it")
        found = list(walk.files(path))
        inside = [file for file in found if accept is None or accept(file)]
        if strict and not inside:
            what, remedy = _none(found, walk.suffixes)
            raise NothingYetError(f"{show(path)} {what}", remedy)
        yield from inside
    elif strict:
        raise PathError(f"{show(path)} is neither a file nor a folder; use a file or a folder of results")


def _no_status(path: Path, error: OSError) -> PathError:
    """Return why a path has no status."""
    if (scheme := _SCHEME.match(os.fspath(path))) is not None:
        url = show(path).replace(":/", "://", 1)
        return PathError(f"{url}: {scheme[1]} is not supported; use http or https, or download the file")
    if isinstance(error, FileNotFoundError):
        return NothingYetError(f"{show(path)} does not exist", "check the path")
    return PathError(f"{show(path)} cannot be read ({error.strerror}); check the path")


def _none(found: list[Path], suffixes: tuple[str, ...]) -> tuple[str, str]:
    """State what a folder holds none of, and what to do: of its files, each with a name of results, none is read."""
    if not found:
        names = ", ".join(suffix for suffix in suffixes if not suffix.endswith(".gz"))
        remedy = f"use names that end with {names} (text also as .gz), or give one file and its fields with --columns"
        return "has no files of results", remedy
    files = f"has no results in its {len(found):,} {'file' if len(found) == 1 else 'files'}"
    if any(file.stat().st_size for file in found):
        return files, "see the lines above, or give one file and its fields with --columns"
    return files, "nothing is written there yet"


class _FolderWalk:
    """Walks through a folder for files of results."""

    def __init__(self, suffixes: tuple[str, ...], *, follow: bool, note: Callable[[str], None]) -> None:
        self.suffixes, self._follow, self._note = suffixes, follow, note

    def files(self, folder: Path) -> Iterator[Path]:
        """Yield the files of results in a folder and below it."""
        top, walked = folder.resolve(), set[Path]()
        for parent, folders, names in os.walk(folder, onerror=self._unlisted, followlinks=self._follow):
            if self._follow:
                real = Path(parent).resolve()
                if real in walked:
                    folders.clear()  # a link led back
                    continue
                walked.add(real)
            folders[:] = [
                name
                for name in folders
                if not name.startswith(".")
                and not Path(parent, name, DATA_MARK).exists()
                and self._stays(Path(parent, name), top)
            ]
            for name in names:
                file = Path(parent, name)
                if (
                    name.endswith(self.suffixes)
                    and (not name.startswith(".") or name == _AIDER)
                    and file.is_file()
                    and self._stays(file, top)
                ):
                    yield file

    def _unlisted(self, error: OSError) -> None:
        """Pass over a folder that has vanished or is not readable; any other error would make full folders look empty."""
        if not isinstance(error, PASSED_OVER):
            raise error
        if isinstance(error, PermissionError):
            self._note(f"{show(error.filename)} is skipped: it {UNREADABLE}")

    def _stays(self, path: Path, top: Path) -> bool:
        """Return whether a path is read: it is no link, or leads to a place below `top`, or links are followed."""
        if self._follow or not path.is_symlink() or path.resolve().is_relative_to(top):
            return True
        self._note(
            f"{show(path)} is skipped: it links to {show(path.resolve())}, outside the folder; add --follow-symlinks to read it"
        )
        return False


def _check(file: Path) -> None:
    try:
        str(file).encode("utf-8")
    except UnicodeEncodeError as error:
        raise PathError(f"{show(file)}: the path is not valid UTF-8; rename the file or its folder") from error
    if not os.access(file, os.R_OK):
        raise PathError(f"{show(file)} {UNREADABLE}, or omit it")


def named_path(path: str | os.PathLike[str]) -> tuple[str | None, str]:
    """Split ``NAME=PATH`` into a model and a path; a path that exists, and a URL, has no model."""
    text = os.fspath(path)
    model, _, rest = text.partition("=")
    return (None, text) if not (model and rest) or ANY_URL.match(text) or Path(text).exists() else (model, rest)
