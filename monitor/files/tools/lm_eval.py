"""Samples of lm-evaluation-harness: ``samples_<task>_<time>.jsonl`` next to ``results_<time>.json``.

A line is one document under one filter, with a field for every metric of the task. The model and the item count come from the results file
of the same run.
"""

import hashlib
import json
import re
import shlex
from collections.abc import Iterator
from typing import Any, Final

import msgspec

from monitor.files.formats.choices import LOWER, cluster_of
from monitor.files.formats.log_file import LogFile
from monitor.files.streams.event_lines import RecordTranslator
from monitor.files.streams.paths import show
from monitor.files.streams.regular import Refusal
from monitor.files.tools.lm_eval_results import Results, read_results
from schemas.records.decode import OUT_OF_RANGE, above_scale
from schemas.records.events import EventFields
from schemas.records.names import name_fault
from schemas.records.text import Fault, shorten

NAME: Final = re.compile(r"samples_(?P<task>.+)_(?P<time>\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d(?:\.\d+)?)\.jsonl(?:\.gz)?")

_NOT_METRICS: Final = frozenset(
    {"doc_id", "doc", "target", "arguments", "resps", "filtered_resps", "filter", "metrics"}
    | {"doc_hash", "prompt_hash", "target_hash", "schema_version"}
)
_CORPUS_METRIC: Final = "has a list for every sample: it is a metric of the whole corpus"
_HASH_CHARACTERS: Final = 12
_SAMPLE: Final = msgspec.json.Decoder(dict[str, msgspec.Raw])

Sample = dict[str, msgspec.Raw]


class SampleTranslator(RecordTranslator):
    """Translates the samples of one task."""

    def __init__(self, log: LogFile) -> None:
        super().__init__(log.note)
        self._log = log
        self._task: _Task | None = None

    def events(self, line: bytes) -> Iterator[EventFields | Fault | bytes]:
        """Return the event of a sample, if it has the chosen filter."""
        sample = _parse(line)
        if sample is None:
            text = shorten(line.decode("utf-8", "replace"))
            yield Fault("record", text, "the line is not a JSON object; check that the file was not cut or edited")
            return
        if self._task is None:
            self._task = self._begin(sample)
            if self._task.items is not None and self._log.declares_items:
                yield self._writer.declare(self._task.benchmark, items=self._task.items)
        if (event := self._task.event(sample)) is not None:
            yield event

    def end(self) -> Fault | None:
        """Return a fault if no sample has the chosen filter."""
        task = self._task
        if task is None or task.filter in task.filters:
            return None
        return task.no_filter(sorted(task.filters))

    def _begin(self, sample: Sample) -> "_Task":
        log, path = self._log, self._log.path
        name = NAME.fullmatch(path.name)
        results = read_results(path, name["time"]) if name else None
        task = name["task"] if name else None
        group = results.group(task) if results and task and not log.choices.subtasks else None
        benchmark = log.choices.benchmark or group or task
        log.note_unused("samples of lm-eval", "metric", "filter", "cluster", "benchmark")
        if benchmark is None:
            reason = f"{shorten(path.name)} does not name the task; rename it to samples_<task>_<time>.jsonl, or use --benchmark NAME"
            raise Refusal("file", shorten(path.name), reason)
        model = log.model or (results.model if results else None) or self._folder()
        version = results.versions.get(task or "") if results else None
        log.runs.add_run(path, task or benchmark, model, version, path.name, benchmark)
        if results:
            self._note_groups(results, group, benchmark)
        return _Task(benchmark, group, task or benchmark, model, sample, results, log)

    def _note_groups(self, results: Results, group: str | None, benchmark: str) -> None:
        """Report what the groups of a run become: one benchmark, or several that a suite would report as one."""
        notices, choices = self._log.notices, self._log.choices
        if group is not None:
            notices(
                f"{shorten(benchmark)}: the group's subtasks ({len(results.subtasks(group)):,}) are one benchmark, and each is a cluster; "
                "--subtasks keeps them apart"
            )
            if choices.cluster is None and results.means_by_subtask(group):
                notices(
                    f"{shorten(benchmark)}: lm-eval averages the means of the subtasks, large or small, and this report their items; "
                    "--weights equal-clusters averages as lm-eval does"
                )
        if choices.benchmark is not None:
            return
        for name, members in results.lists(apart=choices.subtasks).items():
            if not any(name_fault(each) or "," in each for each in (name, *members)) and "=" not in name:
                flag = shlex.quote(f"{name}={','.join(members)}")
                notices(
                    f"{shorten(name)}: a group of {len(members):,} benchmarks; --suite {flag} --distinct reports them as one"
                )

    def _folder(self) -> str:
        name = self._log.path.parent.name
        self._log.note(f"no results file is next to it; the model is called {show(name)}, like the folder")
        return name


