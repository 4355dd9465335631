"""Download a URL into a file; few commands do, and what they import is slow."""

import re
import ssl
from base64 import b64encode
from collections.abc import Callable
from http.client import HTTPException, HTTPResponse
from pathlib import Path
from queue import Empty, SimpleQueue
from threading import Thread
from typing import Final
from urllib.error import HTTPError, URLError
from urllib.parse import unquote, urlsplit, urlunsplit
from urllib.request import HTTPRedirectHandler, Request, build_opener

from monitor.files.streams.copying import CopyError, copy_stream, with_suffix
from schemas.records.text import mask_url

TIMEOUT_SECONDS: Final = 30.0  # how long a server may take to connect, and between two pieces of its answer
DEADLINE_SECONDS: Final = 900.0  # how long a download may take in all, name look-up and redirects included

_UNSAFE: Final = re.compile(r"[^A-Za-z0-9._-]+")
_NAME_LENGTH: Final = 80


def download(url: str, folder: Path) -> Path:
    """Download a URL into a file in a folder."""
    return in_time(lambda: _download(url, folder), mask_url(url), "download it to a file and give its path")


def in_time(copy: Callable[[], Path], name: str, advice: str) -> Path:
    """Copy in a thread that the command does not wait for beyond the deadline: a server may send a byte at a time, of its head too."""
    ended: SimpleQueue[Path | BaseException] = SimpleQueue()

    def work() -> None:
        try:
            ended.put(copy())
        except BaseException as error:  # noqa: BLE001 - it is raised again in the caller's thread
            ended.put(error)

    Thread(target=work, name="download", daemon=True).start()
    try:
        found = ended.get(timeout=DEADLINE_SECONDS)
    except Empty:
        raise CopyError(f"{name} took more than {DEADLINE_SECONDS:,.0f} s; {advice}") from None
    if isinstance(found, BaseException):
        raise found
    return found


def _download(url: str, folder: Path) -> Path:
    name = mask_url(url)
    try:
        with _open(url) as response:
            file = folder / _file_name(response.url)
            size = copy_stream(response, file, name)
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
    return file if file.suffix else with_suffix(file)


def _open(url: str) -> HTTPResponse:
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
    name = _UNSAFE.sub("_", unquote(urlsplit(url).path).rpartition("/")[2])[-_NAME_LENGTH:].lstrip(".")
    return name or "results"
