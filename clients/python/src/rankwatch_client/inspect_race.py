"""Race Inspect tasks: run samples in blocks along a committed order, and stop once the question is answered.

Inspect asks its early stopping manager before each sample. The manager lets a sample wait until the monitor asks for it, and stops the
samples that cannot change the answer. The hook of `rankwatch_client.inspect` sends the scores.
"""

from __future__ import annotations

import logging
import os
import secrets
from contextvars import ContextVar
from typing import Any

import anyio
import anyio.to_thread
from inspect_ai import Task
from inspect_ai.dataset import Sample
from inspect_ai.log import EvalSpec
from inspect_ai.scorer import SampleScore
from inspect_ai.util import EarlyStop, display_counter

from rankwatch_client.client import Client
from rankwatch_client.next_runs import in_committed_order
from rankwatch_client.pacing import Asker, PacedRun

log = logging.getLogger("rankwatch_client")

RACE = "rankwatch_race"
"""Field of a task's metadata that names the goal and the seed."""

PATIENCE_SECONDS = 60.0
"""How long a model waits for results of others, while nothing moves, before it goes on without them."""

_POLL_SECONDS = 0.05
_seed = secrets.token_hex(16)
"""One seed for the process: Inspect makes the task again for each model."""
_client: Client | None = None
_current: ContextVar[PacedRun | None] = ContextVar("run", default=None)
"""The run whose samples are scheduled: Inspect does not name it."""
_races: dict[str, Asker] = {}
_runs: dict[str, PacedRun] = {}


def race(
    task: Task,
    *,
    goal: str = "best",
    models: list[str] | None = None,
    seed: str | None = None,
    patience: float = PATIENCE_SECONDS,
) -> Task:
    """Make a task run only what its question needs: ``return race(Task(...), goal="best")``.

    Evaluate several models at once (``inspect eval task.py --model a,b,c``), or start each in a process of its own with the same seed.
    RANKWATCH_URL names the monitor. Without one, or while it is away, the evaluation goes on and saves nothing.

    Parameters
    ----------
    task : Task
        Its dataset is put into the committed order.
    goal : str
        best, top:K, ranking, pair:A,B or model:M.
    models : list of str, optional
        All models that take part, as Inspect names them; they share alpha equally. Default: those that start, in order of arrival.
    seed : str, optional
        Seed of the order, declared before the first sample; default: RANKWATCH_SEED, else a random one.
    patience : float
        Seconds that a model waits for results of others while nothing moves.

    Returns
    -------
    Task
        The same task.
    """
    seed = seed or os.environ.get("RANKWATCH_SEED") or _seed
    for number, sample in enumerate(task.dataset, 1):
        if sample.id is None:
            sample.id = number
    place = {item: k for k, item in enumerate(in_committed_order(seed, (str(each.id) for each in task.dataset)))}
    task.dataset.sort(key=lambda sample: place[str(sample.id)])
    task.metadata = {**(task.metadata or {}), RACE: {"goal": goal, "seed": seed}}
    task.early_stopping = _Stopping(goal, models, seed, patience)
    return task


def shared_client() -> Client:
    """Return the client of this process, which the hook sends with."""
    global _client  # noqa: PLW0603 - one connection a process
    if _client is None:
        _client = Client()
    return _client


def run_of(eval_id: str) -> PacedRun | None:
    """Return the run of an evaluation that is raced."""
    return _runs.get(eval_id)


class _Stopping:
    """The early stopping manager of a task; several models may share it."""

    def __init__(self, goal: str, models: list[str] | None, seed: str, patience: float) -> None:
        self._goal, self._models, self._seed, self._patience = goal, models, seed, patience

    async def start_task(self, task: EvalSpec, samples: list[Sample], epochs: int) -> str:
        """Commit to the order before the first sample."""
        _current.set(None)
        items = [str(sample.id) for sample in samples]
        if epochs != 1:
            raise ValueError(f"a race runs each sample once; the task has {epochs} epochs")
        if items != in_committed_order(self._seed, items):
            raise ValueError("the samples are not in the committed order; omit --sample-shuffle, which race() replaces")
        if not os.environ.get("RANKWATCH_URL"):
            log.warning("RANKWATCH_URL is not set: every sample of %s runs", task.task)
            return "rankwatch (no monitor)"
        asker = _races.get(task.task)
        if asker is None or asker.key != (self._goal, self._seed, items):
            asker = _races[task.task] = Asker(shared_client(), task.task, self._goal, self._models, self._seed, items)
        await anyio.to_thread.run_sync(asker.begin, task.model)
        run = _runs[task.eval_id] = PacedRun(task.model, asker, items, self._patience)
        _current.set(run)
        return "rankwatch"

    async def schedule_sample(self, id: str | int, epoch: int) -> EarlyStop | None:  # noqa: A002 - Inspect's name
        """Wait until a sample is to be run, or not any more."""
        run = _current.get()
        if run is None:
            return None
        with run.asker.waiting():
            while (reason := run.judge(str(id))) is None:  # noqa: ASYNC110 - a thread changes what it judges
                await anyio.sleep(_POLL_SECONDS)
        for caption, value in run.counters().items():
            display_counter(caption, value)
        return EarlyStop(id=id, epoch=epoch, reason=reason) if reason else None

    async def complete_sample(self, id: str | int, epoch: int, scores: dict[str, SampleScore]) -> None:  # noqa: A002
        """Do nothing: the hook sends the score."""

    async def complete_task(self) -> dict[str, Any]:
        """Return what the log of the task keeps of the race."""
        run = _current.get()
        if run is None:
            return {}
        for eval_id in [eval_id for eval_id, each in _runs.items() if each is run]:
            del _runs[eval_id]
        return await anyio.to_thread.run_sync(run.finish)
