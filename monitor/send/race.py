"""Ask another rankwatch over HTTP which models run next."""

from http import HTTPStatus
from time import monotonic, sleep
from typing import Final, overload
from urllib.error import HTTPError
from urllib.parse import urlencode

import msgspec

from monitor.send.http import DeliveryError, call
from schemas.results.api import Next

_HELD_SECONDS: Final = 25.0  # how long one request lets the server wait

_LEAST_SECONDS: Final = 0.2  # between two requests, at least


def ask_next(
    url: str,
    token: str | None,
    benchmark: str,
    goal: str | None = None,
    models: list[str] | None = None,
    block: int | None = None,
    *,
    wait: float = 0.0,
    model: str | None = None,
) -> Next:
    """Return what runs next; wait at most `wait` seconds until `model`, or any model, has items to run, may stop, or the race is over."""
    names = [("benchmark", benchmark), *(("model", each) for each in models or ())]
    names += [(name, str(value)) for name, value in (("goal", goal), ("block", block)) if value is not None]
    end = monotonic() + wait
    answer, tag = _ask(url, token, names)
    while _waits(answer, model) and (left := end - monotonic()) > 0:
        asked = monotonic()
        held = [*names, ("wait", f"{min(left, _HELD_SECONDS):.3f}")]
        try:
            newer, tag = _ask(url, token, held, tag)
        except DeliveryError as error:
            if isinstance(error.__cause__, HTTPError) and error.__cause__.code < HTTPStatus.INTERNAL_SERVER_ERROR:
                raise
            newer = None  # it may come back
        answer = newer or answer
        if monotonic() - asked < _LEAST_SECONDS:  # a server that does not hold its answer back
            sleep(_LEAST_SECONDS)
    return answer


@overload
def _ask(url: str, token: str | None, names: list[tuple[str, str]]) -> tuple[Next, str | None]: ...


@overload
def _ask(
    url: str, token: str | None, names: list[tuple[str, str]], known: str | None
) -> tuple[Next | None, str | None]: ...


def _ask(
    url: str, token: str | None, names: list[tuple[str, str]], known: str | None = None
) -> tuple[Next | None, str | None]:
    """Return an answer and its tag; no answer if it is still the one whose tag is `known`."""
    text, headers = call(
        url, token, "GET", f"next?{urlencode(names)}", what="it does not report what runs next", known=known
    )
    tag = headers.get("ETag")
    if not text and known is not None:
        return None, tag
    try:
        return msgspec.json.decode(text, type=Next), tag
    except msgspec.DecodeError:
        raise DeliveryError(f"{url}: its answer is not of this version of rankwatch; check the address") from None


def _waits(answer: Next, model: str | None) -> bool:
    runs = [each for each in answer.models if model in {None, each.model}]
    return not answer.over and all(each.step == "wait" for each in runs)
