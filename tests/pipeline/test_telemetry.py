"""A whole application with OpenTelemetry: each epoch's trace, and metrics that a thread exports meanwhile."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from pyspark.sql import SparkSession

from kohort.spark import StreamsApp, count
from kohort.spark.monitoring.telemetry import OpenTelemetry
from kohort.testing.broker import Broker

from .applications import Heard, create_topics, producer, run_until

STEPS = ["job", "merge", "send", "commit", "store"]


@pytest.mark.long
def test_epochs_are_traces_and_metrics_are_exported_from_a_thread(
    spark: SparkSession, kohort_fresh_broker: Broker, tmp_path: Path
) -> None:
    servers = kohort_fresh_broker.bootstrap_servers
    create_topics(servers, "words", "counts")
    sender = producer(servers)
    for number in range(50):
        sender.produce("words", key=b"w%d" % (number % 5), value=b'{"word":"w%d"}' % (number % 5))
    sender.flush()
    app = StreamsApp("count", bootstrap_servers=servers, state_dir=tmp_path)
    app.stream("words", schema="word STRING", key="word").group_by("word").aggregate("n", n=count()).to("counts")
    spans, reader, heard = InMemorySpanExporter(), InMemoryMetricReader(), Heard()
    tracers = TracerProvider()
    tracers.add_span_processor(SimpleSpanProcessor(spans))
    telemetry = OpenTelemetry("count", tracer_provider=tracers, meter_provider=MeterProvider([reader]))

    def read() -> float:
        """Records read, as a thread beside sees them."""
        return sum(point.value for point in points(reader, "kafka_streams_process"))

    run_until(app, spark, heard, lambda: heard.through(50) and read() == 50, telemetry)

    assert not heard.failures
    finished = spans.get_finished_spans()
    roots = [span for span in finished if span.name.startswith("process")]
    assert {span.name for span in finished if span.parent is None} <= {"process words", "restore"}
    assert [dict(span.attributes or {})["messaging.batch.message_count"] for span in roots] == [
        each.records for each in heard.epochs
    ]
    for root in roots:
        steps = [span for span in finished if span.parent and span.parent.span_id == root.context.span_id]
        assert [span.name for span in steps] == STEPS
        assert sum(took(span) for span in steps) == pytest.approx(took(root), rel=0.01)
        job = steps[0]
        (reading,) = (span for span in finished if span.parent and span.parent.span_id == job.context.span_id)
        said, whole = dict(reading.attributes or {}), dict(root.attributes or {})
        assert (reading.name, said["messaging.batch.message_count"]) == ("read", whole["messaging.batch.message_count"])
        assert {"words-0", "words-1"}.issuperset(said["kohort.partitions"])  # an epoch may have both
        assert 0 < said["kohort.read.fetch_seconds"] + said["kohort.read.decode_seconds"] <= took(reading) / 1e9
        assert job.start_time < reading.start_time < reading.end_time < job.end_time
    assert not points(reader, "kafka_streams_process")  # the instance has ended


def took(span: Any) -> int:
    """Nanoseconds."""
    return int(span.end_time - span.start_time)


def points(reader: InMemoryMetricReader, name: str) -> list[Any]:
    """What a metric has now."""
    data = reader.get_metrics_data()
    scopes = [scope for resource in (data.resource_metrics if data else ()) for scope in resource.scope_metrics]
    return [point for scope in scopes for each in scope.metrics if each.name == name for point in each.data.data_points]
