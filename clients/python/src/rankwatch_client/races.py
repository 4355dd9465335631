"""Evaluate models block by block until a question is answered, and run no item that cannot change the answer."""

from __future__ import annotations

import asyncio
import secrets
import sys
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, TypedDict

from rankwatch_client.client import Client
from rankwatch_client.next_runs import (
    Answer,
    NextRuns,
    declared,
    declared_look,
    declared_seed,
    in_committed_order,
    undecided,
)

if TYPE_CHECKING:
    from typing_extensions import Unpack

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
        Scores that were evaluated, those of earlier calls included.
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


class RaceOptions(TypedDict, total=False):
    """Options of a race.

    Attributes
    ----------
    goal : str
        As in a declaration: best (the default), top:K, ranking, pair:A,B or model:M.
    clusters : mapping of str to str
        The cluster of items, by id.
    seed : str
        Seed of the committed order, declared before the first score. Default: that of the same items on the monitor, so that a race
        that broke off goes on; else a random one.
    url, token : str
        As for `Client`.
    progress : bool
        Whether to show a progress line on stderr; default: if it is a terminal.
    without_monitor : bool
        Whether to evaluate every item if the monitor does not answer at the start; default: the race fails before its first item.
    """

    goal: str
    clusters: Mapping[str, str | None]
    seed: str | None
    url: str | None
    token: str | None
    progress: bool | None
    without_monitor: bool


