"""Evaluation results of Hugging Face: ``.eval_results/*.yaml`` of a model's repository, and the older `model-index` of its README.

Neither has a field for intervals and ties. The first has notes, the second a name of each metric, and both show them to readers.
"""

import json
from collections.abc import Iterable, Iterator
from typing import Any, Final

from monitor.render.board.exporters import Context, Exporter, ExportError, File
from monitor.render.board.scored import Scored, omitted, scored_models, summary
from monitor.render.board.site import file_name
from monitor.render.board.standings import Board

_TASK: Final = "text-generation"


def eval_results(boards: Iterable[Board], context: Context) -> Iterator[File]:
    """Return a file for each model and benchmark: each model's folder is what to upload to its repository."""
    for board in boards:
        omitted(board, context)
        for each in scored_models(board):
            dataset = context.datasets.get(each.benchmark)
            if dataset is None or dataset.task is None:
                raise ExportError(
                    f"{each.benchmark}: .eval_results names the data set of the benchmark and the task in it; add "
                    f"--dataset {each.benchmark}=ORGANIZATION/NAME:TASK, as in the file eval.yaml of the data set"
                )
            entry: dict[str, Any] = {
                "dataset": {"id": dataset.id, "task_id": dataset.task},
                "value": context.scaled(each.mean),
                **_source(context),
                "notes": summary(each, context),
            }
            yield f"{_folder(each)}/.eval_results/{file_name(each.benchmark)}.yaml", yaml([entry])


def model_index(boards: Iterable[Board], context: Context) -> Iterator[File]:
    """Return a file for each model, with what to copy into the metadata of its README."""
    models: dict[str, list[Scored]] = {}
    for board in boards:
        omitted(board, context)
        for each in scored_models(board):
            models.setdefault(each.name, []).append(each)
    for name, scored in models.items():
        index = [{"name": name, "results": [_result(each, context) for each in scored]}]
        yield f"{_folder(scored[0])}/model-index.yaml", yaml({"model-index": index})


def _result(each: Scored, context: Context) -> dict[str, Any]:
    dataset = context.datasets.get(each.benchmark)
    data = {"type": each.benchmark if dataset is None else dataset.id, "name": each.benchmark}
    if dataset is not None and dataset.task is not None:
        data["config"] = dataset.task
    metric = {
        "type": each.metric,
        "value": context.scaled(each.mean),
        "name": f"{each.metric} ({summary(each, context)})",
    }
    return {"task": {"type": _TASK}, "dataset": data, "metrics": [metric], **_source(context)}


def _source(context: Context) -> dict[str, Any]:
    if context.source is None:
        return {}
    name = {} if context.organization is None else {"name": context.organization}
    return {"source": {"url": context.source, **name}}


def _folder(each: Scored) -> str:
    """Return the folder of a model: ``ORGANIZATION/NAME`` is a folder in a folder."""
    organization, _, name = each.name.rpartition("/")
    return "/".join(file_name(part) for part in (organization, name or each.name) if part)


def yaml(value: Any, indent: int = 0) -> str:  # noqa: ANN401 - any value of JSON
    """Write YAML in blocks; text is quoted as in JSON, so that no name means anything else.

    >>> print(yaml([{"dataset": {"id": "a: b"}, "value": 0.5}]), end="")
    - dataset:
        id: "a: b"
      value: 0.5
    """
    pad = " " * indent
    if isinstance(value, dict):
        return "".join(
            f"{pad}{name}:\n{yaml(each, indent + 2)}"
            if isinstance(each, dict | list)
            else f"{pad}{name}: {json.dumps(each, ensure_ascii=False)}\n"
            for name, each in value.items()
        )
    return "".join(f"{pad}- {yaml(each, indent + 2)[indent + 2 :]}" for each in value)


_OPTIONS: Final = frozenset({"datasets", "organization", "source", "percent"})

EVAL_RESULTS: Final = Exporter("hf-eval-results", eval_results, _OPTIONS)
MODEL_INDEX: Final = Exporter("hf-model-index", model_index, _OPTIONS)
