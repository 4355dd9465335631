"""Verdict changes straight to a web address, for those who have no Prometheus: to Alertmanager, or to anything that takes JSON."""

import asyncio
import hashlib
import hmac
import random
import time
import urllib.error
import urllib.request
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from http.client import HTTPException
from typing import Any, Final, Literal
from urllib.parse import urlsplit

import structlog

from monitor.publish.webhook_body import alertmanager_body, json_body
from schemas.changes import VerdictChange

log = structlog.get_logger()

Format = Literal["alertmanager", "json"]

SIGNATURE: Final = "Rankwatch-Signature"
"""``t=<seconds since 1970>,v1=<hex of HMAC-SHA256(secret, "<t>." + body)>``; an old `t` is a replay."""

_BODIES: Final = {"alertmanager": alertmanager_body, "json": json_body}
_AT_ONCE: Final = 100


@dataclass(frozen=True)
class Patience:
    """How a request is tried again, for as long as it takes: nothing is dropped, and the relay remembers what is left."""

    answer: float = 5.0
    first: float = 1.0
    longest: float = 60.0

    def wait(self, attempt: int) -> float:
        """Return the seconds to wait after an attempt, counted from 0: doubled each time, and never the same for two workers."""
        return min(self.longest, self.first * 2.0 ** min(attempt, 30)) * (0.5 + random.random() / 2)


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """A redirect would turn the request into another one, and send the signature to another place."""

    def redirect_request(self, *_: Any, **__: Any) -> None:  # noqa: ANN401
        return None


class Webhook:
    """Posts the verdict changes of one partition, in order, each batch until it is taken.

    A change may come again after a crash, with the same id: receivers drop what they have. Alertmanager does by itself, since the labels
    of an alert are those of the change.

    Parameters
    ----------
    url : str
        May hold a secret: it is never logged, nor in an error.
    form : "alertmanager" or "json"
        For `alertmanager` the URL ends in ``/api/v2/alerts``.
    secret : str or None
        Signs what is posted.
    origin : str
        The log and the partition that the ids of the changes count within.
    failed : callable
        Called for every attempt that failed.
    patience : Patience, optional

    Raises
    ------
    ValueError
        If the URL is none of http or https.
    """

    name = "webhook"

    def __init__(
        self,
        url: str,
        form: Format,
        secret: str | None,
        origin: str,
        failed: Callable[[], None],
        *,
        patience: Patience | None = None,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        check_url(url)
        self._url, self._body, self._secret, self._origin = url, _BODIES[form], secret, origin
        self._failed, self._patience, self._sleep = failed, patience or Patience(), sleep
        self._opener = urllib.request.build_opener(_NoRedirect)
        self._taken: set[str] = set()

    async def publish(self, changes: Sequence[VerdictChange]) -> None:
        """Post changes; when this returns, the other side has answered that it has them."""
        fresh = [change for change in changes if change.id not in self._taken]
        for start in range(0, len(fresh), _AT_ONCE):
            batch = fresh[start : start + _AT_ONCE]
            await self._deliver(self._body(self._origin, batch, time.time()))
            self._taken |= {change.id for change in batch}
        self._taken = {
            change.id for change in changes
        }  # the store keeps the rest: what is offered again begins within the last offer

    async def _deliver(self, body: bytes) -> None:
        attempt = 0
        while (fault := await asyncio.to_thread(self._post, body)) is not None:
            self._failed()
            wait = self._patience.wait(attempt)
            log.warning("the webhook did not take verdict changes", reason=fault, again_in_seconds=round(wait, 1))
            await self._sleep(wait)
            attempt += 1

    def _post(self, body: bytes) -> str | None:
        """Return None if it was taken, else why it was not; without the URL, for that may hold a secret."""
        headers = {"Content-Type": "application/json", "User-Agent": "rankwatch"}
        if self._secret is not None:
            headers[SIGNATURE] = signature(self._secret, body, int(time.time()))
        request = urllib.request.Request(self._url, body, headers, method="POST")  # noqa: S310 - http or https, as checked
        try:
            with self._opener.open(request, timeout=self._patience.answer):
                return None
        except urllib.error.HTTPError as error:
            with error:
                return f"answered with status {error.code}"
        except (OSError, HTTPException) as error:
            reason = getattr(error, "reason", error)
            return f"not reached: {type(reason).__name__}"


def signature(secret: str, body: bytes, at: int) -> str:
    """Return the value of the header that signs a body.

    >>> signature("s", b"{}", 1)[:20]
    't=1,v1=b253639bcd705'
    """
    digest = hmac.new(secret.encode(), f"{at}.".encode() + body, hashlib.sha256).hexdigest()
    return f"t={at},v1={digest}"


def check_url(url: str) -> str:
    """Return the URL, or raise ValueError, which does not repeat it."""
    parts = urlsplit(url)
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        raise ValueError("webhook_url is not the URL of a web address: use http://host/... or https://host/...")
    return url
