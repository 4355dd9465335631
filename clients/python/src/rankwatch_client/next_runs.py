"""Ask a monitor which models run next on which items."""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Iterable
from typing import Any, NamedTuple
from urllib.parse import urlencode

from rankwatch_client.client import REQUEST_SECONDS, Client
from rankwatch_client.transport import Response, Transport

log = logging.getLogger("rankwatch_client")

HELD_SECONDS = 5.0
"""How long a request lets the monitor wait for another answer: less than the timeout of the request."""

_STEPS = frozenset({"run", "wait", "stop"})
_STATES = frozenset({"met", "open", "impossible"})


class NextRun(NamedTuple):
    """What a model does next: ``run`` its `items`, ``wait``, or ``stop``."""

    step: str
    items_run: int
    items: list[str]


class Answer(NamedTuple):
    """An answer of a monitor.

    Attributes
    ----------
    over : bool
        Whether no further item can change the answer.
    goal : dict
        ``state``, ``models``, ``reason``, ``open_pairs`` and further fields of the goal.
    runs : dict of str to NextRun
        By model.
    """

    over: bool
    goal: dict[str, Any]
    runs: dict[str, NextRun]


def undecided(goal: dict[str, Any]) -> str:
    """Return how many pairs of a goal are undecided, in words."""
    pairs = goal.get("open_pairs", "?")
    return f"{pairs} {'pair' if pairs == 1 else 'pairs'} undecided"


class NextRuns:
    """The answers of a monitor for one race.

    Parameters
    ----------
    client : Client
        Sends the scores of the race.
    benchmark, goal : str
    models : iterable of str
        Models that take part before their first score.
    items : iterable of str
        Ids of all items; an answer never has others.
    """

    def __init__(self, client: Client, benchmark: str, goal: str, models: Iterable[str], items: Iterable[str]) -> None:
        self._client = client
        self._query = [("benchmark", benchmark), ("goal", goal), *(("model", model) for model in models)]
        self._items = frozenset(items)
        self._transport = Transport(client.url, client._token, REQUEST_SECONDS)  # noqa: SLF001 - one package
        self._tag: str | None = None
        self._last: Answer | None = None

    def ask(self, wait: float = 0.0) -> Answer | None:
        """Return the answer after the last scores that were sent; None without one.

        With `wait` seconds, the monitor holds it back until it differs from the last one.

        Raises
        ------
        ValueError
            If the monitor refuses the race before its first answer; the message has its reason.
        """
        query = list(self._query)
        if wait:
            query.append(("wait", f"{min(wait, HELD_SECONDS):.2f}"))
        written = self._client._written  # noqa: SLF001 - one package
        response = self._request([*query, ("at_least", written)] if written else query, known=bool(wait))
        if response.status == 422 and written and response.reason.startswith("at_least"):
            response = self._request(query, known=bool(wait))  # written to another partition
        if response.status == 304:
            return self._last
        if response.status == 200:
            answer = _checked(response.body, self._items)
            if answer is None:
                log.warning("%s: the answer to next is not one of a rankwatch", self._client.url)
            else:
                self._tag, self._last = response.tag, answer
            return answer
        if response.status not in {0, 404} and not response.transient:
            if self._last is None:
                raise ValueError(f"the monitor refuses the race: {response.reason}")
            log.warning("the monitor refuses to go on with the race: %s", response.reason)
        return None

    def _request(self, query: list[tuple[str, str]], *, known: bool) -> Response:
        return self._transport.request("GET", f"next?{urlencode(query)}", known=self._tag if known else None)

    def close(self) -> None:
        """Close the connection."""
        self._transport.close()


def declared(client: Client, benchmark: str) -> dict[str, Any]:
    """Return what the monitor has declared of a benchmark; nothing if it does not answer, or has no declaration."""
    transport = Transport(client.url, client._token, REQUEST_SECONDS)  # noqa: SLF001 - one package
    response = transport.request("GET", f"declarations?{urlencode({'benchmark': benchmark})}")
    transport.close()
    return response.body if response.status == 200 and isinstance(response.body, dict) else {}


def declared_seed(declaration: dict[str, Any], items: Iterable[str]) -> str | None:
    """Return the seed of a declared order of the same items; None without one."""
    order, listed = declaration.get("order"), declaration.get("item_ids")
    if not isinstance(order, dict) or not isinstance(listed, list) or set(map(str, listed)) != set(items):
        return None
    seed = order.get("seed")
    return seed if isinstance(seed, str) else None


def declared_look(declaration: dict[str, Any], seed: str) -> dict[str, Any]:
    """Return the look of a declared order of a seed, as a field of the next declaration; nothing without one."""
    order, look = declaration.get("order"), declaration.get("look")
    same = isinstance(order, dict) and order.get("seed") == seed
    return {"look": look} if same and isinstance(look, float) else {}


def in_committed_order(seed: str, items: Iterable[str]) -> list[str]:
    """Return items in the order that a seed commits to."""
    return sorted(items, key=lambda item: hashlib.sha256(f"{seed}\0{item}".encode()).digest())


def _checked(body: Any, items: frozenset[str]) -> Answer | None:  # noqa: ANN401 - any JSON
    """Return an answer, without items that are not those of the race; None if it has another shape."""
    try:
        goal, runs = dict(body["goal"]), {}
        for run in body["models"]:
            listed = [item for item in run["items"] if isinstance(item, str) and item in items]
            if run["step"] not in _STEPS or not isinstance(run["items_run"], int):
                return None
            runs[str(run["model"])] = NextRun(run["step"], run["items_run"], list(dict.fromkeys(listed)))
        if goal["state"] not in _STATES or not isinstance(body["over"], bool):
            return None
        goal["models"], goal["reason"] = [str(model) for model in goal["models"]], str(goal["reason"])
        return Answer(body["over"], goal, runs)
    except (KeyError, TypeError, ValueError):
        return None
