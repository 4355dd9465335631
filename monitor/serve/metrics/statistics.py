"""Keep the statistics that a scrape shows, and bound what computing them takes: a scrape renews the oldest ones first."""

from collections.abc import Mapping
from threading import Lock
from time import monotonic, thread_time
from typing import Final, NamedTuple

from monitor.serve.metrics.budget import Shown
from monitor.serve.report_cache import ReportCache
from monitor.view.board import BoardView
from monitor.view.metrics_view import BoardCounts, board_counts, metrics_view

SCRAPE_SECONDS: Final = 0.4
"""Processor time after which a scrape renews no more statistics; the next one goes on where it ended."""

QUICK_SECONDS: Final = 0.2
"""Statistics that take at most this long are computed for every scrape."""

COOLDOWN: Final = 10
"""Slower ones are reused for this many times their excess, so that scrapes cannot take all of a process's time."""


class _Computed(NamedTuple):
    """Statistics of a benchmark, and the state they are computed from."""

    benchmark: BoardView
    shown: Shown
    offset: int
    result: BoardCounts


class BoardStatistics:
    """The statistics of every benchmark for the metrics, each as of the last scrape that had the time to renew it."""

    def __init__(self, reports: ReportCache) -> None:
        self._reports = reports
        self._computed: dict[str, _Computed] = {}
        """By name, the oldest first."""
        self._rests_until = 0.0
        self._lock = Lock()
        """Held during a scrape: two may be computed in threads at once."""

    def of(self, benchmarks: Mapping[str, BoardView], shown: Mapping[str, Shown]) -> dict[str, BoardCounts]:
        """Return the statistics of all benchmarks; those that changed may be slightly old, unless the request asks for a later offset."""
        with self._lock:
            start, kept = thread_time(), self._computed
            for name in kept.keys() - benchmarks.keys():
                del kept[name]
            for name, benchmark in benchmarks.items():
                if self._needed(benchmark, shown[name]):
                    self._renew(benchmark, shown[name])
            if monotonic() >= self._rests_until:
                for name in [name for name in kept if self._changed(benchmarks[name])]:
                    if thread_time() - start >= SCRAPE_SECONDS:
                        break
                    self._renew(benchmarks[name], shown[name])
            spent = thread_time() - start
            if spent > QUICK_SECONDS:
                self._rests_until = monotonic() + COOLDOWN * (spent - QUICK_SECONDS)
            for name in filter(lambda name: self._changed(benchmarks[name]), kept):
                self._reports.note_older(name, kept[name].offset)
            return {name: kept[name].result for name in benchmarks}

    def _needed(self, benchmark: BoardView, shown: Shown) -> bool:
        """Return whether what is kept of a benchmark cannot be given, not even as slightly old."""
        known = self._computed.get(benchmark.name)
        return (
            known is None
            or known.benchmark.origin is not benchmark.origin
            or known.shown != shown
            or not self._reports.accepts(benchmark.name, known.offset)
        )

    def _changed(self, benchmark: BoardView) -> bool:
        return self._computed[benchmark.name].benchmark.version != benchmark.version

    def _renew(self, benchmark: BoardView, shown: Shown) -> None:
        name, table = benchmark.name, self._reports.pair_table(benchmark)
        result = metrics_view(benchmark, shown.pairs, table) if shown.models else board_counts(table)
        partition = self._reports.partition_of(name)
        offset = 0 if partition is None else partition.off
        self._computed.pop(name, None)  # the latest one comes last
        self._computed[name] = _Computed(benchmark, shown, offset, result)
