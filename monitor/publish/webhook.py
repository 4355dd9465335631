"""Post verdict changes to a web address, signed."""

import asyncio
import hashlib
import hmac
import json
import time
from collections.abc import Callable, Sequence
from typing import Final, Literal, NamedTuple

import structlog

from monitor.outbound import Allowed, NotAcceptedError, check_url, post
from monitor.publish.cloud_events import BATCH_TYPE, EVENT_TYPE, batch_body, data_body, event_body
from monitor.publish.cloud_events import headers as event_headers
from monitor.retries import RetryPolicy
from schemas.results.changes import AnyChange

log = structlog.get_logger()

Format = Literal["json", "cloudevents", "cloudevents-batch", "cloudevents-binary"]

SIGNATURE: Final = "Rankwatch-Signature"
"""``t=<seconds since 1970>,v1=<hex of HMAC-SHA256(secret, "<t>." + body)>``; an old `t` is a replay."""

_BATCH: Final = 100


def json_body(origin: str, changes: Sequence[AnyChange]) -> bytes:
    """Return ``{"changes": [...]}``: each change as in the feed, its id made unique over all partitions by the origin."""
    entries = [change.as_dict() | {"id": f"{origin}/{change.id}"} for change in changes]
    return json.dumps({"changes": entries}, separators=(",", ":")).encode()


class _Post(NamedTuple):
    """How verdict changes are posted: the body, which is the same on every attempt, its type, how many it has at most, other headers."""

    body: Callable[[str, Sequence[AnyChange]], bytes]
    content_type: str = "application/json"
    changes: int = _BATCH
    headers: Callable[[str, Sequence[AnyChange]], dict[str, str]] = lambda *_: {}


_POSTS: Final[dict[Format, _Post]] = {
    "json": _Post(json_body),
    "cloudevents": _Post(event_body, EVENT_TYPE, 1),
    "cloudevents-batch": _Post(batch_body, BATCH_TYPE),
    "cloudevents-binary": _Post(data_body, changes=1, headers=event_headers),
}
_ANSWER_SECONDS: Final = 5.0
_RETRIES: Final = RetryPolicy(timeout=None, first_wait=1.0, longest_wait=60.0)
"""Retries for ever: nothing is dropped, and the relay remembers where to continue."""


class Webhook:
    """Posts the verdict changes of one partition, in order, each batch until it is accepted."""

    # After a crash a change may be posted again, with the same id: receivers drop duplicates.
    name = "webhook"

    def __init__(
        self,
        url: str,
        form: Format,
        secret: str | None,
        origin: str,
        count_failure: Callable[[], None],
        allowed: Allowed,
        *,
        retries: RetryPolicy = _RETRIES,
    ) -> None:
        check_url(url, "webhook_url")
        self._url, self._post_as, self._secret, self._origin = url, _POSTS[form], secret, origin
        self._count_failure, self._retries = count_failure, retries
        self._allowed = allowed
        self._accepted: set[str] = set()

    async def publish(self, changes: Sequence[AnyChange]) -> None:
        """Post changes; return once the receiver has accepted all of them."""
        new = [change for change in changes if change.id not in self._accepted]
        for start in range(0, len(new), self._post_as.changes):
            batch = new[start : start + self._post_as.changes]
            body = self._post_as.body(self._origin, batch)
            headers = {"Content-Type": self._post_as.content_type, **self._post_as.headers(self._origin, batch)}

            async def post(body: bytes = body, headers: dict[str, str] = headers) -> None:
                await self._post(body, headers)

            await self._retries.run(post, self._wait_after)
            self._accepted |= {change.id for change in batch}
        # The next call may repeat changes of this one, and none from before it.
        self._accepted = {change.id for change in changes}

    async def _post(self, body: bytes, headers: dict[str, str]) -> None:
        try:
            await asyncio.to_thread(self._request, body, headers)
        except NotAcceptedError as error:
            self._count_failure()
            log.warning("the webhook did not accept verdict changes; retrying", reason=str(error))
            raise

    def _wait_after(self, error: Exception) -> bool | float:
        if not isinstance(error, NotAcceptedError):
            return False
        return True if error.wait is None else min(error.wait, self._retries.longest_wait)

    def _request(self, body: bytes, headers: dict[str, str]) -> None:
        signed = {} if self._secret is None else {SIGNATURE: signature(self._secret, body, int(time.time()))}
        post(self._url, body, {**headers, **signed}, self._allowed, _ANSWER_SECONDS)


def signature(secret: str, body: bytes, at: int) -> str:
    """Return the value of the `SIGNATURE` header for a body.

    >>> signature("s", b"{}", 1)[:20]
    't=1,v1=b253639bcd705'
    """
    digest = hmac.new(secret.encode(), f"{at}.".encode() + body, hashlib.sha256).hexdigest()
    return f"t={at},v1={digest}"