class _Task:
    """The samples of one task, with the metric, filter and clusters that count."""

    def __init__(
        self,
        benchmark: str,
        group: str | None,
        task: str,
        model: str,
        first: Sample,
        results: Results | None,
        log: LogFile,
    ) -> None:
        self.benchmark, self._group, self._task, self._model, self._log = benchmark, group, task, model, log
        self._choices = log.choices
        self._names = (task, group) if group else (task,)
        self.items = results.items(group or task) if results else None
        self.filters: set[str] = set()
        self._known = log.runs.chosen.get(benchmark, {})
        known = self._known.get(f"filter:{task}")
        self.filter = self._choices.filter.of(*self._names) or known or _text(first.get("filter")) or "none"
        self._higher_is_better = results.higher_is_better.get(task, {}) if results else {}
        self._metric, self._lower = self._choose_metric(first)
        doc = _decoded(first.get("doc"))
        self._by_subtask = group is not None and self._choices.cluster is None
        self._cluster = None if self._by_subtask else self._choices.cluster_field(doc if isinstance(doc, dict) else {})
        filters = results.filters(task) if results else []
        if filters and self.filter not in filters:
            raise Refusal(*self.no_filter(filters)[:4])
        log.runs.choose(benchmark, f"filter:{task}", self.filter)
        log.runs.choose(benchmark, f"metric:{task}", f"{self._metric}{LOWER if self._lower else ''}")
        self._note_choices(first, [name for name in filters if name != self.filter])

    def no_filter(self, filters: list[str]) -> Fault:
        """Return the fault of a filter that no sample has."""
        name = shorten(self.filter)
        reason = f"no sample has the filter {name}; {_choose(filters, f'--filter {self._task}=FILTER')}"
        return Fault("filter", name, reason, self.benchmark)

    def event(self, sample: Sample) -> EventFields | Fault | None:
        """Return the event of a sample, or None if it has another filter."""
        name = _text(sample.get("filter")) or "none"
        self.filters.add(name)
        if name != self.filter:
            # A line that is no sample has no filter either.
            return (
                None
                if "doc_id" in sample
                else Fault("doc_id", "nothing", "is missing; add it to the sample", self.benchmark)
            )
        value = self._choices.scaled(_decoded(sample.get(self._metric)), *self._names)
        fault = self._value_fault(value)
        item = self._item_id(sample)
        if fault is not None:
            return fault if isinstance(item, Fault) else fault._replace(item=self._in_group(item))
        assert isinstance(value, int | float), "any other value has a fault"
        score = 1 - float(value) if self._lower else float(value)
        if isinstance(item, Fault):
            return item
        cluster = self._task if self._by_subtask else None
        if self._cluster is not None:
            cluster = cluster_of(_decoded(sample.get("doc")), self._cluster)
        return EventFields(self.benchmark, self._in_group(item), self._model, score, cluster)

    def _in_group(self, item: str) -> str:
        return item if self._group is None else f"{self._task}/{item}"

    def _choose_metric(self, sample: Sample) -> tuple[str, bool]:
        """Return the metric, and whether less of it is better."""
        names = _decoded(sample.get("metrics")) or [name for name in self._higher_is_better if name in sample]
        metrics = [m for m in names if isinstance(m, str)] if isinstance(names, list) else []
        metrics = metrics or [name for name in sample if name not in _NOT_METRICS]
        choose = _choose(metrics, f"--metric {self._task}=METRIC")
        wanted = self._choices.metric.of(*self._names) or self._known.get(f"metric:{self._task}")
        if wanted is None:
            for name in metrics:
                if self._higher_is_better.get(name) is not False and isinstance(
                    _decoded(sample.get(name)), int | float
                ):
                    return name, False
            raise self._refusal(
                "no metric", f"no metric has one number a sample of which more is better; {choose}, or METRIC{LOWER}"
            )
        name, lower = wanted.removesuffix(LOWER), wanted.endswith(LOWER)
        if name not in metrics:
            raise self._refusal(shorten(name), f"there is no metric {shorten(name)}; {choose}")
        if isinstance(_decoded(sample.get(name)), list | dict):
            raise self._refusal(shorten(name), f"{shorten(name)} {_CORPUS_METRIC}; {choose}")
        if self._higher_is_better.get(name) is False and not lower:
            raise self._refusal(
                shorten(name),
                f"less {shorten(name)} is better; use --metric {name}{LOWER}, which counts one minus its value",
            )
        return name, lower

    def _refusal(self, found: str, reason: str) -> Refusal:
        return Refusal("metric", found, reason, self.benchmark)

    def _note_choices(self, sample: Sample, other_filters: list[str]) -> None:
        metrics = [name for name in sample if name not in _NOT_METRICS and name != self._metric]
        clusters = "subtask" if self._by_subtask else self._cluster
        parts = [
            f"metric {shorten(self._metric)}{' (less is better)' if self._lower else ''}{_also(metrics)}",
            f"filter {shorten(self.filter)}{_also(other_filters)}",
            f"clusters by {shorten(clusters)}" if clusters else "no clusters",
        ]
        self._log.notices.choice(self._group or self._task, "; ".join(parts))

    def _value_fault(self, value: object) -> Fault | None:
        if isinstance(value, int | float) and 0 <= value <= 1:
            return None
        metric, found = shorten(self._metric), _show(value)
        if isinstance(value, list | dict):
            reason = f"{metric} {_CORPUS_METRIC}; choose another with --metric"
        elif value is None:
            reason = "the score is missing; choose another metric with --metric, or add the score"
        elif isinstance(value, int | float):
            reason = (
                f"{found} {OUT_OF_RANGE}; choose another metric with --metric, or give its largest value with --scale"
            )
        else:
            reason = f"{found} is not a number; choose another metric with --metric"
        return Fault(metric, found, reason, self.benchmark, above=above_scale(value))

    def _item_id(self, sample: Sample) -> str | Fault:
        name = self._choices.columns.get("item_id")
        value = _decoded(sample.get("doc_id")) if name is None else _field(sample, name)
        if not isinstance(value, str | int) or (name is not None and isinstance(value, bool)):
            reason = (
                "is missing; add it to the sample"
                if value is None
                else f"{_show(value)} is not an id; use a string or a whole number"
            )
            return Fault(shorten(name or "doc_id"), _show(value), reason)
        if name is not None:
            return str(value)
        doc = bytes(sample.get("doc", b""))
        digest = _text(sample.get("doc_hash")) or hashlib.sha256(doc).hexdigest()
        self._log.runs.add_item(self._log.path, self._task, str(value), digest.encode())
        return f"{value}-{digest[:_HASH_CHARACTERS]}"


