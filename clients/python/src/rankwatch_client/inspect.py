"""Send each sample of an Inspect run when it is scored, under the names that `rankwatch` reads from the log of the run.

Inspect loads the hook by its entry point; the hook is off unless RANKWATCH_URL is set. `race` makes a task stop once its question is
answered.
"""

from __future__ import annotations

import math
import os
from typing import Any

import anyio.to_thread
from inspect_ai.hooks import Hooks, SampleEnd, TaskEnd, TaskStart, hooks
from inspect_ai.log import EvalSpec

from rankwatch_client.client import Client
from rankwatch_client.inspect_race import RACE, race, run_of, shared_client

__all__ = ["RankwatchHooks", "race"]

CLUSTER_FIELDS = ("cluster", "category", "subject", "topic", "domain")
"""Metadata fields that name the cluster of a sample; the first one present counts."""

FLUSH_SECONDS = 10.0
"""How long the end of a task waits for the monitor."""

_LETTERS = {"C": 1.0, "I": 0.0, "P": 0.5, "N": 0.0}
_WORDS = {"yes": 1.0, "true": 1.0, "no": 0.0, "false": 0.0}


class _Run:
    """A task that runs."""

    def __init__(self, data: TaskStart, client: Client) -> None:
        self.task, self.model, self.client = data.spec.task, data.spec.model, client
        self.raced = RACE in (data.spec.metadata or {})
        self.scorers = [scorer.name for scorer in data.spec.scorers or ()]
        self.unscored: list[dict[str, Any]] = []
        """Samples without a score; they count as skipped once the run succeeds."""


@hooks(name="rankwatch", description="Sends each score to a rankwatch monitor")
class RankwatchHooks(Hooks):
    """Sends each score when Inspect reports it."""

    def __init__(self) -> None:
        self._runs: dict[str, _Run] = {}

    def enabled(self) -> bool:
        """Return whether RANKWATCH_URL names a monitor."""
        return bool(os.environ.get("RANKWATCH_URL"))

    async def on_task_start(self, data: TaskStart) -> None:
        """Declare the item count if the task specifies it."""
        run = self._runs[data.eval_id] = _Run(data, shared_client())
        items = _items(data.spec)
        if items is not None and not run.raced:
            run.client.declare(benchmark=run.task, items=items)

    async def on_sample_end(self, data: SampleEnd) -> None:
        """Send the score of a sample."""
        run, sample = self._runs.get(data.eval_id), data.sample
        if run is None:
            return
        event: dict[str, Any] = {
            "item_id": str(sample.id),
            "benchmark": run.task,
            "model": run.model,
            "cluster": _cluster(sample.metadata or {}),
            "repeat": sample.epoch - 1,
        }
        score = _score(run, sample.scores or {}) if sample.error is None else None
        if score is None and not run.raced:
            run.unscored.append(event)
            return
        run.client.score(score=score, **event)
        if (racer := run_of(data.eval_id)) is not None:
            racer.scored(event["item_id"])

    async def on_task_end(self, data: TaskEnd) -> None:
        """Send the queue; report samples without a score as skipped if the run succeeded."""
        run = self._runs.pop(data.eval_id, None)
        if run is None:
            return
        if data.log.status == "success":
            for event in run.unscored:
                run.client.score(score=None, **event)
        await anyio.to_thread.run_sync(run.client.flush, FLUSH_SECONDS)  # other models run meanwhile


def _items(spec: EvalSpec) -> int | None:
    """Return the item count of a run, or None if its specification leaves it open."""
    if spec.dataset.sample_ids:
        return len(spec.dataset.sample_ids)
    if spec.config.limit is not None or spec.config.sample_id is not None:
        return None
    return spec.dataset.samples or None


def _cluster(metadata: dict[str, Any]) -> str | None:
    name = next((name for name in CLUSTER_FIELDS if isinstance(metadata.get(name), (str, int))), None)
    return str(metadata[name]) if name is not None and metadata[name] != "" else None


def _score(run: _Run, scores: dict[str, Any]) -> float | None:
    """Return the score of the first scorer with a single value, converted as Inspect converts it."""
    names = [name for name in run.scorers if name in scores] + [name for name in scores if name not in run.scorers]
    for name in names:
        value = scores[name].value
        if not isinstance(value, (dict, list)):
            return _number(value)
    return None


def _number(value: object) -> float | None:
    if isinstance(value, (bool, int, float)):
        number = float(value)
    elif isinstance(value, str):
        known = _LETTERS.get(value, _WORDS.get(value.lower()))
        try:
            number = float(value) if known is None else known
        except ValueError:
            return None
    else:
        return None
    return None if math.isnan(number) else number
