"""Admission: what an item costs, and which share of a full run newcomers need.

``--runs N`` admits each model of a board along N random orders, with the others as the board. A run is wrong if the true total is ever
rejected: that bounds every statement about a newcomer. ``--events FILE`` names the boards, `RANKWATCH_DATA` a folder of them; else one is
made. Models that lack items take no part.
"""

import gzip
import json
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator
from math import sqrt
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from benchmarks import DATA
from benchmarks.events import made_lines
from benchmarks.harness import SEED, Options, Table
from monitor.view.admission_plan import first_narrow
from stats.admission.newcomer import Admission, thousandths

Array = np.ndarray[Any, np.dtype[Any]]


class Board(NamedTuple):
    """The complete models of a board, scores of shape (items, models)."""

    name: str
    scores: Array


class Run(NamedTuple):
    """One newcomer along one order: the shares of the items until each thing was known, and whether anything was wrong."""

    three: float
    five: float
    points: float
    mean: float
    median: float
    rejected: bool
    wrong_three: bool


def measure(options: Options) -> Iterator[Table]:
    """Time an item, and replay every model as a newcomer."""
    yield cost(options)
    shares = Table(
        "Share of the items that a newcomer needs, each model in turn, random orders",
        [
            "board",
            "models",
            "items",
            "runs",
            "3 ranks, median %",
            "90 %",
            "5 ranks, median %",
            "90 %",
            "score to 4 points, mean %",
            "items an opponent, mean",
            "se",
            "median",
            "se",
            "true total rejected, %",
            "se",
            "wrong ranges of 3 ranks",
        ],
        notes=["A standard error is over runs. At most 5 % is promised for the true total."],
    )
    for board in boards(options):
        shares.rows.append(row(board, options.runs))
    yield shares


def boards(options: Options) -> Iterator[Board]:
    """Yield the boards."""
    if options.quick or (options.events is None and DATA is None):
        yield from read(made_lines(options.size(29, 12), options.size(2_000, 100)))
    elif options.events is not None:
        yield from read(_lines(options.events))
    if not options.quick and DATA is not None:
        yield from read(_lines(Path(DATA) / "zeroeval/events.jsonl.gz"))


def _lines(path: Path) -> list[bytes]:
    return (gzip.open if path.suffix == ".gz" else open)(path, "rb").read().splitlines()


def read(lines: Iterable[bytes]) -> Iterator[Board]:
    """Yield the boards of some events; the first score of an item counts."""
    scores: dict[str, dict[str, dict[str, float]]] = defaultdict(lambda: defaultdict(dict))
    for event in map(json.loads, lines):
        if event["score"] is not None:
            scores[event["benchmark"]][event["model"]].setdefault(event["item_id"], event["score"])
    for name, models in scores.items():
        items = sorted({item for model in models.values() for item in model})
        whole = [model for model in models.values() if len(model) == len(items)]
        yield Board(name, np.array([[model[item] >= 1 for model in whole] for item in items], np.int64))


def cost(options: Options) -> Table:
    """Time items one by one, as they arrive, and together."""
    table = Table("Cost of an item", ["opponents", "ms an item, one by one", "ms an item, together"])
    random = np.random.default_rng(SEED)
    items, some = 12_032, options.size(300, 30)
    difficulty = random.integers(0, 1001, items)
    scores = (random.random(items) < difficulty / 1000).astype(np.int64)
    for opponents in (28, 1_000, 5_000):
        totals = np.linspace(2_000, 9_000, opponents).astype(np.int64)
        one, all_ = Admission(difficulty, totals), Admission(difficulty, totals)
        begin = time.process_time()
        for score in scores[:some]:
            one.add(score)
        middle = time.process_time()
        all_.add(scores[:some])
        each = [1_000 * seconds / some for seconds in (middle - begin, time.process_time() - middle)]
        table.rows.append((opponents, *(round(value, 3) for value in each)))
    return table


def row(board: Board, orders: int) -> tuple[object, ...]:
    """Return the line of a board."""
    items, models = board.scores.shape
    runs = [replay(board, model, seed) for seed in range(orders) for model in range(models)]
    columns = [np.array(column, float) for column in zip(*runs, strict=True)]
    three, five, points, mean, median, rejected, wrong_three = columns
    root = sqrt(len(runs))
    return (
        board.name, models, items, len(runs),
        *(round(100 * float(np.quantile(part, q)), 1) for part in (three, five) for q in (0.5, 0.9)),
        round(100 * points.mean(), 1),
        round(mean.mean()), round(mean.std() / root, 1), round(median.mean()), round(median.std() / root, 1),
        round(100 * rejected.mean(), 2), round(100 * rejected.std() / root, 2), int(wrong_three.sum()),
    )  # fmt: skip


def replay(board: Board, model: int, seed: int) -> Run:
    """Admit a model along an order, as a newcomer to all others."""
    items = len(board.scores)
    scores = board.scores[np.random.default_rng([SEED, model, seed]).permutation(items)]
    x, others = scores[:, model], np.delete(scores, model, axis=1)
    totals, total = others.sum(axis=0), int(x.sum())
    difficulty = thousandths(others.sum(axis=1), np.full(items, others.shape[1]))
    newcomer, truth = Admission(difficulty, totals), Admission(difficulty, [total])
    newcomer.add(x)
    truth.add(x)
    at = np.where(newcomer.settled_at > 0, newcomer.settled_at, items)
    ordered = np.sort(at)  # a range of W ranks has W - 1 opponents open
    wrong = (newcomer.above & (totals >= total)) | (newcomer.below & (totals <= total))
    return Run(
        *(float(ordered[-width]) / items for width in (3, 5)),
        first_narrow(newcomer, 0.04) / items,
        float(at.mean()),
        float(np.median(at)),
        bool((truth.above | truth.below).any()),
        bool((wrong & (at <= ordered[-3])).any()),
    )
