"""Races: the share of all scores that a goal takes along a random committed order, and how often its answer is wrong.

Each race runs through the engine: the controller names the next items, their scores of the board are folded, until the goal is met or
out of reach. All models are declared, so their pairs share alpha equally. An item that a model never answered counts as wrong.
``--runs N`` races each goal along N orders; ``--events FILE`` names the board, `RANKWATCH_DATA` a folder of boards; else one is made.

A goal is wrong if it is met with models that are not the best ones of the whole board; an elimination if one of the best models was
stopped as out, or another one was taken for certain.
"""

import gzip
import json
import time
from collections.abc import Iterator
from dataclasses import dataclass
from math import sqrt
from pathlib import Path
from typing import NamedTuple

import numpy as np

from benchmarks import DATA
from benchmarks.events import made_lines
from benchmarks.harness import Options, Table
from monitor.engine.partition import Partition
from monitor.report.pair_table import PairTable
from monitor.report.race import Race
from schemas.events import Declaration, EventFields

GOALS = (1, 3, 10)


@dataclass(frozen=True)
class Board:
    """The whole scores of a board, shape (items, models)."""

    name: str
    items: list[str]
    models: list[str]
    scores: np.ndarray[tuple[int, int], np.dtype[np.int8]]

    def best(self, size: int) -> tuple[set[str], set[str]]:
        """Return the models that are among the best for certain, and those that may be, where others have the same sum."""
        sums = self.scores.sum(axis=0, dtype=np.int64)
        last = np.sort(sums)[-size]
        least = {m for m, total in zip(self.models, sums, strict=True) if total > last}
        most = {m for m, total in zip(self.models, sums, strict=True) if total >= last}
        return (most if len(most) == size else least), most


class Outcome(NamedTuple):
    """A race: the share of scores run, the state at its end, what was wrong, and processor seconds of a look."""

    share: float
    state: str
    wrong_goal: bool
    wrong_elimination: bool
    look_seconds: float


def measure(options: Options) -> Iterator[Table]:
    """Race each board for its best models."""
    table = Table(
        f"Share of all scores until the best K are known, {options.runs:,} random committed orders",
        [
            "board",
            "models",
            "items",
            "K",
            "scores run, %",
            "se",
            "met, %",
            "wrong goals",
            "wrong eliminations",
            "ms a look",
        ],
        notes=["A goal that is not met ends in a tie that no item is left to break."],
    )
    for board in boards(options):
        for size in GOALS:
            if size < len(board.models):
                table.rows.append(row(board, size, [race(board, size, seed) for seed in range(options.runs)]))
    yield table


def row(board: Board, size: int, outcomes: list[Outcome]) -> tuple[object, ...]:
    """Return the line of a board and a goal."""
    shares = np.array([each.share for each in outcomes])
    return (
        board.name, len(board.models), len(board.items), size, round(100 * shares.mean(), 1),
        round(100 * shares.std() / sqrt(shares.size), 2),
        round(100 * np.mean([each.state == "met" for each in outcomes])),
        sum(each.wrong_goal for each in outcomes), sum(each.wrong_elimination for each in outcomes),
        round(1e3 * np.mean([each.look_seconds for each in outcomes]), 1),
    )  # fmt: skip


def race(board: Board, size: int, seed: int) -> Outcome:
    """Race for the best models along one order."""
    goal = f"top:{size}"
    declared = {"order": {"policy": "committed", "seed": str(seed)}, "item_ids": board.items, "goal": goal}
    partition = Partition()
    declaration = Declaration.model_validate({"declare": "b", **declared, "family": {"models": board.models}})
    partition.fold_events([declaration], [], [], partition.off + 1)
    item_at, model_at = ({name: k for k, name in enumerate(names)} for names in (board.items, board.models))
    seconds, looks = 0.0, 0
    while True:
        begin = time.process_time()
        look = Race.of(PairTable(partition.benchmarks["b"]))
        over, plan = look.over, look.plan()
        seconds, looks = seconds + time.process_time() - begin, looks + 1
        if over:
            break
        events = [
            EventFields("b", item, each.model, float(board.scores[item_at[item], model_at[each.model]]))
            for each in plan
            for item in each.items
        ]
        partition.fold_events([], events, [], partition.off + len(events))
    report, state = look.goal, look.view.state
    assert state is not None
    certain, allowed = board.best(size)
    place = dict(zip(look.view.models, state.place.tolist(), strict=True))
    wrong = any(place[m] == -1 for m in certain) or any(place[m] == 1 for m in place.keys() - allowed)
    found = set(report.models)
    return Outcome(
        1 - (report.saved_ratio or 0.0),
        report.state,
        report.state == "met" and not certain <= found <= allowed,
        wrong,
        seconds / looks,
    )


def boards(options: Options) -> Iterator[Board]:
    """Yield the boards."""
    folder = DATA
    if options.quick or (options.events is None and folder is None):
        lines = made_lines(options.size(29, 12), options.size(2_000, 100))
        yield from read("made", lines)
    elif options.events is not None and (folder is None or options.events.parent.parent != Path(folder)):
        yield from read(options.events.parent.name, _lines(options.events))
    else:
        assert folder is not None
        yield from read("MMLU-Pro", _lines(Path(folder) / "mmlu_pro/events.jsonl.gz"))
        for name in ("cruxeval-o", "gsm8k"):
            yield from read(name, _lines(Path(folder) / "zeroeval/events.jsonl.gz"), name)


def _lines(path: Path) -> list[bytes]:
    return (gzip.open if path.suffix == ".gz" else open)(path, "rb").read().splitlines()


def read(name: str, lines: list[bytes], benchmark: str | None = None) -> Iterator[Board]:
    """Yield the board of some events, or of one of their benchmarks."""
    events = [event for event in map(json.loads, lines) if benchmark in {None, event["benchmark"]}]
    items, models = (sorted({event[key] for event in events}) for key in ("item_id", "model"))
    item_at, model_at = ({name: k for k, name in enumerate(names)} for names in (items, models))
    scores = np.zeros((len(items), len(models)), np.int8)
    for event in reversed(events):  # the first score of a cell counts
        if event["score"] is not None:
            scores[item_at[event["item_id"]], model_at[event["model"]]] = event["score"] >= 1
    yield Board(name, items, models, scores)
