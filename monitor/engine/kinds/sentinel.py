"""A sentinel in the log: a benchmark on which each model is run many times, and every run is ranked among those before it.

Its state is a function of the log. A journal of what was taken rebuilds it: the scores as records of a fixed size, and one line for each
item, run, close and announced change.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from monitor.engine.kinds.runs import (
    Alarm,
    ModelRuns,
    Monitor,
    Of,
    OpenRun,
    Rank,
    Scores,
    describe,
    in_turn,
    means,
    weekday,
)
from monitor.engine.limits import Limits, Usage, bad_name, limit_fault, model_fault, usage_fault
from schemas.records.columns import EventBatch
from schemas.records.declaration import ANCHOR, Spec
from schemas.records.events import BattleFields, Ended, EventFields
from schemas.records.run_names import name_of
from schemas.records.scores import RUN_SCORE
from schemas.records.text import Fault, Refusal, shorten
from schemas.results.drift import DriftAlarm, RunClosed
from schemas.results.reasons import DriftKind

Journal = NDArray[np.void]


class Moved(NamedTuple):
    """What a monitor reports of a run: an alarm, or that its runs contradict what was declared of them."""

    model: str
    of: Of
    kind: DriftKind
    run: str
    number: int  # of the monitor in its sentinel
    place: int  # of the run among those that it has ranked
    facts: DriftAlarm | None
    judge_moved: bool | None  # whether the judge of the model has moved so far; None without frozen answers
    position: int  # of the event with which the run closed


class Sentinel:
    """The runs of all models of one sentinel."""

    def __init__(self, name: str, spec: Spec) -> None:
        assert spec.drift is not None, "a sentinel declares drift"
        self.name, self.settings = name, spec.drift.settings(spec.items)
        self.aliases = spec.aliases
        self.repeats = spec.repeats if isinstance(spec.repeats, int) else 10**9
        self.models: dict[str, ModelRuns] = {}
        self.items: dict[str, int] = {}
        self.runs = 0
        self.score_count = 0
        self.lines: list[tuple[Any, ...]] = []
        """What the journal gets of the present chunk, and the scores; `taken` empties both."""
        self.scores: list[tuple[int, int, int, int, float]] = []

    @property
    def has_begun(self) -> bool:
        """Whether a run has begun: its declaration never changes."""
        return bool(self.models)

    @property
    def usage(self) -> Usage:
        """What it takes of the budgets of its partition."""
        return Usage(len(self.items), self.score_count, 0)

    # --- the fold ---------------------------------------------------------------------------------------------------------------------

    def fold(
        self, batch: EventBatch, limits: Limits, files: Mapping[int, str]
    ) -> tuple[list[tuple[int, Fault]], list[Moved]]:
        """Take the scores of a batch; return the position and fault of each that is refused, and what monitors report."""
        # `files` has the file of each record that was read from one: it names the run of scores that name none.
        refused: list[tuple[int, Fault]] = []
        moved: list[Moved] = []
        for position, event in enumerate(batch.events):
            file = files.get(batch.offsets[position])
            fault = self._take(event, "" if file is None else name_of(file), limits, position, moved)
            if fault is not None:
                refused.append((position, fault))
        return refused, moved

    def _take(
        self, event: EventFields, of_file: str, limits: Limits, position: int, moved: list[Moved]
    ) -> Fault | None:
        name = self._run_of(event, of_file)
        if isinstance(name, Fault):
            return name
        model = self._model(event.model, limits)
        if isinstance(model, Fault):
            return model
        if name in model.closed:
            model.counts["late"] += 1
            model.note("repeated", name)
            return None
        run = model.open.get(name) or self._begin(model, name, position, moved)
        if event.score is None:
            model.counts["skipped"] += 1
            return None
        fault = self._score(model, run, event, limits)
        if fault is None and run.has_all(self.settings, self.repeats):
            self._close(model, run, "complete", position, moved)
        return fault

    def _run_of(self, event: EventFields, of_file: str = "") -> str | Fault:
        """Return the run of a score, or why it has none; no other record changes that."""
        if isinstance(event, BattleFields):
            reason = f"{shorten(self.name)} watches the runs of each model, so it takes no battles; give these a benchmark of their own"
            return Refusal("winner", "a battle", reason, self.name)
        name = str(event.run) if isinstance(event.run, str | int) and not isinstance(event.run, bool) else ""
        return self._name_fault(name or of_file, event.run) or name or of_file

    def judge(self, limits: Limits, *, folded: bool) -> Callable[[EventFields], Fault | None]:
        """Return what finds the scores that the fold would refuse, if these were the next ones in the log; names alone unless `folded`."""
        models, items = {*self.models}, {*self.items}

        def fault(event: EventFields) -> Fault | None:
            name = self._run_of(event)
            if isinstance(name, Fault) or not folded:
                return name if isinstance(name, Fault) else None
            model = self.aliases.get(event.model, event.model)
            if model not in models and (found := self._model_fault(model, limits, len(models))) is not None:
                return found
            models.add(model)
            known = self.models.get(model)
            if event.score is None or (known is not None and name in known.closed):
                return None
            if (
                event.item_id not in items
                and (found := self._item_fault(event.item_id, limits, len(items))) is not None
            ):
                return found
            items.add(event.item_id)
            return None

        return fault

    def _score(self, model: ModelRuns, run: OpenRun, event: EventFields, limits: Limits) -> Fault | None:
        """Take a score of a run; the first of its item, repeat and role counts."""
        item = self._item(event.item_id, limits)
        if isinstance(item, Fault):
            return item
        anchor, score = event.role == ANCHOR, float(event.score or 0)
        scores = (run.anchors if anchor else run.fresh).setdefault(event.item_id, {})
        if event.repeat in scores:
            model.counts["duplicates" if scores[event.repeat] == score else "conflicts"] += 1
            return None
        scores[event.repeat] = score
        self.scores.append((run.number, item, event.repeat, int(anchor), score))
        self.score_count += 1
        return None

    def _model(self, name: str, limits: Limits) -> ModelRuns | Fault:
        """Return the runs of a model, new if need be, or why it is refused."""
        name = self.aliases.get(name, name)
        known = self.models.get(name)
        if known is not None:
            return known
        if (fault := self._model_fault(name, limits, len(self.models))) is not None:
            return fault
        self.models[name] = made = ModelRuns(self.name, name, self.settings)
        return made

    def _model_fault(self, name: str, limits: Limits, count: int) -> Fault | None:
        """Return why a new model is refused next to `count` others."""
        fault = model_fault(self.name, name, limits, count)
        most = self.settings.monitors // self.settings.per_model
        if fault is None and self.settings.monitors > 1 and count >= most:
            reason = (
                f"{shorten(name)} is one model more than the {self.settings.monitors} monitors that were declared, which share one false "
                "alarm; give it a sentinel of its own"
            )
            fault = Refusal("model", shorten(name), reason, self.name)
        return fault

    def _name_fault(self, name: str, found: object = None) -> Fault | None:
        """Return why no run can have a name, or None."""
        if not name:
            reason = f"a score of {shorten(self.name)}, which is a sentinel, names its run; give it a field run"
            return Refusal("run", "nothing" if found is None else shorten(str(found)), reason, self.name)
        if self.settings.strata is not None and weekday(name) is None:
            reason = f"{shorten(name)} does not begin with a date (2026-11-03), which ranks by weekday need; name runs by their date"
            return Refusal("run", shorten(name), reason, self.name)
        return bad_name(self.name, "run", name)

    def _begin(
        self, model: ModelRuns, name: str, position: int, moved: list[Moved], *, started: bool = False
    ) -> OpenRun:
        """Begin a run; those that are open and have no declared start close, since their model has gone on."""
        for run in in_turn(model.open.values()):
            if not run.started:
                self._close(model, run, "next", position, moved)
        run = model.open[name] = OpenRun(name, self.runs, started)
        self.runs += 1
        self.lines.append(("run", model.model, name, started))
        return run

    def _item(self, name: str, limits: Limits) -> int | Fault:
        """Return the number of an item, a new one if need be, or why it is refused."""
        known = self.items.get(name)
        if known is not None:
            return known
        if (fault := self._item_fault(name, limits, len(self.items))) is not None:
            return fault
        self.items[name] = number = len(self.items)
        self.lines.append(("item", name))
        return number

    def _item_fault(self, name: str, limits: Limits, count: int) -> Fault | None:
        """Return why a new item is refused next to `count` others."""
        return (
            bad_name(self.name, "item_id", name)
            or limit_fault(self.name, "item_id", name, count, limits.rows)
            or usage_fault(self.name, "item_id", name, limits, self.usage)
        )

    def mark(self, ended: Ended, limits: Limits) -> tuple[Fault | None, list[Moved]]:
        """Take the start or the end of a run, the end of all that are open, or an announced change of a model."""
        moved: list[Moved] = []
        if (fault := self.unknown(ended, limits)) is not None:
            return fault, moved
        if ended.state is None:
            for model in self._ending(ended):
                for run in in_turn(model.open.values()):
                    self._close(model, run, "ended", 0, moved)
            return None, moved
        assert ended.model is not None, "what is reported of a run names its model"
        found = self._model(ended.model, limits)
        if isinstance(found, Fault):
            return found, moved
        if ended.state == "changed":
            found.announce()
            self.lines.append(("change", found.model, ended.reason or ""))
        else:
            self._mark_run(found, ended.run or "", ended.state, moved)
        return None, moved

    def _ending(self, ended: Ended) -> list[ModelRuns]:
        """Return the models that end all their open runs."""
        name = ended.model and self.aliases.get(ended.model, ended.model)
        return [each for each in self.models.values() if name in {None, each.model}]

    def unknown(self, ended: Ended, limits: Limits) -> Fault | None:
        """Return why a start, an end or a change is refused as the runs are now, or None."""
        model, run = ended.model or "", ended.run or ""
        known = self.models.get(self.aliases.get(model, model))
        if ended.state is None:
            if self._ending(ended):
                return None
            named = "no model" if ended.model is None else shorten(ended.model)
            reason = f"{named} has a run on {shorten(self.name)} yet, so none can end; send the scores first"
            return Refusal("ended", named, reason, self.name)
        if ended.state == "changed":
            reason = f"{shorten(model)} has no run on {shorten(self.name)} yet; a change is announced after one"
            return None if known is not None else Refusal("change", shorten(model), reason, self.name)
        return self._name_fault(run) or self._unknown_run(known, model, run, limits, started=ended.state == "started")

    def _unknown_run(
        self, known: ModelRuns | None, model: str, run: str, limits: Limits, *, started: bool
    ) -> Fault | None:
        """Return why a run cannot start, or cannot end."""
        if started:
            return None if known is not None else self._model_fault(model, limits, len(self.models))
        if known is not None and run in known.open.keys() | known.closed.keys():
            return None
        reason = f"{shorten(model)} has no run {shorten(run)} on {shorten(self.name)}; correct the name, or send scores first"
        return Refusal("run", shorten(run), reason, self.name)

    def _mark_run(
        self, model: ModelRuns, name: str, state: Literal["started", "ended", "cancelled"], moved: list[Moved]
    ) -> None:
        """Begin a run, or close it; one that has closed is left alone."""
        run = model.open.get(name)
        if state == "started":
            if name in model.closed:
                model.note("repeated", name)
            elif run is None:
                self._begin(model, name, 0, moved, started=True)
            elif not run.started:
                run.started = True
                self.lines.append(("started", run.number))
        elif run is not None:
            self._close(model, run, state, 0, moved)

    def _close(self, model: ModelRuns, run: OpenRun, closed: RunClosed, position: int, moved: list[Moved]) -> None:
        """Take a run, and note what its monitors report."""
        del model.open[run.name]
        held = {each.of for each in model.monitors if each.refuted is not None}
        ranked = model.enter(run.name, means(run.fresh), means(run.anchors), closed, mixed=run.mixed)
        ranks = {monitor.of: monitor.shown[-1] for monitor, _ in ranked}
        self.lines.append(("close", run.number, closed, ranks))
        judge = model.monitor("judge")
        for monitor, alarm in ranked:
            if alarm is None and (monitor.refuted is None or monitor.of in held):
                continue
            place = len(monitor.runs) - 1
            moved.append(
                Moved(
                    model.model,
                    monitor.of,
                    _kind(monitor, alarm),
                    run.name,
                    2 * [*self.models].index(model.model) + (monitor.of == "judge"),
                    place,
                    None if alarm is None else describe(monitor, alarm, place + 1),
                    None if judge is None else bool(judge.current),
                    position,
                )
            )

    # --- the journal ------------------------------------------------------------------------------------------------------------------

    def taken(self) -> tuple[list[tuple[Any, ...]], Journal]:
        """Return what the journal gets, and forget it."""
        lines, scores = self.lines, np.array(self.scores, RUN_SCORE)
        self.lines, self.scores = [], []
        return lines, scores

    def dump(self) -> dict[str, Any]:
        """Return what the journal does not show, as JSON."""
        return {name: model.dump() for name, model in self.models.items()}

    def restore(self, lines: Sequence[Sequence[Any]], scores: Journal, stored: dict[str, Any]) -> None:
        """Rebuild the state from the journal, without ranking a run again."""
        names = [line[1] for line in lines if line[0] == "item"]
        self.items = {name: number for number, name in enumerate(names)}
        self.score_count = scores.size
        order = np.argsort(scores["run"], kind="stable")
        ends = np.searchsorted(scores["run"][order], np.arange(sum(line[0] == "run" for line in lines) + 1))
        runs: list[tuple[ModelRuns, OpenRun]] = []
        for kind, *values in lines:
            if kind == "run":
                model, name, started = values
                of = self.models.setdefault(model, ModelRuns(self.name, model, self.settings))
                run = of.open[name] = OpenRun(name, len(runs), started)
                _fill(run, names, scores[order[ends[run.number] : ends[run.number + 1]]])
                runs.append((of, run))
            elif kind == "started":
                runs[values[0]][1].started = True
            elif kind == "change":
                self.models[values[0]].announce()
            elif kind == "close":
                number, closed, ranks = values
                of, run = runs[number]
                del of.open[run.name]
                known = {monitor: Rank(*rank) for monitor, rank in ranks.items()}
                of.enter(run.name, means(run.fresh), means(run.anchors), closed, mixed=run.mixed, known=known)
                run.fresh, run.anchors = {}, {}
        self.runs = len(runs)
        for name, each in stored.items():
            self.models.setdefault(name, ModelRuns(self.name, name, self.settings)).load(each)


def _kind(monitor: Monitor, alarm: Alarm | None) -> DriftKind:
    """Return what a monitor reports."""
    if alarm is None:
        return "drift.held"
    if monitor.of == "judge":
        return "drift.judge"
    return "drift.worse" if alarm.side == "worse" else "drift.better"


def _fill(run: OpenRun, names: Sequence[str], scores: Journal) -> None:
    """Give a run its scores."""
    for _, item, repeat, anchor, score in scores.tolist():
        of: Scores = run.anchors if anchor else run.fresh
        of.setdefault(names[item], {})[repeat] = score
