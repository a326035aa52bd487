"""The broker's metrics, served to Prometheus."""

from kohort.broker.metrics.counters import Metrics
from kohort.broker.metrics.endpoint import MetricsEndpoint, MetricsPort
from kohort.broker.metrics.sources import Disk, MetricSources

__all__ = ["Disk", "MetricSources", "Metrics", "MetricsEndpoint", "MetricsPort"]
