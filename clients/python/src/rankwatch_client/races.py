"""Evaluate models block by block until a question is answered, and run no item that cannot change the answer."""

from __future__ import annotations

import asyncio
import hashlib
import secrets
import sys
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any, NamedTuple
from urllib.parse import urlencode

from rankwatch_client.client import REQUEST_SECONDS, Client
from rankwatch_client.transport import Transport

AWAY_SECONDS = 10.0
"""How long a block waits for the monitor before the race goes on without it."""

AWAY_BLOCK = 10
_POLL_SECONDS = 0.05


class RaceResult(NamedTuple):
    """How a race ended.

    Attributes
    ----------
    state : str
        ``met``, ``impossible`` or ``open``; open if the monitor was away at the end.
    models : list of str
        The answer, best first.
    reason : str
    items_run : int
        Scores that this race evaluated.
    items_full : int
        Scores of all models on all items.
    """

    state: str
    models: list[str]
    reason: str
    items_run: int
    items_full: int

    @property
    def saved_ratio(self) -> float:
        """Share of the scores that was not evaluated."""
        return 1 - self.items_run / self.items_full if self.items_full else 0.0


def race(
    models: Iterable[str],
    items: Iterable[str] | Mapping[str, Any],
    evaluate: Callable[[str, Any], Any],
    *,
    benchmark: str,
    goal: str = "best",
    seed: str | None = None,
    url: str | None = None,
    token: str | None = None,
    progress: bool | None = None,
) -> RaceResult:
    """Evaluate models until the goal is met.

    Parameters
    ----------
    models : iterable of str
    items : mapping of str to any, or iterable of str
        The items by id, or their ids.
    evaluate : callable
        ``evaluate(model, item)`` returns the score: 0, 1, True, False, or None for a skipped item. `item` is the value of the mapping, or
        the id. An exception ends the race; scores so far are sent, and the same call goes on from them.
    benchmark, goal : str
        The goal as in a declaration: best, top:K, ranking, pair:A,B or model:M.
    seed : str, optional
        Seed of the committed order; default: a random one. It is declared before the first score.
    url, token : str, optional
        As for `Client`.
    progress : bool, optional
        Whether to show a progress line on stderr; default: if it is a terminal.

    Notes
    -----
    While the monitor is away, all models go on along the order in blocks of `AWAY_BLOCK` items: no score is lost, and none is saved.
    """
    with _Race(models, items, benchmark, goal, seed, url, token, progress) as running:
        while block := running.next_block():
            for model, item in block:
                running.score(model, item, evaluate(model, running.value(item)))
        return running.result()


async def async_race(
    models: Iterable[str],
    items: Iterable[str] | Mapping[str, Any],
    evaluate: Callable[[str, Any], Awaitable[Any]],
    *,
    benchmark: str,
    concurrency: int = 16,
    goal: str = "best",
    seed: str | None = None,
    url: str | None = None,
    token: str | None = None,
    progress: bool | None = None,
) -> RaceResult:
    """Evaluate models until the goal is met, `concurrency` items of a block at a time; see `race`."""
    limit = asyncio.Semaphore(concurrency)
    running = await asyncio.to_thread(_Race, models, items, benchmark, goal, seed, url, token, progress)

    async def run(model: str, item: str) -> None:
        async with limit:
            running.score(model, item, await evaluate(model, running.value(item)))

    try:
        while block := await asyncio.to_thread(running.next_block):
            await asyncio.gather(*(run(model, item) for model, item in block))
        return await asyncio.to_thread(running.result)
    finally:
        await asyncio.to_thread(running.close)


