from __future__ import annotations

import pytest
from prometheus_client.parser import text_string_to_metric_families

from kohort.spark.monitoring.events import Listeners
from kohort.spark.monitoring.lag import StandbyLag
from kohort.spark.monitoring.metrics import Metrics
from kohort.spark.monitoring.overview import Overview
from tests.spark.monitoring.events import epoch, restoring, tasks


def test_metrics() -> None:
    overview = Overview()
    metrics = Metrics("flight-delays", overview, lambda: [StandbyLag("delays", 2, "standby", 17)])
    listeners = Listeners([overview, metrics])
    listeners.tasks(tasks(0.0, ["0_0", "1_0"], ["1_2"], restoring=["1_0"]))
    listeners.epoch(epoch(1.0, records=100, dropped=3, reasons={"no key": 1, "unreadable": 2}, late=2, lag=9))
    listeners.epoch(epoch(2.0, records=100, lag=8))
    for position in (10, 30, 30):
        listeners.restoring(restoring(0.0, position, 40))
    listeners.failed("x")

    samples = {
        (sample.name, *sorted(sample.labels.values())): sample.value
        for family in text_string_to_metric_families(metrics.text().decode())
        for sample in family.samples
    }
    assert samples["kafka_streams_process_total", "0"] == 200
    assert samples["kafka_streams_process_bytes_total", "0"] == 2_000
    assert samples["kafka_streams_dropped_records_total", "0", "no key"] == 1
    assert samples["kafka_streams_dropped_records_total", "0", "unreadable"] == 2
    assert samples["kafka_streams_late_records_total", "0"] == 2
    assert samples["kafka_streams_output_records_total", "0"] == 10
    assert samples["kafka_streams_commit_latency_seconds_count", "0"] == 2
    assert samples["kafka_streams_process_latency_seconds_sum", "0"] == pytest.approx(1.0)
    assert samples["kafka_streams_records_lag", "0"] == 8
    assert samples["kafka_streams_tasks", "active"] == 2
    assert samples["kafka_streams_tasks", "restoring"] == 1
    assert samples["kafka_streams_restore_remaining_records", "1_0", "delays"] == 10
    assert samples["kafka_streams_restore_total", "1_0", "delays"] == 20
    assert samples["kafka_streams_standby_records_lag", "2", "delays", "standby"] == 17
    assert samples["kafka_streams_failures_total",] == 1
    assert samples["kafka_streams_state", "failing"] == 1
    assert samples["kafka_streams_state", "running"] == 0
    assert any(name == "kafka_streams_info" and "flight-delays" in labels for name, *labels in samples)


def test_there_is_something_to_compare_with_before_the_first_epoch() -> None:
    """Alerts ask for rates, which what isn't there has none of."""
    metrics = Metrics("flight-delays", Overview())
    metrics.tasks(tasks(0.0, ["0_0", "1_0"], restoring=["1_0"]))
    for subtopology in ("0", "1"):
        labels = {"subtopology": subtopology}
        assert metrics.registry.get_sample_value("kafka_streams_process_total", labels) == 0
        assert metrics.registry.get_sample_value("kafka_streams_process_latency_seconds_count", labels) == 0
