"""Verdict changes in the order of the log: kept sorted by id as the state grows, so that pages and streams take up where they were."""

from bisect import bisect_right
from itertools import islice
from typing import Final

from monitor.engine.state.benchmark import Benchmark
from monitor.serve.api.problems import ProblemError
from monitor.serve.report_cache import Board
from schemas.changes import VerdictChange

Place = tuple[int, int]
"""A change's id as numbers: where its record stands in the log, and its place in the record."""

START: Final = (-1, -1)
"""Before the first change."""


def place_of(id_: str) -> Place:
    """Read the id of a change.

    Raises
    ------
    ValueError
        If it is none.
    """
    offset, dash, sequence = id_.partition("-")
    if not (dash and offset.isdecimal() and sequence.isdecimal() and id_.isascii() and len(id_) <= 60):
        raise ValueError(f"{id_!r} is not the id of a change, <offset>-<place>")
    return int(offset), int(sequence)


class History:
    """The changes of one benchmark, or of all that one partition holds.

    Parameters
    ----------
    board : Board
    benchmark : str or None
        None: all of them; their ids have one order only where one partition holds them.
    """

    def __init__(self, board: Board, benchmark: str | None) -> None:
        self._board, self._benchmark = board, benchmark
        self._known: dict[str, tuple[Benchmark, int]] = {}
        self._places: list[Place] = []
        self._changes: list[VerdictChange] = []

    def after(self, place: Place, limit: int) -> list[VerdictChange]:
        """Return the first changes beyond a place."""
        self._catch_up()
        start = bisect_right(self._places, place)
        return self._changes[start : start + limit]

    def latest(self, limit: int) -> list[VerdictChange]:
        """Return the last changes, the latest first."""
        self._catch_up()
        return self._changes[: -limit - 1 : -1]

    def last(self) -> Place:
        """Return the place of the last change."""
        self._catch_up()
        return self._places[-1] if self._places else START

    def _benchmarks(self) -> dict[str, Benchmark]:
        present = self._board.benchmarks()
        if self._benchmark is None:
            return present
        return {self._benchmark: present[self._benchmark]} if self._benchmark in present else {}

    def _catch_up(self) -> None:
        present = self._benchmarks()
        for name, (benchmark, _) in self._known.items():
            if present.get(name) is not benchmark:  # it was loaded anew, or has gone: begin again
                self._known, self._places, self._changes = {}, [], []
                break
        fresh: list[tuple[Place, VerdictChange]] = []
        for name, benchmark in present.items():
            _, known = self._known.get(name, (benchmark, 0))
            count = len(benchmark.changes)
            if count > known:
                fresh += ((place_of(c.id), c) for c in islice(benchmark.changes.values(), known, None))
            self._known[name] = (benchmark, count)
        if fresh:
            self._add(sorted(fresh, key=lambda entry: entry[0]))

    def _add(self, fresh: list[tuple[Place, VerdictChange]]) -> None:
        if self._places and fresh[0][0] < self._places[-1]:
            fresh = sorted([*zip(self._places, self._changes, strict=True), *fresh], key=lambda entry: entry[0])
            self._places, self._changes = [], []
        self._places += (place for place, _ in fresh)
        self._changes += (change for _, change in fresh)


class Histories:
    """The histories that have been asked for, made once each and shared by all who ask."""

    _KEPT: Final = 64

    def __init__(self, board: Board) -> None:
        self._board = board
        self._made: dict[str | None, History] = {}

    def of(self, benchmark: str | None) -> History:
        """Return a history.

        Raises
        ------
        ProblemError
            If there is no such benchmark; or none was named, and ids have no common order.
        """
        if benchmark is None and len(self._board.partitions) > 1:
            raise ProblemError(
                422,
                "benchmark: found nothing: this worker holds several partitions, whose changes have no common order; name a benchmark",
            )
        if benchmark is not None and benchmark not in self._board.benchmarks():
            raise ProblemError(
                404,
                f"{benchmark!r} has no events here; GET /api/v1/summaries lists the benchmarks that this worker holds",
            )
        history = self._made.pop(benchmark, None) or History(self._board, benchmark)
        self._made[benchmark] = history
        if len(self._made) > self._KEPT:
            del self._made[next(iter(self._made))]
        return history
