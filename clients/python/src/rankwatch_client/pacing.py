"""Run the samples of a harness in the blocks that a monitor asks for: each sample waits, runs or is stopped."""

from __future__ import annotations

import logging
import threading
import time
from typing import Any

from rankwatch_client.client import Client
from rankwatch_client.next_runs import HELD_SECONDS, Answer, NextRuns, declared, declared_look, undecided
from rankwatch_client.races import AWAY_BLOCK, AWAY_SECONDS

log = logging.getLogger("rankwatch_client")

_LOOK_SECONDS = 0.5


class PacedRun:
    """One model of a race.

    Parameters
    ----------
    model : str
    asker : Asker
    items : list of str
        In the committed order.
    patience : float
        Seconds to wait for results of other models while nothing moves.
    """

    def __init__(self, model: str, asker: Asker, items: list[str], patience: float) -> None:
        self.model, self.asker, self._items, self._patience = model, asker, items, patience
        self._place = {item: k for k, item in enumerate(items)}
        self._judged: set[str] = set()
        self._granted: set[str] = set()
        """Samples that run although the monitor has not asked for them."""
        self._running: set[str] = set()
        self._stopped = 0
        self._alone = False
        self._seen: Answer | None = None
        self._moved = time.monotonic()

    def judge(self, item: str) -> str | None:
        """Return "" to run a sample, a reason to stop it, or None to wait."""
        reason = self._judge(item, self.asker.answer)
        if reason is None:
            self._go_on_alone()
            return None
        self._judged.add(item)
        if reason:
            self._stopped += 1
        else:
            self._running.add(item)
        return reason

    def _judge(self, item: str, answer: Answer | None) -> str | None:
        run = None if answer is None else answer.runs.get(self.model)
        if answer is not None and run is not None:
            if answer.over or run.step == "stop":
                return f"{answer.goal['reason']} No further sample of {self.model} can change it."
            if item in run.items or item in self._granted:
                return ""
            if run.items and self._place[item] < self._place[run.items[-1]]:
                return "The monitor has its score already."
        return "" if item in self._granted else None

    def _go_on_alone(self) -> None:
        """Let a further block run where the monitor is away, or nothing has moved for too long."""
        if self.asker.answer is not self._seen:
            self._seen, self._alone = self.asker.answer, False
            self._moved = time.monotonic()
        if self._running:
            self._moved = time.monotonic()
        away = self.asker.away_seconds() > AWAY_SECONDS
        patience = AWAY_SECONDS if away else self._patience
        if time.monotonic() - self._moved < (patience / 10 if away or self._alone else patience):
            return
        if not self._alone:
            why = "the monitor does not answer" if away else f"nothing has moved for {patience:g} s"
            log.warning("%s goes on along the order: %s", self.model, why)
        self._alone, self._moved = True, time.monotonic()
        self._granted.update([item for item in self._items if item not in self._judged][:AWAY_BLOCK])

    def scored(self, item: str) -> None:
        """Note that a sample has its score."""
        self._running.discard(item)

    def counters(self) -> dict[str, str]:
        """Return what is open, and what was saved at the end, as captions and values."""
        answer = self.asker.answer
        if answer is None:
            return {}
        goal = answer.goal
        open_pairs = "" if answer.over else f", {undecided(goal)}"
        counters = {f"{goal.get('goal', 'goal')}": f"{goal['state']}{open_pairs}"}
        if answer.over and isinstance(goal.get("saved_ratio"), (int, float)):
            counters["saved"] = f"{100 * goal['saved_ratio']:.1f} %"
        return counters

    def finish(self) -> dict[str, Any]:
        """End the run if it can change nothing any more; return what is known of the race."""
        answer, stopped = self.asker.finish(self.model), {"samples_stopped": self._stopped}
        if answer is None:
            return {"state": "open", "reason": "The monitor did not answer.", **stopped}
        names = ("goal", "state", "models", "reason", "items_run", "items_full", "saved_ratio")
        return {**{name: answer.goal.get(name) for name in names}, **stopped}


