"""What the broker tells of itself in numbers: counted cheaply, shown to Prometheus."""

from kohort.broker.metrics.counters import Metrics
from kohort.broker.metrics.endpoint import MetricsEndpoint

__all__ = ["Metrics", "MetricsEndpoint"]
