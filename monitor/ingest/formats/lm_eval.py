"""Samples of lm-evaluation-harness: ``samples_<task>_<time>.jsonl`` beside ``results_<time>.json``.

A line is one document under one filter, with every metric of the task as a field of its own. Neither the model nor the item count stand
there: they come from the results file of the same run.
"""

import hashlib
import json
import re
from collections.abc import Iterator
from typing import Any, Final

import msgspec

from monitor.ingest.files.event_lines import Made, Records
from monitor.ingest.files.paths import show
from monitor.ingest.files.translated import Refusal
from monitor.ingest.formats.choices import Choices
from monitor.ingest.formats.clusters import cluster_field
from monitor.ingest.formats.lm_eval_results import Results, read_results
from monitor.ingest.formats.log_file import Reading
from schemas.decode import Fault
from schemas.events import EventFields
from schemas.text import shorten

NAME: Final = re.compile(r"samples_(?P<task>.+)_(?P<time>\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d(?:\.\d+)?)\.jsonl(?:\.gz)?")
LOWER: Final = ":lower"

_NOT_METRICS: Final = frozenset(
    {"doc_id", "doc", "target", "arguments", "resps", "filtered_resps", "filter", "metrics"}
    | {"doc_hash", "prompt_hash", "target_hash", "schema_version"}
)
_HASH_CHARACTERS: Final = 12
_SAMPLE: Final = msgspec.json.Decoder(dict[str, msgspec.Raw])


class Samples(Records):
    """Translates the samples of one task.

    Parameters
    ----------
    reading : Reading
    """

    def __init__(self, reading: Reading) -> None:
        super().__init__()
        self._reading = reading
        self._reader: _Reader | None = None

    def made(self, line: bytes) -> Iterator[Made]:
        """Make the event of a sample, if it is of the filter that was chosen."""
        sample = _parse(line)
        if sample is None:
            reason = "a sample is one JSON object a line: was the file cut, or edited?"
            yield Fault("record", shorten(line.decode("utf-8", "replace")), reason)
            return
        if self._reader is None:
            self._reader = self._begin(sample)
            if self._reader.items is not None and self._reading.declares(self._reader.benchmark):
                yield self._lines.declare(self._reader.benchmark, self._reader.items)
        if (made := self._reader.event(sample)) is not None:
            yield made

    def end(self) -> Fault | None:
        """Say so if the filter that was chosen never came."""
        reader = self._reader
        if reader is None or reader.filter in reader.filters:
            return None
        there = ", ".join(map(shorten, sorted(reader.filters)))
        return Fault(
            "filter", f"no sample of the filter {shorten(reader.filter)}", f"there are {there}", reader.benchmark
        )

    def _begin(self, sample: dict[str, msgspec.Raw]) -> "_Reader":
        reading, path = self._reading, self._reading.path
        name = NAME.fullmatch(path.name)
        results = read_results(path, name["time"]) if name else None
        task = name["task"] if name else None
        benchmark = reading.choices.benchmark or task
        if benchmark is None:
            raise Refusal(
                "file",
                f"samples in a file called {shorten(path.name)}",
                "the task stands in the name samples_<task>_<time>.jsonl alone: give the file its name back, or say --benchmark NAME",
            )
        model = reading.model or (results.model if results else None) or self._folder()
        version = results.versions.get(task or "") if results else None
        reading.runs.begin(path, task or benchmark, model, version, path.name)
        return _Reader(benchmark, task or benchmark, model, sample, results, reading)

    def _folder(self) -> str:
        name = self._reading.path.parent.name
        self._reading.note(
            f"no results file stands beside it: the model is taken to be called as the folder, {show(name)}"
        )
        return name


