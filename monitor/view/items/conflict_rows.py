"""The scores that contradict an earlier one: by model, and one by one."""

from collections.abc import Iterator

import numpy as np

from monitor.view.board import BoardView
from schemas.records.scores import SCORE_UNIT, ZERO
from schemas.results.report import Conflict


def counts_by_model(benchmark: BoardView) -> tuple[dict[str, int], dict[str, int]]:
    """Return duplicates and conflicts of each model that has some, over all its epochs; most first, ties by name."""
    models = benchmark.contestants
    totals: tuple[dict[str, int], dict[str, int]] = {}, {}
    for model, counts in zip(models, benchmark.again().tolist(), strict=True):
        for total, count in zip(totals, counts, strict=True):
            if count:
                total[model.model] = total.get(model.model, 0) + count
    duplicates, conflicts = (dict(sorted(total.items(), key=lambda x: (-x[1], x[0]))) for total in totals)
    return duplicates, conflicts


def listed_conflicts(benchmark: BoardView, model: str | None = None) -> int:
    """Return how many conflicts are kept one by one."""
    return int(_places(benchmark, model).size)


def conflict_rows(
    benchmark: BoardView, model: str | None = None, start: int = 0, stop: int | None = None
) -> Iterator[Conflict]:
    """Yield the listed conflicts of a benchmark, or of one of its models, in the order of the log."""
    values, rows = (benchmark.cells().values / SCORE_UNIT).tolist(), benchmark.row_keys
    entries = benchmark.conflicts[_places(benchmark, model)[start:stop]]
    for row, contestant, kept, refused in entries.tolist():
        key, who = rows[row], benchmark.contestants[contestant]
        yield Conflict(
            item_id=key.item,
            repeat=key.repeat,
            model=who.model,
            epoch=who.epoch,
            old_score=values[kept] if kept >= ZERO else None,
            new_score=values[refused] if refused >= ZERO else None,
        )


def _places(benchmark: BoardView, model: str | None) -> np.ndarray[tuple[int, ...], np.dtype[np.int64]]:
    listed = benchmark.conflicts
    if model is None:
        return np.arange(len(listed))
    of_model = benchmark.epochs.get(model, [])
    return np.flatnonzero(np.isin(listed[:, 1], np.array(of_model, np.uint32)))
