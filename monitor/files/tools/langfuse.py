"""Langfuse: traces or observations as its page exports them (CSV, JSON, JSON lines), and items of its experiments API."""

import json
from collections.abc import Iterator
from typing import Any, Final

import msgspec

from monitor.files.formats.documents import read_document
from monitor.files.formats.log_file import LogFile
from monitor.files.formats.results import Entry, Tool
from monitor.files.tools.scored_rows import Rows, metrics_of, read_rows, results_of, texts

_OWN: Final = {
    "id", "traceId", "traceName", "traceTags", "traceTimestamp", "timestamp", "startTime", "endTime", "completionStartTime", "createdAt",
    "updatedAt", "name", "type", "userId", "sessionId", "release", "version", "environment", "tags", "bookmarked", "public", "input",
    "output", "metadata", "comments", "level", "statusMessage", "projectId", "promptName", "promptId", "promptVersion", "modelId", "model",
    "providedModelName", "internalModelId", "modelParameters", "usage", "usageDetails", "providedUsageDetails", "costDetails",
    "providedCostDetails", "totalCost", "inputCost", "outputCost", "inputUsage", "outputUsage", "totalUsage", "promptTokens",
    "completionTokens", "totalTokens", "unit", "latency", "latencyMs", "timeToFirstToken", "timeToFirstTokenMs", "inputPrice",
    "outputPrice", "totalPrice", "parentObservationId", "observationId", "htmlPath", "toolDefinitions", "toolCalls", "toolCallNames",
    "toolDefinitionsCount", "toolCallsCount", "usagePricingTierName", "usagePricingTierId", "isRootObservation", "traceVersion",
}  # fmt: skip
"""The columns of a trace or an observation, in any version; every other column of numbers is the score of its name."""

_MODELS: Final = ("experiment_run_name", "experiment_name", "model")
"""Fields of the metadata that name what was run: an experiment of the SDK has the first two."""

_ITEM: Final = "dataset_item_id"
_SCORES: Final = frozenset({"NUMERIC", "BOOLEAN"})
_MOST_SCORES: Final = 50


def read(log: LogFile) -> Iterator[Entry]:
    """Return the rows that have scores: the item is the dataset's, else the input; the model is the run, else what answered."""
    rows = _once(read_rows(log))
    count = len(rows["id"])
    about = list(map(_object, rows.get("metadata", [None] * count)))
    inputs = texts(rows.get("input", [None] * count))
    items = [str(each.get(_ITEM) or given) for each, given in zip(about, inputs, strict=True)]
    answered = rows.get("providedModelName", rows.get("model", [None] * count))
    models = list(map(_model, about, answered))
    failures = ["error" if level == "ERROR" else None for level in rows["level"]] if "level" in rows else None
    yield from results_of(
        log, "langfuse", items, metrics_of(rows, _OWN), models=models, failures=failures, unscored=False
    )


def _model(about: dict[str, Any], answered: object) -> str | None:
    for name in _MODELS:
        if about.get(name):
            return str(about[name])
    return answered if isinstance(answered, str) else None


def _once(rows: Rows) -> Rows:
    """Return each trace once: an export that is taken again, or written twice, repeats the ids."""
    names = texts(rows["id"])
    if len({*names}) == len(names):
        return rows
    kept = sorted({name: k for k, name in reversed([*enumerate(names)])}.values())
    return {name: [column[k] for k in kept] for name, column in rows.items()}


def _object(value: object) -> dict[str, Any]:
    """Return metadata, which a table holds as text."""
    if isinstance(value, str) and value.startswith("{"):
        try:
            value = json.loads(value)
        except (ValueError, RecursionError):
            return {}
    return value if isinstance(value, dict) else {}


class Score(msgspec.Struct, rename="camel"):
    """A score of an item; text and corrections are none."""

    name: str
    value: Any = None
    data_type: str = "NUMERIC"


class Item(msgspec.Struct, rename="camel"):
    """An item of an experiment."""

    experiment_id: str
    experiment_item_id: str
    experiment_name: str = ""
    level: str = ""
    scores: list[Score] = []


class Items(msgspec.Struct):
    """The answer of the experiments API, all pages in one."""

    data: list[Item]
    dataset: str | None = None


def read_items(log: LogFile) -> Iterator[Entry]:
    """Return the items of experiments: the model is the experiment, and scores of one name count by their mean."""
    document = read_document(log.path, Items, ITEMS.name)
    given: dict[str, str] = {}
    for item in document.data:
        name = item.experiment_name or item.experiment_id
        given.setdefault(item.experiment_id, f"{name} {item.experiment_id}" if name in given.values() else name)
    found = [dict[str, list[Any]]() for _ in document.data]
    for scores, item in zip(found, document.data, strict=True):
        for score in item.scores:
            if score.data_type in _SCORES:
                scores.setdefault(score.name, []).append(score.value)
        if len(item.scores) >= _MOST_SCORES:
            log.note(f"items with {_MOST_SCORES} scores may have more, which the API does not list")
    names = dict.fromkeys(name for scores in found for name in scores)
    yield from results_of(
        log,
        "langfuse",
        [item.experiment_item_id for item in document.data],
        metrics_of({name: [scores.get(name) for scores in found] for name in names}, ()),
        models=[given[item.experiment_id] for item in document.data],
        failures=["error" if item.level == "ERROR" else None for item in document.data],
        benchmark=document.dataset,
    )


TOOL: Final = Tool("an export of Langfuse", read)
ITEMS: Final = Tool("experiments of Langfuse", read_items)
