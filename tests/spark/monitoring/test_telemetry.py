"""Traces and metrics by OpenTelemetry's own SDK, in memory."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from concurrent.futures import Future
from typing import Any

import pytest
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind, StatusCode
from prometheus_client.parser import text_string_to_metric_families

from kohort.spark.epoch import Read
from kohort.spark.monitoring.events import EpochDone, Listeners
from kohort.spark.monitoring.lag import StandbyLag
from kohort.spark.monitoring.metrics import Metrics
from kohort.spark.monitoring.overview import Overview
from kohort.spark.monitoring.telemetry import OpenTelemetry
from tests.spark.monitoring.events import epoch, restoring, tasks

SECOND = 1_000_000_000


class World:
    """A listener, with what it exports to."""

    def __init__(self) -> None:
        self._spans = InMemorySpanExporter()
        tracers = TracerProvider()
        tracers.add_span_processor(SimpleSpanProcessor(self._spans))
        self._reader = InMemoryMetricReader()
        self.now = 100.0
        self.telemetry = OpenTelemetry(
            "flights",
            tracer_provider=tracers,
            meter_provider=MeterProvider([self._reader]),
            clock=lambda: self.now,
        )

    def spans(self) -> list[ReadableSpan]:
        return list(self._spans.get_finished_spans())

    def trace(self) -> dict[str, ReadableSpan]:
        """The spans by their names, which differ."""
        return {span.name: span for span in self.spans()}

    def metrics(self) -> dict[str, Any]:
        """What is exported now, by name."""
        data = self._reader.get_metrics_data()
        if data is None:
            return {}
        return {
            metric.name: metric
            for resource in data.resource_metrics
            for scope in resource.scope_metrics
            for metric in scope.metrics
        }


@pytest.fixture
def world() -> World:
    return World()


def done(**fields: Any) -> EpochDone:
    """An epoch of a second that ends at 10 s: 600 ms of job with 100 ms of merging, 250 ms of transaction."""
    times = {"job_ms": 600.0, "merge_ms": 100.0, "commit_ms": 250.0, "send_ms": 50.0, "store_ms": 150.0}
    return epoch(10.0, took_ms=1_000.0, **{"positions": {"late-flights-0": 7}, **times, **fields})


def ns(span: ReadableSpan) -> tuple[int, int]:
    """From when to when, in ms."""
    assert span.start_time is not None and span.end_time is not None
    return round(span.start_time / 1e6), round(span.end_time / 1e6)


def test_an_epoch_is_a_trace_of_its_steps_one_after_the_other(world: World) -> None:
    world.telemetry.epoch(done())
    found = world.trace()
    assert {name: ns(span) for name, span in found.items()} == {
        "process late-flights": (9_000, 10_000),
        "job": (9_000, 9_500),
        "merge": (9_500, 9_600),
        "send": (9_600, 9_650),
        "commit": (9_650, 9_850),
        "store": (9_850, 10_000),
    }
    root = found.pop("process late-flights")
    assert root.parent is None and root.kind is SpanKind.CONSUMER
    for span in found.values():
        assert span.parent is not None and span.parent.span_id == root.context.span_id
        assert span.context.trace_id == root.context.trace_id


def test_what_executors_read_is_in_the_job(world: World) -> None:
    reads = [
        Read(70, 700, 400.0, 250.0, 90.0, ("late-flights-0",), ended=9.45),
        Read(30, 300, 100.0, 60.0, 20.0, ("late-flights-1", "late-flights-2"), ended=9.3, branch=1),
    ]
    world.telemetry.epoch(done(reads=reads))
    job = world.trace()["job"]
    one, two = (span for span in world.spans() if span.name == "read")
    assert [ns(one), ns(two)] == [(9_050, 9_450), (9_200, 9_300)]
    assert {span.parent.span_id for span in (one, two) if span.parent} == {job.context.span_id}
    assert dict(two.attributes or {}) == {
        "messaging.batch.message_count": 30,
        "kohort.branch": 1,
        "kohort.partitions": ("late-flights-1", "late-flights-2"),
        "kohort.bytes": 300,
        "kohort.read.fetch_seconds": 0.06,
        "kohort.read.decode_seconds": 0.02,
    }


def test_an_epoch_has_the_attributes_of_messaging(world: World) -> None:
    world.telemetry.epoch(done(records=12, dropped=2, reasons={"no key": 2}, lag=9))
    attributes = dict(world.trace()["process late-flights"].attributes or {})
    assert attributes == {
        "messaging.system": "kafka",
        "messaging.operation.name": "process",
        "messaging.operation.type": "process",
        "messaging.consumer.group.name": "flights",
        "messaging.destination.name": "late-flights",
        "messaging.destination.partition.id": "0",
        "messaging.batch.message_count": 12,
        "kohort.subtopology": "0",
        "kohort.epoch": 1,
        "kohort.input": "stream",
        "kohort.tasks": ("0_0",),
        "kohort.records.written": 5,
        "kohort.records.dropped": 2,
        "kohort.records.late": 0,
        "kohort.records.lag": 9,
    }


def test_an_epoch_of_several_topics_names_none(world: World) -> None:
    world.telemetry.epoch(done(positions={"a-0": 1, "b-0": 1}))
    root = world.trace()["process"]
    assert not any(name.startswith("messaging.destination") for name in root.attributes or {})


def test_an_epoch_of_several_partitions_names_the_topic_alone(world: World) -> None:
    world.telemetry.epoch(done(positions={"a-0": 1, "a-1": 1}))
    assert "messaging.destination.partition.id" not in (world.trace()["process a"].attributes or {})


def test_steps_that_were_not_are_left_out(world: World) -> None:
    """Of a global table: nothing is committed."""
    world.telemetry.epoch(epoch(10.0, [], took_ms=500, job_ms=300, commit_ms=0.0))
    assert [span.name for span in world.spans()] == ["job", "process"]


def test_a_failure_is_a_span_with_an_error(world: World) -> None:
    world.telemetry.failed("subtopology 0: no memory")
    (span,) = world.spans()
    assert (span.name, span.status.status_code, span.status.description) == (
        "failed", StatusCode.ERROR, "subtopology 0: no memory"
    )  # fmt: skip
    assert span.start_time == span.end_time == 100 * SECOND


def test_a_restore_is_a_span_from_its_first_to_its_last_news(world: World) -> None:
    for at, position in ((1.0, 10), (2.0, 30), (4.0, 40)):
        world.telemetry.restoring(restoring(at, position, 40))
    (span,) = world.spans()
    assert (span.name, ns(span)) == ("restore", (1_000, 4_000))
    assert dict(span.attributes or {}) == {
        "messaging.consumer.group.name": "flights", "messaging.system": "kafka",
        "kohort.task": "1_0", "kohort.store": "delays", "kohort.records.restored": 30,
    }  # fmt: skip


def test_a_restore_that_goes_elsewhere_is_forgotten(world: World) -> None:
    world.telemetry.restoring(restoring(1.0, 10, 40))
    world.telemetry.tasks(tasks(2.0, ["0_0"]))
    world.telemetry.restoring(restoring(9.0, 30, 40))
    world.telemetry.restoring(restoring(10.0, 40, 40))
    (span,) = world.spans()
    assert ns(span) == (9_000, 10_000)


def of_an_instance(world: World) -> Metrics:
    """The metrics of an instance to which something happened that the listener heard of, too."""
    overview = Overview(clock=lambda: world.now)
    metrics = Metrics("flights", overview, lambda: [StandbyLag("delays", 2, "standby", 17)])
    world.telemetry.bridge(metrics.registry)
    listeners = Listeners([overview, metrics, world.telemetry])
    listeners.tasks(tasks(0.0, ["0_0"]))
    listeners.epoch(epoch(99.0, records=100, dropped=1, reasons={"no key": 1}, lag=9, took_ms=700))
    listeners.failed("x")
    return metrics


def test_metrics_are_those_of_prometheus(world: World) -> None:
    """Each with all its samples; those of histograms come of the events."""
    scraped = list(text_string_to_metric_families(of_an_instance(world).text().decode()))
    found = world.metrics()
    for family in scraped:
        if family.type == "histogram" or family.name.endswith("_created"):
            continue
        name = family.name + ("_info" if family.type == "info" else "")
        wanted = {frozenset(each.labels.items()) for each in family.samples}
        points = found[name].data.data_points if name in found else []
        assert {frozenset(each.attributes.items()) for each in points} == wanted, name
    values = {point.attributes["subtopology"]: point.value for point in found["kafka_streams_process"].data.data_points}
    assert values == {"0": 100}
    assert found["kafka_streams_records_lag"].data.data_points[0].value == 9


def test_counters_are_monotonic_and_units_are_told(world: World) -> None:
    of_an_instance(world)
    found = world.metrics()
    assert found["kafka_streams_process"].data.is_monotonic
    assert found["kafka_streams_process_bytes"].unit == "By"
    assert found["kafka_streams_process_latency_seconds"].unit == "s"
    assert found["kafka_streams_records_lag"].unit == ""
    assert found["kafka_streams_records_lag"].description == "Records left to read."


def test_latencies_are_histograms(world: World) -> None:
    of_an_instance(world)
    (point,) = world.metrics()["kafka_streams_process_latency_seconds"].data.data_points
    assert (point.count, point.sum, dict(point.attributes)) == (1, pytest.approx(0.7), {"subtopology": "0"})
    assert 0.05 in point.explicit_bounds and 60.0 in point.explicit_bounds


def test_metrics_go_on_with_the_instance(world: World) -> None:
    metrics = of_an_instance(world)
    assert world.metrics()["kafka_streams_failures"].data.data_points[0].value == 1
    metrics.failed("y")
    world.now += 2
    assert world.metrics()["kafka_streams_failures"].data.data_points[0].value == 2


def test_an_exporter_in_a_thread_has_the_loop_collect(world: World) -> None:
    """Which the events come in, so that nothing changes meanwhile."""

    async def main() -> None:
        loops = []
        metrics = of_an_instance(world)

        class Watching:
            def collect(self) -> Any:
                loops.append(asyncio.get_running_loop())
                return metrics.registry.collect()

        world.telemetry.bridge(Watching())
        loops.clear()
        world.now += 2
        found = await asyncio.to_thread(world.metrics)
        assert found["kafka_streams_failures"].data.data_points[0].value == 1
        assert loops == [asyncio.get_running_loop()]

    asyncio.run(main())
    world.now += 2
    assert "kafka_streams_failures" not in world.metrics()  # its loop is closed, and so is the instance


def test_a_loop_that_is_held_up_is_waited_for_once(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """An export has what was found last, and leaves nothing to be collected later."""
    waited: list[float] = []

    class Held(Future[Any]):
        """Of a loop that doesn't come to it."""

        def result(self, timeout: float | None = None) -> Any:
            assert timeout is not None
            waited.append(timeout)
            world.now += timeout
            raise TimeoutError

        def cancel(self) -> bool:
            waited.append(0)
            return super().cancel()

    def ask(collect: Coroutine[Any, Any, Any], loop: asyncio.AbstractEventLoop) -> Held:
        collect.close()
        return Held()

    async def main() -> None:
        metrics = of_an_instance(world)
        assert await asyncio.to_thread(world.metrics)
        metrics.failed("y")
        world.now += 2
        with monkeypatch.context() as held:
            held.setattr(asyncio, "run_coroutine_threadsafe", ask)
            found = await asyncio.to_thread(world.metrics)
        assert waited == [10, 0]
        assert found["kafka_streams_failures"].data.data_points[0].value == 1
        world.now += 2
        found = await asyncio.to_thread(world.metrics)
        assert found["kafka_streams_failures"].data.data_points[0].value == 2

    asyncio.run(main())


def test_an_instance_that_has_ended_shows_nothing(world: World) -> None:
    of_an_instance(world)
    world.telemetry.unbridge()
    world.now += 2
    assert "kafka_streams_records_lag" not in world.metrics()


def test_without_an_sdk_nothing_is_made_and_nothing_fails() -> None:
    telemetry = OpenTelemetry("flights")
    overview = Overview()
    telemetry.bridge(Metrics("flights", overview).registry)
    telemetry.epoch(done())
    telemetry.failed("x")
