"""The metrics of an instance, for Prometheus.

They are named after Kafka Streams' own (process-total, dropped-records-total, commit-latency …), with units as
Prometheus has them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Final

from prometheus_client import (
    CollectorRegistry,
    Counter,
    GCCollector,
    Histogram,
    Info,
    PlatformCollector,
    ProcessCollector,
    generate_latest,
)
from prometheus_client.core import GaugeMetricFamily, StateSetMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from kohort import __version__
from kohort.spark.monitoring.events import EpochDone, Listener, Restoring, TasksNow
from kohort.spark.monitoring.lag import StandbyLag
from kohort.spark.monitoring.overview import Overview

BUCKETS: Final = (0.05, 0.1, 0.2, 0.3, 0.5, 0.75, 1.0, 1.5, 2.0, 3.0, 5.0, 10.0, 30.0, 60.0)
"""Of latencies, in seconds."""
_STATES: Final = ("starting", "running", "restoring", "waiting", "stopped", "failing")
_SUBTOPOLOGY: Final = ("subtopology",)


class Metrics(Listener):
    """Counts events, and exports the counts and the overview in Prometheus' format.

    Args:
        overview: a listener of the same instance that is called before this one.
        standby_lags: returns the current lags of standbys and warm-ups.

    Attributes:
        registry: what has all of them.
    """

    def __init__(
        self, application_id: str, overview: Overview, standby_lags: Callable[[], Iterable[StandbyLag]] = tuple
    ) -> None:
        registry = self.registry = CollectorRegistry()

        def counter(name: str, documentation: str, labels: Iterable[str] = _SUBTOPOLOGY) -> Counter:
            return Counter(f"kafka_streams_{name}", documentation, labels, registry=registry)

        def histogram(name: str, documentation: str) -> Histogram:
            return Histogram(
                f"kafka_streams_{name}_seconds", documentation, _SUBTOPOLOGY, registry=registry, buckets=BUCKETS
            )

        self._process = counter("process", "Records read, with those of tables.")
        self._bytes = counter("process_bytes", "Bytes of keys and values of records read.")
        self._output = counter("output_records", "Records written: output, repartition, changelogs, dead letters.")
        self._dropped = counter("dropped_records", "Records left out, and why.", (*_SUBTOPOLOGY, "reason"))
        self._late = counter("late_records", "Records for windows that were closed already.")
        self._restored = counter("restore", "Records of changelogs read to restore active tasks.", ("task_id", "store"))
        self._failures = counter("failures", "Failures, retried or not.", ())
        self._latency = histogram("process_latency", "Epochs, from beginning to end.")
        self._job = histogram("job_latency", "Spark jobs of epochs.")
        self._commit = histogram("commit_latency", "Transactions of epochs.")
        self._positions: dict[tuple[str, str], int] = {}
        Info("kafka_streams", "The application.", registry=registry).info(
            {"application_id": application_id, "version": __version__}
        )
        registry.register(_Gauges(overview, standby_lags))
        for collector in (ProcessCollector, PlatformCollector, GCCollector):
            collector(registry=registry)

    def tasks(self, now: TasksNow) -> None:
        # Alerts compare with what was before the first epoch: none.
        for subtopology in {task.rpartition("_")[0] for task in now.active}:
            self._process.labels(subtopology)
            self._latency.labels(subtopology)

    def epoch(self, done: EpochDone) -> None:
        subtopology = done.subtopology
        self._process.labels(subtopology).inc(done.records)
        self._bytes.labels(subtopology).inc(done.bytes)
        self._output.labels(subtopology).inc(done.out_records)
        for reason, count in done.reasons.items():
            self._dropped.labels(subtopology, reason).inc(count)
        self._late.labels(subtopology).inc(done.late)
        self._latency.labels(subtopology).observe(done.took_ms / 1000)
        self._job.labels(subtopology).observe(done.job_ms / 1000)
        self._commit.labels(subtopology).observe(done.commit_ms / 1000)

    def restoring(self, progress: Restoring) -> None:
        key = (progress.task, progress.store)
        before = self._positions.pop(key, progress.position)
        self._restored.labels(*key).inc(max(progress.position - before, 0))
        if not progress.done:
            self._positions[key] = progress.position

    def failed(self, text: str) -> None:
        self._failures.inc()

    def text(self) -> bytes:
        """All metrics in Prometheus' text format."""
        return generate_latest(self.registry)


class _Gauges(Collector):
    """The metrics that are looked up on each scrape."""

    def __init__(self, overview: Overview, standby_lags: Callable[[], Iterable[StandbyLag]]) -> None:
        self._overview, self._standby_lags = overview, standby_lags

    def describe(self) -> Iterable[Metric]:
        return ()  # otherwise the registry would collect the metrics to learn their names

    def collect(self) -> Iterator[Metric]:
        overview, now = self._overview, self._overview.now
        state = overview.state()
        yield StateSetMetricFamily(
            "kafka_streams_state", "State of the instance.", {each: each == state for each in _STATES}
        )
        tasks = GaugeMetricFamily("kafka_streams_tasks", "Tasks by role.", labels=["role"])
        tasks.add_metric(["active"], 0 if now is None else len(now.active))
        tasks.add_metric(["standby"], 0 if now is None else len(now.standby))
        tasks.add_metric(["warm-up"], 0 if now is None else len(now.warmup))
        tasks.add_metric(["restoring"], 0 if now is None else len(now.restoring))
        yield tasks
        lag = GaugeMetricFamily("kafka_streams_records_lag", "Records left to read.", labels=_SUBTOPOLOGY)
        age = GaugeMetricFamily(
            "kafka_streams_records_lag_age_seconds", "How long ago the lag was measured.", labels=_SUBTOPOLOGY
        )
        rate = GaugeMetricFamily(
            "kafka_streams_process_rate", "Records a second, over the last ten seconds.", labels=_SUBTOPOLOGY
        )
        for subtopology, totals in overview.subtopologies.items():
            rate.add_metric([subtopology], totals.rate(overview.clock()))
        for subtopology, records in overview.lags().items():
            lag.add_metric([subtopology], records)
        for subtopology, seconds in overview.lag_ages().items():
            age.add_metric([subtopology], seconds)
        yield lag
        yield age
        yield rate
        yield from self._stores()

    def _stores(self) -> Iterator[Metric]:
        restores = GaugeMetricFamily(
            "kafka_streams_restore_remaining_records",
            "Records of changelogs until tasks can run.",
            labels=["task_id", "store"],
        )
        for restore in self._overview.restores.values():
            restores.add_metric([restore.task, restore.store], restore.remaining)
        yield restores
        copies = GaugeMetricFamily(
            "kafka_streams_standby_records_lag",
            "Records of changelogs that standbys and warm-ups lack.",
            labels=["store", "partition", "role"],
        )
        for store, partition, role, records in self._standby_lags():
            copies.add_metric([store, str(partition), role], records)
        yield copies
