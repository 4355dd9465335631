"""Copy standard input and URLs to temporary files: every reader needs a file that it can read again."""

import sys
import weakref
from importlib import import_module
from pathlib import Path
from shutil import rmtree
from tempfile import mkdtemp

from monitor.files.streams.copying import CopyError, copy_stream, with_suffix
from monitor.files.streams.paths import STDIN, is_service, name_copy
from schemas.records.text import mask_url


class Copies:
    """Temporary copies, one for each place; deleted with the object, and at the end of the process."""

    def __init__(self) -> None:
        self._folder: str | None = None
        self._files: dict[str, Path] = {}

    def file(self, place: str) -> Path:
        """Return the copy of a place, and make it when it is first asked for."""
        if place not in self._files:
            folder = Path(self._made_folder(), str(len(self._files))).resolve()
            folder.mkdir(exist_ok=True)
            self._files[place] = _copy_stdin(folder) if place == STDIN else _downloaded(place, folder)
        return self._files[place]

    def _made_folder(self) -> str:
        if self._folder is None:
            self._folder = mkdtemp(prefix="rankwatch-")  # readable for this user only
            weakref.finalize(self, rmtree, self._folder, ignore_errors=True)
        return self._folder


def _copy_stdin(folder: Path) -> Path:
    if sys.stdin is None or sys.stdin.isatty():
        raise CopyError("standard input is a terminal; pipe results into the command, or give a file")
    file = folder / "results"
    copy_stream(sys.stdin.buffer, file, "standard input")
    file = with_suffix(file)
    name_copy(file, "standard input")
    return file


def _downloaded(url: str, folder: Path) -> Path:
    from monitor.files.streams.download import download, in_time  # noqa: PLC0415 - start-up: few commands read a URL

    if is_service(url):
        services = import_module("monitor.files.streams.services")
        file: Path = in_time(lambda: services.fetch(url, folder), url, "export its results, and give the file")
    else:
        file = download(url, folder)
    name_copy(file, mask_url(url))
    return file