class Asker:
    """Asks the monitor from a thread, while samples wait; shared by the models of a race.

    Parameters
    ----------
    client : Client
        Sends the scores.
    benchmark, goal : str
    models : list of str or None
        The declared family; None for the models that begin.
    seed : str
    items : list of str
        In the committed order.
    """

    def __init__(
        self, client: Client, benchmark: str, goal: str, models: list[str] | None, seed: str, items: list[str]
    ) -> None:
        self.key = (goal, seed, items)
        self.answer: Answer | None = None
        self._benchmark, self._goal, self._models, self._seed, self._items = benchmark, goal, models, seed, items
        self._client = client
        self._names: list[str] = []
        self._answered = time.monotonic()
        self._beginning, self._changed = threading.Lock(), threading.Condition()
        self._waiting = 0
        self._thread: threading.Thread | None = None

    def begin(self, model: str) -> None:
        """Declare the race, once; check that the monitor has the same order."""
        with self._beginning:
            self._names = list(dict.fromkeys([*self._names, model]))
            if self._thread is not None:
                return
            spec: dict[str, object] = {} if self._models is None else {"family": {"models": self._models}}
            spec["order"] = {"policy": "committed", "seed": self._seed}
            spec.update(declared_look(declared(self._client, self._benchmark), self._seed))
            self._answered = time.monotonic()
            self._client.declare(benchmark=self._benchmark, item_ids=self._items, goal=self._goal, **spec)
            if self._client.flush(AWAY_SECONDS):
                self._check_order()
            self._thread = threading.Thread(target=self._run, name="rankwatch-race", daemon=True)
            self._thread.start()

    def _check_order(self) -> None:
        body = declared(self._client, self._benchmark)
        order, items = body.get("order"), body.get("item_ids")
        if isinstance(order, dict) and order.get("seed") != self._seed:
            other = order.get("seed")
            fix = (
                f"pass seed={str(other)!r} to race()"
                if other
                else "a race needs an order that is committed before the first score"
            )
            raise ValueError(f"the monitor has another order of {self._benchmark}; {fix}")
        if isinstance(items, list) and set(map(str, items)) != set(self._items):
            raise ValueError(
                f"the monitor has {len(items):,} other items of {self._benchmark} than these {len(self._items):,}; omit --limit and "
                "--sample-id: the race is over the declared items"
            )

    def waiting(self) -> Asker:
        """Return a context in which the monitor is asked."""
        return self

    def __enter__(self) -> None:
        with self._changed:
            if not self._waiting:
                self._answered = time.monotonic()  # nobody asked until now
            self._waiting += 1
            self._changed.notify_all()

    def __exit__(self, *_: object) -> None:
        with self._changed:
            self._waiting -= 1

    def away_seconds(self) -> float:
        """Return for how long the monitor has not answered."""
        return time.monotonic() - self._answered

    def _run(self) -> None:
        asked: list[str] = []
        runs: NextRuns | None = None
        while True:
            with self._changed:
                while not self._waiting:
                    self._changed.wait()
                names = self._names
            if runs is None or names != asked:
                if runs is not None:
                    runs.close()
                runs, asked = self._next(names), names
            self._look(runs)

    def _next(self, names: list[str]) -> NextRuns:
        # A declared family needs no names.
        return NextRuns(self._client, self._benchmark, self._goal, () if self._models else names, self._items)

    def _look(self, runs: NextRuns) -> None:
        try:
            answer = runs.ask(HELD_SECONDS if self.answer is not None else 0.0)
        except ValueError as error:
            log.warning("%s; every sample runs", error)
            answer = None
        if answer is None:
            time.sleep(_LOOK_SECONDS)
            return
        self._answered = time.monotonic()
        if answer != self.answer:
            self.answer = answer

    def finish(self, model: str) -> Answer | None:
        """Return the answer at the end; end the run of a model that can change nothing any more."""
        answer = self._last_answer()
        run = answer.runs.get(model) if answer else None
        if run is not None and run.step == "stop" and run.items_run:
            self._client.end_run(benchmark=self._benchmark, model=model)
        return answer

    def _last_answer(self) -> Answer | None:
        """Return the answer that has every score; None if the monitor is away, unless the race was over before."""
        known = self.answer if self.answer is not None and self.answer.over else None
        if not self._client.flush(AWAY_SECONDS):
            return known
        runs = self._next(self._names)
        try:
            return runs.ask() or known
        except ValueError:
            return known
        finally:
            runs.close()
