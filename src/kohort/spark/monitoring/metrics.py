"""What an instance tells Prometheus.

The words are those of Kafka Streams' own metrics (process-total, dropped-records-total, commit-latency …), so that who
knows these finds them; units are spelled out, as Prometheus wants it.
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
from kohort.spark.monitoring.events import BaseListener, EpochDone, Restoring
from kohort.spark.monitoring.lag import StandbyLag
from kohort.spark.monitoring.overview import Overview

__all__ = ["Metrics"]

_BUCKETS: Final = (0.05, 0.1, 0.2, 0.3, 0.5, 0.75, 1.0, 1.5, 2.0, 3.0, 5.0, 10.0, 30.0, 60.0)
_STATES: Final = ("starting", "running", "restoring", "waiting", "stopped", "failing")
_PART: Final = ("subtopology",)


class Metrics(BaseListener):
    """Counts what a listener hears, and shows it to Prometheus.

    Args:
        application_id: of the application.
        overview: another listener of the same instance; it must be told first.
        standby_lags: returns what the copies of stores lack now.
    """

    def __init__(
        self, application_id: str, overview: Overview, standby_lags: Callable[[], Iterable[StandbyLag]] = tuple
    ) -> None:
        registry = self._registry = CollectorRegistry()

        def counter(name: str, documentation: str, labels: Iterable[str] = _PART) -> Counter:
            return Counter(f"kafka_streams_{name}", documentation, labels, registry=registry)

        def histogram(name: str, documentation: str) -> Histogram:
            return Histogram(f"kafka_streams_{name}_seconds", documentation, _PART, registry=registry, buckets=_BUCKETS)

        self._process = counter("process", "Records read, with those of tables.")
        self._bytes = counter("process_bytes", "Bytes of keys and values of records read.")
        self._output = counter("output_records", "Records written: output, repartition, changelogs, dead letters.")
        self._dropped = counter("dropped_records", "Records left out, and why.", (*_PART, "reason"))
        self._late = counter("late_records", "Records for windows that were closed already.")
        self._restored = counter("restore", "Records of changelogs read to restore active tasks.", ("task_id", "store"))
        self._failures = counter("failures", "What went wrong, tried again or not.", ())
        self._latency = histogram("process_latency", "Epochs, from beginning to end.")
        self._job = histogram("job_latency", "Spark jobs of epochs.")
        self._commit = histogram("commit_latency", "Transactions of epochs.")
        self._positions: dict[tuple[str, str], int] = {}
        Info("kafka_streams", "What runs.", registry=registry).info(
            {"application_id": application_id, "version": __version__}
        )
        registry.register(_Now(overview, standby_lags))
        for collector in (ProcessCollector, PlatformCollector, GCCollector):
            collector(registry=registry)

    def epoch(self, done: EpochDone) -> None:
        """An epoch is committed."""
        part = done.part
        self._process.labels(part).inc(done.records)
        self._bytes.labels(part).inc(done.bytes)
        self._output.labels(part).inc(done.out_records)
        for reason, count in done.reasons.items():
            self._dropped.labels(part, reason).inc(count)
        self._late.labels(part).inc(done.late)
        self._latency.labels(part).observe(done.took_ms / 1000)
        self._job.labels(part).observe(done.job_ms / 1000)
        self._commit.labels(part).observe(done.commit_ms / 1000)

    def restoring(self, progress: Restoring) -> None:
        """A store is being restored."""
        key = (progress.task, progress.store)
        before = self._positions.pop(key, progress.position)
        self._restored.labels(*key).inc(max(progress.position - before, 0))
        if not progress.done:
            self._positions[key] = progress.position

    def failed(self, text: str) -> None:
        """Something went wrong."""
        self._failures.inc()

    def text(self) -> bytes:
        """All metrics in Prometheus' text format, as they are now."""
        return generate_latest(self._registry)


class _Now(Collector):
    """What holds at the moment of asking."""

    def __init__(self, overview: Overview, standby_lags: Callable[[], Iterable[StandbyLag]]) -> None:
        self._overview, self._standby_lags = overview, standby_lags

    def describe(self) -> Iterable[Metric]:
        """No metrics: Prometheus needn't collect any to register this."""
        return ()

    def collect(self) -> Iterator[Metric]:
        """All metrics, as they are now."""
        overview, now = self._overview, self._overview.now
        state = overview.state()
        yield StateSetMetricFamily(
            "kafka_streams_state", "What the instance does.", {each: each == state for each in _STATES}
        )
        tasks = GaugeMetricFamily("kafka_streams_tasks", "Tasks by what they are here.", labels=["role"])
        tasks.add_metric(["active"], 0 if now is None else len(now.active))
        tasks.add_metric(["standby"], 0 if now is None else len(now.standby))
        tasks.add_metric(["warm-up"], 0 if now is None else len(now.warmup))
        tasks.add_metric(["restoring"], 0 if now is None else len(now.restoring))
        yield tasks
        lag = GaugeMetricFamily("kafka_streams_records_lag", "Records left to read.", labels=_PART)
        age = GaugeMetricFamily(
            "kafka_streams_records_lag_age_seconds", "Since when that isn't known any better.", labels=_PART
        )
        rate = GaugeMetricFamily("kafka_streams_process_rate", "Records a second, lately.", labels=_PART)
        for part_id, part in overview.parts.items():
            rate.add_metric([part_id], part.rate(overview.clock()))
        for part_id, left in overview.lags().items():
            lag.add_metric([part_id], left)
        for part_id, seconds in overview.lag_ages().items():
            age.add_metric([part_id], seconds)
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
