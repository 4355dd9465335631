"""Which score counts where files hold several of one item: read once more, each such item gets one score everywhere."""

from collections.abc import Iterable, Mapping
from itertools import chain

import msgspec

from monitor.engine.chunk_fold import Partition
from monitor.engine.state.benchmark import Benchmark
from schemas.records.events import EventFields
from schemas.records.packed import Segment
from schemas.results.gate import ConflictRule

_Key = tuple[str, int, str, int, str]
_Score = float | bool | None


class OneScore:
    """Gives every event of an item, repeat and run the score that counts.

    >>> read = [EventFields("quiz", "q1", model, score) for model in ("new", "old") for score in (0.0, None, 1.0)]
    >>> worst = OneScore("worst", "old", {"quiz": Benchmark("quiz")})
    >>> worst.collect([Segment([], read, [], 0, 0)])
    >>> [event.score for event in worst(Segment([], read, [], 0, 0)).events]
    [0.0, 0.0, 0.0, 1.0, 1.0, 1.0]
    """

    def __init__(self, rule: ConflictRule, baseline: str, benchmarks: Mapping[str, Benchmark]) -> None:
        self._rule, self._baseline, self._benchmarks = rule, baseline, benchmarks
        self._scores: dict[_Key, _Score] = {}

    def collect(self, segments: Iterable[Segment]) -> None:
        """Read the events of all segments; none is changed before."""
        for event in chain.from_iterable(segment.events for segment in segments):
            benchmark = self._benchmarks.get(event.benchmark)
            if benchmark is None or not event.model:  # a battle has no model
                continue
            key = self._key(event, benchmark)
            contestant = benchmark.epoch_contestant_of.get(key[2:4], -1)
            if key not in self._scores or (self._scores[key] is None and benchmark.skips_wait(contestant)):
                self._scores[key] = event.score
            elif self._scores[key] != event.score:
                self._scores[key] = self._chosen(key[2], self._scores[key], event.score)

    def __call__(self, segment: Segment) -> Segment:
        """Return a segment with the scores that count."""
        return segment._replace(events=[self._changed(event) for event in segment.events], raw=None)

    def _changed(self, event: EventFields) -> EventFields:
        benchmark = self._benchmarks.get(event.benchmark)
        if benchmark is None or not event.model:
            return event
        return msgspec.structs.replace(event, score=self._scores[self._key(event, benchmark)])

    def _key(self, event: EventFields, benchmark: Benchmark) -> _Key:
        return (
            event.item_id,
            event.repeat,
            benchmark.spec.aliases.get(event.model, event.model),
            event.epoch,
            event.benchmark,
        )

    def _chosen(self, model: str, one: _Score, other: _Score) -> _Score:
        """Return which of two scores counts; a null is the worst for its model."""
        if self._rule == "last":
            return other
        if model == self._baseline:
            return max(1.0 if each is None else float(each) for each in (one, other))
        return min(0.0 if each is None else float(each) for each in (one, other))


def has_conflicts(partition: Partition) -> bool:
    """Return whether some scores contradict earlier ones."""
    return any(each.counters["conflicts"] for each in partition.benchmarks.values() if each.by_item.has_scores)


def take_counts(
    resolved: Iterable[Benchmark], first: Mapping[str, Benchmark], rule: ConflictRule, baseline: str
) -> None:
    """Let benchmarks whose conflicts are resolved show the conflicts that the files hold."""
    for benchmark in resolved:
        read = first[benchmark.name]
        benchmark.conflicts, benchmark.counters = read.conflicts, dict(read.counters)
        benchmark.reading.at_best = baseline if rule == "worst" and read.by_item.has_scores else None
