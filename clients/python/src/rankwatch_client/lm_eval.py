"""Send scores of lm-evaluation-harness, under the names that `rankwatch` reads from its logs.

The harness runs all requests of a call before it scores any, so scores can be sent only when `simple_evaluate` returns. Evaluate a few
tasks per call to get verdicts in between.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from rankwatch_client.client import Client

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
        chosen = metric or _metric(task_samples[0], results.get("higher_is_better", {}).get(task, {}), task)
        first_filter = task_samples[0].get("filter")
        for sample in task_samples:
            if sample.get("filter") == first_filter:
                client.score(
                    f"{sample['doc_id']}-{sample['doc_hash'][:_HASH_CHARACTERS]}",
                    _value(sample.get(chosen)),
                    benchmark=task,
                    model=model,
                    cluster=_cluster(sample.get("doc")),
                )
                count += 1
    return count


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
