"""Traces and metrics of an instance by OpenTelemetry: an epoch is a trace, and the metrics are those of `/metrics`."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Protocol

from prometheus_client.metrics_core import Metric

from kohort import __version__
from kohort.extras import OPENTELEMETRY, require
from kohort.spark.monitoring.events import EpochDone, Listener, Restoring, TasksNow
from kohort.spark.monitoring.metrics import BUCKETS

if TYPE_CHECKING:
    from opentelemetry.metrics import Histogram, Meter, MeterProvider, Observation
    from opentelemetry.trace import Span, TracerProvider

__all__ = ["OpenTelemetry"]

_SCOPE: Final = "kohort"
_NS: Final = 1_000_000_000
_FRESH_S: Final = 1.0
"""How long what was collected serves: an export asks for each metric by itself."""
_PATIENCE_S: Final = 10.0
"""How long an exporter's thread waits for the event loop to collect."""
_SUFFIXES: Final = {"counter": "_total", "info": "_info"}
"""What Prometheus adds to the name of a family for that of its samples."""
_UNITS: Final = {"_seconds": "s", "_bytes": "By"}


class Registry(Protocol):
    """What exposes metrics, as Prometheus' registries do."""

    def collect(self) -> Iterable[Metric]: ...


class OpenTelemetry(Listener):
    """Makes traces and metrics of what an instance does, for an application's own exporters.

        app.run(spark, listeners=[OpenTelemetry("flight-delays")])

    An epoch that is committed is a trace: a span from beginning to end, and in it one for each step: `job` (records are
    read and worked on in Spark), `merge` (with what stores have), `send`, `commit`, `store`. In `job` there is a `read`
    for each of Spark's tasks that has read, from its first request to its last row. A store that is restored is a span,
    and so is a failure. Spans are made when the steps are over, of what was measured anyway.

    Args:
        application_id: of the application, which is its group's name.
        tracer_provider, meter_provider: by default the global ones, which an SDK or `opentelemetry-instrument` sets up.
        clock: returns seconds since 1970.

    Raises:
        MissingExtraError: the extra `opentelemetry` isn't installed.
    """

    def __init__(
        self,
        application_id: str,
        *,
        tracer_provider: TracerProvider | None = None,
        meter_provider: MeterProvider | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        require("opentelemetry", "telemetry", OPENTELEMETRY)
        from opentelemetry import metrics, trace

        self._clock = clock
        self._common = {"messaging.system": "kafka", "messaging.consumer.group.name": application_id}
        self._tracer = trace.get_tracer(_SCOPE, __version__, tracer_provider)
        self._meter: Meter = metrics.get_meter(_SCOPE, __version__, meter_provider)
        self._latency = self._histogram("process", "Epochs, from beginning to end.")
        self._job = self._histogram("job", "Spark jobs of epochs.")
        self._commit = self._histogram("commit", "Transactions of epochs.")
        self._restores: dict[tuple[str, str], Restoring] = {}
        self._bridged: set[str] = set()
        self._registry: Registry | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._found: Mapping[str, Metric] = {}
        self._found_at = float("-inf")

    # Traces ----------------------------------------------------------------------------------------------------

    def epoch(self, done: EpochDone) -> None:
        took, began = done.took_ms / 1000, done.at - done.took_ms / 1000
        attributes = self._of_epoch(done)
        destination = attributes.get("messaging.destination.name")
        name = f"process {destination}" if destination else "process"
        root = self._span(name, began, attributes, kind="CONSUMER")
        at = began
        for step, milliseconds in (
            ("job", done.job_ms - done.merge_ms),
            ("merge", done.merge_ms),
            ("send", done.send_ms),
            ("commit", done.commit_ms - done.send_ms),
            ("store", done.store_ms),
        ):
            if milliseconds > 0:
                span, at = self._span(step, at, {}, parent=root), at + milliseconds / 1000
                if step == "job":
                    self._reads(done, span)
                span.end(_ns(at))
        root.end(_ns(done.at))
        label = {"subtopology": done.subtopology}
        self._latency.record(took, label)
        self._job.record(done.job_ms / 1000, label)
        self._commit.record(done.commit_ms / 1000, label)

    def _reads(self, done: EpochDone, job: Span) -> None:
        for each in done.reads:
            attributes = {
                "messaging.batch.message_count": each.records,
                "kohort.branch": each.branch,
                "kohort.partitions": list(each.partitions),
                "kohort.bytes": each.bytes,
                "kohort.read.fetch_seconds": each.fetch_ms / 1000,
                "kohort.read.decode_seconds": each.decode_ms / 1000,
            }
            span = self._span("read", each.ended - each.took_ms / 1000, attributes, parent=job)
            span.end(_ns(each.ended))

    def restoring(self, progress: Restoring) -> None:
        key = (progress.task, progress.store)
        first = self._restores.setdefault(key, progress)
        if progress.done:
            del self._restores[key]
            own = {
                "kohort.task": progress.task,
                "kohort.store": progress.store,
                "kohort.records.restored": max(progress.position - first.position, 0),
            }
            self._span("restore", first.at, self._common | own).end(_ns(progress.at))

    def tasks(self, now: TasksNow) -> None:
        restoring = {*now.restoring, "global"}
        self._restores = {key: first for key, first in self._restores.items() if key[0] in restoring}

    def failed(self, text: str) -> None:
        from opentelemetry.trace import Status, StatusCode

        now = self._clock()
        span = self._span("failed", now, self._common)
        span.set_status(Status(StatusCode.ERROR, text))
        span.end(_ns(now))

    def _of_epoch(self, done: EpochDone) -> dict[str, Any]:
        attributes = self._common | {
            "messaging.operation.name": "process",
            "messaging.operation.type": "process",
            "messaging.batch.message_count": done.records,
            "kohort.subtopology": done.subtopology,
            "kohort.epoch": done.number,
            "kohort.input": done.input,
            "kohort.tasks": list(done.tasks),
            "kohort.records.written": done.out_records,
            "kohort.records.dropped": done.dropped,
            "kohort.records.late": done.late,
            "kohort.records.lag": done.lag,
        }
        topics = {place.rpartition("-")[0] for place in done.positions}
        if len(topics) == 1:
            (attributes["messaging.destination.name"],) = topics
            if len(done.positions) == 1:
                (place,) = done.positions
                attributes["messaging.destination.partition.id"] = place.rpartition("-")[2]
        return attributes

    def _span(
        self, name: str, at: float, attributes: Mapping[str, Any], *, parent: Span | None = None, kind: str = "INTERNAL"
    ) -> Span:
        from opentelemetry.context import Context
        from opentelemetry.trace import SpanKind, set_span_in_context

        context = Context() if parent is None else set_span_in_context(parent, Context())
        return self._tracer.start_span(name, context, SpanKind[kind], attributes, start_time=_ns(at))

    # Metrics ---------------------------------------------------------------------------------------------------

    def bridge(self, registry: Registry) -> None:
        """Shows what a registry exposes, from now on. Called in the event loop that the metrics belong to.

        Exporters ask from threads of their own: the loop collects for them, as long as it isn't closed.
        """
        try:
            self._loop = asyncio.get_running_loop()
        except RuntimeError:
            self._loop = None
        self._registry = registry
        self._found_at = float("-inf")
        for family in registry.collect():
            if family.type != "histogram" and family.name not in self._bridged:
                self._bridged.add(family.name)
                self._observe(family)

    def unbridge(self) -> None:
        """Shows nothing of it any more: the instance has ended."""
        self._registry, self._found = None, {}

    def _observe(self, family: Metric) -> None:
        monotonic = family.type == "counter"
        make = self._meter.create_observable_counter if monotonic else self._meter.create_observable_gauge
        unit = next((unit for suffix, unit in _UNITS.items() if family.name.endswith(suffix)), "")
        name = family.name + ("_info" if family.type == "info" else "")
        make(name, [partial(self._observations, family.name)], unit, family.documentation)

    def _observations(self, name: str, _: object) -> Iterator[Observation]:
        from opentelemetry.metrics import Observation

        family = self._collected().get(name)
        if family is not None:
            sample_name = name + _SUFFIXES.get(family.type, "")
            for sample in family.samples:
                if sample.name == sample_name:
                    yield Observation(sample.value, sample.labels)

    def _collected(self) -> Mapping[str, Metric]:
        now, loop = self._clock(), self._loop
        if self._registry is None or (loop is not None and loop.is_closed()):
            return {}
        if now - self._found_at >= _FRESH_S:
            if loop is None or loop is _running_loop():
                self._found = self._collect()
            else:
                self._ask(loop)
            self._found_at = self._clock()
        return self._found

    def _ask(self, loop: asyncio.AbstractEventLoop) -> None:
        """Has the loop collect. If it is held up, what was found last stays, and isn't asked for by each metric."""
        asked = asyncio.run_coroutine_threadsafe(self._collect_here(), loop)
        try:
            self._found = asked.result(_PATIENCE_S)
        except TimeoutError:
            asked.cancel()

    def _collect(self) -> Mapping[str, Metric]:
        return {} if self._registry is None else {family.name: family for family in self._registry.collect()}

    async def _collect_here(self) -> Mapping[str, Metric]:
        return self._collect()

    def _histogram(self, of: str, documentation: str) -> Histogram:
        name = f"kafka_streams_{of}_latency_seconds"
        return self._meter.create_histogram(name, "s", documentation, explicit_bucket_boundaries_advisory=BUCKETS)


def _running_loop() -> asyncio.AbstractEventLoop | None:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None


def _ns(seconds: float) -> int:
    return round(seconds * _NS)
