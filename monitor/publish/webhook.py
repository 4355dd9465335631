"""Post verdict changes to a web address: to Alertmanager, or to any receiver of JSON."""

import asyncio
import hashlib
import hmac
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Sequence
from http.client import HTTPException
from typing import Any, Final, Literal, NamedTuple
from urllib.parse import urlsplit

import structlog

from monitor.publish.cloud_events import BATCH_TYPE, EVENT_TYPE, batch_body, event_body
from monitor.publish.webhook_body import alertmanager_body, json_body
from monitor.retries import RetryPolicy
from schemas.changes import VerdictChange

log = structlog.get_logger()

Format = Literal["alertmanager", "json", "cloudevents", "cloudevents-batch"]

SIGNATURE: Final = "Rankwatch-Signature"
"""``t=<seconds since 1970>,v1=<hex of HMAC-SHA256(secret, "<t>." + body)>``; an old `t` is a replay."""

_BATCH: Final = 100


class _Post(NamedTuple):
    """How verdict changes are posted: the body, its type, and how many changes a request has at most."""

    body: Callable[[str, Sequence[VerdictChange], float], bytes]
    content_type: str = "application/json"
    changes: int = _BATCH


_POSTS: Final[dict[Format, _Post]] = {
    "alertmanager": _Post(alertmanager_body),
    "json": _Post(json_body),
    "cloudevents": _Post(event_body, EVENT_TYPE, 1),
    "cloudevents-batch": _Post(batch_body, BATCH_TYPE),
}
_ANSWER_SECONDS: Final = 5.0
_RETRIES: Final = RetryPolicy(timeout=None, first_wait=1.0, longest_wait=60.0)
"""Retries for ever: nothing is dropped, and the relay remembers where to continue."""


class _NotAcceptedError(Exception):
    """A request failed; the message never holds the URL, which may contain a secret."""


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """Refuses redirects, which would change the request and send its signature elsewhere."""

    def redirect_request(self, *_: Any, **__: Any) -> None:  # noqa: ANN401
        return None


class Webhook:
    """Posts the verdict changes of one partition, in order, each batch until it is accepted.

    After a crash a change may be posted again, with the same id: receivers drop duplicates. Alertmanager does so on its own, because an
    alert is identified by its labels.

    Parameters
    ----------
    url : str
        May hold a secret, so it never appears in a log line or an error.
    form : "alertmanager", "json", "cloudevents" or "cloudevents-batch"
        For `alertmanager` the URL ends in ``/api/v2/alerts``. CloudEvents are posted in structured mode, one a request, or as batches.
    secret : str or None
        Signs each request.
    origin : str
        The log and partition within which the ids of the changes are unique.
    count_failure : callable
        Called for every failed attempt.

    Raises
    ------
    ValueError
        If the URL is not http or https.
    """

    name = "webhook"

    def __init__(
        self,
        url: str,
        form: Format,
        secret: str | None,
        origin: str,
        count_failure: Callable[[], None],
        *,
        retries: RetryPolicy = _RETRIES,
    ) -> None:
        check_url(url)
        self._url, self._post_as, self._secret, self._origin = url, _POSTS[form], secret, origin
        self._count_failure, self._retries = count_failure, retries
        self._opener = urllib.request.build_opener(_NoRedirect)
        self._accepted: set[str] = set()

    async def publish(self, changes: Sequence[VerdictChange]) -> None:
        """Post changes; return once the receiver has accepted all of them."""
        new = [change for change in changes if change.id not in self._accepted]
        for start in range(0, len(new), self._post_as.changes):
            batch = new[start : start + self._post_as.changes]
            body = self._post_as.body(self._origin, batch, time.time())

            async def post(body: bytes = body) -> None:
                await self._post(body)

            await self._retries.run(post, lambda error: isinstance(error, _NotAcceptedError))
            self._accepted |= {change.id for change in batch}
        # The next call may repeat changes of this one, and none from before it.
        self._accepted = {change.id for change in changes}

    async def _post(self, body: bytes) -> None:
        try:
            await asyncio.to_thread(self._request, body)
        except _NotAcceptedError as error:
            self._count_failure()
            log.warning("the webhook did not accept verdict changes; retrying", reason=str(error))
            raise

    def _request(self, body: bytes) -> None:
        headers = {"Content-Type": self._post_as.content_type, "User-Agent": "rankwatch"}
        if self._secret is not None:
            headers[SIGNATURE] = signature(self._secret, body, int(time.time()))
        request = urllib.request.Request(self._url, body, headers, method="POST")  # noqa: S310 - check_url allows http and https only
        try:
            self._opener.open(request, timeout=_ANSWER_SECONDS).close()
        except urllib.error.HTTPError as error:
            error.close()
            raise _NotAcceptedError(f"answered with status {error.code}") from None
        except (OSError, HTTPException) as error:
            reason = getattr(error, "reason", error)
            raise _NotAcceptedError(f"not reached: {type(reason).__name__}") from None


def signature(secret: str, body: bytes, at: int) -> str:
    """Return the value of the `SIGNATURE` header for a body.

    >>> signature("s", b"{}", 1)[:20]
    't=1,v1=b253639bcd705'
    """
    digest = hmac.new(secret.encode(), f"{at}.".encode() + body, hashlib.sha256).hexdigest()
    return f"t={at},v1={digest}"


def check_url(url: str) -> None:
    """Raise ValueError unless a URL is http or https; the message does not repeat the URL."""
    parts = urlsplit(url)
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        raise ValueError("webhook_url is not a web address; use http://host/... or https://host/...")
