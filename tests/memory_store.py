"""The store's contract without a server: applies deltas to a `StoredState`, so that a restart can be tried at any point."""

import json

import numpy as np

from monitor.engine.state.stored import StoredBenchmark, StoredState
from schemas.records.reading import FileReading
from schemas.records.scores import SCORE_UNIT
from schemas.results.verdict_changes import VerdictChanges


class MemoryStore:
    def __init__(self, partition=0):
        self.state = StoredState(partition)

    def commit(self, delta):
        assert self.state.off in {0, delta.expected}
        self.state.off = delta.off
        self.state.sources |= delta.sources
        self.state.origins |= delta.origins
        self.state.last = delta.last or self.state.last
        self.state.gaps = self.state.gaps if delta.gaps is None else delta.gaps
        self.state.counters = dict(delta.counters)
        suspects = {each.benchmark: each for each in self.state.suspects} | delta.suspects
        self.state.suspects = [each for each in suspects.values() if not each.clear]
        entries = {each.benchmark: each for each in self.state.boards} | delta.boards
        self.state.boards = [each for each in entries.values() if not each.clear]
        readings = {each.path: each.dump() for each in self.state.readings} | delta.readings
        self.state.readings = [FileReading.parse(each) for each in readings.values() if each]
        deleted = {each.name for each in delta.deleted}
        self.state.benchmarks = [b for b in self.state.benchmarks if b.name not in deleted]
        known = {b.name: b for b in self.state.benchmarks}
        for change in delta.benchmarks:
            stored = known.get(change.name)
            if stored is None:
                stored = StoredBenchmark(
                    change.key,
                    change.name,
                    0,
                    None,
                    [],
                    [],
                    [0, SCORE_UNIT],
                    1,
                    [],
                    np.empty(0, np.uint32),
                    VerdictChanges(),
                    {},
                    None,
                )
                self.state.benchmarks.append(stored)
                known[change.name] = stored
            self._apply(stored, change)

    @staticmethod
    def _apply(stored, change):
        stored.off = change.off
        stored.spec = change.spec or stored.spec
        stored.rows += change.rows
        stored.contestants += change.contestants
        stored.values += change.values
        stored.width = change.width
        stored.votes = np.concatenate([stored.votes, *change.votes])
        stored.judges = stored.judges + change.judges
        stored.run_lines += json.loads(json.dumps(change.run_lines))
        stored.run_scores = np.concatenate([stored.run_scores, change.run_scores])
        if change.run_state is not None:
            stored.run_state = json.loads(json.dumps(change.run_state))
        if change.redeclared:
            stored.registered = stored.registered[:0]
        stored.seed = change.seed or stored.seed
        stored.registered = np.concatenate([stored.registered, *change.registered])
        stored.counters = dict(change.counters)
        stored.finding = change.finding or stored.finding
        if change.unknown_units is not None:
            stored.unknown_units = change.unknown_units
        if change.undeclared is not None:
            stored.undeclared, stored.mixed = change.undeclared
        stored.gaps = stored.gaps if change.gaps is None else change.gaps
        stored.ended = stored.ended if change.ended is None else change.ended
        if change.arrival is not None:
            contestants, state = change.arrival
            stored.arrival = np.pad(stored.arrival, ((0, len(stored.contestants) - len(stored.arrival)), (0, 0)))
            stored.arrival[contestants] = state
        if change.peaks is not None:
            pair, peak = change.peaks
            stored.peaks = np.pad(stored.peaks, (0, max(0, int(pair.max()) + 1 - stored.peaks.size)))
            stored.peaks[pair] = peak
        if change.conflicts is not None:
            start, listed, contestants, again = change.conflicts
            assert start == len(stored.listed), "a conflict is written once, at its place"
            stored.listed = np.concatenate([stored.listed, listed])
            stored.again = np.pad(stored.again, ((0, len(stored.contestants) - len(stored.again)), (0, 0)))
            stored.again[contestants] = again
        assert not set(change.changes) & set(stored.changes), "a latch is written once"
        for latches in change.changes.columns:
            stored.changes.extend(latches.fields(), latches)
        for field, verdict in change.changes.whole().items():
            stored.changes.add(field, verdict)
        dtype = np.uint8 if stored.width == 1 else np.uint32
        columns = [np.zeros(len(stored.rows), dtype) for _ in stored.contestants]
        for k, column in enumerate(stored.columns):
            columns[k][: column.size] = column
        if change.columns is not None:
            columns = [np.array(column, dtype) for column in change.columns]
        if change.cells is not None:
            for row, contestant, code in zip(*change.cells, strict=True):
                assert columns[contestant][row] in {0, 1}, "a score is written once"
                columns[contestant][row] = code
        stored.columns = columns