class _Reader:
    """Reads samples once it is settled what of them counts."""

    def __init__(
        self,
        benchmark: str,
        task: str,
        model: str,
        sample: dict[str, msgspec.Raw],
        results: Results | None,
        reading: Reading,
    ) -> None:
        self.benchmark, self._task, self._model, self._reading = benchmark, task, model, reading
        choices = reading.choices
        self.items = results.items(task) if results else None
        self.filters: set[str] = set()
        first = _text(sample.get("filter")) or "none"
        self.filter = choices.filter.of(task) or first
        self._better = results.higher_is_better.get(task, {}) if results else {}
        self._metric, self._lower = self._choose_metric(sample, choices)
        self._item = choices.columns.get("item_id")
        doc = _decoded(sample.get("doc"))
        self._cluster = cluster_field(doc if isinstance(doc, dict) else {}, choices)
        filters = results.filters(task) if results else []
        if filters and self.filter not in filters:
            there = ", ".join(map(shorten, filters))
            raise Refusal(
                "filter",
                f"no filter {shorten(self.filter)}",
                f"there are {there}: choose with --filter {task}=FILTER",
                benchmark,
            )
        self._tell_choices(sample, [name for name in filters if name != self.filter])

    def event(self, sample: dict[str, msgspec.Raw]) -> EventFields | Fault | None:
        """Return the event of a sample, or None if it is not of the filter."""
        name = _text(sample.get("filter")) or "none"
        self.filters.add(name)
        if name != self.filter:
            return None
        value = _decoded(sample.get(self._metric))
        fault = self._value_fault(value)
        if fault is not None:
            return fault
        doc = sample.get("doc")
        score = 1 - float(value) if self._lower else float(value)
        item = self._item_id(sample)
        if isinstance(item, Fault):
            return item
        return EventFields(self.benchmark, item, self._model, score, self._cluster_of(doc))

    def _choose_metric(self, sample: dict[str, msgspec.Raw], choices: Choices) -> tuple[str, bool]:
        metrics = _decoded(sample.get("metrics")) or [name for name in self._better if name in sample]
        metrics = [m for m in metrics if isinstance(m, str)] if isinstance(metrics, list) else []
        metrics = metrics or [name for name in sample if name not in _NOT_METRICS]
        wanted = choices.metric.of(self._task)
        there = ", ".join(map(shorten, metrics)) or "none"
        if wanted is not None:
            name, lower = wanted.removesuffix(LOWER), wanted.endswith(LOWER)
            if name not in metrics:
                raise self._refusal(
                    f"no metric {shorten(name)}", f"there are {there}: say --metric {self._task}=METRIC"
                )
            if isinstance(_decoded(sample.get(name)), list | dict):
                reason = f"such a metric exists for the whole corpus alone, and compares no items: choose another of {there} with --metric"
                raise self._refusal(f"a list for every sample as {shorten(name)}", reason)
            if self._better.get(name) is False and not lower:
                reason = f"say --metric {name}{LOWER} to count one minus its value"
                raise self._refusal(f"{shorten(name)}, of which less is better", reason)
            return name, lower
        for name in metrics:
            if self._better.get(name) is not False and isinstance(_decoded(sample.get(name)), int | float):
                return name, False
        reason = f"there are {there}: rankwatch needs a number in [0, 1] for every item; choose one with --metric NAME, or NAME{LOWER}"
        raise self._refusal("no metric with one number a sample of which more is better", reason)

    def _refusal(self, found: str, reason: str) -> Refusal:
        return Refusal("metric", found, reason, self.benchmark)

    def _tell_choices(self, sample: dict[str, msgspec.Raw], others: list[str]) -> None:
        metrics = [name for name in sample if name not in _NOT_METRICS and name != self._metric]
        parts = [
            f"metric {shorten(self._metric)}{' (less is better)' if self._lower else ''}{_also(metrics)}",
            f"filter {shorten(self.filter)}{_also(others)}",
            f"clusters by {shorten(self._cluster)}" if self._cluster else "no clusters",
        ]
        self._reading.notes.chosen(self._task, "; ".join(parts))

    def _value_fault(self, value: object) -> Fault | None:
        metric = shorten(self._metric)
        if isinstance(value, list | dict):
            reason = (
                "such a metric exists for the whole corpus alone, and compares no items: choose another with --metric"
            )
            return Fault(metric, "a list", reason, self.benchmark)
        if not isinstance(value, int | float):
            return Fault(
                metric, "nothing" if value is None else shorten(value), "a score is a number in [0, 1]", self.benchmark
            )
        if not 0 <= value <= 1:
            reason = "a score lies in [0, 1]: choose another metric with --metric, or rescale it in the log"
            return Fault(metric, shorten(value), reason, self.benchmark)
        return None

    def _item_id(self, sample: dict[str, msgspec.Raw]) -> str | Fault:
        if self._item is not None:
            found = _field(sample, self._item)
            if isinstance(found, str | int) and not isinstance(found, bool):
                return str(found)
            return Fault(
                shorten(self._item),
                "nothing" if found is None else shorten(found),
                "an item's id is a string or a whole number",
            )
        doc_id = _decoded(sample.get("doc_id"))
        if not isinstance(doc_id, int | str):
            return Fault(
                "doc_id", "nothing" if doc_id is None else shorten(doc_id), "a sample has the number of its document"
            )
        doc = bytes(sample.get("doc", b""))
        digest = _text(sample.get("doc_hash")) or hashlib.sha256(doc).hexdigest()
        self._reading.runs.item(self._reading.path, self._task, str(doc_id), digest.encode())
        return f"{doc_id}-{digest[:_HASH_CHARACTERS]}"

    def _cluster_of(self, doc: msgspec.Raw | None) -> str | None:
        if self._cluster is None:
            return None
        data = _decoded(doc)
        value = data.get(self._cluster) if isinstance(data, dict) else None
        return str(value) if isinstance(value, str | int) and value != "" else None


def _parse(line: bytes) -> dict[str, msgspec.Raw] | None:
    try:
        return _SAMPLE.decode(line)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        pass
    try:  # Python writes NaN where JSON has none
        record = json.loads(line, parse_constant=_nothing)
    except (ValueError, RecursionError):
        return None
    return {name: _raw(value) for name, value in record.items()} if isinstance(record, dict) else None


def _raw(value: object) -> msgspec.Raw:
    """Write a value again; one that only Python takes for JSON (half a surrogate pair, an endless number) counts as nothing."""
    try:
        return msgspec.Raw(msgspec.json.encode(value))
    except (ValueError, OverflowError, RecursionError):
        return msgspec.Raw(b"null")


def _nothing(_: str) -> None:
    return None


def _field(sample: dict[str, msgspec.Raw], path: str) -> Any:  # noqa: ANN401 - whatever stands there
    first, *rest = path.split(".")
    value = _decoded(sample.get(first))
    for name in rest:
        value = value.get(name) if isinstance(value, dict) else None
    return value


def _decoded(raw: msgspec.Raw | None) -> Any:  # noqa: ANN401 - whatever stands there
    if raw is None:
        return None
    try:
        return msgspec.json.decode(raw)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None


def _text(raw: msgspec.Raw | None) -> str | None:
    value = _decoded(raw)
    return value if isinstance(value, str) else None


def _also(names: list[str]) -> str:
    return f" (also there: {', '.join(map(shorten, names))})" if names else ""
