"""Scores of lm-evaluation-harness, under the names that `rankwatch` reads from its logs.

The harness runs every request of a task before it scores any, so scores can be sent when `simple_evaluate` returns, and not before.
Evaluate a few tasks at a time for verdicts that move in between.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from rankwatch_client.client import Client

CLUSTER_FIELDS = ("cluster", "category", "subject", "topic", "domain")
"""What the field of a document is called that names its cluster; the first that is there counts."""

_HASH_CHARACTERS = 12


def send_results(
    client: Client, results: Mapping[str, Any], *, model: str | None = None, metric: str | None = None
) -> int:
    """Send the samples of ``lm_eval.simple_evaluate(..., log_samples=True)``.

    Parameters
    ----------
    client : Client
    results : mapping
        What `simple_evaluate` returned.
    model : str, optional
        Default: the client's.
    metric : str, optional
        Default: the first of each task that is a number for every document, and of which more is better.

    Returns
    -------
    int
        How many scores were given to the client.

    Raises
    ------
    ValueError
        If the results hold no samples, or a task none of the metrics.
    """
    samples = results.get("samples")
    if not samples:
        raise ValueError("the results hold no samples: evaluate with log_samples=True")
    given = 0
    for task, found in samples.items():
        if not found:
            continue
        items = results.get("n-samples", {}).get(task, {}).get("effective")
        if items:
            client.declare(benchmark=task, items=int(items))
        chosen = metric or _metric(found[0], results.get("higher_is_better", {}).get(task, {}), task)
        first = found[0].get("filter")
        for sample in found:
            if sample.get("filter") == first:
                client.score(
                    f"{sample['doc_id']}-{sample['doc_hash'][:_HASH_CHARACTERS]}",
                    _value(sample.get(chosen)),
                    benchmark=task,
                    model=model,
                    cluster=_cluster(sample.get("doc")),
                )
                given += 1
    return given


def _metric(sample: Mapping[str, Any], better: Mapping[str, Any], task: str) -> str:
    for name in sample.get("metrics", ()):
        if better.get(name) is not False and isinstance(sample.get(name), (int, float)):
            return str(name)
    raise ValueError(f"{task} has no metric with one number a document of which more is better: name one with metric=")


def _value(value: object) -> float | None:
    number = float(value) if isinstance(value, (int, float)) else math.nan
    return None if math.isnan(number) else number


def _cluster(doc: object) -> str | None:
    if not isinstance(doc, Mapping):
        return None
    name = next((name for name in CLUSTER_FIELDS if isinstance(doc.get(name), (str, int))), None)
    return str(doc[name]) if name is not None and doc[name] != "" else None