def _parse(line: bytes) -> Sample | None:
    try:
        return _SAMPLE.decode(line)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        pass
    try:  # Python writes NaN, which is not JSON
        record = json.loads(line, parse_constant=lambda _: None)
    except (ValueError, RecursionError):
        return None
    return {name: _raw(value) for name, value in record.items()} if isinstance(record, dict) else None


def _raw(value: object) -> msgspec.Raw:
    """Encode a value again; one that only Python accepts (a lone surrogate, a huge number) becomes null."""
    try:
        return msgspec.Raw(msgspec.json.encode(value))
    except (ValueError, OverflowError, RecursionError):
        return msgspec.Raw(b"null")


def _field(sample: Sample, path: str) -> Any:  # noqa: ANN401 - any JSON value
    first, *rest = path.split(".")
    value = _decoded(sample.get(first))
    for name in rest:
        value = value.get(name) if isinstance(value, dict) else None
    return value


def _decoded(raw: msgspec.Raw | None) -> Any:  # noqa: ANN401 - any JSON value
    if raw is None:
        return None
    try:
        return msgspec.json.decode(raw)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None


def _text(raw: msgspec.Raw | None) -> str | None:
    value = _decoded(raw)
    return value if isinstance(value, str) else None


def _show(value: object) -> str:
    if isinstance(value, list | dict):
        return "a list"
    return "nothing" if value is None else shorten(value)


def _also(names: list[str]) -> str:
    return f" (also available: {', '.join(map(shorten, names))})" if names else ""


def _choose(names: list[str], option: str) -> str:
    return (
        f"choose one of {', '.join(map(shorten, names))} with {option}" if names else "check that the file is complete"
    )