def race(
    models: Iterable[str],
    items: Iterable[str] | Mapping[str, Any],
    evaluate: Callable[[str, Any], Any],
    *,
    benchmark: str,
    **options: Unpack[RaceOptions],
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
    benchmark : str
    **options
        ``goal``, ``clusters``, ``seed``, ``url``, ``token``, ``progress`` and ``without_monitor``: see `RaceOptions`.

    Raises
    ------
    ConnectionError
        If the monitor does not answer before the first item, unless `without_monitor` is true.

    Notes
    -----
    If the monitor goes away later, all models go on along the order in blocks of `AWAY_BLOCK` items: no score is lost, and none is saved.
    """
    with Race(models, items, benchmark, **options) as running:
        while block := running.next_block():
            for model, item in block:
                running.score(model, item, evaluate(model, running.value(item)))
        return running.result()


def race_blocks(
    models: Iterable[str],
    items: Iterable[str] | Mapping[str, Any],
    evaluate: Callable[[str, list[str]], Mapping[str, Any]],
    *,
    benchmark: str,
    **options: Unpack[RaceOptions],
) -> RaceResult:
    """Evaluate models until the goal is met, one block of a model at a time; see `race`.

    ``evaluate(model, ids)`` returns the score of each id; an id that it omits counts as skipped.
    """
    with Race(models, items, benchmark, **options) as running:
        while block := running.next_block():
            for model in dict.fromkeys(model for model, _ in block):
                ids = [item for each, item in block if each == model]
                scores = evaluate(model, ids)
                for item in ids:
                    running.score(model, item, scores.get(item))
        return running.result()


async def async_race(
    models: Iterable[str],
    items: Iterable[str] | Mapping[str, Any],
    evaluate: Callable[[str, Any], Awaitable[Any]],
    *,
    benchmark: str,
    concurrency: int = 16,
    **options: Unpack[RaceOptions],
) -> RaceResult:
    """Evaluate models until the goal is met, `concurrency` items of a block at a time; see `race`."""
    limit = asyncio.Semaphore(concurrency)
    running = await asyncio.to_thread(Race, models, items, benchmark, **options)

    async def run(model: str, item: str) -> None:
        async with limit:
            running.score(model, item, await evaluate(model, running.value(item)))

    try:
        while block := await asyncio.to_thread(running.next_block):
            await asyncio.gather(*(run(model, item) for model, item in block))
        return await asyncio.to_thread(running.result)
    finally:
        await asyncio.to_thread(running.close)


class Race:
    """The state of a race: what was evaluated, and what the monitor last answered."""

    def __init__(
        self,
        models: Iterable[str],
        items: Iterable[str] | Mapping[str, Any],
        benchmark: str,
        *,
        goal: str = "best",
        clusters: Mapping[str, str | None] | None = None,
        seed: str | None = None,
        url: str | None = None,
        token: str | None = None,
        progress: bool | None = None,
        without_monitor: bool = False,
    ) -> None:
        self._without = without_monitor
        self._models = list(dict.fromkeys(models))
        self._ids = [str(item) for item in items]
        self._goal = goal
        self._client = Client(url, token, benchmark)
        before = declared(self._client, benchmark)
        self._seed = seed or declared_seed(before, self._ids) or secrets.token_hex(16)
        self._next = NextRuns(self._client, benchmark, goal, (), self._ids)
        self._clusters = clusters or {}
        self._done: set[tuple[str, str]] = set()
        self._ended: set[str] = set()
        self._last: Answer | None = None
        self._answered = True
        self._progress = sys.stderr.isatty() if progress is None else progress
        self._value = {str(item): value for item, value in items.items()} if isinstance(items, Mapping) else {}
        self._client.declare(
            order={"policy": "committed", "seed": self._seed},
            item_ids=self._ids,
            family={"models": self._models},
            goal=goal,
            **declared_look(before, self._seed),
        )

    def __enter__(self) -> Race:  # noqa: PYI034 - Self is younger than Python 3.9
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def value(self, item: str) -> Any:  # noqa: ANN401 - any item
        """Return what `evaluate` gets for an item."""
        return self._value.get(item, item)

    def score(self, model: str, item: str, score: Any) -> None:  # noqa: ANN401 - the client checks it
        """Send a score."""
        self._done.add((model, item))
        self._client.score(item, score, model=model, cluster=self._clusters.get(item))

    def next_block(self) -> list[tuple[str, str]]:
        """Return what to evaluate next; nothing at the end."""
        answer = self._ask()
        if answer is None:
            if self._last is None and not self._without:
                raise ConnectionError(
                    f"the monitor at {self._client.url} does not answer, and no item was run: start it, correct the address (url= or "
                    "RANKWATCH_URL), or pass without_monitor=True to run every item"
                )
            block = self._without_monitor()
        else:
            for model, run in answer.runs.items():
                if run.step == "stop" and run.items_run and model in self._models and model not in self._ended:
                    self._ended.add(model)
                    self._client.end_run(model=model)
            block = [] if answer.over else self._new(answer)
        self._show(bool(block))
        return block

    def _new(self, answer: Answer) -> list[tuple[str, str]]:
        """Return what an answer asks for that this race has not evaluated."""
        cells = [(model, item) for model, run in answer.runs.items() for item in run.items]
        return [cell for cell in cells if cell[0] in self._models and cell not in self._done]

    def _ask(self) -> Answer | None:
        """Return the answer of the monitor once it has every score; None if it is away, or does not answer in time."""
        patience = AWAY_SECONDS if self._answered else AWAY_SECONDS / 10
        deadline, self._answered = time.monotonic() + patience, False
        if not self._client.flush(patience):
            return None
        answer = self._next.ask()
        while answer is None or not (answer.over or self._new(answer)):
            # The fold of the last scores may be under way.
            left = deadline - time.monotonic()
            if left <= 0:
                return None
            time.sleep(_POLL_SECONDS)
            answer = self._next.ask(left)
        self._last, self._answered = answer, True
        return answer

    def _without_monitor(self) -> list[tuple[str, str]]:
        """Return the next items of every model along the order."""
        order = in_committed_order(self._seed, self._ids)
        return [
            (model, item)
            for model in self._models
            if model not in self._ended
            for item in [item for item in order if (model, item) not in self._done][:AWAY_BLOCK]
        ]

    def _show(self, going_on: bool) -> None:  # noqa: FBT001 - private
        if not self._progress:
            return
        goal = self._last.goal if self._last else {}
        full, run = len(self._models) * len(self._ids), self._run()
        state = f"{goal.get('state', 'open')}, {undecided(goal)}"
        left = self._spared() if going_on else full - run
        saved = (
            f", {100 * left / full:.1f} % saved{' so far' if going_on else ''}"
            if full and (left or not going_on)
            else ""
        )
        sys.stderr.write(
            f"\r\x1b[K{self._goal}: {state}; {run:,} of {full:,} scores{saved}" + ("" if going_on else "\n")
        )
        sys.stderr.flush()

    def _run(self) -> int:
        """Return how many scores were evaluated: by this race, and before it."""
        runs = self._last.runs if self._last else {}
        # The monitor may lag, and this race does not know of scores before it.
        return max(len(self._done), sum(runs[model].items_run for model in self._models if model in runs))

    def _spared(self) -> int:
        """Return how many scores the models need no more that have stopped."""
        runs = self._last.runs if self._last else {}
        stopped = (runs[model].items_run for model in self._models if model in runs and runs[model].step == "stop")
        return sum(len(self._ids) - run for run in stopped)

    def result(self) -> RaceResult:
        """Return how the race ended."""
        full = len(self._models) * len(self._ids)
        if self._last is None:
            return RaceResult("open", [], "The monitor did not answer.", self._run(), full)
        goal = self._last.goal
        return RaceResult(goal["state"], goal["models"], goal["reason"], self._run(), full)

    def close(self) -> None:
        """Send what is queued, for at most some seconds."""
        self._next.close()
        self._client.close()
