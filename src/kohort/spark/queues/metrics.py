"""The metrics of a worker, for Prometheus, and the page that shows them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from aiohttp import web
from prometheus_client import CollectorRegistry, GCCollector, PlatformCollector, ProcessCollector, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from kohort.http_access import CHALLENGE, HttpAccess, warn_if_exposed
from kohort.spark.errors import ApplicationError
from kohort.spark.queries.bounded_server import BoundedServer, metrics_page
from kohort.spark.queues.counts import QueueCounts

_OUTCOMES: Final = ("acquired", "accepted", "released", "rejected", "lost")
_COUNTERS: Final = (
    ("renewals", "renewed", "Locks that were renewed, by record."),
    ("epochs", "epochs", "Epochs that were acknowledged."),
    ("failed_jobs", "failed_jobs", "Jobs that failed."),
    ("job_seconds", "job_s", "How long jobs took, in all."),
)


class QueueMetrics:
    """Exports the counts of queues in Prometheus' format."""

    def __init__(self, queues: Sequence[QueueCounts]) -> None:
        self._registry = CollectorRegistry()
        self._registry.register(_Counts(queues))
        for collector in (ProcessCollector, PlatformCollector, GCCollector):
            collector(registry=self._registry)

    def text(self) -> bytes:
        """All metrics in Prometheus' text format."""
        return generate_latest(self._registry)


class _Counts(Collector):
    """The counts, looked up on each scrape."""

    def __init__(self, queues: Sequence[QueueCounts]) -> None:
        self._queues = queues

    def describe(self) -> Iterable[Metric]:
        return ()  # otherwise the registry would collect the metrics to learn their names

    def collect(self) -> Iterator[Metric]:
        records = CounterMetricFamily("kohort_queue_records", "Records, by outcome.", labels=["queue", "outcome"])
        in_flight = GaugeMetricFamily("kohort_queue_in_flight_records", "Records worked on now.", labels=["queue"])
        for each in self._queues:
            for outcome in _OUTCOMES:
                records.add_metric([each.topic, outcome], getattr(each, outcome))
            in_flight.add_metric([each.topic], each.in_flight)
        yield records
        yield in_flight
        for name, attribute, documentation in _COUNTERS:
            counter = CounterMetricFamily(f"kohort_queue_{name}", documentation, labels=["queue"])
            for each in self._queues:
                counter.add_metric([each.topic], getattr(each, attribute))
            yield counter


class MetricsServer(BoundedServer):
    """Serves `/metrics` over HTTP in the worker's event loop.

    Args:
        host, port: where it listens, as in `listening_sockets`.
        access: who may ask.
    """

    def __init__(self, metrics: QueueMetrics, host: str, port: int, access: HttpAccess) -> None:
        super().__init__(self._handle, host, port, access)
        self._metrics = metrics

    async def start(self) -> None:
        """Starts to listen.

        Raises:
            ApplicationError: the port is in use, or may not be listened on.
        """
        host, port = self._address
        try:
            await super().start()
        except OSError as error:
            await self.close()
            raise ApplicationError(
                f'application_server="{host}:{port}" can\'t be listened on: {error.strerror or error}'
            ) from error
        warn_if_exposed(
            "the HTTP server of the worker",
            host,
            self._access,
            "application_server_token_file, or application_server_certfile with application_server_cafile",
        )

    async def _handle(self, request: web.BaseRequest) -> web.Response:
        if not self._access.allows(request.headers.get("Authorization")):
            return web.Response(status=401, text="a token is needed\n", headers={"WWW-Authenticate": CHALLENGE})
        if request.method not in ("GET", "HEAD"):
            return web.Response(status=405, text="only GET and HEAD\n", headers={"Allow": "GET, HEAD"})
        if request.rel_url.raw_path != "/metrics":
            return web.Response(status=404, text="there is /metrics\n")
        response = metrics_page(self._metrics.text())
        response.headers["Cache-Control"] = "no-store"
        return response
