"""A plan of a goal from the command line: its models, where they come from, and its simulation."""

from collections.abc import Sequence
from pathlib import Path
from typing import Final

import numpy as np

from monitor.cli.shared.declared.prices import parse_prices, prices_of
from monitor.cli.shared.declared.values import name_hint
from monitor.cli.shared.errors import USAGE, stop
from monitor.cli.shared.files import read_results
from monitor.cli.shared.progress import progress_bar
from monitor.files.streams.paths import show
from monitor.render.terminal.goal_plan import PlannedGoal
from monitor.view.board import BoardView
from monitor.view.kinds.kind import kind_of
from schemas.records.goals import Goal, parse_goal
from schemas.records.scores import ONE, ZERO
from stats.numerics.mixtures import parse_mixture
from stats.planning.goal_plan import GoalSimulation, MadeBoards, PilotBoards
from stats.planning.racing import RaceRules, race_goal

MOST_ITEMS: Final = 10_000  # items up to which a plan looks where the size of the benchmark is not given

_MOST_CELLS: Final = 20_000_000  # scores of a simulated board

Boards = PilotBoards | MadeBoards


def plan_goal(
    text: str,
    paths: Sequence[str],
    benchmark: str | None,
    *,
    models: Sequence[str],
    rho: float | None,
    prices: tuple[Sequence[str], Path | None],
    items: int | None,
    boards: int,
    alpha: float,
    power: float,
    mixture: str,
    look: float,
) -> PlannedGoal:
    """Plan a goal; what cannot be planned ends the command."""
    try:
        goal = parse_goal(text)
        parse_mixture(mixture)
    except ValueError as error:
        stop(str(error), USAGE)
    if bool(paths) == bool(models):
        stop(
            "give a pilot (rankwatch plan --goal best pilot/), or models (--model a=0.8 --model b=0.75 --rho 0.5)",
            USAGE,
        )
    names, source, drawn = _made(models, rho) if models else _pilot(paths, benchmark, rho)
    given = parse_prices(*prices, of_all=True)
    cost = None if given is None else prices_of(names, given)
    size = MOST_ITEMS if items is None else items
    if size * len(names) > _MOST_CELLS:
        stop(
            f"--items {size}: a plan of {len(names):,} models takes at most {_MOST_CELLS // len(names):,} items", USAGE
        )
    places = _places(goal, names)
    with progress_bar("simulating", of_bytes=False) as update:
        done = iter(range(1, 2 * boards + 1))
        try:
            simulation = GoalSimulation(
                drawn,
                RaceRules(race_goal(goal.kind, goal.size, places), False, alpha, mixture, goal.margin, look=look),
                size,
                items is not None,
                power,
                boards,
                on_board=lambda: None if update is None else update(completed=next(done), total=2 * boards),
            )
            plan = simulation.plan()
        except ValueError as error:
            stop(str(error), USAGE)
    return PlannedGoal(goal.text, source, names, alpha, power, mixture, boards, items is not None, plan, cost, look)


def _places(goal: Goal, names: list[str]) -> list[int]:
    """Return the numbers of the models that a goal names; a goal that these models cannot have ends the command."""
    if unknown := next((name for name in goal.models if name not in names), None):
        stop(
            f"--goal {goal.text}: there is no model {show(unknown)}; {name_hint([unknown], names, 'the models are')}",
            USAGE,
        )
    if goal.kind == "top" and goal.size >= len(names):
        stop(f"--goal {goal.text}: there are {len(names):,} models, so it is met without an item; name fewer", USAGE)
    return [names.index(name) for name in goal.models]


def _made(entries: Sequence[str], rho: float | None) -> tuple[list[str], str, Boards]:
    accuracies: dict[str, float] = {}
    for entry in entries:
        name, _, value = entry.rpartition("=")
        try:
            accuracy = float(value)
        except ValueError:
            accuracy = 0.0
        if not name or not 0 < accuracy < 1:
            stop(f"--model {show(entry)}: give a name and an accuracy above 0 and below 1, as a=0.8", USAGE)
        if name in accuracies:
            stop(f"--model {show(name)} is given twice; give it once", USAGE)
        accuracies[name] = accuracy
    if len(accuracies) < 2:
        stop("--model: a goal needs two models or more", USAGE)
    if rho is None:
        stop("give --rho with --model: the mean correlation of the models' 0/1 scores (phi)", USAGE)
    names = sorted(accuracies)
    try:
        made = MadeBoards([accuracies[name] for name in names], rho)
    except ValueError as error:
        stop(str(error), USAGE)
    listed = ", ".join(f"{show(name)} {accuracies[name]:g}" for name in names)
    return names, f"accuracies {listed}; mean correlation (phi) of the 0/1 scores {rho:g} (as given)", made


def _pilot(paths: Sequence[str], name: str | None, rho: float | None) -> tuple[list[str], str, Boards]:
    if rho is not None:
        stop("--rho is for --model; a pilot has its own", USAGE)
    pilot = read_results(list(paths), 0.1)
    found = {each: benchmark for each, benchmark in pilot.items() if name in {None, each}}
    known = ", ".join(map(show, pilot))
    if not found:
        stop(f"--benchmark {show(name or '')} is not in the pilot; choose one of {known}", USAGE)
    if len(found) > 1:
        stop(f"the pilot has several benchmarks; choose one with --benchmark: {known}", USAGE)
    ((name, benchmark),) = found.items()
    names, scores = _shared_scores(name, benchmark)
    try:
        boards = PilotBoards(scores)
    except ValueError as error:
        stop(str(error), USAGE)
    total = benchmark.items
    of = f"{len(scores):,} of {total:,} items" if len(scores) < total else f"{total:,} items"
    source = f"{len(names):,} models on {of} of {show(name)} in {', '.join(map(show, paths))}"
    return names, source + (" (those that all models have)" if len(scores) < total else ""), boards


def _shared_scores(name: str, benchmark: BoardView) -> tuple[list[str], np.ndarray[tuple[int, int], np.dtype[np.int8]]]:
    """Return the models by name, and their 0/1 scores on the items that all of them have."""
    if not kind_of(benchmark).right_or_wrong:
        stop(f"{show(name)}: a plan of a goal needs a pilot with scores 0 and 1", USAGE)
    current = np.flatnonzero(benchmark.current())
    current = np.array(sorted(current.tolist(), key=lambda k: benchmark.contestants[k].model), np.int64)
    if current.size < 2:
        stop(f"{show(name)}: a goal needs a pilot with two models or more", USAGE)
    codes = benchmark.item_codes()[:, current]
    shared = codes[(codes >= ZERO).all(axis=1)]
    if not len(shared):
        stop(f"{show(name)}: no item of the pilot has scores of all models; give a pilot that has", USAGE)
    return [benchmark.contestants[k].model for k in current.tolist()], (shared == ONE).astype(np.int8)
