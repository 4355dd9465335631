"""Goals: the figures that were aimed at, next to those that the kept results hold.

A goal reads one cell of one table, or the worst of several rows. Its share is measured / aim where more is better, and aim / measured
where less is: a goal is reached from 1 on.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.ingest import DECLARED

Row = Mapping[str, Any]


@dataclass(frozen=True)
class Goal:
    """A figure to reach.

    Attributes
    ----------
    what, aim : str, float
        What is measured, and the figure aimed at.
    benchmark, table : str
        Where it is: a kept result, and the beginning of the title of one of its tables.
    column : str
        The column of the figure.
    rows : mapping
        Values of other columns that the rows have; the worst of these rows counts.
    by : str, optional
        A first cell: the figure is divided by that of this row.
    more : bool
        Whether more is better.
    unit : str
        After both figures.
    """

    what: str
    aim: float
    benchmark: str
    table: str
    column: str
    rows: Mapping[str, Any] = field(default_factory=dict)
    by: str | None = None
    more: bool = True
    unit: str = ""

    def measured(self, tables: list[dict[str, Any]]) -> tuple[float, float] | None:
        """Return the figure and the load of its table; None if it was not measured."""
        for table in tables:
            if not table["title"].startswith(self.table):
                continue
            rows: list[Row] = [dict(zip(table["columns"], row, strict=True)) for row in table["rows"]]
            some = [
                row.get(self.column) for row in rows if all(row.get(key) == value for key, value in self.rows.items())
            ]
            some = [value for value in some if isinstance(value, (int, float))]
            if not some:
                return None
            worst: Callable[[list[float]], float] = min if self.more else max
            beside = [row[self.column] for row in rows if self.by is not None and row[table["columns"][0]] == self.by]
            return worst(some) / (beside[0] if beside else 1), table["load"]
        return None


def _fold(order: str, models: int, aim: int) -> Goal:
    what = f"fold with verdicts, {models:,} models, {order}"
    return Goal(what, aim, "fold", "Fold", "events/s", {"models": models, "order": order}, unit="events/s")


def _verdicts(order: str, models: int) -> Goal:
    what = f"step-down and `settled`, {models:,} models, {order}: times the processor time without"
    rows = {"models": models, "order": order, "version": "now"}
    return Goal(what, 1.15, "verdicts", "Verdicts", "times `without`", rows, more=False)


def _limit(what: str, aim: int, column: str, unit: str) -> Goal:
    return Goal(what, aim, "limit", "First", column, more=False, unit=unit)


_LEADERBOARD = "rankwatch report, adjacent pairs, table"
_SMALL = "rankwatch report, two lines"

GOALS = (
    Goal(
        "one event a message, verdicts, 29 models: share of bare `getmany`",
        0.7,
        "packs",
        "One event a message",
        "of bare",
        {"what": DECLARED},
    ),
    Goal("the same, 100 models", 0.5, "ingest", "K = 100 ", "of bare", {"what": DECLARED}),
    Goal(
        "run messages, verdicts, 29 models",
        1e6,
        "packs",
        "Run messages",
        "events/s",
        {"what": DECLARED},
        unit="events/s",
    ),
    Goal(
        "100 events a message, verdicts, 29 models",
        1e6,
        "packs",
        "100 events",
        "events/s",
        {"what": DECLARED},
        unit="events/s",
    ),
    _fold("trusted", 1_000, 100_000),
    _fold("committed", 100, 250_000),
    _fold("trusted, graded", 100, 60_000),
    Goal(
        "`report` of 347,215 events: times the bare script",
        1.4,
        "start_up",
        "",
        "seconds",
        {"command": _LEADERBOARD},
        by="bare script: decode and count",
        more=False,
    ),
    Goal("`report` of two lines", 0.25, "start_up", "", "seconds", {"command": _SMALL}, more=False, unit="s"),
    Goal("`--help`", 0.12, "start_up", "", "seconds", {"command": "rankwatch --help"}, more=False, unit="s"),
    *(_verdicts(order, models) for order in ("trusted", "completion", "committed") for models in (29, 300)),
    Goal(
        "accepted to visible, p99 at 20,000 events/s, Kafka",
        200,
        "latency",
        "Accepted to visible in /metrics, to the service",
        "p99",
        {"rate": "20,000 events/s"},
        more=False,
        unit="ms",
    ),
    Goal(
        "the same, embedded",
        150,
        "latency",
        "Accepted to visible in /metrics, posted",
        "p99",
        {"rate": "20,000 events/s"},
        more=False,
        unit="ms",
    ),
    Goal(
        "200 readers at 20,000 events/s: calls of pages, p99",
        300,
        "connected",
        "One reader",
        "call ms, p99",
        {"readers": 200},
        more=False,
        unit="ms",
    ),
    Goal(
        "the same: delay of the feed, p99",
        1_000,
        "connected",
        "One reader",
        "feed ms, p99",
        {"readers": 200},
        more=False,
        unit="ms",
    ),
    Goal(
        "calls of the page, 1,000 models, each computed: the longest",
        300,
        "calls",
        "Calls",
        "processor ms",
        more=False,
        unit="ms",
    ),
    _limit("first items of 5,000 models: longest turn of the event loop", 200, "longest callback, ms", "ms"),
    _limit("the same: `/healthz`, the longest", 100, "healthz ms, most", "ms"),
    _limit("the same: memory, with `/metrics` and the page", 4_000, "MB", "MB"),
    Goal("`make test`", 3, "checks", "The tests", "minutes", {"command": "make test"}, more=False, unit="min"),
    Goal("`make check`", 12, "checks", "The tests", "minutes", {"command": "make check"}, more=False, unit="min"),
)


def goals_table(results: Path) -> dict[str, Any]:
    """Return the goals and what was measured, as a table of the page."""
    rows: list[list[Any]] = []
    for goal in GOALS:
        file = results / f"{goal.benchmark}.json"
        kept = json.loads(file.read_text(encoding="utf-8")) if file.exists() else {"tables": []}
        found = goal.measured(kept["tables"])
        if found is None:
            rows.append([goal.what, _figure(goal, goal.aim), None, None, None])
            continue
        measured, load = found
        share = measured / goal.aim if goal.more else goal.aim / measured
        rows.append([goal.what, _figure(goal, goal.aim), _figure(goal, measured), round(share, 2), load])
    return {"columns": ["what", "goal", "measured", "reached", "load"], "rows": rows, "notes": []}


def _figure(goal: Goal, value: float) -> str:
    """Return a figure with its unit, at most four digits.

    >>> _figure(GOALS[2], 1e6), _figure(GOALS[0], 0.4141)
    ('1,000,000 events/s', '0.414')
    """
    text = f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"
    return f"{text} {goal.unit}".strip()
