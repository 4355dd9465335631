"""Events to measure with: from a file, or generated like MMLU-Pro's."""

import gzip
import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from benchmarks.harness import SEED, Options

MODELS, ITEMS, CLUSTERS = 29, 12_032, 14


def right_answers(models: int, items: int, seed: int = SEED) -> np.ndarray:
    """Draw which model is right on which item, shape (models, items): easy and hard items, strong and weak models, near ties."""
    rng = np.random.default_rng(seed)
    ease = rng.normal(0, 1.2, items)
    strength = np.sort(rng.normal(0.3, 0.8, models))
    return rng.random((models, items)) < 1 / (1 + np.exp(-ease[None, :] - strength[:, None]))


def made_lines(
    models: int = MODELS, items: int = ITEMS, *, benchmark: str = "made", by_item: bool = False, graded: bool = False
) -> Iterator[bytes]:
    """Yield events as lines, in blocks of models as evaluations are run, or all models of an item together.

    Graded scores are the share of four judges who find the answer right. Clusters are mixed: a trusted order of clusters in blocks is
    refuted, and gives no verdicts.
    """
    if graded:
        right = (sum(right_answers(models, items, SEED + judge).astype(int) for judge in range(4)) / 4).tolist()
    else:
        right = right_answers(models, items).astype(int).tolist()
    order = (
        ((m, i) for i in range(items) for m in range(models))
        if by_item
        else ((m, i) for m in range(models) for i in range(items))
    )
    for model, item in order:
        yield (
            f'{{"benchmark": "{benchmark}", "item_id": "{item}", "model": "model-{model:04d}", "score": {right[model][item]}, '
            f'"cluster": "category {item % CLUSTERS}", "timestamp": "2026-01-31T12:00:00Z"}}'
        ).encode()


def lines_of(options: Options, *, quick_items: int = 600) -> tuple[str, list[bytes]]:
    """Return a description of the events, and the events."""
    if options.events is None:
        items = options.size(ITEMS, quick_items)
        return f"made: {MODELS} models, {items:,} items", list(made_lines(MODELS, items))
    opened = gzip.open if options.events.suffix == ".gz" else open
    with opened(options.events, "rb") as file:
        lines = [line.rstrip(b"\n") for line in file]
    if options.quick:
        lines = lines[:: max(1, len(lines) // 20_000)]
    return f"{options.events.parent.name}/{options.events.name}: {len(lines):,} events", lines


def file_of(options: Options, folder: Path) -> Path:
    """Return a gzipped file of the events."""
    if options.events is not None and not options.quick:
        return options.events
    path = folder / "events.jsonl.gz"
    with gzip.open(path, "wb", compresslevel=6) as file:
        file.write(b"\n".join(lines_of(options)[1]) + b"\n")
    return path


def matrix_of(lines: list[bytes]) -> np.ndarray:
    """Return scores by model and item, shape (models, items), NaN where there is none; of the largest benchmark among the lines."""
    models: dict[str, int] = {}
    items: dict[str, int] = {}
    cells = {}
    for line in lines:
        event = json.loads(line)
        key = models.setdefault(event["model"], len(models)), items.setdefault(event["item_id"], len(items))
        cells.setdefault(key, event["score"])
    scores = np.full((len(models), len(items)), np.nan)
    for key, score in cells.items():
        scores[key] = score
    return scores
