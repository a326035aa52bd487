"""The metrics of a worker, for Prometheus."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from prometheus_client import CollectorRegistry, GCCollector, PlatformCollector, ProcessCollector, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from kohort.spark.queues.counts import QueueCounts

_OUTCOMES: Final = ("acquired", "accepted", "released", "rejected", "lost")
_COUNTERS: Final = (
    ("renewals", "renewed", "Locks that were renewed, by record."),
    ("epochs", "epochs", "Epochs that were acknowledged."),
    ("dead_letters", "dead_letters", "Dead letters that were written."),
    ("failed_jobs", "failed_jobs", "Jobs that failed."),
    ("job_seconds", "job_s", "How long jobs took, in all."),
)


class QueueMetrics:
    """Exports the counts of queues in Prometheus' format."""

    def __init__(self, queues: Sequence[QueueCounts]) -> None:
        self._registry = CollectorRegistry()
        self._registry.register(_Counts(queues))
        for collector in (ProcessCollector, PlatformCollector, GCCollector):
            collector(registry=self._registry)

    def text(self) -> bytes:
        """All metrics in Prometheus' text format."""
        return generate_latest(self._registry)


class _Counts(Collector):
    """The counts, looked up on each scrape."""

    def __init__(self, queues: Sequence[QueueCounts]) -> None:
        self._queues = queues

    def describe(self) -> Iterable[Metric]:
        return ()  # otherwise the registry would collect the metrics to learn their names

    def collect(self) -> Iterator[Metric]:
        records = CounterMetricFamily("kohort_queue_records", "Records, by outcome.", labels=["queue", "outcome"])
        in_flight = GaugeMetricFamily("kohort_queue_in_flight_records", "Records worked on now.", labels=["queue"])
        for each in self._queues:
            for outcome in _OUTCOMES:
                records.add_metric([each.topic, outcome], getattr(each, outcome))
            in_flight.add_metric([each.topic], each.in_flight)
        deliveries = CounterMetricFamily(
            "kohort_queue_deliveries",
            "Records that were handed out, by which time it was.",
            labels=["queue", "delivery"],
        )
        for each in self._queues:
            for delivery, count in sorted(each.deliveries.items()):
                deliveries.add_metric([each.topic, str(delivery)], count)
        yield records
        yield deliveries
        yield in_flight
        for name, attribute, documentation in _COUNTERS:
            counter = CounterMetricFamily(f"kohort_queue_{name}", documentation, labels=["queue"])
            for each in self._queues:
                counter.add_metric([each.topic], getattr(each, attribute))
            yield counter
