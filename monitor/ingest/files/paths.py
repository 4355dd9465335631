"""From the PATH arguments of a command to the files that are read."""

import os
import stat
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Final

from schemas.text import printable

SUFFIXES: Final = (".jsonl", ".ndjson", ".jsonl.gz", ".ndjson.gz")
"""What a file of results is called inside a folder; a file that is named itself may be called anything."""

DATA_MARK: Final = ".rankwatch"
"""A file in every data directory: what a monitor writes itself is no result, also where it watches the folder above."""


class PathError(ValueError):
    """A PATH argument that cannot be read."""


def find_files(
    paths: Iterable[str | os.PathLike[str]],
    *,
    strict: bool = True,
    suffixes: tuple[str, ...] = SUFFIXES,
    accept: Callable[[Path], bool] | None = None,
) -> list[Path]:
    """List the files of results that paths stand for.

    Parameters
    ----------
    paths : iterable of path
        Files, and folders that are searched with everything below them: names that end with one of `suffixes` and do not begin with a
        dot (nor the folder's). Links to files are followed, links to folders only when they are a PATH themselves.
    strict : bool
        False passes over what is missing, empty, special or unreadable: for looking again at what is already being watched.
    suffixes : tuple of str
        What a file of results is called inside a folder.
    accept : callable, optional
        Says of a file inside a folder whether it is taken.

    Returns
    -------
    list of Path
        Absolute, all links resolved, sorted; a file that is reached in two ways, by a link or a second name, stands once.

    Raises
    ------
    PathError
        If a path does not exist, is neither a file nor a folder, may not be read, has a name that is not UTF-8, or is a folder without
        results.

    Examples
    --------
    >>> find_files(["/nowhere/results.jsonl"])
    Traceback (most recent call last):
    monitor.ingest.files.paths.PathError: /nowhere/results.jsonl does not exist: check the path for a typing error
    """
    found: dict[tuple[int, int], Path] = {}
    for path in paths:
        for file in _files(Path(path), strict=strict, suffixes=suffixes, accept=accept):
            try:
                resolved = file.resolve(strict=True)
                identity = resolved.stat()
                _check(resolved)
            except (PathError, OSError) as error:
                if strict:
                    raise (
                        error if isinstance(error, PathError) else PathError(f"{show(file)}: {error.strerror}")
                    ) from error
                continue
            key = (identity.st_dev, identity.st_ino)
            found[key] = min(resolved, found.get(key, resolved))
    return sorted(found.values())


def show(path: str | os.PathLike[str]) -> str:
    """Write a path on one line, with everything that is not printable escaped."""
    return printable(os.fsencode(path).decode("utf-8", "backslashreplace"))


def _files(
    path: Path, *, strict: bool, suffixes: tuple[str, ...], accept: Callable[[Path], bool] | None
) -> Iterator[Path]:
    try:
        mode = path.stat().st_mode
    except OSError as error:
        if strict:
            reason = "does not exist" if isinstance(error, FileNotFoundError) else f"cannot be read ({error.strerror})"
            raise PathError(f"{show(path)} {reason}: check the path for a typing error") from error
        return
    if stat.S_ISREG(mode):
        yield path
    elif stat.S_ISDIR(mode):
        inside = [file for file in _walk(path, suffixes) if accept is None or accept(file)]
        if strict and not inside:
            raise PathError(
                f"{show(path)} holds no results: looked for files that end with {', '.join(suffixes)}, in all folders below it"
            )
        yield from inside
    elif strict:
        raise PathError(f"{show(path)} is neither a file nor a folder: give a file of results, or a folder of them")


def _walk(folder: Path, suffixes: tuple[str, ...]) -> Iterator[Path]:
    for parent, folders, names in os.walk(folder):
        folders[:] = [n for n in folders if not n.startswith(".") and not Path(parent, n, DATA_MARK).exists()]
        for name in names:
            file = Path(parent, name)
            if name.endswith(suffixes) and not name.startswith(".") and file.is_file():
                yield file


def _check(file: Path) -> None:
    try:
        str(file).encode("utf-8")
    except UnicodeEncodeError as error:
        raise PathError(f"{show(file)}: the path is not valid UTF-8: rename the file or its folder") from error
    if not os.access(file, os.R_OK):
        raise PathError(f"{show(file)} may not be read by this user: change its permissions, or leave it out")