class _Race:
    """The state of a race: what was evaluated, and what the monitor last answered."""

    def __init__(
        self,
        models: Iterable[str],
        items: Iterable[str] | Mapping[str, Any],
        benchmark: str,
        goal: str,
        seed: str | None,
        url: str | None,
        token: str | None,
        progress: bool | None,  # noqa: FBT001 - passed on from a keyword
    ) -> None:
        self._models = list(dict.fromkeys(models))
        self._ids = [str(item) for item in items]
        self._benchmark, self._goal = benchmark, goal
        self._seed = seed or secrets.token_hex(16)
        self._client = Client(url, token, benchmark)
        self._done: set[tuple[str, str]] = set()
        self._ended: set[str] = set()
        self._last: dict[str, Any] = {}
        self._answered = True
        self._progress = sys.stderr.isatty() if progress is None else progress
        self._value = {str(item): value for item, value in items.items()} if isinstance(items, Mapping) else {}
        self._client.declare(
            order={"policy": "committed", "seed": self._seed},
            item_ids=self._ids,
            family={"models": self._models},
            goal=goal,
        )

    def __enter__(self) -> _Race:  # noqa: PYI034 - Self is younger than Python 3.9
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def value(self, item: str) -> Any:  # noqa: ANN401 - any item
        """Return what `evaluate` gets for an item."""
        return self._value.get(item, item)

    def score(self, model: str, item: str, score: Any) -> None:  # noqa: ANN401 - the client checks it
        """Send a score."""
        self._done.add((model, item))
        self._client.score(item, score, model=model)

    def next_block(self) -> list[tuple[str, str]]:
        """Return what to evaluate next; nothing at the end."""
        answer = self._ask()
        if answer is None:
            block = self._without_monitor()
        else:
            for each in answer["models"]:
                if each["step"] == "stop" and each["items_run"] and each["model"] not in self._ended:
                    self._ended.add(each["model"])
                    self._client.end_run(model=each["model"])
            block = [(each["model"], item) for each in answer["models"] for item in each["items"]]
            block = [] if answer["over"] else [cell for cell in block if cell not in self._done]
        self._show(bool(block))
        return block

    def _ask(self) -> dict[str, Any] | None:
        """Return the answer of the monitor once it has every score; None if it is away, or does not answer in time."""
        patience = AWAY_SECONDS if self._answered else AWAY_SECONDS / 10
        deadline, self._answered = time.monotonic() + patience, False
        if not self._client.flush(patience):
            return None
        transport = Transport(self._client.url, self._client._token, REQUEST_SECONDS)  # noqa: SLF001 - one package
        query = urlencode([("benchmark", self._benchmark), ("goal", self._goal)])
        try:
            while True:
                response = transport.request("GET", f"next?{query}")
                if response.status == 200:
                    self._last = response.body
                    new = any((m["model"], item) not in self._done for m in self._last["models"] for item in m["items"])
                    if new or self._last["over"]:
                        self._answered = True
                        return self._last
                elif response.status not in {0, 404} and not response.transient:
                    raise ValueError(f"the monitor refuses the race: {response.reason}")
                # The fold of the last scores may be under way.
                if time.monotonic() > deadline:
                    return None
                time.sleep(_POLL_SECONDS)
        finally:
            transport.close()

    def _without_monitor(self) -> list[tuple[str, str]]:
        """Return the next items of every model along the order."""
        order = sorted(self._ids, key=lambda item: hashlib.sha256(f"{self._seed}\0{item}".encode()).digest())
        return [
            (model, item)
            for model in self._models
            if model not in self._ended
            for item in [item for item in order if (model, item) not in self._done][:AWAY_BLOCK]
        ]

    def _show(self, going_on: bool) -> None:  # noqa: FBT001 - private
        if not self._progress:
            return
        goal = self._last.get("goal", {})
        full = len(self._models) * len(self._ids)
        run = len(self._done)
        state = f"{goal.get('state', 'open')}, {goal.get('open_pairs', '?')} pairs undecided"
        saved = "" if going_on else f", {100 * (1 - run / full) if full else 0:.1f} % saved"
        sys.stderr.write(
            f"\r\x1b[K{self._goal}: {state}; {run:,} of {full:,} scores{saved}" + ("" if going_on else "\n")
        )
        sys.stderr.flush()

    def result(self) -> RaceResult:
        """Return how the race ended."""
        goal = self._last.get("goal") or {"state": "open", "models": [], "reason": "The monitor did not answer."}
        full = len(self._models) * len(self._ids)
        return RaceResult(goal["state"], goal["models"], goal["reason"], len(self._done), full)

    def close(self) -> None:
        """Send what is queued, for at most some seconds."""
        self._client.close()
