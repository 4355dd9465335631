"""Send scores of lm-evaluation-harness, under the names that `rankwatch` reads from its logs.

The harness runs all requests of a call before it scores any, so scores can be sent only when `simple_evaluate` returns. Evaluate a few
tasks per call to get verdicts in between, or `race` models: one call a block.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterator, Mapping
from typing import Any

from rankwatch_client.client import Client
from rankwatch_client.races import RaceResult, race_blocks

CLUSTER_FIELDS = ("cluster", "category", "subject", "topic", "domain")
"""Document fields that name the cluster; the first one present counts."""

_HASH_CHARACTERS = 12


def send_results(
    client: Client, results: Mapping[str, Any], *, model: str | None = None, metric: str | None = None
) -> int:
    """Send the samples of ``lm_eval.simple_evaluate(..., log_samples=True)``.

    Parameters
    ----------
    client : Client
    results : mapping
        The return value of `simple_evaluate`.
    model : str, optional
        Default: that of the client.
    metric : str, optional
        Default: the first metric of each task with one number per document, where higher is better.

    Returns
    -------
    int
        Number of scores passed to the client.

    Raises
    ------
    ValueError
        If the results have no samples, or a task has no usable metric.
    """
    samples = results.get("samples")
    if not samples:
        raise ValueError("the results have no samples: evaluate with log_samples=True")
    count = 0
    for task, task_samples in samples.items():
        if not task_samples:
            continue
        items = results.get("n-samples", {}).get(task, {}).get("effective")
        if items:
            client.declare(benchmark=task, items=int(items))
        for item, score, cluster in _scores(results, task, metric):
            client.score(item, score, benchmark=task, model=model, cluster=cluster)
            count += 1
    return count


def race(
    models: Mapping[str, Any],
    task: str,
    *,
    goal: str = "best",
    metric: str | None = None,
    benchmark: str | None = None,
    seed: str | None = None,
    url: str | None = None,
    token: str | None = None,
    progress: bool | None = None,
    **arguments: Any,  # noqa: ANN401 - those of `simple_evaluate`
) -> RaceResult:
    """Evaluate models on a task, block by block, until a question is answered; see `rankwatch_client.race`.

    Parameters
    ----------
    models : mapping of str to LM or dict
        By name, a loaded model, or arguments of `simple_evaluate` that name one: ``{"model": "hf", "model_args": "pretrained=..."}``. Those
        are loaded again for each block.
    task : str
        One task, no group.
    goal, seed, url, token, progress : optional
        As for `rankwatch_client.race`.
    metric : str, optional
        As for `send_results`.
    benchmark : str, optional
        Default: the name of the task.
    **arguments
        Further arguments of `simple_evaluate`, such as ``num_fewshot`` or ``task_manager``.

    Raises
    ------
    ValueError
        If the task is a group, or the monitor refuses the race.
    """
    from lm_eval import simple_evaluate  # noqa: PLC0415 - `send_results` does without the harness
    from lm_eval.tasks import TaskManager, get_task_dict  # noqa: PLC0415 - same

    if arguments.keys() & {"samples", "limit"}:
        raise ValueError("a race chooses the samples; omit samples and limit")
    arguments = {"bootstrap_iters": 0, **arguments, "log_samples": True}
    if arguments.get("task_manager") is None:
        arguments["task_manager"] = TaskManager()  # reads every task of the harness: seconds
    loaded = get_task_dict([task], arguments["task_manager"]).get(task)
    if loaded is None or isinstance(loaded, Mapping):
        raise ValueError(f"{task} is a group of tasks; race one of its tasks")
    docs = list(loaded.eval_docs)
    place = {_item(number, _digest(doc)): number for number, doc in enumerate(docs)}

    def evaluate(model: str, items: list[str]) -> dict[str, float | None]:
        chosen = models[model] if isinstance(models[model], Mapping) else {"model": models[model]}
        # The harness numbers the documents of a block along the task.
        numbers = sorted(place[item] for item in items)
        results = simple_evaluate(tasks=[loaded], samples={task: numbers}, **{**arguments, **chosen})
        scores = {item: score for item, score, _ in _scores(results or {}, task, metric)}
        if scores.keys() != set(items):
            raise ValueError(f"{task}: the harness has evaluated other documents than those of the block")
        return scores

    return race_blocks(
        models,
        place,
        evaluate,
        benchmark=benchmark or task,
        clusters={item: _cluster(docs[number]) for item, number in place.items()},
        goal=goal,
        seed=seed,
        url=url,
        token=token,
        progress=progress,
    )


def _scores(
    results: Mapping[str, Any], task: str, metric: str | None
) -> Iterator[tuple[str, float | None, str | None]]:
    """Yield item, score and cluster of each sample of a task, with its first filter."""
    samples = results["samples"][task]
    chosen = metric or _metric(samples[0], results.get("higher_is_better", {}).get(task, {}), task)
    for sample in samples:
        if sample.get("filter") == samples[0].get("filter"):
            item = _item(sample["doc_id"], sample["doc_hash"])
            yield item, _value(sample.get(chosen)), _cluster(sample.get("doc"))


def _item(number: int, digest: str) -> str:
    return f"{number}-{digest[:_HASH_CHARACTERS]}"


def _digest(doc: Any) -> str:  # noqa: ANN401 - any document
    """Return the hash of a document, as the harness computes it."""
    from lm_eval.utils import handle_non_serializable  # noqa: PLC0415 - same

    text = json.dumps(doc, indent=2, default=handle_non_serializable, ensure_ascii=False)
    return hashlib.sha256(text.encode("utf-8")).hexdigest()


def _metric(sample: Mapping[str, Any], better: Mapping[str, Any], task: str) -> str:
    for name in sample.get("metrics", ()):
        if better.get(name) is not False and isinstance(sample.get(name), (int, float)):
            return str(name)
    raise ValueError(f"{task} has no metric with one number per document where higher is better; pass metric=")


def _value(value: object) -> float | None:
    number = float(value) if isinstance(value, (int, float)) else math.nan
    return None if math.isnan(number) else number


def _cluster(doc: object) -> str | None:
    if not isinstance(doc, Mapping):
        return None
    name = next((name for name in CLUSTER_FIELDS if isinstance(doc.get(name), (str, int))), None)
    return str(doc[name]) if name is not None and doc[name] != "" else None
