"""The broker's metrics, served to Prometheus."""

from kohort.broker.metrics.counters import Metrics
from kohort.broker.metrics.endpoint import MetricsEndpoint

__all__ = ["Metrics", "MetricsEndpoint"]
