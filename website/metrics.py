"""The reference of metrics: those of a broker that has just started, and of an instance of an application."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from prometheus_client.metrics_core import Metric
from prometheus_client.parser import text_string_to_metric_families

from kohort.broker.metrics.exposition import BrokerCollector
from kohort.spark.monitoring.metrics import Metrics
from kohort.spark.monitoring.overview import Overview
from kohort.testing import Broker
from website.page import Page, cell

_OPENING: Final = """# Metrics

For Prometheus: of a broker with `kohort serve --metrics PORT` ([the broker](../broker.md#metrics)), of an instance
where it answers queries ([queries](../queries.md)). Both have the metrics of their process, too, whose names begin
with `process_` and `python_`.
"""


def pages() -> list[Page]:
    """One page with both."""
    with Broker() as broker:
        of_broker = list(BrokerCollector(broker.server.broker.metric_sources).collect())
    text = Metrics("application", Overview()).text().decode()
    families = [each for each in text_string_to_metric_families(text) if each.name.startswith("kafka_streams")]
    of_instance = [each for each in families if not each.name.endswith("_created")]  # when a counter began
    lines = [_OPENING, "## Of a broker", "", *_table(of_broker), "", "## Of an instance", "", *_table(of_instance), ""]
    return [Page("reference/metrics.md", ("Settings",), "\n".join(lines))]


def _table(metrics: Iterable[Metric]) -> list[str]:
    rows = ["| Metric | Type | Meaning |", "| --- | --- | --- |"]
    for metric in metrics:
        name = metric.name + ("_total" if metric.type == "counter" else "")
        rows.append(f"| `{name}` | {metric.type} | {cell(metric.documentation)} |")
    return rows
