"""Suites: what a reader computes for one when a member has changed, next to what it computes for the members.

Members have 14 categories, random scores of 0 and 1, every model on every item, and a declared item count. Processor seconds, median of the
runs; the union is the suite as one benchmark, the report has its neighbours in rank. The last column is the suite, union and report, over
the reports of all members.
"""

import statistics
import time
from collections.abc import Callable, Iterator
from typing import Any

from benchmarks.events import made_lines
from benchmarks.folding import declaration, fold
from benchmarks.harness import Options, Table
from monitor.view.build import report_view
from monitor.view.partition_view import board_views
from monitor.view.ranking.suite import suite_board
from schemas.records.suites import Member, Suite

CASES = [(3, 1_000, 30), (10, 1_000, 100), (57, 250, 30), (3, 12_000, 100)]
"""Members, items of each, models."""


def measure(options: Options) -> Iterator[Table]:
    """Compute a suite, and the reports of its members, at several sizes."""
    table = Table(
        "A suite and its members, processor seconds",
        ["members", "items each", "models", "union s", "report s", "members' reports s", "suite / members"],
    )
    for members, most, models in CASES:
        items = options.size(most, 50)
        names = [f"member {k}" for k in range(members)]
        lines = [declaration(name, items=items) for name in names]
        lines += [line for name in names for line in made_lines(models, items, benchmark=name)]
        boards = board_views([fold(lines).partition])
        suite = Suite("all", {name: Member() for name in names})
        runs = min(options.runs, 3)
        union = suite_board(suite, boards, assert_complete=False)
        of_union = seconds(runs, lambda: suite_board(suite, boards, assert_complete=False))  # noqa: B023 - it runs now
        of_report = seconds(runs, lambda: report_view(union, pairs="adjacent"))  # noqa: B023
        of_members = seconds(runs, lambda: [report_view(each) for each in boards.values()])  # noqa: B023
        table.rows.append(
            (
                members,
                items,
                models,
                round(of_union, 3),
                round(of_report, 3),
                round(of_members, 3),
                round((of_union + of_report) / of_members, 2),
            )
        )
    yield table


def seconds(runs: int, work: Callable[[], Any]) -> float:
    """Return the median of the processor seconds of some work."""
    taken = []
    for _ in range(runs):
        begin = time.process_time()
        work()
        taken.append(time.process_time() - begin)
    return statistics.median(taken)
