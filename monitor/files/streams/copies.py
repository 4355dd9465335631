"""Copy standard input and URLs to temporary files: every reader needs a file that it can read again."""

import re
import sys
import weakref
from pathlib import Path
from queue import Empty, SimpleQueue
from shutil import rmtree
from tempfile import mkdtemp
from threading import Thread
from typing import TYPE_CHECKING, BinaryIO, Final

from monitor.files.streams.paths import STDIN, name_copy
from schemas.records.text import mask_url

if TYPE_CHECKING:
    from http.client import HTTPResponse

MAX_BYTES: Final = 1 << 31  # most bytes that are copied from standard input or from a URL

TIMEOUT_SECONDS: Final = 30.0  # how long a server may take to connect, and between two pieces of its answer

DEADLINE_SECONDS: Final = 900.0
"""How long a download may take in all, name look-up and redirects included: 2 GB at 2.4 MB/s."""

_PIECE: Final = 1 << 20
_UNSAFE: Final = re.compile(r"[^A-Za-z0-9._-]+")
_NAME_LENGTH: Final = 80


class CopyError(OSError):
    """Standard input or a URL that cannot be copied; the message names what to do."""


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
            file = _copy_stdin(folder) if place == STDIN else _in_time(place, folder)
            name_copy(file, "standard input" if place == STDIN else mask_url(place))
            self._files[place] = file
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
    _copy(sys.stdin.buffer, file, "standard input")
    return _with_suffix(file)


def _with_suffix(file: Path) -> Path:
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


def _copy(source: "BinaryIO | HTTPResponse", file: Path, name: str) -> int:
    """Copy a stream to a file; return how many bytes it has."""
    size = 0
    with file.open("wb") as target:
        while piece := source.read(_PIECE):
            size += len(piece)
            if size > MAX_BYTES:
                raise CopyError(f"{name} has more than {MAX_BYTES:,} bytes; save it to a file and give its path")
            target.write(piece)
    return size


def _in_time(url: str, folder: Path) -> Path:
    """Download in a thread that the command does not wait for beyond the deadline: a server may send a byte at a time, of its head too."""
    ended: SimpleQueue[Path | BaseException] = SimpleQueue()

    def work() -> None:
        try:
            ended.put(_download(url, folder))
        except BaseException as error:  # noqa: BLE001 - it is raised again in the caller's thread
            ended.put(error)

    Thread(target=work, name="download", daemon=True).start()
    try:
        found = ended.get(timeout=DEADLINE_SECONDS)
    except Empty:
        raise CopyError(
            f"{mask_url(url)} took more than {DEADLINE_SECONDS:,.0f} s; download it to a file and give its path"
        ) from None
    if isinstance(found, BaseException):
        raise found
    return found


def _download(url: str, folder: Path) -> Path:
    # Imported here: few commands read a URL, and these modules are slow to import.
    import ssl  # noqa: PLC0415
    from http.client import HTTPException  # noqa: PLC0415
    from urllib.error import HTTPError, URLError  # noqa: PLC0415

    name = mask_url(url)
    try:
        with _open(url) as response:
            file = folder / _file_name(response.url)
            size = _copy(response, file, name)
            missing = response.length
    except CopyError:
        raise
    except HTTPError as error:
        error.close()
        advice = "; give a URL that needs no sign-in" if error.code in {401, 403} else "; check the address"
        moved = 300 <= error.code < 400
        problem = "redirects to an address that is not read" if moved else f"answered {error.code}"
        raise CopyError(f"{name} {problem}{advice}") from None
    except (OSError, HTTPException, ValueError) as error:
        reason = error.reason if isinstance(error, URLError) else error
        if isinstance(reason, TimeoutError):
            problem = f"timed out after {TIMEOUT_SECONDS:g} s"
        elif isinstance(reason, ssl.SSLCertVerificationError):
            problem = "its certificate is not valid"
        else:
            problem = getattr(reason, "strerror", None) or "the connection broke"
        raise CopyError(f"{name} cannot be read ({problem}); check the address and the network") from None
    if missing:
        raise CopyError(f"{name} broke off after {size:,} of {size + missing:,} bytes; run the command again")
    return file if file.suffix else _with_suffix(file)


def _open(url: str) -> "HTTPResponse":
    from base64 import b64encode  # noqa: PLC0415 - as in _download
    from urllib.parse import unquote, urlsplit, urlunsplit  # noqa: PLC0415
    from urllib.request import HTTPRedirectHandler, Request, build_opener  # noqa: PLC0415

    class SafeRedirects(HTTPRedirectHandler):
        """Follows redirects to https, and from http to http."""

        def redirect_request(self, request, fp, code, message, headers, target):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202 - the base class's
            if urlsplit(target).scheme not in {"https", request.type}:
                fp.close()
                raise CopyError(
                    f"{mask_url(url)} redirects to {mask_url(target)}; give the final address if you trust it"
                )
            return super().redirect_request(request, fp, code, message, headers, target)

    parts = urlsplit(url)
    assert parts.scheme.lower() in {"http", "https"}, "is_remote accepts no other scheme"
    user, at, host = parts.netloc.rpartition("@")
    request = Request(urlunsplit(parts._replace(netloc=host, fragment="")), headers={"User-Agent": "rankwatch"})  # noqa: S310 - the scheme was checked
    if at:
        # Not sent again to the target of a redirect.
        request.add_unredirected_header("Authorization", "Basic " + b64encode(unquote(user).encode()).decode())
    response: HTTPResponse = build_opener(SafeRedirects).open(request, timeout=TIMEOUT_SECONDS)
    return response


def _file_name(url: str) -> str:
    from urllib.parse import unquote, urlsplit  # noqa: PLC0415 - as in _download

    name = _UNSAFE.sub("_", unquote(urlsplit(url).path).rpartition("/")[2])[-_NAME_LENGTH:].lstrip(".")
    return name or "results"
