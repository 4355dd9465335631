"""Metrics of this process. Unlike the others they are not part of the state, so they restart at 0."""

from collections.abc import Callable
from typing import Any, Final

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from monitor.serve.access.scopes import QUOTAS
from monitor.serve.metrics import catalogue
from monitor.serve.metrics.catalogue import Metric

_MAX_PRODUCERS: Final = 200  # producers with series of their own: writers of a topic may claim any name


class ProcessMetrics:
    """Counters, gauges and histograms of one process, in their own registry."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.fold_seconds = self._histogram(catalogue.FOLD_SECONDS)
        self.commit_seconds = self._histogram(catalogue.COMMIT_SECONDS)
        self.chunk_records = self._histogram(catalogue.CHUNK_RECORDS)
        self.stale_commits = self._make(Counter, catalogue.STALE_COMMITS)
        self.store_up = self._make(Gauge, catalogue.STORE_UP)
        self.outbox = self._make(Gauge, catalogue.OUTBOX)
        self.outbox_limit = self._make(Gauge, catalogue.OUTBOX_LIMIT)
        self.relayed = self._make(Counter, catalogue.RELAYED)
        self.relay_failures = self._make(Counter, catalogue.RELAY_FAILURES)
        self.notifications_omitted = self._make(Counter, catalogue.NOTIFICATIONS_OMITTED)
        self.quarantined = self._make(Gauge, catalogue.QUARANTINED)
        self.conflicts = self._make(Counter, catalogue.CONFLICTS_BY_PRODUCER)
        self.conflicts.labels("")  # a series from the start: a rate needs one
        self._producers: set[str] = set()
        self.quota_refusals = self._make(Counter, catalogue.QUOTA_REFUSALS)
        for quota in QUOTAS:
            self.quota_refusals.labels(quota)  # so that it is exported as 0
        self.source_gap = self._make(Gauge, catalogue.SOURCE_GAP)

    def add_broker(self) -> Gauge:
        """Return the gauge for the brokers; `rankwatch watch` has none."""
        gauge: Gauge = self._make(Gauge, catalogue.BROKER_UP)
        return gauge

    def count_conflicts(self, producer: str | None, count: int) -> None:
        """Count conflicts by who sent them; beyond a number of producers, as those of `other`."""
        name = producer or ""
        if name not in self._producers:
            if len(self._producers) >= _MAX_PRODUCERS:
                name = "other"
            self._producers.add(name)
        self.conflicts.labels(name).inc(count)

    def add_reader(self, age: Callable[[], float]) -> tuple[Counter, Gauge]:
        """Export the age of the state of a reader; return the counter of its reloads, and the gauge of a missing signing key."""
        self._make(Gauge, catalogue.STALENESS).set_function(age)
        reloads: Counter = self._make(Counter, catalogue.RELOADS)
        return reloads, self._make(Gauge, catalogue.SIGNING_KEY_MISSING)

    def add_partition(self, partition: int, outbox_changes: int) -> None:
        """Start the series of a partition, of whose verdict changes so many may wait for publishers."""
        self.outbox.labels(str(partition)).set(0)
        self.outbox_limit.labels(str(partition)).set(outbox_changes)
        self.quarantined.labels(str(partition))

    def remove_partition(self, partition: int) -> None:
        """End the series of a partition that moved to another worker."""
        self.outbox.remove(str(partition))
        self.outbox_limit.remove(str(partition))
        self.quarantined.remove(str(partition))

    def _make(self, kind: Any, metric: Metric) -> Any:  # noqa: ANN401 - Counter and Gauge share no precise base class
        return kind(metric.name, metric.help, metric.labels, registry=self.registry)

    def _histogram(self, metric: Metric) -> Histogram:
        return Histogram(metric.name, metric.help, metric.labels, buckets=metric.buckets, registry=self.registry)
