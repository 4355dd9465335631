"""Races: the share of all scores that a goal takes along a random committed order, and how often its answer is wrong.

``--runs N`` races each goal along N orders by `stats.planning.racing.run_race`, which tests prove equal to the engine. One more race of
each goal runs through the engine (the controller names the next items, their scores are folded) and has to agree; it gives the time of a
look. All models are declared, so their pairs share alpha equally. An item that a model never answered counts as wrong. ``--events FILE``
names the board, `RANKWATCH_DATA` a folder of boards; else one is made.

A goal is wrong if it is met with models that are not the best ones of the whole board; an elimination if one of the best models was
stopped as out, or another one was taken for certain; a decision if the two models of a pair are equal on the whole board, or the other one
is better.
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
from monitor.engine.chunk_fold import Partition
from monitor.view.from_state import board_view
from monitor.view.pairs.table import PairTable
from monitor.view.ranking.race import Race
from schemas.records.declaration import Declaration
from schemas.records.events import EventFields
from stats.numerics.special import betaincinv
from stats.planning.racing import RaceResult, RaceRules, race_goal, run_race

GOALS = (1, 3, 10)


@dataclass(frozen=True)
class Board:
    """The whole scores of a board, shape (items, models); models by name."""

    name: str
    items: list[str]
    models: list[str]
    scores: np.ndarray[tuple[int, int], np.dtype[np.int8]]

    def best(self, size: int) -> tuple[set[int], set[int]]:
        """Return the models that are among the best for certain, and those that may be, where others have the same sum."""
        sums = self.scores.sum(axis=0, dtype=np.int64)
        last = np.sort(sums)[-size]
        least, most = set(np.flatnonzero(sums > last).tolist()), set(np.flatnonzero(sums >= last).tolist())
        return (most if len(most) == size else least), most


class Outcome(NamedTuple):
    """A race: the share of scores run, whether the goal was met, and what was wrong."""

    share: float
    met: bool
    wrong_goal: bool
    wrong_elimination: bool
    wrong_decision: bool


def measure(options: Options) -> Iterator[Table]:
    """Race each board for its best models."""
    table = Table(
        "Share of all scores until the best K are known, random committed orders",
        [
            "board",
            "models",
            "items",
            "K",
            "orders",
            "scores run, %",
            "se",
            "met, %",
            "wrong goals",
            "wrong eliminations",
            "wrong decisions",
            "at most, %",
            "ms a look",
        ],
        notes=[
            "A goal that is not met ends in a tie that no remaining item can break.",
            "At most: upper end of the 95 % interval of the rate of races with any wrong decision; 5 % is promised.",
            "ms a look: processor time of the controller, in a race through the engine.",
        ],
    )
    for board in boards(options):
        for size in GOALS:
            if size < len(board.models):
                milliseconds = engine_race(board, size)
                table.rows.append(
                    row(board, size, [race(board, size, seed) for seed in range(options.runs)], milliseconds)
                )
    yield table


def race(board: Board, size: int, seed: int) -> Outcome:
    """Race along one order over the scores of a board."""
    order = np.random.default_rng([size, seed]).permutation(len(board.items))
    return judge(board, size, run_race(board.scores[order], rules(size)))


def row(board: Board, size: int, outcomes: list[Outcome], milliseconds: float) -> tuple[object, ...]:
    """Return the line of a board and a goal."""
    runs = len(outcomes)
    shares = np.array([each.share for each in outcomes])
    wrong = sum(each.wrong_decision for each in outcomes)
    return (
        board.name, len(board.models), len(board.items), size, runs, round(100 * shares.mean(), 1),
        round(100 * shares.std() / sqrt(runs), 2),
        round(100 * np.mean([each.met for each in outcomes])),
        sum(each.wrong_goal for each in outcomes), sum(each.wrong_elimination for each in outcomes), wrong,
        round(100 * float(betaincinv(wrong + 1, runs - wrong, 0.975)) if wrong < runs else 100.0, 2),
        round(milliseconds, 1),
    )  # fmt: skip


def rules(size: int) -> RaceRules:
    """Return the rules of a race for the best models."""
    return RaceRules(race_goal("top", size))


def judge(board: Board, size: int, result: RaceResult) -> Outcome:
    """Compare the end of a race with the whole board."""
    certain, allowed = board.best(size)
    taken, out = (set(np.flatnonzero(result.place == side).tolist()) for side in (1, -1))
    place = result.place[result.order]
    chosen = set(result.order[np.argsort(-place, kind="stable")][:size].tolist())
    sums = board.scores.sum(axis=0, dtype=np.int64)
    return Outcome(
        float(result.items_run.sum()) / board.scores.size,
        result.met,
        result.met and not certain <= chosen <= allowed,
        bool(out & certain or taken - allowed),
        bool((np.sign(sums[:, None] - sums) * result.side < (result.side != 0)).any()),
    )


def engine_race(board: Board, size: int) -> float:
    """Race along one order through the engine; check that `run_race` agrees, and return the milliseconds of a look."""
    goal = f"top:{size}"
    declared = {"order": {"policy": "committed", "seed": "1"}, "item_ids": board.items, "goal": goal}
    partition = Partition()
    declaration = Declaration.model_validate({"declare": "b", **declared, "family": {"models": board.models}})
    partition.fold_events([declaration], [], [], partition.off + 1)
    item_at, model_at = ({name: k for k, name in enumerate(names)} for names in (board.items, board.models))
    seconds, looks = 0.0, 0
    while True:
        begin = time.process_time()
        look = Race.of(PairTable(board_view(partition.benchmarks["b"])))
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
    committed = partition.benchmarks["b"].committed
    assert committed is not None
    order = [item_at[item] for item in committed.ids(0, len(board.items))]
    result = run_race(board.scores[order], rules(size))
    run = {model: int(result.items_run[k]) for model, k in model_at.items()}
    if run != {each.model: each.items_run for each in plan} or result.met != (look.goal.state == "met"):
        raise RuntimeError(f"{board.name}, {goal}: a race through the engine ends elsewhere than one by run_race")
    return 1e3 * seconds / looks


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
